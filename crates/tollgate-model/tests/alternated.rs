//! Runs that are compared turn with turn, and how a row gets its verdict.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use std::time::Instant;

use crate::support;
use support::Random;
use support::alternated::{USUAL, measured_in_turns, part, session};
use support::{measured, run_of};
use tollgate_model::compare::{ComparedCase, Comparison, Verdict, compare, compare_above, margin};
use tollgate_model::own::{CONTROL, EMPTY_LOOP};
use tollgate_model::stats::Interval;
use tollgate_model::versus::LAYOUTS;
use tollgate_model::{Case, Fact, Measured, Outcome, Run, Unit};

fn row() -> Case {
    Case::plain("entry/syscall")
}

fn environment(place: u32, measured: Measured) -> Run {
    let mut run = run_of(vec![(row(), Outcome::Measured(Box::new(measured)))]);
    run.session = Some(part(place));
    run
}

/// Turns of both sides around 100 ns, process by process: the base's, and the other's at this ratio to it. Both have the same
/// pace.
fn sides(seed: u64, pairs: usize, turns: usize, ratio: f64) -> [Vec<Vec<f64>>; 2] {
    let mut random = Random(seed);
    let mut sides = [vec![], vec![]];
    for _ in 0..pairs {
        let (mut base, mut other) = (vec![], vec![]);
        for _ in 0..turns {
            let pace = 100.0 * (1.0 + random.uniform());
            base.push(pace * random.factor(0.005));
            other.push(pace * ratio * random.factor(0.005));
        }
        sides[0].push(base);
        sides[1].push(other);
    }
    sides
}

fn compared(pairs: usize, ratio: f64) -> ComparedCase {
    let [base, other] = sides(1, pairs, 20, ratio).map(|processes| measured("entry", &processes));
    only(compare(&environment(0, base), &environment(1, other)))
}

fn only(comparison: Comparison) -> ComparedCase {
    assert!(comparison.is_alternated);
    comparison.rows.into_iter().next().unwrap()
}

#[test]
fn only_different_paired_places_of_one_session_are_compared_turn_with_turn() {
    let base = environment(0, measured("entry", &vec![vec![100.0, 101.0]; 8]));
    let is_alternated = |change: &dyn Fn(&mut Run)| {
        let mut other = base.clone();
        other.session = Some(part(1));
        change(&mut other);
        let forth = compare(&base, &other);
        let back = compare(&other, &base);
        assert_eq!(forth.is_alternated, back.is_alternated);
        for row in forth.rows.iter().chain(&back.rows) {
            assert_eq!(row.alternation.is_some(), forth.is_alternated);
        }
        forth.is_alternated
    };
    assert!(is_alternated(&|_| ()));
    assert!(!is_alternated(&|other| other.session = None));
    assert!(!is_alternated(&|other| other.session.as_mut().unwrap().place = 0));
    assert!(!is_alternated(&|other| other.session.as_mut().unwrap().paired = false));
    assert!(!is_alternated(&|other| other.session.as_mut().unwrap().id = "another".parse().unwrap()));
}

#[test]
fn two_percent_are_slower_and_as_much_the_other_way_faster() {
    let slower = compared(40, 1.02);
    assert_eq!(slower.verdict, Verdict::Slower, "{slower:?}");
    assert_eq!(slower.threshold, 0.01);
    let turns = slower.alternation.unwrap();
    assert_eq!((turns.pairs, turns.turns), (40, 800));
    // Two percent of 100 to 200 ns.
    assert!((2.0..4.0).contains(&turns.adds) && turns.adds_interval.unwrap().low > 0.0, "{turns:?}");
    // Turns move by 20 %, and differ from their neighbours by 0.7 %.
    assert!(turns.correlation.unwrap() > 0.95, "{turns:?}");
    let faster = compared(40, 1.0 / 1.02);
    assert_eq!(faster.verdict, Verdict::Faster, "{faster:?}");
    let same = compared(40, 1.0);
    assert_eq!((same.verdict, &same.why), (Verdict::Same, &None), "{same:?}");
}

