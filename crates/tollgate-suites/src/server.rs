//! A thread that answers whenever a descriptor becomes readable.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::descriptor::eventfd;
use crate::prelude::*;

/// The thread. On drop it is told to end, and joined.
pub(crate) struct Server {
    /// `None` once it is joined.
    handle: Option<JoinHandle<()>>,
    stop: Arc<OwnedFd>,
}

/// Tells the thread to end: an eventfd that becomes readable.
pub(crate) struct Stop(Arc<OwnedFd>);

impl Server {
    /// Starts a thread that ends when [`Stop::serve`] returns.
    ///
    /// # Errors
    /// [`Refusal::Skip`] if no eventfd or no thread can be made.
    pub fn start(body: impl FnOnce(&Stop) + Send + 'static) -> Result<Self> {
        const STACK: usize = 128 << 10;
        let stop = Arc::new(eventfd(0, 0).or_refused("eventfd2(2) is refused")?);
        let stopped = Stop(Arc::clone(&stop));
        let handle = thread::Builder::new().stack_size(STACK).spawn(move || body(&stopped));
        Ok(Self { handle: Some(handle.or_refused("no thread can be started")?), stop })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let one: u64 = 1;
        // SAFETY: `one` is valid for reading 8 bytes.
        unsafe { libc::write(self.stop.as_raw_fd(), (&raw const one).cast(), 8) };
        if let Some(handle) = self.handle.take() {
            // A panic shows in the results.
            let _ = handle.join();
        }
    }
}

impl Stop {
    /// Answers whenever the descriptor is readable, until the server is dropped, the other side is closed, or an answer fails.
    ///
    /// # Errors
    /// Fails if poll(2) or the answer fails.
    pub fn serve(&self, on: &OwnedFd, mut answer: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let ask = |on: &OwnedFd| libc::pollfd { fd: on.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut asked = [ask(on), ask(&self.0)];
        loop {
            // SAFETY: `asked` is valid for its number of entries.
            let ready = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, -1) };
            if ready < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            } else if asked[1].revents != 0 || asked[0].revents & libc::POLLHUP != 0 {
                return Ok(());
            } else {
                answer()?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn each_byte_is_answered_until_the_other_end_closes_or_the_server_is_dropped() {
        for closes in [true, false] {
            let (take, mut give) = io::pipe().expect("a pipe");
            let (answered, answers) = mpsc::channel();
            let server = Server::start(move |stop| {
                let (mut from, taken) = (&take, OwnedFd::from(take.try_clone().expect("a copy")));
                let served = stop.serve(&taken, || {
                    let mut byte = [0];
                    from.read_exact(&mut byte)?;
                    answered.send(byte[0]).map_err(io::Error::other)
                });
                assert!(served.is_ok(), "{served:?}");
            });
            let server = server.expect("a thread");
            for byte in 0..3 {
                give.write_all(&[byte]).expect("sent");
                assert_eq!(answers.recv(), Ok(byte));
            }
            // The thread drops its sender in either case.
            if closes {
                drop(give);
                assert!(answers.recv().is_err());
                drop(server);
            } else {
                drop(server);
                assert!(answers.recv().is_err());
            }
        }
    }

    #[test]
    fn an_answer_that_fails_ends_it() {
        let (take, mut give) = io::pipe().expect("a pipe");
        let (failed, failure) = mpsc::channel();
        let _server = Server::start(move |stop| {
            let served = stop.serve(&take.into(), || Err(io::ErrorKind::Unsupported.into()));
            let _ = failed.send(served.map_err(|error| error.kind()));
        });
        give.write_all(&[1]).expect("sent");
        assert_eq!(failure.recv(), Ok(Err(io::ErrorKind::Unsupported)));
    }
}
