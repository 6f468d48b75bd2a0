//! For every accepted document: no panic, finite figures, consistent verdicts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::Value;
use support::alternated::{measured_in_turns, part};
use support::{measured_with_discards, run_of};
use tollgate_model::compare::{ComparedCase, Paired, Verdict, compare, margin, paired, paired_rows};
use tollgate_model::estimate::{Estimate, Reading, detection_limit, reading};
use tollgate_model::stats::{Interval, shift};
use tollgate_model::{Case, Measured, Outcome, Provenance, Run, Unit};

const BENCHMARKS: [&str; 7] = [
    "bench/empty-loop",
    "bench/empty-loop-raw",
    "bench/control",
    "entry/syscall",
    "entry/vdso",
    "traps/page",
    "files/stat",
];

fn sample() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 100.0..300.0,
        1 => -1.0..1.0,
        1 => Just(0.0),
        1 => Just(100.0),
        1 => prop::sample::select(vec![f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 5e-324, -5e-324, 1e-300, 1e300, -0.0]),
        1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
    ]
}

fn process() -> impl Strategy<Value = Vec<Option<f64>>> {
    let equal = (sample(), 0..12_usize).prop_map(|(sample, count)| vec![Some(sample); count]);
    let positive = prop::collection::vec((100.0..110.0).prop_map(Some), 0..60);
    prop_oneof![prop::collection::vec(prop::option::weighted(0.9, sample()), 0..60), positive, equal]
}

fn some_measured() -> impl Strategy<Value = Measured> {
    let processes = prop_oneof![
        3 => prop::collection::vec(process(), 1..10),
        1 => (process(), 1..10_usize).prop_map(|(process, count)| vec![process; count]),
    ];
    let has_samples = |processes: &Vec<Vec<Option<f64>>>| processes.iter().flatten().any(Option::is_some);
    let units = vec![
        Unit::Nanoseconds,
        Unit::Nanoseconds,
        Unit::Cycles,
        Unit::Bytes,
        Unit::Instructions,
        Unit::NanosecondsPerLine,
    ];
    let ops = prop_oneof![Just(1_u64), Just(200), Just(u64::MAX), 1..1000_u64];
    let hertz = prop_oneof![Just(1_u64), Just(2_000_000_000), Just(u64::MAX)];
    let group = prop::sample::select(vec!["entry", "entry", "entry", "traps"]);
    let provenance =
        prop::sample::select(vec![Provenance::Hardware, Provenance::Hardware, Provenance::QemuTcg]);
    let baseline = prop::option::of(prop::sample::select(BENCHMARKS.to_vec()));
    let processes = processes.prop_filter("samples", has_samples);
    (processes, prop::sample::select(units), ops, hertz, group, provenance, baseline).prop_map(
        |(processes, unit, ops_per_sample, clock_hz, group, provenance, baseline)| Measured {
            unit,
            ops_per_sample,
            clock_hz,
            provenance,
            baseline: baseline.map(Case::plain),
            ..measured_with_discards(group, &processes)
        },
    )
}

