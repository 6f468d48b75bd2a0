//! A semaphore of System V. It belongs to no process: left alone it would stay until the machine is started anew.
//!
//! So it is made in a namespace that goes with the process (ipc_namespaces(7)) where one may be had. Elsewhere its key
//! bears a mark, and the next that is made takes away those whose maker has ended.

use std::io;

use crate::bench::Refusal;

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
    let mut refusal = Refusal::Fail("every key for a semaphore is taken".to_owned());
    for key in MARK..MARK + TRIES {
        // SAFETY: semget(2) takes numbers; without IPC_CREAT it makes nothing.
        let known = unsafe { libc::semget(key, 2, 0) };
        if known >= 0 && maker_is_gone(known) {
            remove(known);
        }
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
