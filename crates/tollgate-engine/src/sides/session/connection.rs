//! The connection to an agent. Every wait has an end: a program that never answers, prints a banner, speaks another protocol or dies
//! costs only its environment.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::text::{commands_a_reader, plainly};

use super::Link;
use crate::bench_process::frame::{self, Inbox};
use crate::cases::run::{BenchError, Halt};
use crate::machine::interrupt;
use crate::sides::agent::protocol::{Answer, Hello, LONGEST_HELLO, MAGIC, PROTOCOL, Request};

const QUOTED: usize = 60;
/// The time for the rest of a banner's line, and for the last words of an agent that has ended.
const MOMENT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    /// A sentence about the environment.
    Lost(String),
    /// A sentence about the environment that ends the session.
    Over(String),
    Interrupted(i32),
}

impl From<Gone> for Halt {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Lost(why) => Self::Lost(why),
            Gone::Over(why) => Self::Run(BenchError::NoEnvironment(why)),
            Gone::Interrupted(signal) => Self::Run(BenchError::Interrupted(signal)),
        }
    }
}

/// Why the measuring ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Interrupted(i32),
    /// No environment is left, or a setting cannot be changed; the sides say why.
    Over,
}

pub struct Connection {
    to: File,
    from: File,
    said: Box<dyn FnMut() -> Option<String>>,
    inbox: Inbox,
}

impl Connection {
    pub fn new(link: Link) -> Self {
        let Link { to, from, said } = link;
        let (to, from) = (File::from(to), File::from(from));
        for file in [&to, &from] {
            let flags = rustix::fs::fcntl_getfl(file).unwrap_or(rustix::fs::OFlags::empty());
            let _ = rustix::fs::fcntl_setfl(file, flags | rustix::fs::OFlags::NONBLOCK);
        }
        Self { to, from, said, inbox: Inbox::up_to(LONGEST_HELLO) }
    }

    /// Waits for the greeting. Fails with a sentence about what came instead.
    pub fn greeted(link: Link, patience: Duration) -> Result<(Self, Hello), Gone> {
        let mut connection = Self::new(link);
        let until = Instant::now() + patience;
        let is_magic = |bytes: &[u8]| bytes.iter().zip(&MAGIC).all(|(one, other)| one == other);
        while connection.inbox.rest().len() < MAGIC.len() && is_magic(connection.inbox.rest()) {
            let came = connection.more(until)?;
            if !came {
                return Err(connection.silent(patience));
            }
        }
        if !is_magic(connection.inbox.rest()) {
            return Err(connection.banner());
        }
        connection.inbox.skip(MAGIC.len());
        let hello: Hello = connection.next(until)?.ok_or_else(|| connection.silent(patience))?;
        if hello.protocol != PROTOCOL {
            let (theirs, version) = (hello.protocol, plain(&hello.version, QUOTED));
            let of = if version.is_empty() { String::new() } else { format!(" of version {version}") };
            let why = format!("its agent{of} speaks protocol {theirs}, this tollgate speaks {PROTOCOL}");
            return Err(Gone::Lost(why));
        }
        Ok((connection, hello))
    }

