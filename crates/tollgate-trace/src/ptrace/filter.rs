//! A filter that stops only the requested calls.

use std::collections::BTreeSet;

use tollgate_os::seccomp::{Answers, Filter, Rules};

use super::sums::Key;
use crate::calls;

/// The data of our filter's `SECCOMP_RET_TRACE` (`SECCOMP_RET_DATA`, 16 bits), which distinguishes its stops from those of a
/// filter of the command's own. If two filters return the same action, the kernel takes the newer one's data (seccomp(2)).
pub const OURS: u32 = 0x7467;

/// Returns the numbers of the calls with these names, and whether each is of the 32-bit table.
pub fn numbers(names: &BTreeSet<String>) -> BTreeSet<(u32, bool)> {
    let known = names.iter().filter_map(|name| calls::number(name));
    known
        .flat_map(|numbers| {
            let long = [numbers.long, numbers.x32].into_iter().flatten().map(|number| (number, false));
            long.chain(numbers.short.map(|number| (number, true)))
        })
        .collect()
}

const MAKERS: [&str; 2] = ["seccomp", "prctl"];

/// Returns the numbers of calls that must stop if only some are requested: these, and those that install a filter.
pub fn stopping(names: &BTreeSet<String>) -> BTreeSet<(u32, bool)> {
    numbers(&names.iter().cloned().chain(MAKERS.map(str::to_owned)).collect())
}

/// Returns whether a call would install a filter. A filter that denies a call prevails over ours (seccomp(2)), which misses it.
pub fn is_made_by(key: Key, arguments: &[u64; 6]) -> bool {
    match key.base_name() {
        Some("seccomp") => arguments[0] == u64::from(libc::SECCOMP_SET_MODE_FILTER),
        Some("prctl") => arguments[0] == libc::PR_SET_SECCOMP as u64,
        _ => false,
    }
}

/// Builds the filter for some calls; `None` if there are too many for one filter.
pub fn for_calls(numbers: &BTreeSet<(u32, bool)>) -> Option<Filter> {
    let answers = |is_32_bit: bool| {
        let of_it = numbers.iter().filter(move |(_, of)| *of == is_32_bit);
        let named = of_it.map(|(number, _)| (*number, libc::SECCOMP_RET_TRACE | OURS)).collect();
        Answers { named, other: libc::SECCOMP_RET_ALLOW }
    };
    Rules { long: answers(false), short: answers(true) }.filter()
}

#[cfg(test)]
mod tests {
    use tollgate_arch::architecture::{Architecture, HERE};

    use super::*;

    #[test]
    fn calls_are_asked_for_in_every_table() {
        let numbers = numbers(&["openat", "waitpid", "nonsense"].map(str::to_owned).into());
        let expected = match HERE {
            Architecture::X86_64 => &[(7, true), (257, false), (295, true), (calls::X32 | 257, false)][..],
            Architecture::Arm64 => &[(56, false), (322, true)],
        };
        assert_eq!(numbers, expected.iter().copied().collect());
        let filter = for_calls(&numbers).unwrap();
        let stops = filter.iter().filter(|one| one.k == libc::SECCOMP_RET_TRACE | OURS).count();
        assert_eq!(stops, expected.len());
    }

    #[test]
    fn all_calls_together_have_room() {
        let all: BTreeSet<(u32, bool)> =
            (0..470).flat_map(|number| [(number, false), (number, true)]).collect();
        assert!(for_calls(&all).is_some());
        assert!(for_calls(&(0..3000).map(|number| (number, false)).collect()).is_none());
    }
}
