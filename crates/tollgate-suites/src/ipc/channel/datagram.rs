//! Datagrams: a call moves a whole message.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;
use crate::syscall::call;

/// An end that loses no datagram: a sender waits while the receiver's queue is full (unix(7)).
struct Local(OwnedFd);

/// An end over loopback: a datagram for which the receiver's buffer has no room is dropped (udp(7)).
struct Network(OwnedFd);

/// A pair of sockets of this type: SOCK_DGRAM or SOCK_SEQPACKET.
pub fn socketpair(kind: libc::c_int) -> Result<Ends> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel writes two numbers.
    checked(unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) })
        .or_refused("socketpair(2) is refused")?;
    // SAFETY: the descriptors are new and have no other owner.
    let [home, peer] = ends.map(|end| Local(unsafe { OwnedFd::from_raw_fd(end) }));
    Ok((Box::new(home), Box::new(peer)))
}

/// Two sockets of UDP over loopback, each connected to the other, on ports that the kernel chose.
pub fn udp() -> Result<Ends> {
    let connect = || -> io::Result<(UdpSocket, UdpSocket)> {
        let [home, peer] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
        let (home, peer) = (home?, peer?);
        home.connect(peer.local_addr()?)?;
        peer.connect(home.local_addr()?)?;
        Ok((home, peer))
    };
    let (home, peer) = connect().or_refused("sockets of UDP over loopback are refused")?;
    Ok((Box::new(Network(home.into())), Box::new(Network(peer.into()))))
}

impl End for Local {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        write(&self.0, message)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        read(&self.0, message)
    }
}

impl End for Network {
    /// So many datagrams of 4 KiB fit into the usual buffer of 208 KiB (/proc/sys/net/core/rmem_default) twice.
    const WINDOW: Option<u64> = Some(16);

    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        write(&self.0, message)
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        read(&self.0, message)
    }
}

#[inline(always)]
fn write(into: &OwnedFd, message: &[u8]) -> Outcome {
    let arguments = [into.as_raw_fd() as u64, message.as_ptr() as u64, message.len() as u64, 0];
    // SAFETY: the kernel reads so many bytes.
    whole(unsafe { call(libc::SYS_write, arguments) }, message.len())
}

#[inline(always)]
fn read(out: &OwnedFd, message: &mut [u8]) -> Outcome {
    let arguments = [out.as_raw_fd() as u64, message.as_mut_ptr() as u64, message.len() as u64, 0];
    // SAFETY: the kernel writes at most so many bytes.
    whole(unsafe { call(libc::SYS_read, arguments) }, message.len())
}

/// Whether a call moved a message of so many bytes.
#[inline(always)]
pub(super) fn whole(moved: i64, bytes: usize) -> Outcome {
    if moved == bytes as i64 { Ok(()) } else { Err(Fault::of(moved)) }
}
