//! The kernel: its version, its parameters, and its settings.

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
    one("kernel.command_line", kernel::command_line, "The kernel's command line.").affects(
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
        "The preemption model: none, voluntary, full, lazy or rt; two of them where only the build is known.",
    )
    .affects(
        &[ContextSwitch, KernelCode],
        "full preemption counts in every kernel lock and switches in the middle of calls",
    ),
    FactSpec {
        name: "kernel.entry_features",
        about: "The features of the cpu.feature facts that this kernel lists among its flags.",
        effect: None,
        reader: Reader::Features(processor::used_by_kernel),
    }
    .affects(&[KernelEntry], "a feature that the kernel does not use changes nothing"),
    one(
        "kernel.randomize_va_space",
        kernel::randomize_va_space,
        "Address space randomization: 0 none, 1 all but the heap, 2 all.",
    ),
    one(
        "kernel.moved",
        kernel_base::moved,
        "Whether the kernel was moved from its link address, by KASLR or its loader.",
    ),
    one(
        "abi.ia32",
        kernel::ia32,
        "Whether 32-bit system calls work: enabled or disabled by the command line, or built in.",
    )
    .affects(&[CompatEntry], "where the 32-bit ABI is disabled, its entries fault"),
    one("uptime", moments::uptime, "Seconds since the kernel started."),
    number("kernel.tainted", "/proc/sys/kernel/tainted", "The kernel's taint flags."),
    one(
        "kernel.tick_rate",
        clock::tick_rate,
        "The tick rate per second (CONFIG_HZ), from the resolution of the coarse clock.",
    )
    .affects_everything(
        "each tick interrupts, which widens the spread; and the tick bounds how long a task runs",
    ),
    one("kernel.idle_tick_stops", kernel::idle_tick, "Whether idle processors stop the tick.")
        .affects(&[IdleExit], "a wake-up starts the tick again"),
    parameter(
        "kernel.parameter.nohz_full",
        "nohz_full",
        "The processors of the nohz_full= parameter, which run without a tick.",
    ),
    parameter(
        "kernel.parameter.idle",
        "idle",
        "The idle= parameter of the command line: poll, halt, nomwait.",
    )
    .affects(&[IdleExit], "a processor that polls needs no wake-up"),
    parameter(
        "kernel.parameter.randomize_kstack_offset",
        "randomize_kstack_offset",
        "Whether the kernel randomizes its stack offset on each system call.",
    )
    .affects(&[SystemCall], "each call draws a random number and shifts its stack"),
    parameter(
        "kernel.parameter.init_on_alloc",
        "init_on_alloc",
        "Whether the kernel zeroes the memory that it allocates.",
    )
    .affects(&[KernelAllocation], "the kernel zeroes what it allocates, as open, fork and pipe do"),
    parameter("kernel.parameter.threadirqs", "threadirqs", "Whether interrupts are handled by threads."),
    number(
        "kernel.sched_autogroup",
        "/proc/sys/kernel/sched_autogroup_enabled",
        "Whether the scheduler divides processor time among sessions instead of tasks.",
    )
    .affects(&[ContextSwitch], "the session of a task sets how much time it gets under load"),
    number(
        "kernel.sched_slice",
        "/sys/kernel/debug/sched/base_slice_ns",
        "The shortest time that a task runs before it is preempted, in nanoseconds.",
    )
    .affects(
        &[ContextSwitch, LockContention],
        "the slice sets how often the scheduler preempts the owner of a lock",
    ),
    number(
        "kernel.sched_rr_slice",
        "/proc/sys/kernel/sched_rr_timeslice_ms",
        "The time slice of a SCHED_RR task in milliseconds.",
    ),
    number(
        "kernel.sched_rt_runtime",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "Microseconds of each period that real-time tasks may take.",
    ),
    flag(
        "kernel.numa_balancing",
        "/proc/sys/kernel/numa_balancing",
        "Whether the kernel moves pages to the node that uses them.",
    )
    .affects(&[PageFault, MemoryAccess], "the kernel unmaps pages now and then to see which task faults"),
    flag(
        "kernel.timer_migration",
        "/proc/sys/kernel/timer_migration",
        "Whether the kernel moves timers of idle processors to busy ones.",
    ),
    flag("kernel.watchdog", "/proc/sys/kernel/watchdog", "Whether the lockup watchdogs are on."),
    flag("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog", "Whether the NMI watchdog is on.")
        .affects(&[PerformanceCounter], "the watchdog takes one counter away"),
    flag(
        "kernel.split_lock_mitigate",
        "/proc/sys/kernel/split_lock_mitigate",
        "Whether the kernel delays a thread that locks across two cache lines.",
    )
    .affects(&[SplitLock], "each split lock that is detected takes milliseconds"),
    flag(
        "kernel.bpf_jit",
        "/proc/sys/net/core/bpf_jit_enable",
        "Whether the kernel compiles BPF programs and seccomp filters (JIT).",
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
    one("kernel.tracer", tracing::tracer, "The active tracer of ftrace; nop is none.")
        .affects(&[KernelEntry, SystemCall, KernelCode], "each kernel function calls the tracer"),
    one("kernel.traced_system_calls", tracing::system_calls, "Whether events of system calls are traced.")
        .affects(&[SystemCall], "each call takes the slow path and writes a record"),
    one("kernel.kprobes", tracing::kprobes, "The number of kprobes in the kernel.")
        .affects(&[KernelCode], "each hit of a kprobe takes a jump or a breakpoint, and runs its handler"),
    number(
        "kernel.task_delayacct",
        "/proc/sys/kernel/task_delayacct",
        "Whether the kernel accounts the delays of tasks.",
    )
    .affects(&[ContextSwitch, WakeUp], "each wait reads the clock"),
];
