//! The identity of another user, taken by a process of root's.
//!
//! A file access of root's below a directory that another user owns could be led anywhere by that user, who can
//! exchange its entries at any moment. With that user's own identity it leads nowhere that this user could not go.

use std::{io, marker::PhantomData, os::fd::AsRawFd};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{DumpableBehavior, Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

/// The capabilities that pass file permissions by. The kernel takes them out of the effective set with root's file-system user, but
/// not where the securebits say otherwise (capabilities(7), `SECBIT_NO_SETUID_FIXUP`).
const PASSING_BY: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::MKNOD);
/// Descriptors are looked at one by one up to this, where the kernel has no close_range(2) with CLOSE_RANGE_CLOEXEC (Linux 5.11).
const MOST_DESCRIPTORS: u32 = 1 << 16;

/// A user and the one group that goes with it; supplementary groups are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// Why an identity cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// CAP_SETUID or CAP_SETGID is missing, or a filter refuses the call: the user, and the kernel's error.
    #[error("this process may not take the identity of {}: {}", crate::users::describe(*.0), tollgate_model::text::plainly(.1))]
    Refused(u32, io::Error),
    /// The number is not one of a user: (uid_t) -1.
    #[error("{0} is not the number of a user")]
    Invalid(u32),
}

impl IdentityError {
    /// The kernel's error number (errno(3)).
    pub fn code(&self) -> i32 {
        match self {
            Self::Refused(_, why) => why.raw_os_error().unwrap_or(libc::EPERM),
            Self::Invalid(_) => libc::EINVAL,
        }
    }
}

impl Identity {
    /// Accesses files with this identity in the calling thread and its future children, until the result is dropped
    /// (setfsuid(2), credentials(7)). The thread's user and effective user stay: another user's processes can neither signal nor
    /// trace it. The kernel takes CAP_DAC_OVERRIDE, CAP_FOWNER and the other capabilities for files out of the effective set
    /// meanwhile (capabilities(7), "Effect of user ID changes on capabilities").
    ///
    /// # Errors
    /// Where the kernel refuses; then nothing has changed.
    pub fn for_files(self) -> Result<FileAccess, IdentityError> {
        let (uid, gid) = self.checked()?;
        let before = FileAccess {
            uid: file_uid(u32::MAX),
            gid: file_gid(u32::MAX),
            groups: rustix::process::getgroups().map_err(|why| self.refused(why))?,
            dumpable: rustix::process::dumpable_behavior().ok(),
            of_thread: PhantomData,
        };
        keeping_death_signal(|| {
            rustix::thread::set_thread_groups(&[gid])?;
            file_gid(gid.as_raw());
            // Last: without the capabilities that go with it nothing else could be set.
            file_uid(uid.as_raw());
            Ok(())
        })
        .map_err(|why| self.refused(why))?;
        // These calls report no error; a second one returns what is set.
        let is_set = file_uid(u32::MAX) == self.uid && file_gid(u32::MAX) == self.gid;
        let is_bound = self.uid == 0
            || rustix::thread::capabilities(None).is_ok_and(|sets| !sets.effective.intersects(PASSING_BY));
        if is_set && is_bound {
            return Ok(before);
        }
        drop(before);
        Err(self.refused(rustix::io::Errno::PERM))
    }

    /// Takes this identity for good: real, effective, saved and file-system user and group (setresuid(2)), and keeps nothing by which
    /// a program of that user could do more than the user: no capability, no controlling terminal (ioctl_tty(2): TIOCSTI types on
    /// it), no session keyring (session-keyring(7)), and of the open files only the standard ones after execve(2). For a process that
    /// is about to execute a program, with one thread. No memory is allocated.
    ///
    /// # Errors
    /// Where the kernel refuses; the process must not go on then.
    pub fn take(self) -> Result<(), IdentityError> {
        self.detach()?;
        self.assume()
    }

