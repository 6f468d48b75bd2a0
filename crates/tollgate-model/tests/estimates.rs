//! Estimates and comparisons of small runs whose answers are known.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::{Random, measured, run_of};
use tollgate_model::compare::{Spread, Verdict, compare, compare_knowing, paired, paired_rows};
use tollgate_model::estimate::{CLOCK_TICK, Estimate, Reading, detection_limit, reading};
use tollgate_model::own::{CONTROL, EMPTY_LOOP, RAW_LOOP};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, Fact, Measured, Outcome, Provenance, Run, Unit};

/// Processes of 40 samples about these medians.
fn about(medians: &[f64]) -> Vec<Vec<f64>> {
    let spread = |median: &f64| (0..40).map(|i| median * (1.0 + 0.001 * f64::from(i - 20))).collect();
    medians.iter().map(spread).collect()
}

fn run_with(cases: &[(&str, Measured)]) -> Run {
    let outcome = |(benchmark, measured): &(&str, Measured)| {
        (Case::plain(*benchmark), Outcome::Measured(Box::new(measured.clone())))
    };
    run_of(cases.iter().map(outcome).collect())
}

fn steady(estimate: f64) -> Measured {
    measured(
        "entry",
        &about(&[0.998, 1.002, 1.0, 0.999, 1.001, 1.003, 0.997].map(|factor| estimate * factor)),
    )
}

/// Seven processes whose batches of 200 operations take up to 100 ns by error.
fn empty_loop() -> Measured {
    let samples: Vec<f64> = (0..41).map(|i| f64::from(i - 20) / 40.0).collect();
    measured("entry", &vec![samples; 7])
}

#[test]
fn with_many_processes_the_interval_is_that_of_their_medians() {
    let estimate =
        Estimate::of(&measured("entry", &about(&[100.0, 130.0, 110.0, 120.0, 105.0, 125.0, 115.0]))).unwrap();
    assert_eq!(estimate.process_medians.len(), 7);
    assert!((estimate.median - 115.0).abs() < 0.1);
    let interval = estimate.interval.expect("seven processes");
    assert!((interval.low - 100.0).abs() < 0.1 && (interval.high - 130.0).abs() < 0.1);
    assert!((estimate.spread - 30.0 / 115.0).abs() < 1e-3);
    assert!((estimate.relative_half_width().unwrap() - 15.0 / 115.0).abs() < 1e-3);
    assert!(
        estimate.min < 98.1
            && estimate.max > 132.0
            && estimate.p99.is_some_and(|p99| estimate.p90 <= p99)
            && estimate.samples == 280
    );
}

#[test]
fn there_is_no_interval_of_few_processes_nor_of_no_width() {
    let estimate = Estimate::of(&measured("entry", &about(&[100.0, 100.0, 150.0]))).unwrap();
    assert!(estimate.median < 102.0 && estimate.interval.is_none());
    let estimate = Estimate::of(&measured("entry", &[vec![3.0, 1.0, 2.0]])).unwrap();
    assert_eq!((estimate.median, estimate.interval, estimate.spread), (2.0, None, 0.0));
    let equal = Estimate::of(&measured("entry", &vec![vec![4096.0]; 8])).unwrap();
    assert_eq!((equal.median, equal.interval, equal.relative_half_width()), (4096.0, None, None));
}

/// The steadiest figure of a run, clock_gettime(2) in the vDSO, had no interval.
#[test]
fn an_interval_of_equal_processes_reaches_as_far_as_the_clock_resolves() {
    let process = vec![21.5, 21.0, 21.25, 21.25, 21.25, 30.0];
    let equal = Estimate::of(&measured("entry", &vec![process; 8])).unwrap();
    assert_eq!(equal.interval, Some(Interval { low: 21.0, high: 21.5 }));
    assert_eq!(equal.median, 21.25);
    // A document's samples may be as large as numbers can be.
    let process = vec![f64::MIN, f64::MIN, f64::MIN, f64::MAX];
    let largest = Estimate::of(&measured("entry", &vec![process; 8])).unwrap();
    assert_eq!(largest.interval.map(|interval| interval.low), Some(f64::MIN));
}

