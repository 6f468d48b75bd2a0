//! Starting a program the old way.

use tollgate_model::Boundary::{
    AddressSpaceCopy, ContextSwitch, Exec, KernelAllocation, KernelCode, PageFault, ProcessCreation,
    ProcessExit, Tlb, WakeUp,
};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe, word};

use super::creation::What;
use super::image::Image;
use super::memory::with;
use super::posix_spawn::cases_of_images;
use super::stage::arm;

pub(super) static PROBE: Probe = Probe {
    name: "processes/fork-exec",
    operation: "One program started by fork and execve from a process with so much memory, until the program, which \
                ends at once, is waited for.",
    crosses: &[
        ProcessCreation,
        AddressSpaceCopy,
        Exec,
        PageFault,
        Tlb,
        KernelAllocation,
        KernelCode,
        ContextSwitch,
        WakeUp,
        ProcessExit,
    ],
    timed: |_| Timed::Whole("fork(3), execve(2)"),
    cases: || with(cases_of_images(), "until", &["gone"]),
    arm: |_, params| arm(What::ForkExec(Image::of(word(params, "image"))), params),
    ..PLAIN
};
