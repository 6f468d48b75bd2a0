//! The cases of several environments as one schedule: the time of a pair of processes, and equal operations in each.

use tollgate_model::own::CONTROL;

use super::pairs::MOST_REST;
use super::turn_plan::{self, Unit};
use crate::loops::instance::Readiness;
use crate::rounds::case_state::{CaseState, CaseStatus};
use crate::rounds::schedule::Schedule;

/// Costs that differ by a larger factor get their own numbers of iterations.
const FAR: f64 = 8.0;

/// Gives each case the same iterations in all environments where it costs about as much as in the first one that measures it. The
/// cost of an operation can depend on how many follow each other: a fault maps its neighbours too (fault-around).
pub fn equalize(schedules: &mut [&mut Schedule]) {
    for index in 0..schedules.iter().map(|schedule| schedule.cases.len()).min().unwrap_or(0) {
        let is_running = |schedule: &&mut Schedule| schedule.cases[index].state == CaseStatus::Running;
        let Some(base) = schedules.iter().position(is_running) else { continue };
        let near: Vec<usize> = (base..schedules.len())
            .filter(|&at| are_near(&schedules[base].cases[index], &schedules[at].cases[index]))
            .collect();
        let least = near.iter().map(|&at| schedules[at].cases[index].iterations).min().unwrap_or(1);
        near.iter().for_each(|&at| schedules[at].cases[index].iterations = least);
    }
    // Questions of one experiment need the same order, or it would run once for each.
    schedules.iter_mut().for_each(|schedule| schedule.equalize_experiments());
}

/// Whether a case runs in two environments and costs about the same there.
fn are_near(one: &CaseState, other: &CaseState) -> bool {
    let per_operation = |state: &CaseState| state.ready.cost.as_secs_f64() / state.ready.ops as f64;
    let ratio = per_operation(one) / per_operation(other);
    other.state == CaseStatus::Running
        && one.ready.ops == other.ready.ops
        && (1.0 / FAR..=FAR).contains(&ratio)
}

/// Shortens the batches of turns equally in all environments. A busy machine's pace varies more between batches than short
/// batches vary themselves, so twice as many turns of half the length give a narrower ratio.
pub fn shorten(schedule: &mut Schedule) {
    const PARTS: u64 = 2;
    for state in &mut schedule.cases {
        state.iterations = (state.iterations / PARTS).max(1);
    }
}

/// Updates the joint schedule: a case runs if it runs in any environment, and takes the time of all of them.
pub fn refresh(joint: &mut Schedule, schedules: &[&Schedule]) {
    for (index, state) in joint.cases.iter_mut().enumerate() {
        let running = || {
            let cases = schedules.iter().map(|schedule| &schedule.cases[index]);
            cases.filter(|state| state.state == CaseStatus::Running)
        };
        let Some(first) = running().next() else {
            state.state = CaseStatus::Refused(fail!("no environment measures it"));
            continue;
        };
        let ready = Readiness {
            whole: running().map(|state| turn_plan::time(state.batch(), state.iterations)).sum(),
            fixed: std::time::Duration::ZERO,
            setup: running().map(|state| state.ready.setup).sum(),
            ..first.ready.clone()
        };
        (state.state, state.ready, state.iterations) = (CaseStatus::Running, ready, 1);
    }
}

