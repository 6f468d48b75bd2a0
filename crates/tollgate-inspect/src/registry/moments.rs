use tollgate_model::Boundary::{BlockRead, BlockWrite, DeviceFlush, Exception, PageFault, VmExit};

use crate::{cgroup, moments, timed};

facts! {
    /// Facts that change from moment to moment: read before and after a run, see [`super::strain`].
    pub MOMENTS
    "load" Of(moments::load) "The load average over one minute."
        * "other tasks run in between and leave the caches cold, which widens the spread";
    "running" Of(moments::stat, "procs_running", 1) "The runnable tasks at this moment.";
    "pressure.cpu" Of(moments::pressure, "cpu")
        "The percentage of ten seconds in which some task waited for a processor."
        * "other tasks run in between, which widens the spread";
    "pressure.memory" Of(moments::pressure, "memory")
        "The percentage of ten seconds in which some task waited for memory."
        [PageFault] "a fault reclaims memory first";
    "pressure.io" Of(moments::pressure, "io")
        "The percentage of ten seconds in which some task waited for storage."
        [BlockRead, BlockWrite, DeviceFlush] "other tasks use the device";
    "stalled.cpu" Of(moments::stalled, "cpu")
        "Microseconds since boot in which some task waited for a processor.";
    "stalled.memory" Of(moments::stalled, "memory")
        "Microseconds since boot in which some task waited for memory.";
    "stalled.io" Of(moments::stalled, "io")
        "Microseconds since boot in which some task waited for storage.";
    "steal" Of(moments::stat, "cpu", 8) "Ticks since boot that the hypervisor took away (steal), of all processors."
        * "the hypervisor takes the processor away, which widens the spread";
    "switches" Of(moments::stat, "ctxt", 1) "Context switches since boot, of all processors.";
    "throttled" Of(cgroup::throttled) "How often this process's control group was throttled."
        * "the group waits for its next period";
    "cpuid.ticks" X86(timed::ticks)
        "The fewest ticks of the time-stamp counter that CPUID took in some dozens of executions."
        [VmExit, Exception, PageFault] "an exit takes at least this long";
    "frequency" Number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
        "The frequency of processor 0 in kHz." * "a lower frequency makes every instruction slower";
}