#[test]
fn a_p99_needs_a_hundred_samples() {
    let p99 = |samples: usize| Estimate::of(&measured("files", &[vec![1.0; samples]])).unwrap().p99;
    assert_eq!((p99(99), p99(100)), (None, Some(1.0)));
}

#[test]
fn bimodal_samples_have_two_modes() {
    let estimate =
        Estimate::of(&measured("entry", &about(&[164.0, 215.0, 164.0, 164.0, 215.0, 164.0, 164.0]))).unwrap();
    let [lower, upper] = estimate.modes[..] else { panic!("{:?}", estimate.modes) };
    assert!((lower.at - 164.0).abs() < 1.0 && (upper.at - 215.0).abs() < 1.0);
    assert!((upper.share - 2.0 / 7.0).abs() < 0.01);
    assert_eq!(Estimate::of(&steady(164.0)).unwrap().modes.len(), 1);
}

#[test]
fn discarded_rounds_are_a_share_of_all() {
    let mut some = steady(100.0);
    some.processes[0].rounds += 20;
    some.processes[0].discarded = (40..60).collect();
    some.discarded = 20;
    assert_eq!(Estimate::of(&some).unwrap().discarded_share, 20.0 / 300.0);
}

#[test]
fn an_interval_that_reaches_the_detection_limit_gives_a_bound() {
    let null = empty_loop();
    let mut case = steady(0.3);
    let mut run = run_with(&[]);
    // About 95 % of the null's batches are within 0.475 ns * 200 operations.
    assert!((detection_limit(&run, &null, &case) - 0.475).abs() < 0.03);
    case.ops_per_sample = 20;
    assert!((detection_limit(&run, &null, &case) - 4.75).abs() < 0.3);
    case.unit = Unit::Cycles; // At 2 GHz twice as many as nanoseconds.
    assert!((detection_limit(&run, &null, &case) - 9.5).abs() < 0.6);
    case.unit = Unit::Bytes;
    assert_eq!(detection_limit(&run, &null, &case), 0.0);

    // Two readings of a clock of 24 MHz differ by 41.7 ns or not at all.
    run.facts.insert(CLOCK_TICK.to_owned(), Fact::known(41.7, "a test"));
    for (operations, limit) in [(1, 95.0), (20, 4.75), (200, 0.475)] {
        let case = Measured { ops_per_sample: operations, ..steady(0.3) };
        assert!((detection_limit(&run, &null, &case) - limit).abs() < 0.06 * limit);
        let equal = measured("entry", &vec![vec![0.0; 41]; 7]);
        assert_eq!(detection_limit(&run, &equal, &case), 41.7 / operations as f64);
    }

    let run = run_with(&[(EMPTY_LOOP, null), ("entry/a", steady(0.3)), ("entry/b", steady(100.0))]);
    let Some(Reading::BelowLimit(bound)) = reading(&steady(0.3), &run) else { panic!("an estimate") };
    assert!((bound - 0.475).abs() < 0.03);
    assert!(matches!(reading(&steady(100.0), &run), Some(Reading::Estimate(_))));
    let elsewhere = Measured { group: "traps".into(), ..steady(0.3) };
    assert!(matches!(reading(&elsewhere, &run), Some(Reading::Estimate(_))));
}

#[test]
fn two_runs_get_the_verdicts_that_they_should() {
    let base =
        run_with(&[("entry/a", steady(100.0)), ("entry/b", steady(100.0)), ("entry/c", steady(100.0))]);
    let other =
        run_with(&[("entry/a", steady(150.0)), ("entry/b", steady(60.0)), ("entry/c", steady(100.1))]);
    let rows = compare_knowing(&base, &other, 0.0, &as_steady(&base)).rows;
    assert_eq!(
        rows.iter().map(|row| row.verdict).collect::<Vec<_>>(),
        [Verdict::Slower, Verdict::Faster, Verdict::Same]
    );
    assert!((rows[0].ratio - 1.5).abs() < 0.01 && rows[0].threshold < 0.02);
    assert!((rows[0].base.unwrap() - 100.0).abs() < 0.2 && (rows[0].other.unwrap() - 150.0).abs() < 0.2);
    assert_eq!(format!("{}|{:12}|", rows[0].verdict, Verdict::Inconclusive), "slower|inconclusive|");
    assert_eq!(serde_json::to_string(&Verdict::Inconclusive).unwrap(), "\"inconclusive\"");
}

