//! The agent's end of the line while it executes whole commands.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::commands::{CommandAnswer, CommandRequest, Line};
use super::super::interrupt;
use super::frame::{self, Inbox};
use super::protocol::{Answer, Request};
use super::serve::Streams;

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
