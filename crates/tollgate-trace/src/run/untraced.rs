//! Waits for a command whose threads do not stop: they are traced inside the kernel, or not at all.

use std::{io, time::Duration};

use tollgate_model::traced::{Backend, Ended};
use tollgate_os::process::Status;

use super::{CommonPart, Failure};
use crate::bpf::Costs;
use crate::launch::{Child, Program};
use crate::outcome::{Collected, Finished, Trace};
use crate::ptrace::still_running;
use crate::{clock, descendants::Descendants, launch::signals::Watch, request::Request};

/// Measures a process that executes no program and does nothing.
pub(super) fn nothing() -> Result<Trace, Failure> {
    let request = Request { linger: Duration::ZERO, ..Request::new(Vec::new()) };
    let record = CommonPart::begin(&request, Backend::Rusage, Costs::default());
    let watch = Watch::begin();
    let mut child = Child::start_function(|| 0, &watch.inherited()).map_err(Failure::system("fork(2)"))?;
    let finished = let_go(&mut child, &watch, &record.descendants, request.linger, || 0)?;
    record.end(None, &child, &watch, finished, Collected::default())
}

pub(super) fn by_rusage(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let record = CommonPart::begin(request, Backend::Rusage, Costs::default());
    let watch = Watch::begin();
    let mut child =
        Child::start(program, request, None, &watch.inherited()).map_err(Failure::system("fork(2)"))?;
    let finished = let_go(&mut child, &watch, &record.descendants, request.linger, || 0)?;
    record.end(Some(program), &child, &watch, finished, Collected::default())
}

/// Releases a command, and waits for it and its descendants. `alive` counts its threads that are not known to have ended.
pub(super) fn let_go(
    child: &mut Child,
    watch: &Watch,
    descendants: &Descendants,
    linger: Duration,
    alive: impl Fn() -> u64,
) -> Result<Finished, Failure> {
    watch.pass_to(child.pid(), child.pidfd());
    let began = clock::now();
    child.release().map_err(Failure::system("write(2)"))?;
    let ended = wait_for(child.pid(), descendants).map_err(Failure::system("wait4(2)"))?;
    let wall_ns = clock::now().saturating_sub(began);
    let mut notes = Vec::new();
    if !all_have_ended(watch, descendants, linger) {
        notes.push(match alive() {
            0 => still_running(None),
            threads => still_running(usize::try_from(threads).ok()),
        });
    }
    Ok(Finished { ended, wall_ns, notes })
}

fn wait_for(pid: libc::pid_t, descendants: &Descendants) -> io::Result<Ended> {
    loop {
        match descendants.wait(0, || vec![pid]) {
            Ok(Some(wait)) if wait.pid == pid => {
                if let Status::Ended(ended) = wait.status {
                    return Ok(ended);
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until only children from before are left; orphans become children. Returns whether that happened in time.
fn all_have_ended(watch: &Watch, descendants: &Descendants, linger: Duration) -> bool {
    descendants.wait_for_the_dead();
    if descendants.is_empty() {
        return true;
    }
    let _alarm = watch.command_is_over(linger);
    while !watch.enough() && !linger.is_zero() {
        match descendants.wait(0, Vec::new) {
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return true,
            _ if descendants.is_empty() => return true,
            _ => {}
        }
    }
    false
}
