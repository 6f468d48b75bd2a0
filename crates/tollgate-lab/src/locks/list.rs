//! The locks, and the mutants of the test-and-set.

use super::Kernel;

/// A lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Whether it is a lock of the list, and not one with a restart in it that is priced alone.
    pub is_checked: bool,
    /// Its place in `locks.s`.
    pub(super) program: usize,
}

/// The test-and-set with one part wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// What is wrong.
    pub about: &'static str,
    pub(super) program: usize,
    pub(super) kernel: Kernel,
}

/// The program without a lock: the loop around the others.
pub(super) const NONE: usize = 0;

const fn lock(program: usize, name: &'static str, about: &'static str) -> Lock {
    Lock { name, about, is_checked: true, program }
}

/// The locks, and the restarts of the first two.
pub const LOCKS: &[Lock] = &[
    lock(
        1,
        "lock-restart",
        "The test-and-set by the page-fault handler: its store goes through a register that the kernel spoils.",
    ),
    lock(2, "lock-restart-test", "The same with a test of the register before the store."),
    lock(3, "lock-cli", "A test-and-set with interrupts off, which IOPL 3 allows."),
    lock(4, "lock-lamport", "Lamport's fast mutual exclusion, for one processor."),
    lock(5, "lock-xchg", "LOCK XCHG, the processor's own test-and-set."),
    lock(6, "lock-call", "A test-and-set by a system call."),
    Lock {
        is_checked: false,
        ..lock(7, "lock-restarted", "The first, restarted once by the page-fault handler.")
    },
    Lock {
        is_checked: false,
        ..lock(8, "lock-restarted-test", "The second, restarted once by its own test.")
    },
];

const fn mutant(name: &'static str, about: &'static str, program: usize, kernel: u32) -> Mutant {
    Mutant { name, about, program, kernel: Kernel(kernel | Kernel::WORDS) }
}

/// The place of the first lock in `locks.s`.
const RESTART: usize = 1;
const BOTH: u32 = Kernel::HOOK | Kernel::HANDLER;

/// The mutants. Each lets a violation through.
pub const MUTANTS: &[Mutant] = &[
    mutant("no-hook", "the kernel leaves r15 as it was", RESTART, Kernel::HANDLER),
    mutant(
        "hook-of-timer",
        "it spoils r15 only where the timer ended the turn",
        RESTART,
        BOTH | Kernel::HOOK_OF_TIMER,
    ),
    mutant("no-handler", "no handler knows the store that faults", RESTART, Kernel::HOOK),
    mutant(
        "handler-resumes",
        "the handler puts r15 right and resumes at the store",
        RESTART,
        BOTH | Kernel::RESUME,
    ),
    mutant("handler-repeats", "the handler returns to the store as it is", RESTART, BOTH | Kernel::REPEAT),
    mutant("register-late", "r15 is loaded after the test", 9, BOTH),
    mutant("store-around", "the store does not go through r15", 10, BOTH),
];
