//! A first look at a command's output: an agent's greeting, something else, or nothing. No byte is taken from the pipe.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, tee};
use tollgate_engine::agent::MAGIC;

/// Bytes of another answer that are shown.
const SHOWN: usize = 120;
/// Interval in which it checks for a request to stop and for the rest of a greeting.
const SLICE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The first bytes of an agent.
    Greeting,
    /// Other bytes: the beginning of their first line.
    Other(String),
    End,
    /// Nothing until the time ran out.
    Nothing,
    Stopped,
}

pub(crate) fn look(from: &OwnedFd, patience: Duration, stop: &dyn Fn() -> bool) -> io::Result<Seen> {
    let began = Instant::now();
    loop {
        match now(from)? {
            Some(seen) => return Ok(seen),
            None if stop() => return Ok(Seen::Stopped),
            None if began.elapsed() >= patience => return Ok(Seen::Nothing),
            None => wait(&mut [PollFd::new(from, PollFlags::IN)])?,
        }
    }
}

/// Waits a short time for one of these. An incomplete greeting keeps the pipe readable, so this also sleeps a little.
pub(crate) fn wait(on: &mut [PollFd<'_>]) -> io::Result<()> {
    let slice = Timespec { tv_sec: 0, tv_nsec: SLICE.subsec_nanos().into() };
    match poll(on, Some(&slice)) {
        Ok(ready) if ready > 0 => std::thread::sleep(Duration::from_millis(1)),
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns what there is to see now; `None` if it is too early to say.
pub(crate) fn now(from: &OwnedFd) -> io::Result<Option<Seen>> {
    let Some(bytes) = peek(from)? else { return Ok(Some(Seen::End)) };
    let known = bytes.len().min(MAGIC.len());
    Ok(if bytes[..known] != MAGIC[..known] {
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        Some(Seen::Other(line.to_owned()))
    } else if known == MAGIC.len() {
        Some(Seen::Greeting)
    } else {
        None
    })
}

/// Copies the bytes in the pipe without consuming them (tee(2)). `None` at its end.
fn peek(from: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let (copied, copy) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let there = match tee(from, &copy, SHOWN, SpliceFlags::NONBLOCK) {
        Ok(0) => return Ok(None),
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Some(Vec::new())),
        Err(error) => return Err(error.into()),
        Ok(there) => there,
    };
    // Reads exactly this many bytes: until its execve(2), a process that another thread is starting holds the other end open.
    let mut bytes = vec![0; there];
    File::from(copied).read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn seen(written: &[u8], ends: bool) -> (Seen, Vec<u8>) {
        let (from, mut to) = io::pipe().unwrap();
        to.write_all(written).unwrap();
        let from = OwnedFd::from(from);
        let kept = if ends {
            drop(to);
            None
        } else {
            Some(to)
        };
        let seen = look(&from, Duration::from_millis(60), &|| false).unwrap();
        drop(kept);
        let mut rest = Vec::new();
        File::from(from).read_to_end(&mut rest).unwrap();
        (seen, rest)
    }

    #[test]
    fn a_greeting_is_seen_and_stays() {
        let bytes = [&MAGIC[..], b"rest"].concat();
        assert_eq!(seen(&bytes, false), (Seen::Greeting, bytes.clone()));
        assert_eq!(seen(&MAGIC[..4], false).0, Seen::Nothing);
        assert_eq!(seen(b"", false).0, Seen::Nothing);
        assert_eq!(seen(b"", true).0, Seen::End);
        assert_eq!(seen(b"Welcome!\n", false), (Seen::Other("Welcome!".to_owned()), b"Welcome!\n".to_vec()));
        assert!(matches!(seen(&[0; 60_000], false).0, Seen::Other(_)));
        let (from, _to) = io::pipe().unwrap();
        assert_eq!(look(&from.into(), Duration::from_secs(60), &|| true).unwrap(), Seen::Stopped);
    }
}
