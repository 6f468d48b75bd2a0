//! Frequency and idle drivers and their settings. Most virtual machines have none. Source:
//! Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, cpuidle.rst.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};

const CPU: &str = "/sys/devices/system/cpu";

/// `boost` is the general switch; `intel_pstate` has its own, which is inverted.
pub(crate) fn boost(machine: &Machine) -> Answer<bool> {
    match machine.flag(&format!("{CPU}/cpufreq/boost")) {
        Err(Unknown::Absent(absent)) => match machine.flag(&format!("{CPU}/intel_pstate/no_turbo")) {
            Err(Unknown::Absent(also)) => Err(Unknown::Absent(format!("{absent}, {also}"))),
            answer => answer.map(|found| found.map(|no_turbo| !no_turbo)),
        },
        answer => answer,
    }
}

/// From the lightest to the deepest.
pub(crate) fn idle_states(machine: &Machine) -> Answer<Vec<String>> {
    let directory = format!("{CPU}/cpu0/cpuidle");
    let states = || {
        let names = machine.names(&directory)?;
        let mut states: Vec<(u8, String)> = Vec::new();
        for name in &names.value {
            if let Some(number) = name.strip_prefix("state").and_then(crate::text::digits) {
                states.push((number, machine.line(&format!("{directory}/{name}/name"))?.value));
            }
        }
        states.sort();
        found(states.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), directory.clone())
    };
    states()
}

/// Older kernels have only the read-only file.
pub(crate) fn idle_governor(machine: &Machine) -> Answer<String> {
    match machine.line(&format!("{CPU}/cpuidle/current_governor")) {
        Err(Unknown::Absent(_)) => machine.line(&format!("{CPU}/cpuidle/current_governor_ro")),
        answer => answer,
    }
}
