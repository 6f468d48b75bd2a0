//! The registry: the only list of suites, and through them of probes.

use crate::bench::OWN_PROBES;
use crate::probe::{Probe, Suite};
use crate::{files, gates, lines, locks, processes, traps, workloads};

/// Every suite, in the order in which prices are shown.
pub static SUITES: &[&Suite] = &[
    &gates::SUITE,
    &traps::SUITE,
    &lines::SUITE,
    &locks::SUITE,
    &processes::SUITE,
    &files::SUITE,
    &workloads::SUITE,
];

/// The probe called `name`, those that the bench adds by itself included.
pub fn find(name: &str) -> Option<&'static Probe> {
    let registered = SUITES.iter().flat_map(|suite| suite.probes.iter().copied().chain(suite.twin));
    registered.chain(OWN_PROBES.iter().copied()).find(|probe| probe.name == name)
}

#[cfg(test)]
mod tests {
    use tollgate_model::Boundary::*;

    use super::*;
    use crate::bench::MAX_ARMS;
    use crate::probe::Extent;

    #[test]
    fn names_are_unique_and_begin_with_their_suite() {
        let mut seen = std::collections::HashSet::new();
        for suite in SUITES {
            for probe in suite.probes {
                assert_eq!(probe.suite(), suite.name, "{}", probe.name);
                assert!(seen.insert(probe.name), "{} is registered twice", probe.name);
                assert!(!(probe.cases)().is_empty(), "{} has no case", probe.name);
            }
        }
    }

    #[test]
    fn every_suite_fits_into_one_process() {
        for suite in SUITES {
            let cases: usize = suite.probes.iter().map(|probe| probe.cases_in(Extent::Thorough).len()).sum();
            assert!(cases + OWN_PROBES.len() < MAX_ARMS, "{} has {cases} cases", suite.name);
        }
    }

    #[test]
    fn every_benchmark_and_every_case_crosses_a_boundary() {
        for probe in SUITES.iter().flat_map(|suite| suite.probes.iter().copied().chain(suite.twin)) {
            let distinct: std::collections::BTreeSet<_> = probe.crosses.iter().collect();
            assert!(!distinct.is_empty() && distinct.len() == probe.crosses.len(), "{}", probe.name);
            let cases = probe.cases_in(Extent::Thorough);
            for boundary in probe.crosses {
                let is_crossed = |params: &_| probe.crosses_in(params).any(|crossed| crossed == *boundary);
                assert!(cases.iter().any(is_crossed), "no case of {} crosses {boundary}", probe.name);
            }
            // The size of a lock's own code and data depends on this program alone.
            for params in cases.iter().filter(|_| probe.unit != tollgate_model::Unit::Bytes) {
                assert!(probe.crosses_in(params).next().is_some(), "{} {params:?}", probe.name);
            }
        }
    }

    #[test]
    fn what_a_case_crosses_depends_on_its_parameters() {
        let crosses = |name: &str, parameter: (&str, &str), boundary| {
            let params = crate::probe::params(&[(parameter.0, parameter.1.into())]);
            find(name).is_some_and(|probe| probe.crosses_in(&params).any(|crossed| crossed == boundary))
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

    #[test]
    fn operations_are_sentences() {
        for probe in SUITES.iter().flat_map(|suite| suite.probes) {
            assert!(probe.operation.ends_with('.') && probe.operation.len() > 20, "{}", probe.name);
        }
    }

    #[test]
    fn what_a_probe_is_held_against_is_registered_and_has_one_case() {
        for suite in SUITES {
            for probe in suite.probes.iter().copied().chain(suite.twin) {
                let Some(base) = probe.against else { continue };
                let base = suite.probes.iter().find(|other| other.name == base).expect("registered");
                assert_eq!((base.cases)().len(), 1, "{}", probe.name);
                assert!(base.against.is_none(), "{}: chains are not followed", probe.name);
            }
        }
    }
}
