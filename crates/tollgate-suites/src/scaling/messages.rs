//! Calls on what carries messages, each user with one of its own: what they share is the table of descriptors and the allocator.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use tollgate_engine::users::{Operation, Seat, Work};
use tollgate_os::memfd;

use super::cases::{SCALED, has_others};
use super::work::{both, calls};
use crate::descriptor::eventfd;
use crate::prelude::*;
use crate::record_lock;
use crate::syscall::call;

pub const EVENTFD: Benchmark = Benchmark {
    name: "scaling/eventfd",
    operation: "A write that adds one to an eventfd of its own and the read of it by each user.",
    avoid: "Count in memory, and tell others only where they sleep.",
    source: "eventfd(2); will-it-scale, eventfd1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("write(2), read(2)"),
    ..SCALED
};

pub const UNIX: Benchmark = Benchmark {
    name: "scaling/unix",
    operation: "A write of one byte into a UNIX stream socket of its own and the read of it by each user.",
    avoid: "Do not send data to the same thread through a socket; keep it in memory.",
    source: "unix(7); will-it-scale, unix1.c; perf bench sched messaging",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy, Socket, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("write(2), read(2)"),
    ..SCALED
};

pub const POLL: Benchmark = Benchmark {
    name: "scaling/poll",
    operation: "poll of an eventfd of its own that can be read by each user.",
    avoid: "Use epoll or io_uring where there are many descriptors.",
    source: "poll(2); will-it-scale, poll1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("poll(2)"),
    ..SCALED
};

pub const FILE_LOCK: Benchmark = Benchmark {
    name: "scaling/file-lock",
    operation: "F_OFD_SETLK of a record of a file of its own and its unlock by each user.",
    avoid: "Between threads or processes that share memory, use a futex.",
    source: "fcntl(2), open file description locks; will-it-scale, lock1.c; fs/locks.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, KernelAllocation, UserCopy, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("fcntl(2)"),
    ..SCALED
};

pub const DOES_EVENTFD: Operation = Operation { prepare: counts, switches: false };
pub const DOES_UNIX: Operation = Operation { prepare: sockets, switches: false };
pub const DOES_POLL: Operation = Operation { prepare: polls, switches: false };
pub const DOES_FILE_LOCK: Operation = Operation { prepare: locks, switches: false };

/// Writes so many bytes to one descriptor and reads them from another; EIO unless the kernel moved all, both times.
fn pass(give: i32, take: i32, bytes: &mut [u8]) -> i64 {
    let (buffer, length) = (bytes.as_mut_ptr() as u64, bytes.len() as u64);
    // SAFETY: the kernel reads so many bytes.
    let wrote = unsafe { call(libc::SYS_write, [give as u64, buffer, length, 0]) };
    // SAFETY: the kernel writes at most so many bytes.
    let read = unsafe { call(libc::SYS_read, [take as u64, buffer, length, 0]) };
    let moved = both(wrote, read);
    if moved == 0 && (wrote, read) != (length as i64, length as i64) { -i64::from(libc::EIO) } else { moved }
}

fn counts(_: Seat) -> io::Result<Box<dyn Work>> {
    let counter = eventfd(0, libc::EFD_NONBLOCK)?;
    let mut count = 1_u64.to_ne_bytes();
    calls(move || pass(counter.as_raw_fd(), counter.as_raw_fd(), &mut count))
}

fn sockets(_: Seat) -> io::Result<Box<dyn Work>> {
    let (give, take) = UnixStream::pair()?;
    take.set_nonblocking(true)?;
    let mut byte = [1];
    calls(move || pass(give.as_raw_fd(), take.as_raw_fd(), &mut byte))
}

fn polls(_: Seat) -> io::Result<Box<dyn Work>> {
    let counter = eventfd(1, libc::EFD_NONBLOCK)?;
    let mut asked = Box::new(libc::pollfd { fd: counter.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    calls(move || {
        // SAFETY: one structure, valid for writing. The descriptor lives as long as this.
        let ready =
            unsafe { call(libc::SYS_poll, [&raw mut *asked as u64, 1, 0, counter.as_raw_fd() as u64]) };
        if ready == 0 { -i64::from(libc::EIO) } else { ready }
    })
}

fn locks(_: Seat) -> io::Result<Box<dyn Work>> {
    let file = memfd::create("tollgate-lock")?;
    let records = record_lock::first_byte();
    calls(move || {
        let operate = |record: &libc::flock| {
            let arguments =
                [file.as_raw_fd() as u64, libc::F_OFD_SETLK as u64, std::ptr::from_ref(record) as u64, 0];
            // SAFETY: the structure is valid for reading.
            unsafe { call(libc::SYS_fcntl, arguments) }
        };
        both(operate(&records[0]), operate(&records[1]))
    })
}
