//! Namespaces of a process.

use tollgate_model::Boundary::{ClockSource, ProcessCreation, ProcessExit, VdsoClock};

use super::{Entry, about, affects, covers};

pub(crate) static ENTRIES: &[Entry] = &[
    about("NAMESPACES", "without it there are no containers"),
    about("UTS_NS", "a host name of its own"),
    about("IPC_NS", "queues, semaphores and shared memory of System V of its own"),
    about("USER_NS", "user numbers of its own: containers without root"),
    affects(
        "PID_NS",
        &[ProcessCreation, ProcessExit],
        "a process in a namespace has a number in each above it",
        "kernel/pid.c",
    ),
    about("NET_NS", "network devices, addresses and routes of its own"),
    affects(
        "TIME_NS",
        &[VdsoClock, ClockSource],
        "the vDSO adds the namespace's offset",
        "lib/vdso/gettimeofday.c",
    ),
    about("CHECKPOINT_RESTORE", "what is needed to stop a process and go on elsewhere"),
    covers("PROC_CHILDREN"),
];
