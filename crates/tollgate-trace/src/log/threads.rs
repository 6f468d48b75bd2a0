//! The threads of a log: the call that each is in, its parent, and the sums of its calls. Pure.

use std::collections::BTreeMap;

use tollgate_model::traced::{Call, Ended, MOST_ENTRIES, Parts, Process, bucket};

use super::line::Returned;
use super::text;
use crate::outcome::{Event, earliest_first, slowest_first};

/// The most distinct names of calls in a log; no kernel has more.
const MOST_NAMES: usize = 4096;

/// The most sums of a call and a thread: sixteen per thread. Real threads have some twenty calls, but most logs few threads.
const MOST_SUMS: usize = 1 << 20;

/// The longest chain of parents that is followed.
const LONGEST_CHAIN: usize = 1024;

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    errors: u64,
    unfinished: u64,
    total_ns: u64,
    max_ns: u64,
    histogram: BTreeMap<u32, u64>,
}

#[derive(Debug, Default)]
pub(super) struct Sums(BTreeMap<String, Sum>);

#[derive(Debug)]
struct Open {
    name: String,
    began_ns: u64,
    /// For calls that create a thread: whether it is in the same process.
    shares: bool,
    /// For execve(2): the new name of the thread, and the arguments if they are those of the command.
    command: Option<(String, Vec<String>)>,
}

#[derive(Debug)]
struct Thread {
    id: u32,
    /// The thread that created it, and whether both are in one process.
    parent: Option<(usize, bool)>,
    comm: Option<String>,
    execs: u32,
    began_ns: u64,
    ended_ns: Option<u64>,
    ended: Option<Ended>,
    is_32_bit: bool,
    open: Option<Open>,
    sums: Sums,
}

#[derive(Debug, Default)]
pub(super) struct Threads {
    all: Vec<Thread>,
    /// Threads that have not ended, by id, since ids are reused.
    live: BTreeMap<u32, usize>,
    /// The thread of lines without an id, until a line has one.
    unnamed: Option<usize>,
    pub command: Vec<String>,
    /// Whether the first call was not execve(2), so strace was attached.
    pub was_attached: bool,
    pub sums: Sums,
    pub events: Vec<Event>,
    pub most_events: usize,
    pub untimed: u64,
    /// Threads above the limit, whose calls are still added up.
    pub beyond: u64,
    kept: usize,
    /// Calls that are only counted in total, not for their thread.
    pub unkept: u64,
}

impl Sums {
    fn by_name(&mut self, name: &str) -> Option<&mut Sum> {
        if !self.0.contains_key(name) {
            if self.0.len() >= MOST_NAMES {
                return None;
            }
            self.0.insert(name.to_owned(), Sum::default());
        }
        self.0.get_mut(name)
    }

    fn returned(&mut self, name: &str, returned: Returned, with_histogram: bool) {
        let Some(sum) = self.by_name(name) else { return };
        if !returned.is_back {
            sum.unfinished += 1;
            return;
        }
        sum.count += 1;
        sum.errors += u64::from(returned.is_error);
        if let Some(ns) = returned.took_ns {
            sum.total_ns = sum.total_ns.saturating_add(ns);
            sum.max_ns = sum.max_ns.max(ns);
            if with_histogram {
                *sum.histogram.entry(bucket(ns)).or_default() += 1;
            }
        }
    }

    fn absorb(&mut self, other: Self) {
        for (name, other) in other.0 {
            if let Some(sum) = self.by_name(&name) {
                sum.count += other.count;
                sum.errors += other.errors;
                sum.unfinished += other.unfinished;
                sum.total_ns = sum.total_ns.saturating_add(other.total_ns);
                sum.max_ns = sum.max_ns.max(other.max_ns);
            }
        }
    }

    pub fn calls(self) -> Vec<Call> {
        let call = |(name, sum): (String, Sum)| Call {
            name,
            count: sum.count,
            errors: sum.errors,
            unfinished: sum.unfinished,
            stopped: 0,
            total_ns: sum.total_ns,
            max_ns: sum.max_ns,
            parts: Parts { unknown_ns: sum.total_ns, ..Parts::default() },
            histogram: sum.histogram.into_iter().collect(),
        };
        let mut calls: Vec<Call> = self.0.into_iter().map(call).collect();
        slowest_first(&mut calls);
        calls
    }
}

