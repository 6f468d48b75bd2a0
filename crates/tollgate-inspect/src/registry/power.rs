//! How fast processors run and how deep they sleep.

use super::{FactSpec, line, number, one};
use crate::power;

pub(super) const FACTS: &[FactSpec] = &[
    one("power.governor", power::governor, "Who chooses the processor's frequency, on processor 0.")
        .moves("every price in time: a slow governor measures a slow processor"),
    one("power.driver", power::driver, "Who sets the processor's frequency, on processor 0."),
    one(
        "power.preference",
        power::preference,
        "The processor's own preference between performance and energy, on processor 0.",
    )
    .moves("every price in time: how fast and how far the frequency rises"),
    one("power.boost", power::boost, "Whether processors may run above their nominal frequency.").moves(
        "every price in time, and its spread: the frequency depends on heat and on the other \
         cores",
    ),
    one("power.idle_driver", power::idle_driver, "Who puts idle processors to sleep.")
        .moves("waking another processor: deep states and halts in a virtual machine cost microseconds"),
    one("power.idle_governor", power::idle_governor, "Who chooses how deep an idle processor sleeps.")
        .moves("waking another processor: haltpoll spins before it halts"),
    one(
        "power.idle_states",
        power::idle_states,
        "How deep processor 0 may sleep, from the lightest state to the deepest.",
    )
    .moves("waking another processor: the deeper it sleeps, the longer it takes"),
    one("power.halt_poll", power::halt_poll, "How long an idle guest waits before it halts, in nanoseconds.")
        .moves("waking another processor: while it polls it need not be woken"),
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
    .moves("every price in time: processors are not run faster"),
    line(
        "power.profile",
        "/sys/firmware/acpi/platform_profile",
        "The balance between heat and performance that the machine was asked for.",
    )
    .moves("every price in time: how long the highest frequencies are kept"),
];
