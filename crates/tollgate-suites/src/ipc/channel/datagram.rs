//! UDP datagrams: each call moves a whole message.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use super::super::endpoint::set;
use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;

/// A socket over loopback. A datagram is lost if the receiver's buffer has no space for it (udp(7)).
struct Socket(UdpSocket);

/// Number of datagrams that may wait at a receiver.
const DATAGRAMS: u64 = 16;

/// Bytes of a receive buffer for this many datagrams of 4 KiB. Each counts as about 8.5 KiB, since it lies in 8 KiB next to its
/// `struct sk_buff`. Datagrams that were read may still count, up to a quarter of the buffer (net/ipv4/udp.c,
/// udp_rmem_release()).
const ROOM: libc::c_int = 192 << 10;

/// Enlarges the receive buffer if a window does not fit. The default of 208 KiB (/proc/sys/net/core/rmem_default) is enough.
fn make_room(socket: &UdpSocket) -> Result<()> {
    if room(socket).or_refused("getsockopt(2) is refused")? >= ROOM {
        return Ok(());
    }
    // The kernel doubles the value, up to twice net.core.rmem_max (socket(7), SO_RCVBUF).
    set(socket, libc::SO_RCVBUF, &(ROOM / 2)).or_refused("setsockopt(2), SO_RCVBUF, is refused")?;
    match room(socket).or_refused("getsockopt(2) is refused")? {
        enough if enough >= ROOM => Ok(()),
        bytes => Err(skip!(
            "a receive buffer has at most {bytes} bytes here, and {ROOM} are needed (net.core.rmem_max)"
        )),
    }
}

fn room(socket: &UdpSocket) -> io::Result<libc::c_int> {
    let mut bytes: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let (level, option, at) = (libc::SOL_SOCKET, libc::SO_RCVBUF, (&raw mut bytes).cast());
    // SAFETY: the kernel writes at most `length` bytes.
    checked(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, at, &mut length) }).map(|_| bytes)
}

/// Makes two UDP sockets that are connected over loopback, on ports that the kernel chooses.
pub fn udp() -> Result<Ends> {
    let connect = || -> io::Result<(UdpSocket, UdpSocket)> {
        let [home, peer] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
        let (home, peer) = (home?, peer?);
        home.connect(peer.local_addr()?)?;
        peer.connect(home.local_addr()?)?;
        Ok((home, peer))
    };
    let (home, peer) = connect().or_refused("sockets of UDP over loopback are refused")?;
    make_room(&home)?;
    make_room(&peer)?;
    Ok((Box::new(Socket(home)), Box::new(Socket(peer))))
}

impl End for Socket {
    const WINDOW: Option<u64> = Some(DATAGRAMS);

    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let arguments = [self.0.as_raw_fd() as u64, message.as_ptr() as u64, message.len() as u64, 0];
        // SAFETY: the message is valid for reading its own length.
        whole(unsafe { call(libc::SYS_write, arguments) }, message.len())
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let arguments = [self.0.as_raw_fd() as u64, message.as_mut_ptr() as u64, message.len() as u64, 0];
        // SAFETY: the message is valid for writing its own length.
        whole(unsafe { call(libc::SYS_read, arguments) }, message.len())
    }
}

/// Checks that a call moved a message of this length.
#[inline(always)]
pub(super) fn whole(moved: i64, bytes: usize) -> Outcome {
    if moved == bytes as i64 { Ok(()) } else { Err(Fault::from_result(moved)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    #[test]
    fn a_small_buffer_is_made_large_enough_for_a_window() {
        let [from, to] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket"));
        set(&to, libc::SO_RCVBUF, &4096).expect("a small buffer");
        assert!(room(&to).expect("its size") < ROOM);
        if ready("a buffer", make_room(&to)).is_none() {
            return;
        }
        from.connect(to.local_addr().expect("an address")).expect("connected");
        to.set_nonblocking(true).expect("no wait");
        // In the second pass some of the datagrams that were read may still count.
        for _ in 0..2 {
            for _ in 0..DATAGRAMS {
                from.send(&[1; 4096]).expect("sent");
            }
            for number in 0..DATAGRAMS {
                assert_eq!(to.recv(&mut [0; 4096]).ok(), Some(4096), "datagram {number}");
            }
        }
    }
}
