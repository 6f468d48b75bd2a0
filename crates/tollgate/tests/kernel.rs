//! `tollgate inspect kernel` of this machine; those that are made up of a few files are cases.

use crate::common;
use common::Home;

#[test]
fn every_piece_of_evidence_has_a_source_or_a_reason() {
    let home = Home::new();
    let here = home.json(["inspect", "kernel", "--format", "json"]);
    std::fs::create_dir_all(home.path().join("tree/proc")).expect("made");
    for document in [here, home.json(["inspect", "kernel", "--from", "tree", "--format", "json"])] {
        let evidence = document["evidence"].as_array().expect("a list");
        assert_eq!(evidence.len(), 10);
        for piece in evidence {
            let answered = match piece["status"].as_str() {
                Some("known") => piece["source"].as_str().is_some_and(|source| !source.is_empty()),
                Some("unknown") => piece["why"].as_str().is_some_and(|why| !why.is_empty()),
                _ => false,
            };
            assert!(answered, "{piece}");
        }
        assert!(
            ["moved", "not_moved", "unknown"].contains(&document["verdict"].as_str().expect("a verdict"))
        );
    }
}
