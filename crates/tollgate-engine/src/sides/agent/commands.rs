use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::text::said_by;

use super::protocol::{Answer, SIGN};
use super::streams::Streams;
use crate::bench_process::frame::{self, Inbox};
use crate::cases::run::BenchError;
use crate::cases::run::Halt;
use crate::machine::group::LOOK;
use crate::machine::interrupt;

pub struct AgentLine<'a> {
    pub streams: &'a mut Streams,
    pub inbox: &'a mut Inbox,
}

impl AgentLine<'_> {
    fn is_readable(&self, within: Duration) -> io::Result<bool> {
        let most = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.streams.input, PollFlags::IN)], Some(&most)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the coordinator has closed the line or sent another request. Does not wait.
    fn is_over(&self) -> bool {
        !self.inbox.rest().is_empty() || self.is_readable(Duration::ZERO).unwrap_or(true)
    }

    /// Does the work for a request, reports meanwhile what it does, if that is known, and sends the answer. Earlier input stops the work.
    pub fn work(
        &mut self,
        work: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Answer, Halt>,
    ) -> io::Result<()> {
        let began = Instant::now();
        let (mut looked, mut said, mut told) = (None, began, String::new());
        let answer = work(&mut |what| {
            let now = Instant::now();
            if looked.is_some_and(|looked| now - looked < LOOK) {
                return;
            }
            looked = Some(now);
            if self.is_over() {
                interrupt::stop_step();
            }
            if what != told || now - said >= SIGN {
                (said, told) = (now, what.to_owned());
                let sign = if what.is_empty() { Answer::Running(None) } else { Answer::Doing(told.clone()) };
                // If the connection has ended, the next request notices it.
                let _ = frame::write(&mut self.streams.output, &sign);
            }
        });
        let was_stopped = interrupt::resume();
        let why = match answer {
            Ok(answer) => return frame::write(&mut self.streams.output, &answer),
            // The coordinator does not wait for the answer.
            Err(Halt::Run(BenchError::Interrupted(_))) if was_stopped => return Ok(()),
            Err(Halt::Run(BenchError::NoProcess(error))) => {
                format!("a process could not be started: {}", said_by("process", &error))
            }
            Err(Halt::Run(error)) => error.to_string(),
            Err(Halt::Lost(why)) => why,
        };
        frame::write(&mut self.streams.output, &Answer::Failed(why))
    }
}
