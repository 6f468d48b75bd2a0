//! This program, as it is started in an environment to serve there.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::{EnvironmentError, plainly, unusable};

/// The link to this program's file; it leads to the file also when that was removed or replaced (proc_pid_exe(5)).
const OWN: &str = "/proc/self/exe";

/// This program's file and what makes it an agent.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Agent {
    /// This program with these words behind its hidden verb.
    pub fn with(arguments: &[OsString]) -> Result<Self, EnvironmentError> {
        let program = fs::read_link(OWN)
            .map_err(|error| unusable!("{OWN}, the link to tollgate's own file: {}", plainly(error)))?;
        let arguments = [&[OsString::from("agent")], arguments].concat();
        Ok(Self { program, arguments })
    }

    /// Its file on this machine.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The program as a child of this process starts it: by its path, or by the link where the file was removed or replaced.
    pub fn reference(&self) -> OsString {
        let id = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        // A child has this process's file until it has become another program.
        if id(&self.program) == id(Path::new(OWN)) { self.program.clone().into() } else { OWN.into() }
    }

    /// What stands behind the program: `agent` and its options.
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Its file, open to be read.
    pub fn file(&self) -> io::Result<fs::File> {
        fs::File::open(OWN)
    }

    /// Its file, open to be read, and the size in bytes.
    pub fn open(&self) -> Result<(fs::File, u64), EnvironmentError> {
        let open = || {
            let file = fs::File::open(OWN)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        open().map_err(|error: io::Error| unusable!("{}: {}", self.program.display(), plainly(error)))
    }

    /// Copies the file, for an environment that does not have this machine's files. `to` must not exist.
    pub fn copy_to(&self, to: &Path) -> Result<(), EnvironmentError> {
        let (mut from, _) = self.open()?;
        let mut copy = || {
            let mut made = fs::File::options().write(true).create_new(true).mode(0o755).open(to)?;
            // Whatever the umask: another user may be the one who starts it.
            made.set_permissions(fs::Permissions::from_mode(0o755))?;
            io::copy(&mut from, &mut made).map(drop)
        };
        copy().map_err(|error| unusable!("{}: {}", to.display(), plainly(error)))
    }
}
