use tollgate_model::Boundary::IdleExit;

use crate::machine::Machine;
use crate::power;

facts! {
    pub(super) FACTS
    "power.governor" Line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
        "The frequency governor of processor 0." * "a slow governor keeps the frequency low";
    "power.driver" Line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
        "The frequency driver of processor 0.";
    "power.preference" Line("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference")
        "The energy performance preference of processor 0."
        * "the preference sets how fast and how far the frequency rises";
    "power.boost" Of(power::boost) "Whether processors may run above their nominal frequency."
        * "the boosted frequency depends on heat and on the other cores, which widens the spread";
    "power.idle_driver" Line("/sys/devices/system/cpu/cpuidle/current_driver") "The idle driver."
        [IdleExit] "deep states, and halts in a virtual machine, take microseconds to leave";
    "power.idle_governor" Of(power::idle_governor) "The idle governor."
        [IdleExit] "haltpoll spins before it halts";
    "power.idle_states" Of(power::idle_states)
        "The idle states of processor 0, from the lightest to the deepest."
        [IdleExit] "a deeper state takes longer to leave";
    "power.halt_poll" Number("/sys/module/haltpoll/parameters/guest_halt_poll_ns")
        "The time that an idle guest polls before it halts, in nanoseconds."
        [IdleExit] "a processor that polls needs no wake-up";
    "power.intel_pstate" X86(Machine::line, "/sys/devices/system/cpu/intel_pstate/status")
        "The mode of intel_pstate: active, passive, off.";
    "power.amd_pstate" X86(Machine::line, "/sys/devices/system/cpu/amd_pstate/status")
        "The mode of amd_pstate: active, passive, guided, disable.";
    "power.frequency_min" Number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq")
        "The lowest frequency of processor 0 in kHz.";
    "power.frequency_max" Number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq")
        "The highest frequency of processor 0 in kHz." * "no processor runs faster than this";
    "power.profile" Line("/sys/firmware/acpi/platform_profile")
        "The platform profile, between heat and performance."
        * "the profile sets how long the highest frequencies last";
}
