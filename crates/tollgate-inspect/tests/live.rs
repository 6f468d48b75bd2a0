//! Every fact has an answer on any machine that runs this test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tollgate_arch::architecture::HERE;
use tollgate_inspect::{FactSpec, MOMENTS, Machine, environment, facts, read_facts, strain};
use tollgate_model::{Fact, FactValue, Unknown};

#[test]
fn every_fact_ends_in_an_answer() {
    let found = read_facts(&Machine::here());
    for spec in facts().filter(|spec| spec.only().is_none_or(|only| only == HERE)) {
        let family = spec.name.strip_suffix(".*");
        let answered = match family {
            // A family may be empty if all its members have entries of their own.
            Some(family) => found.keys().any(|name| name.starts_with(family)),
            None => found.contains_key(spec.name),
        };
        assert!(answered, "{} has no answer", spec.name);
    }
    for (name, fact) in &found {
        println!("{name}: {}", shown(fact));
        fit_for_a_document(name, fact);
    }
    println!("{}", environment(&found));
}

#[test]
fn every_moment_ends_in_an_answer() {
    let strain = strain(&Machine::here(), "before");
    let is_here = |spec: &&FactSpec| spec.only().is_none_or(|only| only == HERE);
    assert_eq!(strain.len(), MOMENTS.iter().filter(is_here).count());
    for (name, fact) in &strain {
        println!("{name}: {}", shown(fact));
        assert!(name.ends_with(".before"), "{name}");
        fit_for_a_document(name, fact);
    }
}

/// Facts that only a user changes are the same in two reads.
#[test]
fn facts_stay() {
    let machine = Machine::here();
    equal_once(|| [read_facts(&machine), read_facts(&machine)]);
}

/// Other work changes some facts, such as the BPF programs of a trace: each is to be equal in one of several pairs.
fn equal_once(mut pair: impl FnMut() -> [BTreeMap<String, Fact>; 2]) {
    let mut differing = || -> BTreeSet<String> {
        let [first, second] = pair();
        let names = first.keys().chain(second.keys()).filter(|name| *name != "uptime");
        names.filter(|name| first.get(*name) != second.get(*name)).cloned().collect()
    };
    let mut unequal = differing();
    for _ in 0..5 {
        if !unequal.is_empty() {
            unequal = &unequal & &differing();
        }
    }
    assert_eq!(unequal, BTreeSet::new());
}

#[test]
fn the_processor_tells_of_itself() {
    let found = read_facts(&Machine::here());
    for name in ["cpu.vendor", "cpu.model", "cpu.family", "hypervisor.present", "cpu.feature.fred"] {
        let fact = &found[name];
        assert!(
            matches!(fact, Fact::Known { source, .. } if source.starts_with("CPUID.")),
            "{name}: {fact:?}"
        );
    }
    assert!(found["cpu.allowed"].value().and_then(FactValue::as_f64).is_some_and(|count| count >= 1.0));
    if Path::new("/proc/self/status").exists() {
        assert!(found["process.user"].value().is_some());
    }
}

fn shown(fact: &Fact) -> String {
    match fact {
        Fact::Known { value, source } => format!("{value}  [{source}]"),
        Fact::Unknown { why } => why.to_string(),
    }
}

/// No control characters, no empty reason, no empty source.
fn fit_for_a_document(name: &str, fact: &Fact) {
    let texts = match fact {
        Fact::Known { value, source } => [value.to_string(), source.clone()],
        Fact::Unknown { why: Unknown::Absent(why) | Unknown::Refused(why) | Unknown::Unreadable(why) } => {
            ["a reason".to_owned(), why.clone()]
        }
    };
    assert!(!texts[1].is_empty(), "{name}");
    assert!(!texts.concat().contains(char::is_control), "{name}");
    assert!(name.len() <= 256 && !name.contains(char::is_control), "{name}");
}

/// Compares two sources: the kernel's flags, and the CPUID bits that they stand for.
#[test]
fn what_the_kernel_uses_the_processor_has() {
    let found = read_facts(&Machine::here());
    let Some(FactValue::List(used)) = found["kernel.entry_features"].value() else {
        println!("skipped: {}", shown(&found["kernel.entry_features"]));
        return;
    };
    for feature in used {
        let fact = &found[&format!("cpu.feature.{feature}")];
        assert_eq!(fact.value(), Some(&FactValue::Flag(true)), "{feature}: {fact:?}");
    }
}

/// These are checked against the manual, since no available machine may have them.
#[test]
fn bits_of_rare_features() {
    let found = read_facts(&Machine::here());
    for (name, bit) in [
        ("cpu.feature.fred", "CPUID.7.1:EAX[17]"),
        ("cpu.feature.lkgs", "CPUID.7.1:EAX[18]"),
        ("cpu.feature.invariant_tsc", "CPUID.80000007h:EDX[8]"),
    ] {
        let value = shown(&found[name]);
        assert!(value.contains(bit), "{name}: {value}");
    }
}

/// A capture of this machine gives the same answers elsewhere: known, absent, refused and unreadable.
#[test]
fn a_capture_gives_the_same_facts() {
    let home = tempfile::tempdir().expect("a directory");
    let tree = home.path().join("tree");
    #[expect(clippy::disallowed_methods, reason = "a name, in which nothing is made")]
    let measured = std::env::temp_dir();
    let here = Machine::here();
    equal_once(|| {
        let _ = fs::remove_dir_all(&tree);
        let before = read_facts(&here);
        println!("{:?}", tollgate_inspect::capture(&measured, &tree, &|| false).expect("captured"));
        [before, read_facts(&Machine::open(&tree).expect("a tree"))]
    });
    let there = Machine::open(&tree).expect("a tree");
    assert_eq!(there.captured_directory(), Some(measured.as_path()));
    let under = |machine| tollgate_inspect::storage(machine, &measured).into_iter();
    for (fact, again) in under(&here).zip(under(&there)).filter(|((name, _), _)| name != "files.free") {
        assert_eq!(fact, again);
    }
    let strain = strain(&there, "now");
    assert!(strain.iter().any(|(name, fact)| name == "load.now" && fact.value().is_some()), "{strain:?}");
}
