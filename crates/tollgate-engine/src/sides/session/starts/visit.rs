//! One start of an environment, from fork(2) of its first process to the end of its last, and the measurements on the way.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::text::plainly;
use tollgate_os::children::Inherited;

use super::marks::Marks;
use super::members::Members;
use crate::cases::aspect::{Aspect, Memory};
use crate::refusal::Refusal;
use crate::sides::agent::protocol::{Answer, PATIENCE, Request};
use crate::sides::session::Link;
use crate::sides::session::agent_side::unexpected;
use crate::sides::session::connection::{Connection, Gone, plain};
use crate::sides::session::life::{About, Life};
use crate::{machine::interrupt, machine::memory};

/// The pages of a first touch: 32 MiB of 4 KiB pages.
pub const PAGES: u64 = 8192;
/// The time limit for a start. A guest in an emulator takes tens of seconds on a busy machine.
const STARTING: Duration = Duration::from_secs(120);
/// The time within which its processes must end after its input ends.
const ENDING: Duration = Duration::from_secs(20);
/// The number of requests without pages. The shortest is subtracted from the request with pages.
const EMPTY: usize = 5;

/// The results of a start: a sample of each aspect, or why it has none.
pub type StartSamples = Vec<(Aspect, Result<f64, Refusal>)>;

/// An environment that is started to be measured.
pub struct Visit<'v> {
    pub life: &'v mut dyn Life,
    /// The children that do not belong to the environment.
    pub before: &'v Inherited,
    /// The aspects to measure.
    pub wanted: &'v [Aspect],
}

impl Visit<'_> {
    /// Starts the environment with an agent in it.
    ///
    /// # Errors
    /// Why it did not start, or ended early.
    pub fn with_agent(&mut self) -> Result<StartSamples, Gone> {
        let about = self.life.about();
        let cached = memory::page_cache();
        let mut found = StartSamples::new();
        let mut began = Instant::now();
        let link = self.life.start(&mut || began = Instant::now()).map_err(Gone::Lost)?;
        let marks = Marks::follow(self.life.marks());
        let (mut connection, _) = Connection::greeted(link, STARTING)?;
        let greeted = Instant::now();
        found.push((Aspect::Start, Ok(ns(greeted - began))));
        let phases = marks.phases(began, greeted, about.is_guest);
        found.extend(phases.into_iter().map(|(phase, took)| (Aspect::Phase(phase), took.map(ns))));
        let members = Members::now(self.before);
        let pids = members.as_ref().map(Members::pids).map_err(plainly_of);
        for of in Memory::ALL.into_iter().filter(|of| self.wanted.contains(&Aspect::Memory(*of))) {
            found.push((Aspect::Memory(of), taken(of, &about, &mut connection, &pids, &cached)?));
        }
        if self.wanted.contains(&Aspect::FirstTouch) {
            found.push((Aspect::FirstTouch, touch(&mut connection)?));
        }
        let ended = Instant::now();
        drop(connection);
        found.push((Aspect::Stop, stopped(members, ended)?));
        Ok(found)
    }

    /// Starts the environment with a shell in place of the agent.
    ///
    /// # Errors
    /// Why it did not start.
    pub fn with_shell(&mut self) -> Result<StartSamples, Gone> {
        let mut began = Instant::now();
        let link = match self.life.start_shell(&mut || began = Instant::now()) {
            Ok(link) => link,
            Err(refusal) => return Ok(vec![(Aspect::StartToShell, Err(refusal))]),
        };
        let spoke = first_byte(link)?;
        let members = Members::now(self.before);
        if let Ok(members) = members {
            members.gone(ENDING)?;
        }
        Ok(vec![(Aspect::StartToShell, Ok(ns(spoke - began)))])
    }
}

