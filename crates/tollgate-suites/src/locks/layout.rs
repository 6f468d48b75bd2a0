//! The data of a lock, by the offsets that its instructions use.

use std::{mem, sync::atomic::AtomicU32};

use super::rseq;

/// The shared data of a lock, which its instructions work on.
#[repr(C, align(128))]
pub(super) struct Words {
    /// 0 if the lock is free; or a library's `pthread_mutex_t` or `sem_t`.
    pub lock: AtomicU32,
    _library: [u32; 15],
    /// The processor on which it may be acquired, for methods with that limit.
    pub home: u32,
    _rest: [u32; 15],
}

/// Lamport's variables.
#[repr(C, align(128))]
pub(super) struct Guard {
    x: AtomicU32,
    _between: [u32; 15],
    y: AtomicU32,
    _again: [u32; 15],
    /// `b[i]`, from 1 on.
    b: [u8; MEMBERS + 1],
}

impl Guard {
    /// Shared bytes: x and y.
    pub const OF_ALL: usize = 2 * size_of::<AtomicU32>();
    /// Bytes of each thread: its b.
    pub const OF_EACH: usize = size_of::<u8>();
}

/// Greatest number of threads of a lock.
pub(super) const MEMBERS: usize = 255;

/// The per-thread data. The instructions use these offsets.
#[repr(C, align(128))]
pub(super) struct Member {
    /// +0: its restartable sequence.
    pub rseq: *mut rseq::Area,
    /// +8: restarts of its sequences.
    pub aborts: u64,
    /// +16: its number, from 1 on.
    pub number: u64,
    /// +24: the number of threads.
    pub members: u64,
    /// +32: Lamport's variables.
    pub guard: *mut Guard,
    /// +40: the thread's id.
    pub thread: u64,
    /// +48: a descriptor or the id of a semaphore.
    pub object: i64,
    /// +56: the eight bytes of buffer for an eventfd.
    pub token: u64,
    /// +64: unused.
    pub _free: u64,
    /// +72: calls of sched_yield(2) within `take`.
    pub waits: u64,
    /// +80: `struct sembuf` of acquire, and +88: of release.
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
