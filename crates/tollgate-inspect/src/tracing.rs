//! Tracers and kprobes in the kernel, as far as their file systems are readable, which usually takes root. Source:
//! Documentation/trace/ftrace.rst, kprobes.rst.

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::mounts::{MOUNTS, Mount};

const TRACING: &str = "/sys/kernel/tracing";
/// Its path before Linux 4.1. Since then, looking up a file below it mounts the file system, which stays mounted
/// (`trace_automount` in kernel/trace/trace.c).
const BELOW_DEBUG: &str = "/sys/kernel/debug/tracing";

/// Whether entries or exits of system calls are traced: `1`, `0`, or `X` if some are.
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

pub(crate) fn kprobes(machine: &Machine) -> Answer<i64> {
    Ok(machine
        .text("/sys/kernel/debug/kprobes/list")?
        .map(|text| i64::try_from(text.lines().count()).unwrap_or(i64::MAX)))
}

/// Events that are on, as `SUBSYSTEM:EVENT`.
pub(crate) fn events(machine: &Machine) -> Answer<Vec<String>> {
    let text = match machine.text(&format!("{TRACING}/set_event")) {
        Err(Unknown::Absent(_)) if is_mounted(machine, BELOW_DEBUG)? => {
            machine.text(&format!("{BELOW_DEBUG}/set_event"))
        }
        answer => answer,
    };
    Ok(text?.map(|text| text.lines().map(str::to_owned).collect()))
}

/// Live patches that are on.
pub(crate) fn live_patches(machine: &Machine) -> Answer<Vec<String>> {
    const PATCHES: &str = "/sys/kernel/livepatch";
    let mut names = machine.names(PATCHES)?;
    names.value.retain(|name| machine.flag(&format!("{PATCHES}/{name}/enabled")).is_ok_and(|on| on.value));
    Ok(names)
}

pub(crate) fn in_tracing(machine: &Machine, file: &str) -> Answer<String> {
    match machine.line(&format!("{TRACING}/{file}")) {
        Err(Unknown::Absent(_)) if is_mounted(machine, BELOW_DEBUG)? => {
            machine.line(&format!("{BELOW_DEBUG}/{file}"))
        }
        answer => answer,
    }
}

fn is_mounted(machine: &Machine, directory: &str) -> Result<bool, Unknown> {
    let mounts = machine.text(MOUNTS)?.value;
    Ok(mounts.lines().filter_map(Mount::parse).any(|mount| mount.point == directory))
}
