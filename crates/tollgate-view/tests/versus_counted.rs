//! The text about commands whose instructions were counted.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use crate::{commands, everywhere};
use commands::{runs, side};
use serde_json::Value;
use tollgate_engine::session::FunctionCount;
use tollgate_model::versus::{
    CALLS, FAULTS, FIRST, INSTRUCTIONS, ITERATIONS, KERNEL_INSTRUCTIONS, TICKS, USER_INSTRUCTIONS,
};
use tollgate_model::{Case, Fact, Measured, Measurement, Outcome, Provenance, Run, Unit};
use tollgate_view::session::Session;
use tollgate_view::versus::{self, json};

fn count(name: &str, unit: Unit, samples: &[f64]) -> Measurement {
    let measured = Measured {
        provenance: Provenance::QemuIcount,
        ..Measured::of_executions("versus", unit, samples.to_vec())
    };
    Measurement { case: Case::plain(name), outcome: Outcome::Measured(Box::new(measured)) }
}

/// The counts of a command that executes that many more instructions in the kernel, and of its own.
fn counts(kernel: f64, user: f64) -> Vec<Measurement> {
    let total = 3_364_000.0 + kernel + user;
    vec![
        count(INSTRUCTIONS, Unit::Instructions, &[total, total - 813.0, total + 879.0]),
        count(USER_INSTRUCTIONS, Unit::Instructions, &[481_294.0 + user]),
        count(KERNEL_INSTRUCTIONS, Unit::Instructions, &[total - 481_294.0 - user]),
        count(ITERATIONS, Unit::Instructions, &[841_787.0]),
        count(FIRST, Unit::Instructions, &[4_452_895.0]),
        count(CALLS, Unit::Count, &[156.0]),
        count(FAULTS, Unit::Count, &[98.0; 3]),
        count(TICKS, Unit::Count, &[0.0; 3]),
    ]
}

/// Two commands: the second has this many instructions more, all in the kernel, and `user` more of its own.
pub fn counted(kernel: f64, user: f64) -> Vec<Run> {
    let mut runs = runs(&[side("ls -l /usr", 1.0), side("ls /usr", 1.0)]);
    for (run, [kernel, user]) in runs.iter_mut().zip([[0.0, 0.0], [kernel, user]]) {
        run.measurements = counts(kernel, user);
        let part = run.session.as_mut().expect("of a session");
        (part.environment, part.paired) = ("vm:exact".to_owned(), false);
    }
    runs
}

fn screen(runs: &[Run]) -> String {
    let session = Session::of(runs).expect("a session");
    anstream::adapter::strip_str(&versus::text(&session, false, 80)).to_string()
}

