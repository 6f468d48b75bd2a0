//! Waiting for a command whose threads do not stop: they are followed inside the kernel, or by nobody.

use std::io;
use std::time::Duration;

use tollgate_model::traced::{Backend, Ended};

use super::household::Household;
use super::{Course, Failure, Record};
use crate::followed::{Followed, Trace};
use crate::launch::signals::Watch;
use crate::launch::{Child, Program};
use crate::ptrace::{still_running, sys};
use crate::request::Request;

/// What wait4(2) tells, where nobody may follow.
pub(super) fn by_nobody(request: &Request, program: &Program) -> Result<Trace, Failure> {
    let record = Record::begin(request, Backend::Rusage, None);
    let watch = Watch::begin();
    let mut child = Child::start(program, request.identity, None, &watch.inherited())
        .map_err(Failure::system("fork(2)"))?;
    let course = let_go(&mut child, &watch, &record.household, request.linger, || 0)?;
    record.end(program, &child, &watch, course, Followed::default())
}

/// Lets a command go, and waits for it and for what it leaves. `alive`: threads of it that have not ended, as far as is known.
pub(super) fn let_go(
    child: &mut Child,
    watch: &Watch,
    household: &Household,
    linger: Duration,
    alive: impl Fn() -> u64,
) -> Result<Course, Failure> {
    watch.pass_to(child.pid(), child.pidfd(), true);
    let began = sys::now();
    child.release().map_err(Failure::system("write(2)"))?;
    let ended = wait_for(child.pid(), watch, household).map_err(Failure::system("wait4(2)"))?;
    let wall_ns = sys::now().saturating_sub(began);
    watch.dismiss_the_witness();
    let mut notes = Vec::new();
    if watch.asked_by_command().is_none() && !all_have_ended(watch, household, linger) {
        notes.push(match alive() {
            0 => still_running(None),
            threads => still_running(usize::try_from(threads).ok()),
        });
    }
    Ok(Course { ended, wall_ns, notes })
}

/// Waits for the command, and for others that end meanwhile. Where the command stops, this process does too.
fn wait_for(pid: libc::pid_t, watch: &Watch, household: &Household) -> io::Result<Ended> {
    loop {
        match household.wait(libc::WUNTRACED, || vec![pid]) {
            Ok(Some(wait)) if wait.pid == pid && libc::WIFSTOPPED(wait.status) => {
                watch.stop_with(pid, || sys::has_continued(pid));
            }
            Ok(Some(wait)) if wait.pid == pid => return Ok(sys::ended(wait.status)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until this process has no children any more but those that it had before: what loses its parent becomes one. Whether
/// it came so far in time.
fn all_have_ended(watch: &Watch, household: &Household, linger: Duration) -> bool {
    household.wait_for_the_dead();
    if household.is_empty() {
        return true;
    }
    let _alarm = watch.command_is_over(linger);
    while !watch.enough() && !linger.is_zero() {
        match household.wait(0, Vec::new) {
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return true,
            _ if household.is_empty() => return true,
            _ => {}
        }
    }
    false
}
