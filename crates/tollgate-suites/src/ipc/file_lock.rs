//! Uncontended locks on a file, as lmbench's lat_fcntl uses them.
//!
//! lat_fcntl passes two such locks between two processes, and reports half the time of a loop. But a waiter for these locks is
//! woken to try again (fs/locks.c, locks_wake_up_blocks()), and the process that released the lock can take it again first. So
//! how often the lock really changes hands depends on the scheduler. This row measures the lock alone.

use std::fs::File;
use std::os::fd::AsRawFd;

use tollgate_os::memfd;

use super::endpoint::{Subject, Verified};
use crate::prelude::*;
use crate::record_lock;

timed_loop! {
    /// fcntl(2) twice. Words: 0: the file; 1: the command; 2 and 3: the struct flock of each; 4: the results, combined by OR.
    lock_record: called
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "mov rdx, [r13 + 16]", "mov eax, 72",
        "syscall",
        "or [r13 + 32], rax",
        "mov rdi, [r13]", "mov rsi, [r13 + 8]", "mov rdx, [r13 + 24]", "mov eax, 72",
        "syscall",
        "or [r13 + 32], rax";
    aarch64
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "ldr x2, [x20, #16]", "mov x8, 25",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "ldr x0, [x20]", "ldr x1, [x20, #8]", "ldr x2, [x20, #24]", "mov x8, 25",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]"
}

timed_loop! {
    /// flock(2) twice. Words: 0: the file; 2 and 3: the operations; 4: the results, combined by OR.
    lock_file: called
        "mov rdi, [r13]", "mov rsi, [r13 + 16]", "mov eax, 73",
        "syscall",
        "or [r13 + 32], rax",
        "mov rdi, [r13]", "mov rsi, [r13 + 24]", "mov eax, 73",
        "syscall",
        "or [r13 + 32], rax";
    aarch64
        "ldr x0, [x20]", "ldr x1, [x20, #16]", "mov x8, 32",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "ldr x0, [x20]", "ldr x1, [x20, #24]", "mov x8, 32",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]"
}

const RESULTS: usize = 4;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "ipc/file-lock",
    operation: "One lock of a file in memory and its unlock, without contention: a record by F_SETLK or by F_OFD_SETLK, or the file by flock.",
    avoid: "Between threads or processes that share memory, use a futex.",
    source: "fcntl(2), advisory record locking; flock(2); lmbench, lat_fcntl.c; will-it-scale, lock1.c; fs/locks.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy],
    crossed_in: |params, boundary| boundary != UserCopy || By::try_from(params) != Ok(By::Flock),
    timed: |params| match By::try_from(params) {
        Ok(by) => Timed::Loop { code: TimedLoop::Long(by.code()), instruction: "syscall/svc", times: 2 },
        Err(_) => NOT_TIMED,
    },
    cases: |_| each_word("by", By::WORDS),
    in_everything: |_, _| false,
    kind: Kind::Instance(|timed, params, _| {
        let locks = Locks::new(By::try_from(params)?)?;
        let words = locks.words();
        // SAFETY: the kernel reads the structures, which lie in a box that the hooks keep.
        let timed = unsafe { Loop::new(timed, words, None, any) }?;
        Ok(timed.with_hooks(Verified::new(locks)).here())
    }),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

words! {
    enum By("by") { Record = "record", OpenFile = "open-file", Flock = "flock" }
}

impl By {
    fn code(self) -> LongLoop {
        match self {
            Self::Record | Self::OpenFile => lock_record,
            Self::Flock => lock_file,
        }
    }
}

struct Locks {
    file: File,
    /// The command of fcntl(2); `None` for flock(2).
    command: Option<libc::c_int>,
    records: Box<[libc::flock; 2]>,
}

impl Locks {
    fn new(by: By) -> Result<Self> {
        let command = match by {
            By::Record => Some(libc::F_SETLK),
            By::OpenFile => Some(libc::F_OFD_SETLK),
            By::Flock => None,
        };
        let file = memfd::create("tollgate-lock").or_refused("memfd_create(2) is refused")?;
        let locks = Self { file, command, records: record_lock::first_byte() };
        for at in [0, 1] {
            locks.once(at).or_refused("a lock of a file in memory is refused")?;
        }
        Ok(locks)
    }

    fn once(&self, at: usize) -> std::io::Result<usize> {
        let file = self.file.as_raw_fd();
        // SAFETY: the structure is valid for reading.
        checked(unsafe {
            match self.command {
                Some(command) => libc::fcntl(file, command, &self.records[at]),
                None => libc::flock(file, FLOCKS[at]),
            }
        })
    }

    fn words(&self) -> [u64; 7] {
        let file = self.file.as_raw_fd() as u64;
        let [lock, unlock] = match self.command {
            Some(_) => [&raw const self.records[0] as u64, &raw const self.records[1] as u64],
            None => FLOCKS.map(|operation| operation as u64),
        };
        [file, self.command.unwrap_or(0) as u64, lock, unlock, 0, 0, 0]
    }

    /// Returns whether the file is locked by another open file description or process (/proc/PID/fdinfo, lock).
    fn is_held(&self) -> Option<bool> {
        let path = format!("/proc/self/fdinfo/{}", self.file.as_raw_fd());
        std::fs::read_to_string(path).ok().map(|text| text.lines().any(|line| line.starts_with("lock:")))
    }
}

const FLOCKS: [libc::c_int; 2] = [libc::LOCK_EX | libc::LOCK_NB, libc::LOCK_UN];

impl Subject for Locks {
    fn before(&mut self, context: &mut LoopContext) -> Result<()> {
        context.words[RESULTS] = 0;
        Ok(())
    }

    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()> {
        if context.words[RESULTS] != 0 {
            return Err(fail!("one of {iterations} locks or unlocks failed"));
        }
        match self.is_held() {
            Some(true) => Err(fail!("the lock is still held after {iterations} unlocks")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    #[test]
    fn each_kind_locks_and_unlocks_and_a_lock_that_stays_fails() {
        for case in (BENCHMARK.cases)(&Topology::default()) {
            let by = By::try_from(&case).expect("a kind");
            let Some(mut locks) = ready(&case, Locks::new(by)) else { continue };
            let mut context = LoopContext { words: locks.words(), result: 0 };
            // SAFETY: the words are those of the loop.
            unsafe { by.code().run(10, &mut context) };
            assert_eq!(locks.after(&context, 10), Ok(()), "{case:?}");
            locks.once(0).expect("a lock");
            match locks.is_held() {
                None => eprintln!("skipped: no /proc/self/fdinfo"),
                Some(held) => {
                    assert!(held, "{case:?}");
                    assert!(locks.after(&context, 10).is_err(), "{case:?}");
                }
            }
            // Not a valid descriptor.
            context.words[0] = u64::MAX;
            // SAFETY: as above.
            unsafe { by.code().run(1, &mut context) };
            assert!(locks.after(&context, 1).is_err(), "{case:?}");
        }
    }
}
