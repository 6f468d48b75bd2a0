//! What becomes of a lock whose holder is killed: tried, with processes that are.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Duration;
use std::{mem, ptr};

use super::lock::{Handle, Lock, Reach};
use super::method::Method;
use tollgate_engine::{Random, Refusal, alive, cpu, die_with_parent, limits};

/// What the next finds after a process that had to do with the lock was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It can be taken.
    Free,
    /// It looks taken, and nobody is there to give it back.
    Taken,
    /// Whoever takes it is told that its owner is dead: ESRCH, as long as no other thread has got the owner's number.
    Told,
    /// A take does not return: it waits for somebody who is dead.
    Waiting,
}

/// The longest that a process goes on taking and giving back until it is killed, in nanoseconds.
const LONGEST: u64 = 200_000;

/// What is left in the kernel when every process that used it is gone.
pub(super) fn stays(method: Method) -> &'static str {
    match method {
        Method::Semop => {
            "its set stays in the kernel after every process until it is removed (IPC_RMID) or its namespace ends: here it has a \
             namespace, or is marked and taken away by the next run"
        }
        Method::Eventfd => "nothing stays in the kernel: the counter goes with its last descriptor",
        Method::FutexTrylockPi => "nothing stays in the kernel: it is a word of memory while nobody waits",
        _ => "nothing stays in the kernel, which never knew of it",
    }
}

/// Kills a process that has the lock.
///
/// # Errors
/// [`Refusal::Skip`] where the place has not what it needs.
pub(super) fn left_behind(method: Method) -> Result<Left, Refusal> {
    let lock = free_lock(method)?;
    let holder = Child::fork(|told| {
        if lock.join(HOLDER).is_ok_and(|mut handle| handle.take()) {
            say(told);
            loop {
                std::thread::park();
            }
        }
    })?;
    holder.killed_after(Duration::ZERO)?;
    what_the_next_finds(&lock)
}

/// Kills a process that takes and gives back all the time, at a moment that nobody chose. One that waits for another on the
/// way to the lock would wait for more than is tried here: nobody else takes it meanwhile.
///
/// # Errors
/// As [`left_behind`].
pub(super) fn left_at_random(method: Method, random: &mut Random) -> Result<Left, Refusal> {
    alive();
    let lock = free_lock(method)?;
    let user = Child::fork(|told| {
        if let Ok(mut handle) = lock.join(HOLDER) {
            say(told);
            while handle.take() {
                handle.release();
            }
        }
    })?;
    user.killed_after(Duration::from_nanos(random.next() % LONGEST))?;
    what_the_next_finds(&lock)
}

/// The member that is killed.
const HOLDER: usize = 1;
/// The one that tries to take it then.
const NEXT: usize = 2;

/// One that works here, and that nobody has.
fn free_lock(method: Method) -> Result<Lock, Refusal> {
    let lock = Lock::new(method, Reach::On(cpu::home()?), 2)?;
    lock.join(NEXT)?.try_out()?;
    Ok(lock)
}

/// Lets a process of its own try to take it: it may never come back.
fn what_the_next_finds(lock: &Lock) -> Result<Left, Refusal> {
    let next = Child::fork(|_| {
        let Ok(mut handle) = lock.join(NEXT) else { return };
        limit_time();
        let errno = tries(lock.method(), &mut handle);
        // SAFETY: ends the copy without running what belongs to the original.
        unsafe { libc::_exit(errno) };
    })?;
    let strange = |how: String| Refusal::Fail(format!("a take after its holder was killed {how}"));
    let status = next.wait();
    if libc::WIFSIGNALED(status) {
        return match libc::WTERMSIG(status) {
            libc::SIGPROF => Ok(Left::Waiting),
            signal => Err(strange(format!("was itself killed by signal {signal}"))),
        };
    }
    match libc::WEXITSTATUS(status) {
        TAKEN_NOW => Ok(Left::Free),
        libc::EAGAIN | libc::EBUSY => Ok(Left::Taken),
        libc::ESRCH => Ok(Left::Told),
        errno => Err(strange(format!(
            "returned {}",
            tollgate_model::text::plainly(&io::Error::from_raw_os_error(errno))
        ))),
    }
}

/// The exit status of who could take it; any other is an error's number. 0 is of one that did not come so far.
const TAKEN_NOW: libc::c_int = 255;

/// Tries to take it a few times. What the last said, as an error's number.
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
        // What the others return is no error's number.
        _ => method.errno(answer).unwrap_or(libc::EAGAIN),
    }
}

/// Has this process killed by SIGPROF when it has used the processor a hundred times as long as so many takes need (setitimer(2)),
/// however busy the machine is; and by SIGALRM if it sleeps, which none of them does.
fn limit_time() {
    const USED: libc::timeval = libc::timeval { tv_sec: 0, tv_usec: 2_000 };
    const PASSED: libc::c_uint = 10;
    let limit = libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: USED };
    // SAFETY: an all-zero sigset_t is an empty set; the signals and their default actions are valid; the kernel reads the limit.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        for signal in [libc::SIGPROF, libc::SIGALRM] {
            libc::signal(signal, libc::SIG_DFL);
            libc::sigaddset(&mut set, signal);
        }
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        libc::setitimer(libc::ITIMER_PROF, &limit, ptr::null_mut());
        libc::alarm(PASSED);
    }
}

