//! Counts of instructions, compared without noise.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::{Random, measured};
use tollgate_model::compare::{ComparedCase, Comparison, Verdict, compare, compare_above, paired_rows};
use tollgate_model::estimate::{Estimate, Reading, reading};
use tollgate_model::own::{CONTROL, EMPTY_LOOP};
use tollgate_model::run::Part;
use tollgate_model::{Case, Measured, Outcome, Provenance, Run, Unit};

fn counted(samples: &[f64]) -> Measured {
    Measured {
        unit: Unit::Instructions,
        provenance: Provenance::QemuIcount,
        ops_per_sample: 100,
        clock_hz: 1_000_000_000,
        ..measured("entry", &[samples.to_vec()])
    }
}

fn run(cases: &[(&str, Measured)]) -> Run {
    let cases = cases.iter().map(|(name, of)| (Case::plain(*name), Outcome::Measured(Box::new(of.clone()))));
    support::run_of(cases.collect())
}

fn compared(base: Measured, other: Measured, asked: f64) -> ComparedCase {
    let [base, other] = [base, other].map(|of| run(&[("entry/syscall", of)]));
    let mut comparison = compare_above(&base, &other, asked);
    assert_eq!(comparison.rows.len(), 1);
    comparison.rows.remove(0)
}

/// The verdict on `base` and `other`, which is the opposite of that on `other` and `base`.
fn verdict(base: &[f64], other: &[f64], asked: f64) -> Verdict {
    let there = compared(counted(base), counted(other), asked);
    let back = compared(counted(other), counted(base), asked);
    let opposite = match there.verdict {
        Verdict::Slower => Verdict::Faster,
        Verdict::Faster => Verdict::Slower,
        verdict => verdict,
    };
    assert_eq!(back.verdict, opposite, "{base:?} and {other:?}");
    for row in [&there, &back] {
        assert_eq!((row.interval, row.threshold), (None, asked));
        assert!(row.verdict != Verdict::Inconclusive || row.why.is_some(), "{row:?}");
    }
    there.verdict
}

#[test]
fn of_a_bench_the_program_s_instructions_do_not_move_and_the_kernel_s_do() {
    use tollgate_model::versus::part_of_bench;
    // 100 iterations of a sample: the kernel's part moves by 4,000 of them.
    let verdict = |case: Case, base: f64, other: f64| {
        let run = |count: f64| {
            support::run_of(vec![(case.clone(), Outcome::Measured(Box::new(counted(&[count; 5]))))])
        };
        compare(&run(base), &run(other)).rows[0].verdict
    };
    let kernel = || part_of_bench("divan/sum", "kernel");
    assert_eq!(verdict(Case::plain("divan/sum"), 7000.0, 7001.0), Verdict::Slower);
    assert_eq!(verdict(kernel(), 0.0, 40.0), Verdict::Same);
    assert_eq!(verdict(kernel(), 0.0, 41.0), Verdict::Slower);
    assert_eq!(verdict(part_of_bench("divan/sum", "total"), 100_000.0, 99_810.0), Verdict::Same);
    assert_eq!(verdict(part_of_bench("divan/sum", "total"), 100_000.0, 99_700.0), Verdict::Faster);
}

#[test]
fn one_instruction_is_a_difference() {
    assert_eq!(verdict(&[209.0; 20], &[209.0; 20], 0.0), Verdict::Same);
    assert_eq!(verdict(&[209.0; 20], &[210.0; 20], 0.0), Verdict::Slower);
    assert_eq!(verdict(&[209.0; 3], &[208.0; 5], 0.0), Verdict::Faster);
    let row = compared(counted(&[209.0; 20]), counted(&[187.0; 20]), 0.0);
    assert_eq!((row.base, row.other, row.why), (Some(209.0), Some(187.0), None));
    assert!((row.ratio - 187.0 / 209.0).abs() < 1e-12);
}

#[test]
fn a_threshold_below_one_percent_counts() {
    assert_eq!(verdict(&[1000.0; 4], &[1004.0; 4], 0.003), Verdict::Slower);
    assert_eq!(verdict(&[1000.0; 4], &[1004.0; 4], 0.005), Verdict::Same);
    assert_eq!(verdict(&[1000.0; 4], &[1100.0; 4], 0.05), Verdict::Slower);
}

fn around(at: f64, batches: u32) -> Vec<f64> {
    (0..batches).map(|batch| at + 4.0 * (f64::from(batch * 7 % 5) - 2.0)).collect()
}

