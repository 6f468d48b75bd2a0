//! The programs of Machida and Shinohara, "The Implementation of user level test-and-set on PS2 Linux" (Sony Research Forum
//! 2000), as printed with their delay slots, and the methods that they were compared with.

use crate::search::Harm;
use crate::subject::{Group, Verdict};

use super::assembler::assemble;
use super::kernel::Kernel;
use super::lines::Lines;
use super::study::{Study, TWO};

const FIGURE_2: &str = "
        lw      v0,(a0)
        li      t0,1
        bnez    v0,1f
        nop
        sw      t0,(a0)
1:      jr      ra
        nop
";

const FIGURE_4: &str = "
0:      ll      v0,(a0)
        li      t0,1
        bnez    v0,1f
        nop
        sc      t0,(a0)
        beqz    t0,0b
        nop
1:      jr      ra
        nop
";

const FIGURE_5: &str = "
        di
1:      b       1b
        nop
";

const FIGURE_8: &str = "
start:  lui     t0,%hi(preempted)
        addiu   t0,%lo(preempted)
        sw      zero,(t0)
        lw      v0,(a0)
        li      t1,1
        bnez    v0,1f
        nop
        sw      t1,(a0)
        lw      t2,(t0)
        nop
        bnez    t2,start
        nop
1:      jr      ra
        nop
";

const FIGURE_9: &str = "
        move    k1,a0
        lw      v0,(a0)
        nop
        bnez    v0,1f
        nop
        li      t0,1
        sw      t0,(k1)
1:      jr      ra
        nop
";

pub(super) const FIGURE_11: &str = "
start:  move    k1,a0
        lw      v0,(a0)
        li      t0,1
        bnez    v0,1f
        nop
        bne     k1,a0,start
        nop
        sw      t0,(k1)
1:      jr      ra
        nop
";

const DI_EI: &str = "
        li      t0,1
        di
        lw      v0,(a0)
        nop
        bnez    v0,1f
        nop
        sw      t0,(a0)
1:      ei
        jr      ra
        nop
";

const SYSTEM_CALL: &str = "
        syscall
        jr      ra
        nop
";

pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) group: Group,
    pub(super) text: &'static str,
    pub(super) expected: Verdict,
    pub(super) kernel: Kernel,
    pub(super) locks: u8,
    pub(super) processors: u8,
}

/// A published program on the published kernel and one processor, which is correct.
pub(super) const PUBLISHED: Source = Source {
    name: "",
    about: "",
    group: Group::Published,
    text: "",
    expected: Verdict::Holds,
    kernel: Kernel::PUBLISHED,
    locks: 1,
    processors: 1,
};

macro_rules! sources {
    ($list:ident: $($name:literal: $source:expr; $about:literal;)*) => {
        pub(super) const $list: &[Source] = &[$(Source { name: $name, about: $about, ..$source },)*];
    };
}
pub(super) use sources;

sources! {
    PROGRAMS:
    "figure-2": Source { text: FIGURE_2, expected: Verdict::Violated(Harm::Exclusion), ..PUBLISHED };
        "Load, test, store: nothing reports a preemption between them.";
    "figure-4": Source { text: FIGURE_4, ..PUBLISHED };
        "Load linked, store conditional, which other MIPS processors have and the PlayStation 2 lacks.";
    "figure-5": Source { text: FIGURE_5, expected: Verdict::Violated(Harm::Stuck), ..PUBLISHED };
        "A user who may disable interrupts can halt the machine.";
    "figure-8": Source { text: FIGURE_8, expected: Verdict::Violated(Harm::LostLock), ..PUBLISHED };
        "A flag reports a preemption after the store, which is not undone.";
    "figure-9": Source { text: FIGURE_9, ..PUBLISHED };
        "The store goes through k1, which the kernel has invalidated if it ran meanwhile.";
    "figure-11": Source { text: FIGURE_11, ..PUBLISHED };
        "The store goes through k1, and a test of k1 before it spares most of the faults.";
    "di-ei": Source { text: DI_EI, ..PUBLISHED };
        "Interrupts are disabled from the load to the store.";
    "system-call": Source { text: SYSTEM_CALL, ..PUBLISHED };
        "The kernel loads and stores, and no process runs meanwhile.";
    "several-locks": Source { text: FIGURE_11, locks: 2, ..PUBLISHED };
        "Two words are taken one after the other, each by figure 11, and given back in turn.";
}

impl Source {
    /// Assembles the program. A test checks that none of these is wrong.
    pub(super) fn study(&self) -> Option<Study> {
        let program = Lines::parse(self.text).and_then(|lines| assemble(&lines)).ok()?;
        Some(Study {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            group: self.group,
            expected: Some(self.expected),
            program,
            kernel: self.kernel,
            checks: Harm::ALL.to_vec(),
            locks: self.locks,
            setting: crate::Setting { processors: self.processors, ..TWO },
            corrections: vec![],
        })
    }
}
