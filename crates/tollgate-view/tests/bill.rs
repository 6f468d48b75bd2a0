//! The bill of a machine: what is on, how each cost can be known, and the table of what was measured.

use crate::sessions::{Side, decide, host, runs};
use tollgate_inspect::bpf::Program;
use tollgate_model::run::Switched;
use tollgate_model::{Case, Fact, Facts, Run};
use tollgate_view::bill::{Bill, CALLS, Charge, Way, charges};
use tollgate_view::session::Session;

fn facts(all: &[(&str, Fact)]) -> Facts {
    all.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect()
}

fn list(items: &[&str]) -> Fact {
    Fact::known(items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>(), "test")
}

fn machine() -> Vec<Charge> {
    charges(&facts(&[
        ("audit.enabled", Fact::known(1, "test")),
        ("audit.rules", list(&["always,exit: 2 calls"])),
        ("bpf.system_calls", list(&["probe on sys_enter"])),
        ("kernel.tracer", Fact::known("function", "test")),
        ("memory.thp", Fact::known("madvise", "test")),
        ("mitigation.pti", Fact::known(true, "test")),
        ("seccomp.filters", Fact::known(1, "test")),
    ]))
}

/// The names of what is switched, and what that does to a case.
type Without = (&'static str, fn(&Case) -> f64);

fn session(ratios: &[Without]) -> (Vec<Side>, Vec<Run>) {
    let others = ratios.iter().map(|(_, ratio)| Side { ratio: *ratio, ..host() });
    let sides: Vec<Side> = std::iter::once(host()).chain(others).collect();
    let cases: Vec<(&str, f64)> = CALLS.iter().map(|(case, _)| (*case, 400.0)).collect();
    let mut runs = runs(&sides, &cases);
    for (run, (name, _)) in runs.iter_mut().skip(1).zip(ratios) {
        let switched = |name: &str| Switched { name: name.to_owned(), on: String::new(), off: String::new() };
        run.session.as_mut().expect("a session").switches = name.split(' ').map(switched).collect();
    }
    (sides, runs)
}

#[test]
fn what_is_on_is_listed_with_the_way_to_its_cost() {
    insta::assert_snapshot!(Bill { charges: machine(), ..Bill::default() }.text(80));
    let refused = facts(&[("audit.rules", Fact::refused("test")), ("kernel.release", Fact::refused("test"))]);
    let nothing = Bill { hidden: tollgate_view::bill::hidden(&refused), ..Bill::default() }.text(80);
    assert!(nothing.starts_with("Nothing that tollgate knows"), "{nothing}");
    assert!(nothing.ends_with("Only root may see: audit.rules\n"), "{nothing}");
}

#[test]
fn what_a_shell_would_read_otherwise_is_not_given_to_it() {
    let way = |fact: &str, value: Fact| charges(&facts(&[(fact, value)])).remove(0).way;
    assert!(matches!(way("kernel.tracer", Fact::known("nop;reboot", "test")), Way::NotKnown { .. }));
    assert!(matches!(way("kernel.trace_events", list(&["a:b", "$(reboot)"])), Way::NotKnown { .. }));
    assert!(matches!(way("kernel.trace_events", list(&["a:b"])), Way::Measured { .. }));
    // Nothing that is off, or locked, is switched on at the end.
    for enabled in [0, 2] {
        let state = ("audit.enabled", Fact::known(enabled, "test"));
        let rules = charges(&facts(&[state, ("audit.rules", list(&["always,exit"]))]));
        assert!(!rules.iter().any(|one| matches!(one.way, Way::Measured { .. })), "{rules:?}");
        assert_eq!(rules[0].way.parameter(), (enabled == 2).then_some("audit=0"));
    }
}

#[test]
fn what_each_saves_is_beside_what_all_save_together() {
    let (sides, runs) = session(&[
        ("audit", |case| if case.benchmark.starts_with("entry") { 0.9 } else { 1.0 }),
        ("ftrace", |_| 0.8),
        ("audit ftrace", |_| 0.65),
    ]);
    let mut measured = Session::of(&runs).expect("a session");
    decide(&mut measured, &sides);
    let program = |runs, nanoseconds| Program {
        id: 7,
        kind: 17,
        name: "probe".to_owned(),
        hook: Some("sys_enter".to_owned()),
        runs,
        nanoseconds,
    };
    let bill = Bill {
        charges: machine(),
        measured: Some(measured),
        programs: tollgate_view::bill::runs(&[program(10, 1000)], &[program(30, 3500)]),
        missing: vec!["what a guest counts: no kernel is found".to_owned()],
        ..Bill::default()
    };
    assert_eq!(bill.programs[0].ns_per_run, Some(125.0));
    let text = anstream::adapter::strip_str(&bill.text(80)).to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}
