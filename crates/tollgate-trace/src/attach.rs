//! Traces running processes until they end, for a time, or until a signal asks this process to end. They are neither stopped
//! nor changed, and go on when the trace ends.
//!
//! [`given`] and [`group`] determine the processes, [`wait`] waits for the end, and [`interval`] is a part of a trace.

mod given;
mod group;
mod interval;
mod wait;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tollgate_model::Traced;
use tollgate_model::traced::{Attached, Backend, Ended, MOST_ENTRIES, TimesFrom, Until};
use tollgate_os::privileges;

use crate::bpf::{Bpf, Costs};
use crate::outcome::{Collected, Trace, TraceError, Used};
use crate::ptrace::still_running;
use crate::request::{Choice, Request, Running};
use crate::run::check_names;
use given::{Given, GroupProcesses};
use group::Directory;
pub use interval::Interval;
use wait::{Next, Signals};

/// Traces running processes with their threads and the children that they create from now on. Each interval of
/// `running.every` is shown when it is over, and the last one at the end.
///
/// # Errors
/// See [`TraceError`]: a process does not exist or cannot be traced, or the backend cannot work here.
pub fn attach(request: &Request, running: &Running, show: impl FnMut(Interval)) -> Result<Trace, TraceError> {
    check_names(request)?;
    if privileges::are_of_file() {
        return Err(TraceError::of_other_users("processes that already run are traced"));
    }
    allow_descriptors();
    if request.by == Choice::Ptrace {
        let why = "ptrace(2) stops the processes that it traces, so processes that already run are traced only with BPF";
        return Err(TraceError::Unavailable(why.to_owned()));
    }
    let group = running.cgroup.as_deref().map(Directory::find).transpose().map_err(TraceError::Request)?;
    let found = match &group {
        Some(group) => GroupProcesses::first(group).map_err(TraceError::Request)?,
        None => GroupProcesses { given: Given::all(&running.processes)?, left_out: 0 },
    };
    let signals = Signals::hold().map_err(|error| TraceError::System("signalfd(2)", error))?;
    let refused = |why: String| {
        TraceError::Unavailable(format!("BPF cannot trace here: {}", given::with_owners(&found.given, why)))
    };
    let request = Request {
        running: true,
        cgroup: group.as_ref().and_then(Directory::group),
        command: Vec::new(),
        ..request.clone()
    };
    let bpf = Bpf::load(&request).map_err(refused)?;
    let mut session = Session::begin(bpf, Subject { found, group, processors: 0 }, show)
        .map_err(|why| TraceError::Unavailable(format!("BPF cannot trace here: {why}")))?;
    let limits = wait::Limits { time: running.time, every: running.every, linger: request.linger };
    let until = session.wait(&limits, &signals).map_err(|error| TraceError::System("poll(2)", error))?;
    Ok(session.end(until, running.every.is_some()))
}

/// Raises the limit on descriptors, since each traced process takes one. No command is started that would inherit it.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the usual limit stays, and running out of descriptors is reported.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

struct Subject {
    found: GroupProcesses,
    group: Option<Directory>,
    /// The number of processors in the first process's affinity mask.
    processors: u32,
}

struct Session<F> {
    bpf: Bpf,
    subject: Subject,
    began_ns: u64,
    /// The totals at the end of the last interval, and the number of intervals.
    last: Collected,
    intervals: u64,
    show: F,
}

impl<F: FnMut(Interval)> Session<F> {
    fn begin(bpf: Bpf, mut subject: Subject, show: F) -> Result<Self, String> {
        let first = subject.found.given.first().map_or(0, |first| first.pid.cast_signed());
        let processors = tollgate_os::affinity::allowed(first).map_or(0, |allowed| allowed.len());
        subject.processors = u32::try_from(processors).unwrap_or(u32::MAX);
        let began_ns = bpf.begin();
        take(&bpf, &subject.found.given)?;
        let last = Collected { stopped_ns: began_ns, ..Collected::default() };
        let mut session = Self { bpf, subject, began_ns, last, intervals: 0, show };
        session.take_newcomers()?;
        session.check_that_each_is_taken()?;
        session.look();
        Ok(session)
    }

    /// Adds processes of the control group that were created, or entered it, while the others were added.
    fn take_newcomers(&mut self) -> Result<(), String> {
        const MOST_PASSES: usize = 10;
        let Some(group) = &self.subject.group else { return Ok(()) };
        for _ in 0..MOST_PASSES {
            let known: BTreeSet<u32> = self.subject.found.given.iter().map(|one| one.pid).collect();
            let Ok(new) = GroupProcesses::in_group(group, &known) else { break };
            // Processes that are left out are found each time.
            self.subject.found.left_out = new.left_out;
            if new.given.is_empty() {
                break;
            }
            take(&self.bpf, &new.given)?;
            self.subject.found.given.extend(new.given);
        }
        Ok(())
    }

