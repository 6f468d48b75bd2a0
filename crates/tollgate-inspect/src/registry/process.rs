use tollgate_model::Boundary::{
    Call, ContextSwitch, PageFault, ProcessMemory, Signal, Sleep, SystemCall, TimeStampCounter, Tlb,
    VdsoClock,
};

use crate::machine::Machine;
use crate::{calls, process, rseq};

facts! {
    pub(super) FACTS
    "seccomp.mode" Of(process::seccomp_mode) "The seccomp mode of this process: disabled, strict or filter."
        [SystemCall] "with a filter each call runs it and takes the slow path";
    "seccomp.filters" Of(process::number, "Seccomp_filters") "How many seccomp filters each system call runs."
        [SystemCall] "every filter runs, unless the cache of verdicts answers";
    "process.no_new_privileges" Of(process::no_new_privileges) "Whether no_new_privs is set.";
    "process.tracer" Of(process::number, "TracerPid") "The process that traces this one; 0 is none."
        [SystemCall, Signal] "a tracer may stop each of them, with two switches every time";
    "process.user" Of(process::user) "The effective user of this process.";
    "process.capabilities" Of(process::capabilities) "The effective capabilities, one bit each.";
    "process.personality" Line("/proc/self/personality")
        "The bits of personality(2), such as 40000 for no address randomization.";
    "process.user_dispatch" Of(process::user_dispatch)
        "Whether system calls of this process are dispatched to user mode."
        [SystemCall] "each call becomes a signal";
    "process.policy" Of(process::policy) "The scheduling policy of this process."
        * "no ordinary task preempts a real-time task, which narrows the spread";
    "process.core_scheduling" Of(Machine::call, "prctl(2) PR_SCHED_CORE", calls::has_core_cookie)
        "Whether this process shares a core only with those of its own group."
        [ContextSwitch] "siblings idle while tasks of other groups run";
    "process.timer_slack" Of(process::timer_slack) "The timer slack of this process in nanoseconds."
        [Sleep] "the kernel may end a sleep or a wait that much later";
    "process.time_stamp_counter" Of(Machine::call, "prctl(2) PR_GET_TSC", calls::may_read_tsc)
        "Whether the counter may be read (RDTSC, CNTVCT_EL0)."
        [TimeStampCounter, VdsoClock] "where that is forbidden, each reading faults";
    "process.huge_pages" Of(process::huge_pages) "Whether this process may have transparent huge pages."
        [PageFault, Tlb, ProcessMemory] "without huge pages each page is a fault";
    "process.thread_features" Of(process::thread_features)
        "Which of shadow stacks (shstk, wrss) this process uses."
        [Call, Signal] "each of them writes and reads the shadow stack";
    "rseq.registered" Of(Machine::call, "rseq(2) with an area that cannot be", calls::has_rseq)
        "Whether an area for restartable sequences is registered for this thread."
        [ContextSwitch, Signal]
        "the kernel looks at the area and writes the processor's number on the way back";
    "rseq.feature_size" Of(rseq::feature_size) "The bytes of that area that the kernel supports.";
    "process.limit.locked_memory" Limit("Max locked memory", "RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK)
        "The bytes that may be locked in memory.";
    "process.limit.processes" Limit("Max processes", "RLIMIT_NPROC", libc::RLIMIT_NPROC)
        "The processes that this user may have.";
    "process.limit.files" Limit("Max open files", "RLIMIT_NOFILE", libc::RLIMIT_NOFILE)
        "The files that may be open.";
    "process.limit.stack" Limit("Max stack size", "RLIMIT_STACK", libc::RLIMIT_STACK)
        "The bytes that the stack may grow to.";
    "process.limit.address_space" Limit("Max address space", "RLIMIT_AS", libc::RLIMIT_AS)
        "The bytes of address space.";
}
