//! Tracing by ptrace(2): each call stops its thread twice.
//!
//! A stop costs one wait4(2), one request for the registers, one reading of schedstat and one call to resume; nothing else
//! is done on the way. If only some calls are requested, a filter ([`filter`]) lets the others pass without a stop.
//!
//! If this process is killed, the kernel releases every thread that it traced, and the command goes on untraced. Only a
//! command with a filter is killed with it, because its calls would fail without a tracer.
//!
//! - [`sys`]: the system calls. [`thread`], [`tree`]: what is traced. [`clocks`]: how time passed between two stops,
//!   [`cause`]: what was waited for. [`sums`], [`files`]: adding up.
//!
//! The two stops around a call take forty times as long as the call. The time between them counts in full only if the thread
//! was switched out. Otherwise its processor time counts, without the wait for the tracer.

pub(crate) mod cause;
pub(crate) mod clocks;
pub(crate) mod files;
pub(crate) mod filter;
mod privileges;
mod stops;
pub(crate) mod sums;
pub(crate) mod sys;
pub(crate) mod thread;
pub(crate) mod tree;

use std::{collections::BTreeSet, io, time::Duration};

use hashbrown::{HashMap, HashSet};
use tollgate_model::traced::{Ended, Missed, Parts};
use tollgate_os::process::{self, Status, Wait};

use crate::outcome::{Collected, Event, Finished, earliest_first};
use crate::ptrace::thread::{Doing, Thread};
use crate::{calls, clock};
use crate::{
    descendants::Descendants, launch::Child, launch::signals::Watch, ptrace::sums::Key, ptrace::sys::On,
    request::Request,
};

/// Options for every traced thread: forks, new threads and exec.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;
/// After the command ends, how long to wait for threads to stop before they are released.
const LEAVING: Duration = Duration::from_secs(1);

const NO_SECOND: &str = "ptrace(2) failed in the command: a process that is traced by ptrace(2) cannot be traced twice; BPF has no such limit";
/// Why calls may be missing if only some are requested.
const NOT_SEEN: &str = "the command made a filter of its own (seccomp): calls that it stopped are not counted, because ptrace(2) also uses a filter, and the kernel obeys the filter that stops a call; BPF counts them";
/// Why set-user-ID programs gain no privileges, see execve(2).
const NO_RIGHTS: &str = "the kernel grants none to a program traced by ptrace(2) without CAP_SYS_PTRACE";

pub(crate) struct Tracer {
    command: libc::pid_t,
    threads: HashMap<libc::pid_t, Thread>,
    /// New threads that are stopped, and whose parent's event has not arrived yet.
    early: HashMap<libc::pid_t, Wait>,
    /// The command is to have a filter.
    with_filter: bool,
    /// It has the filter, so calls stop only if the filter says so.
    filtered: bool,
    has_own_filter: bool,
    /// The requested calls; `None` for all.
    only: Option<BTreeSet<(u32, bool)>>,
    sums: sums::Table,
    tree: tree::Tree,
    files: Option<files::Files>,
    clock_files: clocks::Files,
    outside: Parts,
    events: Vec<(Key, Event)>,
    most_events: usize,
    events_missed: u64,
    began_ns: u64,
    ended: Option<(Ended, u64)>,
    /// The first set-user-ID program that ran without its owner's rights.
    unprivileged: Option<String>,
    notes: Vec<String>,
}

