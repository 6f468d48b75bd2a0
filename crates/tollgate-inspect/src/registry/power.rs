//! Frequencies and idle states.

use tollgate_model::Boundary::IdleExit;

use super::{FactSpec, line, number, one};
use crate::power;

pub(super) const FACTS: &[FactSpec] = &[
    one("power.governor", power::governor, "The frequency governor of processor 0.")
        .affects_everything("a slow governor keeps the frequency low"),
    one("power.driver", power::driver, "The frequency driver of processor 0."),
    one("power.preference", power::preference, "The energy performance preference of processor 0.")
        .affects_everything("the preference sets how fast and how far the frequency rises"),
    one("power.boost", power::boost, "Whether processors may run above their nominal frequency.")
        .affects_everything(
            "the boosted frequency depends on heat and on the other cores, which widens the spread",
        ),
    one("power.idle_driver", power::idle_driver, "The idle driver.")
        .affects(&[IdleExit], "deep states, and halts in a virtual machine, take microseconds to leave"),
    one("power.idle_governor", power::idle_governor, "The idle governor.")
        .affects(&[IdleExit], "haltpoll spins before it halts"),
    one(
        "power.idle_states",
        power::idle_states,
        "The idle states of processor 0, from the lightest to the deepest.",
    )
    .affects(&[IdleExit], "a deeper state takes longer to leave"),
    one(
        "power.halt_poll",
        power::halt_poll,
        "The time that an idle guest polls before it halts, in nanoseconds.",
    )
    .affects(&[IdleExit], "a processor that polls needs no wake-up"),
    line(
        "power.intel_pstate",
        "/sys/devices/system/cpu/intel_pstate/status",
        "The mode of intel_pstate: active, passive, off.",
    ),
    line(
        "power.amd_pstate",
        "/sys/devices/system/cpu/amd_pstate/status",
        "The mode of amd_pstate: active, passive, guided, disable.",
    ),
    number(
        "power.frequency_min",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq",
        "The lowest frequency of processor 0 in kHz.",
    ),
    number(
        "power.frequency_max",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
        "The highest frequency of processor 0 in kHz.",
    )
    .affects_everything("no processor runs faster than this"),
    line(
        "power.profile",
        "/sys/firmware/acpi/platform_profile",
        "The platform profile, between heat and performance.",
    )
    .affects_everything("the profile sets how long the highest frequencies last"),
];