#[test]
fn counts_that_vary_differ_where_their_batches_are_apart() {
    let of = |base: f64, other: f64, batches| verdict(&around(base, batches), &around(other, batches), 0.0);
    assert_eq!(of(20_000.0, 20_000.0, 24), Verdict::Same);
    assert_eq!(of(20_000.0, 20_010.0, 24), Verdict::Same);
    assert_eq!(of(20_000.0, 20_030.0, 24), Verdict::Slower);
    // Few batches need a gap as wide as their range, and very few say little.
    assert_eq!(of(20_000.0, 20_030.0, 5), Verdict::Inconclusive);
    assert_eq!(of(20_000.0, 20_040.0, 5), Verdict::Slower);
    assert_eq!(of(20_000.0, 20_040.0, 3), Verdict::Inconclusive);
    assert_eq!(of(20_000.0, 20_400.0, 3), Verdict::Slower);
    assert_eq!(verdict(&[20_000.0; 24], &around(20_030.0, 24), 0.0), Verdict::Slower);
    // A timer tick in one batch of many does not decide.
    let mut with_tick = vec![209.0; 24];
    with_tick[7] = 9_000.0;
    assert_eq!(verdict(&with_tick, &[187.0; 24], 0.0), Verdict::Faster);
    let why = compared(counted(&around(20_000.0, 5)), counted(&[20_001.0; 5]), 0.0).why.expect("a reason");
    assert_eq!(why, "batches differ: 19992 to 20008 in the base, 20001 in the other");
}

#[test]
fn medians_that_lie_further_apart_than_few_batches_are_open() {
    // files/fsync on two devices, seven batches each: the ranges have no count in common, and the gap is narrower than either.
    let base = [96_800.0, 101_200.0, 110_300.0, 118_546.0, 119_700.0, 121_100.0, 127_400.0];
    let other = base.map(|count| count + 31_000.0);
    assert_eq!(verdict(&base, &other, 0.0), Verdict::Inconclusive);
    // Against an exact count, the others show where theirs lie.
    assert_eq!(verdict(&[118_546.0; 7], &base, 0.0), Verdict::Same);
    assert_eq!(verdict(&[128_000.0; 7], &base, 0.0), Verdict::Inconclusive);
}

#[test]
fn two_boots_whose_batches_share_a_level_are_the_same() {
    // Two boots of one guest: traps/file-fault.
    let one =
        [vec![9243.93], vec![9331.77; 7], vec![9331.93; 10], vec![9332.1; 2], vec![9416.8, 9417.4, 9417.97]];
    let other =
        [vec![9247.0, 9247.27], vec![9331.97; 5], vec![9332.13; 11], vec![9332.3; 3], vec![9417.0; 3]];
    assert_eq!(verdict(&one.concat(), &other.concat(), 0.0), Verdict::Same);
}

#[test]
fn less_than_an_instruction_is_nothing_but_between_whole_numbers() {
    // entry/io-uring-nop{batch=64} in two boots.
    assert_eq!(verdict(&[244.84; 25], &[245.11; 13], 0.0), Verdict::Same);
    assert_eq!(verdict(&[244.84; 25], &[236.81; 13], 0.0), Verdict::Faster);
    assert_eq!(verdict(&[1.0; 25], &[2.0; 25], 0.0), Verdict::Slower);
}

#[test]
fn samples_of_one_distribution_are_called_different_once_in_a_thousand_at_most() {
    const COMPARISONS: usize = 4_000;
    let mut random = Random(21);
    for batches in [5, 9, 15, 24] {
        let mut draw = || -> Vec<f64> {
            // One batch of ten meets an event.
            let of_event = |random: &mut Random| if random.chance(0.1) { 400.0 } else { 0.0 };
            (0..batches).map(|_| 2_000.0 * random.factor(0.02) + of_event(&mut random)).collect()
        };
        let verdicts: Vec<Verdict> =
            (0..COMPARISONS).map(|_| compared(counted(&draw()), counted(&draw()), 0.0).verdict).collect();
        let of = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
        let (different, open) = (of(|it| it.is_difference()), of(|it| *it == Verdict::Inconclusive));
        assert!(different <= COMPARISONS / 1000, "{different} of {COMPARISONS} with {batches} batches");
        println!("{batches} batches: {open} of {COMPARISONS} inconclusive");
        assert!(open <= COMPARISONS / 10, "{open} of {COMPARISONS} inconclusive with {batches} batches");
    }
}

