//! The kernel interfaces that this process may use, tested by calls that do nothing.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::{calls, process};

/// `kernel and user`, `user` or `nothing`.
pub(crate) fn counters(machine: &Machine) -> Answer<&'static str> {
    let of = |what: &str, kernel| {
        tried(machine, &format!("perf_event_open(2) of this thread, {what}"), || calls::may_count(kernel))
    };
    let both = of("kernel and user mode", true)?;
    if both.value {
        return found("kernel and user", both.source);
    }
    let own = of("user mode", false)?;
    found(if own.value { "user" } else { "nothing" }, own.source)
}

/// Tries a call in another process if there is a filter, which may kill the caller of an unknown call.
pub(crate) fn tried(machine: &Machine, name: &str, ask: impl FnOnce() -> Result<bool, i32>) -> Answer<bool> {
    let mode = process::seccomp_mode(machine)?;
    match mode.value {
        "disabled" => machine.call(name, ask),
        "filter" => machine.call(name, || calls::in_a_child(ask)),
        _ => Err(Unknown::Refused(format!(
            "{name}: not tried, since it ends a process in seccomp's strict mode"
        ))),
    }
}
