//! io_uring(7): a message is a completion that one ring puts into another (IORING_OP_MSG_RING).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;
use crate::uring::{Request, Ring, What, refused};

/// Entries of each ring: one message is on its way at a time.
const ENTRIES: u32 = 8;
/// The tag of an end's own submissions. No message has this number.
const OWN: u64 = u64::MAX;

/// An end that puts messages into the other's ring and waits for its own.
struct Messages {
    ring: Ring,
    other: OwnedFd,
}

/// Two rings.
pub fn rings() -> Result<Ends> {
    let ring = || Ring::new(ENTRIES).map_err(|error| refused(&error));
    let (home, peer) = (ring()?, ring()?);
    let copy = |ring: &Ring| {
        ring.descriptor().try_clone_to_owned().or_refused("fcntl(2), F_DUPFD_CLOEXEC, is refused")
    };
    let (to_home, to_peer) = (copy(&home)?, copy(&peer)?);
    let mut home = Messages { ring: home, other: to_peer };
    let mut peer = Messages { ring: peer, other: to_home };
    home.is_known_to_the_kernel(&mut peer)?;
    Ok((Box::new(home), Box::new(peer)))
}

impl Messages {
    /// Sends a message and receives it, so that what this kernel does not know is a skip.
    fn is_known_to_the_kernel(&mut self, other: &mut Self) -> Result<()> {
        let mut message = [0; 8];
        let sent = self.send(&message);
        let mut failed = 0;
        self.ring.take_completions(|_, result| failed = result.min(failed));
        match (sent, failed) {
            (Ok(()), 0) => other.receive(&mut message).map_err(|fault| fail!("{}", fault.in_words())),
            (Ok(()), error) if error == -libc::EINVAL => {
                Err(skip!("this kernel has no messages between rings (IORING_OP_MSG_RING, since Linux 5.18)"))
            }
            (Ok(()), error) => Err(fail!("{}", Fault::from_result(i64::from(error)).in_words())),
            (Err(fault), _) => Err(fail!("{}", fault.in_words())),
        }
    }
}

fn fault(error: &io::Error) -> Fault {
    Fault::from_result(-i64::from(error.raw_os_error().unwrap_or(libc::EIO)))
}

impl End for Messages {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let number = message.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let request = Request {
            what: What::Message,
            file: self.other.as_raw_fd(),
            offset: number,
            buffer: std::ptr::null_mut(),
            length: 0,
            flags: 0,
            tag: OWN,
            is_linked: false,
        };
        // SAFETY: the operation uses no memory of this process.
        unsafe { self.ring.put(&request) };
        self.ring.enter(1, 0).map(drop).map_err(|error| fault(&error))
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let (mut number, mut is_doubled, mut failed) = (None, false, 0);
        loop {
            self.ring.take_completions(|tag, result| {
                if tag == OWN {
                    failed = failed.min(result);
                } else {
                    is_doubled |= number.replace(tag).is_some();
                }
            });
            if failed < 0 {
                return Err(Fault::from_result(i64::from(failed)));
            }
            if is_doubled {
                // One message is on its way at a time.
                return Err(Fault::Number);
            }
            if let (Some(number), Some(bytes)) = (number, message.first_chunk_mut()) {
                *bytes = u64::to_le_bytes(number);
                return Ok(());
            }
            self.ring.enter(0, 1).map_err(|error| fault(&error))?;
        }
    }
}