impl Tracer {
    pub fn seize(child: &Child, request: &Request, filter: bool) -> io::Result<Self> {
        let pid = child.pid();
        let with_it = if filter { libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL } else { 0 };
        sys::seize(pid, OPTIONS | with_it)?;
        sys::interrupt(pid)?;
        loop {
            match process::wait4(pid, 0) {
                Ok(Some(Wait { status: Status::Stopped { .. }, .. })) => break,
                Ok(_) => return Err(io::Error::from_raw_os_error(libc::ECHILD)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut tracer = Self {
            command: pid,
            threads: HashMap::new(),
            early: HashMap::new(),
            with_filter: filter,
            filtered: false,
            has_own_filter: false,
            only: request.only.as_ref().map(filter::numbers),
            sums: sums::Table::with_histograms(),
            tree: tree::Tree::new(request.tree),
            files: request.files.then(|| files::Files::with(request.paths)),
            clock_files: clocks::Files::new(),
            outside: Parts::default(),
            events: Vec::new(),
            most_events: request.events,
            events_missed: 0,
            began_ns: clock::now(),
            ended: None,
            unprivileged: None,
            notes: Vec::new(),
        };
        let process = tracer.tree.add(None, pid, 0);
        tracer.threads.insert(pid, Thread::new(process, pid, Doing::Before));
        sys::resume(pid, On::ToCall, 0);
        Ok(tracer)
    }

    /// Counts from now on, not only after the process has executed the command.
    pub fn count_at_once(&mut self) {
        for thread in self.threads.values_mut() {
            thread.doing = Doing::Outside;
        }
    }

    /// Traces the command, which was just released, until it and its descendants have ended, or the time is up.
    ///
    /// # Errors
    /// If no process is left to wait for, but the command's end was not reported.
    pub fn run(
        &mut self,
        child: &Child,
        watch: &Watch,
        descendants: &Descendants,
        linger: Duration,
    ) -> io::Result<Finished> {
        self.began_ns = clock::now();
        let mut alarm = None;
        while !self.threads.is_empty() {
            match descendants.wait(0, || self.known()) {
                Ok(Some(wait)) => self.heard(wait, clock::now(), child),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if self.ended.is_some() {
                if alarm.is_none() && !self.threads.is_empty() {
                    alarm = Some(watch.command_is_over(if self.filtered { Duration::MAX } else { linger }));
                }
                if watch.enough() || (linger.is_zero() && !self.filtered) {
                    break;
                }
            }
        }
        self.leave(descendants);
        let (ended, at) = self.ended.ok_or_else(|| io::Error::from_raw_os_error(libc::ECHILD))?;
        Ok(Finished { ended, wall_ns: at.saturating_sub(self.began_ns), notes: Vec::new() })
    }

    fn known(&self) -> Vec<libc::pid_t> {
        self.threads.keys().copied().collect()
    }

    fn leave(&mut self, descendants: &Descendants) {
        if self.threads.is_empty() && self.early.is_empty() {
            return;
        }
        let processes: HashSet<_> = self.threads.values().map(|thread| thread.pid).collect();
        self.notes.push(if self.filtered {
            ended_with_it(processes.len())
        } else {
            still_running(Some(processes.len()))
        });
        for (new, _) in self.early.drain() {
            sys::resume(new, On::Alone, 0);
        }
        let mut left: HashSet<_> = self.threads.keys().copied().collect();
        for pid in &left {
            // A traced thread keeps its number until its end is reported.
            let _ = if self.filtered { process::kill(*pid, libc::SIGKILL) } else { sys::interrupt(*pid) };
        }
        let until = clock::now() + LEAVING.as_nanos() as u64;
        while !left.is_empty() && clock::now() < until {
            match descendants.wait(libc::WNOHANG, || self.known()) {
                Ok(Some(wait)) => {
                    if let Status::Stopped { signal, event } = wait.status {
                        let is_signal = event == 0 && signal != sys::SYSCALL_STOP;
                        sys::resume(wait.pid, On::Alone, if is_signal { signal } else { 0 });
                    }
                    left.remove(&wait.pid);
                }
                Ok(None) => std::thread::sleep(Duration::from_micros(200)),
                Err(_) => break,
            }
        }
    }

    pub fn finish(mut self) -> Collected {
        let mut missed = Vec::new();
        let mut note = |what: &str, number: u64| {
            if number > 0 {
                missed.push(Missed { what: what.to_owned(), number });
            }
        };
        note("processes beyond those kept one by one", self.tree.missed);
        note("calls of numbers beyond those counted separately", self.sums.missed);
        note("calls beyond those that the timeline keeps", self.events_missed);
        note(
            "operations on files beyond those that are kept",
            self.files.as_ref().map_or(0, |files| files.missed),
        );
        note(
            "operations on files whose path could not be read",
            self.files.as_ref().map_or(0, |files| files.unresolved),
        );
        let mut notes = self.notes;
        if self.filtered && self.has_own_filter {
            notes.push(NOT_SEEN.to_owned());
        }
        if self.sums.has_failed("ptrace") {
            notes.push(NO_SECOND.to_owned());
        }
        if let Some(program) = self.unprivileged {
            notes.push(format!(
                "{program} is set-user-ID, and ran without the rights of its owner: {NO_RIGHTS}"
            ));
        }
        let mut sums = self.sums;
        let mut tree = self.tree;
        for thread in self.threads.values() {
            if let Doing::Inside(inside) = &thread.doing {
                sums.add_unfinished(inside.key);
                tree.add_unfinished(thread.process, inside.key);
            }
        }
        Collected {
            began_ns: self.began_ns,
            stopped_ns: crate::clock::now(),
            blocked: Vec::new(),
            stacks: Vec::new(),
            idle: None,
            busy_ns: None,
            processes: tree.processes,
            threads: tree.threads,
            calls: sums.into_calls(),
            outside: (!self.filtered).then_some(self.outside),
            tree: tree.into_processes(),
            misaligned: self.files.as_mut().map(files::Files::take_misaligned).unwrap_or_default(),
            files: self.files.map(files::Files::into_times).unwrap_or_default(),
            missed,
            notes,
            events: named(self.events),
        }
    }

    fn is_asked_for(&self, key: Key) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&(key.number as u32, key.is_32_bit)))
    }
}

fn named(events: Vec<(Key, Event)>) -> Vec<Event> {
    let mut names = HashMap::new();
    let mut name =
        |key: Key| names.entry(key).or_insert_with(|| calls::name(key.number, key.is_32_bit)).clone();
    let mut named: Vec<Event> =
        events.into_iter().map(|(key, event)| Event { call: name(key), ..event }).collect();
    earliest_first(&mut named);
    named
}

pub(crate) fn still_running(processes: Option<usize>) -> String {
    let who = match processes {
        None => "processes that the command left were".to_owned(),
        Some(1) => "1 process that the command left was".to_owned(),
        Some(number) => format!("{number} processes that the command left were"),
    };
    format!("{who} still running at the end: they go on untraced")
}

fn ended_with_it(processes: usize) -> String {
    format!(
        "{processes} of its processes were killed at the end: their calls were filtered, and would have failed alone"
    )
}
