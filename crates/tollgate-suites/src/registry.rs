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

/// Returns every benchmark, and the A/A control.
pub(crate) fn registered() -> impl Iterator<Item = &'static Benchmark> {
    SUITES.iter().flat_map(|suite| suite.benchmarks).copied().chain([&entry::CONTROL])
}

/// Returns the benchmark called `name`, including those that the engine adds.
pub fn find(name: &str) -> Option<&'static Benchmark> {
    registered().chain(OWN_BENCHMARKS.iter().copied()).find(|benchmark| benchmark.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tollgate_arch::features::FLUSHES_BY_INTERRUPTS;
    use tollgate_os::workdir::Workdir;

    use super::*;
    use crate::machines::MACHINES;
    use crate::testing::{Directory, pinned};

    /// Each parameter that is a word decides what is timed, so no case with another one may have an instance.
    #[test]
    fn a_word_of_another_version_is_refused() {
        let directory = Directory::new();
        let workdir = Workdir::find(&directory.0).expect("just made");
        let storage = Storage { directory: workdir, limit: 2 << 30, by: "a test".to_owned() };
        let mut context = Context::here().with_storage(storage);
        pinned();
        let machine = context.topology();
        let mut accepted = Vec::new();
        for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks) {
            let Kind::Instance(make) = benchmark.kind else { continue };
            let mut seen = BTreeSet::new();
            for case in benchmark.cases_in(Extent::Thorough, &machine) {
                let is_word = |value: &ParamValue| matches!(value, ParamValue::Word(_));
                for (parameter, _) in case.iter().filter(|(_, value)| is_word(value)) {
                    if !seen.insert(parameter.clone()) {
                        continue;
                    }
                    let mut case = case.clone();
                    case.insert(parameter.clone(), "another".into());
                    let made = make((benchmark.timed)(&case), &case, &mut context);
                    if made.is_ok() {
                        accepted.push(format!("{}: {parameter}", benchmark.name));
                    }
                }
            }
        }
        assert!(accepted.is_empty(), "{accepted:#?}");
    }

    #[test]
    fn a_depth_of_another_version_is_refused() {
        let benchmark = find("entry/return").expect("registered");
        let Kind::Instance(make) = benchmark.kind else { panic!("an instance") };
        let case = params(&[("depth", 3.into())]);
        assert!(make((benchmark.timed)(&case), &case, &mut Context::here()).is_err());
    }

    #[test]
    fn what_needs_a_directory_says_so() {
        let none = Context::here().storage().map(drop).expect_err("no directory");
        let suites = [&files::SUITE, &ipc::SUITE, &scaling::SUITE];
        pinned();
        for benchmark in suites.iter().flat_map(|suite| suite.benchmarks).filter(|it| !it.uses_files) {
            let Kind::Instance(make) = benchmark.kind else { continue };
            for case in (benchmark.cases)(&Topology::default()) {
                let made = make((benchmark.timed)(&case), &case, &mut Context::here());
                assert_ne!(made.err(), Some(none.clone()), "{}", benchmark.case(case));
            }
        }
    }

    /// A run answers group by group, and `list` names them in this order.
    #[test]
    fn benchmarks_without_company_are_the_last_of_their_suite() {
        for suite in SUITES {
            let alone = suite.benchmarks.iter().map(|benchmark| benchmark.company == Company::Own);
            assert!(alone.is_sorted(), "{}", suite.name);
        }
    }

    /// Only cases of one group are compared in each round.
    #[test]
    fn a_benchmark_without_company_has_no_baseline_but_its_own_cases() {
        for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks) {
            if benchmark.company == Company::Own {
                assert_eq!(benchmark.baseline.benchmark(), None, "{}", benchmark.name);
            }
            let base = benchmark.baseline.benchmark().and_then(find);
            assert!(base.is_none_or(|base| base.group() == benchmark.group()), "{}", benchmark.name);
        }
    }

    /// One screen has space for 25 rows, and each row for its name.
    #[test]
    fn headlines_are_cases_and_fit_on_a_screen() {
        let all = || SUITES.iter().flat_map(|suite| suite.benchmarks.iter().copied());
        let headlines: Vec<&Headline> = all().flat_map(|benchmark| benchmark.headlines).collect();
        let rows = headlines.iter().filter(|headline| headline.section != Section::Loads).count();
        assert!((20..=25).contains(&(rows + 1)), "{rows}");
        assert!(headlines.iter().all(|headline| headline.name.len() <= 28));
        for simulated in &MACHINES {
            let machine = simulated.topology();
            let of_largest = (simulated.caches)(0).iter().map(|(.., kib, _)| kib * 4).max();
            let absent = all().flat_map(|benchmark| {
                benchmark.headlines.iter().filter(|headline| benchmark.case_of(headline, &machine).is_none())
            });
            let absent: Vec<&str> = absent.map(|headline| headline.name).collect();
            // Working sets end at four times the last level.
            let expected: &[&str] = if of_largest < Some(128 << 10) { &["128M"] } else { &[] };
            assert_eq!(absent, expected, "{}", simulated.name);
        }
    }

    #[test]
    fn every_benchmark_says_how_to_avoid_it_and_where_it_is_described() {
        for benchmark in SUITES.iter().flat_map(|suite| suite.benchmarks) {
            let name = benchmark.name;
            assert!(benchmark.avoid.ends_with('.') && benchmark.avoid.len() > 10, "{name}");
            // A manual page with its section, or a book, a paper or a source file by name.
            assert!(benchmark.source.contains(['(', ' ']) && benchmark.source.len() > 6, "{name}");
        }
    }

    #[test]
    fn names_operations_and_baselines_are_sound() {
        let mut seen = std::collections::HashSet::new();
        for benchmark in registered() {
            let name = benchmark.name;
            assert!(seen.insert(name), "{name} is registered twice");
            let is_instance = matches!(benchmark.kind, Kind::Instance(_));
            assert_eq!(is_instance, !["workloads", "environments"].contains(&benchmark.suite()), "{name}");
            assert!(benchmark.operation.ends_with('.') && benchmark.operation.len() > 20, "{name}");
            for (other, what) in benchmark.beside {
                assert!(find(other).is_some() && !what.is_empty(), "{name} beside {other}");
            }
            if let Some(base) = benchmark.baseline.benchmark() {
                let base = find(base).expect("registered");
                assert_eq!((base.cases)(&Topology::default()).len(), 1, "{name}");
                assert!(base.baseline.benchmark().is_none(), "{name}: a baseline has no baseline of its own");
            }
        }
        for suite in SUITES {
            assert!(
                suite.benchmarks.iter().all(|benchmark| benchmark.suite() == suite.name),
                "{}",
                suite.name
            );
        }
    }

    #[test]
    fn every_benchmark_has_cases_on_any_machine_and_those_of_a_suite_fit_into_a_process() {
        for simulated in &MACHINES {
            let machine = simulated.topology();
            for suite in SUITES {
                let numbers = suite.benchmarks.iter().map(|benchmark| {
                    let cases = benchmark.cases_in(Extent::Thorough, &machine);
                    let different: BTreeSet<String> = cases.iter().map(|case| format!("{case:?}")).collect();
                    assert_eq!(different.len(), cases.len(), "{}: {}", simulated.name, benchmark.name);
                    assert!(!cases.is_empty(), "{}: {} has no case", simulated.name, benchmark.name);
                    cases.len()
                });
                let all = numbers.sum::<usize>() + OWN_BENCHMARKS.len();
                assert!(all < MAX_INSTANCES, "{}: {} has {all} cases", simulated.name, suite.name);
            }
        }
    }

    #[test]
    fn a_machine_has_only_cases_of_its_architecture_or_none_of_a_benchmark() {
        for simulated in &MACHINES {
            let machine = simulated.topology();
            for benchmark in registered().filter(|benchmark| benchmark.why_absent(&machine).is_none()) {
                for params in benchmark.cases_in(Extent::Thorough, &machine) {
                    let why = (benchmark.timed)(&params).why_absent(machine.architecture);
                    assert_eq!(why, None, "{}: {}", simulated.name, benchmark.case(params));
                }
            }
        }
    }

    #[test]
    fn every_benchmark_and_every_case_crosses_a_boundary() {
        let machine = MACHINES[2].topology();
        for benchmark in registered() {
            let distinct: BTreeSet<_> = benchmark.crosses.iter().collect();
            assert!(!distinct.is_empty() && distinct.len() == benchmark.crosses.len(), "{}", benchmark.name);
            let cases = benchmark.cases_in(Extent::Thorough, &machine);
            // Processors of arm64 tell each other what to flush without an interrupt.
            let is_told = FLUSHES_BY_INTERRUPTS || benchmark.name != "memory/shootdown";
            for boundary in benchmark.crosses.iter().filter(|one| is_told || **one != InterProcessorInterrupt)
            {
                let is_crossed =
                    |params: &_| benchmark.crosses_in(params).any(|crossed| crossed == *boundary);
                assert!(cases.iter().any(is_crossed), "no case of {} crosses {boundary}", benchmark.name);
            }
            // The size of a lock's own code and data depends only on this program.
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
