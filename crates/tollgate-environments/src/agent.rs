//! This program, as it is started inside an environment to measure there.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::{EnvironmentError, plainly, unusable};

/// The link to this program's executable. It still works after the file is removed or replaced (proc_pid_exe(5)).
const OWN: &str = "/proc/self/exe";

#[derive(Debug, Clone)]
pub(crate) struct Agent {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Agent {
    /// Returns this program with its hidden verb `agent` and these arguments.
    pub fn with(arguments: &[OsString]) -> Result<Self, EnvironmentError> {
        let program = fs::read_link(OWN)
            .map_err(|error| unusable!("{OWN}, the link to tollgate's own file: {}", plainly(error)))?;
        let arguments = [&[OsString::from("agent")], arguments].concat();
        Ok(Self { program, arguments })
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the program's name for a child of this process: its path, or the link if the file was removed or replaced.
    pub fn reference(&self) -> OsString {
        let id = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        // A child runs this process's executable until it calls execve(2), so the link is right in the child too.
        if id(&self.program) == id(Path::new(OWN)) { self.program.clone().into() } else { OWN.into() }
    }

    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Opens the executable and returns its size in bytes.
    pub fn open(&self) -> Result<(fs::File, u64), EnvironmentError> {
        let open = || {
            let file = fs::File::open(OWN)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        open().map_err(|error: io::Error| unusable!("{}: {}", self.program.display(), plainly(error)))
    }

    /// Copies the executable for an environment that does not have this machine's files. `to` must not exist.
    pub fn copy_to(&self, to: &Path) -> Result<(), EnvironmentError> {
        let (mut from, _) = self.open()?;
        let mut copy = || {
            let mut made = fs::File::options().write(true).create_new(true).mode(0o755).open(to)?;
            // Regardless of the umask: another user may start the copy.
            made.set_permissions(fs::Permissions::from_mode(0o755))?;
            io::copy(&mut from, &mut made).map(drop)
        };
        copy().map_err(|error| unusable!("{}: {}", to.display(), plainly(error)))
    }
}