pub fn units(
    joint: &Schedule,
    schedules: &[&Schedule],
    indices: &[usize],
    rest: impl Fn(usize) -> usize,
) -> Vec<Unit> {
    let unit = |cases: Vec<usize>| {
        let states =
            cases.iter().flat_map(|&case| schedules.iter().map(move |schedule| &schedule.cases[case]));
        let running: Vec<&CaseState> = states.filter(|state| state.state == CaseStatus::Running).collect();
        let batch = running.iter().map(|state| state.batch()).max().unwrap_or_default();
        let iterations = running.iter().map(|state| state.iterations).max().unwrap_or(1);
        // The engine's own cases show how exact the others are; only the A/A control is compared.
        let of_case = |&case: &usize| {
            let state = &joint.cases[case];
            if state.decides() {
                rest(case)
            } else if state.benchmark.name == CONTROL {
                1
            } else {
                MOST_REST
            }
        };
        let rest = cases.iter().map(of_case).min().unwrap_or(1);
        Unit { batch, iterations, rest, cases }
    };
    joint.experiments(indices).into_iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_model::Params;

    use super::*;
    use crate::cases::benchmark::{Benchmark, PLAIN, Suite};
    use crate::cases::plan::Ordinal;
    use crate::cases::selection::Group;

    static BASE: Benchmark = Benchmark { name: "some/base", ..PLAIN };
    static OTHER: Benchmark =
        Benchmark { name: "some/other", baseline: crate::Baseline::Benchmark("some/base"), ..PLAIN };
    static SUITE: Suite = Suite { name: "some", about: "", benchmarks: &[&BASE, &OTHER] };

    /// Calibrated, by nanoseconds of an iteration of the two cases.
    fn schedule(costs: [u64; 2]) -> Schedule {
        let cases = SUITE.benchmarks.iter().map(|benchmark| (*benchmark, Params::new())).collect();
        let mut schedule = Schedule::new(&Group { suite: &SUITE, cases }, Ordinal::default(), None);
        for (state, cost) in schedule.cases.iter_mut().zip(costs) {
            let cost = Duration::from_nanos(cost);
            state.ready = Readiness { cost, whole: cost, ops: 1, most: u64::MAX, ..Readiness::default() };
            state.state = CaseStatus::Running;
        }
        schedule.count_operations();
        schedule
    }

    fn iterations(schedule: &Schedule) -> [u64; 2] {
        [schedule.cases[0].iterations, schedule.cases[1].iterations]
    }

    #[test]
    fn a_case_has_equal_iterations_where_it_costs_about_the_same_whatever_the_others_of_its_comparison_cost()
    {
        let (mut one, mut other, mut far) =
            (schedule([1_000, 2_000]), schedule([1_200, 60_000]), schedule([100_000, 100_000]));
        // A batch is 50 µs. A case that fits 2 µs is near enough to one that fits 1 µs; one that fits 60 µs is not.
        assert_eq!([iterations(&one), iterations(&other), iterations(&far)], [[25, 25], [41, 1], [1, 1]]);
        equalize(&mut [&mut one, &mut other, &mut far]);
        assert_eq!([iterations(&one), iterations(&other), iterations(&far)], [[25, 25], [25, 1], [1, 1]]);
        shorten(&mut one);
        assert_eq!(iterations(&one), [12, 12]);
    }

    #[test]
    fn a_pair_takes_the_time_of_all_environments_and_leaves_out_what_none_measures() {
        let (one, mut other) = (schedule([1_000, 1_000]), schedule([1_000, 1_000]));
        other.cases[1].state = CaseStatus::Refused(fail!("not here"));
        let mut joint = one.without_results();
        refresh(&mut joint, &[&one, &other]);
        // Batches of 50 µs with a quarter of warm-up, in both environments or in one.
        let whole = [0, 1].map(|index| joint.cases[index].ready.whole);
        assert_eq!(whole, [Duration::from_nanos(125_000), Duration::from_nanos(62_500)]);
        let units = units(&joint, &[&one, &other], &[0, 1], |case| case + 1);
        assert_eq!(units.iter().map(|unit| unit.rest).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(units.iter().map(|unit| unit.batch.as_micros()).collect::<Vec<_>>(), [50, 50]);
        let mut refused = schedule([1, 1]);
        refused.cases[0].state = CaseStatus::Refused(fail!("not here"));
        refresh(&mut joint, &[&refused]);
        assert_ne!(joint.cases[0].state, CaseStatus::Running);
    }
}
