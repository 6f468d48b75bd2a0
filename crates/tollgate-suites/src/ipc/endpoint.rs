//! Shared parts of this suite's loops: sockets that only this machine reaches, and checks around each batch.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::descriptor::owned;
use crate::prelude::*;

/// The object of a loop. Its checks run outside the timed region.
pub trait Subject: Send {
    /// Changes the data that the next batch transfers, and clears what it receives.
    fn before(&mut self, context: &mut LoopContext) -> Result<()>;

    /// Checks that the iterations transferred all data exactly once.
    fn after(&mut self, context: &LoopContext, iterations: u64) -> Result<()>;
}

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

/// A listening socket on an address that the kernel chooses and only this machine reaches.
pub struct Listener {
    socket: OwnedFd,
    /// Boxed, because loops keep its address.
    address: Box<libc::sockaddr_storage>,
    length: libc::socklen_t,
}

/// Time limit for an accept: a connection on the same machine arrives at once or never.
const PATIENCE: libc::timeval = libc::timeval { tv_sec: 2, tv_usec: 0 };

impl Listener {
    /// Listens on a port of 127.0.0.1 that the kernel chooses (ip(7), ip_local_port_range).
    ///
    /// The accepted connections inherit SO_LINGER with a time of 0 and are closed by a reset (socket(7)). So neither end stays in
    /// TIME_WAIT for a minute, and no ports are used up.
    pub fn tcp() -> io::Result<Self> {
        let listener = Self::bound(libc::AF_INET, |address| {
            let inet = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: u32::from(std::net::Ipv4Addr::LOCALHOST).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage has the size and alignment for an address of any family.
            unsafe { std::ptr::from_mut(address).cast::<libc::sockaddr_in>().write(inet) };
            size_of::<libc::sockaddr_in>()
        })?;
        reset_at_close(&listener.socket)?;
        Ok(listener)
    }

    /// Listens on an abstract name that the kernel chooses (unix(7), autobind). Nothing remains of it.
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
        // SAFETY: the address is valid for reading `asked` bytes and for writing `length` bytes.
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

    /// The address as a loop needs it: pointer and length. Valid for as long as this listener lives.
    pub fn address(&self) -> [u64; 2] {
        [std::ptr::from_ref(&*self.address) as u64, u64::from(self.length)]
    }

    pub fn family(&self) -> libc::c_int {
        libc::c_int::from(self.address.ss_family)
    }

    pub fn connection(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let client = self.client()?;
        let nothing = std::ptr::null_mut();
        // SAFETY: no address is requested.
        let accepted =
            unsafe { libc::accept4(self.descriptor(), nothing, std::ptr::null_mut(), libc::SOCK_CLOEXEC) };
        Ok((client, owned(accepted)?))
    }

    pub fn client(&self) -> io::Result<OwnedFd> {
        let client = stream(self.family())?;
        // Without a timeout, connect would wait for minutes if a filter drops the packets.
        set(&client, libc::SO_SNDTIMEO, &PATIENCE)?;
        let at = std::ptr::from_ref(&*self.address).cast::<libc::sockaddr>();
        // SAFETY: the address is valid for reading `self.length` bytes.
        checked(unsafe { libc::connect(client.as_raw_fd(), at, self.length) })?;
        Ok(client)
    }

    pub fn has_more(&self) -> bool {
        is_readable(self.descriptor())
    }
}

/// Makes this socket's connections, accepted ones too, end by a reset, without TIME_WAIT (SO_LINGER of 0, socket(7)).
pub(super) fn reset_at_close(socket: &impl AsRawFd) -> io::Result<()> {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    set(socket, libc::SO_LINGER, &at_once)
}

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

pub(super) fn set<T>(socket: &impl AsRawFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let (at, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is valid for reading `length` bytes.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, at, length) }).map(drop)
}
