//! Figure 11 with one change that breaks it. If any of these held, the model would be wrong.

use crate::search::Harm;
use crate::subject::{Group, Verdict};

use super::kernel::{Handler, Kernel};
use super::programs::{FIGURE_11, PUBLISHED, Source, sources};

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

/// The 1 to be stored is loaded into a0, in the delay slot of the test, and so also when the test branches back to the start.
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

/// Figure 11 as published; a mutant changes one part.
const MUTANT: Source = Source {
    group: Group::Mutant,
    text: FIGURE_11,
    expected: Verdict::Violated(Harm::Exclusion),
    ..PUBLISHED
};

sources! {
    MUTANTS:
    "figure-11-k1-after-load": Source { text: K1_AFTER_LOAD, ..MUTANT };
        "The address is put into k1 after the load: a preemption between them is forgotten.";
    "figure-11-no-trap": Source { text: NO_TRAP, ..MUTANT };
        "The store goes through a0: a preemption after the test is not noticed.";
    "figure-11-k1-not-set": Source { kernel: Kernel { sets_k1: false, ..Kernel::PUBLISHED }, ..MUTANT };
        "The kernel leaves k1 as it was: no preemption is noticed.";
    "figure-11-no-refill-k1": Source { kernel: Kernel { refill_sets_k1: false, ..Kernel::PUBLISHED }, ..MUTANT };
        "The kernel leaves k1 as it was on the way back from a TLB refill.";
    "figure-11-no-handler": Source { kernel: Kernel { handler: Handler::None, ..Kernel::PUBLISHED }, expected: Verdict::Violated(Harm::Crash), ..MUTANT };
        "No handler starts tst again when its store faults.";
    "figure-11-handler-resumes-at-store": Source { kernel: Kernel { handler: Handler::Resume, ..Kernel::PUBLISHED }, expected: Verdict::Violated(Harm::Stuck), ..MUTANT };
        "The handler lets tst go on at the store that faulted.";
    "figure-11-argument-spoiled": Source { text: ARGUMENT_SPOILED, expected: Verdict::Violated(Harm::Crash), ..MUTANT };
        "The argument is no longer in a0 when tst starts again.";
    "figure-11-two-processors": Source { processors: 2, ..MUTANT };
        "Two processes run at the same time: no kernel comes between the load and the store of one of them.";
}
