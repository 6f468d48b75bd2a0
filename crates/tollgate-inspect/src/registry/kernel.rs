use tollgate_model::Boundary::{
    CompatEntry, ContextSwitch, Exec, IdleExit, KernelAllocation, KernelCode, KernelEntry, KernelImage,
    LockContention, MemoryAccess, PageFault, PathLookup, PerformanceCounter, ProcessMemory, SeccompFilter,
    SignalSend, Socket, SplitLock, SystemCall, WakeUp,
};

use crate::bpf::Area;
use crate::machine::Machine;
use crate::{bpf, clock, kernel, kernel_base, moments, processor, tracing, uname};

facts! {
    pub(super) FACTS
    "kernel.release" Of(uname::release_text) "The kernel's release, as uname -r shows it."
        [KernelEntry, SystemCall, KernelCode, KernelImage, ProcessMemory]
        "releases change entry code, mitigations and defaults";
    "kernel.version" Of(uname::version_text) "The kernel's build, as uname -v shows it.";
    "kernel.command_line" Of(kernel::command_line_text) "The kernel's command line."
        [KernelEntry, KernelCode, ContextSwitch]
        "mitigations=, nopti, spectre_v2= and others switch what each crossing does";
    "kernel.preempt_dynamic" Of(kernel::preempt_dynamic)
        "Whether the kernel can change its preemption model while it runs.";
    "kernel.preemption" Of(kernel::preemption)
        "The preemption model: none, voluntary, full, lazy or rt; two of them where only the build is known."
        [ContextSwitch, KernelCode]
        "full preemption counts in every kernel lock and switches in the middle of calls";
    "kernel.entry_features" Features(processor::used_by_kernel)
        "The features of the cpu.feature facts that this kernel lists among its flags."
        [KernelEntry] "a feature that the kernel does not use changes nothing";
    "kernel.randomize_va_space" Number("/proc/sys/kernel/randomize_va_space")
        "Address space randomization: 0 none, 1 all but the heap, 2 all.";
    "kernel.moved" Of(kernel_base::moved)
        "Whether the kernel was moved from its link address, by KASLR or its loader.";
    "abi.ia32" X86(kernel::ia32)
        "Whether 32-bit system calls work: enabled or disabled by the command line, or built in."
        [CompatEntry] "where the 32-bit ABI is disabled, its entries fault";
    "uptime" Of(moments::uptime) "Seconds since the kernel started.";
    "kernel.tainted" Number("/proc/sys/kernel/tainted") "The kernel's taint flags.";
    "kernel.tick_rate" Of(clock::tick_rate)
        "The tick rate per second (CONFIG_HZ), from the resolution of the coarse clock."
        * "each tick interrupts, which widens the spread; and the tick bounds how long a task runs";
    "kernel.idle_tick_stops" Of(kernel::idle_tick) "Whether idle processors stop the tick."
        [IdleExit] "a wake-up starts the tick again";
    "kernel.parameter.nohz_full" Parameter("nohz_full")
        "The processors of the nohz_full= parameter, which run without a tick.";
    "kernel.parameter.idle" Parameter("idle") "The idle= parameter of the command line: poll, halt, nomwait."
        [IdleExit] "a processor that polls needs no wake-up";
    "kernel.parameter.randomize_kstack_offset" Parameter("randomize_kstack_offset")
        "Whether the kernel randomizes its stack offset on each system call."
        [SystemCall] "each call draws a random number and shifts its stack";
    "kernel.parameter.init_on_alloc" Parameter("init_on_alloc")
        "Whether the kernel zeroes the memory that it allocates."
        [KernelAllocation] "the kernel zeroes what it allocates, as open, fork and pipe do";
    "kernel.parameter.threadirqs" Parameter("threadirqs") "Whether interrupts are handled by threads.";
    "kernel.sched_autogroup" Number("/proc/sys/kernel/sched_autogroup_enabled")
        "Whether the scheduler divides processor time among sessions instead of tasks."
        [ContextSwitch] "the session of a task determines how much time it gets under load";
    "kernel.sched_slice" Number("/sys/kernel/debug/sched/base_slice_ns")
        "The shortest time that a task runs before it is preempted, in nanoseconds."
        [ContextSwitch, LockContention] "the slice sets how often the scheduler preempts the owner of a lock";
    "kernel.sched_rr_slice" Number("/proc/sys/kernel/sched_rr_timeslice_ms")
        "The time slice of a SCHED_RR task in milliseconds.";
    "kernel.sched_rt_runtime" Number("/proc/sys/kernel/sched_rt_runtime_us")
        "Microseconds of each period that real-time tasks may take.";
    "kernel.sched_ext" Line("/sys/kernel/sched_ext/state")
        "Whether BPF programs schedule tasks in place of the kernel: enabled, disabled, or on the way to either."
        [ContextSwitch, WakeUp] "a scheduler in BPF decides on each switch and each wake-up";
    "kernel.numa_balancing" Flag("/proc/sys/kernel/numa_balancing")
        "Whether the kernel moves pages to the node that uses them."
        [PageFault, MemoryAccess] "the kernel unmaps pages now and then to see which task faults";
    "kernel.timer_migration" Flag("/proc/sys/kernel/timer_migration")
        "Whether the kernel moves timers of idle processors to busy ones.";
    "kernel.watchdog" Flag("/proc/sys/kernel/watchdog") "Whether the lockup watchdogs are on.";
    "kernel.nmi_watchdog" Flag("/proc/sys/kernel/nmi_watchdog") "Whether the NMI watchdog is on."
        [PerformanceCounter] "the watchdog takes one counter away";
    "kernel.split_lock_mitigate" X86(Machine::flag, "/proc/sys/kernel/split_lock_mitigate")
        "Whether the kernel delays a thread that locks across two cache lines."
        [SplitLock] "each split lock that is detected takes milliseconds";
    "kernel.bpf_jit" Flag("/proc/sys/net/core/bpf_jit_enable")
        "Whether the kernel compiles BPF programs and seccomp filters (JIT)."
        [SeccompFilter] "an interpreted filter takes several times as long as a compiled one";
    "kernel.bpf_jit_harden" Number("/proc/sys/net/core/bpf_jit_harden")
        "Whether constants in compiled BPF programs are blinded."
        [SeccompFilter] "blinded filters are longer";
    "kernel.bpf_stats" Flag("/proc/sys/kernel/bpf_stats_enabled")
        "Whether each run of a BPF program is timed."
        [SeccompFilter] "the kernel reads the clock twice around each run of a BPF program";
    "kernel.ftrace" Flag("/proc/sys/kernel/ftrace_enabled") "Whether functions of the kernel can be traced.";
    "kernel.tracer" Of(tracing::in_tracing, "current_tracer") "The active tracer of ftrace; nop is none."
        [KernelEntry, SystemCall, KernelCode] "each kernel function calls the tracer";
    "kernel.traced_system_calls" Of(tracing::system_calls) "Whether events of system calls are traced."
        [SystemCall] "each call takes the slow path and writes a record";
    "kernel.kprobes" Of(tracing::kprobes) "The number of kprobes in the kernel."
        [KernelCode] "each hit of a kprobe takes a jump or a breakpoint, and runs its handler";
    "kernel.trace_events" Of(tracing::events) "The events of ftrace that are on."
        [KernelCode] "each hit of an event writes a record";
    "kernel.live_patches" Of(tracing::live_patches) "The live patches that are on."
        [KernelCode] "each call of a patched function goes through ftrace to its replacement";
    "bpf.system_calls" Of(bpf::on, Area::SystemCalls)
        "The BPF programs that run at each system call, with their hooks; root may list them."
        [SystemCall] "each call takes the slow path and runs the program";
    "bpf.kernel" Of(bpf::on, Area::Kernel)
        "The BPF programs on functions and other tracepoints of the kernel."
        [KernelCode] "the program runs each time that the kernel passes its hook";
    "bpf.scheduler" Of(bpf::on, Area::Scheduler)
        "The BPF programs that schedule, or see tasks being scheduled, and other operations in BPF."
        [ContextSwitch, WakeUp] "the program runs at each switch or wake-up";
    "bpf.security" Of(bpf::on, Area::Security) "The BPF programs on hooks of security modules."
        [PathLookup, Exec, Socket, SignalSend] "the program runs wherever its hook permits something";
    "bpf.network" Of(bpf::on, Area::Network) "The BPF programs that see packets or sockets."
        [Socket] "the program runs for each packet, or each call on a socket";
    "bpf.other" Of(bpf::on, Area::Other) "The other BPF programs, such as those of devices and settings.";
    "kernel.task_delayacct" Number("/proc/sys/kernel/task_delayacct")
        "Whether the kernel accounts the delays of tasks."
        [ContextSwitch, WakeUp] "each wait reads the clock";
}
