//! Channels: ways for a message from one end to the other and back.

mod stream;

use super::message::{Fault, Message, Outcome};
use crate::prelude::*;

/// One end of a channel.
pub trait End {
    /// Sends a whole message.
    fn send(&mut self, message: &[u8]) -> Outcome;

    /// Receives a message that is as long as this.
    fn receive(&mut self, message: &mut [u8]) -> Outcome;
}

/// What an end does with many messages. It is one call for all of them, so that nothing but the calls of the channel stands between two
/// messages.
pub trait Side: Send {
    /// Sends messages from this number on, and receives the answer to each.
    fn ask(&mut self, message: &mut Message, numbers: Numbers) -> Outcome;

    /// Answers each message with itself.
    fn answer(&mut self, message: &mut Message, numbers: Numbers) -> Outcome;
}

/// Numbers of messages.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    pub first: u64,
    pub count: u64,
    /// Compares whole messages instead of their numbers.
    pub whole: bool,
}

impl<E: End + Send> Side for E {
    fn ask(&mut self, message: &mut Message, numbers: Numbers) -> Outcome {
        for number in numbers.each() {
            message.number(number);
            self.send(message.bytes())?;
            next(self, message, number, numbers.whole)?;
        }
        Ok(())
    }

    fn answer(&mut self, message: &mut Message, numbers: Numbers) -> Outcome {
        for number in numbers.each() {
            next(self, message, number, numbers.whole)?;
            self.send(message.bytes())?;
        }
        Ok(())
    }
}

impl Numbers {
    fn each(self) -> impl Iterator<Item = u64> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// Receives the message of this number.
#[inline(always)]
fn next(end: &mut impl End, message: &mut Message, number: u64, whole: bool) -> Outcome {
    if whole {
        message.clear();
    }
    end.receive(message.bytes_mut())?;
    if !message.has_number(number) {
        return Err(Fault::Number);
    }
    if whole && !message.has_body() {
        return Err(Fault::Body);
    }
    Ok(())
}

/// The two ends of a channel: of the timed thread, and of its peer.
pub type Ends = (Box<dyn Side>, Box<dyn Side>);

/// A channel of this kind.
pub fn ends(by: &str) -> Result<Ends> {
    match by {
        "pipe" => stream::pipes(),
        _ => Err(fail!("messages by {by} are unknown")),
    }
}
