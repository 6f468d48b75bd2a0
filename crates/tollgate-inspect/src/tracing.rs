//! Tracers and kprobes in the kernel, as far as their file systems may be read, which usually takes root. Source:
//! Documentation/trace/ftrace.rst, kprobes.rst.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};

const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Whether entries or exits of system calls are traced: `1`, `0`, or `X` where some are.
pub(crate) fn system_calls(machine: &Machine) -> Answer<bool> {
    let raw = in_tracing(machine, "events/raw_syscalls/enable");
    raw.and_then(|raw| {
        let named = in_tracing(machine, "events/syscalls/enable")?;
        let is_on = |word: &str| match word {
            "0" => Some(false),
            "1" | "X" => Some(true),
            _ => None,
        };
        let raw = raw.parse("0, 1 or X", is_on)?;
        let named = named.parse("0, 1 or X", is_on)?;
        found(raw.value || named.value, format!("{}, {}", raw.source, named.source))
    })
}

/// The number of kprobes in the kernel.
pub(crate) fn kprobes(machine: &Machine) -> Answer<i64> {
    Ok(machine
        .text("/sys/kernel/debug/kprobes/list")?
        .map(|text| i64::try_from(text.lines().count()).unwrap_or(i64::MAX)))
}

pub(crate) fn in_tracing(machine: &Machine, file: &str) -> Answer<String> {
    let [first, second] = TRACING.map(|directory| format!("{directory}/{file}"));
    match machine.line(&first) {
        Err(Unknown::Absent(_)) => machine.line(&second),
        answer => answer,
    }
}
