use tollgate_model::traced::{MOST_ENTRIES, Parts, Process};

use super::sums::{Key, Table};

/// The number of every process above the limit.
pub const UNCOUNTED: u32 = u32::MAX;

#[derive(Debug)]
struct Member {
    parent: Option<u32>,
    pid: libc::pid_t,
    name: String,
    execs: u32,
    threads: u64,
    alive: u64,
    began_ns: u64,
    ended_ns: Option<u64>,
    outside: Parts,
    calls: Table,
}

/// All processes, in the order in which they were first seen.
#[derive(Debug, Default)]
pub struct Tree {
    members: Vec<Member>,
    /// Keep names and calls per process.
    detailed: bool,
    pub processes: u64,
    pub threads: u64,
    pub missed: u64,
}

impl Tree {
    pub fn new(detailed: bool) -> Self {
        Self { detailed, ..Self::default() }
    }

    /// Adds a new process with its first thread; returns its number.
    pub fn add(&mut self, parent: Option<u32>, pid: libc::pid_t, at_ns: u64) -> u32 {
        self.processes += 1;
        self.threads += 1;
        if self.members.len() >= MOST_ENTRIES {
            self.missed += 1;
            return UNCOUNTED;
        }
        let parent = parent.filter(|parent| *parent != UNCOUNTED);
        // A process has its parent's name until it calls exec.
        let name =
            parent.and_then(|parent| self.members.get(parent as usize)).map(|parent| parent.name.clone());
        self.members.push(Member {
            parent,
            pid,
            name: name.unwrap_or_default(),
            execs: 0,
            threads: 1,
            alive: 1,
            began_ns: at_ns,
            ended_ns: None,
            outside: Parts::default(),
            calls: Table::default(),
        });
        self.members.len() as u32 - 1
    }

    fn member(&mut self, id: u32) -> Option<&mut Member> {
        self.members.get_mut(id as usize)
    }

    fn detailed(&mut self, id: u32) -> Option<&mut Member> {
        self.members.get_mut(id as usize).filter(|_| self.detailed)
    }

    pub fn add_thread(&mut self, id: u32) {
        self.threads += 1;
        if let Some(member) = self.member(id) {
            member.threads += 1;
            member.alive += 1;
        }
    }

    /// Records the end of a thread; returns whether it was the last of its process.
    pub fn end_thread(&mut self, id: u32, at_ns: u64) -> bool {
        let Some(member) = self.member(id) else { return false };
        member.alive = member.alive.saturating_sub(1);
        if member.alive == 0 {
            member.ended_ns = Some(at_ns);
        }
        member.alive == 0
    }

    pub fn is_alone(&self, id: u32) -> bool {
        self.members.get(id as usize).is_some_and(|member| member.alive == 1)
    }

    pub fn executed(&mut self, id: u32, pid: libc::pid_t) {
        let detailed = self.detailed;
        let Some(member) = self.member(id) else { return };
        member.execs += 1;
        if detailed && let Ok(name) = std::fs::read(format!("/proc/{pid}/comm")) {
            member.name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
        }
    }

    pub fn add_call(&mut self, id: u32, key: Key, parts: Parts, is_error: bool) {
        if let Some(member) = self.detailed(id) {
            member.calls.add(key, parts, is_error);
        }
    }

    pub fn add_unfinished(&mut self, id: u32, key: Key) {
        if let Some(member) = self.detailed(id) {
            member.calls.add_unfinished(key);
        }
    }

    pub fn add_outside(&mut self, id: u32, parts: Parts) {
        if let Some(member) = self.detailed(id) {
            member.outside = member.outside.plus(parts);
        }
    }

    /// Returns the processes; none unless they were requested.
    pub fn into_processes(self) -> Vec<Process> {
        if !self.detailed {
            return Vec::new();
        }
        let process = |(id, member): (u32, Member)| Process {
            id,
            parent: member.parent,
            pid: member.pid as u32,
            name: member.name,
            execs: member.execs,
            threads: member.threads,
            began_ns: member.began_ns,
            ended_ns: member.ended_ns,
            outside: member.outside,
            calls: member.calls.into_calls(),
        };
        (0..).zip(self.members).map(process).collect()
    }
}

/// Asks the kernel for the process of a thread and for that process's parent.
pub fn relations(thread: libc::pid_t) -> Option<(libc::pid_t, libc::pid_t)> {
    let status = std::fs::read(format!("/proc/{thread}/status")).ok()?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
    };
    Some((field("Tgid")?, field("PPid")?))
}
