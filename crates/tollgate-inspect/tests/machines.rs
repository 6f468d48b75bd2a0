//! Stored trees of machines, whose facts are cases of `tollgate inspect`. `machines/README.md` says how each was made.

use std::path::Path;

use tollgate_arch::architecture::Architecture::Arm64;
use tollgate_inspect::{Machine, environment, facts, read_facts};
use tollgate_model::{Environment, Fact, Unknown};

#[test]
fn every_fact_of_each_has_an_answer_and_its_environment_is_known() {
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    for (name, expected) in [
        ("debian-zen3", Environment::Host),
        ("ubuntu-hyperv-docker", Environment::Container),
        ("firecracker-nested", Environment::Vm),
        ("gvisor", Environment::Sandbox),
    ] {
        let found = read_facts(&Machine::open(&trees.join(name)).expect("a tree"));
        assert_eq!(environment(&found), expected, "{name}");
        for spec in facts().filter(|spec| !spec.name.ends_with(".*") && spec.only() != Some(Arm64)) {
            assert!(found.contains_key(spec.name), "{name}: {}", spec.name);
        }
        for (fact, answer) in &found {
            let is_unreadable = matches!(answer, Fact::Unknown { why: Unknown::Unreadable(_) });
            assert!(!is_unreadable, "{name}: {fact}: {answer:?}");
        }
    }
}
