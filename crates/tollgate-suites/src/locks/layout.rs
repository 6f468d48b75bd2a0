//! The data of a lock, at the offsets that its instructions use.

use std::{mem, sync::atomic::AtomicU32};

use super::rseq;

/// The shared data of a lock.
#[repr(C, align(128))]
pub(super) struct Words {
    /// 0 if the lock is free; or a library's `pthread_mutex_t` or `sem_t`.
    pub lock: AtomicU32,
    _library: [u32; 15],
    /// The processor on which it may be acquired, for methods with that limit.
    pub home: u32,
    _rest: [u32; 15],
}

#[repr(C, align(128))]
pub(super) struct Guard {
    x: AtomicU32,
    _between: [u32; 15],
    y: AtomicU32,
    _again: [u32; 15],
    b: [u8; MEMBERS + 1],
}

impl Guard {
    pub const OF_ALL: usize = 2 * size_of::<AtomicU32>();
    pub const OF_EACH: usize = size_of::<u8>();
}

pub(super) const MEMBERS: usize = 255;

#[repr(C, align(128))]
pub(super) struct Member {
    /// +0
    pub rseq: *mut rseq::Area,
    /// +8: restarts of its sequences.
    pub aborts: u64,
    /// +16: from 1 on.
    pub number: u64,
    /// +24: the number of threads.
    pub members: u64,
    /// +32: Lamport's variables.
    pub guard: *mut Guard,
    /// +40: the thread's ID.
    pub thread: u64,
    /// +48: a descriptor, or the ID of a semaphore.
    pub object: i64,
    /// +56: buffer for the eight bytes of an eventfd.
    pub token: u64,
    /// +64
    pub _free: u64,
    /// +72: calls of sched_yield(2) within `take`.
    pub waits: u64,
    /// +80: acquire; +88: release.
    pub operations: [Sembuf; 2],
}

/// `struct sembuf`, padded.
#[repr(C)]
pub(super) struct Sembuf {
    pub number: u16,
    pub change: i16,
    pub flags: i16,
    pub _padding: u16,
}

const _: () = {
    assert!(mem::offset_of!(Words, home) == 64 && size_of::<libc::pthread_mutex_t>() <= 64);
    assert!(size_of::<libc::sem_t>() <= 64);
    assert!(mem::offset_of!(Guard, y) == 64 && mem::offset_of!(Guard, b) == 128);
    assert!(mem::offset_of!(Member, aborts) == 8 && mem::offset_of!(Member, guard) == 32);
    assert!(mem::offset_of!(Member, object) == 48 && mem::offset_of!(Member, waits) == 72);
    assert!(mem::offset_of!(Member, operations) == 80 && size_of::<Sembuf>() == 8);
};
