//! The cleanup process, which undoes what a command made if the command is killed.
//!
//! It is forked before anything is made, leads a session of its own, ignores the signals that ask a program to stop, and
//! reads a pipe. Each line of the pipe is a message in JSON: something to undo later, something that was undone, or the end.
//! Lines stay readable after their writer has died. If the pipe ends without the last message, the cleanup process undoes
//! everything that is outstanding, in reverse order. If the cleanup process itself is killed, the command undoes everything.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs::File, iter, mem};

use rustix::pipe::PipeFlags;
use serde::{Deserialize, Serialize};
use tollgate_os::process::{self, Child};
use tollgate_os::signals;

use crate::error::EnvironmentError;
use crate::prepared::Undo;
use crate::undo::undo_all;

/// Name of the cleanup process in ps(1) and /proc/PID/comm.
pub const NAME: &str = "tollgate-clean";
const IGNORED: [libc::c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE];

#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// Under this number, these actions are outstanding.
    Promised(u64, Vec<Undo>),
    /// The actions under this number were done.
    Kept(u64),
    /// The command ends, and nothing is left to undo.
    Done,
}

/// Handle of the cleanup process. The process ends when this and the last [`Promise`] are dropped.
#[derive(Debug, Clone)]
pub struct Cleanup(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` while it is being dropped.
    pipe: Mutex<Option<File>>,
    next: AtomicU64,
    child: Mutex<Child>,
}

impl Cleanup {
    /// Starts the cleanup process. The caller should still be single-threaded, since fork(2) copies only the calling thread.
    ///
    /// # Errors
    /// Those of pipe2(2) and fork(2).
    pub fn begin() -> io::Result<Self> {
        Self::holding(&[])
    }

    /// Like [`Self::begin`], but keeps these files open until the cleanup process ends, and with them the flock(2) locks on what
    /// it undoes.
    pub fn holding(files: &[BorrowedFd<'_>]) -> io::Result<Self> {
        let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let child = process::fork(|| guard(from, files))?;
        let inner =
            Inner { pipe: Mutex::new(Some(to.into())), next: AtomicU64::new(0), child: Mutex::new(child) };
        Ok(Self(Arc::new(inner)))
    }

    /// Process ID.
    pub fn pid(&self) -> i32 {
        self.0.child.lock().unwrap_or_else(PoisonError::into_inner).pid()
    }

    /// Returns whether the cleanup process still runs.
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// Registers actions that undo something. Call this before making that thing. If the cleanup process was killed, the
    /// promise holds only while this process lives.
    ///
    /// # Errors
    /// The message cannot be written.
    pub fn promise(&self, undo: &[Undo]) -> io::Result<Promise> {
        let number = self.0.next.fetch_add(1, Relaxed);
        self.0.tell(&Message::Promised(number, undo.to_vec()))?;
        Ok(Promise { inner: Arc::clone(&self.0), number, undo: undo.to_vec() })
    }
}

impl Inner {
    fn is_alive(&self) -> bool {
        matches!(self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait(), Ok(None))
    }

    fn tell(&self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        match pipe.as_mut().map(|pipe| pipe.write_all(&line)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.tell(&Message::Done);
        drop(self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.child.get_mut().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

/// Registered undo actions. Dropping it performs them and tells the cleanup process.
#[derive(Debug)]
#[must_use = "it is undone when this is dropped"]
pub struct Promise {
    inner: Arc<Inner>,
    number: u64,
    undo: Vec<Undo>,
}

impl Promise {
    /// Returns whether the cleanup process is alive and will keep the promise if this process is killed.
    pub fn is_guarded(&self) -> bool {
        self.inner.is_alive()
    }

    /// Undoes it now.
    ///
    /// # Errors
    /// The first action that failed. The others are performed all the same.
    pub fn keep(mut self) -> Result<(), EnvironmentError> {
        self.undo_now().into_iter().next().map_or(Ok(()), Err)
    }

    /// Undoes nothing: nothing is left to undo.
    pub(crate) fn forget(mut self) {
        self.undo.clear();
    }

    fn undo_now(&mut self) -> Vec<EnvironmentError> {
        undo_all(&mem::take(&mut self.undo))
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let _ = self.undo_now();
        let _ = self.inner.tell(&Message::Kept(self.number));
    }
}

fn guard(from: OwnedFd, files: &[BorrowedFd<'_>]) -> i32 {
    IGNORED.into_iter().for_each(signals::ignore);
    signals::default(&[libc::SIGCHLD]);
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"tollgate-clean");
    // Otherwise the working directory could not be unmounted or removed.
    let _ = std::env::set_current_dir("/");
    close_all_but([from.as_fd()].iter().chain(files).map(|kept| kept.as_raw_fd().cast_unsigned()).collect());
    let mut lines = BufReader::new(File::from(from));
    let mut promised: BTreeMap<u64, Vec<Undo>> = BTreeMap::new();
    loop {
        let mut line = Vec::new();
        match lines.read_until(b'\n', &mut line) {
            // The command died while it wrote this line, so it has not made what the line announces.
            Ok(_) if line.last() != Some(&b'\n') => break,
            Err(_) => break,
            Ok(_) => {}
        }
        match serde_json::from_slice(&line) {
            Ok(Message::Promised(number, undo)) => drop(promised.insert(number, undo)),
            Ok(Message::Kept(number)) => drop(promised.remove(&number)),
            Ok(Message::Done) => return 0,
            Err(_) => {}
        }
    }
    for undo in promised.values().rev() {
        let _ = undo_all(undo);
    }
    0
}

/// Closes all other descriptors and opens /dev/null as the standard streams, so that a reader of the command's output does
/// not wait for the cleanup process.
fn close_all_but(mut kept: Vec<u32>) {
    kept.sort_unstable();
    let firsts = iter::once(0).chain(kept.iter().map(|kept| kept + 1));
    let ends = kept.iter().copied().map(Some).chain([None]);
    for (first, end) in firsts.zip(ends) {
        let last = match end {
            Some(end) if end == first => continue,
            Some(end) => end - 1,
            None => u32::MAX,
        };
        // SAFETY: close_range(2) takes numbers. The descriptors are copies in a forked process, where their owners never run.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        // close_range(2) exists since Linux 5.9.
        if closed != 0 {
            for descriptor in first..=last.min(1 << 16) {
                // SAFETY: as above.
                unsafe { libc::close(descriptor.cast_signed()) };
            }
        }
    }
    for _ in 0..3 {
        // SAFETY: the path is a constant; open(2) returns the lowest free descriptor, which is never closed.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
        // All three standard streams are open by now.
        if opened > 2 {
            // SAFETY: it was just opened.
            unsafe { libc::close(opened) };
        }
    }
}

#[cfg(test)]
mod tests;
