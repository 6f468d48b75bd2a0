//! The kernel: which it is, how it was started, and what it does beside the crossings themselves.

use super::{FactSpec, Reader, flag, number, one, parameter};
use crate::{clock, kernel, kernel_base, moments, processor, tracing};

pub(super) const FACTS: &[FactSpec] = &[
    one("kernel.release", kernel::release, "The kernel's release, as uname -r shows it.")
        .moves("everything that enters the kernel: releases change entry code, mitigations and defaults"),
    one("kernel.version", kernel::version, "The kernel's build, as uname -v shows it."),
    one("kernel.command_line", kernel::command_line, "The parameters that the kernel was started with.")
        .moves("kernel entry: mitigations=, nopti, spectre_v2= and others switch what each crossing does"),
    one(
        "kernel.preempt_dynamic",
        kernel::preempt_dynamic,
        "Whether the kernel can change its preemption model while it runs.",
    ),
    one(
        "kernel.preemption",
        kernel::preemption,
        "The preemption model: none, voluntary, full, lazy or rt; two of them where only the \
         build is told.",
    )
    .moves(
        "locks and context switches: full preemption counts in every lock and switches in the \
         middle of calls",
    ),
    FactSpec {
        name: "kernel.entry_features",
        about: "The processor's features of the cpu.feature facts that this kernel lists among its flags.",
        moves: None,
        reader: Reader::Features(processor::used_by_kernel),
    }
    .moves("kernel entry: what the processor has and the kernel does not use changes nothing"),
    one(
        "kernel.randomize_va_space",
        kernel::randomize_va_space,
        "What is placed at random in address spaces: 0 nothing, 1 all but the heap, 2 all.",
    ),
    one(
        "kernel.moved",
        kernel_base::moved,
        "Whether the kernel is elsewhere than it was linked to, by its address or what its boot left.",
    ),
    one(
        "abi.ia32",
        kernel::ia32,
        "Whether 32-bit system calls work: enabled or disabled by the command line, or built in.",
    )
    .moves("int 0x80 and 32-bit gates: where it is disabled they fault"),
    one("uptime", moments::uptime, "Seconds since the kernel started."),
    number(
        "kernel.tainted",
        "/proc/sys/kernel/tainted",
        "What has made this kernel another than its sources: a bit each.",
    ),
    one(
        "kernel.tick_rate",
        clock::tick_rate,
        "The ticks a second, CONFIG_HZ, as the coarse clock's steps tell.",
    )
    .moves(
        "the spread of every price: each tick interrupts; and how long a task runs before it is switched out",
    ),
    one("kernel.idle_tick_stops", kernel::idle_tick, "Whether idle processors stop the tick.")
        .moves("waking another processor: the tick is started again"),
    parameter(
        "kernel.parameter.nohz_full",
        "nohz_full",
        "The processors that were asked to run without a tick.",
    ),
    parameter(
        "kernel.parameter.idle",
        "idle",
        "How idle processors were asked to wait: poll, halt, nomwait.",
    )
    .moves("waking another processor: one that polls need not be woken"),
    parameter(
        "kernel.parameter.randomize_kstack_offset",
        "randomize_kstack_offset",
        "Whether the kernel's stack is moved at random on each system call.",
    )
    .moves("system calls: a random number is drawn and the stack moved on each"),
    parameter(
        "kernel.parameter.init_on_alloc",
        "init_on_alloc",
        "Whether the kernel zeroes whatever memory it takes for itself.",
    )
    .moves("calls that allocate, such as open, fork and pipe: what they take is zeroed first"),
    parameter("kernel.parameter.threadirqs", "threadirqs", "Whether interrupts are handled by threads."),
    number(
        "kernel.sched_autogroup",
        "/proc/sys/kernel/sched_autogroup_enabled",
        "Whether sessions share the processor's time, rather than tasks.",
    )
    .moves("switches and every price under load: how much time a task gets depends on its session"),
    number(
        "kernel.sched_slice",
        "/sys/kernel/debug/sched/base_slice_ns",
        "How long a task runs at least before it is switched out, in nanoseconds.",
    )
    .moves("context switches and locks under contention: who holds a lock is preempted so often"),
    number(
        "kernel.sched_rr_slice",
        "/proc/sys/kernel/sched_rr_timeslice_ms",
        "The turn of a real-time task under SCHED_RR in milliseconds.",
    ),
    number(
        "kernel.sched_rt_runtime",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "Microseconds of each period that real-time tasks may take.",
    ),
    flag(
        "kernel.numa_balancing",
        "/proc/sys/kernel/numa_balancing",
        "Whether pages are moved to the node that uses them.",
    )
    .moves("page faults and memory: pages are unmapped now and then to see who faults"),
    flag(
        "kernel.timer_migration",
        "/proc/sys/kernel/timer_migration",
        "Whether timers of idle processors are moved to busy ones.",
    ),
    flag(
        "kernel.watchdog",
        "/proc/sys/kernel/watchdog",
        "Whether a timer looks for processors that are stuck.",
    ),
    flag(
        "kernel.nmi_watchdog",
        "/proc/sys/kernel/nmi_watchdog",
        "Whether a counter's interrupt looks for processors that are stuck.",
    )
    .moves("counted events: it takes one counter away"),
    flag(
        "kernel.split_lock_mitigate",
        "/proc/sys/kernel/split_lock_mitigate",
        "Whether a locked instruction across two lines makes its thread wait.",
    )
    .moves("split locks: each that is detected costs milliseconds"),
    flag(
        "kernel.bpf_jit",
        "/proc/sys/net/core/bpf_jit_enable",
        "Whether BPF programs, and with them seccomp filters, are compiled.",
    )
    .moves("system calls under seccomp: an interpreted filter costs several times a compiled one"),
    number(
        "kernel.bpf_jit_harden",
        "/proc/sys/net/core/bpf_jit_harden",
        "Whether constants in compiled BPF programs are blinded.",
    )
    .moves("system calls under seccomp: filters that are blinded are longer"),
    flag(
        "kernel.bpf_stats",
        "/proc/sys/kernel/bpf_stats_enabled",
        "Whether each run of a BPF program is timed.",
    )
    .moves("whatever runs a BPF program: two readings of the clock each time"),
    flag(
        "kernel.ftrace",
        "/proc/sys/kernel/ftrace_enabled",
        "Whether functions of the kernel can be traced.",
    ),
    one("kernel.tracer", tracing::tracer, "The tracer that is at work in the kernel; nop is none.")
        .moves("everything that enters the kernel: a tracer is called on each function"),
    one("kernel.traced_system_calls", tracing::system_calls, "Whether events of system calls are traced.")
        .moves("system calls: each leaves the fast path and writes a record"),
    one("kernel.kprobes", tracing::probes, "How many probes are in the kernel's code.")
        .moves("what passes a probe: a jump or a breakpoint, and whatever the probe does"),
    number(
        "kernel.task_delayacct",
        "/proc/sys/kernel/task_delayacct",
        "Whether the time that tasks wait is kept account of.",
    )
    .moves("context switches and waiting: clocks are read in each"),
];
