//! Streams of bytes: a call may move a part of a message.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;
use crate::syscall::call;

/// An end that writes to one descriptor and reads from another, or from the same.
struct Stream {
    into: OwnedFd,
    out: OwnedFd,
}

/// One pipe there, one back, as in lmbench's lat_pipe and perf bench sched pipe.
pub fn pipes() -> Result<Ends> {
    let pipe = || io::pipe().or_refused("pipe2(2) is refused");
    let ((there_out, there), (back_out, back)) = (pipe()?, pipe()?);
    let home = Stream { into: there.into(), out: back_out.into() };
    let peer = Stream { into: back.into(), out: there_out.into() };
    Ok((Box::new(home), Box::new(peer)))
}

impl End for Stream {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let mut sent = 0;
        while let Some(rest) = message.get(sent..).filter(|rest| !rest.is_empty()) {
            let arguments = [self.into.as_raw_fd() as u64, rest.as_ptr() as u64, rest.len() as u64, 0];
            // SAFETY: the kernel reads so many bytes.
            match unsafe { call(libc::SYS_write, arguments) } {
                moved if moved > 0 => sent += moved as usize,
                other => return Err(Fault::of(other)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let mut received = 0;
        while let Some(rest) = message.get_mut(received..).filter(|rest| !rest.is_empty()) {
            let arguments = [self.out.as_raw_fd() as u64, rest.as_mut_ptr() as u64, rest.len() as u64, 0];
            // SAFETY: the kernel writes at most so many bytes.
            match unsafe { call(libc::SYS_read, arguments) } {
                moved if moved > 0 => received += moved as usize,
                other => return Err(Fault::of(other)),
            }
        }
        Ok(())
    }
}
