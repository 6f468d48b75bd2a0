//! The registry: the only list of suites, and through them of benchmarks.

use crate::prelude::*;
use crate::{entry, environments, files, ipc, locks, memory, processes, scaling, traps, workloads};

/// Every suite, in the order of tables.
pub static SUITES: &[&Suite] = &[
    &entry::SUITE,
    &traps::SUITE,
    &memory::SUITE,
    &locks::SUITE,
    &processes::SUITE,
    &ipc::SUITE,
    &scaling::SUITE,
    &files::SUITE,
    &workloads::SUITE,
    &environments::SUITE,
];

/// The benchmark called `name`, including those that the engine adds.
pub fn find(name: &str) -> Option<&'static Benchmark> {
    let registered = SUITES.iter().flat_map(|suite| suite.benchmarks.iter().copied().chain(suite.control));
    registered.chain(OWN_BENCHMARKS.iter().copied()).find(|benchmark| benchmark.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One screen has room for 25 rows, and each row for its name.
    #[test]
    fn headlines_are_cases_and_fit_on_a_screen() {
        let all = || SUITES.iter().flat_map(|suite| suite.benchmarks.iter().copied());
        let headlines: Vec<&Headline> = all().flat_map(|benchmark| benchmark.headlines).collect();
        let rows = headlines.iter().filter(|headline| headline.section != Section::Loads).count();
        assert!((20..=25).contains(&(rows + 1)), "{rows}");
        assert!(headlines.iter().all(|headline| headline.name.len() <= 28));
        let absent: Vec<&str> = all()
            .flat_map(|benchmark| {
                benchmark.headlines.iter().filter(|headline| benchmark.case_of(headline).is_none())
            })
            .map(|headline| headline.name)
            .collect();
        // With one processor there is no other to fight with.
        if tollgate_engine::cpu::allowed().len() > 1 {
            assert!(absent.is_empty(), "{absent:?}");
        }
    }

    #[test]
    fn every_benchmark_says_how_to_avoid_it_and_where_it_is_described() {
        for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks) {
            let name = benchmark.name;
            assert!(benchmark.avoid.ends_with('.') && benchmark.avoid.len() > 10, "{name}");
            // A manual page by its section, or a book, a paper or a source file by name.
            assert!(benchmark.source.contains(['(', ' ']) && benchmark.source.len() > 6, "{name}");
        }
    }

    #[test]
    fn suites_fit_into_a_process_and_names_operations_and_baselines_are_sound() {
        let mut seen = std::collections::HashSet::new();
        for suite in SUITES {
            let mut cases = 0;
            for benchmark in suite.benchmarks.iter().copied().chain(suite.control) {
                let name = benchmark.name;
                assert!(seen.insert(name), "{name} is registered twice");
                let all = benchmark.cases_in(Extent::Thorough).len();
                assert!(all > 0, "{name} has no case");
                cases += all;
                let is_instance = matches!(benchmark.kind, Kind::Instance(_));
                assert_eq!(is_instance, !["workloads", "environments"].contains(&suite.name), "{name}");
                assert!(benchmark.operation.ends_with('.') && benchmark.operation.len() > 20, "{name}");
                if let Some(base) = benchmark.baseline {
                    let base = suite.benchmarks.iter().find(|other| other.name == base).expect("registered");
                    assert_eq!((base.cases)().len(), 1, "{name}");
                    assert!(base.baseline.is_none(), "{name}: a baseline has no baseline of its own");
                }
            }
            assert!(
                suite.benchmarks.iter().all(|benchmark| benchmark.suite() == suite.name),
                "{}",
                suite.name
            );
            assert!(cases + OWN_BENCHMARKS.len() < MAX_INSTANCES, "{} has {cases} cases", suite.name);
        }
    }

    #[test]
    fn every_benchmark_and_every_case_crosses_a_boundary() {
        for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks.iter().copied().chain(suite.control))
        {
            let distinct: std::collections::BTreeSet<_> = benchmark.crosses.iter().collect();
            assert!(!distinct.is_empty() && distinct.len() == benchmark.crosses.len(), "{}", benchmark.name);
            let cases = benchmark.cases_in(Extent::Thorough);
            for boundary in benchmark.crosses {
                let is_crossed =
                    |params: &_| benchmark.crosses_in(params).any(|crossed| crossed == *boundary);
                assert!(cases.iter().any(is_crossed), "no case of {} crosses {boundary}", benchmark.name);
            }
            // The size of a lock's own code and data depends on this program alone.
            for params in cases.iter().filter(|_| benchmark.unit != tollgate_model::Unit::Bytes) {
                assert!(benchmark.crosses_in(params).next().is_some(), "{} {params:?}", benchmark.name);
            }
        }
    }

    #[test]
    fn crossings_depend_on_parameters() {
        let crosses = |name: &str, parameter: (&str, &str), boundary| {
            let params = tollgate_engine::benchmark::params(&[(parameter.0, parameter.1.into())]);
            find(name)
                .is_some_and(|benchmark| benchmark.crosses_in(&params).any(|crossed| crossed == boundary))
        };
        assert!(crosses("files/read", ("state", "uncached"), BlockRead));
        assert!(!crosses("files/read", ("state", "cached"), BlockRead));
        assert!(crosses("files/small-file", ("call", "fsync"), DeviceFlush));
        assert!(!crosses("files/small-file", ("call", "open"), DeviceFlush));
        assert!(crosses("locks/uncontended", ("by", "semop"), KernelEntry));
        assert!(!crosses("locks/uncontended", ("by", "xchg"), KernelEntry));
        assert!(!crosses("locks/uncontended", ("by", "of another version"), KernelEntry));
        assert!(crosses("processes/switch", ("placement", "other-cpu"), IdleExit));
        assert!(!crosses("processes/switch", ("placement", "same-cpu"), IdleExit));
    }
}
