//! A filter by which only calls that were asked for stop.

use std::collections::BTreeSet;

use tollgate_os::seccomp::{Answers, Filter, Rules};

use super::sums::Key;
use crate::calls;

/// The data of our filter's `SECCOMP_RET_TRACE` (`SECCOMP_RET_DATA`, 16 bits), which distinguishes its stops from those of a
/// filter of the command's own: of two filters that say the same the kernel takes the newer one's data (seccomp(2)).
pub const OURS: u32 = 0x7467;

/// Numbers that have the names, with whether they are of the 32-bit table.
pub fn numbers(names: &BTreeSet<String>) -> BTreeSet<(u32, bool)> {
    let known = names.iter().filter_map(|name| calls::number(name));
    known
        .flat_map(|numbers| {
            let long = [numbers.x86_64, numbers.x32].into_iter().flatten().map(|number| (number, false));
            long.chain(numbers.i386.map(|number| (number, true)))
        })
        .collect()
}

/// The calls that make a filter.
const MAKERS: [&str; 2] = ["seccomp", "prctl"];

/// Numbers of calls that stop where some are asked for: these, and those that make a filter.
pub fn stopping(names: &BTreeSet<String>) -> BTreeSet<(u32, bool)> {
    numbers(&names.iter().cloned().chain(MAKERS.map(str::to_owned)).collect())
}

/// Whether a call makes a filter, should it succeed. Of two filters the one that stops a call is obeyed (seccomp(2)), and ours has no stop
/// then.
pub fn is_made_by(key: Key, arguments: &[u64; 6]) -> bool {
    match key.base_name() {
        Some("seccomp") => arguments[0] == u64::from(libc::SECCOMP_SET_MODE_FILTER),
        Some("prctl") => arguments[0] == libc::PR_SET_SECCOMP as u64,
        _ => false,
    }
}

/// The filter for some calls. None where there are more than a filter has room for.
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
    use super::*;

    #[test]
    fn calls_are_asked_for_in_every_table() {
        let numbers = numbers(&["openat", "waitpid", "nonsense"].map(str::to_owned).into());
        let expected = [(7, true), (257, false), (295, true), (calls::X32 | 257, false)];
        assert_eq!(numbers, expected.into());
        let filter = for_calls(&numbers).unwrap();
        let stops = filter.iter().filter(|one| one.k == libc::SECCOMP_RET_TRACE | OURS).count();
        assert_eq!(stops, 4);
    }

    #[test]
    fn all_calls_together_have_room() {
        let all: BTreeSet<(u32, bool)> =
            (0..470).flat_map(|number| [(number, false), (number, true)]).collect();
        assert!(for_calls(&all).is_some());
        assert!(for_calls(&(0..3000).map(|number| (number, false)).collect()).is_none());
    }
}
