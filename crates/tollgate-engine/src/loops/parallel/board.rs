//! Memory shared by the threads or processes: their job, the barriers around a window, and what each made.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::{io, time::Duration};

use super::operation::{Operation, Words};
use crate::machine::mapping::Mapping;

/// Each line that tasks wait on is separate, since all of them read it at once.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Job {
    /// Increases with each job. Tasks sleep while it is unchanged.
    pub number: AtomicU32,
    /// If not 0, they leave.
    pub leave: AtomicU32,
    /// Tasks below this number take part.
    pub tasks: AtomicU32,
    /// A static of this program, which has the same address in a forked process.
    operation: AtomicPtr<Operation>,
    words: [AtomicU64; 4],
    /// Ticks of the time stamp counter per second, or 0 for the kernel's clock.
    pub hz: AtomicU64,
    pub step: AtomicU64,
    pub length: AtomicU64,
}

#[repr(C, align(128))]
#[derive(Default)]
pub struct Window {
    /// When it begins: 0 until all have arrived, [`ABANDONED`] if they do not.
    pub from: AtomicU64,
    pub until: AtomicU64,
}

#[repr(C, align(128))]
#[derive(Default)]
pub struct Arrivals(pub AtomicU32);

/// [`Window::from`] of a job that is given up.
pub const ABANDONED: u64 = u64::MAX;

#[repr(C, align(128))]
#[derive(Default)]
pub struct Slot {
    pub made: AtomicU64,
    /// The times before the first and after the last of them.
    pub first: AtomicU64,
    pub last: AtomicU64,
    pub preempted: AtomicU64,
    pub usage: [AtomicU64; 3],
    /// The error number of a preparation or an operation that failed; 0 for none.
    pub error: AtomicI32,
}

#[repr(C)]
#[derive(Default)]
struct Head {
    job: Job,
    window: Window,
    arrived: Arrivals,
    done: Arrivals,
}

/// All of it is atomic words, for which zeros are valid.
pub struct Board {
    memory: Mapping,
    slots: usize,
}

impl Board {
    pub fn new(tasks: usize) -> io::Result<Self> {
        let bytes = size_of::<Head>() + tasks * size_of::<Slot>();
        Ok(Self { memory: Mapping::anonymous(bytes, libc::MAP_SHARED)?, slots: tasks })
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is page-aligned, longer than this, and holds only atomic words.
        unsafe { &*self.memory.address().cast::<Head>() }
    }

    pub fn job(&self) -> &Job {
        &self.head().job
    }

    pub fn window(&self) -> &Window {
        &self.head().window
    }

    pub fn arrived(&self) -> &AtomicU32 {
        &self.head().arrived.0
    }

    pub fn done(&self) -> &AtomicU32 {
        &self.head().done.0
    }

    pub fn slots(&self, tasks: usize) -> &[Slot] {
        // SAFETY: `tasks` slots follow the head, whose size is a multiple of their alignment.
        unsafe {
            let first = self.memory.address().add(size_of::<Head>()).cast::<Slot>();
            std::slice::from_raw_parts(first, tasks.min(self.slots))
        }
    }

    pub fn set_operation(&self, operation: &'static Operation, words: Words) {
        self.job().operation.store(ptr::from_ref(operation).cast_mut(), SeqCst);
        for (to, word) in self.job().words.iter().zip(words) {
            to.store(word, SeqCst);
        }
    }

    /// The operation of the job; `None` before the first.
    pub fn operation(&self) -> Option<(&'static Operation, Words)> {
        // SAFETY: null, or the address of a static, which nothing writes.
        let operation = unsafe { self.job().operation.load(SeqCst).as_ref() }?;
        Some((operation, std::array::from_fn(|at| self.job().words[at].load(SeqCst))))
    }
}

/// Sleeps while `word` is `value`, until a wake-up or at most this long (futex(2), between processes too).
pub fn sleep_while(word: &AtomicU32, value: u32, at_most: Option<Duration>) {
    let time = at_most.map(|time| libc::timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads the word and the time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, time) };
}

pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the kernel only takes the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
