//! Seccomp filters: programs of classic BPF that the kernel runs at each system call (seccomp(2)).

#![allow(unsafe_code)] // seccomp(2) is in no crate's safe interface.

use std::io;

use tollgate_arch::abi::{AUDIT_ARCH, AUDIT_ARCH_32};

use crate::calls::Numbers;

/// A filter's instructions.
pub type Filter = Vec<libc::sock_filter>;

/// Offsets in `struct seccomp_data` of linux/seccomp.h.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// Limit of the kernel, in instructions (`BPF_MAXINSNS`).
const MAX: usize = 4096;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const SKIP: u32 = libc::BPF_JMP | libc::BPF_JA;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Answers to the calls through one kernel entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Numbers of calls and their answers (`SECCOMP_RET_*` with its data). The first entry for a number takes effect.
    pub named: Vec<(u32, u32)>,
    /// Answer to every other call.
    pub other: u32,
}

impl Answers {
    /// Answers `other` to all calls.
    pub fn all(other: u32) -> Self {
        Self { named: Vec::new(), other }
    }
}

/// Answers to the calls through a 64-bit kernel's two entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Answers to SYSCALL: 64-bit programs, and x32 programs by their marked numbers.
    pub long: Answers,
    /// Answers to `int $0x80` and to 32-bit programs.
    pub short: Answers,
}

impl Rules {
    /// Adds an answer to a call for each of its numbers.
    pub fn add(&mut self, numbers: Numbers, answer: u32) {
        let long = [numbers.long, numbers.x32].into_iter().flatten();
        self.long.named.extend(long.map(|number| (number, answer)));
        self.short.named.extend(numbers.short.map(|number| (number, answer)));
    }

    /// Builds the filter; `None` if there are more rules than fit in one.
    pub fn filter(&self) -> Option<Filter> {
        let one = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut filter = Vec::new();
        for (arch, answers) in [(AUDIT_ARCH, &self.long), (AUDIT_ARCH_32, &self.short)] {
            filter.push(one(LOAD, ARCH, 0, 0));
            // A conditional jump reaches at most 255 instructions; an unconditional one has no limit.
            filter.push(one(IS, arch, 1, 0));
            filter.push(one(SKIP, u32::try_from(2 * answers.named.len() + 2).ok()?, 0, 0));
            filter.push(one(LOAD, NUMBER, 0, 0));
            for (number, answer) in &answers.named {
                filter.push(one(IS, *number, 0, 1));
                filter.push(one(RETURN, *answer, 0, 0));
            }
            filter.push(one(RETURN, answers.other, 0, 0));
        }
        filter.push(one(RETURN, self.long.other, 0, 0));
        (filter.len() <= MAX).then_some(filter)
    }
}

/// Returns a filter as its bytes: consecutive `struct sock_filter`.
pub fn bytes(filter: &[libc::sock_filter]) -> Vec<u8> {
    let one = |one: &libc::sock_filter| {
        let [c0, c1] = one.code.to_ne_bytes();
        let [k0, k1, k2, k3] = one.k.to_ne_bytes();
        [c0, c1, one.jt, one.jf, k0, k1, k2, k3]
    };
    filter.iter().flat_map(one).collect()
}

