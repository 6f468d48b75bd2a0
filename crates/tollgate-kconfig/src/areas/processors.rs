use tollgate_model::Boundary::{
    CacheLine, ContextSwitch, IdleExit, InterProcessorInterrupt, KernelCode, LockContention, SplitLock,
};

use super::{Machine, Without};

entries! {
    SMP [KernelCode, LockContention, CacheLine]
        "more than one processor is used; without it locks compile to nothing" ("arch/x86/Kconfig")
        .parameters(&["nosmp", "maxcpus"]);
    NR_CPUS [KernelCode]
        "a set of processors has a bit for each that there can be, and calls about sets copy it"
        ("arch/x86/Kconfig").parameters(&["nr_cpus"]);
    X86_NATIVE_CPU [KernelCode] "the kernel is compiled for the processor that built it"
        ("arch/x86/Kconfig.cpu");
    X86_X2APIC [InterProcessorInterrupt] "the interrupt controller is accessed by MSR instead of memory"
        ("arch/x86/Kconfig").parameters(&["nox2apic"]);
    X86_BUS_LOCK_DETECT [SplitLock]
        "split locks trap, and are delayed or refused, as split_lock_detect= says"
        ("Documentation/arch/x86/buslock.rst")
        .without(&[Without::between((5, 12, 0), (6, 12, 0), "older kernels have it with CPU_SUP_INTEL").on(Machine::X86)])
        .parameters(&["split_lock_detect"]);
    X86_INTEL_PSTATE * "the frequency is chosen by Intel's own driver"
        ("Documentation/admin-guide/pm/intel_pstate.rst").parameters(&["intel_pstate"]);
    X86_AMD_PSTATE * "the frequency is chosen by AMD's own driver"
        ("Documentation/admin-guide/pm/amd-pstate.rst").parameters(&["amd_pstate"]);
    CPU_FREQ_DEFAULT_GOV_PERFORMANCE * "the frequency is the highest by default" ("drivers/cpufreq/Kconfig");
    CPU_FREQ_DEFAULT_GOV_SCHEDUTIL *
        "the frequency follows the load as the scheduler sees it, and is low after a wait"
        ("drivers/cpufreq/Kconfig");
    CPU_FREQ_DEFAULT_GOV_ONDEMAND *
        "the frequency follows the load as samples show it, and is low after a wait"
        ("drivers/cpufreq/Kconfig");
    CPU_FREQ_DEFAULT_GOV_POWERSAVE *
        "the frequency is the lowest by default, unless the driver chooses it itself"
        ("drivers/cpufreq/Kconfig");
    INTEL_IDLE [IdleExit] "idle states are Intel's own: the deeper, the longer it takes to wake"
        ("Documentation/admin-guide/pm/intel_idle.rst").parameters(&["intel_idle.max_cstate"]);
    CPU_IDLE [IdleExit] "an idle processor sleeps as deep as its governor says" ("drivers/cpuidle/Kconfig")
        .parameters(&["idle", "cpuidle.off", "processor.max_cstate"]);
    HALTPOLL_CPUIDLE [IdleExit] "under KVM an idle processor can poll for a while before it halts"
        ("drivers/cpuidle/Kconfig");
    X86_CPU_RESCTRL [ContextSwitch] "where groups of resctrl differ, an MSR is written at the switch"
        ("arch/x86/kernel/process_64.c").parameters(&["rdt"]);
    MAXSMP "as many processors as the architecture supports: sets of them are large";
    CPUMASK_OFFSTACK "large sets of processors are allocated instead of lying on the stack";
    _ => X86 64BIT CPU CPU_FREQ MICROCODE GENERIC_CPU MK8 MPSC MCORE2 MATOM NR HOTPLUG_CPU HOTPLUG_SMT
        HOTPLUG_PARALLEL PERF_EVENTS_INTEL PERF_EVENTS_AMD HPET HPET_TIMER INTEL_TURBO_MAX_3 INTEL_RDT
        ENERGY_MODEL PROCESSOR_SELECT UP_LATE_INIT IOSF_MBI
}
