//! Processes that run already: traced from now on, until they end, or for a time, or until a signal asks this process to end. They are
//! neither stopped nor changed, and go on when the trace ends.
//!
//! [`given`] says which processes they are, [`wait`] waits for the end.

mod given;
mod wait;

use std::io;
use std::os::fd::AsFd;

use tollgate_model::Traced;
use tollgate_model::traced::{Attached, Backend, Ended, TimesFrom, Until};

use crate::bpf::{Bpf, Costs};
use crate::outcome::{Collected, Trace, TraceError, Used};
use crate::ptrace::still_running;
use crate::request::{Choice, Request, Running};
use crate::run::check_names;
use given::Given;
use wait::Signals;

/// Traces processes that run already, with their threads and the children that they make from now on.
///
/// # Errors
/// See [`TraceError`]: a process that is not there or cannot be traced, or a backend that cannot work here.
pub fn attach(request: &Request, running: &Running) -> Result<Trace, TraceError> {
    check_names(request)?;
    let given = Given::all(&running.processes)?;
    if request.by == Choice::Ptrace {
        let why = "ptrace(2) stops what it traces: processes that run already are traced with BPF only";
        return Err(TraceError::Unavailable(why.to_owned()));
    }
    let system = |what: &'static str| move |error: io::Error| TraceError::System(what, error);
    let signals = Signals::hold().map_err(system("signalfd(2)"))?;
    let refused = |why: String| {
        TraceError::Unavailable(format!("BPF cannot trace here: {}", given::with_owners(&given, why)))
    };
    let request = Request { running: true, command: Vec::new(), ..request.clone() };
    let bpf = Bpf::load(&request).map_err(refused)?;
    let began_ns = bpf.begin();
    let wanted = given.iter().map(|one| (one.pid, one.name.as_str(), one.descriptor.as_fd()));
    bpf.take(wanted).map_err(refused)?;
    let limits = wait::Limits { time: running.time, linger: request.linger };
    let until = wait::wait(&given, &limits, &signals, || bpf.alive()).map_err(system("poll(2)"))?;
    let (costs, alive) = (bpf.costs(), bpf.alive());
    let mut collected = bpf.finish();
    if until == Until::Exited && alive > 0 {
        collected.notes.push(still_running(usize::try_from(alive).ok()));
    }
    let events = std::mem::take(&mut collected.events);
    let traced = traced(&given, until, costs, began_ns, collected);
    Ok(Trace { traced, used: Used::default(), events, ended: Ended::Exit(0) })
}

/// The result of the trace of these processes, which began then.
fn traced(given: &[Given], until: Until, costs: Costs, began_ns: u64, collected: Collected) -> Traced {
    let processors = tollgate_os::affinity::allowed(given.first().map_or(0, |first| first.pid.cast_signed()));
    // What they had used before is in none of these.
    let (user_ns, sys_ns, times_from) = match collected.processor_time(Backend::Bpf) {
        Some((user_ns, sys_ns)) => (user_ns, sys_ns, TimesFrom::Trace),
        None => (0, 0, TimesFrom::Unknown),
    };
    Traced {
        command: match given {
            [one] => one.command.clone(),
            _ => Vec::new(),
        },
        backend: Backend::Bpf,
        attached: Some(Attached {
            processes: given.iter().map(|one| one.pid).collect(),
            cgroup: None,
            until,
        }),
        ended: None,
        processors: processors.map_or(0, |allowed| u32::try_from(allowed.len()).unwrap_or(u32::MAX)),
        wall_ns: collected.stopped_ns.saturating_sub(began_ns),
        user_ns,
        sys_ns,
        times_from,
        busy_ns: collected.busy_ns,
        idle: collected.idle,
        processes: collected.processes,
        threads: collected.threads,
        calls: collected.calls,
        outside: collected.outside,
        tree: collected.tree,
        files: collected.files,
        misaligned: collected.misaligned,
        cost_per_call_ns: costs.traced,
        cost_to_others_ns: costs.others,
        missed: collected.missed,
        notes: collected.notes,
    }
}
