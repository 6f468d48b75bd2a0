//! Runs a command on a terminal of its own, types recorded keys, and measures its delay for each key.
//!
//! A thread of this process is the person at the keyboard: it types at the terminal's master, and records when bytes for the
//! screen arrive there. The trace has the command's own calls: read(2) of the key, and write(2) to the terminal. Both use
//! CLOCK_MONOTONIC.
//!
//! - [`recording`]: keys in a file. `typist`: the thread.

pub mod recording;
mod typist;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use std::{collections::BTreeSet, io, thread};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tollgate_model::traced::Backend;
use tollgate_os::signals::Set;

use crate::launch::signals;
use crate::outcome::{Event, Trace, TraceError};
use crate::request::Request;
use crate::run::trace;

use typist::{Typed, Typist};

/// Rows and columns of the terminal.
pub const SIZE: (u16, u16) = (24, 80);
/// How long to wait for the screen's answer to a key before the next one is typed.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How long the command may take to end after the last key.
pub const ENDING: Duration = Duration::from_secs(5);
/// The most calls that are kept: a full screen takes a few for each key.
const MOST_EVENTS: usize = 1 << 17;

/// A key, and how long its answer took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The bytes that the terminal sends for it.
    pub bytes: Vec<u8>,
    /// Nanoseconds from the end of the command's read(2) of the key to the end of the next write(2) to the terminal. `None`
    /// if the command wrote nothing before the next key, or was not traced.
    pub command_ns: Option<u64>,
    /// Nanoseconds from the write to the terminal's master to the first byte for the screen there. `None` if there was none.
    pub screen_ns: Option<u64>,
}

/// A finished session of keys.
#[derive(Debug)]
pub struct Session {
    /// The keys that were typed.
    pub keys: Vec<Key>,
    /// The number of keys that were not typed, because the command had ended.
    pub left: usize,
    /// Whether the command was killed after [`ENDING`].
    pub is_ended_here: bool,
    /// A signal that asked this process to end.
    pub asked: Option<libc::c_int>,
    /// The command's calls that read and write.
    pub trace: Trace,
}

/// Runs a command on a terminal and types keys, at most one per `pace`.
///
/// # Errors
/// Those of [`trace`], and failure to create a terminal.
pub fn type_keys(request: Request, keys: &[Vec<u8>], pace: Duration) -> Result<Session, TraceError> {
    let failed = |error: io::Error| TraceError::System("posix_openpt(3)", error);
    let (master, terminal, name) = terminal().map_err(failed)?;
    let request = Request {
        terminal: Some(Arc::new(terminal)),
        only: Some(["read", "readv", "write", "writev"].map(str::to_owned).into()),
        events: MOST_EVENTS,
        ..request
    };
    let over = AtomicBool::new(false);
    let typist = Typist::new(&master, &name, pace, &over);
    thread::scope(|scope| {
        // Signals are for the thread that waits for the command.
        let mask = Set::all().block_only_for_now();
        let typing = thread::Builder::new().spawn_scoped(scope, move || typist.type_all(keys));
        drop(mask);
        let typing = typing.map_err(|error| TraceError::System("pthread_create(3)", error))?;
        let traced = trace(&request);
        over.store(true, Relaxed);
        let typed = typing.join().unwrap_or_default();
        let trace = traced?;
        let asked = signals::came().filter(|signal| typist::ENDS.contains(signal));
        Ok(session(keys, typed, trace, asked))
    })
}

/// Opens a terminal; returns the master, the other end, and its name.
fn terminal() -> io::Result<(OwnedFd, OwnedFd, String)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?.to_string_lossy().into_owned();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let terminal = rustix::fs::open(&name, flags, rustix::fs::Mode::empty())?;
    let size = Winsize { ws_row: SIZE.0, ws_col: SIZE.1, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(terminal.as_fd(), size)?;
    Ok((master, terminal, name))
}

fn session(keys: &[Vec<u8>], typed: Typed, trace: Trace, asked: Option<libc::c_int>) -> Session {
    let events = trace.events.iter().filter(|event| typed.descriptors.contains(&event.argument));
    let events: Vec<&Event> = events.filter(|event| event.result > 0).collect();
    // Without tracing no calls are known.
    let is_traced = trace.traced.backend != Backend::Rusage;
    let since_start = |at: u64| at.saturating_sub(trace.began_ns);
    let key = |(number, (bytes, pressed)): (usize, (&Vec<u8>, &typist::Pressed))| {
        let until = typed.keys.get(number + 1).map_or(u64::MAX, |next| since_start(next.at_ns));
        let command_ns = is_traced.then(|| delay(&events, since_start(pressed.at_ns), until)).flatten();
        Key { bytes: bytes.clone(), command_ns, screen_ns: pressed.screen_ns }
    };
    Session {
        keys: keys.iter().zip(&typed.keys).enumerate().map(key).collect(),
        left: keys.len().saturating_sub(typed.keys.len()),
        is_ended_here: typed.has_ended_it && asked.is_none(),
        asked,
        trace,
    }
}

/// Returns the time from the first read that ends between two keys to the end of the next write. Events are those of the
/// terminal, ordered by when they began; a read that waited for the key began before it.
fn delay(events: &[&Event], from: u64, until: u64) -> Option<u64> {
    let reads = |event: &&&Event| event.call.starts_with("read");
    let between = |event: &&&Event| (from..until).contains(&event.ended_ns());
    let read = events.iter().filter(reads).filter(between).map(|event| event.ended_ns()).min()?;
    let behind = |event: &&&Event| event.call.starts_with("write") && event.began_ns >= read;
    let written = events.iter().find(behind).map(|event| event.ended_ns())?;
    (written < until).then(|| written - read)
}

type Descriptors = BTreeSet<u64>;

#[cfg(test)]
mod tests {
    use tollgate_model::traced::Parts;

    use super::*;

    fn event(call: &str, began_ns: u64, took_ns: u64) -> Event {
        let parts = Parts { on_cpu_ns: took_ns, ..Parts::default() };
        Event { call: call.to_owned(), began_ns, parts, result: 1, ..Event::default() }
    }

    #[test]
    fn a_delay_is_that_from_a_key_s_read_to_the_write_behind_it() {
        // The first read waits for its key from 0 on. The second key has no answer, and the third has two.
        let events = [
            event("read", 0, 110),
            event("write", 150, 10),
            event("read", 205, 1),
            event("read", 300, 5),
            event("write", 340, 20),
            event("write", 370, 20),
        ];
        let events: Vec<&Event> = events.iter().collect();
        assert_eq!(delay(&events, 100, 200), Some(50));
        assert_eq!(delay(&events, 200, 299), None);
        assert_eq!(delay(&events, 299, u64::MAX), Some(55));
        assert_eq!(delay(&events, 400, u64::MAX), None);
    }
}
