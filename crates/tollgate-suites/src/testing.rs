use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tollgate_arch::cpuid::CPUID;
use tollgate_arch::software::IS_SOFTWARE;

use crate::prelude::*;

pub(crate) struct Directory(pub PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        #[expect(clippy::disallowed_methods, reason = "a test's own, which no other program gets")]
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

/// Unwraps `made`. Prints a skip and returns `None`; panics on a failure.
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

/// Returns whether QEMU's translator executes everything here, and says so: times do not show the effect of caches and processor
/// state there.
pub(crate) fn is_translated() -> bool {
    let is_signed = CPUID.is_some_and(|cpuid| {
        let signature = cpuid(0x4000_0000, 0);
        [signature.ebx, signature.ecx, signature.edx]
            == [*b"TCGT", *b"CGTC", *b"GTCG"].map(u32::from_le_bytes)
    });
    // SAFETY: tests that measure read the counter.
    let is = is_signed || IS_SOFTWARE.is_some_and(|is_software| unsafe { is_software() });
    if is {
        println!("skipped: QEMU TCG emulates this processor: times are the emulator's");
    }
    is
}

/// Repeats `look` until it finds something. Sleeps in between, because a thread that has slept gets a whole time slice. The limit
/// is only for what never happens; a busy machine may take long.
pub(crate) fn patiently<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    let found = within_patience(look);
    found.unwrap_or_else(|tries| panic!("{what}: none in {tries} tries"))
}

/// Does the same, and returns the number of tries if it finds nothing.
fn within_patience<T>(mut look: impl FnMut() -> Option<T>) -> std::result::Result<T, usize> {
    const TRIES: usize = 500;
    const PATIENCE: Duration = Duration::from_secs(120);
    let began = Instant::now();
    for tries in 1.. {
        match look() {
            Some(found) => return Ok(found),
            None if tries >= TRIES && began.elapsed() >= PATIENCE => return Err(tries),
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    unreachable!("the tries have no end")
}

/// Returns the first of many batches that no other work disturbed. Without the priority of [`preferred`] there may be none beside
/// busy programs: it prints that and returns `None`.
pub(crate) fn undisturbed(mut batch: impl FnMut() -> Batch) -> Option<Batch> {
    let found = within_patience(|| Some(batch()).filter(|batch| batch.undisturbed));
    // SAFETY: getpriority(2) takes two numbers.
    let is_preferred = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) } == HIGHEST;
    match found {
        Ok(batch) => Some(batch),
        Err(tries) if is_preferred => panic!("no undisturbed batch in {tries} tries"),
        Err(tries) => {
            eprintln!("skipped: other work disturbed each of {tries} batches");
            None
        }
    }
}

/// Asks the kernel to prefer this thread, and those that it starts, to other work on the machine (nice(2)). Without the privilege
/// the priority stays.
pub(crate) fn preferred() {
    // SAFETY: setpriority(2) takes three numbers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST) };
}

const HIGHEST: libc::c_int = -20;

/// Limits this process to this many tasks, for the rest of its life. Prints the reason and returns false if that fails.
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

/// Returns the allowed processors, and the time stamp counter, which contended batches need. Prints the reason and returns `None`
/// without two processors or a counter.
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