    /// Sends a request. Fails if the agent has ended, or takes nothing for this long.
    pub fn send(&mut self, request: &Request, patience: Duration) -> Result<(), Gone> {
        let bytes = frame::framed(request).map_err(|error| Gone::Lost(plainly(&error)))?;
        request.longest_answer().into_iter().for_each(|most| self.inbox.allow(most));
        let mut left = bytes.as_slice();
        let until = Instant::now() + patience;
        while !left.is_empty() {
            match self.to.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !ready(&self.to, PollFlags::OUT, until)? {
                        return Err(self.silent(patience));
                    }
                }
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// Returns the next answer. Fails if the agent has ended, sends anything else, or nothing for this long.
    pub fn receive(&mut self, patience: Duration) -> Result<Answer, Gone> {
        self.next(Instant::now() + patience)?.ok_or_else(|| self.silent(patience))
    }

    /// Returns an answer that has already come. Fails if the agent has ended, or sends anything else.
    pub fn received(&mut self) -> Result<Option<Answer>, Gone> {
        self.next(Instant::now())
    }

    pub fn output(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// The next message; `None` if none comes before `until`.
    fn next<T: serde::de::DeserializeOwned>(&mut self, until: Instant) -> Result<Option<T>, Gone> {
        loop {
            match self.inbox.next() {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(fault) => {
                    return Err(Gone::Lost(format!("its agent {}", plain(&fault.to_string(), 200))));
                }
            }
            if !self.more(until)? {
                return Ok(None);
            }
        }
    }

    /// Waits for more bytes. False if none come before `until`.
    fn more(&mut self, until: Instant) -> Result<bool, Gone> {
        let mut bytes = [0; 1 << 16];
        loop {
            match self.from.read(&mut bytes) {
                Ok(0) => return Err(self.ended()),
                Ok(read) => {
                    self.inbox.push(&bytes[..read]);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !ready(&self.from, PollFlags::IN, until)? {
                        return Ok(false);
                    }
                }
                Err(_) => return Err(self.ended()),
            }
        }
    }

    /// Reports output other than an agent's first bytes.
    fn banner(&mut self) -> Gone {
        let until = Instant::now() + MOMENT;
        while self.inbox.rest().len() < 4 * QUOTED && !self.inbox.rest().contains(&b'\n') {
            if !matches!(self.more(until), Ok(true)) {
                break;
            }
        }
        let line = self.inbox.rest().split(|&byte| byte == b'\n').find(|line| !line.is_empty());
        let line = plain(&String::from_utf8_lossy(line.unwrap_or_default()), QUOTED);
        Gone::Lost(format!("it printed {line:?} before its agent's first message"))
    }

    pub fn silent(&mut self, patience: Duration) -> Gone {
        let what = format!("its agent did not answer for {:.0} s", patience.as_secs_f64());
        self.with_last_words(what)
    }

    fn ended(&mut self) -> Gone {
        if let Some(signal) = interrupt::requested() {
            return Gone::Interrupted(signal);
        }
        self.with_last_words("its agent ended".to_owned())
    }

    fn with_last_words(&mut self, what: String) -> Gone {
        let until = Instant::now() + MOMENT;
        let mut said = (self.said)();
        while said.is_none() && Instant::now() < until {
            std::thread::sleep(MOMENT / 10);
            said = (self.said)();
        }
        match said.map(|said| plain(said.trim(), 400)).filter(|said| !said.is_empty()) {
            Some(said) => Gone::Lost(format!("{what}: {said}")),
            None => Gone::Lost(what),
        }
    }
}

/// A signal may come just before a wait.
const LOOK: Duration = Duration::from_millis(250);

/// Waits briefly until one of them can be read or has ended. Returns which.
pub fn readable<'f>(files: impl Iterator<Item = BorrowedFd<'f>>) -> Vec<bool> {
    let mut all: Vec<_> = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
    let most = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    // A signal ends the wait, and none can be read then.
    let _ = poll(&mut all, Some(&most));
    all.iter().map(|file| !file.revents().is_empty()).collect()
}

/// Waits until the file is ready, or until that moment. False if it is not.
fn ready(file: &File, how: PollFlags, until: Instant) -> Result<bool, Gone> {
    loop {
        interrupt::check(Gone::Interrupted)?;
        let left = until.saturating_duration_since(Instant::now());
        let most = left.min(LOOK);
        let most = Timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: most.subsec_nanos().into() };
        let mut all = [PollFd::new(file, how)];
        match poll(&mut all, Some(&most)) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => return Ok(true),
        }
    }
}

pub fn plain(text: &str, most: usize) -> String {
    let mut plain: String =
        text.chars().take(most).map(|c| if commands_a_reader(c) { ' ' } else { c }).collect::<String>();
    plain.truncate(plain.trim_end().len());
    if text.chars().nth(most).is_some() {
        plain.push('…');
    }
    plain
}