/// Other runs of the machine, which do not differ.
fn as_steady(base: &Run) -> Spread {
    Spread::of([base; 5])
}

/// On machines whose runs differ by up to a factor of two there is no verdict on a factor of 1.5, and the way to one is shown.
#[test]
fn without_other_runs_a_difference_is_more_than_twice() {
    let base = run_with(&[("entry/a", steady(100.0)), ("entry/b", steady(100.0))]);
    let other = run_with(&[("entry/a", steady(150.0)), ("entry/b", steady(300.0))]);
    let found = compare(&base, &other);
    let verdicts: Vec<_> = found.rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::Inconclusive, Verdict::Slower]);
    let Interval { low, high } = found.rows[0].interval.unwrap();
    assert!((low - 0.75).abs() < 0.01 && (high - 3.0).abs() < 0.02, "{low} {high}");
    let method = |apart: &str| {
        format!(
            "Not alternated, unpaired: medians of processes; 99.9 % CIs, corrected for the number of rows; runs that did \
             not alternate are assumed to differ {apart}."
        )
    };
    assert_eq!(
        found.method(0.0),
        method("by up to 2 ×, since fewer than 3 other runs of the machine are kept")
    );
    let known = compare_knowing(&base, &other, 0.0, &as_steady(&base));
    assert!(known.rows.iter().all(|row| row.verdict == Verdict::Slower));
    assert_eq!(known.method(0.0), method("as much as 5 other runs of the machine"));
    assert_eq!(known.interval_name(), "99.9 % CI");
}

#[test]
fn a_run_is_the_same_as_itself_in_every_row() {
    let run = run_with(&[
        (EMPTY_LOOP, empty_loop()),
        ("entry/a", steady(0.1)),
        ("entry/b", measured("entry", &[vec![1.0]])),
    ]);
    let rows = compare(&run, &run).rows;
    assert!(rows.len() == 2 && rows.iter().all(|row| row.verdict == Verdict::Same), "{rows:?}");
}

