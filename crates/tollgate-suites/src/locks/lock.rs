//! Locks as threads see them: what they share, what each brings, and how they are taken.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::{io, mem, ptr};

use super::code::Code;
use super::method::Method;
use super::rseq;
use super::semaphore::Semaphore;
use crate::mapping::Mapping;
use tollgate_engine::{Refusal, cpu};

/// What all who use a lock share: the memory that its instructions work on.
#[repr(C, align(128))]
pub(super) struct Words {
    /// 0 where nobody has it. Or what a library keeps here: `pthread_mutex_t`, `sem_t`.
    pub lock: AtomicU32,
    _library: [u32; 15],
    /// The processor on which it may be taken, where that is asked.
    home: u32,
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
    /// What all threads share of it, in bytes: x and y.
    pub const OF_ALL: usize = 2 * size_of::<AtomicU32>();
    /// What each thread has of it: its b.
    pub const OF_EACH: usize = size_of::<u8>();
}

/// Threads that may share a lock.
pub(super) const MEMBERS: usize = 255;

/// What one thread brings. The offsets are those that the instructions know.
#[repr(C, align(128))]
pub(super) struct Member {
    /// +0: its restartable sequence.
    rseq: *mut rseq::Area,
    /// +8: how often one was restarted.
    aborts: u64,
    /// +16: its number, from 1 on.
    number: u64,
    /// +24: how many there are.
    members: u64,
    /// +32: Lamport's variables.
    guard: *mut Guard,
    /// +40: the thread's number.
    thread: u64,
    /// +48: a descriptor or the number of a semaphore.
    object: i64,
    /// +56: the eight bytes that an event counter is read to and written from.
    token: u64,
    /// +64: nothing.
    _free: u64,
    /// +72: how often it gave the processor away, waiting within a take.
    waits: u64,
    /// +80: `struct sembuf` that takes, and +88: that gives back.
    operations: [Sembuf; 2],
}

/// `struct sembuf`, padded.
#[repr(C)]
struct Sembuf {
    number: u16,
    change: i16,
    flags: i16,
    _padding: u16,
}

const _: () = {
    assert!(mem::offset_of!(Words, home) == 64 && size_of::<libc::pthread_mutex_t>() <= 64);
    assert!(size_of::<libc::sem_t>() <= 64);
    assert!(mem::offset_of!(Guard, y) == 64 && mem::offset_of!(Guard, b) == 128);
    assert!(mem::offset_of!(Member, aborts) == 8 && mem::offset_of!(Member, guard) == 32);
    assert!(mem::offset_of!(Member, object) == 48 && mem::offset_of!(Member, waits) == 72);
    assert!(mem::offset_of!(Member, operations) == 80 && size_of::<Sembuf>() == 8);
};

/// Where those who use a lock run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All on this processor, and bound to it.
    On(usize),
    /// Anywhere.
    Anywhere,
}

/// A lock that threads, or processes that were forked with it, share.
#[derive(Clone)]
pub(super) struct Lock {
    method: Method,
    reach: Reach,
    members: usize,
    shared: Arc<Shared>,
}

struct Shared {
    memory: Mapping,
    object: Object,
}

// SAFETY: threads share the memory through instructions that are made for it; all else is only read.
unsafe impl Sync for Shared {}

/// What the kernel keeps for it.
enum Object {
    None,
    Event(std::os::fd::OwnedFd),
    Semaphore(Semaphore),
}

impl Lock {
    /// One that nobody has, for so many members.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where it would not be safe for that reach, or the place has not what it needs.
    pub fn new(method: Method, reach: Reach, members: usize) -> Result<Self, Refusal> {
        if let (Reach::Anywhere, Some(why)) = (reach, method.one_processor_only()) {
            return Err(Refusal::Skip(format!("it is safe on one processor only: {why}")));
        }
        Self::unsafe_anywhere(method, reach, members)
    }

    /// The same without asking whether it is safe: for showing that it is not.
    pub fn unsafe_anywhere(method: Method, reach: Reach, members: usize) -> Result<Self, Refusal> {
        if members > MEMBERS {
            return Err(Refusal::Fail(format!("a lock is for {MEMBERS} threads, not {members}")));
        }
        let length = size_of::<Words>() + size_of::<Guard>();
        let memory = Mapping::anonymous(length, libc::MAP_SHARED)
            .map_err(|error| Refusal::of("memory for a lock is refused", &error))?;
        let object = match method {
            Method::Eventfd => Object::Event(event()?),
            Method::Semop => Object::Semaphore(Semaphore::new()?),
            _ => Object::None,
        };
        let lock = Self { method, reach, members, shared: Arc::new(Shared { memory, object }) };
        let home = match reach {
            Reach::On(cpu) => cpu,
            // Where it may be taken is where it was made.
            Reach::Anywhere => cpu::current().unwrap_or_default(),
        };
        // SAFETY: the memory is as long, is zeros, which all of `Words` may be, and nobody else knows it yet.
        unsafe { (*lock.words()).home = home as u32 };
        lock.prepare_library()?;
        Ok(lock)
    }

