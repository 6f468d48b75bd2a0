//! Channels: ways for a message to travel from one end to the other and back.

mod counter;
mod datagram;
mod memory;
mod queue;
mod stream;
mod word;

use super::message::{Fault, Message, Outcome};
use crate::prelude::*;

pub trait End {
    /// After this many messages the sender waits for an answer. Set if the channel drops messages that do not fit.
    const WINDOW: Option<u64> = None;

    /// Prepares the end in the thread that uses it.
    fn enter(&mut self) {}

    fn send(&mut self, message: &[u8]) -> Outcome;

    /// Receives a message of this length.
    fn receive(&mut self, message: &mut [u8]) -> Outcome;
}

/// An end's work with many messages. One call handles all of them, so that only the channel's calls run between two messages.
pub trait Side: Send {
    fn begin(&mut self);

    /// Sends numbered messages, and receives the answer to each.
    fn ask(&mut self, message: &mut Message, numbers: Numbers) -> Outcome;

    /// Returns each message to its sender. Calls `at_last` before it answers the last one.
    fn answer(&mut self, message: &mut Message, numbers: Numbers, at_last: &mut dyn FnMut()) -> Outcome;

    fn give(&mut self, message: &mut Message, numbers: Numbers) -> Outcome;

    fn take(&mut self, message: &mut Message, numbers: Numbers) -> Outcome;
}

#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    pub first: u64,
    pub count: u64,
    /// Compares whole messages, not only their numbers.
    pub whole: bool,
}

impl<E: End + Send> Side for E {
    fn begin(&mut self) {
        self.enter();
    }

    fn ask(&mut self, message: &mut Message, numbers: Numbers) -> Outcome {
        for number in numbers.each() {
            message.number(number);
            self.send(message.bytes())?;
            next(self, message, number, numbers.whole)?;
        }
        Ok(())
    }

    fn answer(&mut self, message: &mut Message, numbers: Numbers, at_last: &mut dyn FnMut()) -> Outcome {
        let end = numbers.end();
        for number in numbers.each() {
            next(self, message, number, numbers.whole)?;
            if number + 1 == end {
                at_last();
            }
            self.send(message.bytes())?;
        }
        Ok(())
    }

    fn give(&mut self, message: &mut Message, numbers: Numbers) -> Outcome {
        for number in numbers.each() {
            message.number(number);
            self.send(message.bytes())?;
            if is_answered::<E>(number) {
                next(self, message, number, numbers.whole)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, message: &mut Message, numbers: Numbers) -> Outcome {
        for number in numbers.each() {
            next(self, message, number, numbers.whole)?;
            if is_answered::<E>(number) {
                self.send(message.bytes())?;
            }
        }
        Ok(())
    }
}

impl Numbers {
    fn end(self) -> u64 {
        self.first.saturating_add(self.count)
    }

    fn each(self) -> impl Iterator<Item = u64> {
        self.first..self.end()
    }
}

/// Returns whether the sender of many messages waits for the answer to this one.
#[inline(always)]
fn is_answered<E: End>(number: u64) -> bool {
    E::WINDOW.is_some_and(|window| number.is_multiple_of(window))
}

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

/// The two ends of a channel: the timed thread's, and its peer's.
pub type Ends = (Box<dyn Side>, Box<dyn Side>);

pub struct Means {
    pub name: &'static str,
    /// The calls that move a message, at both ends.
    pub calls: &'static str,
    pub bytes: &'static [u64],
    /// Boundaries that its messages cross, besides kernel entry.
    pub crosses: &'static [Boundary],
    /// True if an end sleeps until a message arrives. Ends that poll need two processors.
    pub sleeps: bool,
    /// True if it keeps messages for a receiver that has not asked for them yet.
    pub is_queue: bool,
    pub ends: fn(&mut Order<'_>) -> Result<Ends>,
}

#[cfg(test)]
pub fn stream_of(into: std::os::fd::OwnedFd, out: std::os::fd::OwnedFd) -> impl End {
    stream::Pipes { into, out }
}

/// The parameters of a new channel.
pub struct Order<'a> {
    pub bytes: usize,
    /// True if both ends are threads of this process.
    pub is_private: bool,
    pub context: &'a mut Context,
}

/// Sizes of messages: one byte, a page, and the capacity of a pipe.
const SIZES: &[u64] = &[1, 4 << 10, 64 << 10];
/// For channels that do not take 64 KiB: a UDP datagram has at most 65,507 bytes, a message of a queue by default at most 8,192
/// (/proc/sys/fs/mqueue/msgsize_max).
const SMALL: &[u64] = &[1, 4 << 10];
const NUMBER: &[u64] = &[8];
/// A futex has 32 bits.
const WORD: &[u64] = &[4];

/// Every kind of channel, in the order of tables.
pub static ALL: &[Means] = &[
    PIPE,
    Means { name: "socketpair", ends: |_| stream::socketpair(), ..SOCKET },
    Means { name: "unix", ends: |order| stream::unix(order.context), ..SOCKET },
    Means { name: "tcp", ends: |_| stream::tcp(), ..SOCKET },
    Means { name: "udp", bytes: SMALL, ends: |_| datagram::udp(), ..SOCKET },
    Means {
        name: "mqueue",
        calls: "mq_timedsend(2), mq_timedreceive(2)",
        bytes: SMALL,
        ends: |order| queue::queues(order.bytes),
        ..PIPE
    },
    Means { name: "eventfd", bytes: NUMBER, is_queue: false, ends: |_| counter::counters(), ..PIPE },
    Means {
        name: "futex",
        calls: "futex(2)",
        bytes: WORD,
        crosses: &[KernelEntry, SystemCall, KernelCode],
        is_queue: false,
        ends: |order| word::words(order.is_private),
        ..PIPE
    },
    Means {
        name: "shm-futex",
        calls: "futex(2)",
        crosses: &[KernelEntry, SystemCall, KernelCode, MemoryAccess],
        ends: |order| memory::slots(order.bytes, memory::Wait::Asleep { is_private: order.is_private }),
        ..PIPE
    },
    Means {
        name: "shm-spin",
        calls: "loads and stores",
        bytes: SIZES,
        crosses: &[MemoryAccess],
        sleeps: false,
        is_queue: true,
        ends: |order| memory::slots(order.bytes, memory::Wait::Polling),
    },
];

const PIPE: Means = Means {
    name: "pipe",
    calls: "write(2), read(2)",
    bytes: SIZES,
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy],
    sleeps: true,
    is_queue: true,
    ends: |_| stream::pipes(),
};

const SOCKET: Means =
    Means { crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, Socket, KernelAllocation], ..PIPE };

/// Returns the channel of a case; `None` if another version wrote the case.
pub fn means(params: &Params) -> Option<&'static Means> {
    let by = crate::prelude::word(params, "by");
    ALL.iter().find(|means| means.name == by)
}