impl Threads {
    /// Returns the thread of a line. `resumes` says whether the line is the end of an unfinished call.
    pub fn index_of(&mut self, id: Option<u32>, comm: Option<&str>, resumes: bool, now_ns: u64) -> usize {
        let at = match id {
            // When only one thread is left, strace no longer prints its id.
            None => match (self.unnamed, self.live.len(), self.live.values().next()) {
                (Some(at), ..) if self.all[at].id == 0 => at,
                (_, 1, Some(&only)) => only,
                (Some(at), ..) => at,
                (None, ..) => {
                    let at = self.start(0, now_ns);
                    self.unnamed = Some(at);
                    at
                }
            },
            Some(id) => self.named(id, resumes, now_ns),
        };
        if let Some(comm) = comm {
            self.all[at].comm = Some(comm.chars().take(64).collect());
        }
        at
    }

    fn named(&mut self, id: u32, resumes: bool, now_ns: u64) -> usize {
        if let Some(&at) = self.live.get(&id) {
            return at;
        }
        // Lines of the first thread have an id only once there is a second thread. If it is in a call, its next line is the
        // end of that call; any other line is the second thread's.
        let is_first = |&at: &usize| self.all[at].id == 0 && (resumes || self.all[at].open.is_none());
        if let Some(at) = self.unnamed.filter(is_first) {
            self.all[at].id = id;
            self.live.insert(id, at);
            return at;
        }
        self.start(id, now_ns)
    }

    fn start(&mut self, id: u32, now_ns: u64) -> usize {
        if self.all.len() >= MOST_ENTRIES {
            self.beyond += 1;
            return MOST_ENTRIES - 1;
        }
        let parent = None;
        let thread = Thread {
            id,
            parent,
            comm: None,
            execs: 0,
            began_ns: now_ns,
            ended_ns: None,
            ended: None,
            is_32_bit: false,
            open: None,
            sums: Sums::default(),
        };
        self.all.push(thread);
        let at = self.all.len() - 1;
        if id != 0 {
            self.live.insert(id, at);
        }
        at
    }

    pub fn attached(&mut self, id: u32, now_ns: u64) -> usize {
        match self.live.get(&id) {
            Some(&at) => at,
            None => self.start(id, now_ns),
        }
    }

    pub fn begun(&mut self, at: usize, name: &str, arguments: &str, now_ns: u64) {
        self.note_first(name);
        // A call that is followed by another one did not return.
        self.abandon(at);
        let mut open = Open::new(name, arguments, now_ns);
        if at > 0 || !self.command.is_empty() {
            // Every thread may be in an execve(2) with 1 MiB of arguments.
            open.command.iter_mut().for_each(|(_, arguments)| *arguments = Vec::new());
        }
        self.all[at].open = Some(open);
    }

    pub fn called(&mut self, at: usize, name: &str, arguments: &str, returned: Returned, now_ns: u64) {
        self.begun(at, name, arguments, now_ns);
        self.ended(at, name, arguments, returned);
    }

    /// Takes the end of a call. `name` is set if the log lacks its beginning.
    pub fn ended(&mut self, at: usize, name: &str, arguments: &str, returned: Returned) {
        let open = self.all[at].open.take().filter(|open| name.is_empty() || open.name == name);
        let began_ns = open.as_ref().map(|open| open.began_ns);
        let Some(mut open) = open.or_else(|| (!name.is_empty()).then(|| Open::new(name, arguments, 0)))
        else {
            return;
        };
        open.shares |= shares(&open.name, arguments);
        self.untimed += u64::from(returned.is_back && returned.took_ns.is_none());
        let shown = self.add(at, &open, returned);
        if let (Some(began_ns), Some(took_ns)) = (began_ns, returned.took_ns)
            && self.events.len() < self.most_events
        {
            let parts = Parts { unknown_ns: took_ns, ..Parts::default() };
            let (process, thread, result) = (at as u32, self.all[at].id, returned.result);
            let event = Event { process, thread, call: shown, began_ns, parts, result, argument: 0 };
            self.events.push(event);
        }
        if returned.is_back && !returned.is_error {
            self.succeeded(at, open, returned.result);
        }
    }

