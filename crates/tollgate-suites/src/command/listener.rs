//! A process that reads a command's output and keeps its last bytes.
//!
//! It reads as fast as it can, so that a command with much output does not wait for its reader. It does not wait for the end of
//! the pipe, which a daemon may hold open: when it is told that the command has ended, it takes what the pipe contains.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use tollgate_os::process::{self, Child};

/// Bytes of output that are kept. The report's pipe holds this many.
const KEPT: usize = 16 << 10;
/// Size requested for the pipe in bytes: a larger pipe means fewer switches between writer and reader.
const HELD: usize = 1 << 20;
/// Limit for output that remaining processes write after the command's end.
const MOST_LATE: usize = 4 * HELD;

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
    /// Starts the listener. With `stays` it continues to read after the command's end, for processes that stay.
    ///
    /// # Errors
    /// Fails if pipe(2) or fork(2) fails.
    pub fn start(stays: bool) -> io::Result<Self> {
        let (heard, pipe) = io::pipe()?;
        // Without the privilege for so large a pipe, it keeps its size.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, HELD);
        let (over, going_on) = io::pipe()?;
        let (report, found) = io::pipe()?;
        let ours = [&pipe, &going_on].map(|end| end.as_fd());
        let process = process::fork_bound(|| {
            // Ctrl-C on the terminal must not reach the listener.
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

    pub fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns the last bytes of the output up to the command's end. Also returns a listener that stays, to be waited for.
    pub fn end(self) -> (String, Option<Child>) {
        let Self { process, pipe, going_on, mut report, stays } = self;
        drop((pipe, going_on));
        let mut said = Vec::with_capacity(KEPT);
        // A listener that was killed reports nothing.
        let _ = report.read_to_end(&mut said);
        // It ends with the processes whose output it reads, or with this process.
        let staying = stays.then_some(process);
        (String::from_utf8_lossy(&said).into_owned(), staying)
    }
}

fn close(descriptor: BorrowedFd<'_>) {
    // SAFETY: the descriptor belongs to the copy, which does not use it.
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

/// Waits until something can be read. Returns true if the command has ended.
fn is_over(heard: &File, over: &PipeReader) -> io::Result<bool> {
    let mut both = [PollFd::new(heard, PollFlags::IN), PollFd::new(over, PollFlags::IN)];
    match poll(&mut both, None) {
        Ok(_) => Ok(!both[1].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The last [`KEPT`] bytes of a stream.
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
