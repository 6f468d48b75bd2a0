//! Processes that something else slowed, by their canaries.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::{measured, run_of};
use tollgate_model::compare::compare;
use tollgate_model::disturbance::{Disturbance, Share};
use tollgate_model::estimate::Estimate;
use tollgate_model::own::CANARY;
use tollgate_model::{Case, Measured, Outcome, Run};

/// Processes of 20 samples about these medians.
fn about(medians: &[f64]) -> Vec<Vec<f64>> {
    let spread = |median: &f64| (0..20).map(|i| median * (1.0 + 0.001 * f64::from(i - 10))).collect();
    medians.iter().map(spread).collect()
}

fn run_with(cases: &[(&str, &[f64])]) -> Run {
    let outcome = |(benchmark, medians): &(&str, &[f64])| {
        (Case::plain(*benchmark), Outcome::Measured(Box::new(measured("entry", &about(medians)))))
    };
    run_of(cases.iter().map(outcome).collect())
}

fn measured_in<'a>(run: &'a Run, benchmark: &str) -> &'a Measured {
    run.measured().find(|(case, _)| case.benchmark == benchmark).unwrap().1
}

/// Eight quiet processes among fourteen.
const CANARIES: [f64; 14] =
    [81.0, 120.0, 82.0, 115.0, 81.5, 81.2, 110.0, 81.9, 90.0, 81.0, 140.0, 81.3, 95.0, 82.1];

fn slowed(by: f64) -> Vec<f64> {
    CANARIES.iter().map(|canary| canary * by).collect()
}

#[test]
fn a_figure_is_of_the_processes_whose_canary_was_quiet() {
    let run = run_with(&[("entry/a", &slowed(2.0)), (CANARY, &CANARIES)]);
    let disturbance = Disturbance::of(&run);
    assert_eq!(disturbance.share(), Share { disturbed: 6, of: 14 });
    assert_eq!((disturbance.share_of("entry").disturbed, disturbance.share_of("other").disturbed), (6, 0));
    let whole = Estimate::of(measured_in(&run, "entry/a")).unwrap();
    let quiet = Estimate::of(&disturbance.without(measured_in(&run, "entry/a"))).unwrap();
    assert!(quiet.median < 164.0 && quiet.interval.unwrap().high < 165.0, "{quiet:?}");
    assert!(whole.interval.unwrap().high > 180.0, "{whole:?}");
    assert_eq!((quiet.samples, quiet.process_medians.len()), (8 * 20, 8));
}

#[test]
fn processes_keep_their_numbers_so_that_neighbours_in_time_stay_neighbours() {
    let run = run_with(&[("entry/a", &slowed(2.0)), (CANARY, &CANARIES)]);
    let kept = Disturbance::of(&run).left_out(&run).into_owned();
    let processes =
        |run: &Run| -> Vec<usize> { measured_in(run, "entry/a").by_process().map(<[f64]>::len).collect() };
    let expected: Vec<usize> = CANARIES.iter().map(|&canary| if canary < 83.0 { 20 } else { 0 }).collect();
    assert_eq!((processes(&run), processes(&kept)), (vec![20; 14], expected));
    // Nothing more is left out of what was left.
    assert_eq!(Disturbance::of(&kept).share().disturbed, 0);
}

#[test]
fn a_case_keeps_the_six_quietest_processes_where_fewer_were_quiet() {
    // Four quiet ones among fourteen, in the order of their numbers.
    let busy: Vec<f64> = (0..14).map(|i| if i % 4 == 1 { 80.0 } else { 100.0 + f64::from(i) }).collect();
    let run = run_with(&[("entry/a", &busy), (CANARY, &busy)]);
    let disturbance = Disturbance::of(&run);
    assert_eq!(disturbance.share().disturbed, 10);
    let estimate = Estimate::of(&disturbance.without(measured_in(&run, "entry/a"))).unwrap();
    let whole = Estimate::of(measured_in(&run, "entry/a")).unwrap();
    let interval = estimate.interval.unwrap();
    // The two that are not quieter belong to the uncertainty of the figure.
    assert!(estimate.median < 81.0 && interval.low < 81.0 && interval.high > 99.0, "{estimate:?}");
    assert!(whole.median > 100.0 && estimate.process_medians.len() == 6, "{whole:?}");
}

#[test]
fn a_case_keeps_all_processes_where_there_are_no_more_than_six_and_where_there_is_no_canary() {
    let busy = [80.0, 81.0, 100.0, 102.0, 104.0, 106.0];
    let run = run_with(&[("entry/a", &busy), (CANARY, &busy)]);
    let disturbance = Disturbance::of(&run);
    assert_eq!(disturbance.share().disturbed, 4);
    assert_eq!(*disturbance.without(measured_in(&run, "entry/a")), *measured_in(&run, "entry/a"));
    let blind = run_with(&[("entry/a", &busy)]);
    assert_eq!(Disturbance::of(&blind).share(), Share::default());
    assert_eq!(*Disturbance::of(&blind).left_out(&blind), blind);
}

#[test]
fn runs_that_met_other_work_in_some_processes_are_compared_by_the_others() {
    let quiet = run_with(&[("entry/a", &[162.0; 14].map(|ns| ns * 1.001)), (CANARY, &[81.0; 14])]);
    let busy = run_with(&[("entry/a", &slowed(2.0)), (CANARY, &CANARIES)]);
    let ratio = |base: &Run, other: &Run| {
        let comparison = compare(base, other);
        comparison.rows.iter().find(|row| row.case.benchmark == "entry/a").map(|row| row.ratio).unwrap()
    };
    let of_quiet_processes = ratio(&quiet, &busy);
    assert!((of_quiet_processes - 1.0).abs() < 0.006, "{of_quiet_processes}");
    let blind = |run: &Run| {
        let mut run = run.clone();
        run.measurements.retain(|measurement| measurement.case.benchmark != CANARY);
        run
    };
    assert!(ratio(&blind(&quiet), &blind(&busy)) > of_quiet_processes + 0.004);
}

/// A group of few processes may have no quiet one, which the run's other groups show.
#[test]
fn what_is_quiet_is_said_by_the_lowest_group_of_a_run() {
    let busy = [100.0, 104.0, 101.0, 103.0, 102.0, 100.5, 101.5];
    let case = |benchmark: &str, group: &str, medians: &[f64]| {
        (Case::plain(benchmark), Outcome::Measured(Box::new(measured(group, &about(medians)))))
    };
    let run = run_of(vec![
        case(CANARY, "entry", &[81.0, 80.0, 80.5, 82.0, 81.5, 80.2, 81.2]),
        case(CANARY, "memory", &busy),
    ]);
    let disturbance = Disturbance::of(&run);
    assert_eq!((disturbance.share_of("entry").disturbed, disturbance.share_of("memory").disturbed), (0, 7));
    let alone = run_of(vec![case(CANARY, "memory", &busy)]);
    assert_eq!(Disturbance::of(&alone).share().disturbed, 0);
}