    /// What the C library keeps in the words.
    fn prepare_library(&self) -> Result<(), Refusal> {
        let words = self.words();
        // SAFETY: both are initialized in memory of their own that is large enough and outlives all members.
        let outcome = unsafe {
            match self.method {
                Method::PthreadTrylock => {
                    let mut attributes: libc::pthread_mutexattr_t = mem::zeroed();
                    libc::pthread_mutexattr_init(&mut attributes);
                    libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
                    libc::pthread_mutex_init(words.cast(), &attributes)
                }
                Method::SemTrywait => libc::sem_init(words.cast(), 1, 1),
                _ => 0,
            }
        };
        match outcome {
            0 => Ok(()),
            _ => Err(Refusal::Fail(format!("{} cannot be initialized", self.method.name()))),
        }
    }

    /// What the calling thread needs to use it: number `number` of its members, from 1 on.
    ///
    /// # Errors
    /// [`Refusal::Fail`] where the thread is not bound to the lock's one processor; [`Refusal::Skip`] where the place has not
    /// what it needs.
    pub fn join(&self, number: usize) -> Result<Handle, Refusal> {
        if let (Reach::On(cpu), Some(_)) = (self.reach, self.method.one_processor_only())
            && cpu::allowed() != [cpu]
        {
            return Err(Refusal::Skip(
                "it is safe on one processor only, and this thread is not bound to one".to_owned(),
            ));
        }
        if !(1..=self.members).contains(&number) {
            return Err(Refusal::Fail(format!("there is no member {number} of {}", self.members)));
        }
        let rseq = match self.method {
            Method::Rseq | Method::RseqCpu => rseq::area()?,
            _ => ptr::null_mut(),
        };
        let object = match &self.shared.object {
            Object::None => 0,
            Object::Event(descriptor) => i64::from(std::os::fd::AsRawFd::as_raw_fd(descriptor)),
            Object::Semaphore(semaphore) => i64::from(semaphore.number()),
        };
        let change = |change| Sembuf { number: 0, change, flags: libc::IPC_NOWAIT as i16, _padding: 0 };
        let member = Box::new(Member {
            rseq,
            aborts: 0,
            number: number as u64,
            members: self.members as u64,
            guard: self.guard(),
            thread: cpu::own_thread() as u64,
            object,
            token: 1,
            _free: 0,
            waits: 0,
            operations: [change(-1), change(1)],
        });
        Ok(Handle { code: self.method.code(), lock: self.clone(), member })
    }

    /// By what it is taken.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The shared words.
    pub fn words(&self) -> *mut Words {
        self.shared.memory.address().cast()
    }

    fn guard(&self) -> *mut Guard {
        // SAFETY: the guard lies behind the words, in the same mapping.
        unsafe { self.shared.memory.address().add(size_of::<Words>()).cast() }
    }
}

/// A semaphore that an event counter makes, free.
fn event() -> Result<std::os::fd::OwnedFd, Refusal> {
    let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK | libc::EFD_SEMAPHORE;
    // SAFETY: eventfd(2) takes two numbers.
    let descriptor = unsafe { libc::eventfd(1, flags) };
    if descriptor < 0 {
        return Err(Refusal::of("eventfd(2) is refused", &io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) })
}

/// One thread's hold on a lock. It stays with its thread: what it brings is that thread's.
pub(super) struct Handle {
    code: Code,
    lock: Lock,
    member: Box<Member>,
}

impl Handle {
    /// Takes the lock if nobody has it.
    #[inline]
    pub fn take(&mut self) -> bool {
        self.test_and_set() == 0
    }

    /// What the word held before: 0 means that it is taken now.
    #[inline]
    pub fn test_and_set(&mut self) -> u32 {
        // SAFETY: both live as long as this; the instructions are those of the method for which they were made.
        unsafe { (self.code.take)(self.lock.words(), &raw mut *self.member) }
    }

    /// Gives it back. To be called by whoever has it.
    #[inline]
    pub fn release(&mut self) {
        // SAFETY: as above.
        unsafe { (self.code.release)(self.lock.words(), &raw mut *self.member) }
    }

    /// Why the first take fails in a place that has not what it needs; the lock is free again.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with what the kernel says.
    pub fn try_out(&mut self) -> Result<(), Refusal> {
        match self.test_and_set() {
            0 => {
                self.release();
                Ok(())
            }
            answer => Err(self.refusal(answer)),
        }
    }

    /// What it means that a lock that nobody has cannot be taken.
    pub fn refusal(&self, answer: u32) -> Refusal {
        let Some(errno) = self.lock.method.errno(answer) else {
            return Refusal::Fail(format!("a lock that nobody has cannot be taken: the answer is {answer}"));
        };
        let error = io::Error::from_raw_os_error(errno);
        Refusal::of(&format!("taking it by {} is refused", self.lock.method.name()), &error)
    }

    /// How often a restartable sequence was restarted.
    pub fn aborts(&self) -> u64 {
        // SAFETY: the member is this handle's; the abort handler changes it as a whole word, in this thread.
        unsafe { (&raw const self.member.aborts).read_volatile() }
    }

    /// What a loop finds in its context: the words, and what this thread brings.
    pub fn context(&mut self) -> [u64; 7] {
        [self.lock.words() as u64, &raw mut *self.member as u64, 0, 0, 0, 0, 0]
    }
}

// SAFETY: what it points to is shared memory and its own box; it is made in the thread that uses it, and moves only with an instance
// that is not run before.
unsafe impl Send for Handle {}
