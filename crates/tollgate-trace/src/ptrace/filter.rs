//! A filter by which only calls that were asked for stop.

use std::collections::BTreeSet;

use crate::{calls, launch::Filter};

/// `AUDIT_ARCH_I386` and `AUDIT_ARCH_X86_64` of linux/audit.h.
const I386: u32 = 0x4000_0003;
const X86_64: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data` of linux/seccomp.h.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

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

/// The filter for some calls. None where there are more than a filter has room for.
pub fn for_calls(numbers: &BTreeSet<(u32, bool)>) -> Option<Filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let one = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = Vec::new();
    for (arch, is_32_bit) in [(X86_64, false), (I386, true)] {
        let of_it: Vec<u32> =
            numbers.iter().filter(|(_, of)| *of == is_32_bit).map(|(number, _)| *number).collect();
        filter.push(one(LOAD, ARCH, 0, 0));
        // A jump on a condition reaches 255 instructions, one without any number.
        filter.push(one(IS, arch, 1, 0));
        filter.push(one(libc::BPF_JMP | libc::BPF_JA, 2 * of_it.len() as u32 + 2, 0, 0));
        filter.push(one(LOAD, NUMBER, 0, 0));
        for number in of_it {
            filter.push(one(IS, number, 0, 1));
            filter.push(one(RETURN, libc::SECCOMP_RET_TRACE | OURS, 0, 0));
        }
        filter.push(one(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    }
    filter.push(one(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    (filter.len() <= 4096).then_some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a filter, by the rules of the kernel's filters.
    fn answer(filter: &Filter, arch: u32, number: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let one = filter[at];
            at += 1;
            match u32::from(one.code) {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    value = if one.k == ARCH { arch } else { number };
                }
                code if code == libc::BPF_JMP | libc::BPF_JA => at += one.k as usize,
                code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    at += usize::from(if value == one.k { one.jt } else { one.jf });
                }
                _ => return one.k,
            }
        }
    }

    #[test]
    fn a_filter_stops_what_was_asked_for_in_every_table() {
        let names = ["openat", "read", "waitpid"].map(str::to_owned).into();
        let filter = for_calls(&numbers(&names)).unwrap();
        let stops = |arch, number| answer(&filter, arch, number) == libc::SECCOMP_RET_TRACE | OURS;
        for (arch, number) in
            [(X86_64, 0), (X86_64, 257), (I386, 3), (I386, 295), (I386, 7), (X86_64, calls::X32 | 257)]
        {
            assert!(stops(arch, number), "{arch:x} {number}");
        }
        for (arch, number) in [(X86_64, 1), (X86_64, 295), (X86_64, 7), (I386, 0), (I386, 257), (0, 0)] {
            assert!(!stops(arch, number), "{arch:x} {number}");
        }
    }

    #[test]
    fn all_calls_together_have_room() {
        let all: BTreeSet<(u32, bool)> =
            (0..470).flat_map(|number| [(number, false), (number, true)]).collect();
        let filter = for_calls(&all).unwrap();
        assert_eq!(answer(&filter, I386, 469), libc::SECCOMP_RET_TRACE | OURS);
        assert_eq!(answer(&filter, X86_64, 470), libc::SECCOMP_RET_ALLOW);
        assert!(for_calls(&(0..3000).map(|number| (number, false)).collect()).is_none());
    }
}
