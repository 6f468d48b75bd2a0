use tollgate_model::Boundary::{
    ContextSwitch, Exception, KernelCode, KernelEntry, SeccompFilter, Socket, SystemCall,
};

const TRACE: &str = "kernel/trace/Kconfig";

entries! {
    FUNCTION_TRACER [KernelCode] "each function begins with room for a call, a nop while no tracer runs"
        ("Documentation/trace/ftrace-design.rst");
    DYNAMIC_FTRACE [KernelCode]
        "the room is a nop until it is used; without this, each function calls the tracer" (TRACE);
    FUNCTION_GRAPH_TRACER [KernelCode] "while it is used, returns are traced as well" (TRACE);
    FTRACE_SYSCALLS [SystemCall]
        "while a system call is traced, every task takes the slow path of all of them"
        ("kernel/tracepoint.c");
    IRQSOFF_TRACER [KernelCode, KernelEntry] "switching interrupts off and on calls a hook" (TRACE);
    PREEMPT_TRACER [KernelCode] "switching preemption off and on calls a hook" (TRACE);
    STACK_TRACER [KernelCode] "while it is used, each call looks for the deepest kernel stack" (TRACE);
    KBENCHMARKS [KernelCode] "where a kprobe is set, a trap or a jump replaces an instruction of the kernel"
        ("arch/Kconfig");
    UBENCHMARKS [Exception]
        "where a uprobe is set, a trap into the kernel replaces an instruction of the program"
        ("arch/Kconfig");
    BPF_SYSCALL [KernelCode] "programs may be loaded into the kernel and run where they are attached"
        ("kernel/bpf/Kconfig");
    BPF_JIT [SeccompFilter, Socket] "filters can be compiled instead of interpreted" ("kernel/bpf/Kconfig");
    BPF_JIT_ALWAYS_ON [SeccompFilter, Socket] "filters are compiled, and there is no interpreter"
        ("kernel/bpf/Kconfig");
    BPF_JIT_DEFAULT_ON [SeccompFilter, Socket] "filters are compiled by default" ("kernel/bpf/Kconfig");
    PERF_EVENTS [ContextSwitch] "counters can be read, and are exchanged at switches of counted tasks"
        ("init/Kconfig");
    LIVEPATCH [KernelCode] "patched functions are replaced, by ftrace" ("kernel/livepatch/Kconfig");
    _ => FTRACE HAVE_FTRACE HAVE_DYNAMIC_FTRACE HAVE_FUNCTION FUNCTION TRACE TRACER TRACING TRACEPOINTS
        PREEMPTIRQ KBENCHMARK UBENCHMARK KRETBENCHMARKS KRETBENCHMARK RETHOOK OPTBENCHMARKS FBENCHMARK
        HAVE_KBENCHMARKS HAVE_KRETBENCHMARKS HAVE_OPTBENCHMARKS HAVE_RETHOOK BPF BPFILTER PERF HAVE_PERF
        PROFILING OPROFILE HAVE_OPROFILE HW_BREAKPOINT HAVE_HW_BREAKPOINT DYNAMIC_EVENTS BENCHMARK_EVENTS
        SYNTH_EVENTS HIST_TRIGGERS USER_EVENTS EVENT_TRACING RING_BUFFER BLK_DEV_IO_TRACE MMIOTRACE
        HWLAT_TRACER OSNOISE_TRACER TIMERLAT_TRACER BOOTTIME_TRACING STACKTRACE KALLSYMS UNWINDER RV
}