#[test]
fn the_whole_interval_decides() {
    let small = compared(40, 1.003);
    assert!(small.interval.unwrap().low > 1.0, "{small:?}");
    assert_eq!(small.verdict, Verdict::Same, "{small:?}");
    let [base, other] = sides(1, 40, 20, 1.015).map(|processes| measured("entry", &processes));
    let (base, other) = (environment(0, base), environment(1, other));
    let row = |asked: f64| only(compare_above(&base, &other, asked));
    let Interval { low, high } = row(0.0).interval.unwrap();
    let verdicts = [0.0, 0.003, 0.015, low - 1.0001, high - 0.9999].map(|asked| row(asked).verdict);
    use Verdict::{Same, Slower, SomewhatSlower};
    assert_eq!(verdicts, [Slower, Slower, SomewhatSlower, Slower, Same], "{low} {high}");
    let back = only(compare_above(&other, &base, 0.015));
    assert_eq!(back.verdict, Verdict::SomewhatFaster, "{back:?}");
}

/// A calibration that met an interrupt gives one side batches of one operation: 44 and 1 differed by 2 % although nothing else
/// did.
#[test]
fn a_small_difference_between_unequal_batches_is_none() {
    let verdict = |ratio: f64, ops_per_sample: u64| {
        let [base, other] = sides(1, 40, 20, ratio).map(|processes| measured("entry", &processes));
        let other = Measured { ops_per_sample, ..other };
        let row = only(compare(&environment(0, base), &environment(1, other)));
        (row.verdict, row.why)
    };
    let why = "a batch has 200 operations in the base and 1 in the other";
    assert_eq!(verdict(1.02, 1), (Verdict::Inconclusive, Some(why.to_owned())));
    assert_eq!(verdict(1.02, 200), (Verdict::Slower, None));
    assert_eq!(verdict(118.0, 1), (Verdict::Slower, None));
    assert_eq!(verdict(1.0, 1), (Verdict::Same, None));
}

#[test]
fn few_pairs_need_a_large_difference_and_five_have_no_interval() {
    let few = compared(5, 1.5);
    assert_eq!((few.verdict, few.interval), (Verdict::Inconclusive, None), "{few:?}");
    assert_eq!(few.why.as_deref(), Some("too few pairs of processes: 5; an interval needs 6"));
    // One side may keep a factor of two with so few pairs; 14 show the same machine to both.
    for (pairs, ratio, verdict) in [
        (6, 1.5, Verdict::Inconclusive),
        (6, 3.0, Verdict::Slower),
        (6, 118.0, Verdict::Slower),
        (13, 1.5, Verdict::Inconclusive),
        (14, 3.0, Verdict::Slower),
    ] {
        let found = compared(pairs, ratio);
        assert_eq!(found.verdict, verdict, "{pairs}, {ratio}: {found:?}");
        let adds = found.alternation.unwrap().adds_interval;
        assert!(adds.is_none_or(|adds| adds.contains(0.0) == (verdict == Verdict::Inconclusive)), "{adds:?}");
    }
}

