use crate::prelude::*;

pub const SCALED: Benchmark = Benchmark {
    cases: |machine| every_kind(&numbers(machine).0),
    thorough_cases: |machine| every_kind(&numbers(machine).1),
    baseline: Baseline::Case(alone),
    in_everything: |_, _| false,
    forks: |params| word(params, "kind") == "processes",
    crossed_in: crossed_with_others,
    uses_files: true,
    ..PLAIN
};

/// For [`Benchmark::in_everything`]: one thread, and one on each processor.
pub fn threads_at_both_ends(params: &Params, machine: &Topology) -> bool {
    word(params, "kind") == "threads" && [1, machine.parallelism() as u64].contains(&number(params, "tasks"))
}

pub fn alone(params: &Params) -> Option<Params> {
    let mut alone = params.clone();
    alone.insert("tasks".to_owned(), 1.into());
    Some(alone)
}

/// For [`Benchmark::crossed_in`]: a single task shares no lines.
pub fn crossed_with_others(params: &Params, boundary: Boundary) -> bool {
    boundary != CacheLine || number(params, "tasks") > 1
}

/// Returns the default numbers of tasks, and a thorough run's further ones: powers of two, or all on a small machine.
pub fn numbers(machine: &Topology) -> (Vec<u64>, Vec<u64>) {
    /// Up to this many processors, every number is measured.
    const FEW: u64 = 16;
    let processors = machine.parallelism() as u64;
    let mut usual = vec![1, 2, processors];
    usual.retain(|&tasks| tasks <= processors);
    usual.dedup();
    let is_other = |tasks: &u64| !usual.contains(tasks);
    let others = if processors <= FEW {
        (1..=processors).filter(is_other).collect()
    } else {
        (0..u64::BITS)
            .map(|power| 1 << power)
            .take_while(|&tasks| tasks < processors)
            .filter(is_other)
            .collect()
    };
    (usual, others)
}

pub fn every_kind(tasks: &[u64]) -> Vec<Params> {
    ["threads", "processes"].into_iter().flat_map(|kind| of_kind(kind, tasks)).collect()
}

/// Only processes, for operations in which threads would disturb what they share with this program.
pub fn processes_only(tasks: &[u64]) -> Vec<Params> {
    of_kind("processes", tasks).collect()
}

fn of_kind<'a>(kind: &'a str, tasks: &'a [u64]) -> impl Iterator<Item = Params> + 'a {
    tasks.iter().map(move |&tasks| params(&[("tasks", tasks.into()), ("kind", kind.into())]))
}

#[cfg(test)]
mod tests {
    use tollgate_model::Case;

    use super::*;
    use crate::machines::MACHINES;

    #[test]
    fn few_numbers_of_tasks_by_default_and_powers_of_two_in_a_thorough_run() {
        let numbers =
            |processors| numbers(&Topology { processors: (0..processors).collect(), ..Topology::default() });
        assert_eq!(numbers(1), (vec![1], vec![]));
        assert_eq!(numbers(2), (vec![1, 2], vec![]));
        assert_eq!(numbers(6), (vec![1, 2, 6], vec![3, 4, 5]));
        let (usual, others) = numbers(576);
        assert_eq!((usual, others), (vec![1, 2, 576], vec![4, 8, 16, 32, 64, 128, 256, 512]));
    }

    #[test]
    fn a_case_is_compared_with_one_task_of_its_kind() {
        let machine = MACHINES[2].topology();
        for benchmark in super::super::SUITE.benchmarks {
            for case in benchmark.cases_in(Extent::Thorough, &machine) {
                let base = benchmark.baseline_of(&case);
                assert_eq!(base.is_some(), number(&case, "tasks") > 1, "{case:?}");
                let known = |base: &Case| (benchmark.cases)(&machine).contains(&base.params);
                assert!(base.as_ref().is_none_or(known), "{case:?}");
            }
        }
    }
}