/// A process that can say that it has come so far. Killed and waited for when it is dropped.
struct Child {
    pid: libc::pid_t,
    told: PipeReader,
}

impl Child {
    /// One that does `part` and ends.
    fn fork(part: impl FnOnce(PipeWriter)) -> Result<Self, Refusal> {
        let (told, teller) = io::pipe().map_err(|error| Refusal::of("pipe2 is refused", &error))?;
        // SAFETY: getpid(2) has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the bench process has no other thread that holds a lock while this one forks, but for the C library's own,
        // which it makes safe across fork.
        match unsafe { libc::fork() } {
            -1 => Err(limits::refused("a process that is killed", &io::Error::last_os_error())),
            0 => {
                die_with_parent(parent);
                part(teller);
                // SAFETY: ends the copy without running what belongs to the original.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { pid, told }),
        }
    }

    /// Waits until it has come so far, and for so long more; then it is killed, and gone.
    fn killed_after(mut self, time: Duration) -> Result<(), Refusal> {
        self.told
            .read_exact(&mut [0])
            .map_err(|_| Refusal::Fail("a process that was to take the lock ended before".to_owned()))?;
        std::thread::sleep(time);
        // SAFETY: our child, which has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let status = self.wait();
        match libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
            true => Ok(()),
            false => Err(Refusal::Fail("a lock that nobody else wants could not be taken".to_owned())),
        }
    }

    /// Waits for its end: the status of waitpid(2).
    fn wait(mut self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: our child, which has not been waited for; `status` is valid for writing.
        while unsafe { libc::waitpid(self.pid, &mut status, 0) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        self.pid = 0;
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: our child, which has not been waited for, so the number is still its own.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, ptr::null_mut(), 0);
            }
        }
    }
}

/// To the parent, that it has come so far.
fn say(mut to: PipeWriter) {
    // Where nobody reads there is nobody to be told.
    let _ = to.write_all(&[1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;

    fn pin() {
        let all = cpu::allowed();
        cpu::pin(*all.last().expect("a processor")).expect("an allowed processor");
    }

    fn each(mut test: impl FnMut(Method)) {
        for method in Method::LOCKS {
            match free_lock(method) {
                Ok(_) => test(method),
                Err(why) => eprintln!("skipped: {}: {why:?}", method.name()),
            }
        }
    }

    #[test]
    fn a_holder_that_is_killed_leaves_it_taken_and_the_kernel_alone_tells() {
        in_a_process_of_its_own(|| {
            pin();
            each(|method| {
                let left = match method {
                    Method::FutexTrylockPi => Left::Told,
                    _ => Left::Taken,
                };
                assert_eq!(left_behind(method), Ok(left), "{}", method.name());
            });
        });
    }

    #[test]
    fn one_that_is_killed_at_random_leaves_what_its_method_can_leave() {
        in_a_process_of_its_own(|| {
            pin();
            let mut random = Random::new(1);
            each(|method| {
                for _ in 0..20 {
                    let left = left_at_random(method, &mut random).expect("a process to kill");
                    // Only the kernel tells, and only who waits within a take can wait for the dead.
                    let possible = match method {
                        Method::FutexTrylockPi => &[Left::Free, Left::Told][..],
                        Method::Lamport | Method::LamportUp => &[Left::Free, Left::Taken, Left::Waiting],
                        _ => &[Left::Free, Left::Taken],
                    };
                    assert!(possible.contains(&left), "{}: {left:?}", method.name());
                }
            });
        });
    }

    #[test]
    fn lamports_takes_wait_for_ever_once_somebody_was_killed_on_the_way() {
        in_a_process_of_its_own(|| {
            pin();
            let mut random = Random::new(2);
            let mut left = || left_at_random(Method::Lamport, &mut random).expect("a process to kill");
            assert!((0..400).any(|_| left() == Left::Waiting), "400 kills left nobody waiting");
        });
    }

    #[test]
    fn a_lock_that_nobody_was_killed_with_is_free() {
        in_a_process_of_its_own(|| {
            pin();
            each(|method| {
                let lock = free_lock(method).expect("a lock");
                assert_eq!(what_the_next_finds(&lock), Ok(Left::Free), "{}", method.name());
            });
        });
    }

    #[test]
    fn nobody_is_left_of_those_that_were_killed() {
        in_a_process_of_its_own(|| {
            pin();
            left_at_random(Method::Lamport, &mut Random::new(3)).expect("a process to kill");
            drop(Child::fork(|_| std::thread::sleep(Duration::from_secs(60))));
            // SAFETY: no status is asked for.
            assert_eq!(unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) }, -1);
        });
    }

    #[test]
    fn a_set_of_semaphores_outlives_the_process_that_made_it() {
        in_a_process_of_its_own(|| {
            // SAFETY: unshare(2) takes a number: the set goes with this process, whatever happens.
            if unsafe { libc::unshare(libc::CLONE_NEWIPC) } != 0 {
                return eprintln!("skipped: no namespace: {}", io::Error::last_os_error());
            }
            const KEY: libc::key_t = 7;
            let maker = Child::fork(|_| {
                // SAFETY: semget(2) takes numbers.
                unsafe { libc::semget(KEY, 1, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
            });
            assert_eq!(maker.expect("a process").wait(), 0);
            // SAFETY: as above.
            assert!(unsafe { libc::semget(KEY, 1, 0) } >= 0, "{}", io::Error::last_os_error());
        });
    }
}