    /// A named process that runs but is not in the tree would give a trace without calls.
    fn check_that_each_is_taken(&self) -> Result<(), String> {
        if self.subject.group.is_some() {
            return Ok(());
        }
        let is_missing = |one: &&Given| !self.bpf.has_taken(one.descriptor.as_fd()) && one.runs();
        match self.subject.found.given.iter().find(is_missing) {
            Some(one) => Err(format!(
                "the kernel refused to attach to any thread of process {} ({})",
                one.pid, one.name
            )),
            None => Ok(()),
        }
    }

    fn look(&mut self) {
        for one in &self.subject.found.given {
            self.bpf.look_at(one.pid);
        }
    }

    fn wait(&mut self, limits: &wait::Limits, signals: &Signals) -> io::Result<Until> {
        // For a control group the number of live threads tells when it is over; new processes have no known number.
        let is_group = self.subject.group.is_some();
        let awaited = if is_group { &[][..] } else { &self.subject.found.given[..] };
        let awaited = awaited.iter().map(|one| one.descriptor.try_clone()).collect::<io::Result<_>>()?;
        let mut wait = wait::Wait::begin(awaited, limits);
        let mut arrived = self.bpf.arrived();
        loop {
            match wait.next(signals, is_group, || self.bpf.alive())? {
                Next::End(until) => return Ok(until),
                Next::Interval => {
                    let now = self.bpf.so_far();
                    self.close_interval(now);
                }
                Next::Look => {
                    let now = self.bpf.arrived();
                    if now != arrived {
                        arrived = now;
                        // After a failure, this is tried again when the next process arrives.
                        let _ = self.bpf.take(std::iter::empty());
                    }
                }
            }
        }
    }

    fn close_interval(&mut self, now: Collected) {
        let added = interval::difference(&now, &self.last);
        let (from, to) = (self.last.stopped_ns, now.stopped_ns);
        self.last = now;
        self.intervals += 1;
        let traced = self.subject.traced(None, self.bpf.costs(), to.saturating_sub(from), added);
        let since = |moment: u64| moment.saturating_sub(self.began_ns);
        (self.show)(Interval { number: self.intervals, from_ns: since(from), to_ns: since(to), traced });
    }

    fn end(mut self, until: Until, has_intervals: bool) -> Trace {
        self.look();
        let (costs, alive) = (self.bpf.costs(), self.bpf.alive());
        let sees_arrivals = self.subject.group.is_none() || self.bpf.sees_arrivals();
        let mut collected = self.bpf.finish();
        if until == Until::Exited && alive > 0 {
            collected.notes.push(still_running(usize::try_from(alive).ok()));
        }
        collected.notes.extend(self.subject.found.note());
        if !sees_arrivals {
            let note = "this kernel does not report which processes join a control group: those that were in it, and their children, were traced";
            collected.notes.push(note.to_owned());
        }
        let wall_ns = collected.stopped_ns.saturating_sub(self.began_ns);
        if has_intervals {
            let since = |moment: u64| moment.saturating_sub(self.began_ns);
            let (from, to) = (self.last.stopped_ns, collected.stopped_ns);
            let added = interval::difference(&collected, &self.last);
            let traced = self.subject.traced(None, costs, to.saturating_sub(from), added);
            let number = self.intervals + 1;
            (self.show)(Interval { number, from_ns: since(from), to_ns: since(to), traced });
        }
        let (events, stacks) = (std::mem::take(&mut collected.events), std::mem::take(&mut collected.stacks));
        let traced = self.subject.traced(Some(until), costs, wall_ns, collected);
        Trace { traced, used: Used::default(), events, began_ns: 0, stacks, ended: Ended::Exit(0) }
    }
}

fn take(bpf: &Bpf, given: &[Given]) -> Result<(), String> {
    bpf.take(given.iter().map(|one| (one.pid, one.name.as_str(), one.descriptor.as_fd())))
}

impl Subject {
    /// Builds the result of a trace of `wall_ns`; `until` is `None` while it goes on.
    fn traced(&self, until: Option<Until>, costs: Costs, wall_ns: u64, collected: Collected) -> Traced {
        // These do not include what the processes used before.
        let (user_ns, sys_ns, times_from) = match collected.processor_time(Backend::Bpf) {
            Some((user_ns, sys_ns)) => (user_ns, sys_ns, TimesFrom::Trace),
            None => (0, 0, TimesFrom::Unknown),
        };
        let command = match (&self.found.given[..], &self.group) {
            ([one], None) => one.command.clone(),
            _ => Vec::new(),
        };
        let cgroup = self.group.as_ref().map(|group| group.path().display().to_string());
        Traced {
            command,
            attached: Some(Attached {
                processes: self.found.given.iter().map(|one| one.pid).take(MOST_ENTRIES).collect(),
                cgroup,
                until,
            }),
            processors: self.processors,
            user_ns,
            sys_ns,
            times_from,
            cost_per_call_ns: costs.traced,
            cost_to_others_ns: costs.others,
            ..collected.into_traced(Backend::Bpf, wall_ns)
        }
    }
}
