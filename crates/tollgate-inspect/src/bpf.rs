//! BPF programs that are loaded, each with the hook that runs it and what the kernel counted of it. Only root may list them. A
//! program that perf_event_open(2) attached has no link, so its hook is not known. Source: include/uapi/linux/bpf.h.

#![allow(unsafe_code)] // bpf(2) takes addresses.

use std::os::fd::{AsFd, OwnedFd};

use serde::{Deserialize, Serialize};
use tollgate_os::bpf::{Attributes, double_at, information, word_at};

use crate::machine::{Answer, Machine};

const PROG_NEXT_ID: u32 = 11;
const PROG_BY_ID: u32 = 13;
const LINK_BY_ID: u32 = 30;
const LINK_NEXT_ID: u32 = 31;
/// More programs than systems load.
const MOST: usize = 4096;
const NAME: &str = "bpf(2) BPF_PROG_GET_NEXT_ID";

// Types of programs.
const STRUCT_OPS: u32 = 27;
const SECURITY: u32 = 29;
/// kprobe, tracepoint, perf_event, raw tracepoints, and tracing: fentry, fexit and typed tracepoints.
const TRACING: &[u32] = &[2, 5, 7, 17, 24, 26];
/// Those that see packets, sockets or their addresses.
const NETWORK: &[u32] = &[1, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19, 21, 22, 25, 30, 32];

/// A loaded program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its number, which no other program has while it is loaded.
    pub id: u32,
    /// `BPF_PROG_TYPE_…`.
    pub kind: u32,
    /// The first 15 bytes of its name.
    pub name: String,
    /// The tracepoint that runs it, if the kernel tells it.
    pub hook: Option<String>,
    /// Runs, and their nanoseconds, while `kernel.bpf_stats_enabled` was 1.
    pub runs: u64,
    /// See `runs`.
    pub nanoseconds: u64,
}

impl Program {
    /// Its name, and its hook.
    pub fn label(&self) -> String {
        let name = if self.name.is_empty() { "without a name" } else { &self.name };
        match &self.hook {
            Some(hook) => format!("{name} on {hook}"),
            None => name.to_owned(),
        }
    }

    fn area(&self) -> Area {
        let on = |start: &str| self.hook.as_ref().is_some_and(|hook| hook.starts_with(start));
        match self.kind {
            STRUCT_OPS => Area::Scheduler,
            SECURITY => Area::Security,
            _ if on("sys_enter") || on("sys_exit") => Area::SystemCalls,
            _ if on("sched_") => Area::Scheduler,
            kind if TRACING.contains(&kind) => Area::Kernel,
            kind if NETWORK.contains(&kind) => Area::Network,
            _ => Area::Other,
        }
    }
}

/// The places where programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    SystemCalls,
    Kernel,
    Scheduler,
    Security,
    Network,
    Other,
}

/// The programs of an area, by name and hook.
pub(crate) fn on(machine: &Machine, area: Area) -> Answer<Vec<String>> {
    Ok(loaded(machine)?.map(|all| {
        let those = all.iter().filter(|program| program.area() == area);
        those.map(Program::label).collect()
    }))
}

/// All programs that are loaded.
pub(crate) fn loaded(machine: &Machine) -> Answer<Vec<Program>> {
    machine.call(NAME, programs)
}

/// All programs that are loaded here.
///
/// # Errors
/// The errno of bpf(2).
pub fn programs() -> Result<Vec<Program>, i32> {
    let mut all: Vec<Program> = each(PROG_NEXT_ID, PROG_BY_ID, |program| {
        let mut info = [0; 232];
        // SAFETY: the structure asks for no arrays.
        unsafe { information(program.as_fd(), &mut info) }.ok()?;
        Some(Program {
            id: word_at(&info, 4),
            kind: word_at(&info, 0),
            name: text(&info[64..80]),
            hook: None,
            nanoseconds: double_at(&info, 192),
            runs: double_at(&info, 200),
        })
    })?;
    // A kernel before 5.8 has no links.
    for (id, hook) in each(LINK_NEXT_ID, LINK_BY_ID, hook).unwrap_or_default() {
        if let Some(program) = all.iter_mut().find(|program| program.id == id) {
            program.hook = Some(hook);
        }
    }
    Ok(all)
}

