//! The text about a session: its screen, its JSON, and the causes that it proves.

use crate::{everywhere, sessions};
use sessions::{CASES, Side, decide, filtered, host, runs};
use tollgate_model::{Environment, Fact, Knob, Outcome, Run, Unit};
use tollgate_view::session::{self, Session};

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn screen(sides: &[Side], runs: &[Run]) -> String {
    let mut session = Session::of(runs).expect("a session");
    decide(&mut session, sides);
    let text = plain(&session::text(&session, false, 80));
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn a_container_with_a_filter_is_slower_by_its_filter() {
    let sides = [host(), filtered()];
    insta::assert_snapshot!(screen(&sides, &runs(&sides, &CASES)));
}

#[test]
fn three_environments_have_room_on_one_screen() {
    let sandbox = Side {
        name: "gvisor",
        kind: Environment::Sandbox,
        facts: vec![
            ("sandbox.kernel", Fact::known("gVisor", "dmesg")),
            ("kernel.release", Fact::known("4.4.0", "uname(2)")),
        ],
        ratio: |case| if case.benchmark == "entry/vdso-clock" { 1.0 } else { 17.3 },
        ..host()
    };
    let sides = [host(), filtered(), sandbox];
    let text = screen(&sides, &runs(&sides, &CASES));
    insta::assert_snapshot!(text);
}

#[test]
fn one_key_of_the_host_is_a_proven_cause() {
    let facts = filtered().facts.into_iter().filter(|(name, _)| name.starts_with("seccomp.")).collect();
    let varied = Side { name: "host:seccomp=default", kind: Environment::Vm, facts, ..filtered() };
    let sides = [host(), varied];
    insta::assert_snapshot!(screen(&sides, &runs(&sides, &CASES)));
}

#[test]
fn one_setting_of_the_machine_is_a_proven_cause() {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let knob = Knob { path: path.to_owned(), was: "madvise".to_owned(), value: "always".to_owned() };
    let other = Side {
        knob: Some(knob),
        facts: vec![("memory.thp", Fact::known("always", path))],
        ratio: |case| if case.benchmark == "traps/minor-fault" { 0.62 } else { 1.0 },
        ..host()
    };
    let sides = [host(), other];
    insta::assert_snapshot!(screen(&sides, &runs(&sides, &CASES)));
}

#[test]
fn two_of_one_environment_are_the_same_and_have_numbers() {
    let sides = [host(), host()];
    insta::assert_snapshot!(screen(&sides, &runs(&sides, &CASES)));
}

#[test]
fn another_machine_is_not_paired_and_a_lost_environment_says_why() {
    let far = Side {
        name: "ssh:builder",
        paired: false,
        facts: vec![("cpu.model", Fact::known("AMD EPYC 7763 64-Core Processor", "CPUID"))],
        ratio: |_| 0.7,
        ..host()
    };
    let lost = Side {
        name: "exec:docker run -i old",
        facts: vec![("run.lost", Fact::known("docker: it ended with exit status 125", "its agent"))],
        ..host()
    };
    let sides = [host(), far, lost];
    let mut runs = runs(&sides, &CASES);
    runs[2].measurements.clear();
    insta::assert_snapshot!(screen(&sides, &runs));
}

#[test]
fn all_rows_are_shown_with_the_correlation_of_their_turns() {
    let sides = [host(), filtered()];
    let runs = runs(&sides, &CASES);
    let mut session = Session::of(&runs).expect("a session");
    decide(&mut session, &sides);
    insta::assert_snapshot!(plain(&session::text(&session, true, 100)));
}

#[test]
fn runs_of_no_session_or_of_two_are_none() {
    let mut runs = runs(&[host(), host()], &CASES[..1]);
    assert!(Session::of(&[]).is_none());
    runs.reverse();
    let session = Session::of(&runs).expect("a session");
    assert_eq!(session.members.iter().map(|member| member.part.place).collect::<Vec<_>>(), [0, 1]);
    let twice = [runs[0].clone(), runs[1].clone(), runs[0].clone()];
    assert_eq!(Session::of(&twice).expect("a session").members.len(), 2);
    if let Some(part) = &mut runs[0].session {
        part.id = "20261122-210501-ffffffff".parse().expect("an id");
    }
    assert!(Session::of(&runs).is_none());
    runs[0].session = None;
    assert!(Session::of(&runs).is_none());
}

#[test]
fn its_json_has_the_runs_and_the_comparison() {
    let sides = [host(), filtered()];
    let runs = runs(&sides, &CASES);
    let mut session = Session::of(&runs).expect("a session");
    decide(&mut session, &sides);
    let json = serde_json::to_value(session::json::SessionDocument::new(&session, &[])).expect("JSON");
    assert_eq!(json["session"], sessions::ID);
    assert_eq!(json["runs"][1]["environment"], "container");
    assert_eq!(json["runs"][0]["measurements"].as_array().map(Vec::len), Some(CASES.len()));
    let rows = json["comparison"]["rows"].as_array().expect("rows");
    let syscall = rows.iter().find(|row| row["benchmark"] == "entry/syscall").expect("a row");
    let keys: Vec<&str> = syscall.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut expected = vec![
        "base_run",
        "base_name",
        "other_run",
        "other_name",
        "benchmark",
        "params",
        "unit",
        "base",
        "other",
        "ratio",
        "ratio_low",
        "ratio_high",
        "adds",
        "adds_low",
        "adds_high",
        "verdict",
        "threshold",
        "correlation",
        "pairs",
        "total_high",
        "total_low",
        "total_ratio",
        "turns",
        "why",
        "causes",
        "more_time",
        "cpu_base",
        "cpu_other",
        "cpu_ratio",
        "cpu_ratio_low",
        "cpu_ratio_high",
        "cpu_verdict",
        "cpu_why",
        "layouts",
        "layouts_apart_base",
        "layouts_apart_other",
        "by_one_layout_low",
        "by_one_layout_high",
    ];
    expected.sort_unstable();
    let mut keys = keys;
    keys.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(syscall["verdict"], "slower");
    assert_eq!(syscall["other_name"], "container");
    let causes: Vec<&str> =
        syscall["causes"].as_array().expect("causes").iter().filter_map(|name| name.as_str()).collect();
    assert_eq!(causes, ["seccomp.filters", "seccomp.mode", "container.layers"]);
    let same = rows.iter().find(|row| row["benchmark"] == "traps/minor-fault").expect("a row");
    assert!(same["causes"].as_array().is_some_and(Vec::is_empty));
    let facts = json["comparison"]["facts"].as_array().expect("facts");
    assert!(facts.iter().all(|fact| fact["other_name"] == "container"));
}

#[test]
fn turns_that_share_the_noise_of_the_machine_are_decided() {
    let facts = filtered().facts.into_iter().filter(|(name, _)| name.starts_with("seccomp.")).collect();
    let sides = [host(), Side { name: "host:seccomp=default", kind: Environment::Vm, facts, ..filtered() }];
    let runs = runs(&sides, &CASES);
    let session = Session::of(&runs).expect("a session");
    let comparison = &session.comparisons[0];
    assert!(comparison.is_alternated);
    assert_eq!(comparison.changed().len(), CASES.len() - 2);
    let syscall = comparison.changed()[0];
    assert_eq!(syscall.case().benchmark, "entry/syscall");
    assert!((1.55..1.57).contains(&syscall.result.ratio), "{:?}", syscall.result);
    let proven = comparison.proven.as_ref().expect("one key differs");
    assert_eq!(proven.to_string(), "seccomp: not set → default, the only thing that was changed");
    assert_eq!(comparison.cause_names(syscall), ["seccomp.filters", "seccomp.mode"]);
}

/// Start, stop and memory of environments, with a unit and samples that suit. The base has no phases.
fn starts(sides: &[Side]) -> Vec<Run> {
    const MIB: f64 = 1024.0 * 1024.0;
    let mut made = runs(
        sides,
        &[
            ("environments/start", 3.1e6),
            ("environments/start-to-shell", 1.4e6),
            ("environments/stop", 5e5),
            ("environments/memory{of=processes}", 4.0 * MIB),
            ("environments/memory{of=page-cache}", 0.0),
            ("environments/first-touch", 251.0),
            ("environments/phase{of=monitor}", 1e8),
            ("environments/phase{of=kernel}", 2e9),
        ],
    );
    for (at, run) in made.iter_mut().enumerate() {
        for measurement in &mut run.measurements {
            let name = measurement.case.benchmark.clone();
            let Outcome::Measured(measured) = &mut measurement.outcome else { continue };
            if name == "environments/memory" {
                measured.unit = Unit::Bytes;
            }
            let is_guest = at == 2;
            if is_guest && name == "environments/start" {
                measured.notes = vec!["a translator executes it".to_owned()];
            }
            let is_none = if is_guest { name.ends_with("to-shell") } else { name.ends_with("phase") };
            if is_none {
                measurement.outcome = Outcome::Skipped { why: "it has none".to_owned() };
            }
        }
    }
    made
}

#[test]
fn what_environments_cost_is_a_table_with_ratios_and_phases() {
    let guest = Side { name: "vm:vmm=microvm", ratio: |_| 120.0, ..filtered() };
    let container = Side { name: "container:runtime=podman", ratio: |_| 2.0, ..filtered() };
    let sides = [host(), container, guest];
    // A name stands for its figures, its ratios and its phases. A page cache that did not grow is 0, a guest has no shell.
    insta::assert_snapshot!("what_environments_cost", screen(&sides, &starts(&sides)));
    // With everything, the rows with their intervals too.
    let kept = starts(&sides);
    let mut session = Session::of(&kept).expect("a session");
    decide(&mut session, &sides);
    let all = plain(&session::text(&session, true, 120));
    insta::assert_snapshot!("what_environments_cost_with_all_rows", all);
    // Beside other suites, the rows of those have room too.
    let mut mixed = starts(&sides[..2]);
    for (run, other) in mixed.iter_mut().zip(runs(&sides[..2], &CASES)) {
        run.measurements.extend(other.measurements);
    }
    insta::assert_snapshot!("what_environments_cost_beside_other_suites", screen(&sides[..2], &mixed));
}

#[test]
fn environments_are_shown_everywhere_alike() {
    let sandbox = Side { name: "gvisor", kind: Environment::Sandbox, ratio: |_| 17.3, ..host() };
    let far = Side { name: "ssh:builder", paired: false, ratio: |_| 0.7, ..host() };
    insta::assert_snapshot!(everywhere::of_session(&runs(&[host(), filtered(), sandbox, far], &CASES)));
}

#[test]
fn what_environments_cost_is_shown_everywhere_alike() {
    let guest = Side { name: "vm:vmm=microvm", ratio: |_| 120.0, ..filtered() };
    let container = Side { name: "container:runtime=podman", ratio: |_| 2.0, ..filtered() };
    insta::assert_snapshot!(everywhere::of_session(&starts(&[host(), container, guest])));
}
