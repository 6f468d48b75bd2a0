//! eventfd(2): the message is the value that is added to a counter.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::datagram::whole;
use super::{End, Ends, Outcome};
use crate::descriptor::eventfd;
use crate::prelude::*;

struct Counters {
    into: Arc<OwnedFd>,
    out: Arc<OwnedFd>,
}

pub fn counters() -> Result<Ends> {
    let counter = || eventfd(0, 0).map(Arc::new).or_refused("eventfd2(2) is refused");
    let (there, back) = (counter()?, counter()?);
    let home = Counters { into: Arc::clone(&there), out: Arc::clone(&back) };
    Ok((Box::new(home), Box::new(Counters { into: back, out: there })))
}

impl End for Counters {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let arguments = [self.into.as_raw_fd() as u64, message.as_ptr() as u64, message.len() as u64, 0];
        // SAFETY: the kernel reads the message, which has the eight bytes of a counter.
        whole(unsafe { call(libc::SYS_write, arguments) }, message.len())
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let arguments = [self.out.as_raw_fd() as u64, message.as_mut_ptr() as u64, message.len() as u64, 0];
        // SAFETY: the message is valid for writing its own length.
        whole(unsafe { call(libc::SYS_read, arguments) }, message.len())
    }
}
