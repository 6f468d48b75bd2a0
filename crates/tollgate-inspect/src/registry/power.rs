//! How fast processors run and how deep they sleep.

use tollgate_model::Boundary::IdleExit;

use super::{FactSpec, line, number, one};
use crate::power;

pub(super) const FACTS: &[FactSpec] = &[
    one("power.governor", power::governor, "Who chooses the processor's frequency, on processor 0.")
        .affects_everything("a slow governor keeps the frequency low"),
    one("power.driver", power::driver, "Who sets the processor's frequency, on processor 0."),
    one(
        "power.preference",
        power::preference,
        "The processor's own preference between performance and energy, on processor 0.",
    )
    .affects_everything("the preference sets how fast and how far the frequency rises"),
    one("power.boost", power::boost, "Whether processors may run above their nominal frequency.")
        .affects_everything(
            "the boosted frequency depends on heat and on the other cores, which widens the spread",
        ),
    one("power.idle_driver", power::idle_driver, "Who puts idle processors to sleep.")
        .affects(&[IdleExit], "deep states, and halts in a virtual machine, take microseconds to leave"),
    one("power.idle_governor", power::idle_governor, "Who chooses how deep an idle processor sleeps.")
        .affects(&[IdleExit], "haltpoll spins before it halts"),
    one(
        "power.idle_states",
        power::idle_states,
        "How deep processor 0 may sleep, from the lightest state to the deepest.",
    )
    .affects(&[IdleExit], "a deeper state takes longer to leave"),
    one("power.halt_poll", power::halt_poll, "How long an idle guest waits before it halts, in nanoseconds.")
        .affects(&[IdleExit], "a processor that polls needs no wake-up"),
    line(
        "power.intel_pstate",
        "/sys/devices/system/cpu/intel_pstate/status",
        "Who decides with intel_pstate: active, passive, off.",
    ),
    line(
        "power.amd_pstate",
        "/sys/devices/system/cpu/amd_pstate/status",
        "Who decides with amd_pstate: active, passive, guided, disable.",
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
        "The balance between heat and performance that the machine was asked for.",
    )
    .affects_everything("the profile sets how long the highest frequencies last"),
];
