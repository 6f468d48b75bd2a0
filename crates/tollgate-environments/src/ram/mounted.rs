//! Mounts for a device in memory, and their mount points.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, unmount};
use tollgate_os::private::PrivateDirectory;

use crate::device::patiently;
use crate::error::{EnvironmentError, plainly, unusable};

/// A mount that was made here. Dropping it unmounts it.
#[derive(Debug)]
pub(super) struct Mounted(PathBuf);

impl Mounted {
    pub fn mount(source: &Path, target: &Path, kind: &str, data: &str) -> Result<Self, EnvironmentError> {
        let fault = |error: Errno| match error {
            Errno::NODEV => unusable!("this kernel has no file system {kind}"),
            Errno::PERM | Errno::ACCESS => {
                EnvironmentError::NeedsRoot(format!("mounting {kind} is refused here: {}", plainly(error)))
            }
            _ => EnvironmentError::new(format_args!("{kind} cannot be mounted"), error),
        };
        let data = CString::new(data).map_err(|_| fault(Errno::INVAL))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(source, target, kind, flags, data.as_c_str()).map_err(fault)?;
        Ok(Self(target.to_owned()))
    }

    pub fn open(&self) -> Result<OwnedFd, EnvironmentError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, &self.0, flags, Mode::empty()).map_err(|error| {
            EnvironmentError::new(format_args!("{} cannot be opened", self.0.display()), error)
        })
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn used(&self) -> Option<u64> {
        let stat = rustix::fs::fstatvfs(self.open().ok()?).ok()?;
        Some(stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize))
    }

    pub fn sync(&self) {
        if let Ok(root) = self.open() {
            let _ = rustix::fs::syncfs(&root);
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if patiently(|| unmount(&self.0, UnmountFlags::NOFOLLOW)) == Err(Errno::BUSY) {
            // Lazily: processes that still use it keep it until they end, but no new ones find it.
            let _ = unmount(&self.0, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
        }
    }
}

pub(super) fn subdirectory(home: &PrivateDirectory, name: &str) -> Result<PathBuf, EnvironmentError> {
    let path = home.path().join(name);
    make_directory(home, name, &path).map(|()| path)
}

pub(super) fn make_directory(parent: impl AsFd, name: &str, path: &Path) -> Result<(), EnvironmentError> {
    rustix::fs::mkdirat(parent, name, Mode::RWXU)
        .map_err(|error| EnvironmentError::new(format_args!("{} cannot be made", path.display()), error))
}
