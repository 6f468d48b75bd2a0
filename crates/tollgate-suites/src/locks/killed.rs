//! The state of a lock after its owner was killed, found by killing processes.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::{ptr, time::Duration};

use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use crate::prelude::*;
use tollgate_model::traced::Ended;
use tollgate_os::process;
use tollgate_os::signals::{self, Disposition, Set};
use tollgate_os::timer::Timer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Free,
    /// The lock stays held, without an owner.
    Taken,
    /// An acquisition reports the dead owner: ESRCH, until another thread gets the owner's ID.
    Recoverable,
    /// An acquisition blocks: it waits for the dead process.
    Waiting,
}

/// The longest time of the loop before the kill, in nanoseconds.
const LONGEST: u64 = 200_000;

/// A note on kernel state that outlives all users of the lock.
pub(super) fn stays(method: Method) -> &'static str {
    match method {
        Method::Semop => {
            "kernel state left: the semaphore set stays until IPC_RMID or its namespace ends (tollgate uses a namespace, or the next run removes it)"
        }
        Method::Eventfd => "no kernel state left: the last close removes the eventfd",
        Method::FutexTrylockPi => "no kernel state left: a futex without waiters is memory",
        _ => "no kernel state: the lock is memory",
    }
}

pub(super) fn left_behind(method: Method, reach: Reach, quota: &Quota) -> Result<Left> {
    let lock = free_lock(method, reach)?;
    let holder = Child::fork(quota, |report| {
        if lock.join(HOLDER).is_ok_and(|mut handle| handle.take()) {
            say(report);
            loop {
                std::thread::park();
            }
        }
    })?;
    holder.killed_after(Duration::ZERO)?;
    what_the_next_finds(&lock, quota)
}

/// Kills a process at a random moment of a loop that acquires and releases the lock. No other process uses the lock at
/// that time, so contended states are not covered.
pub(super) fn left_at_random(
    method: Method,
    reach: Reach,
    random: &mut Random,
    quota: &Quota,
) -> Result<Left> {
    let lock = free_lock(method, reach)?;
    let user = Child::fork(quota, |report| {
        if let Ok(mut handle) = lock.join(HOLDER) {
            say(report);
            while handle.take() {
                handle.release();
            }
        }
    })?;
    user.killed_after(Duration::from_nanos(random.next_u64() % LONGEST))?;
    what_the_next_finds(&lock, quota)
}

const HOLDER: usize = 1;
const NEXT: usize = 2;

fn free_lock(method: Method, reach: Reach) -> Result<Lock> {
    let lock = Lock::new(method, reach, 2)?;
    lock.join(NEXT)?.try_out()?;
    Ok(lock)
}

/// Tries to acquire the lock in a child, since the acquisition may block forever.
fn what_the_next_finds(lock: &Lock, quota: &Quota) -> Result<Left> {
    let next = Child::fork(quota, |_| {
        let Ok(mut handle) = lock.join(NEXT) else { return };
        let Ok(_timer) = end_if_it_waits(&handle) else { process::exit_now(NO_TIMER) };
        let errno = tries(lock.method(), &mut handle);
        process::exit_now(errno)
    })?;
    let strange = |how: String| fail!("an acquisition after the owner was killed {how}");
    match next.wait() {
        Some(Ended::Signal(signal)) => Err(strange(format!("was itself killed by signal {signal}"))),
        Some(Ended::Exit(TAKEN_NOW)) => Ok(Left::Free),
        Some(Ended::Exit(WAITS)) => Ok(Left::Waiting),
        Some(Ended::Exit(NO_TIMER)) => {
            Err(skip!("no timer can be set that ends an acquisition that waits (timer_create(2))"))
        }
        Some(Ended::Exit(libc::EAGAIN | libc::EBUSY)) => Ok(Left::Taken),
        Some(Ended::Exit(libc::ESRCH)) => Ok(Left::Recoverable),
        Some(Ended::Exit(errno)) => {
            let why = tollgate_model::text::plainly(&io::Error::from_raw_os_error(errno));
            Err(strange(format!("returned {why}")))
        }
        None => Err(strange("left no status".to_owned())),
    }
}

/// The exit status after an acquisition. Others are error numbers; 0 means that the child did not get that far.
const TAKEN_NOW: libc::c_int = 255;
const WAITS: libc::c_int = 254;
const NO_TIMER: libc::c_int = 253;

/// Tries to acquire the lock a few times. Returns the last result, as an error number.
fn tries(method: Method, handle: &mut Handle) -> libc::c_int {
    const TRIES: u32 = 100;
    let mut answer = 0;
    for _ in 0..TRIES {
        answer = handle.test_and_set();
        if answer == 0 {
            return TAKEN_NOW;
        }
    }
    match method {
        Method::PthreadTrylock => answer.cast_signed(),
        // The results of the others are not error numbers.
        _ => method.errno(answer).unwrap_or(libc::EAGAIN),
    }
}

/// Ends this process with [`WAITS`] after an acquisition has yielded a few times. No other process uses the lock, so it would yield
/// forever. SIGALRM ends a process that sleeps, which no method does.
fn end_if_it_waits(handle: &Handle) -> io::Result<Timer> {
    const LOOK: Duration = Duration::from_millis(1);
    const PASSED: libc::c_uint = 600;
    YIELDS.store(handle.yields().cast_mut(), Relaxed);
    // SAFETY: the handler reads a number of this process's, and exits.
    unsafe { Disposition::handler(look, libc::SA_RESTART) }.set(libc::SIGPROF)?;
    signals::default(&[libc::SIGALRM]);
    Set::of(&[libc::SIGPROF, libc::SIGALRM]).unblock();
    // SAFETY: alarm(2) takes a number.
    unsafe { libc::alarm(PASSED) };
    let timer = Timer::new(libc::SIGPROF)?;
    timer.set(LOOK, LOOK)?;
    Ok(timer)
}

