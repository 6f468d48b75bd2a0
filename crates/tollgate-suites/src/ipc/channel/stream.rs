//! Byte streams: a call may move only part of a message.

use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::super::endpoint::reset_at_close;
use super::{End, Ends, Fault, Outcome};
use crate::files::data_dir::DataDir;
use crate::prelude::*;

pub(super) struct Pipes {
    pub into: OwnedFd,
    pub out: OwnedFd,
}

struct Connection(OwnedFd);

/// Makes two pipes, one for each direction, as in lmbench's lat_pipe and perf bench sched pipe.
pub fn pipes() -> Result<Ends> {
    let pipe = || io::pipe().or_refused("pipe2(2) is refused");
    let ((there_out, there), (back_out, back)) = (pipe()?, pipe()?);
    let home = Pipes { into: there.into(), out: back_out.into() };
    let peer = Pipes { into: back.into(), out: there_out.into() };
    Ok((Box::new(home), Box::new(peer)))
}

/// Makes a pair of stream sockets, as in lmbench's lat_unix and perf bench sched messaging.
pub fn socketpair() -> Result<Ends> {
    let (home, peer) = UnixStream::pair().or_refused("socketpair(2) is refused")?;
    Ok(connected(home, peer))
}

/// Connects a stream socket by a path in the run's directory. Removes the path at once.
pub fn unix(context: &mut Context) -> Result<Ends> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let directory = DataDir::of(context)?;
    let name = format!("ipc-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    // The path of a socket has at most 107 bytes (unix(7)); the directory's own path may be longer.
    let path = format!("/proc/self/fd/{}/{name}", directory.descriptor());
    let made = UnixListener::bind(&path).and_then(|listener| {
        let home = UnixStream::connect(&path)?;
        Ok((home, listener.accept()?.0))
    });
    if let Ok(name) = CString::new(name) {
        directory.remove(&name)?;
    }
    let (home, peer) = made.or_refused("a UNIX socket in the directory for files is refused")?;
    Ok(connected(home, peer))
}

/// Makes a connection over loopback, to a port that the kernel chooses. It disables Nagle's algorithm (TCP_NODELAY), as programs
/// that exchange messages do. Closing it sends a reset, which leaves no TIME_WAIT.
pub fn tcp() -> Result<Ends> {
    let (home, peer) = connection().or_refused("a connection over loopback is refused")?;
    Ok(connected(home, peer))
}

fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let home = TcpStream::connect(listener.local_addr()?)?;
    let own = home.local_addr()?;
    // Another program may have connected first.
    let peer = loop {
        let (peer, from) = listener.accept()?;
        if from == own {
            break peer;
        }
    };
    home.set_nodelay(true)?;
    peer.set_nodelay(true)?;
    reset_at_close(&home)?;
    reset_at_close(&peer)?;
    Ok((home, peer))
}

fn connected(home: impl Into<OwnedFd>, peer: impl Into<OwnedFd>) -> Ends {
    (Box::new(Connection(home.into())), Box::new(Connection(peer.into())))
}

impl End for Pipes {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        write_all(&self.into, message)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        read_all(&self.out, message)
    }
}

impl End for Connection {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        write_all(&self.0, message)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        read_all(&self.0, message)
    }
}

#[inline(always)]
fn write_all(into: &OwnedFd, message: &[u8]) -> Outcome {
    let mut sent = 0;
    while let Some(rest) = message.get(sent..).filter(|rest| !rest.is_empty()) {
        let arguments = [into.as_raw_fd() as u64, rest.as_ptr() as u64, rest.len() as u64, 0];
        // SAFETY: `rest` is valid for reading its own length.
        match unsafe { call(libc::SYS_write, arguments) } {
            moved if moved > 0 => sent += moved as usize,
            other => return Err(Fault::from_result(other)),
        }
    }
    Ok(())
}

#[inline(always)]
fn read_all(out: &OwnedFd, message: &mut [u8]) -> Outcome {
    let mut received = 0;
    while let Some(rest) = message.get_mut(received..).filter(|rest| !rest.is_empty()) {
        let arguments = [out.as_raw_fd() as u64, rest.as_mut_ptr() as u64, rest.len() as u64, 0];
        // SAFETY: `rest` is valid for writing its own length.
        match unsafe { call(libc::SYS_read, arguments) } {
            moved if moved > 0 => received += moved as usize,
            other => return Err(Fault::from_result(other)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_connection_over_loopback_leaves_no_time_wait() {
        let (home, peer) = connection().expect("a connection");
        let ports = [&home, &peer].map(|end| end.local_addr().expect("an address").port());
        let left = || {
            let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
            let is_own =
                |line: &&str| ports.iter().any(|port| line.contains(&format!("0100007F:{port:04X}")));
            Some(table.lines().filter(is_own).count())
        };
        let Some(before) = left() else { return eprintln!("skipped: no /proc/net/tcp") };
        assert!(before >= 2, "{before} ends are listed");
        drop((home, peer));
        // A process that another test forks has both ends until it ends.
        let end = Instant::now() + Duration::from_secs(120);
        while left() != Some(0) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(left(), Some(0));
    }
}