/// The id of a link's program, and the name of its tracepoint.
fn hook(link: &OwnedFd) -> Option<(u32, String)> {
    const RAW_TRACEPOINT: u32 = 1;
    const PERF_EVENT: u32 = 7;
    const OF_TRACEPOINT: u32 = 5;
    let described = |at: usize| {
        let (mut info, mut name) = ([0_u8; 128], [0_u8; 128]);
        if at > 0 {
            info[at..at + 8].copy_from_slice(&(name.as_mut_ptr() as u64).to_ne_bytes());
            info[at + 8..at + 12].copy_from_slice(&(name.len() as u32).to_ne_bytes());
        }
        // SAFETY: the address is that of a buffer with the length beside it.
        unsafe { information(link.as_fd(), &mut info) }.ok()?;
        Some((info, text(&name)))
    };
    let (info, _) = described(0)?;
    let at = match (word_at(&info, 0), word_at(&info, 16)) {
        (RAW_TRACEPOINT, _) => 16,
        (PERF_EVENT, OF_TRACEPOINT) => 24,
        _ => return None,
    };
    let name = described(at)?.1;
    (!name.is_empty()).then(|| (word_at(&info, 8), name))
}

/// Asks each object that exists. One that goes away meanwhile is left out.
fn each<T>(next: u32, by_id: u32, ask: impl Fn(&OwnedFd) -> Option<T>) -> Result<Vec<T>, i32> {
    let (mut all, mut id) = (Vec::new(), 0);
    while all.len() < MOST {
        let mut attributes = Attributes::EMPTY.word(0, id);
        // SAFETY: there are no addresses.
        match unsafe { attributes.call(next, 12) } {
            Ok(_) => id = attributes.word_at(4),
            Err(end) if end.raw_os_error() == Some(libc::ENOENT) => break,
            Err(error) => return Err(error.raw_os_error().unwrap_or(libc::EIO)),
        }
        // SAFETY: there are no addresses, and the result is a descriptor.
        if let Ok(object) = unsafe { Attributes::EMPTY.word(0, id).open(by_id, 12) } {
            all.extend(ask(&object));
        }
    }
    Ok(all)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Attaches a program of two instructions, `r0 = 0; exit`, to a raw tracepoint.
    fn attached(hook: &std::ffi::CStr) -> io::Result<(OwnedFd, OwnedFd)> {
        const PROG_LOAD: u32 = 5;
        const RAW_TRACEPOINT_OPEN: u32 = 17;
        const RAW_TRACEPOINT: u32 = 17;
        let code = [0xb7_u64, 0x95];
        let load = Attributes::EMPTY
            .word(0, RAW_TRACEPOINT)
            .word(4, code.len() as u32)
            .double(8, code.as_ptr() as u64)
            .double(16, c"GPL".as_ptr() as u64)
            .name(48, "tollgate_test");
        // SAFETY: the instructions and the license are valid during the call, which returns a descriptor.
        let program = unsafe { { load }.open(PROG_LOAD, 144) }?;
        let mut open = Attributes::EMPTY.double(0, hook.as_ptr() as u64).fd(8, program.as_fd());
        // SAFETY: the name is valid during the call, which returns a descriptor.
        let link = unsafe { open.open(RAW_TRACEPOINT_OPEN, 16) }?;
        Ok((program, link))
    }

    #[test]
    fn a_program_is_named_with_its_hook_and_belongs_to_an_area() {
        // It hardly ever runs.
        let _attached = match attached(c"cgroup_rename") {
            Ok(attached) => attached,
            Err(error) => return println!("skipped: no BPF program can be attached: {error}"),
        };
        let label = "tollgate_test on cgroup_rename".to_owned();
        let machine = Machine::here();
        // CAP_BPF may attach, and only CAP_SYS_ADMIN may list.
        let Ok(found) = on(&machine, Area::Kernel) else {
            return println!("skipped: BPF programs cannot be listed");
        };
        assert!(found.value.contains(&label));
        assert!(!on(&machine, Area::SystemCalls).unwrap().value.contains(&label));
    }

    #[test]
    fn hooks_decide_before_kinds() {
        let area = |kind, hook: Option<&str>| {
            let hook = hook.map(str::to_owned);
            Program { id: 0, kind, name: String::new(), hook, runs: 0, nanoseconds: 0 }.area()
        };
        assert_eq!(area(17, Some("sys_enter")), Area::SystemCalls);
        assert_eq!(area(5, Some("sys_exit_openat")), Area::SystemCalls);
        assert_eq!(area(17, Some("sched_switch")), Area::Scheduler);
        assert_eq!(
            (area(26, None), area(6, None), area(29, None)),
            (Area::Kernel, Area::Network, Area::Security)
        );
        assert_eq!(area(99, None), Area::Other);
    }
}
