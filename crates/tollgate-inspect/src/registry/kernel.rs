//! The kernel: which it is, how it was started, and what it does beside the crossings themselves.

use tollgate_model::Boundary::{
    CompatEntry, ContextSwitch, IdleExit, KernelAllocation, KernelCode, KernelEntry, KernelImage,
    LockContention, MemoryAccess, PageFault, PerformanceCounter, ProcessMemory, SeccompFilter, SplitLock,
    SystemCall, WakeUp,
};

use super::{FactSpec, Reader, flag, number, one, parameter};
use crate::{clock, kernel, kernel_base, moments, processor, tracing};

pub(super) const FACTS: &[FactSpec] = &[
    one("kernel.release", kernel::release, "The kernel's release, as uname -r shows it.").affects(
        &[KernelEntry, SystemCall, KernelCode, KernelImage, ProcessMemory],
        "releases change entry code, mitigations and defaults",
    ),
    one("kernel.version", kernel::version, "The kernel's build, as uname -v shows it."),
    one("kernel.command_line", kernel::command_line, "The parameters that the kernel was started with.")
        .affects(
            &[KernelEntry, KernelCode, ContextSwitch],
            "mitigations=, nopti, spectre_v2= and others switch what each crossing does",
        ),
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
    .affects(
        &[ContextSwitch, KernelCode],
        "full preemption counts in every kernel lock and switches in the middle of calls",
    ),
    FactSpec {
        name: "kernel.entry_features",
        about: "The processor's features of the cpu.feature facts that this kernel lists among its flags.",
        effect: None,
        reader: Reader::Features(processor::used_by_kernel),
    }
    .affects(&[KernelEntry], "a feature that the kernel does not use changes nothing"),
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
    .affects(&[CompatEntry], "where the 32-bit ABI is disabled, its entries fault"),
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
    .affects_everything(
        "each tick interrupts, which widens the spread; and the tick bounds how long a task runs",
    ),
    one("kernel.idle_tick_stops", kernel::idle_tick, "Whether idle processors stop the tick.")
        .affects(&[IdleExit], "a wake-up starts the tick again"),
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
    .affects(&[IdleExit], "a processor that polls needs no wake-up"),
    parameter(
        "kernel.parameter.randomize_kstack_offset",
        "randomize_kstack_offset",
        "Whether the kernel's stack is moved at random on each system call.",
    )
    .affects(&[SystemCall], "each call draws a random number and shifts its stack"),
    parameter(
        "kernel.parameter.init_on_alloc",
        "init_on_alloc",
        "Whether the kernel zeroes whatever memory it takes for itself.",
    )
    .affects(&[KernelAllocation], "the kernel zeroes what it allocates, as open, fork and pipe do"),
    parameter("kernel.parameter.threadirqs", "threadirqs", "Whether interrupts are handled by threads."),
    number(
        "kernel.sched_autogroup",
        "/proc/sys/kernel/sched_autogroup_enabled",
        "Whether sessions share the processor's time, rather than tasks.",
    )
    .affects(&[ContextSwitch], "the session of a task sets how much time it gets under load"),
    number(
        "kernel.sched_slice",
        "/sys/kernel/debug/sched/base_slice_ns",
        "How long a task runs at least before it is switched out, in nanoseconds.",
    )
    .affects(
        &[ContextSwitch, LockContention],
        "the slice sets how often the scheduler preempts the owner of a lock",
    ),
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
    .affects(&[PageFault, MemoryAccess], "the kernel unmaps pages now and then to see which task faults"),
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
    .affects(&[PerformanceCounter], "the watchdog takes one counter away"),
    flag(
        "kernel.split_lock_mitigate",
        "/proc/sys/kernel/split_lock_mitigate",
        "Whether a locked instruction across two lines makes its thread wait.",
    )
    .affects(&[SplitLock], "each split lock that is detected takes milliseconds"),
    flag(
        "kernel.bpf_jit",
        "/proc/sys/net/core/bpf_jit_enable",
        "Whether BPF programs, and with them seccomp filters, are compiled.",
    )
    .affects(&[SeccompFilter], "an interpreted filter takes several times as long as a compiled one"),
    number(
        "kernel.bpf_jit_harden",
        "/proc/sys/net/core/bpf_jit_harden",
        "Whether constants in compiled BPF programs are blinded.",
    )
    .affects(&[SeccompFilter], "blinded filters are longer"),
    flag(
        "kernel.bpf_stats",
        "/proc/sys/kernel/bpf_stats_enabled",
        "Whether each run of a BPF program is timed.",
    )
    .affects(&[SeccompFilter], "the kernel reads the clock twice around each run of a BPF program"),
    flag(
        "kernel.ftrace",
        "/proc/sys/kernel/ftrace_enabled",
        "Whether functions of the kernel can be traced.",
    ),
    one("kernel.tracer", tracing::tracer, "The tracer that is at work in the kernel; nop is none.")
        .affects(&[KernelEntry, SystemCall, KernelCode], "each kernel function calls the tracer"),
    one("kernel.traced_system_calls", tracing::system_calls, "Whether events of system calls are traced.")
        .affects(&[SystemCall], "each call takes the slow path and writes a record"),
    one("kernel.kprobes", tracing::benchmarks, "How many benchmarks are in the kernel's code.").affects(
        &[KernelCode],
        "each pass of a benchmark is a jump or a breakpoint, and the work of the benchmark",
    ),
    number(
        "kernel.task_delayacct",
        "/proc/sys/kernel/task_delayacct",
        "Whether the time that tasks wait is kept account of.",
    )
    .affects(&[ContextSwitch, WakeUp], "each wait reads the clock"),
];
