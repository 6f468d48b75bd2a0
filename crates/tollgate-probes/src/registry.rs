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
