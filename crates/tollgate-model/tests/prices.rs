//! Prices and comparisons of small runs whose answers are known.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod support;

use support::{Random, measured, run_of};
use tollgate_model::compare::{Verdict, compare, paired, paired_rows};
use tollgate_model::own::{EMPTY_LOOP, RAW_LOOP, TWIN};
use tollgate_model::price::{Price, Reading, read_price, resolution};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, Measured, Outcome, Provenance, Run, Unit};

/// Processes of 40 samples about these medians.
fn about(medians: &[f64]) -> Vec<Vec<f64>> {
    let spread = |median: &f64| (0..40).map(|i| median * (1.0 + 0.001 * f64::from(i - 20))).collect();
    medians.iter().map(spread).collect()
}

fn run_with(cases: &[(&str, Measured)]) -> Run {
    let outcome = |(probe, measured): &(&str, Measured)| {
        (Case::plain(*probe), Outcome::Measured(Box::new(measured.clone())))
    };
    run_of(cases.iter().map(outcome).collect())
}

fn steady(price: f64) -> Measured {
    measured("gates", &about(&[0.998, 1.002, 1.0, 0.999, 1.001, 1.003, 0.997].map(|factor| price * factor)))
}

/// Seven processes whose blocks of 200 operations seem to cost up to 100 ns.
fn empty_loop() -> Measured {
    let samples: Vec<f64> = (0..41).map(|i| f64::from(i - 20) / 40.0).collect();
    measured("gates", &vec![samples; 7])
}

#[test]
fn with_many_processes_the_interval_is_that_of_their_medians() {
    let price =
        Price::of(&measured("gates", &about(&[100.0, 130.0, 110.0, 120.0, 105.0, 125.0, 115.0]))).unwrap();
    assert_eq!(price.process_medians.len(), 7);
    assert!((price.median - 115.0).abs() < 0.1);
    assert!((price.interval.low - 100.0).abs() < 0.1 && (price.interval.high - 130.0).abs() < 0.1);
    assert!((price.spread - 30.0 / 115.0).abs() < 1e-3);
    assert!((price.relative_half_width() - 15.0 / 115.0).abs() < 1e-3);
    assert!(price.min < 98.1 && price.max > 132.0 && price.p90 <= price.p99 && price.samples == 280);
}

#[test]
fn with_few_processes_the_interval_holds_their_medians() {
    let price = Price::of(&measured("gates", &about(&[100.0, 100.0, 150.0]))).unwrap();
    assert!(price.median < 102.0 && price.interval.high > 149.0 && price.interval.low <= 100.0);
    let price = Price::of(&measured("gates", &[vec![3.0, 1.0, 2.0]])).unwrap();
    assert_eq!((price.median, price.interval, price.spread), (2.0, Interval { low: 1.0, high: 3.0 }, 0.0));
}

#[test]
fn two_levels_are_shown_as_two() {
    let price =
        Price::of(&measured("gates", &about(&[164.0, 215.0, 164.0, 164.0, 215.0, 164.0, 164.0]))).unwrap();
    let [lower, upper] = price.modes[..] else { panic!("{:?}", price.modes) };
    assert!((lower.at - 164.0).abs() < 1.0 && (upper.at - 215.0).abs() < 1.0);
    assert!((upper.share - 2.0 / 7.0).abs() < 0.01);
    assert_eq!(Price::of(&steady(164.0)).unwrap().modes.len(), 1);
}

#[test]
fn dropped_rounds_are_a_share_of_all() {
    let mut some = steady(100.0);
    some.processes[0].rounds += 20;
    some.processes[0].dropped = (40..60).collect();
    some.dropped = 20;
    assert_eq!(Price::of(&some).unwrap().dropped_share, 20.0 / 300.0);
}

#[test]
fn a_price_at_the_resolution_is_below_something() {
    let null = empty_loop();
    let mut case = steady(0.3);
    // 95 % of the null's blocks are within 0.475 ns * 200 operations, or nearly.
    assert!((resolution(&null, &case) - 0.475).abs() < 0.03);
    case.ops_per_sample = 20;
    assert!((resolution(&null, &case) - 4.75).abs() < 0.3);
    case.unit = Unit::Cycles; // At 2 GHz twice as many as nanoseconds.
    assert!((resolution(&null, &case) - 9.5).abs() < 0.6);
    case.unit = Unit::Bytes;
    assert_eq!(resolution(&null, &case), 0.0);

    let run = run_with(&[(EMPTY_LOOP, null), ("gates/a", steady(0.3)), ("gates/b", steady(100.0))]);
    let Some(Reading::Below(bound)) = read_price(&steady(0.3), &run) else { panic!("a price") };
    assert!((bound - 0.475).abs() < 0.03);
    assert!(matches!(read_price(&steady(100.0), &run), Some(Reading::Price(_))));
    let elsewhere = Measured { group: "traps".into(), ..steady(0.3) };
    assert!(matches!(read_price(&elsewhere, &run), Some(Reading::Price(_))));
}

