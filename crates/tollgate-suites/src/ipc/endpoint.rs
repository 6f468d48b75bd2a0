//! What the loops of this suite have in common: sockets of this machine alone, and checks around each batch.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::descriptor::owned;
use crate::prelude::*;

/// What a loop works on. Its checks stand outside of the timed region.
pub trait Subject: Send {
    /// Makes what the next batch transfers different from the last, and clears what it receives.
    fn before(&mut self, context: &mut LoopContext) -> Result<()>;

    /// Checks that so many iterations transferred all of it, once.
    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()>;
}

/// The checks of a subject as hooks of a loop.
pub struct Verified<S> {
    pub subject: S,
    iterations: u64,
}

impl<S: Subject> Verified<S> {
    pub fn new(subject: S) -> Self {
        Self { subject, iterations: 0 }
    }
}

impl<S: Subject> BatchHooks for Verified<S> {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        self.iterations = iterations;
        self.subject.before(context)
    }

    fn after(&mut self, context: &LoopContext) -> Result<Option<u64>> {
        self.subject.after(context, self.iterations).map(|()| None)
    }
}

/// A socket that listens, on an address of the kernel's choice that only this machine reaches.
pub struct Listener {
    socket: OwnedFd,
    /// Boxed, because loops have its address.
    address: Box<libc::sockaddr_storage>,
    length: libc::socklen_t,
}

/// Seconds that an accept may wait: a connection on the same machine is there at once, or never.
const PATIENCE: libc::timeval = libc::timeval { tv_sec: 2, tv_usec: 0 };

impl Listener {
    /// A port of 127.0.0.1 that the kernel chooses (ip(7), ip_local_port_range).
    ///
    /// The connections that it accepts are closed by a reset, since they inherit SO_LINGER with a time of 0 (socket(7)): neither end
    /// stays in TIME_WAIT for a minute, and no port is used up.
    pub fn tcp() -> io::Result<Self> {
        let listener = Self::bound(libc::AF_INET, |address| {
            let inet = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: u32::from(std::net::Ipv4Addr::LOCALHOST).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage has room and alignment for the address of any family.
            unsafe { std::ptr::from_mut(address).cast::<libc::sockaddr_in>().write(inet) };
            size_of::<libc::sockaddr_in>()
        })?;
        reset_at_close(&listener.socket)?;
        Ok(listener)
    }

    /// A name outside of the file system that the kernel chooses (unix(7), autobind): nothing of it is left.
    pub fn unix() -> io::Result<Self> {
        Self::bound(libc::AF_UNIX, |address| {
            address.ss_family = libc::AF_UNIX as libc::sa_family_t;
            size_of::<libc::sa_family_t>()
        })
    }

    fn bound(
        family: libc::c_int,
        ask: impl FnOnce(&mut libc::sockaddr_storage) -> usize,
    ) -> io::Result<Self> {
        let socket = stream(family)?;
        set(&socket, libc::SO_RCVTIMEO, &PATIENCE)?;
        // SAFETY: a structure of numbers, for which zeros are valid.
        let mut address: Box<libc::sockaddr_storage> = Box::new(unsafe { std::mem::zeroed() });
        let asked = ask(&mut address) as libc::socklen_t;
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let at = std::ptr::from_mut(&mut *address).cast::<libc::sockaddr>();
        // SAFETY: the address is valid for so many bytes, for reading and for writing.
        unsafe {
            checked(libc::bind(socket.as_raw_fd(), at, asked))?;
            checked(libc::listen(socket.as_raw_fd(), 16))?;
            checked(libc::getsockname(socket.as_raw_fd(), at, &mut length))?;
        }
        Ok(Self { socket, address, length })
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Its address as a loop needs it: where it lies, and its bytes. It lies there as long as this lives.
    pub fn address(&self) -> [u64; 2] {
        [std::ptr::from_ref(&*self.address) as u64, u64::from(self.length)]
    }

    pub fn family(&self) -> libc::c_int {
        libc::c_int::from(self.address.ss_family)
    }

    /// A connection: the end that asked for it, and the end that was accepted.
    pub fn connection(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let client = self.client()?;
        let nothing = std::ptr::null_mut();
        // SAFETY: no address is asked for.
        let accepted =
            unsafe { libc::accept4(self.descriptor(), nothing, std::ptr::null_mut(), libc::SOCK_CLOEXEC) };
        Ok((client, owned(accepted)?))
    }

    /// An end that has asked for a connection.
    pub fn client(&self) -> io::Result<OwnedFd> {
        let client = stream(self.family())?;
        // Its connect would otherwise wait for minutes where a filter drops the packets.
        set(&client, libc::SO_SNDTIMEO, &PATIENCE)?;
        let at = std::ptr::from_ref(&*self.address).cast::<libc::sockaddr>();
        // SAFETY: the address is valid for reading so many bytes.
        checked(unsafe { libc::connect(client.as_raw_fd(), at, self.length) })?;
        Ok(client)
    }

    /// Whether a connection waits to be accepted.
    pub fn has_more(&self) -> bool {
        is_readable(self.descriptor())
    }
}

/// A connection of this socket, or one that it accepts from now on, ends by a reset when it is closed: neither end stays in TIME_WAIT
/// (SO_LINGER with a time of 0, socket(7)).
pub(super) fn reset_at_close(socket: &impl AsRawFd) -> io::Result<()> {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    set(socket, libc::SO_LINGER, &at_once)
}

/// Whether something is there to be read, or to be accepted.
pub fn is_readable(descriptor: RawFd) -> bool {
    let mut asked = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, valid for writing; the call does not wait.
    let ready = unsafe { libc::poll(&mut asked, 1, 0) };
    ready > 0 && asked.revents & libc::POLLIN != 0
}

fn stream(family: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket(2) takes numbers.
    owned(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })
}

/// Sets an option of the socket itself (SOL_SOCKET, socket(7)).
pub(super) fn set<T>(socket: &impl AsRawFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let (at, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is valid for reading so many bytes.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, at, length) }).map(drop)
}
