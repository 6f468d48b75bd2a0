//! The memory that the threads or processes share: their job, the barriers around a window, and what each made.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::{io, time::Duration};

use super::operation::{Operation, Words};
use crate::machine::mapping::Mapping;

/// The job of all. The lines that they wait on are each their own, since all of them look there at once.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Job {
    /// One more with each job: they sleep while it stays.
    pub number: AtomicU32,
    /// Not 0: they leave.
    pub leave: AtomicU32,
    /// Takes part: those below this number.
    pub tasks: AtomicU32,
    /// A static of this program: a process that was forked has it at the same address.
    operation: AtomicPtr<Operation>,
    words: [AtomicU64; 4],
    /// Ticks a second of the time stamp counter, or 0 for the kernel's clock.
    pub hz: AtomicU64,
    /// Operations between two looks at the clock.
    pub step: AtomicU64,
    /// Ticks of its window.
    pub length: AtomicU64,
}

/// The barriers of a window.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Window {
    /// When it begins: 0 until all are there, and [`ABANDONED`] where they do not come.
    pub from: AtomicU64,
    pub until: AtomicU64,
}

/// How many wait for the window, or are done with it.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Arrivals(pub AtomicU32);

/// [`Window::from`] of a job that is given up.
pub const ABANDONED: u64 = u64::MAX;

/// What each leaves.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Slot {
    /// Its operations in the window.
    pub made: AtomicU64,
    /// The times before the first and after the last of them.
    pub first: AtomicU64,
    pub last: AtomicU64,
    /// How often the processor was taken away from it.
    pub preempted: AtomicU64,
    /// Its context switches, minor and major faults.
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

/// The memory, shared with children. All of it is atomic words, for which zeros are valid.
pub struct Board {
    memory: Mapping,
    slots: usize,
}

impl Board {
    /// For so many.
    pub fn new(tasks: usize) -> io::Result<Self> {
        let bytes = size_of::<Head>() + tasks * size_of::<Slot>();
        Ok(Self { memory: Mapping::anonymous(bytes, libc::MAP_SHARED)?, slots: tasks })
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is page-aligned, longer than this, and holds atomic words only.
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

    /// The slots of the first so many.
    pub fn slots(&self, tasks: usize) -> &[Slot] {
        // SAFETY: so many slots lie behind the head, whose size is a multiple of their alignment.
        unsafe {
            let first = self.memory.address().add(size_of::<Head>()).cast::<Slot>();
            std::slice::from_raw_parts(first, tasks.min(self.slots))
        }
    }

    /// Says what is made in the next job.
    pub fn set_operation(&self, operation: &'static Operation, words: Words) {
        self.job().operation.store(ptr::from_ref(operation).cast_mut(), SeqCst);
        for (to, word) in self.job().words.iter().zip(words) {
            to.store(word, SeqCst);
        }
    }

    /// What is made in the job; None before the first.
    pub fn operation(&self) -> Option<(&'static Operation, Words)> {
        // SAFETY: null, or what was stored of a static, which nothing writes.
        let operation = unsafe { self.job().operation.load(SeqCst).as_ref() }?;
        Some((operation, std::array::from_fn(|at| self.job().words[at].load(SeqCst))))
    }
}

/// Sleeps while `word` is `value`, until a wake-up or for so long (futex(2), between processes too).
pub fn sleep_while(word: &AtomicU32, value: u32, at_most: Option<Duration>) {
    let time = at_most.map(|time| libc::timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads the word and the time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, time) };
}

/// Wakes all that sleep on `word`.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the kernel only takes the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