fn only_row(base: &[(&str, Measured)], other: &[(&str, Measured)]) -> tollgate_model::compare::ComparedCase {
    let base = run_with(base);
    let mut rows = compare_knowing(&base, &run_with(other), 0.0, &as_steady(&base)).rows;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn an_inconclusive_row_says_why() {
    let case = |measured| [("entry/a", measured)];
    let why = |base: Measured, other: Measured| {
        let row = only_row(&case(base), &case(other));
        assert_eq!(row.verdict, Verdict::Inconclusive);
        row.why.unwrap()
    };
    let three = || measured("entry", &about(&[300.0, 301.0, 302.0]));
    let others = measured("entry", &about(&[300.0, 301.0, 303.0]));
    // For runs that are not known to lie near each other.
    let [few, more] = [case(three()), case(others)].map(|case| run_with(&case));
    let why_few = compare(&few, &more).rows[0].why.clone();
    assert_eq!(why_few.unwrap(), "too few processes: 3 in the base and 3 in the other");
    assert_eq!(why(steady(-1.0), steady(1.0)), "the median of a process is not above zero");
    assert_eq!(
        why(steady(1.0), Measured { unit: Unit::Cycles, ..steady(1.0) }),
        "in ns in the base, in cycles in the other"
    );
    let translated = Measured { provenance: Provenance::QemuTcg, ..steady(1.0) };
    assert_eq!(why(steady(1.0), translated), "executed by different kinds of machines");
    assert_eq!(why(steady(1e-300), steady(1e300)), "the ratio is too large or too small for a number");
    let mut bimodal = about(&[164.0; 7]);
    bimodal[2][..30].fill(215.0);
    bimodal[2][30..].fill(164.0);
    bimodal[2].extend([164.0; 30]);
    let mixed = measured("entry", &bimodal);
    let at_upper = measured("entry", &about(&[215.0, 216.0, 214.0, 215.0, 215.5, 214.5, 215.0]));
    assert_eq!(why(mixed, at_upper), "one run is bimodal, with a mode at the level of the other");
}

/// Single operations of about 500 ns, beside an empty loop whose error is 20 ns in most processes, and 1.5 µs in a third of the later ones.
#[test]
fn more_processes_never_take_a_figure_away() {
    let error = |size: f64| (0..41).map(|i| f64::from(i - 20) / 20.0 * size).collect::<Vec<f64>>();
    for processes in [8, 12, 24, 48, 96, 192, 384] {
        let single = |measured: Measured| Measured { ops_per_sample: 1, ..measured };
        let errors = (0..processes).map(|at| error(if at >= 8 && at % 3 == 0 { 1_500.0 } else { 20.0 }));
        let null = single(measured("files", &errors.collect::<Vec<_>>()));
        let medians = (0..processes).map(|at| 500.0 + f64::from(at * 7 % 11));
        let read = single(measured("files", &about(&medians.collect::<Vec<_>>())));
        let limit = detection_limit(&run_with(&[]), &null, &read);
        assert!((15.0..25.0).contains(&limit), "{processes} processes: {limit} ns");
        let run = run_with(&[(EMPTY_LOOP, null), ("files/read", read)]);
        let (_, read) = run.measured().nth(1).expect("the read");
        let Some(Reading::Estimate(estimate)) = reading(read, &run) else {
            panic!("{processes} processes: below the detection limit");
        };
        assert!(estimate.interval.is_some(), "{processes} processes");
    }
}

#[test]
fn below_the_detection_limit_there_is_no_ratio() {
    let small = |estimate| [(EMPTY_LOOP, empty_loop()), ("entry/a", steady(estimate))];
    let row = only_row(&small(0.1), &small(50.0));
    assert_eq!((row.verdict, row.base, row.ratio, row.interval), (Verdict::Inconclusive, None, 1.0, None));
    assert!(row.other.is_some());
    assert!(row.why.unwrap().starts_with("below the detection limit in the base: < 0.4"));
    let row = only_row(&small(0.1), &small(0.11));
    assert_eq!(row.verdict, Verdict::Inconclusive);
    assert!(row.why.unwrap().starts_with("below the detection limit in both: < 0.4"));
}

#[test]
fn the_threshold_rises_with_the_pace_and_with_the_controls() {
    let case = |estimate, raw| [(RAW_LOOP, steady(raw)), ("entry/a", steady(estimate))];
    let [base, other] = [case(100.0, 1.0), case(110.0, 1.2)].map(|case| run_with(&case));
    let row = &compare(&base, &other).rows[0];
    assert!((row.threshold - 0.21).abs() < 0.015 && row.verdict == Verdict::Inconclusive, "{row:?}");
    let row = only_row(&case(100.0, 1.0), &case(110.0, 1.0));
    assert_eq!(row.verdict, Verdict::Slower);

    let control = Measured { baseline: Some(Case::plain("entry/syscall")), ..steady(120.0) };
    let base = run_with(&[("entry/syscall", steady(100.0)), (CONTROL, control)]);
    let other = run_with(&[("entry/syscall", steady(110.0))]);
    let row = &compare(&base, &other).rows[0];
    assert!((row.threshold - 0.2).abs() < 0.01 && row.verdict == Verdict::Inconclusive);
}

#[test]
fn cases_that_one_run_lacks_are_listed_with_the_reason() {
    let base = run_with(&[
        ("entry/a", steady(1.0)),
        ("entry/b", steady(1.0)),
        ("entry/c", steady(1.0)),
        (CONTROL, steady(1.0)),
    ]);
    let other = run_of(vec![
        (Case::plain("entry/b"), Outcome::Skipped { why: "no 32-bit entry".into() }),
        (Case::plain("entry/c"), Outcome::Failed { error: "hung".into() }),
        (Case::plain("entry/d"), Outcome::Measured(Box::new(steady(1.0)))),
    ]);
    let found = compare(&base, &other);
    assert!(found.rows.is_empty());
    let reasons: Vec<_> = found.only_base.iter().map(|(case, why)| format!("{case}: {why}")).collect();
    assert_eq!(
        reasons,
        ["entry/a: not measured", "entry/b: skipped: no 32-bit entry", "entry/c: failed: hung"]
    );
    assert_eq!(found.only_other, [(Case::plain("entry/d"), "not measured".to_owned())]);
}

#[test]
fn rounds_are_joined_by_their_numbers() {
    let baseline = Some(Case::plain("entry/syscall"));
    let base: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i * 37 % 60)).collect();
    let slower: Vec<f64> = base.iter().map(|sample| sample * 1.5).collect();
    let (mut syscall, mut case) = (measured("entry", &[base]), measured("entry", &[slower]));
    for (measured, round) in [(&mut syscall, 3_usize), (&mut case, 40)] {
        measured.samples.remove(round);
        measured.processes[0].discarded = vec![round as u32];
        measured.discarded = 1;
    }
    case.baseline = baseline;
    let run = run_with(&[("entry/syscall", syscall), ("entry/case", case.clone())]);
    let found = paired(&run, &case, 1).unwrap();
    assert_eq!((found.ratio, found.verdict), (1.5, Verdict::Slower));
    assert_eq!(found.ratio_interval, Some(Interval { low: 1.5, high: 1.5 }));
    assert!(found.adds_interval.unwrap().contains(found.adds) && (found.adds - 64.75).abs() < 1.0);
    assert_eq!(paired_rows(&run).len(), 1);

    let elsewhere = Measured { group: "traps".into(), ..case.clone() };
    assert_eq!(paired(&run, &elsewhere, 1), None);
    assert_eq!(paired(&run, &Measured { baseline: Some(Case::plain("entry/none")), ..case }, 1), None);
}