#[test]
fn two_runs_get_the_verdicts_that_they_should() {
    let base =
        run_with(&[("gates/a", steady(100.0)), ("gates/b", steady(100.0)), ("gates/c", steady(100.0))]);
    let other =
        run_with(&[("gates/a", steady(150.0)), ("gates/b", steady(60.0)), ("gates/c", steady(100.1))]);
    let rows = compare(&base, &other).rows;
    assert_eq!(
        rows.iter().map(|row| row.verdict).collect::<Vec<_>>(),
        [Verdict::Slower, Verdict::Faster, Verdict::Same]
    );
    assert!((rows[0].ratio - 1.5).abs() < 0.01 && rows[0].floor < 0.02);
    assert!((rows[0].base.unwrap() - 100.0).abs() < 0.2 && (rows[0].other.unwrap() - 150.0).abs() < 0.2);
    assert_eq!(format!("{}|{:12}|", rows[0].verdict, Verdict::CannotTell), "slower|cannot tell |");
    assert_eq!(serde_json::to_string(&Verdict::CannotTell).unwrap(), "\"cannot tell\"");
}

fn only_row(base: &[(&str, Measured)], other: &[(&str, Measured)]) -> tollgate_model::compare::Row {
    let mut rows = compare(&run_with(base), &run_with(other)).rows;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn what_cannot_be_told_says_why() {
    let case = |measured| [("gates/a", measured)];
    let why = |base: Measured, other: Measured| {
        let row = only_row(&case(base), &case(other));
        assert_eq!(row.verdict, Verdict::CannotTell);
        row.why.unwrap()
    };
    let three = || measured("gates", &about(&[300.0, 301.0, 302.0]));
    assert_eq!(why(three(), three()), "too few processes: 3 in the base and 3 in the other");
    assert_eq!(why(steady(-1.0), steady(1.0)), "a process found a price that is not above zero");
    assert!(why(steady(1.0), Measured { unit: Unit::Cycles, ..steady(1.0) }).contains("cycles"));
    assert!(
        why(steady(1.0), Measured { provenance: Provenance::QemuTcg, ..steady(1.0) }).contains("executed")
    );
    assert!(why(steady(1e-300), steady(1e300)).contains("too large or too small"));
    let mut visiting = about(&[164.0; 7]);
    visiting[2][..30].fill(215.0);
    visiting[2][30..].fill(164.0);
    visiting[2].extend([164.0; 30]);
    let mixed = measured("gates", &visiting);
    let at_upper = measured("gates", &about(&[215.0, 216.0, 214.0, 215.0, 215.5, 214.5, 215.0]));
    assert!(why(mixed, at_upper).contains("level"));
}

#[test]
fn below_the_resolution_nothing_is_said_of_ratios() {
    let small = |price| [(EMPTY_LOOP, empty_loop()), ("gates/a", steady(price))];
    let row = only_row(&small(0.1), &small(50.0));
    assert_eq!((row.verdict, row.base, row.ratio, row.interval), (Verdict::CannotTell, None, 1.0, None));
    assert!(
        row.other.is_some() && row.why.unwrap().starts_with("below the resolution in the base: under 0.4")
    );
    let row = only_row(&small(0.1), &small(0.1));
    assert!(
        row.verdict == Verdict::CannotTell && row.why.unwrap().starts_with("below the resolution in both")
    );
}

#[test]
fn the_floor_rises_with_the_pace_and_with_the_twins() {
    let case = |price, raw| [(RAW_LOOP, steady(raw)), ("gates/a", steady(price))];
    let row = only_row(&case(100.0, 1.0), &case(110.0, 1.2));
    assert!((row.floor - 0.21).abs() < 0.015 && row.verdict == Verdict::CannotTell, "{row:?}");
    let row = only_row(&case(100.0, 1.0), &case(110.0, 1.0));
    assert_eq!(row.verdict, Verdict::Slower);

    let twin = Measured { against: Some(Case::plain("gates/syscall")), ..steady(120.0) };
    let base = run_with(&[("gates/syscall", steady(100.0)), (TWIN, twin)]);
    let other = run_with(&[("gates/syscall", steady(110.0))]);
    let row = &compare(&base, &other).rows[0];
    assert!((row.floor - 0.2).abs() < 0.01 && row.verdict == Verdict::CannotTell);
}

#[test]
fn what_one_side_lacks_is_listed_with_the_reason() {
    let base = run_with(&[
        ("gates/a", steady(1.0)),
        ("gates/b", steady(1.0)),
        ("gates/c", steady(1.0)),
        (TWIN, steady(1.0)),
    ]);
    let other = run_of(vec![
        (Case::plain("gates/b"), Outcome::Skipped { why: "no 32-bit entry".into() }),
        (Case::plain("gates/c"), Outcome::Failed { error: "hung".into() }),
        (Case::plain("gates/d"), Outcome::Measured(Box::new(steady(1.0)))),
    ]);
    let found = compare(&base, &other);
    assert!(found.rows.is_empty());
    let reasons: Vec<_> = found.only_base.iter().map(|(case, why)| format!("{case}: {why}")).collect();
    assert_eq!(
        reasons,
        ["gates/a: not measured", "gates/b: skipped: no 32-bit entry", "gates/c: failed: hung"]
    );
    assert_eq!(found.only_other, [(Case::plain("gates/d"), "not measured".to_owned())]);
}

#[test]
fn rounds_are_joined_by_their_numbers() {
    let against = Some(Case::plain("gates/syscall"));
    let base: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i * 37 % 60)).collect();
    let dearer: Vec<f64> = base.iter().map(|sample| sample * 1.5).collect();
    let (mut syscall, mut case) = (measured("gates", &[base]), measured("gates", &[dearer]));
    for (measured, round) in [(&mut syscall, 3_usize), (&mut case, 40)] {
        measured.samples.remove(round);
        measured.processes[0].dropped = vec![round as u32];
        measured.dropped = 1;
    }
    case.against = against;
    let run = run_with(&[("gates/syscall", syscall), ("gates/case", case.clone())]);
    let found = paired(&run, &case, 1).unwrap();
    assert_eq!((found.ratio, found.verdict), (1.5, Verdict::Slower));
    assert_eq!(found.ratio_interval, Some(Interval { low: 1.5, high: 1.5 }));
    assert!(found.adds_interval.unwrap().contains(found.adds) && (found.adds - 64.75).abs() < 1.0);
    assert_eq!(paired_rows(&run).len(), 1);

    let elsewhere = Measured { group: "traps".into(), ..case.clone() };
    assert_eq!(paired(&run, &elsewhere, 1), None);
    assert_eq!(paired(&run, &Measured { against: Some(Case::plain("gates/none")), ..case }, 1), None);
}

