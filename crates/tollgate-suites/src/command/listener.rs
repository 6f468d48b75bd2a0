//! A process that reads what a command says, and keeps the end of it.
//!
//! It reads as fast as it can: a command that prints much is not to wait for its reader. It does not wait for the end of the pipe, which
//! a daemon may hold open: it is told when the command has ended, and takes what is in the pipe then.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use tollgate_os::process::{self, Child};

/// So many bytes are kept, which the pipe of the report holds.
const KEPT: usize = 16 << 10;
/// Bytes that the pipe is asked to hold: fewer turns between writer and reader.
const HELD: usize = 1 << 20;
/// What a process that is still there says after the end is not waited for.
const MOST_LATE: usize = 4 * HELD;

/// A process that listens.
#[derive(Debug)]
pub(super) struct Listener {
    process: Child,
    pipe: PipeWriter,
    /// Closed when the command has ended.
    going_on: PipeWriter,
    report: PipeReader,
    stays: bool,
}

impl Listener {
    /// Starts it. `stays`: it goes on reading after the command's end, for processes that stay.
    ///
    /// # Errors
    /// Those of pipe(2) and fork(2).
    pub fn start(stays: bool) -> io::Result<Self> {
        let (heard, pipe) = io::pipe()?;
        // Without the right to so large a pipe it stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, HELD);
        let (over, going_on) = io::pipe()?;
        let (report, found) = io::pipe()?;
        let ours = [&pipe, &going_on].map(|end| end.as_fd());
        let process = process::fork_bound(|| {
            // The terminal's Ctrl-C is not for it.
            tollgate_os::group::lead();
            for end in ours {
                close(end);
            }
            match listen(File::from(std::os::fd::OwnedFd::from(heard)), &over, found, stays) {
                Ok(()) => 0,
                Err(_) => 1,
            }
        })?;
        Ok(Self { process, pipe, going_on, report, stays })
    }

    /// What the command is to write to.
    pub fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// The end of what was said, as far as the command has ended. One that stays is left to the caller, which is to wait for its end.
    pub fn end(self) -> (String, Option<Child>) {
        let Self { process, pipe, going_on, mut report, stays } = self;
        drop((pipe, going_on));
        let mut said = Vec::with_capacity(KEPT);
        // A listener that was killed has nothing to say.
        let _ = report.read_to_end(&mut said);
        // It ends with the processes that it listens to, or with this one.
        let staying = stays.then_some(process);
        (String::from_utf8_lossy(&said).into_owned(), staying)
    }
}

/// Closes a descriptor of a copy of this process, of which the copy has no owner.
fn close(descriptor: BorrowedFd<'_>) {
    // SAFETY: the copy's own, and nothing of it uses it.
    unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(&descriptor)) };
}

fn listen(mut heard: File, over: &PipeReader, mut found: PipeWriter, stays: bool) -> io::Result<()> {
    let mut bytes = vec![0; HELD / 4];
    let mut tail = Tail::default();
    while !is_over(&heard, over)? {
        match heard.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => tail.add(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    rustix::fs::fcntl_setfl(&heard, OFlags::NONBLOCK)?;
    let mut late = 0;
    while late < MOST_LATE {
        match heard.read(&mut bytes) {
            Ok(read @ 1..) => {
                late += read;
                tail.add(&bytes[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    found.write_all(tail.kept())?;
    drop(found);
    if stays {
        rustix::fs::fcntl_setfl(&heard, OFlags::empty())?;
        while !matches!(heard.read(&mut bytes), Ok(0)) {}
    }
    Ok(())
}

/// Waits for something to read. True where the command has ended.
fn is_over(heard: &File, over: &PipeReader) -> io::Result<bool> {
    let mut both = [PollFd::new(heard, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
    match poll(&mut both, None) {
        Ok(_) => Ok(!both[1].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The last bytes of many.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(KEPT)..];
        let beyond = (self.0.len() + last.len()).saturating_sub(KEPT);
        self.0.drain(..beyond.min(self.0.len()));
        self.0.extend_from_slice(last);
    }

    fn kept(&self) -> &[u8] {
        &self.0
    }
}