#[test]
fn a_size_beside_counts_is_compared_as_one() {
    let size = |provenance, processes: &[Vec<f64>]| Measured {
        unit: Unit::Bytes,
        provenance,
        ..measured("locks", processes)
    };
    let here = size(Provenance::Hardware, &vec![vec![64.0; 3]; 7]);
    let there = size(Provenance::QemuIcount, &[vec![64.0; 25]]);
    assert_eq!(compared(here.clone(), there.clone(), 0.0).verdict, Verdict::Same);
    let larger = size(Provenance::QemuIcount, &[vec![72.0; 25]]);
    assert_eq!(compared(there, larger.clone(), 0.0).verdict, Verdict::Slower);
    let row = compared(here, larger, 0.0);
    assert_eq!((row.verdict, row.base, row.other), (Verdict::Slower, Some(64.0), Some(72.0)));
}

#[test]
fn nothing_at_all_is_a_count() {
    assert_eq!(verdict(&[0.0; 5], &[0.0; 5], 0.0), Verdict::Same);
    assert_eq!(verdict(&[0.0; 5], &[3.0; 5], 0.0), Verdict::Slower);
    let row = compared(counted(&[0.0; 5]), counted(&[3.0; 5]), 0.0);
    assert_eq!((row.base, row.other, row.ratio), (Some(0.0), Some(3.0), 1.0));
    // The group's empty loop is not a detection limit of a count.
    let of = run(&[(EMPTY_LOOP, counted(&[1.0; 5])), ("entry/call", counted(&[0.0; 5]))]);
    let call = of.measured().find(|(case, _)| case.benchmark == "entry/call").expect("it is there").1;
    assert!(matches!(reading(call, &of), Some(Reading::Estimate(estimate)) if estimate.median == 0.0));
}

#[test]
fn a_count_has_no_interval_whatever_its_processes() {
    let processes: Vec<Vec<f64>> = (0..8).map(|at| vec![20_000.0 + f64::from(at % 3); 4]).collect();
    let many = Measured {
        unit: Unit::Instructions,
        provenance: Provenance::QemuIcount,
        ..measured("entry", &processes)
    };
    assert_eq!(Estimate::of(&many).expect("an estimate").interval, None);
    let timed = Measured { unit: Unit::Nanoseconds, provenance: Provenance::Hardware, ..many };
    assert!(Estimate::of(&timed).expect("an estimate").interval.is_some());
}

#[test]
fn a_time_and_a_count_are_not_compared() {
    let timed =
        run(&[("entry/syscall", measured("entry", &[vec![83.0; 9]])), ("traps/imul", counted(&[1.0]))]);
    let other = run(&[("entry/syscall", counted(&[209.0])), ("traps/imul", counted(&[1.0]))]);
    let Comparison { rows, not_compared, only_base, only_other, .. } = compare(&timed, &other);
    assert_eq!(rows.iter().map(|row| row.case.benchmark.as_str()).collect::<Vec<_>>(), ["traps/imul"]);
    assert_eq!((only_base.len(), only_other.len()), (0, 0));
    let [apart] = not_compared.as_slice() else { panic!("{not_compared:?}") };
    assert_eq!((apart.base_unit, apart.other_unit), (Unit::Nanoseconds, Unit::Instructions));
    assert_eq!(apart.case.benchmark, "entry/syscall");
}

#[test]
fn counts_of_one_session_are_not_alternated_and_need_no_control() {
    let part = |place| Part {
        id: "20261122-210501-1a2b3c4d".parse().expect("an id"),
        environment: "vm:exact".to_owned(),
        stands_for: None,
        place,
        of: 2,
        paired: true,
        knob: None,
        switches: Vec::new(),
        command: None,
    };
    let side = |place, count: f64| Run {
        session: Some(part(place)),
        ..run(&[
            ("entry/syscall", counted(&[count; 6])),
            (CONTROL, Measured { baseline: Some(Case::plain("entry/syscall")), ..counted(&[900.0; 6]) }),
        ])
    };
    let comparison = compare(&side(0, 209.0), &side(1, 210.0));
    assert!(!comparison.is_alternated);
    assert_eq!(comparison.rows[0].verdict, Verdict::Slower);
}

#[test]
fn a_count_is_compared_with_its_baseline_without_rounds() {
    let call = Measured { baseline: Some(Case::plain("entry/syscall")), ..counted(&[307.0]) };
    let rows = paired_rows(&run(&[("entry/syscall", counted(&[209.0])), ("entry/syscall-getpid", call)]));
    let [(_, paired)] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((paired.verdict, paired.adds, paired.threshold), (Verdict::Slower, 98.0, 0.0));
    assert_eq!((paired.ratio_interval, paired.adds_interval), (None, None));
}