/// The machine changes its pace from turn to turn by up to a factor of two. A turn that one side lost must not be joined with
/// the next one of the other, nor a process with another's.
#[test]
fn turns_and_processes_are_joined_by_their_numbers() {
    let [base, other] = sides(2, 40, 20, 1.02);
    let turns = |processes: &[Vec<f64>], has: &dyn Fn(usize, usize) -> Option<bool>| {
        let process = |(at, process): (usize, &Vec<f64>)| {
            let turns = process.iter().enumerate();
            turns
                .filter_map(|(turn, sample)| Some((turn as u32, has(at, turn)?.then_some(*sample))))
                .collect()
        };
        measured_in_turns(&processes.iter().enumerate().map(process).collect::<Vec<_>>(), 20)
    };
    // The base had no batch in process 3 and in every third turn; in the other some were discarded, and process 5 had one.
    let base = turns(&base, &|process, turn| (process != 3 && turn % 3 != 0).then_some(true));
    let other = turns(&other, &|process, turn| match process {
        5 => (turn == 4).then_some(true),
        _ => Some(turn % 5 != 1),
    });
    assert_eq!(base.processes[3].ran.as_deref(), Some([].as_slice()));
    let found = only(compare(&environment(0, base.clone()), &environment(1, other.clone())));
    assert_eq!(found.verdict, Verdict::Slower, "{found:?}");
    assert!((found.ratio - 1.02).abs() < 0.002, "{found:?}");
    assert_eq!(found.alternation.as_ref().unwrap().pairs, 39);
    // An environment that ended early has fewer processes; those that both have are compared.
    let mut early = other;
    let kept: usize = early.processes[..20].iter().map(tollgate_model::ProcessRounds::kept).sum();
    early.processes.truncate(20);
    early.samples.truncate(kept);
    early.discarded = early.processes.iter().map(|process| process.discarded.len() as u64).sum();
    let found = only(compare(&environment(0, base), &environment(1, early)));
    assert_eq!(found.alternation.as_ref().unwrap().pairs, 19);
    assert!(found.verdict.is_difference(), "{found:?}");
}

#[test]
fn what_has_no_ratio_is_inconclusive_and_says_why() {
    let [base, other] = sides(3, 20, 20, 1.01).map(|processes| measured("entry", &processes));
    let why = |base: &Measured, other: &Measured| {
        let row = only(compare(&environment(0, base.clone()), &environment(1, other.clone())));
        assert_eq!((row.verdict, row.ratio, row.interval), (Verdict::Inconclusive, 1.0, None), "{row:?}");
        (row.why.unwrap(), row.alternation)
    };
    let (said, turns) = why(&base, &Measured { unit: Unit::Cycles, ..other.clone() });
    assert_eq!((said.as_str(), turns), ("in ns in the base, in cycles in the other", None));
    let negative =
        Measured { samples: base.samples.iter().map(|sample| sample - 120.0).collect(), ..base.clone() };
    let (said, turns) = why(&negative, &other);
    assert!(said.starts_with("not above zero in ") && said.ends_with(" of 400 turns"), "{said}");
    // The difference needs no ratio.
    assert!((turns.unwrap().adds - 120.0).abs() < 5.0);
    // Below the apparent time of the group's empty loop.
    let limit = |mut run: Run| {
        let empty = measured("entry", &vec![vec![500.0; 20]; 20]);
        run.measurements
            .extend(run_of(vec![(Case::plain(EMPTY_LOOP), Outcome::Measured(Box::new(empty)))]).measurements);
        run
    };
    let row = only(compare(&limit(environment(0, base)), &limit(environment(1, other))));
    assert_eq!((row.base, row.other, row.verdict), (None, None, Verdict::Inconclusive));
    assert!(row.why.unwrap().starts_with("below the detection limit in both: < 500.000 ns"));
    assert!(row.alternation.unwrap().adds > 0.0);
}

/// If a second instance of equal code lies 2 % off in one environment, 1 % is not a difference there.
#[test]
fn the_threshold_is_the_significant_part_of_the_control() {
    let compared = |apart: f64, pairs: usize| {
        let [base, other] = sides(4, pairs, 20, 1.01);
        let mut random = Random(5);
        let control: Vec<Vec<f64>> = other
            .iter()
            .map(|process| process.iter().map(|sample| sample * apart * random.factor(0.005)).collect())
            .collect();
        let mut other = environment(1, measured("entry", &other));
        let control = Measured { baseline: Some(row()), ..measured("entry", &control) };
        other
            .measurements
            .extend(run_of(vec![(Case::plain(CONTROL), Outcome::Measured(Box::new(control)))]).measurements);
        only(compare(&environment(0, measured("entry", &base)), &other))
    };
    let apart = compared(1.02, 40);
    assert!((0.015..0.021).contains(&apart.threshold), "{apart:?}");
    assert!(!apart.verdict.is_difference(), "{apart:?}");
    // The scatter of few processes is not an A/A difference.
    for pairs in [6, 40] {
        assert_eq!(compared(1.0, pairs).threshold, margin(0.0));
    }
}

