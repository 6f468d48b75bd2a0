//! A System V semaphore. It belongs to no process: unless it is removed, it stays until the next boot.
//!
//! So it is made in a namespace that ends with the process (ipc_namespaces(7)) if possible. Otherwise its key has a
//! mark, and the next creation removes marked semaphores whose makers have ended.

use std::io;

use tollgate_os::{namespaces, process};

use crate::prelude::*;

/// A semaphore, free at first, removed when its maker drops this.
pub(crate) struct Semaphore {
    number: libc::c_int,
    maker: libc::pid_t,
}

/// The upper half of tollgate's keys: "tg". The lower half is a number.
const MARK: libc::key_t = 0x7467_0000;
/// In a set: the semaphore used as the lock.
const OURS: libc::c_int = 0;
/// In a set: one that only its maker touches, so that the kernel records the maker.
const MAKERS: libc::c_int = 1;
const TRIES: libc::key_t = 64;

impl Semaphore {
    pub fn new() -> Result<Self> {
        let number = if in_a_namespace_of_its_own() { make(libc::IPC_PRIVATE)? } else { make_marked()? };
        // SAFETY: getpid(2) has no preconditions.
        let semaphore = Self { number, maker: unsafe { libc::getpid() } };
        for which in [OURS, MAKERS] {
            // SAFETY: the set has two semaphores, and SETVAL takes a number.
            let set = checked(unsafe { libc::semctl(number, which, libc::SETVAL, 1) });
            set.or_refused("semctl(2) is refused")?;
        }
        Ok(semaphore)
    }

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

/// Moves this thread to a new IPC namespace, once. Returns whether semaphores end with the process.
pub(super) fn in_a_namespace_of_its_own() -> bool {
    thread_local! {
        // Thread-local, as the namespace is (unshare(2)). A second namespace would lose the semaphores of the first.
        static PRIVATE: bool = namespaces::own_ipc().is_ok();
    }
    PRIVATE.with(|private| *private)
}

fn make(key: libc::key_t) -> Result<libc::c_int> {
    // SAFETY: semget(2) takes numbers.
    let made = checked(unsafe { libc::semget(key, 2, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) });
    made.map(|number| number as libc::c_int).or_refused("semget(2) is refused")
}

/// Makes a set under the first free key, after removing those whose makers have ended.
fn make_marked() -> Result<libc::c_int> {
    let keys = MARK..MARK + TRIES;
    for key in keys.clone() {
        // SAFETY: semget(2) takes numbers; without IPC_CREAT it makes nothing.
        let known = unsafe { libc::semget(key, 2, 0) };
        if known >= 0 && maker_is_gone(known) {
            remove(known);
        }
    }
    let mut refusal = fail!("every semaphore key is in use");
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

fn maker_is_gone(number: libc::c_int) -> bool {
    // SAFETY: GETPID takes nothing.
    let pid = unsafe { libc::semctl(number, MAKERS, libc::GETPID) };
    pid > 0 && process::is_gone(pid)
}

fn remove(number: libc::c_int) {
    // SAFETY: the set is of our own making.
    unsafe { libc::semctl(number, 0, libc::IPC_RMID) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{processes::raw::tests::in_a_process_of_its_own, testing::ready};

    fn is_there(key: libc::key_t) -> bool {
        // SAFETY: semget(2) takes numbers; without IPC_CREAT it makes nothing.
        unsafe { libc::semget(key, 2, 0) >= 0 }
    }

    #[test]
    fn sets_of_ended_makers_are_removed_and_others_are_not() {
        in_a_process_of_its_own(|| {
            // The machine's own sets must not be touched.
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

    fn in_a_child(work: impl FnOnce()) {
        let life = || {
            work();
            0
        };
        process::fork(life).and_then(|mut child| child.wait()).expect("it ends");
    }

    fn tell_maker(number: libc::c_int) {
        // SAFETY: the set has two semaphores, and SETVAL takes a number.
        assert_eq!(unsafe { libc::semctl(number, MAKERS, libc::SETVAL, 1) }, 0);
    }

    #[test]
    fn a_semaphore_is_free_once_and_only_its_maker_removes_it() {
        in_a_process_of_its_own(|| {
            let Some(semaphore) = ready("a semaphore", Semaphore::new()) else { return };
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