    fn succeeded(&mut self, at: usize, open: Open, result: i64) {
        let child = u32::try_from(result).ok().filter(|&id| id > 0);
        match (open.name.as_str(), open.command, child) {
            ("execve" | "execveat", command, _) => {
                let thread = &mut self.all[at];
                thread.execs += 1;
                if let Some((name, arguments)) = command {
                    thread.comm = Some(name);
                    if self.command.is_empty() && !self.was_attached && at == 0 {
                        self.command = arguments;
                    }
                }
            }
            ("fork" | "vfork" | "clone" | "clone3", _, Some(id)) => {
                let child = self.attached(id, open.began_ns);
                let comm = self.all[at].comm.clone();
                if child != at && self.all[child].parent.is_none() && child > 0 {
                    self.all[child].parent = Some((at, open.shares));
                    self.all[child].comm = self.all[child].comm.take().or(comm);
                }
            }
            _ => {}
        }
    }

    fn note_first(&mut self, name: &str) {
        if self.sums.0.is_empty() && self.all.iter().all(|thread| thread.open.is_none()) {
            self.was_attached = !name.starts_with("execve");
        }
    }

    fn abandon(&mut self, at: usize) {
        let Some(open) = self.all[at].open.take() else { return };
        self.add(at, &open, Returned::default());
    }

    /// Adds a call to the sums of its thread and of all threads; returns the name that it is counted under.
    fn add(&mut self, at: usize, open: &Open, returned: Returned) -> String {
        let thread = &mut self.all[at];
        let shown = thread.shown(open);
        if thread.sums.0.contains_key(&shown) || self.kept < MOST_SUMS {
            let before = thread.sums.0.len();
            thread.sums.returned(&shown, returned, false);
            self.kept += thread.sums.0.len() - before;
        } else {
            self.unkept += 1
        }
        self.sums.returned(&shown, returned, true);
        shown
    }

    pub fn mode(&mut self, id: u32, is_32_bit: bool) {
        let at = self.named(id, false, 0);
        self.all[at].is_32_bit = is_32_bit;
    }

    pub fn gone(&mut self, at: usize, ended: Option<Ended>, now_ns: u64) {
        self.abandon(at);
        let thread = &mut self.all[at];
        (thread.ended, thread.ended_ns) = (ended, Some(now_ns));
        self.live.remove(&thread.id);
    }

    /// Replaces the first thread of a process by another thread that called exec and now has its id.
    pub fn superseded(&mut self, at: usize, by: u32, now_ns: u64) {
        let Some(other) = self.live.remove(&by) else { return };
        let open = self.all[other].open.take();
        self.all[other].ended_ns = Some(now_ns);
        self.abandon(at);
        self.all[at].open = open;
    }

    pub fn end(&self) -> (Option<Ended>, Option<u64>) {
        self.all.first().map_or((None, None), |first| (first.ended, first.ended_ns))
    }

    /// Calls in progress at the end do not return.
    pub fn close(&mut self) {
        for at in 0..self.all.len() {
            self.abandon(at);
        }
    }

    pub fn number(&self) -> u64 {
        self.all.len() as u64
    }