    /// The first half of [`Self::take`]: gives up terminal, keyring and open files. The credentials stay.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn detach(self) -> Result<(), IdentityError> {
        leave_keyring();
        leave_terminal().and_then(|()| keep_standard_files_only()).map_err(|why| self.refused(why))
    }

    /// The second half of [`Self::take`]: changes the credentials.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn assume(self) -> Result<(), IdentityError> {
        let (uid, gid) = self.checked()?;
        let change = || {
            rustix::thread::set_thread_groups(&[gid])?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
            let none = CapabilitySet::empty();
            rustix::thread::set_capabilities(
                None,
                CapabilitySets { effective: none, permitted: none, inheritable: none },
            )
        };
        keeping_death_signal(change).map_err(|why| self.refused(why))
    }

    fn checked(self) -> Result<(Uid, Gid), IdentityError> {
        match (self.uid, self.gid) {
            (u32::MAX, _) => Err(IdentityError::Invalid(self.uid)),
            (_, u32::MAX) => Err(IdentityError::Invalid(self.gid)),
            (uid, gid) => Ok((Uid::from_raw(uid), Gid::from_raw(gid))),
        }
    }

    fn refused(self, why: Errno) -> IdentityError {
        IdentityError::Refused(self.uid, why.into())
    }
}

/// File access with another identity; dropped, the thread has its own again.
#[derive(Debug)]
#[must_use = "the identity ends when this is dropped"]
pub struct FileAccess {
    uid: u32,
    gid: u32,
    groups: Vec<Gid>,
    dumpable: Option<DumpableBehavior>,
    /// Credentials belong to a thread: this must be dropped where it was made.
    of_thread: PhantomData<*const ()>,
}

impl FileAccess {
    /// Ends it in a copy of the process that made it (fork(2)), where it is borrowed and cannot be dropped.
    pub fn end(&self) {
        keeping_death_signal(|| {
            file_uid(self.uid);
            file_gid(self.gid);
            // The calls succeeded in the other direction, with the capabilities that this thread has again.
            let _ = rustix::thread::set_thread_groups(&self.groups);
        });
        // The kernel forbids this with other credentials (prctl(2), PR_SET_DUMPABLE). A tracer without CAP_SYS_PTRACE needs its
        // copies to be as they were.
        if let Some(before @ DumpableBehavior::Dumpable) = self.dumpable {
            let _ = rustix::process::set_dumpable_behavior(before);
        }
    }
}

impl Drop for FileAccess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Changes credentials without losing the signal that is sent when the parent ends: the kernel clears it with each such change
/// (prctl(2), PR_SET_PDEATHSIG).
fn keeping_death_signal<T>(change: impl FnOnce() -> T) -> T {
    let signal = rustix::process::parent_process_death_signal();
    let outcome = change();
    if let Ok(Some(signal)) = signal {
        let _ = rustix::process::set_parent_process_death_signal(Some(signal));
    }
    outcome
}

/// Gives up the controlling terminal of a process that leads no session. What it starts has none either: a program that asks for a
/// password on /dev/tty gets an error, where a process in the background would be stopped.
///
/// # Errors
/// EMFILE and the like, where /dev/tty cannot be opened and may be there.
pub fn leave_terminal() -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, c"/dev/tty", flags, Mode::empty()) {
        Ok(terminal) => {
            // SAFETY: TIOCNOTTY takes no argument and touches no memory of this process.
            match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) } {
                0 => Ok(()),
                _ => Err(Errno::NOTTY),
            }
        }
        Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR)) => Err(error),
        // There is none, or no file that leads to it.
        Err(_) => Ok(()),
    }
}

/// Joins a new session keyring. A kernel or sandbox without keyrings has none to leave.
fn leave_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: keyctl(2) with a null name makes a keyring and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
}

