//! The process that executes a command: the leader of the command's process group, with its streams and settings.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_engine::versus::{End, Execution, How, Input, Order, Output};
use tollgate_engine::{checked, group};
use tollgate_model::Traced;
use tollgate_model::text::plainly;
use tollgate_os::children::{Inherited, Subreaper};
use tollgate_os::{affinity, paths, process};
use tollgate_trace::{Choice, Request, Trace, trace, trace_nothing};

use super::answer::Answer;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ran {
    traced: Traced,
    memory: Option<u64>,
    faults: u64,
    left: u32,
}

impl Ran {
    fn of(Trace { traced, used, .. }: Trace) -> Self {
        Self { traced, memory: used.memory, faults: used.faults, left: 0 }
    }

    pub fn execution(self, order: &Order, said: String) -> Execution {
        let Self { traced, memory, faults, left } = self;
        Execution {
            end: traced
                .ended
                .map_or_else(|| End::NotStarted("how it ended is not known".to_owned()), End::Ended),
            wall_ns: traced.wall_ns,
            user_ns: traced.user_ns,
            sys_ns: traced.sys_ns,
            memory,
            faults,
            ticks: 0,
            switches: 0,
            traced: matches!(order.how, How::Traced { .. }).then_some(traced),
            said,
            left,
        }
    }
}

/// Runs this process from start to end. Redirects standard error to `to` if it is given.
pub(super) fn life(order: &Order, to: Option<BorrowedFd<'_>>, answer: &Answer) -> i32 {
    if !order.keeps {
        return answer.give(&execute(order, to));
    }
    // Processes that may stay need another group, because this process's group is killed when it ends.
    let own = process::fork_bound(|| {
        tollgate_os::group::lead();
        answer.give(&execute(order, to))
    });
    match own.and_then(|mut own| own.wait()) {
        Ok(tollgate_model::traced::Ended::Exit(status)) => status,
        Ok(tollgate_model::traced::Ended::Signal(signal)) => {
            answer.give(&Err::<Ran, _>(End::KilledGroup(signal)))
        }
        Err(error) => answer.give(&Err::<Ran, _>(End::NotStarted(format!("fork(2): {}", plainly(&error))))),
    }
}

fn execute(order: &Order, to: Option<BorrowedFd<'_>>) -> Result<Ran, End> {
    settle(order, to).map_err(End::NotStarted)?;
    let traced = {
        // Processes that the command leaves behind are reparented to this one and counted.
        let _subreaper = Subreaper::begin();
        let before = Inherited::now();
        let traced = if order.words.is_empty() { trace_nothing() } else { trace(&request(order)) };
        traced.map(|traced| {
            let left = before.later().into_iter().filter(|pid| group::is_running(*pid)).count();
            Ran {
                left: if order.keeps { 0 } else { u32::try_from(left).unwrap_or(u32::MAX) },
                ..Ran::of(traced)
            }
        })
    };
    traced.map_err(|error| End::NotStarted(error.to_string()))
}

fn request(order: &Order) -> Request {
    let by = match order.how {
        // ptrace(2) starts at once, and knows the paths by which files are opened.
        How::Traced { .. } if order.is_alone => Choice::Ptrace,
        How::Traced { .. } => Choice::Best,
        _ => Choice::Rusage,
    };
    Request {
        by,
        files: order.how == How::Traced { files: true },
        paths: order.is_alone,
        linger: Duration::ZERO,
        ..Request::new(order.words.iter().map(OsString::from).collect())
    }
}

/// Puts this process into the state in which the command begins.
fn settle(order: &Order, to: Option<BorrowedFd<'_>>) -> Result<(), String> {
    // A command that reads from a terminal in the background would be stopped, and the wait would never end.
    let _ = process::leave_terminal();
    streams(order, to)?;
    if order.is_alone {
        // SAFETY: this process is a fork with one thread.
        std::env::vars_os().for_each(|(name, _)| unsafe { std::env::remove_var(name) });
    }
    for (name, value) in &order.variables {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("a variable named {name:?} cannot be set"));
        }
        // SAFETY: this process is a fork with one thread.
        unsafe { std::env::set_var(name, value) };
        if order.is_alone && name == "PWD" {
            std::env::set_current_dir(value)
                .map_err(|error| format!("its directory {value}: {}", plainly(&error)))?;
        }
    }
    if !order.processors.is_empty() {
        affinity::pin(0, &order.processors).map_err(|error| {
            let asked = tollgate_model::text::listed(&order.processors);
            format!("it cannot be executed on processor {asked}: {}", plainly(&error))
        })?;
    }
    match &order.cgroup {
        None => Ok(()),
        Some(cgroup) => enter(cgroup).map_err(|error| {
            format!("the control group {} cannot be entered: {}", cgroup.display(), plainly(&error))
        }),
    }
}

/// Moves this process to a control group (cgroups(7)).
fn enter(cgroup: &Path) -> io::Result<()> {
    let mut processes = File::options().write(true).open(cgroup.join("cgroup.procs"))?;
    io::Write::write_all(&mut processes, b"0\n")
}

fn streams(order: &Order, to: Option<BorrowedFd<'_>>) -> Result<(), String> {
    let failed =
        |what: &str, path: &Path, error: &io::Error| format!("{what} {}: {}", path.display(), plainly(error));
    let nothing = Path::new("/dev/null");
    let open = |path: &Path| File::open(path).map_err(|error| failed("its standard input", path, &error));
    let make = |path: &Path| {
        paths::open_emptied(path).map_err(|error| failed("its standard output", path, &error.into()))
    };
    let input = match &order.input {
        Input::Null => open(nothing),
        Input::File(path) => open(path),
    }?;
    let output = match &order.output {
        Output::Inherit | Output::Pipe => None,
        Output::Null => {
            let opened = File::options().write(true).open(nothing);
            Some(opened.map_err(|error| failed("its standard output", nothing, &error))?)
        }
        Output::File(path) => Some(make(path)?),
    };
    let errors = to.map_or(2, |to| to.as_raw_fd());
    let output = output.as_ref().map_or(to.map_or(1, |to| to.as_raw_fd()), AsRawFd::as_raw_fd);
    set_streams([input.as_raw_fd(), output, errors]).map_err(|error| format!("dup2(2): {}", plainly(&error)))
}

pub(crate) fn set_streams(streams: [RawFd; 3]) -> io::Result<()> {
    for (number, descriptor) in (0..).zip(streams) {
        // SAFETY: open descriptors of this process.
        checked(unsafe { libc::dup2(descriptor, number) })?;
    }
    Ok(())
}