/// Installs a filter on this thread and the processes that it starts, permanently. They can no longer gain privileges
/// (PR_SET_NO_NEW_PRIVS of prctl(2)), which the kernel requires of users without CAP_SYS_ADMIN.
///
/// # Errors
/// Those of prctl(2) and seccomp(2): EINVAL if the kernel lacks seccomp filters or the program is invalid.
pub fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    // SAFETY: PR_SET_NO_NEW_PRIVS takes plain numbers; `program` points to `len` instructions, which the kernel copies and
    // does not write.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls;

    /// Evaluates a filter as the kernel does.
    fn answer(filter: &Filter, arch: u32, number: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let one = filter[at];
            at += 1;
            match u32::from(one.code) {
                LOAD => value = if one.k == ARCH { arch } else { number },
                SKIP => at += one.k as usize,
                IS => at += usize::from(if value == one.k { one.jt } else { one.jf }),
                RETURN => return one.k,
                code => panic!("{code:x}"),
            }
        }
    }

    #[test]
    fn a_call_is_answered_by_each_of_its_numbers_and_the_first_answer_holds() {
        // The numbers are x86-64's, also where another processor executes this.
        const X32: u32 = 1 << 30;
        let mut rules = Rules { long: Answers::all(1), short: Answers::all(2) };
        let both = |long, short| Numbers { long: Some(long), short: Some(short), x32: Some(X32 | long) };
        let [openat, read, waitpid] =
            [both(257, 295), both(0, 3), Numbers { long: None, short: Some(7), x32: None }];
        for (numbers, said) in [(openat, 7), (read, 8), (waitpid, 9), (read, 10)] {
            rules.add(numbers, said);
        }
        let filter = rules.filter().unwrap();
        for (arch, number, expected) in [
            (AUDIT_ARCH, 0, 8),
            (AUDIT_ARCH, 257, 7),
            (AUDIT_ARCH, X32 | 257, 7),
            (AUDIT_ARCH_32, 3, 8),
            (AUDIT_ARCH_32, 295, 7),
            (AUDIT_ARCH_32, 7, 9),
            (AUDIT_ARCH, 1, 1),
            (AUDIT_ARCH, 295, 1),
            (AUDIT_ARCH, 7, 1),
            (AUDIT_ARCH, u32::MAX, 1),
            (AUDIT_ARCH_32, 0, 2),
            (AUDIT_ARCH_32, 257, 2),
            (0, 0, 1),
        ] {
            assert_eq!(answer(&filter, arch, number), expected, "{arch:x} {number}");
        }
    }

    #[test]
    fn all_calls_together_have_room_and_more_have_none() {
        let named = |count: u32| Rules {
            long: Answers { named: (0..count).map(|number| (number, 5)).collect(), other: 6 },
            short: Answers { named: (0..count).map(|number| (number, 7)).collect(), other: 8 },
        };
        let filter = named(940).filter().unwrap();
        assert_eq!([answer(&filter, AUDIT_ARCH, 939), answer(&filter, AUDIT_ARCH, 940)], [5, 6]);
        assert_eq!([answer(&filter, AUDIT_ARCH_32, 939), answer(&filter, AUDIT_ARCH_32, 940)], [7, 8]);
        assert!(named(1100).filter().is_none());
    }

    #[test]
    fn its_bytes_are_those_of_the_structure() {
        let one = libc::sock_filter { code: 0x0102, jt: 3, jf: 4, k: 0x0506_0708 };
        assert_eq!(bytes(&[one, one]).len(), 2 * size_of::<libc::sock_filter>());
        assert_eq!(bytes(&[one]), [2, 1, 3, 4, 8, 7, 6, 5]);
    }

    #[test]
    fn the_kernel_takes_it_and_keeps_to_it() {
        let mut child = crate::process::fork(|| {
            let mut rules = Rules {
                long: Answers::all(libc::SECCOMP_RET_ALLOW),
                short: Answers::all(libc::SECCOMP_RET_ALLOW),
            };
            // An error that getppid(2) never returns by itself.
            let refused = libc::SECCOMP_RET_ERRNO | libc::EXDEV.cast_unsigned();
            rules.add(calls::number("getppid").unwrap(), refused);
            let Some(filter) = rules.filter() else { return 1 };
            if install(&filter).is_err() {
                return 2;
            }
            // SAFETY: getppid(2) and getuid(2) have no preconditions.
            let (refused, allowed) =
                unsafe { (libc::syscall(libc::SYS_getppid), libc::syscall(libc::SYS_getuid)) };
            i32::from(refused != -1 || allowed < 0)
        })
        .unwrap();
        assert_eq!(child.wait().unwrap(), tollgate_model::traced::Ended::Exit(0));
    }
}
