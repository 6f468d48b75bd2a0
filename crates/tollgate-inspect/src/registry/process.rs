//! Settings of this process that affect its crossings.

use tollgate_model::Boundary::{
    Call, ContextSwitch, PageFault, ProcessMemory, Signal, Sleep, SystemCall, TimeStampCounter, Tlb,
    VdsoClock,
};

use super::{FactSpec, one};
use crate::{limits, process, rseq};

pub(super) const FACTS: &[FactSpec] = &[
    one(
        "seccomp.mode",
        process::seccomp_mode,
        "The seccomp mode of this process: disabled, strict or filter.",
    )
    .affects(&[SystemCall], "with a filter each call runs it and takes the slow path"),
    one("seccomp.filters", process::seccomp_filters, "How many seccomp filters each system call runs.")
        .affects(&[SystemCall], "every filter runs, unless the cache of verdicts answers"),
    one("process.no_new_privileges", process::no_new_privileges, "Whether no_new_privs is set."),
    one("process.tracer", process::tracer, "The process that traces this one; 0 is none.")
        .affects(&[SystemCall, Signal], "a tracer may stop each of them, with two switches every time"),
    one("process.user", process::user, "The effective user of this process."),
    one("process.capabilities", process::capabilities, "The effective capabilities, one bit each."),
    one(
        "process.personality",
        process::personality,
        "The bits of personality(2), such as 40000 for no address randomization.",
    ),
    one(
        "process.user_dispatch",
        process::user_dispatch,
        "Whether system calls of this process are dispatched to user mode.",
    )
    .affects(&[SystemCall], "each call becomes a signal"),
    one("process.policy", process::policy, "The scheduling policy of this process.")
        .affects_everything("no ordinary task preempts a real-time task, which narrows the spread"),
    one(
        "process.core_scheduling",
        process::core_scheduling,
        "Whether this process shares a core only with those of its own group.",
    )
    .affects(&[ContextSwitch], "siblings idle while tasks of other groups run"),
    one("process.timer_slack", process::timer_slack, "The timer slack of this process in nanoseconds.")
        .affects(&[Sleep], "the kernel may end a sleep or a wait that much later"),
    one("process.time_stamp_counter", process::time_stamp_counter, "Whether RDTSC may be executed.")
        .affects(&[TimeStampCounter, VdsoClock], "where RDTSC is forbidden, each reading faults"),
    one("process.huge_pages", process::huge_pages, "Whether this process may have transparent huge pages.")
        .affects(&[PageFault, Tlb, ProcessMemory], "without huge pages each page is a fault"),
    one(
        "process.thread_features",
        process::thread_features,
        "Which of shadow stacks (shstk, wrss) this process uses.",
    )
    .affects(&[Call, Signal], "each of them writes and reads the shadow stack"),
    one(
        "rseq.registered",
        rseq::registered,
        "Whether an area for restartable sequences is registered for this thread.",
    )
    .affects(
        &[ContextSwitch, Signal],
        "the kernel looks at the area and writes the processor's number on the way back",
    ),
    one("rseq.feature_size", rseq::feature_size, "The bytes of that area that the kernel supports."),
    one(
        "process.limit.locked_memory",
        |m| limits::soft(m, "Max locked memory", "RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK),
        "The bytes that may be locked in memory.",
    ),
    one(
        "process.limit.processes",
        |m| limits::soft(m, "Max processes", "RLIMIT_NPROC", libc::RLIMIT_NPROC),
        "The processes that this user may have.",
    ),
    one(
        "process.limit.files",
        |m| limits::soft(m, "Max open files", "RLIMIT_NOFILE", libc::RLIMIT_NOFILE),
        "The files that may be open.",
    ),
    one(
        "process.limit.stack",
        |m| limits::soft(m, "Max stack size", "RLIMIT_STACK", libc::RLIMIT_STACK),
        "The bytes that the stack may grow to.",
    ),
    one(
        "process.limit.address_space",
        |m| limits::soft(m, "Max address space", "RLIMIT_AS", libc::RLIMIT_AS),
        "The bytes of address space.",
    ),
];