    /// Groups the threads into processes, parents before children, and renumbers the events accordingly.
    pub fn processes(self) -> (Vec<Process>, Sums, Vec<Event>) {
        let Self { all, sums, mut events, .. } = self;
        let owner = owners(&all);
        // A thread's first line follows the entry of the call that created it.
        let order: Vec<usize> = (0..all.len()).filter(|&at| owner[at] == at).collect();
        let mut number = vec![0_u32; all.len()];
        for (id, &at) in order.iter().enumerate() {
            number[at] = id as u32;
        }
        for event in &mut events {
            event.process = owner.get(event.process as usize).map_or(0, |&at| number[at]);
        }
        earliest_first(&mut events);
        let mut processes: Vec<Process> =
            order.iter().map(|&at| process(&all, &owner, &number, at)).collect();
        let mut of_processes: Vec<Sums> = processes.iter().map(|_| Sums::default()).collect();
        for (at, thread) in all.into_iter().enumerate() {
            let of = number[owner[at]] as usize;
            let Some((process, sums)) = processes.get_mut(of).zip(of_processes.get_mut(of)) else { continue };
            if owner[at] != at {
                process.threads += 1;
                process.execs += thread.execs;
                process.ended_ns = process.ended_ns.zip(thread.ended_ns).map(|(one, other)| one.max(other));
            }
            sums.absorb(thread.sums);
        }
        processes.iter_mut().zip(of_processes).for_each(|(process, sums)| process.calls = sums.calls());
        (processes, sums, events)
    }
}

impl Thread {
    fn shown(&self, call: &Open) -> String {
        if self.is_32_bit { format!("{} (32-bit)", call.name) } else { call.name.clone() }
    }
}

impl Open {
    fn new(name: &str, arguments: &str, began_ns: u64) -> Self {
        let executes = matches!(name, "execve" | "execveat");
        // execveat(2) has a directory before the path.
        let from = if name == "execveat" { arguments.find('"').unwrap_or(0) } else { 0 };
        Self {
            name: name.to_owned(),
            began_ns,
            shares: shares(name, arguments),
            command: if executes { executed(&arguments[from..]) } else { None },
        }
    }
}

fn shares(name: &str, arguments: &str) -> bool {
    matches!(name, "clone" | "clone3") && arguments.contains("CLONE_THREAD")
}

fn executed(arguments: &str) -> Option<(String, Vec<String>)> {
    let (path, arguments) = text::execve(arguments)?;
    let name = path.rsplit('/').next().unwrap_or(&path);
    // `TASK_COMM_LEN` is 16, including the terminating NUL.
    Some((name.chars().take(15).collect(), arguments))
}

fn owners(all: &[Thread]) -> Vec<usize> {
    let owner = |mut at: usize| {
        // A log may contradict itself.
        for _ in 0..LONGEST_CHAIN {
            match all[at].parent {
                Some((parent, true)) => at = parent,
                _ => break,
            }
        }
        at
    };
    let found: Vec<usize> = (0..all.len()).map(owner).collect();
    // In a cycle every thread is on its own.
    (0..all.len()).map(|at| if found[found[at]] == found[at] { found[at] } else { at }).collect()
}

fn process(all: &[Thread], owner: &[usize], number: &[u32], at: usize) -> Process {
    let thread = &all[at];
    let parent = thread.parent.map(|(parent, _)| number[owner[parent]]).filter(|&parent| parent < number[at]);
    Process {
        id: number[at],
        parent,
        pid: thread.id,
        name: thread.comm.clone().unwrap_or_else(|| format!("process {}", thread.id)),
        execs: thread.execs,
        threads: 1,
        began_ns: thread.began_ns,
        ended_ns: thread.ended_ns,
        outside: Parts::default(),
        calls: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_threads_have_a_bound() {
        let mut threads = Threads { kept: MOST_SUMS - 2, ..Threads::default() };
        let returned = Returned { is_back: true, took_ns: Some(1), ..Returned::default() };
        for (id, name) in [(1, "read"), (1, "read"), (2, "read"), (2, "write"), (2, "read"), (3, "read")] {
            let at = threads.index_of(Some(id), None, false, 0);
            threads.called(at, name, "", returned, 0);
        }
        assert_eq!((threads.kept, threads.unkept), (MOST_SUMS, 2));
        let (processes, sums, _) = threads.processes();
        let of_process = |process: &Process| process.calls.iter().map(|call| call.count).sum::<u64>();
        assert_eq!(processes.iter().map(of_process).collect::<Vec<_>>(), [2, 2, 0]);
        assert_eq!(sums.calls().iter().map(|call| call.count).sum::<u64>(), 6);
    }
}
