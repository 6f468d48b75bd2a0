//! Figure 11 with one change that breaks it. If one of these held, the model would be wrong.

use crate::search::Harm;
use crate::subject::{Group, Verdict};

use super::kernel::{Handler, Kernel};
use super::programs::{FIGURE_11, PUBLISHED, Source};

const K1_AFTER_LOAD: &str = "
start:  lw      v0,(a0)
        move    k1,a0
        li      t0,1
        bnez    v0,1f
        nop
        bne     k1,a0,start
        nop
        sw      t0,(k1)
1:      jr      ra
        nop
";

const NO_TRAP: &str = "
start:  move    k1,a0
        lw      v0,(a0)
        li      t0,1
        bnez    v0,1f
        nop
        bne     k1,a0,start
        nop
        sw      t0,(a0)
1:      jr      ra
        nop
";

/// The 1 that is stored is made in a0, in the delay slot of the test, and so also on the way back to the start.
const ARGUMENT_SPOILED: &str = "
start:  move    k1,a0
        lw      v0,(a0)
        nop
        bnez    v0,1f
        nop
        bne     k1,a0,start
        li      a0,1
        sw      a0,(k1)
1:      jr      ra
        nop
";

/// Figure 11 as it was published; a mutant changes one part.
const MUTANT: Source = Source {
    group: Group::Mutant,
    text: FIGURE_11,
    expected: Verdict::Violated(Harm::Exclusion),
    ..PUBLISHED
};

/// All of them.
pub(super) const MUTANTS: &[Source] = &[
    Source {
        name: "figure-11-k1-after-load",
        about: "The address is put into k1 after the load: a preemption between them is forgotten.",
        text: K1_AFTER_LOAD,
        ..MUTANT
    },
    Source {
        name: "figure-11-no-trap",
        about: "The store goes through a0: a preemption after the test is not noticed.",
        text: NO_TRAP,
        ..MUTANT
    },
    Source {
        name: "figure-11-k1-not-set",
        about: "The kernel leaves k1 as it was: no preemption is noticed.",
        kernel: Kernel { sets_k1: false, ..Kernel::PUBLISHED },
        ..MUTANT
    },
    Source {
        name: "figure-11-no-refill-k1",
        about: "The kernel leaves k1 as it was on the way back from a TLB refill.",
        kernel: Kernel { refill_sets_k1: false, ..Kernel::PUBLISHED },
        ..MUTANT
    },
    Source {
        name: "figure-11-no-handler",
        about: "No handler starts tst again when its store faults.",
        kernel: Kernel { handler: Handler::None, ..Kernel::PUBLISHED },
        expected: Verdict::Violated(Harm::Crash),
        ..MUTANT
    },
    Source {
        name: "figure-11-handler-resumes-at-store",
        about: "The handler lets tst go on at the store that faulted.",
        kernel: Kernel { handler: Handler::Resume, ..Kernel::PUBLISHED },
        expected: Verdict::Violated(Harm::Stuck),
        ..MUTANT
    },
    Source {
        name: "figure-11-argument-spoiled",
        about: "The argument is no longer in a0 when tst starts again.",
        text: ARGUMENT_SPOILED,
        expected: Verdict::Violated(Harm::Crash),
        ..MUTANT
    },
    Source {
        name: "figure-11-two-processors",
        about: "Two processes run at the same time: no kernel comes between the load and the store of one of them.",
        processors: 2,
        ..MUTANT
    },
];
