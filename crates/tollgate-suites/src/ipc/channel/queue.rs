use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tollgate_arch::call::call6;

use super::datagram::whole;
use super::{End, Ends, Outcome};
use crate::descriptor::owned;
use crate::prelude::*;

struct Queues {
    into: Arc<OwnedFd>,
    out: Arc<OwnedFd>,
}

pub fn queues(bytes: usize) -> Result<Ends> {
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENOSYS) => skip!("this kernel has no POSIX message queues"),
        _ => Refusal::new("mq_open(2) is refused", &error),
    };
    let there = Arc::new(queue(bytes).map_err(refused)?);
    let back = Arc::new(queue(bytes).map_err(refused)?);
    let home = Queues { into: Arc::clone(&there), out: Arc::clone(&back) };
    Ok((Box::new(home), Box::new(Queues { into: back, out: there })))
}

/// Creates a queue for ten messages, the default length. Removes its name at once.
fn queue(bytes: usize) -> io::Result<OwnedFd> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const MESSAGES: libc::c_long = 10;
    // The kernel expects the name without the slash, which mq_open(3) strips.
    let name = CString::new(format!("tollgate-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed)))?;
    // SAFETY: zeroes are valid attributes.
    let mut attributes: libc::mq_attr = unsafe { std::mem::zeroed() };
    attributes.mq_maxmsg = MESSAGES;
    attributes.mq_msgsize = bytes as libc::c_long;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a C string and attributes that are valid for reading.
    let made =
        unsafe { libc::syscall(libc::SYS_mq_open, name.as_ptr(), flags, 0o600, &raw const attributes) };
    let queue = owned(made)?;
    // SAFETY: a C string.
    checked(unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) })?;
    Ok(queue)
}

impl End for Queues {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let queue = self.into.as_raw_fd() as u64;
        let arguments = [queue, message.as_ptr() as u64, message.len() as u64, 0, 0, 0];
        // SAFETY: the message is valid for reading its own length; the priority is 0, and there is no time limit.
        whole(unsafe { call6(libc::SYS_mq_timedsend, arguments) }, 0)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let queue = self.out.as_raw_fd() as u64;
        let arguments = [queue, message.as_mut_ptr() as u64, message.len() as u64, 0, 0, 0];
        // SAFETY: the message is valid for writing its own length; neither a priority nor a time limit is given.
        whole(unsafe { call6(libc::SYS_mq_timedreceive, arguments) }, message.len())
    }
}
