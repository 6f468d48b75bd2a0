//! The agent's end of the line while it executes whole commands.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::text::said_by;

use super::super::commands::{CommandAnswer, CommandRequest, Line};
use super::super::interrupt;
use super::super::run::BenchError;
use super::super::versus::executor::Halt;
use super::frame::{self, Inbox};
use super::protocol::{Answer, Request, SIGN};
use super::streams::Streams;

/// The agent's streams, for whole commands.
pub struct AgentLine<'a> {
    /// Standard input and output.
    pub streams: &'a mut Streams,
    /// What has come in.
    pub inbox: &'a mut Inbox,
}

impl AgentLine<'_> {
    /// Whether there is input, or its end, within this time.
    fn is_readable(&self, within: Duration) -> io::Result<bool> {
        let most = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.streams.input, PollFlags::IN)], Some(&most)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AgentLine<'_> {
    /// Does the work for a request, gives signs of life meanwhile, and says its answer. What comes in before its end stops it.
    pub fn work(&mut self, work: impl FnOnce(&mut dyn FnMut()) -> Result<Answer, Halt>) -> io::Result<()> {
        let mut said = Instant::now();
        let answer = work(&mut || {
            if self.is_over() {
                interrupt::stop_step();
            }
            if said.elapsed() >= SIGN {
                said = Instant::now();
                // That the line has ended is seen by the next request.
                let _ = frame::write(&mut self.streams.output, &Answer::Running(None));
            }
        });
        let was_stopped = interrupt::resume();
        let why = match answer {
            Ok(answer) => return frame::write(&mut self.streams.output, &answer),
            // The coordinator does not wait for the answer.
            Err(Halt::Run(BenchError::Interrupted(_))) if was_stopped => return Ok(()),
            Err(Halt::Run(BenchError::NoProcess(error))) => {
                format!("no process can be started: {}", said_by("process", &error))
            }
            Err(Halt::Run(error)) => error.to_string(),
            Err(Halt::Lost(why)) => why,
        };
        frame::write(&mut self.streams.output, &Answer::Failed(why))
    }
}

impl Line for AgentLine<'_> {
    fn say(&mut self, answer: CommandAnswer) -> io::Result<()> {
        frame::write(&mut self.streams.output, &Answer::Command(answer))
    }

    fn next(&mut self) -> io::Result<Option<CommandRequest>> {
        /// A signal may come just before the wait.
        const LOOK: Duration = Duration::from_millis(250);
        loop {
            match self.inbox.next::<Request>().map_err(io::Error::other)? {
                Some(Request::Command(request)) => return Ok(Some(request)),
                Some(_) => {
                    let why = "whole commands were not finished with".to_owned();
                    frame::write(&mut self.streams.output, &Answer::Failed(why))?;
                }
                None if interrupt::requested().is_some() => return Ok(None),
                None if self.is_readable(LOOK)? && !self.streams.read_to(self.inbox)? => return Ok(None),
                None => {}
            }
        }
    }

    fn is_over(&mut self) -> bool {
        !self.inbox.rest().is_empty() || self.is_readable(Duration::ZERO).unwrap_or(true)
    }
}