/// The largest session that a document holds: 16 million samples on each side.
#[test]
#[ignore = "prints how long a comparison takes; for an optimised build"]
fn the_time_of_the_largest_comparison() {
    let mut random = Random(6);
    let processes: Vec<Vec<f64>> =
        (0..2000).map(|_| (0..40).map(|_| 100.0 + random.uniform()).collect()).collect();
    let one = measured("entry", &processes);
    let cases = |place| {
        let all = (0..200)
            .map(|row| (Case::plain(format!("entry/row-{row}")), Outcome::Measured(Box::new(one.clone()))));
        let mut run = run_of(all.collect());
        run.session = Some(part(place));
        run
    };
    let (base, other) = (cases(0), cases(1));
    let began = Instant::now();
    assert_eq!(compare(&base, &other).rows.len(), 200);
    println!("16 million pairs of turns: {:?}", began.elapsed());
}

#[test]
fn the_simulated_control_is_no_row() {
    let (base, other) = session(&mut Random(7), USUAL, 2, 1.0);
    let comparison = compare(&base, &other);
    let names: Vec<_> = comparison.rows.iter().map(|row| row.case.benchmark.as_str()).collect();
    assert_eq!(names, ["entry/row-1", "entry/row-2"]);
    assert!(comparison.only_base.is_empty() && comparison.only_other.is_empty() && comparison.pace.is_none());
}

/// The other side's program of the third layout is a tenth slower, as one bench's was.
#[test]
fn sides_of_several_layouts_are_compared_across_them() {
    let executions = |ratio: f64, slow: f64, number: usize| {
        let mut random = Random(7);
        let figure =
            |at: usize| vec![1e6 * ratio * random.factor(0.0005) * if at % 8 == 2 { slow } else { 1.0 }];
        measured("versus", &(0..number).map(figure).collect::<Vec<_>>())
    };
    let sides = |ratio: f64, slow: f64, number: usize, layouts: [i64; 2]| {
        let both = [executions(1.0, 1.0, number), executions(ratio, slow, number)];
        let [mut base, mut other] = [0, 1].map(|place| environment(place, both[place as usize].clone()));
        for (run, layouts) in [(&mut base, layouts[0]), (&mut other, layouts[1])] {
            run.facts.insert(LAYOUTS.to_owned(), Fact::known(layouts, "--layouts"));
        }
        only(compare(&base, &other))
    };
    let same = sides(1.0, 1.1, 80, [8, 8]);
    let seen = same.layouts.unwrap();
    assert_eq!((same.verdict, seen.number), (Verdict::Inconclusive, 8), "{same:?}");
    assert!(
        seen.are_apart && seen.apart[1] > 0.09 && seen.apart[0] < 0.01 && seen.by_one.high > 1.09,
        "{seen:?}"
    );
    assert!(seen.deciding.is_some_and(|number| number > 8), "{seen:?}");
    assert_eq!(same.alternation.unwrap().adds_interval, None);
    let slower = sides(1.03, 1.0, 80, [8, 8]);
    assert_eq!(slower.verdict, Verdict::Slower, "{slower:?}");
    // Too few executions, too few layouts, and an unequal number.
    for (number, layouts) in [(7, [8, 8]), (80, [5, 5]), (80, [8, 7]), (80, [1, 8])] {
        let row = sides(1.03, 1.0, number, layouts);
        assert_eq!(
            (row.verdict, row.interval, row.layouts),
            (Verdict::Inconclusive, None, None),
            "{layouts:?}"
        );
        assert!(row.why.unwrap().contains("layouts of each side"));
    }
    for hostile in [0, -1, 1, i64::MAX] {
        sides(1.0, 1.0, 20, [hostile, hostile]);
    }
}
