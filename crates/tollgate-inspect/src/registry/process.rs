//! What stands between this process and the kernel.

use super::{FactSpec, one};
use crate::{limits, process, rseq};

pub(super) const FACTS: &[FactSpec] = &[
    one(
        "seccomp.mode",
        process::seccomp_mode,
        "Whether this process's system calls are filtered: disabled, strict or filter.",
    )
    .moves("system calls: with a filter each runs it, and leaves the fast path"),
    one("seccomp.filters", process::seccomp_filters, "How many seccomp filters each system call runs.")
        .moves("system calls: every filter runs, unless its answer for a call is cached"),
    one(
        "process.no_new_privileges",
        process::no_new_privileges,
        "Whether executing can no longer gain privileges.",
    ),
    one("process.tracer", process::tracer, "The process that traces this one; 0 is nobody.")
        .moves("system calls and signals: a tracer may stop each of them, two switches every time"),
    one("process.user", process::user, "The user that this process acts as."),
    one(
        "process.capabilities",
        process::capabilities,
        "The privileges in effect, a bit for each capability.",
    ),
    one(
        "process.personality",
        process::personality,
        "The bits of personality(2), such as 40000 for no address randomization.",
    ),
    one(
        "process.user_dispatch",
        process::user_dispatch,
        "Whether system calls of this process are handed to itself.",
    )
    .moves("system calls: each becomes a signal"),
    one("process.policy", process::policy, "The scheduling policy of this process.")
        .moves("the spread of every price: real-time tasks are switched out by none of the others"),
    one(
        "process.core_scheduling",
        process::core_scheduling,
        "Whether this process shares a core only with those of its own group.",
    )
    .moves("context switches: siblings are made idle while others run"),
    one(
        "process.timer_slack",
        process::timer_slack,
        "How late timers of this process may be, in nanoseconds.",
    )
    .moves("sleeping and waiting with a time limit: so much is added"),
    one("process.time_stamp_counter", process::time_stamp_counter, "Whether RDTSC may be executed.")
        .moves("clocks: where it may not, each reading faults"),
    one("process.huge_pages", process::huge_pages, "Whether this process may have transparent huge pages.")
        .moves("page faults and memory: without them each page is a fault"),
    one(
        "process.thread_features",
        process::thread_features,
        "Which of shadow stacks (shstk, wrss) this process uses.",
    )
    .moves("calls, returns and signals: a shadow stack is written and read in each"),
    one(
        "rseq.registered",
        rseq::registered,
        "Whether an area for restartable sequences is registered for this thread.",
    )
    .moves(
        "context switches and signals: the kernel looks into it and writes the processor's \
         number on the way back",
    ),
    one("rseq.feature_size", rseq::feature_size, "The bytes of that area that the kernel knows of."),
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
