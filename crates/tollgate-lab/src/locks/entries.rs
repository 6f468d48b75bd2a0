//! Entries of SYSCALL under preemption. The kernel of a hobby system keeps the caller's stack in a per-processor word
//! (gs:8) until it has a stack of its own. If it reads that word again after a preemption, the word holds another
//! thread's stack (`guest/preempted.s`). The published one: supercyp, "syscall & sysret", 2021 (wingos).

use tollgate_x86::Rflags;

/// An entry of SYSCALL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Description, or the part that is wrong.
    pub about: &'static str,
    pub(super) is_wrong: bool,
    /// Index in `preempted.s`.
    pub(super) place: usize,
    /// The flags that SYSCALL clears.
    pub(super) mask: Rflags,
}

const fn entry(name: &'static str, about: &'static str, is_wrong: bool, place: usize) -> Entry {
    Entry { name, about, is_wrong, place, mask: Rflags::IF }
}

/// All entries, right and wrong.
pub const ENTRIES: &[Entry] = &[
    entry(
        "entry-frame",
        "An entry that takes the caller's stack out of its own frame when it returns.",
        false,
        1,
    ),
    entry(
        "entry-gs8-masked",
        "The published entry without turning interrupts on in it: gs:8 is the caller's until SYSRET.",
        false,
        2,
    ),
    entry("entry-gs8", "the published entry reads the caller's stack from gs:8 again, after STI", true, 0),
    entry("entry-late", "interrupts are on before the caller's stack is in the frame", true, 3),
    entry("entry-no-cli", "interrupts are on while the stack and GS become the caller's", true, 4),
    Entry {
        mask: Rflags(0),
        ..entry("entry-no-fmask", "SYSCALL leaves interrupts on: IF is not in FMASK", true, 1)
    },
];
