//! `tollgate inspect kernel`: this machine's, and machines made up of a few files.

mod common;

use common::Home;
use serde_json::Value;

const CONFIG: &str =
    "CONFIG_RANDOMIZE_BASE=y\nCONFIG_PHYSICAL_START=0x1000000\nCONFIG_PHYSICAL_ALIGN=0x200000\n";

fn tree(home: &Home, text: &str) {
    home.file("tree/proc/sys/kernel/osrelease", "6.1.0\n");
    home.file("tree/boot/config-6.1.0", CONFIG);
    home.file("tree/proc/cmdline", "quiet\n");
    home.file("tree/proc/kallsyms", format!("{text} T _text\n"));
}

fn conclusion(home: &Home) -> Value {
    home.json(["inspect", "kernel", "--from", "tree", "--format", "json"])
}

#[test]
fn a_kernel_at_its_link_address_is_not_moved_whatever_it_was_built_for() {
    let home = Home::new();
    tree(&home, "ffffffff81000000");
    let document = conclusion(&home);
    assert_eq!((&document["verdict"], &document["offset"]), (&"not_moved".into(), &"0x0".into()));
    let text = home.output(["inspect", "kernel", "--from", "tree"]);
    assert!(text.starts_with("not moved: it is at its link address, 0xffffffff81000000"), "{text}");
    assert!(text.contains("RANDOMIZE_BASE=y"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_moved_kernel_says_by_how_much() {
    let home = Home::new();
    tree(&home, "ffffffff9e000000");
    let document = conclusion(&home);
    assert_eq!((&document["verdict"], &document["offset"]), (&"moved".into(), &"0x1d000000".into()));
    let text = home.output(["inspect", "kernel", "--from", "tree"]);
    assert!(text.starts_with("moved, by +0x1d000000 (464 MiB)"), "{text}");
}

#[test]
fn zeros_are_no_answer_and_what_would_tell_is_said() {
    let home = Home::new();
    tree(&home, "0000000000000000");
    assert_eq!(conclusion(&home)["verdict"], "unknown");
    let text = home.output(["inspect", "kernel", "--from", "tree"]);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.starts_with("inconclusive: whether the kernel was moved is unknown"), "{text}");
    assert!(flat.contains("\"not visible\" and not \"not moved\""), "{text}");
}

#[test]
fn every_piece_of_evidence_has_a_source_or_a_reason() {
    let home = Home::new();
    let here = home.json(["inspect", "kernel", "--format", "json"]);
    std::fs::create_dir_all(home.path().join("tree/proc")).expect("made");
    for document in [here, conclusion(&home)] {
        let evidence = document["evidence"].as_array().expect("a list");
        assert_eq!(evidence.len(), 9);
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

#[test]
fn a_tree_that_is_none_is_refused() {
    let home = Home::new();
    home.file("a-file", "");
    let refused = |tree: &str| home.refusal(["inspect", "kernel", "--from", tree]);
    assert!(refused("missing").contains("does not exist"));
    assert!(refused("a-file").contains("not a directory"));
}

#[test]
fn what_a_tree_says_cannot_command_the_terminal() {
    let home = Home::new();
    tree(&home, "\u{1b}[2J");
    home.file("tree/proc/sys/kernel/osrelease", "6.1\u{1b}[31m\n");
    let text = home.output(["inspect", "kernel", "--from", "tree"]);
    assert!(!text.contains('\u{1b}'), "{text}");
}
