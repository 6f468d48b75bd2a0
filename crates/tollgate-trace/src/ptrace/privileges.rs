//! Set-user-ID programs, which gain no privileges if the tracer has none (execve(2)).

use std::{fs, os::unix::fs::MetadataExt};

use rustix::fs::{StatVfsMountFlags, statvfs};

/// Returns the path of a program that a process has just executed if it is set-user-ID and the process did not become its
/// owner. `None` if it did, or if that is unknown.
pub(super) fn withheld(process: libc::pid_t) -> Option<String> {
    let link = format!("/proc/{process}/exe");
    let file = fs::metadata(&link).ok()?;
    if file.mode() & libc::S_ISUID == 0 {
        return None;
    }
    // On this file system it would gain nothing in any case.
    if statvfs(&link).ok()?.f_flag.contains(StatVfsMountFlags::NOSUID) {
        return None;
    }
    let status = fs::read(format!("/proc/{process}/status")).ok()?;
    if effective_user(&String::from_utf8_lossy(&status))? == file.uid() {
        return None;
    }
    Some(fs::read_link(&link).ok()?.to_string_lossy().into_owned())
}

/// Returns the second number of `Uid:` (proc_pid_status(5)).
fn effective_user(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_user_is_the_second() {
        assert_eq!(effective_user("Name:\tsu\nUid:\t1000\t0\t0\t0\nGid:\t5\t6\t7\t8\n"), Some(0));
        for status in ["", "Uid:", "Uid:\t1", "Uid:\t1\t-1", "Name: Uid: 1 2"] {
            assert_eq!(effective_user(status), None, "{status}");
        }
    }

    #[test]
    fn another_program_loses_nothing() {
        assert_eq!(withheld(std::process::id() as libc::pid_t), None);
        assert_eq!(withheld(0), None);
    }
}
