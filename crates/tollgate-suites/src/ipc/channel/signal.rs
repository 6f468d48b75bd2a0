//! Real-time signals with a value: sigqueue(3), here to one thread, and sigtimedwait(2).

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use tollgate_os::process::own_pid;
use tollgate_os::signals::Set;

use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;

/// What the kernel takes and gives (`siginfo_t`, include/uapi/asm-generic/siginfo.h).
#[repr(C)]
struct Info {
    number: i32,
    error: i32,
    code: i32,
    _padding: i32,
    process: i32,
    user: u32,
    value: [u8; 8],
    _more: [u64; 12],
}

/// A thread: its process and itself.
#[repr(C)]
struct Task {
    process: AtomicI32,
    thread: AtomicI32,
}

/// An end that sends to one thread and waits for its own signals.
struct Signals {
    /// The tasks of both ends, which each writes when it begins.
    memory: Arc<Mapping>,
    own: usize,
    number: libc::c_int,
    user: u32,
    waits_for: u64,
}

/// The signal that both ends block and wait for.
fn number() -> libc::c_int {
    libc::SIGRTMIN() + 6
}

/// Two ends, each of which becomes known to the other when it begins.
pub fn signals() -> Result<Ends> {
    let memory =
        Mapping::anonymous(2 * size_of::<Task>(), libc::MAP_SHARED).or_refused("mmap(2) is refused")?;
    let memory = Arc::new(memory);
    let number = number();
    // SAFETY: getuid(2) has no preconditions.
    let user = unsafe { libc::getuid() };
    // The kernel's set has a bit for each signal, the first one for number 1.
    let waits_for = 1_u64 << (number - 1);
    let end = |own| Signals { memory: Arc::clone(&memory), own, number, user, waits_for };
    Ok((Box::new(end(0)), Box::new(end(1))))
}

impl Signals {
    #[inline(always)]
    fn task(&self, which: usize) -> &Task {
        // SAFETY: the mapping is page-aligned, has two of them, and all accesses are atomic; zeros are valid.
        unsafe { &*self.memory.address().cast::<Task>().add(which) }
    }
}

impl End for Signals {
    /// A blocked signal stays pending until it is waited for. It stays blocked for the life of the thread.
    fn enter(&mut self) {
        Set::of(&[self.number]).block();
        let own = self.task(self.own);
        own.process.store(own_pid(), SeqCst);
        own.thread.store(cpu::own_thread(), SeqCst);
    }

    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let other = self.task(1 - self.own);
        let (process, thread) = (other.process.load(SeqCst), other.thread.load(SeqCst));
        let value = message.first_chunk().copied().unwrap_or_default();
        let info = Info {
            number: self.number,
            error: 0,
            code: libc::SI_QUEUE,
            _padding: 0,
            process: self.task(self.own).process.load(SeqCst),
            user: self.user,
            value,
            _more: [0; 12],
        };
        let arguments = [process as u64, thread as u64, self.number as u64, &raw const info as u64];
        // SAFETY: the kernel reads 128 bytes.
        match unsafe { call(libc::SYS_rt_tgsigqueueinfo, arguments) } {
            0 => Ok(()),
            error => Err(Fault::from_result(error)),
        }
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let mut info = std::mem::MaybeUninit::<Info>::zeroed();
        let arguments = [&raw const self.waits_for as u64, info.as_mut_ptr() as u64, 0, 8];
        // SAFETY: the kernel reads a set of eight bytes and writes 128 bytes; there is no time limit.
        let number = unsafe { call(libc::SYS_rt_sigtimedwait, arguments) };
        if number != i64::from(self.number) {
            return Err(Fault::from_result(number));
        }
        if let Some(bytes) = message.first_chunk_mut() {
            // SAFETY: zeros are valid, and so is what the kernel wrote.
            *bytes = unsafe { info.assume_init_ref() }.value;
        }
        Ok(())
    }
}
