//! A guest's console: messages of its kernel and of `/init`. The monitor writes them into a pipe that it inherits, and a
//! thread reads them while it runs. Only the last ones are kept, so a guest that prints without end fills neither a disk nor
//! the memory, and never waits.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tollgate_model::text::beginning;

use super::layout::SAYS;

/// Bytes that are kept: more than a kernel prints until it panics.
const MOST: usize = 1 << 20;
/// Characters of a message that are shown: it may quote a rule, its file and a reason.
const MOST_QUOTED: usize = 500;
/// Time to read the rest of the messages after a guest has ended.
const MOMENT: Duration = Duration::from_millis(100);

#[derive(Debug, Default, Clone)]
pub(super) struct Console(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    messages: Mutex<Messages>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct Messages {
    last: VecDeque<u8>,
    is_over: bool,
}

impl Console {
    /// Makes an empty console, and the file that the monitor must inherit under its number.
    pub fn begin() -> io::Result<(Self, File)> {
        let (from, to) = io::pipe()?;
        let console = Self::default();
        let reader = console.clone();
        thread::Builder::new().name("console".to_owned()).spawn(move || reader.0.read(from))?;
        Ok((console, OwnedFd::from(to).into()))
    }

    /// The line that says why the guest ended: that of a panic, or of `/init`, or else the last one.
    pub fn last_words(&self) -> Option<String> {
        let messages = self.0.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.over.wait_timeout_while(messages, MOMENT, |messages| !messages.is_over);
        let (mut messages, _) = waited.unwrap_or_else(PoisonError::into_inner);
        words_of(&String::from_utf8_lossy(messages.last.make_contiguous()))
    }
}

impl Kept {
    fn read(&self, mut from: PipeReader) {
        let mut bytes = [0; 1 << 12];
        loop {
            let read = match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let last = &mut self.messages.lock().unwrap_or_else(PoisonError::into_inner).last;
            last.extend(&bytes[..read]);
            let beyond = last.len().saturating_sub(MOST);
            last.drain(..beyond);
        }
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.over.notify_all();
    }
}

fn words_of(console: &str) -> Option<String> {
    let lines = || {
        console.lines().map(|line| line.trim().trim_start_matches(is_stamp)).filter(|line| !line.is_empty())
    };
    let of = |mark: &str| lines().find(|line| line.contains(mark));
    let line =
        of(SAYS).or_else(|| of("Kernel panic")).or_else(|| of("BUG:")).or_else(|| lines().next_back())?;
    Some(beginning(line.strip_prefix(SAYS).unwrap_or(line), MOST_QUOTED).into_owned())
}

/// Matches `[    0.123456] ` before a kernel message.
fn is_stamp(c: char) -> bool {
    c.is_ascii_digit() || "[]. ".contains(c)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_line_that_says_why_is_found() {
        let panic =
            "[    0.10] Run /init\n[    1.234567] Kernel panic - not syncing: no init\n[    1.3] Rebooting\n";
        assert_eq!(words_of(panic).as_deref(), Some("Kernel panic - not syncing: no init"));
        assert_eq!(words_of("a\ntollgate: no channel\nb\n").as_deref(), Some("no channel"));
        assert_eq!(words_of("one\ntwo\n\n").as_deref(), Some("two"));
        assert_eq!(words_of(""), None);
    }

    #[test]
    fn messages_without_end_are_read_and_the_last_ones_kept() {
        let (console, mut to) = Console::begin().unwrap();
        let line = [b"the same line again and again\n".as_slice(); 100].concat();
        for _ in 0..4 * MOST / line.len() {
            to.write_all(&line).unwrap();
        }
        to.write_all(b"[    1.234567] Kernel panic - not syncing: no init\nRebooting\n").unwrap();
        drop(to);
        assert_eq!(console.last_words().as_deref(), Some("Kernel panic - not syncing: no init"));
        assert!(console.0.messages.lock().unwrap().last.len() <= MOST);
    }
}
