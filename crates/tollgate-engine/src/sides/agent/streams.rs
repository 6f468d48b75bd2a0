use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::bench_process::frame::Inbox;

/// Standard input and output, which bench processes do not get.
pub struct Streams {
    pub input: File,
    pub output: File,
}

impl Streams {
    pub fn take() -> io::Result<Self> {
        let moved = |from: &dyn AsFd| -> io::Result<File> {
            Ok(rustix::io::fcntl_dupfd_cloexec(from.as_fd(), 3)?.into())
        };
        let (input, output) = (moved(&io::stdin())?, moved(&io::stdout())?);
        // An empty input and the standard error stream replace them.
        let nothing: OwnedFd = match File::open("/dev/null") {
            Ok(file) => file.into(),
            Err(_) => io::pipe()?.0.into(),
        };
        // SAFETY: all are descriptors of this process.
        unsafe {
            libc::dup2(nothing.as_raw_fd(), 0);
            libc::dup2(2, 1);
        }
        Ok(Self { input, output })
    }

    pub fn read_to(&mut self, inbox: &mut Inbox) -> io::Result<bool> {
        let mut bytes = [0; 1 << 13];
        match self.input.read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(read) => {
                inbox.push(&bytes[..read]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}
