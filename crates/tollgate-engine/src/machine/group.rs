//! A process group of a child. All its processes end when its first process ends, and when this process ends for any reason.
//!
//! The parent is the subreaper (prctl(2)) of its measuring processes: one may end with children of its own, which an init would
//! reap late. If the parent is killed, each process dies with it (PR_SET_PDEATHSIG).

use std::io;
use std::time::{Duration, Instant};

use tollgate_os::group::{self as os_group, Group};
use tollgate_os::process::{self, Child};
use tollgate_os::{children::Inherited, signals};

use crate::{machine::ending::Ending, machine::interrupt};

/// The interval between two checks of a measuring process. On one processor each wake-up of the parent disturbs the measurement.
pub(crate) const LOOK: Duration = Duration::from_millis(40);

/// Runs `work` in the first process of a new group, a fork of this one, which exits with the status that it returns. The group is
/// killed at `deadline`, when the user asks to stop, or when `goes_on`, which is called repeatedly, returns false.
pub fn run(
    work: impl FnOnce() -> i32,
    deadline: Instant,
    mut goes_on: impl FnMut() -> bool,
) -> io::Result<Ending> {
    let first = process::fork_bound(|| {
        os_group::lead();
        // A program inherits ignored signals, so they get their default action back.
        signals::default(&[libc::SIGPIPE, libc::SIGXFSZ]);
        work()
    })?;
    let number = first.pid();
    os_group::join(number, number);
    let mut group = Group::of(first);
    // The guard must be in the group before the group can end, and ends with it.
    os_group::guard(number)?.leave();
    loop {
        if let Some(ended) = group.reap() {
            return Ok(ended.into());
        }
        let cut = match interrupt::requested() {
            Some(_) => Some(Ending::Interrupted),
            None => (!goes_on() || Instant::now() >= deadline).then_some(Ending::OutOfTime),
        };
        if let Some(ending) = cut {
            group.kill();
            return Ok(ending);
        }
        group.wait_a_while(LOOK);
    }
}

/// Kills daemons: processes that left their group and were reparented to this one, now or as others end. Children from before the
/// first measurement are left alone. Returns how many had not ended by themselves.
pub fn end_strays(inherited: &Inherited) -> u32 {
    /// Each generation arrives when the one before has ended.
    const GENERATIONS: usize = 64;
    let mut ended = 0;
    let mut left = Vec::new();
    for _ in 0..GENERATIONS {
        let mut later = inherited.later();
        later.retain(|pid| !left.contains(pid));
        if later.is_empty() {
            break;
        }
        for pid in later {
            let was_running = is_running(pid);
            drop(Group::of(Child::adopt(pid)));
            if was_running && is_running(pid) {
                left.push(pid);
            } else {
                ended += u32::from(was_running);
            }
        }
    }
    ended
}

/// Whether a child has not ended.
pub fn is_running(child: libc::pid_t) -> bool {
    matches!(process::peek(Some(child), libc::WEXITED | libc::WNOHANG), Ok(None))
}
