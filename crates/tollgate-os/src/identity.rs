//! The identity of another user, taken by a process of root's.
//!
//! A file access of root's below a directory that another user owns could be led anywhere by that user, who can exchange what lies
//! there at any moment. With that user's own identity it leads nowhere that this user could not go.

use std::io;
use std::marker::PhantomData;

use rustix::process::{Gid, Uid};
use serde::{Deserialize, Serialize};

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
    /// CAP_SETUID or CAP_SETGID is missing, or a filter refuses the call.
    #[error("this process may not take the identity of {}: {why}", crate::users::describe(*uid))]
    Refused {
        /// Whose.
        uid: u32,
        /// What the kernel says.
        why: io::Error,
    },
    /// The number is not one of a user: (uid_t) -1.
    #[error("{0} is not the number of a user")]
    Invalid(u32),
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
            of_thread: PhantomData,
        };
        rustix::thread::set_thread_groups(&[gid]).map_err(|why| self.refused(why))?;
        file_gid(gid.as_raw());
        // Last: without the capabilities that go with it nothing else could be set.
        file_uid(uid.as_raw());
        // These calls report no error; a second one tells what is set.
        if file_uid(u32::MAX) == self.uid && file_gid(u32::MAX) == self.gid {
            return Ok(before);
        }
        drop(before);
        Err(self.refused(rustix::io::Errno::PERM))
    }

    /// Takes this identity for good: real, effective, saved and file-system user and group (setresuid(2)). For a process that is
    /// about to execute a program, with one thread.
    ///
    /// # Errors
    /// Where the kernel refuses; the process must not go on then.
    pub fn take(self) -> Result<(), IdentityError> {
        let (uid, gid) = self.checked()?;
        let refused = |why| self.refused(why);
        rustix::thread::set_thread_groups(&[gid]).map_err(refused)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(refused)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(refused)
    }

    fn checked(self) -> Result<(Uid, Gid), IdentityError> {
        match (self.uid, self.gid) {
            (u32::MAX, _) => Err(IdentityError::Invalid(self.uid)),
            (_, u32::MAX) => Err(IdentityError::Invalid(self.gid)),
            (uid, gid) => Ok((Uid::from_raw(uid), Gid::from_raw(gid))),
        }
    }

    fn refused(self, why: rustix::io::Errno) -> IdentityError {
        IdentityError::Refused { uid: self.uid, why: why.into() }
    }
}

/// File access with another identity; dropped, the thread has its own again.
#[derive(Debug)]
#[must_use = "the identity ends when this is dropped"]
pub struct FileAccess {
    uid: u32,
    gid: u32,
    groups: Vec<Gid>,
    /// Credentials belong to a thread: this must be dropped where it was made.
    of_thread: PhantomData<*const ()>,
}

impl Drop for FileAccess {
    fn drop(&mut self) {
        file_uid(self.uid);
        file_gid(self.gid);
        // The calls succeeded in the other direction, with the capabilities that this thread has again.
        let _ = rustix::thread::set_thread_groups(&self.groups);
    }
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
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (own, theirs) = (place.path().join("own"), place.path().join("theirs"));
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
    fn a_number_that_is_no_user_is_refused() {
        let none = Identity { uid: u32::MAX, gid: 0 };
        assert!(matches!(none.for_files(), Err(IdentityError::Invalid(u32::MAX))));
        assert!(matches!(none.take(), Err(IdentityError::Invalid(u32::MAX))));
    }
}
