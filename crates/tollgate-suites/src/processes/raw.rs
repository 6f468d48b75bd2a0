//! System calls without the C library, and the kernel's counts of them.

use std::os::fd::{OwnedFd, RawFd};
use std::{fmt::Display, io};

use tollgate_arch::call::call;
pub(super) use tollgate_arch::call::sched_yield;
pub(super) use tollgate_engine::cpu::{own_thread, switches_of_process};

/// Size of a token in bytes: eventfd(2) requires it, and pipes use the same.
pub(super) const TOKEN: i64 = 8;

/// read(2) of one token. Returns the bytes read, or a negative error number.
#[inline(always)]
pub(super) fn read(descriptor: RawFd, token: &mut u64) -> i64 {
    // SAFETY: the kernel writes at most eight bytes, to `token`.
    unsafe { call(libc::SYS_read, [descriptor as u64, &raw mut *token as u64, TOKEN as u64, 0]) }
}

/// write(2) of one token. Returns the bytes written, or a negative error number.
#[inline(always)]
pub(super) fn write(descriptor: RawFd, token: &u64) -> i64 {
    // SAFETY: the kernel reads eight bytes, from `token`.
    unsafe { call(libc::SYS_write, [descriptor as u64, &raw const *token as u64, TOKEN as u64, 0]) }
}

/// Sleeps while `word` is `value`, until a wake-up (futex(2), FUTEX_WAIT, private to the process).
#[inline(always)]
pub(super) fn futex_wait(word: &std::sync::atomic::AtomicU32, value: u32) -> i64 {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word and, without a timeout, nothing else.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as u64, operation as u64, u64::from(value), 0]) }
}

/// Wakes one thread that sleeps on `word` (futex(2), FUTEX_WAKE, private to the process).
#[inline(always)]
pub(super) fn futex_wake(word: &std::sync::atomic::AtomicU32) -> i64 {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel only takes the word's address.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as u64, operation as u64, 1, 0]) }
}

/// Returns the nanoseconds that a thread of a process (`self`, or a number) was runnable and waited for a processor; `None`
/// if the kernel does not report it (second figure of `/proc/PID/task/TID/schedstat`,
/// Documentation/scheduler/sched-stats.rst).
pub(crate) fn queued(process: impl Display, thread: libc::pid_t) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Makes a pipe with FD_CLOEXEC. Returns its read end and its write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    io::pipe().map(|(out, into)| (out.into(), into.into()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{prelude::*, testing::patiently};

    #[test]
    fn a_lone_thread_waits_for_no_processor() {
        match queued("self", own_thread()) {
            None => eprintln!("skipped: the kernel does not say how long a thread waits"),
            Some(before) => assert!(queued("self", own_thread()) >= Some(before)),
        }
        assert_eq!(queued("self", -1), None);
    }
    use tollgate_model::traced::Ended;
    use tollgate_os::process;

    /// The tests that have had a program of their own. They run one at a time, since they would disturb each other.
    static ALONE: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

    /// Set in a program that runs one test.
    const IS_ALONE: &str = "TOLLGATE_TEST_IS_ALONE";

    /// Runs a test in its own process, which has one thread: other tests' threads switch, and their descriptors stay open.
    ///
    /// The process is forked by a program that runs this test alone. In a copy of this program the test could start no thread for
    /// ever, if another test started one at that moment: the standard library holds a lock then (`stack_overflow::thread_info`).
    pub(crate) fn in_a_process_of_its_own(test: impl FnOnce()) {
        if std::env::var_os(IS_ALONE).is_some() {
            return in_a_copy(test);
        }
        let mut done = locked(&ALONE);
        let name = std::thread::current().name().expect("a test's thread has its name").to_owned();
        // The program has run all calls of this test.
        if done.contains(&name) {
            return;
        }
        let program = std::env::current_exe().expect("this program");
        // The kernel starts no program of arm64 for the translator of .ci/arm64.
        let mut alone = match std::env::var_os("TOLLGATE_IN_QEMU") {
            Some(_) => std::process::Command::new("qemu-aarch64-static"),
            None => std::process::Command::new(&program),
        };
        if alone.get_program() != program.as_os_str() {
            alone.arg(&program);
        }
        alone
            .args([&name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
            .env(IS_ALONE, "");
        process::bind(&mut alone, || Ok(()));
        let output = alone.output().expect("this program");
        let [said, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        eprint!("{failed}");
        assert!(output.status.success() && said.contains("\ntest result: ok. 1 passed"), "{said}");
        done.push(name);
    }

    fn in_a_copy(test: impl FnOnce()) {
        let child = process::fork_bound(|| {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
            if let Err(panic) = &outcome {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
                let _ = std::io::Write::write_all(
                    &mut std::io::stderr(),
                    format!("{}\n", said.unwrap_or_default()).as_bytes(),
                );
            }
            i32::from(outcome.is_err())
        });
        assert_eq!(child.and_then(|mut child| child.wait()).expect("it ends"), Ended::Exit(0));
    }

    pub(crate) fn threads() -> Option<usize> {
        Some(std::fs::read_dir("/proc/self/task").ok()?.count())
    }

    /// Waits until this process has this many threads. A joined one stays in /proc for a moment: the kernel wakes its waiters
    /// before it removes the task (kernel/exit.c, do_exit).
    pub(crate) fn comes_to_threads(number: usize, what: &str) {
        let what = format!("{what}: {number} threads");
        patiently(&what, || (threads() == Some(number)).then_some(()));
    }

    #[test]
    fn tokens_pass_and_errors_return() {
        let (out, to) = pipe().expect("a pipe");
        let (out, to) = (std::os::fd::AsRawFd::as_raw_fd(&out), std::os::fd::AsRawFd::as_raw_fd(&to));
        let mut token = 0;
        assert_eq!(write(to, &7), TOKEN);
        assert_eq!((read(out, &mut token), token), (TOKEN, 7));
        assert_eq!(write(-1, &token), -i64::from(libc::EBADF));
        assert_eq!(read(-1, &mut token), -i64::from(libc::EBADF));
    }
}
