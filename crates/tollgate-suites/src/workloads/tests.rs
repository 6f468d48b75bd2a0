#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tollgate_model::{Measurement, Outcome};
use tollgate_os::workdir::Workdir;

use super::command::{Command, Home};
use super::*;
use crate::prelude::*;
use crate::testing::Directory;
use crate::{Extent, select};

fn workdir(own: &Directory) -> Workdir {
    Workdir::find(&own.0).expect("just made")
}

fn with_context<T>(
    seconds: u64,
    storage: Result<Storage, String>,
    work: impl FnOnce(&mut RunContext) -> T,
) -> T {
    let plan = Plan { storage, ..Plan::within(Duration::from_secs(seconds)) };
    let now = Instant::now();
    let mut watch = |_: &Progress| ();
    let mut context = RunContext {
        plan: &plan,
        began: now,
        deadline: now + plan.budget,
        suite: Ordinal::default(),
        watch: &mut watch,
    };
    work(&mut context)
}

fn of_suite(selection: &Selection) -> usize {
    selection.cases().filter(|case| case.benchmark.starts_with("workloads/")).count()
}

#[test]
fn they_are_measured_where_they_are_asked_for_in_the_size_that_is_asked_for() {
    let chosen = |patterns: &[&str], size| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        select(&Topology::default(), &patterns, Extent::Usual, size).expect("registered")
    };
    assert_eq!(of_suite(&chosen(&[], Size::Small)), 0);
    assert_eq!(of_suite(&chosen(&["entry"], Size::Large)), 0);
    let small = chosen(&["workloads"], Size::Small);
    assert_eq!((of_suite(&small), small.cases().count()), (12, 12));
    assert_eq!(of_suite(&chosen(&["*"], Size::Small)), 12);
    assert!(chosen(&["workloads"], Size::Large).cases().all(|case| case.params["size"] == "large".into()));
    // A pattern with a size needs no option.
    let large = chosen(&["workloads/grep{size=large}"], Size::Small);
    assert_eq!(large.cases().count(), 2);
    assert_eq!(chosen(&["workloads/grep{size=large}", "workloads/grep"], Size::Small).cases().count(), 4);
    // More time gives more repetitions, not other cases.
    let thorough = select(&Topology::default(), &["workloads".to_owned()], Extent::Thorough, Size::Small)
        .expect("registered");
    assert!(thorough.cases().eq(small.cases()));
}

#[test]
fn the_default_time_depends_on_the_selection() {
    let minutes = |patterns: &[&str], size| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let selection = select(&Topology::default(), &patterns, Extent::Usual, size).expect("registered");
        selection.usual_time().as_secs() / 60
    };
    assert_eq!(minutes(&["entry"], Size::Small), 1);
    assert_eq!(minutes(&["workloads"], Size::Small), 2);
    assert_eq!(minutes(&["entry", "workloads"], Size::Small), 3);
    assert_eq!(minutes(&["workloads/grep"], Size::Large), 30);
}

#[test]
fn a_program_is_run_in_surroundings_of_its_own() {
    let own = Directory::new();
    let home = Home::new(&own.0, &workdir(&own)).expect("made");
    let said = own.0.join("said");
    let script = "pwd; env | cut -d= -f1 | sort | tr '\\n' ' '; cat; exec >&2; echo 'what it says'";
    let command = Command { output: Some(said.clone()), ..Command::new(&own.0, ["sh", "-c", script]) };
    with_context(20, Err(String::new()), |context| home.run(&command, context)).expect("it ends well");
    let said = std::fs::read_to_string(said).expect("text");
    let mut lines = said.lines();
    assert_eq!(lines.next().map(PathBuf::from), own.0.canonicalize().ok());
    let names = lines.next().expect("names");
    assert!(names.contains("GIT_CONFIG_NOSYSTEM") && names.contains("LC_ALL"), "{names}");
    assert!(!names.contains("CARGO"), "{names}");
    assert_eq!(lines.next(), None, "its input is empty");
}

#[test]
fn a_program_that_fails_is_quoted_and_one_that_takes_too_long_is_ended() {
    let own = Directory::new();
    let home = Home::new(&own.0, &workdir(&own)).expect("made");
    let run = |seconds, script: &str| {
        let command = Command::new(&own.0, ["sh", "-c", script]);
        with_context(seconds, Err(String::new()), |context| home.run(&command, context))
    };
    let failed = run(20, "echo 'sh: no \u{1b}[1msuch thing' >&2; exit 3");
    let why = "its process ended with status 3: sh: no [1msuch thing";
    assert!(matches!(&failed, Err(Stop::Case(Refusal::Fail(said))) if said.ends_with(why)), "{failed:?}");
    let began = Instant::now();
    let marker = own.0.join("still-there");
    // Its children are killed with it.
    let slow = run(1, &format!("(sleep 2; touch {}) & sleep 100", marker.display()));
    assert!(matches!(slow, Err(Stop::Time)), "{slow:?}");
    assert!(began.elapsed() < Duration::from_secs(90));
    std::thread::sleep(Duration::from_millis(2500).saturating_sub(began.elapsed()));
    assert!(!marker.exists(), "a child survived");
}

fn greps() -> Selection {
    select(&Topology::default(), &["workloads/grep".to_owned()], Extent::Usual, Size::Small)
        .expect("registered")
}

fn reasons(storage: Result<Storage, String>) -> Vec<String> {
    let (selection, plan) = (greps(), Plan { storage, ..Plan::of_processes(1) });
    let findings = measure(&selection, &plan, &mut |_| ()).expect("answers");
    assert_eq!(findings.measurements.len(), selection.cases().count());
    let reason = |measurement: Measurement| match measurement.outcome {
        Outcome::Skipped { why } => why,
        Outcome::Measured(_) => panic!("{} is measured", measurement.case),
        outcome => format!("{}: {}", outcome.status().name(), outcome.why().unwrap_or_default()),
    };
    findings.measurements.into_iter().map(reason).collect()
}

#[test]
fn a_missing_directory_limit_or_time_is_the_reason() {
    let own = Directory::new();
    assert!(reasons(Err("nowhere".to_owned())).iter().all(|why| why == "nowhere"));
    let storage =
        |limit| Ok(Storage { directory: workdir(&own), limit, by: "what the test allows".to_owned() });
    let why = reasons(storage(1 << 20));
    assert!(
        why.iter().all(|why| why.ends_with("MiB of files would be more than what the test allows")),
        "{why:?}"
    );
    let plan = Plan { storage: storage(u64::MAX), ..Plan::within(Duration::ZERO) };
    let error = measure(&greps(), &plan, &mut |_| ()).expect_err("there is no time");
    assert!(matches!(error, BenchError::NoTime { .. }), "{error}");
    assert_eq!(std::fs::read_dir(&own.0).expect("ours").count(), 0);
}