#[test]
fn a_case_that_is_due_in_few_rounds_is_joined_in_those() {
    let every: Vec<f64> = (0..128).map(|i| 100.0 + f64::from(i * 37 % 128)).collect();
    let syscall = measured("gates", &[every.clone(), every.clone()]);
    let mut case = measured("gates", &[(0..32).map(|i| every[i * 4] * 1.5).collect(), vec![]]);
    case.processes[0].rounds = 128;
    case.processes[0].ran = Some((0..32).map(|i| i * 4).collect());
    // In the second process it had no turn at all.
    case.processes[1].rounds = 128;
    case.processes[1].ran = Some(vec![]);
    case.against = Some(Case::plain("gates/syscall"));
    let run = run_with(&[("gates/syscall", syscall), ("gates/case", case.clone())]);
    let found = paired(&run, &case, 1).unwrap();
    assert_eq!((found.ratio, found.verdict), (1.5, Verdict::Slower));
    let price = Price::of(&case).unwrap();
    assert_eq!((price.samples, price.process_medians.len(), price.dropped_share), (32, 1, 0.0));
}

#[test]
fn near_nothing_a_ratio_is_not_made_up() {
    let mut random = Random(8);
    let mut noise = |centre: f64| -> Vec<f64> { (0..200).map(|_| centre + random.normal()).collect() };
    let against = |measured| Measured { against: Some(Case::plain("gates/nothing")), ..measured };
    let nothing = measured("gates", &[noise(0.0)]);
    let case = against(measured("gates", &[noise(50.0)]));
    let run = run_with(&[("gates/nothing", nothing), ("gates/case", case.clone())]);
    let found = paired(&run, &case, 1).unwrap();
    assert_eq!((found.verdict, found.ratio_interval), (Verdict::CannotTell, None));
    assert!(found.why.unwrap().contains("not above zero in"));
    assert!(found.adds_interval.unwrap().contains(50.0), "the difference is known all the same");

    // The other way round the ratio is near 0 and the verdict is sure, although many samples are below zero.
    let cheap = against(measured("gates", &[noise(0.0)]));
    let run =
        run_with(&[("gates/nothing", measured("gates", &[noise(50.0)])), ("gates/case", cheap.clone())]);
    assert_eq!(paired(&run, &cheap, 1).unwrap().verdict, Verdict::Faster);
}
