//! A semaphore of System V. It belongs to no process: left alone it would stay until the machine is started anew.
//!
//! So it is made in a namespace that goes with the process (ipc_namespaces(7)) where one may be had. Elsewhere its key
//! bears a mark, and the next that is made takes away those whose maker has ended.

use std::io;

use tollgate_engine::Refusal;

/// A semaphore, free when it is made, gone when this is dropped by the process that made it.
pub(super) struct Semaphore {
    number: libc::c_int,
    maker: libc::pid_t,
}

/// The upper half of the keys of ours: "tg". The lower half is a number.
const MARK: libc::key_t = 0x7467_0000;
/// In a set: the one that is taken and given back.
const OURS: libc::c_int = 0;
/// And one that nobody touches but its maker, so that the kernel knows who that was.
const MAKERS: libc::c_int = 1;
/// How many keys are tried.
const TRIES: libc::key_t = 64;

impl Semaphore {
    /// # Errors
    /// [`Refusal::Skip`] where the place has none.
    pub fn new() -> Result<Self, Refusal> {
        let number = if in_a_namespace_of_its_own() { make(libc::IPC_PRIVATE)? } else { make_marked()? };
        // SAFETY: getpid(2) has no preconditions.
        let semaphore = Self { number, maker: unsafe { libc::getpid() } };
        for which in [OURS, MAKERS] {
            // SAFETY: the set has two semaphores, and SETVAL takes a number.
            if unsafe { libc::semctl(number, which, libc::SETVAL, 1) } != 0 {
                return Err(Refusal::of("semctl(2) is refused", &io::Error::last_os_error()));
            }
        }
        Ok(semaphore)
    }

    /// By which system calls know its set.
    pub fn number(&self) -> libc::c_int {
        self.number
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: getpid(2) has no preconditions.
        if unsafe { libc::getpid() } == self.maker {
            remove(self.number);
        }
    }
}

/// Whether what this thread makes from now on goes with it and its children.
pub(super) fn in_a_namespace_of_its_own() -> bool {
    thread_local! {
        // Whoever leaves a namespace leaves the semaphores in it: once is enough.
        static PRIVATE: bool = {
            // SAFETY: unshare(2) takes a number; no semaphore is older.
            unsafe { libc::unshare(libc::CLONE_NEWIPC) == 0 }
        };
    }
    PRIVATE.with(|private| *private)
}

fn make(key: libc::key_t) -> Result<libc::c_int, Refusal> {
    // SAFETY: semget(2) takes numbers.
    match unsafe { libc::semget(key, 2, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) } {
        -1 => Err(Refusal::of("semget(2) is refused", &io::Error::last_os_error())),
        number => Ok(number),
    }
}

/// Under the first key that is free, after those whose maker is gone were taken away.
fn make_marked() -> Result<libc::c_int, Refusal> {
    let keys = MARK..MARK + TRIES;
    for key in keys.clone() {
        // SAFETY: semget(2) takes numbers; without IPC_CREAT it makes nothing.
        let known = unsafe { libc::semget(key, 2, 0) };
        if known >= 0 && maker_is_gone(known) {
            remove(known);
        }
    }
    let mut refusal = Refusal::Fail("every key for a semaphore is taken".to_owned());
    for key in keys {
        match make(key) {
            Ok(number) => return Ok(number),
            Err(why) => refusal = why,
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EEXIST) {
            break;
        }
    }
    Err(refusal)
}

/// Whether the process that made a set has ended.
fn maker_is_gone(number: libc::c_int) -> bool {
    // SAFETY: GETPID takes nothing.
    let pid = unsafe { libc::semctl(number, MAKERS, libc::GETPID) };
    // SAFETY: signal 0 only asks whether there is such a process.
    pid > 0
        && unsafe { libc::kill(pid, 0) } != 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

fn remove(number: libc::c_int) {
    // SAFETY: the set is of our own making.
    unsafe { libc::semctl(number, 0, libc::IPC_RMID) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;

    /// Whether there is a set of this key.
    fn is_there(key: libc::key_t) -> bool {
        // SAFETY: semget(2) takes numbers; without IPC_CREAT it makes nothing.
        unsafe { libc::semget(key, 2, 0) >= 0 }
    }

    #[test]
    fn what_a_killed_process_left_is_taken_away_by_the_next_and_what_lives_is_not() {
        in_a_process_of_its_own(|| {
            // The machine's own sets are nobody's to be tried with.
            if !in_a_namespace_of_its_own() {
                return println!("skipped: no namespace for it: {}", io::Error::last_os_error());
            }
            in_a_child(|| {
                for _ in 0..3 {
                    make_marked().map(tell_maker).expect("a set");
                }
            });
            assert!([0, 1, 2].iter().all(|key| is_there(MARK + key)), "they outlive their maker");
            make_marked().map(tell_maker).expect("a set");
            assert!(is_there(MARK) && !is_there(MARK + 1) && !is_there(MARK + 2));
            make_marked().map(tell_maker).expect("a set");
            assert!(is_there(MARK) && is_there(MARK + 1), "the maker of the first lives");
        });
    }

    /// A child that does this, and has ended when this returns.
    fn in_a_child(work: impl FnOnce()) {
        // SAFETY: the copy makes system calls and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            work();
            // SAFETY: ends the copy without running what belongs to the original.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: no status is asked for.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    }

    /// As [`Semaphore::new`]: so that the kernel knows who made it.
    fn tell_maker(number: libc::c_int) {
        // SAFETY: the set has two semaphores, and SETVAL takes a number.
        assert_eq!(unsafe { libc::semctl(number, MAKERS, libc::SETVAL, 1) }, 0);
    }

    #[test]
    fn it_is_free_once_and_goes_with_its_maker_alone() {
        in_a_process_of_its_own(|| {
            let semaphore = match Semaphore::new() {
                Ok(semaphore) => semaphore,
                Err(why) => return println!("skipped: {why:?}"),
            };
            // SAFETY: GETVAL takes nothing.
            let value = |number| unsafe { libc::semctl(number, OURS, libc::GETVAL) };
            let number = semaphore.number();
            assert_eq!(value(number), 1);
            in_a_child(|| drop(Semaphore { number, maker: semaphore.maker }));
            assert_eq!(value(number), 1);
            drop(semaphore);
            assert_eq!(value(number), -1);
        });
    }
}