#[test]
fn counts_have_a_table_and_differences_a_row_each() {
    let text = screen(&counted(-700_000.0, 0.0));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn what_images_differ_by_is_no_difference_and_one_instruction_of_the_program_is() {
    let verdicts = |runs: &[Run]| -> Vec<String> {
        let session = Session::of(runs).expect("a session");
        let rows = &session.comparisons[0].rows;
        rows.iter()
            .filter(|row| row.result.verdict.is_difference())
            .map(|row| row.case().to_string())
            .collect()
    };
    assert_eq!(verdicts(&counted(5_000.0, 0.0)), Vec::<String>::new());
    assert_eq!(verdicts(&counted(0.0, 1.0)), [USER_INSTRUCTIONS]);
    assert_eq!(verdicts(&counted(60_000.0, 0.0)), [INSTRUCTIONS, KERNEL_INSTRUCTIONS]);
}

#[test]
fn a_document_has_the_counts_and_no_times() {
    let runs = counted(-700_000.0, 0.0);
    let session = Session::of(&runs).expect("a session");
    let document: Value = serde_json::to_value(json::VersusDocument::new(&session, &[])).expect("JSON");
    let command = &document["commands"][0];
    assert_eq!(command["executions"], 3);
    assert_eq!(command["median_s"], Value::Null);
    assert_eq!(command["counted"]["instructions"]["median"], 3_364_000.0);
    assert_eq!(command["counted"]["user_instructions"]["samples"][0], 481_294.0);
    let row = &document["comparison"]["rows"][0];
    assert_eq!((&row["verdict"], row["others"].as_array().map(Vec::len)), (&Value::from("faster"), Some(7)));
}

#[test]
fn counted_commands_are_shown_everywhere_alike() {
    insta::assert_snapshot!(everywhere::of_session(&counted(-700_000.0, 0.0)));
}

/// A command under these kernels, of which each has this many instructions more than the first, and as many in a function.
fn under_kernels(all: &[(&str, u64)]) -> (Vec<Run>, Vec<Vec<FunctionCount>>) {
    let sides: Vec<_> = all.iter().map(|_| side("ls -l /usr", 1.0)).collect();
    let mut runs = runs(&sides);
    for (run, (release, more)) in runs.iter_mut().zip(all) {
        run.measurements = counts(*more as f64, 0.0);
        run.facts.insert("kernel.release".to_owned(), Fact::known(*release, "uname(2)"));
        let part = run.session.as_mut().expect("of a session");
        (part.environment, part.paired) = ((*release).to_owned(), false);
    }
    let function = |name: &str, instructions| FunctionCount {
        name: Some(name.to_owned()),
        file: None,
        instructions,
        repeated: 0,
    };
    let of = |(_, more): &(&str, u64)| vec![function("large", 900_000), function("vfs_statx", 50_000 + more)];
    let functions = all.iter().map(of).collect();
    (runs, functions)
}

#[test]
fn a_command_under_several_kernels_is_compared_with_the_kernel_before() {
    let kernels = [("6.1.0-47-amd64", 0), ("6.1.0-48-amd64", 60_000), ("6.1.0-49-amd64", 60_000)];
    let (runs, functions) = under_kernels(&kernels);
    let session = Session::of(&runs).expect("a session");
    let of_functions = versus::functions(&session, &functions, false, 80);
    let text = screen(&runs) + &anstream::adapter::strip_str(&of_functions).to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
    // Each of many kernels has a sign, and its column in one of the blocks of functions.
    let many: Vec<(String, u64)> =
        (40..57).map(|at| (format!("6.1.0-{at}-amd64"), 10_000 * (at / 50))).collect();
    let many: Vec<(&str, u64)> = many.iter().map(|(release, more)| (release.as_str(), *more)).collect();
    let (runs, functions) = under_kernels(&many);
    let session = Session::of(&runs).expect("a session");
    assert!(screen(&runs).contains("=========+======"), "{}", screen(&runs));
    let of_functions =
        anstream::adapter::strip_str(&versus::functions(&session, &functions, true, 80)).to_string();
    assert_eq!(of_functions.matches("vfs_statx").count(), of_functions.matches("\nlarge").count());
    assert!(
        many.iter().all(|(release, _)| of_functions.contains(release.trim_end_matches("-amd64"))),
        "{of_functions}"
    );
    // Two are compared in full.
    assert!(screen(&under_kernels(&kernels[..2]).0).contains("compared with"));
}

#[test]
fn counts_beside_times_say_what_both_mean() {
    let said = |ms: f64, kernel: f64| {
        let timed = runs(&[side("ls -l /usr", 28.0), side("ls /usr", ms)]);
        let counted = counted(kernel, 0.0);
        let [timed, counted] = [&timed, &counted].map(|runs| Session::of(runs).expect("a session"));
        let text =
            anstream::adapter::strip_str(&versus::counts(&timed, &counted, &[], false, 80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_once("\nB executes ")
            .expect("a sentence")
            .1
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let more = "21 % more instructions than A (user +0, kernel +700,000)";
    for (ms, kernel, sentence) in [
        (30.0, 700_000.0, format!("{more}: it is slower because it does more.")),
        (28.0, 700_000.0, format!("{more}, too few for a difference of the time.")),
        (
            26.0,
            700_000.0,
            format!(
                "{more}, and the time goes the other way: caches, branch prediction, the layout of the code, or waiting outweigh the work."
            ),
        ),
        (
            30.0,
            0.0,
            "as many instructions as A (user +0, kernel +0), and is slower: that is a matter of caches, branch prediction, the layout of \
             the code, or waiting, not of more or less work."
                .to_owned(),
        ),
        (28.0, 0.0, "as many instructions as A (user +0, kernel +0).".to_owned()),
    ] {
        assert_eq!(said(ms, kernel), sentence);
    }
}
