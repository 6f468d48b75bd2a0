use super::Kernel;
use super::entries::Entry;

/// The operation that a row measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// A lock, acquired and released without contention.
    Lock,
    /// A restart of the test-and-set, which losing the processor adds to an acquisition.
    Restart,
}

/// A lock, or a restart of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Name on the command line.
    pub name: &'static str,
    /// Description, a sentence.
    pub about: &'static str,
    /// The code that is executed, in a few words.
    pub operation: &'static str,
    /// Whether it is a lock or a restart.
    pub group: Group,
    /// Index in `locks.s`.
    pub(super) program: usize,
    /// Index of the program that does everything except the measured operation.
    pub(super) baseline: usize,
}

/// The test-and-set with one part wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant {
    /// Name of the mutant.
    pub name: &'static str,
    /// The part that is wrong.
    pub about: &'static str,
    pub(super) program: usize,
    pub(super) kernel: Kernel,
}

/// A subject of a proof or a refutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A lock, which must hold.
    Lock(&'static Lock),
    /// A mutant, which must not hold.
    Mutant(&'static Mutant),
    /// An entry of SYSCALL, which must hold unless it is wrong on purpose.
    Entry(&'static Entry),
}

impl Subject {
    /// Returns the name of the lock, mutant or entry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock(lock) => lock.name,
            Self::Mutant(mutant) => mutant.name,
            Self::Entry(entry) => entry.name,
        }
    }

    /// Says what it is, or what is wrong with it.
    pub fn about(self) -> &'static str {
        match self {
            Self::Lock(lock) => lock.about,
            Self::Mutant(mutant) => mutant.about,
            Self::Entry(entry) => entry.about,
        }
    }

    /// Returns whether it allows a violation on purpose.
    pub fn is_mutant(self) -> bool {
        matches!(self, Self::Mutant(_) | Self::Entry(Entry { is_wrong: true, .. }))
    }

    /// Returns the heading of the list that it belongs to.
    pub fn group(self) -> &'static str {
        match (self, self.is_mutant()) {
            (Self::Entry(_), false) => "entries of SYSCALL",
            (Self::Entry(_), true) => "entries with one part wrong",
            (_, false) => "locks",
            (_, true) => "lock-restart with one part wrong",
        }
    }
}

/// The program without a lock: only the loop that the others have around theirs.
pub(super) const NONE: usize = 0;
/// The indexes of the locks by the page in `locks.s`.
const RESTART: usize = 1;
const RESTART_TEST: usize = 2;

const fn lock(program: usize, name: &'static str, about: &'static str, operation: &'static str) -> Lock {
    Lock { name, about, operation, group: Group::Lock, program, baseline: NONE }
}

/// The locks, and the restarts of the first two.
pub const LOCKS: &[Lock] = &[
    lock(
        RESTART,
        "lock-restart",
        "A test-and-set that the page-fault handler restarts: its store goes through a register that the kernel spoils.",
        "call of the page: load, test, store through r15",
    ),
    lock(
        RESTART_TEST,
        "lock-restart-test",
        "The same with a test of the register before the store.",
        "the same; r15 is compared before the store",
    ),
    lock(
        3,
        "lock-cli",
        "A test-and-set with interrupts off, which I/O privilege level 3 allows.",
        "cli; load; store; sti; test; the release",
    ),
    lock(
        4,
        "lock-lamport",
        "Lamport's fast mutual exclusion, for one processor.",
        "three stores, two loads; two stores to release",
    ),
    lock(5, "lock-xchg", "The processor's own test-and-set.", "xchg with memory; test; the release"),
    lock(6, "lock-call", "A test-and-set by a system call.", "syscall to the release's store"),
    Lock {
        group: Group::Restart,
        baseline: RESTART,
        ..lock(
            7,
            "restart-by-fault",
            "The extra cost of an acquisition by lock-restart that is restarted once.",
            "#PF of the store; handler; iretq; once more",
        )
    },
    Lock {
        group: Group::Restart,
        baseline: RESTART_TEST,
        ..lock(
            8,
            "restart-by-test",
            "The extra cost of an acquisition by lock-restart-test that is restarted once, before its store.",
            "a jump; once more",
        )
    },
];

const fn mutant(name: &'static str, about: &'static str, program: usize, kernel: u32) -> Mutant {
    Mutant { name, about, program, kernel: Kernel(kernel | Kernel::WORDS) }
}

const BOTH: u32 = Kernel::HOOK | Kernel::HANDLER;

/// The mutants. Each allows a violation.
pub const MUTANTS: &[Mutant] = &[
    mutant("no-hook", "the kernel leaves r15 as it was", RESTART, Kernel::HANDLER),
    mutant(
        "hook-of-timer",
        "it spoils r15 only if the timer ended the turn",
        RESTART,
        BOTH | Kernel::HOOK_OF_TIMER,
    ),
    mutant("no-handler", "no handler handles the faulting store", RESTART, Kernel::HOOK),
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