/// The count of yields of the acquisition.
static YIELDS: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());

extern "C" fn look(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    const MOST: u64 = 10;
    // SAFETY: the handle lives until this process exits, and its thread is interrupted.
    if unsafe { YIELDS.load(Relaxed).read_volatile() } >= MOST {
        process::exit_now(WAITS);
    }
}

/// A child that can report a point. Dropping this kills and reaps it.
struct Child {
    process: process::Child,
    report: PipeReader,
}

impl Child {
    fn fork(quota: &Quota, part: impl FnOnce(PipeWriter)) -> Result<Self> {
        let (report, reporter) = io::pipe().or_refused("pipe2 is refused")?;
        let life = || {
            part(reporter);
            0
        };
        let process = process::fork_bound(life);
        let process = process.map_err(|error| quota.refused("a process that is killed", &error))?;
        Ok(Self { process, report })
    }

    /// Waits for the report and then for `time`, kills the child and reaps it.
    fn killed_after(mut self, time: Duration) -> Result<()> {
        self.report
            .read_exact(&mut [0])
            .map_err(|_| fail!("the process ended before it acquired the lock"))?;
        std::thread::sleep(time);
        match self.process.end() {
            Ok(Ended::Signal(libc::SIGKILL)) => Ok(()),
            _ => Err(fail!("an uncontended lock could not be acquired")),
        }
    }

    fn wait(mut self) -> Option<Ended> {
        self.process.wait().ok()
    }
}

fn say(mut to: PipeWriter) {
    // If the parent has ended, the report is not needed.
    let _ = to.write_all(&[1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;
    use tollgate_os::namespaces;

    use crate::testing::{is_translated, pinned};

    fn here() -> Reach {
        Reach::On(cpu::home().expect("a pinned thread"))
    }

    fn each(mut test: impl FnMut(Method)) {
        in_a_process_of_its_own(|| {
            pinned();
            for method in Method::LOCKS {
                match free_lock(method, here()) {
                    Ok(_) => test(method),
                    Err(why) => eprintln!("skipped: {}: {why:?}", method.name()),
                }
            }
        });
    }

    #[test]
    fn a_lock_stays_held_after_its_owner_was_killed() {
        each(|method| {
            let left = if method == Method::FutexTrylockPi { Left::Recoverable } else { Left::Taken };
            assert_eq!(left_behind(method, here(), &Quota::default()), Ok(left), "{method:?}");
        });
    }

    #[test]
    fn a_random_kill_leaves_a_possible_state() {
        let mut random = Random::new(1);
        each(|method| {
            for _ in 0..20 {
                let left = left_at_random(method, here(), &mut random, &Quota::default())
                    .expect("a process to kill");
                // Only kernel locks report a dead owner, and only locks that wait within `take` can block.
                let possible = match method {
                    Method::FutexTrylockPi => &[Left::Free, Left::Recoverable][..],
                    Method::Lamport | Method::LamportUp => &[Left::Free, Left::Taken, Left::Waiting],
                    _ => &[Left::Free, Left::Taken],
                };
                assert!(possible.contains(&left), "{method:?}: {left:?}");
            }
        });
    }

    #[test]
    fn a_kill_can_block_lamports_lock() {
        in_a_process_of_its_own(|| {
            pinned();
            let mut random = Random::new(2);
            let mut left = || {
                left_at_random(Method::Lamport, here(), &mut random, &Quota::default())
                    .expect("a process to kill")
            };
            let has_blocked = (0..400).any(|_| left() == Left::Waiting);
            if !has_blocked && is_translated() {
                return eprintln!(
                    "skipped: QEMU's translator ends blocks of instructions elsewhere, and no kill of 400 hit"
                );
            }
            assert!(has_blocked, "400 kills never made an acquisition block");
        });
    }

    #[test]
    fn a_lock_without_a_kill_is_free() {
        each(|method| {
            let lock = free_lock(method, here()).expect("a lock");
            assert_eq!(what_the_next_finds(&lock, &Quota::default()), Ok(Left::Free), "{method:?}");
        });
    }

    #[test]
    fn killed_processes_are_reaped() {
        in_a_process_of_its_own(|| {
            pinned();
            left_at_random(Method::Lamport, here(), &mut Random::new(3), &Quota::default())
                .expect("a process to kill");
            drop(Child::fork(&Quota::default(), |_| std::thread::sleep(Duration::from_secs(60))));
            assert!(process::wait4(-1, libc::WNOHANG).is_err());
        });
    }

    #[test]
    fn a_semaphore_set_outlives_its_maker() {
        in_a_process_of_its_own(|| {
            // The set ends with this process in any case.
            if let Err(error) = namespaces::own_ipc() {
                return eprintln!("skipped: no namespace: {error}");
            }
            const KEY: libc::key_t = 7;
            let maker = Child::fork(&Quota::default(), |_| {
                // SAFETY: semget(2) takes numbers.
                unsafe { libc::semget(KEY, 1, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
            });
            assert_eq!(maker.expect("a process").wait(), Some(Ended::Exit(0)));
            // SAFETY: as above.
            assert!(unsafe { libc::semget(KEY, 1, 0) } >= 0, "{}", io::Error::last_os_error());
        });
    }
}