#[test]
fn a_case_that_is_due_in_few_rounds_is_joined_in_those() {
    let every: Vec<f64> = (0..128).map(|i| 100.0 + f64::from(i * 37 % 128)).collect();
    let syscall = measured("entry", &[every.clone(), every.clone()]);
    let mut case = measured("entry", &[(0..32).map(|i| every[i * 4] * 1.5).collect(), vec![]]);
    case.processes[0].rounds = 128;
    case.processes[0].ran = Some((0..32).map(|i| i * 4).collect());
    // In the second process it was never due.
    case.processes[1].rounds = 128;
    case.processes[1].ran = Some(vec![]);
    case.baseline = Some(Case::plain("entry/syscall"));
    let run = run_with(&[("entry/syscall", syscall), ("entry/case", case.clone())]);
    let found = paired(&run, &case, 1).unwrap();
    assert_eq!((found.ratio, found.verdict), (1.5, Verdict::Slower));
    let estimate = Estimate::of(&case).unwrap();
    assert_eq!((estimate.samples, estimate.process_medians.len(), estimate.discarded_share), (32, 1, 0.0));
}

#[test]
fn near_zero_there_is_no_ratio() {
    let mut random = Random(8);
    let mut noise = |centre: f64| -> Vec<f64> { (0..200).map(|_| centre + random.normal()).collect() };
    let baseline = |measured| Measured { baseline: Some(Case::plain("entry/nothing")), ..measured };
    let nothing = measured("entry", &[noise(0.0)]);
    let case = baseline(measured("entry", &[noise(50.0)]));
    let run = run_with(&[("entry/nothing", nothing), ("entry/case", case.clone())]);
    let found = paired(&run, &case, 1).unwrap();
    assert_eq!((found.verdict, found.ratio_interval), (Verdict::Inconclusive, None));
    assert_eq!(found.why.unwrap(), "the baseline is not above zero in 104 of 200 rounds");
    assert!(found.adds_interval.unwrap().contains(50.0), "the difference is known all the same");

    // The other way round the ratio is near 0 and the verdict is significant, although many samples are below zero.
    let fast = baseline(measured("entry", &[noise(0.0)]));
    let run = run_with(&[("entry/nothing", measured("entry", &[noise(50.0)])), ("entry/case", fast.clone())]);
    assert_eq!(paired(&run, &fast, 1).unwrap().verdict, Verdict::Faster);
}
