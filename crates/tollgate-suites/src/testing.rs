//! Helpers of tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::prelude::*;

/// A directory of a test's own, removed on drop.
pub(crate) struct Directory(pub PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let path = std::env::temp_dir().join(format!("tollgate-suites-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What is ready, or None: a skip is printed, a failure ends the test.
pub(crate) fn ready<T>(what: impl std::fmt::Debug, made: Result<T>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(Refusal::Fail(why)) => panic!("{what:?}: {why}"),
        Err(refusal) => {
            eprintln!("skipped: {what:?}: {}", refusal.why());
            None
        }
    }
}

/// Limits this process to so many tasks, for the rest of its life. False, and the reason is printed, where that fails.
pub(crate) fn limited_to(tasks: u64) -> bool {
    let limit = libc::rlimit { rlim_cur: tasks, rlim_max: tasks };
    // SAFETY: the limit is valid for reading; root is exempt from it, so this becomes another user.
    let limited = unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &limit) == 0 && libc::setuid(65534) == 0 };
    if !limited {
        eprintln!("skipped: this user cannot be limited");
    }
    limited
}

/// Pins this thread to the last allowed processor, and returns that.
pub(crate) fn pinned() -> usize {
    let home = *cpu::allowed().last().expect("a processor");
    cpu::pin(home).expect("an allowed processor");
    home
}

/// The allowed processors, and the time stamp counter, which contended batches need; None, and the reason is printed,
/// where there are not two processors or no counter.
pub(crate) fn two_processors() -> Option<(Vec<usize>, Clock)> {
    let all = cpu::allowed();
    if all.len() < 2 {
        eprintln!("skipped: one processor only");
        return None;
    }
    match Clock::tsc() {
        Ok((clock, _)) => Some((all, clock)),
        Err(_) => {
            eprintln!("skipped: no time stamp counter");
            None
        }
    }
}
