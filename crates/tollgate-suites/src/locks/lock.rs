//! Locks: shared data, per-thread data, acquire and release.
//!
//! A lock knows where its users run, on one processor or anywhere. A lock that is safe on one processor only cannot be
//! made for several. A load and a store are safe nowhere: that lock is not timed, and shows that the tests can fail.

use std::sync::Arc;
use std::{io, mem, ptr};

use super::layout::{Guard, MEMBERS, Member, Sembuf, Words};
use super::{code::Code, method::Method, rseq, semaphore::Semaphore};
use crate::descriptor::eventfd;
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    On(usize),
    Anywhere,
}

impl Reach {
    /// Returns the processor that this process is bound to; if it is not bound, any processor, for a lock that is not tied to one.
    ///
    /// # Errors
    /// As [`Context::home`].
    pub fn new(method: Method, context: &Context) -> Result<Self> {
        match (context.home(), method.bound_to_its_processor()) {
            (Err(Refusal::Refuse(_)), None) => Ok(Self::Anywhere),
            (home, _) => home.map(Self::On),
        }
    }
}

/// A lock, shared by threads or by processes that were forked with it.
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

// SAFETY: threads share the memory through the lock's instructions; everything else is only read.
unsafe impl Sync for Shared {}

enum Object {
    None,
    Event(std::os::fd::OwnedFd),
    Semaphore(Semaphore),
}

impl Lock {
    pub fn new(method: Method, reach: Reach, members: usize) -> Result<Self> {
        if let (Reach::Anywhere, Some(why)) = (reach, method.one_processor_only()) {
            return Err(skip!("it is safe on one processor only: {why}"));
        }
        Self::unsafe_anywhere(method, reach, members)
    }

    /// Like [`Lock::new`] without the safety check, to demonstrate unsafe locks.
    pub fn unsafe_anywhere(method: Method, reach: Reach, members: usize) -> Result<Self> {
        if method == Method::Xchg {
            checks::atomics()?;
        }
        if members > MEMBERS {
            return Err(fail!("a lock is for {MEMBERS} threads, not {members}"));
        }
        let length = size_of::<Words>() + size_of::<Guard>();
        let memory =
            Mapping::anonymous(length, libc::MAP_SHARED).or_refused("memory for a lock is refused")?;
        let object = match method {
            Method::Eventfd => {
                let event = eventfd(1, libc::EFD_NONBLOCK | libc::EFD_SEMAPHORE);
                Object::Event(event.or_refused("eventfd(2) is refused")?)
            }
            Method::Semop => Object::Semaphore(Semaphore::new()?),
            _ => Object::None,
        };
        let lock = Self { method, reach, members, shared: Arc::new(Shared { memory, object }) };
        let home = match reach {
            Reach::On(cpu) => cpu,
            // It may be acquired where it was made.
            Reach::Anywhere => cpu::current().unwrap_or_default(),
        };
        // SAFETY: the memory is long enough and zeroed, which is valid for `Words`, and nothing else refers to it yet.
        unsafe { (*lock.words()).home = home as u32 };
        lock.prepare_library()?;
        Ok(lock)
    }

    fn prepare_library(&self) -> Result<()> {
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
            _ => Err(fail!("{} cannot be initialized", self.method.name())),
        }
    }

    /// Joins the calling thread as member `number`, from 1 on.
    pub fn join(&self, number: usize) -> Result<Handle> {
        if let (Reach::On(cpu), Some(_)) = (self.reach, self.method.one_processor_only())
            && cpu::allowed() != [cpu]
        {
            return Err(skip!("it is safe on one processor only, and this thread is not pinned to one"));
        }
        if !(1..=self.members).contains(&number) {
            return Err(fail!("there is no member {number} of {}", self.members));
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

    pub fn method(&self) -> Method {
        self.method
    }

    pub fn words(&self) -> *mut Words {
        self.shared.memory.address().cast()
    }

    fn guard(&self) -> *mut Guard {
        // SAFETY: the guard follows the words, in the same mapping.
        unsafe { self.shared.memory.address().add(size_of::<Words>()).cast() }
    }
}

/// One thread's handle of a lock. It stays with its thread, whose data it holds.
pub(super) struct Handle {
    code: Code,
    lock: Lock,
    member: Box<Member>,
}

impl Handle {
    #[inline]
    pub fn take(&mut self) -> bool {
        self.test_and_set() == 0
    }

    /// Returns the word's old value: 0 means that the lock is now acquired.
    #[inline]
    pub fn test_and_set(&mut self) -> u32 {
        // SAFETY: both pointers live as long as this handle; the instructions are those of their method.
        unsafe { (self.code.take)(self.lock.words(), &raw mut *self.member) }
    }

    /// Releases the lock. Only the holder may call it.
    #[inline]
    pub fn release(&mut self) {
        // SAFETY: as above.
        unsafe { (self.code.release)(self.lock.words(), &raw mut *self.member) }
    }

    /// Acquires and releases the lock once, to detect a missing feature.
    pub fn try_out(&mut self) -> Result<()> {
        match self.test_and_set() {
            0 => {
                self.release();
                Ok(())
            }
            answer => Err(self.refusal(answer)),
        }
    }

    pub fn refusal(&self, answer: u32) -> Refusal {
        let Some(errno) = self.lock.method.errno(answer) else {
            return fail!("a free lock could not be acquired: the result is {answer}");
        };
        let error = io::Error::from_raw_os_error(errno);
        Refusal::new(&format!("acquisition by {} is refused", self.lock.method.name()), &error)
    }

    pub fn aborts(&self) -> u64 {
        // SAFETY: the member belongs to this handle; the abort handler changes the whole word, in this thread.
        unsafe { (&raw const self.member.aborts).read_volatile() }
    }

    /// Returns the address of the count of its calls of sched_yield(2) within [`Self::take`].
    pub fn yields(&self) -> *const u64 {
        &raw const self.member.waits
    }

    /// The context of a loop: the lock's words, and this thread's data.
    pub fn context(&mut self) -> [u64; 7] {
        [self.lock.words() as u64, &raw mut *self.member as u64, 0, 0, 0, 0, 0]
    }
}

// SAFETY: a handle points to shared memory and its own box. Its thread makes it, and it moves only before its instance runs.
unsafe impl Send for Handle {}
