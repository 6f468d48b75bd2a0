//! Starting a program through the shell.

use tollgate_model::Boundary::{
    AddressSpaceCopy, ContextSwitch, Exec, KernelAllocation, KernelCode, PageFault, ProcessCreation,
    ProcessExit, Tlb, WakeUp,
};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::creation::What;
use super::stage::arm;

pub(super) static PROBE: Probe = Probe {
    name: "processes/shell",
    operation: "One program without a C library started by fork, execve of /bin/sh -c and whatever that does, until \
                the shell is waited for: system(3).",
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
    timed: |_| Timed::Whole("fork(3), execve(2) of /bin/sh"),
    arm: |_, params| arm(What::Shell, params),
    ..PLAIN
};