fn keep_standard_files_only() -> Result<(), Errno> {
    const CLOSE_ON_EXEC: libc::c_uint = 1 << 2;
    // SAFETY: the call takes numbers; with this flag it closes nothing now.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_ON_EXEC) } == 0 {
        return Ok(());
    }
    for descriptor in 3..MOST_DESCRIPTORS {
        // SAFETY: the number is used for this one call, which changes a flag of the descriptor, if there is one.
        unsafe { libc::fcntl(descriptor.cast_signed(), libc::F_SETFD, FdFlags::CLOEXEC.bits()) };
    }
    Ok(())
}

/// Sets the user of file accesses and returns the one before; `u32::MAX` only asks.
fn file_uid(uid: u32) -> u32 {
    // SAFETY: setfsuid(2) takes a number and touches no memory of this process.
    unsafe { libc::setfsuid(uid) }.cast_unsigned()
}

fn file_gid(gid: u32) -> u32 {
    // SAFETY: as above.
    unsafe { libc::setfsgid(gid) }.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use super::*;

    const OTHER: Identity = Identity { uid: 54_321, gid: 54_322 };

    fn skipped() -> bool {
        let skipped = !rustix::process::geteuid().is_root();
        if skipped {
            println!("skipped: needs root (to take another user's identity)");
        }
        skipped
    }

    #[test]
    fn file_access_has_the_others_rights_and_ends() {
        if skipped() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (own, theirs) = (root.path().join("own"), root.path().join("theirs"));
        fs::create_dir(&own).unwrap();
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(OTHER.uid), Some(OTHER.gid)).unwrap();
        let access = OTHER.for_files().unwrap();
        let refused = fs::write(own.join("file"), "x").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        fs::write(theirs.join("file"), "x").unwrap();
        let made = fs::metadata(theirs.join("file")).unwrap();
        assert_eq!((made.uid(), made.gid()), (OTHER.uid, OTHER.gid));
        drop(access);
        fs::write(own.join("file"), "x").unwrap();
        assert_eq!(fs::metadata(own.join("file")).unwrap().uid(), 0);
    }

    #[test]
    fn what_the_kernel_clears_with_an_identity_is_as_it_was() {
        if skipped() {
            return;
        }
        let signal = rustix::process::Signal::USR2;
        rustix::process::set_parent_process_death_signal(Some(signal)).unwrap();
        let is_kept = || rustix::process::parent_process_death_signal().unwrap() == Some(signal);
        let access = OTHER.for_files().unwrap();
        assert!(is_kept(), "with another identity");
        let effective = || rustix::thread::capabilities(None).unwrap().effective;
        assert!(!effective().intersects(PASSING_BY));
        drop(access);
        assert!(is_kept(), "afterwards");
        assert!(effective().contains(CapabilitySet::DAC_OVERRIDE));
        rustix::process::set_parent_process_death_signal(None).unwrap();
    }

    /// The test's own standard output is a file or pipe, so its number stays.
    #[test]
    fn a_program_gets_nothing_of_roots() {
        use std::{os::fd::AsRawFd, os::unix::process::CommandExt, process::Command};
        if skipped() {
            return;
        }
        let secret = fs::File::open("/etc/passwd").unwrap();
        rustix::io::fcntl_setfd(&secret, FdFlags::empty()).unwrap();
        let script = "id -u; id -g; id -G; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f 2 | sort -u; ls /proc/$$/fd";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin");
        // SAFETY: take() makes system calls and allocates nothing.
        unsafe { command.pre_exec(|| OTHER.take().map_err(io::Error::other)) };
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..4], ["54321", "54322", "54322", "0000000000000000"], "{said}");
        let kept = secret.as_raw_fd().to_string();
        assert!(lines.contains(&"2") && !lines[4..].contains(&kept.as_str()), "{said}");
    }

    #[test]
    fn a_number_that_is_no_user_is_refused() {
        let none = Identity { uid: u32::MAX, gid: 0 };
        assert!(matches!(none.for_files(), Err(IdentityError::Invalid(u32::MAX))));
        assert!(matches!(none.take(), Err(IdentityError::Invalid(u32::MAX))));
    }
}
