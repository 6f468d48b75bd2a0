//! Finds the cause of a thread's wait inside a call.
//!
//! The kernel does not tell a tracer the state in which a thread slept, but the call indicates it. A blocking call sleeps,
//! and so does a call on a pipe, a socket or a terminal. A call waited for the disk if something was read from a disk during
//! it; so did reads and writes of regular files, fsync(2) and similar calls. Other calls wait for locks and disks, for which
//! the kernel waits in state D. If it is not certain that the thread gave up the processor at all, the rest is unknown: in a
//! process with several threads it may have been the wait for the tracer.

use std::{fs, os::unix::fs::FileTypeExt};

use tollgate_model::traced::Parts;

use super::clocks::Stretch;
use super::sums::Key;
use crate::calls;

/// These sleep in state D until the disk has answered (filemap_fdatawait(), jbd2_log_wait_commit()).
const DISK: &str = "fdatasync fsync msync sync sync_file_range syncfs";
/// These sleep in state S: they wait for another process.
const SLEEP: &str = "clone clone3 connect flock mq_timedsend msgsnd ptrace recv recvfrom recvmmsg recvmsg rt_sigreturn send sendmmsg sendmsg \
    sendto socketcall";
/// Calls whose first argument is the file.
const DESCRIPTOR: &str = "ftruncate getdents getdents64 ioctl pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readv write writev";

pub fn parts_of(stretch: Stretch, key: Key, first_argument: u64, process: libc::pid_t) -> Parts {
    let mut parts = stretch.parts;
    if parts.unknown_ns == 0 {
        return parts;
    }
    let name = key.base_name().unwrap_or("");
    let is = |list: &str| list.split(' ').any(|call| call == name);
    let away = if calls::is_blocking(name) {
        &mut parts.sleep_ns
    } else if !stretch.left {
        return parts;
    } else if is(SLEEP) {
        &mut parts.sleep_ns
    } else if stretch.disk || is(DISK) {
        &mut parts.disk_ns
    } else if is(DESCRIPTOR) {
        match waits_for_a_disk(process, first_argument) {
            Some(true) => &mut parts.disk_ns,
            Some(false) => &mut parts.sleep_ns,
            None => return parts,
        }
    } else if stretch.gave_away {
        &mut parts.disk_ns
    } else {
        return parts;
    };
    *away += std::mem::take(&mut parts.unknown_ns);
    parts
}

/// Returns whether a descriptor is a file or a disk, rather than having another process at its other end.
fn waits_for_a_disk(process: libc::pid_t, descriptor: u64) -> Option<bool> {
    let kind = fs::metadata(format!("/proc/{process}/fd/{}", descriptor as i32)).ok()?.file_type();
    Some(kind.is_file() || kind.is_dir() || kind.is_block_device())
}

#[cfg(test)]
mod tests {
    use tollgate_arch::architecture::{Architecture, HERE};

    use super::*;

    #[test]
    fn lists_are_known() {
        if HERE != Architecture::X86_64 {
            return println!("skipped: some of these calls are in x86's tables alone");
        }
        for list in [DISK, SLEEP, DESCRIPTOR] {
            for name in list.split(' ') {
                assert!(calls::number(name).is_some() || ["recv", "send"].contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn a_call_indicates_its_wait() {
        let parts = Parts { on_cpu_ns: 3, unknown_ns: 7, ..Parts::default() };
        let stretch = Stretch { parts, disk: false, left: true, gave_away: false };
        let parts = |name: &str, stretch: Stretch| {
            let number = calls::number(name).and_then(|numbers| numbers.long).unwrap();
            parts_of(
                stretch,
                Key { number: number.into(), is_32_bit: false },
                u64::MAX,
                std::process::id() as libc::pid_t,
            )
        };
        assert_eq!(parts("futex", stretch).sleep_ns, 7);
        assert_eq!(parts("fsync", stretch).disk_ns, 7);
        assert_eq!(parts("fsync", Stretch { left: false, ..stretch }).unknown_ns, 7);
        assert_eq!(parts("renameat", stretch).unknown_ns, 7);
        assert_eq!(parts("read", stretch).unknown_ns, 7, "no such descriptor");
        assert_eq!(parts("renameat", Stretch { gave_away: true, ..stretch }).disk_ns, 7);
        assert_eq!(parts("renameat", Stretch { disk: true, ..stretch }).disk_ns, 7);
    }
}
