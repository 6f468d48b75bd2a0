//! Every fact has an answer on any machine that runs this test.

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
    let (first, second) = (read_facts(&machine), read_facts(&machine));
    for (name, fact) in first.iter().filter(|(name, _)| *name != "uptime") {
        assert_eq!(Some(fact), second.get(name), "{name}");
    }
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
    let before = read_facts(&here);
    let captured = tollgate_inspect::capture(&measured, &tree, &|| false).expect("captured");
    println!("{captured:?}");
    let there = Machine::open(&tree).expect("a tree");
    assert_eq!(there.captured_directory(), Some(measured.as_path()));
    let again = read_facts(&there);
    for (name, fact) in before.iter().filter(|(name, _)| *name != "uptime") {
        assert_eq!(Some(fact), again.get(name), "{name}");
    }
    assert_eq!(before.len(), again.len());
    let under = |machine| tollgate_inspect::storage(machine, &measured).into_iter();
    for (fact, again) in under(&here).zip(under(&there)).filter(|((name, _), _)| name != "files.free") {
        assert_eq!(fact, again);
    }
    let strain = strain(&there, "now");
    assert!(strain.iter().any(|(name, fact)| name == "load.now" && fact.value().is_some()), "{strain:?}");
}