/// Returns the memory that it takes, in bytes; `cached` is the page cache before its start.
fn taken(
    of: Memory,
    about: &About,
    connection: &mut Connection,
    pids: &Result<&[libc::pid_t], String>,
    cached: &Result<f64, Refusal>,
) -> Result<Result<f64, Refusal>, Gone> {
    Ok(match of {
        Memory::Processes => match (&about.hidden, pids) {
            (Some(why), _) => Err(Refusal::Skip(why.clone())),
            (None, Err(why)) => Err(Refusal::NotMeasured(why.clone())),
            (None, Ok(pids)) => memory::proportional(pids),
        },
        Memory::PageCache => match (cached, memory::page_cache()) {
            (Ok(before), Ok(now)) => Ok(now - before),
            (Err(refusal), _) => Err(refusal.clone()),
            (_, Err(refusal)) => Err(refusal),
        },
        Memory::Inside if !about.has_kernel => {
            Err(skip!("it shares the kernel: its /proc/meminfo is that of the whole machine"))
        }
        Memory::Inside => {
            connection.send(&Request::Memory, PATIENCE)?;
            match connection.receive(PATIENCE)? {
                Answer::Used(bytes) => Ok(bytes as f64),
                Answer::Failed(why) => Err(Refusal::Skip(plain(&why, 400))),
                other => return Err(unexpected(other)),
            }
        }
    })
}

fn ns(time: Duration) -> f64 {
    time.as_nanos() as f64
}

fn plainly_of(error: &std::io::Error) -> String {
    format!("its processes cannot be listed: {}", plainly(error))
}

/// Returns the time per page, in ns: the time of a request to touch pages, minus that of one to touch none.
fn touch(connection: &mut Connection) -> Result<Result<f64, Refusal>, Gone> {
    let mut took = |pages| -> Result<Result<Duration, Refusal>, Gone> {
        let began = Instant::now();
        connection.send(&Request::Touch { pages }, PATIENCE)?;
        match connection.receive(PATIENCE)? {
            Answer::Done => Ok(Ok(began.elapsed())),
            Answer::Failed(why) => Ok(Err(Refusal::Skip(plain(&why, 400)))),
            other => Err(unexpected(other)),
        }
    };
    let mut least = Duration::MAX;
    for _ in 0..EMPTY {
        match took(0)? {
            Ok(time) => least = least.min(time),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(took(PAGES)?.map(|time| ns(time.saturating_sub(least)) / PAGES as f64))
}

/// Returns the time from the end of the input to the end of the last process, in ns.
fn stopped(members: std::io::Result<Members<'_>>, ended: Instant) -> Result<Result<f64, Refusal>, Gone> {
    let members = match members {
        Ok(members) => members,
        Err(error) => return Ok(Err(Refusal::NotMeasured(plainly_of(&error)))),
    };
    Ok(match members.gone(ENDING)? {
        Some(last) => Ok(ns(last.saturating_duration_since(ended))),
        None => Err(fail!("it did not end within {} s after the end of its input", ENDING.as_secs())),
    })
}

/// Returns the moment of the first byte, which must be the newline of echo(1).
fn first_byte(mut link: Link) -> Result<Instant, Gone> {
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
    let until = Instant::now() + STARTING;
    loop {
        interrupt::check(Gone::Interrupted)?;
        match poll(&mut [PollFd::new(&link.from, PollFlags::IN)], Some(&LOOK)) {
            Ok(1..) => break,
            _ if Instant::now() >= until => {
                return Err(Gone::Lost(format!("no shell answered within {} s", STARTING.as_secs())));
            }
            _ => {}
        }
    }
    let spoke = Instant::now();
    let mut byte = [0];
    match File::from(link.from).read(&mut byte) {
        Ok(1) if byte == *b"\n" => Ok(spoke),
        Ok(1) => Err(Gone::Lost(format!("its shell printed {:?} before a newline", char::from(byte[0])))),
        _ => {
            let said = (link.said)().map(|said| format!(": {}", plain(said.trim(), 400)));
            Err(Gone::Lost(format!("it ended before its shell answered{}", said.unwrap_or_default())))
        }
    }
}
