//! Who decides how fast the processors run and how deep they sleep. In a virtual machine mostly nobody
//! inside. Source: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, cpuidle.rst.

use tollgate_model::{Fact, Unknown};

use crate::machine::{Machine, fact};

const CPU: &str = "/sys/devices/system/cpu";

/// Of processor 0, as the other two.
pub(crate) fn governor(machine: &Machine) -> Fact {
    fact(machine.line(&format!("{CPU}/cpu0/cpufreq/scaling_governor")))
}

pub(crate) fn driver(machine: &Machine) -> Fact {
    fact(machine.line(&format!("{CPU}/cpu0/cpufreq/scaling_driver")))
}

pub(crate) fn preference(machine: &Machine) -> Fact {
    fact(machine.line(&format!("{CPU}/cpu0/cpufreq/energy_performance_preference")))
}

/// `boost` is the general switch; `intel_pstate` has its own, the other way round.
pub(crate) fn boost(machine: &Machine) -> Fact {
    fact(match machine.flag(&format!("{CPU}/cpufreq/boost")) {
        Err(Unknown::Absent(absent)) => match machine.flag(&format!("{CPU}/intel_pstate/no_turbo")) {
            Err(Unknown::Absent(also)) => Err(Unknown::Absent(format!("{absent}, {also}"))),
            answer => answer.map(|found| found.map(|no_turbo| !no_turbo)),
        },
        answer => answer,
    })
}

pub(crate) fn idle_driver(machine: &Machine) -> Fact {
    fact(machine.line(&format!("{CPU}/cpuidle/current_driver")))
}

/// Older kernels have it only under the name that cannot be written.
pub(crate) fn idle_governor(machine: &Machine) -> Fact {
    fact(match machine.line(&format!("{CPU}/cpuidle/current_governor")) {
        Err(Unknown::Absent(_)) => machine.line(&format!("{CPU}/cpuidle/current_governor_ro")),
        answer => answer,
    })
}