fn outcome() -> impl Strategy<Value = Option<Outcome>> {
    prop_oneof![
        8 => some_measured().prop_map(|measured| Some(Outcome::Measured(Box::new(measured)))),
        1 => Just(Some(Outcome::Skipped { why: "not here".into() })),
        1 => Just(Some(Outcome::Failed { error: "hung".into() })),
        1 => Just(None),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    prop::collection::vec(outcome(), BENCHMARKS.len()).prop_map(|outcomes| {
        let cases = BENCHMARKS.iter().zip(outcomes);
        run_of(cases.filter_map(|(benchmark, outcome)| Some((Case::plain(*benchmark), outcome?))).collect())
    })
}

/// serde_json writes a number that is not finite as null.
fn assert_finite(figures: &impl Serialize, may_be_null: &[&str]) {
    fn walk(value: &Value, name: &str, may_be_null: &[&str]) {
        match value {
            Value::Null => assert!(may_be_null.contains(&name), "{name} is not finite"),
            Value::Array(items) => items.iter().for_each(|item| walk(item, name, may_be_null)),
            Value::Object(fields) => fields.iter().for_each(|(name, item)| walk(item, name, may_be_null)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    walk(&serde_json::to_value(figures).unwrap(), "", may_be_null);
}

fn of_case<'r>(run: &'r Run, case: &Case) -> &'r Measured {
    run.measured().find(|(own, _)| *own == case).unwrap().1
}

fn assert_estimate(measured: &Measured) {
    let estimate = Estimate::of(measured).unwrap();
    assert_finite(&estimate, &["interval", "p99"]);
    assert!(estimate.relative_half_width().is_none_or(|width| width.is_finite() && width > 0.0));
    assert!(estimate.interval.is_none_or(|interval| interval.contains(estimate.median)), "{estimate:?}");
    assert!(estimate.min <= estimate.median && estimate.median <= estimate.max && estimate.spread >= 0.0);
    assert!((0.0..=1.0).contains(&estimate.discarded_share));
    assert!(matches!(estimate.modes.len(), 1 | 2));
    assert!((estimate.modes.iter().map(|mode| mode.share).sum::<f64>() - 1.0).abs() < 1e-9);
}

fn assert_verdict(verdict: Verdict, interval: Option<Interval>, threshold: f64, why: Option<&String>) {
    assert!(threshold >= 0.01);
    assert_eq!(why.is_some(), verdict == Verdict::Inconclusive);
    match interval {
        Some(interval) => {
            assert!(interval.low <= interval.high);
            assert!(
                verdict == Verdict::Inconclusive || verdict == Verdict::from_interval(interval, threshold)
            );
        }
        None => assert_eq!(verdict, Verdict::Inconclusive),
    }
}

/// Counts have no interval, and have a verdict if they do not vary.
fn assert_count(
    (verdict, interval, threshold, why): (Verdict, Option<Interval>, f64, Option<&String>),
    sides: &[&Measured],
) {
    assert_eq!((interval, threshold), (None, 0.0));
    let varies = |side: &&Measured| side.samples.iter().any(|sample| *sample != side.samples[0]);
    if verdict == Verdict::Inconclusive {
        assert!(why.is_some() && sides.iter().any(varies), "{why:?} {sides:?}");
    }
}

fn assert_paired(paired: &Paired, case: &Measured, baseline: &Measured) {
    assert_finite(paired, &["ratio_interval", "adds_interval", "why"]);
    if case.is_count() {
        let figures = (paired.verdict, paired.ratio_interval, paired.threshold, paired.why.as_ref());
        return assert_count(figures, &[case, baseline]);
    }
    assert_verdict(paired.verdict, paired.ratio_interval, paired.threshold, paired.why.as_ref());
    assert!(paired.ratio_interval.is_none_or(|interval| interval.contains(paired.ratio)), "{paired:?}");
    assert!(paired.adds_interval.is_none_or(|interval| interval.contains(paired.adds)), "{paired:?}");
}

fn assert_alternated(row: &ComparedCase) {
    assert!(row.threshold >= margin(0.0));
    assert_eq!(row.why.is_some(), row.verdict == Verdict::Inconclusive, "{row:?}");
    assert!(row.interval.is_none_or(|interval| interval.contains(row.ratio)), "{row:?}");
    assert!(row.interval.is_some() || row.verdict == Verdict::Inconclusive, "{row:?}");
    let Some(turns) = &row.alternation else { return assert_eq!(row.interval, None) };
    assert!(turns.pairs >= 1 && turns.turns >= turns.pairs, "{row:?}");
    assert!(turns.adds_interval.is_none_or(|interval| interval.contains(turns.adds)), "{row:?}");
    assert!(turns.adds_interval.is_none_or(|_| turns.pairs >= 6), "{row:?}");
    assert!(turns.correlation.is_none_or(|rho| (-1.0..=1.0).contains(&rho)), "{row:?}");
}

/// A process of up to 30 turns, of which a case has some or none.
fn turns() -> impl Strategy<Value = Vec<(u32, Option<f64>)>> {
    let some = prop::collection::btree_map(0..30_u32, prop::option::weighted(0.9, sample()), 0..12);
    let alike = prop::collection::btree_map(0..30_u32, (100.0..104.0).prop_map(Some), 4..30);
    prop_oneof![2 => some, 3 => alike].prop_map(|turns| turns.into_iter().collect())
}

/// A run of up to 20 processes; some cases have no batch in some of them.
fn session_run() -> impl Strategy<Value = Run> {
    let has_samples = |processes: &Vec<Vec<(u32, Option<f64>)>>| {
        processes.iter().flatten().any(|(_, sample)| sample.is_some())
    };
    let processes = prop::collection::vec(turns(), 1..20).prop_filter("samples", has_samples);
    let one = processes.prop_map(|processes| {
        let baseline = Some(Case::plain("entry/syscall"));
        Outcome::Measured(Box::new(Measured { baseline, ..measured_in_turns(&processes, 30) }))
    });
    prop::collection::vec(prop::option::weighted(0.9, one), BENCHMARKS.len()).prop_map(|outcomes| {
        let cases = BENCHMARKS.iter().zip(outcomes);
        run_of(cases.filter_map(|(benchmark, outcome)| Some((Case::plain(*benchmark), outcome?))).collect())
    })
}

fn measured_of(run: &Run) -> Vec<&Measured> {
    let outcomes = run.measurements.iter().map(|measurement| &measurement.outcome);
    outcomes
        .filter_map(
            |outcome| if let Outcome::Measured(measured) = outcome { Some(&**measured) } else { None },
        )
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn any_two_runs((base, other) in (run(), run())) {
        for run in [&base, &other] {
            let text = run.to_json().unwrap();
            prop_assert!(Run::parse(&text).is_ok());
            for measured in measured_of(run) {
                assert_estimate(measured);
                match reading(measured, run).unwrap() {
                    Reading::Estimate(estimate) => assert_finite(&estimate, &["interval", "p99"]),
                    Reading::BelowLimit(bound) => prop_assert!(bound.is_finite()),
                }
                for null in measured_of(run) {
                    prop_assert!(detection_limit(run, null, measured).is_finite());
                }
                if let Some(found) = paired(run, measured, 3) {
                    assert_paired(&found, measured, of_case(run, &found.baseline));
                }
            }
            for (case, row) in paired_rows(run) {
                assert_paired(&row, of_case(run, &case), of_case(run, &row.baseline));
            }
        }
        let comparison = compare(&base, &other);
        assert_finite(&comparison, &["base", "other", "interval", "p99", "why", "pace", "alternation", "total", "halves", "total", "adds_interval", "correlation", "processor"]);
        prop_assert!(comparison.pace.is_none_or(|(base, other)| base.is_finite() && other.is_finite()));
        for row in &comparison.rows {
            let [base, other] = [&base, &other].map(|run| of_case(run, &row.case));
            if base.unit == other.unit && (base.is_count() || other.is_count()) {
assert_count((row.verdict, row.interval, row.threshold, row.why.as_ref()), &[base, other])
} else {
assert_verdict(row.verdict, row.interval, row.threshold, row.why.as_ref())
}
            prop_assert!(row.interval.is_none_or(|interval| interval.contains(row.ratio)), "{:?}", row);
        }
        let back = compare(&other, &base);
        prop_assert_eq!(comparison.rows.len(), back.rows.len());
        prop_assert_eq!(comparison.not_compared.len(), back.not_compared.len());
        prop_assert_eq!(&comparison.only_base, &back.only_other);
    }

    #[test]
    fn a_run_is_never_unlike_itself(run in run()) {
        for row in compare(&run, &run).rows {
            prop_assert!(!row.verdict.is_difference(), "{:?}", row);
        }
    }

    #[test]
    fn shifts_are_finite(a in prop::collection::vec(sample(), 0..20), b in prop::collection::vec(sample(), 0..20)) {
        if let Some(found) = shift(&a, &b, 0.95) {
            prop_assert!(found.estimate.is_finite());
            prop_assert!(found.interval.is_none_or(|interval| interval.contains(found.estimate)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_session((mut base, mut other) in (session_run(), session_run())) {
        (base.session, other.session) = (Some(part(0)), Some(part(1)));
        for run in [&base, &other] {
            prop_assert!(Run::parse(&run.to_json().unwrap()).is_ok());
        }
        let comparison = compare(&base, &other);
        let back = compare(&other, &base);
        prop_assert!(comparison.is_alternated && back.is_alternated && comparison.pace.is_none());
        let may_be_null =
            ["base", "other", "interval", "why", "pace", "alternation", "total", "spread", "halves", "total", "adds_interval", "correlation", "narrowed", "processor"];
        assert_finite(&comparison, &may_be_null);
        prop_assert_eq!(comparison.rows.len(), back.rows.len());
        for row in &comparison.rows {
            assert_alternated(row);
            let back = back.rows.iter().find(|back| back.case == row.case).unwrap();
            let turned = match row.verdict {
                Verdict::Slower => Verdict::Faster,
                Verdict::Faster => Verdict::Slower,
                verdict => verdict,
            };
            prop_assert_eq!(back.verdict, turned, "{:?} and {:?}", row, back);
        }
    }

    #[test]
    fn an_environment_is_never_unlike_itself(mut run in session_run()) {
        run.session = Some(part(0));
        let mut other = run.clone();
        other.session = Some(part(1));
        for row in compare(&run, &other).rows {
            prop_assert!(!row.verdict.is_difference(), "{:?}", row);
        }
    }
}
