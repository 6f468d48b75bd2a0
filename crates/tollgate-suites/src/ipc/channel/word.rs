//! futex(2): the message is the futex word itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;

/// The number of the last message in one direction, in its own pair of cache lines.
#[repr(align(128))]
struct Word(AtomicU32);

struct Words {
    memory: Arc<Mapping>,
    into: usize,
    seen: u32,
    flags: libc::c_int,
}

/// Makes two words in memory shared with children. Threads use FUTEX_PRIVATE_FLAG.
pub fn words(is_private: bool) -> Result<Ends> {
    let memory =
        Mapping::anonymous(2 * size_of::<Word>(), libc::MAP_SHARED).or_refused("mmap(2) is refused")?;
    let memory = Arc::new(memory);
    let flags = if is_private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    let end = |into| Words { memory: Arc::clone(&memory), into, seen: 0, flags };
    Ok((Box::new(end(0)), Box::new(end(1))))
}

impl Words {
    #[inline(always)]
    fn word(&self, which: usize) -> &AtomicU32 {
        // SAFETY: the mapping is page-aligned and has two words, all accesses are atomic, and zeros are valid.
        unsafe { &(*self.memory.address().cast::<Word>().add(which)).0 }
    }
}

impl End for Words {
    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        let value = message.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let word = self.word(self.into);
        word.store(value, SeqCst);
        let arguments = [word.as_ptr() as u64, (libc::FUTEX_WAKE | self.flags) as u64, 1, 0];
        // SAFETY: the kernel only takes the word's address.
        match unsafe { call(libc::SYS_futex, arguments) } {
            0.. => Ok(()),
            error => Err(Fault::from_result(error)),
        }
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let word = self.word(1 - self.into);
        let operation = (libc::FUTEX_WAIT | self.flags) as u64;
        let value = loop {
            let value = word.load(SeqCst);
            if value != self.seen {
                break value;
            }
            // SAFETY: the kernel reads the word and, without a timeout, nothing else.
            let waited =
                unsafe { call(libc::SYS_futex, [word.as_ptr() as u64, operation, u64::from(value), 0]) };
            if waited < 0 && waited != -i64::from(libc::EAGAIN) {
                return Err(Fault::from_result(waited));
            }
        };
        if let Some(bytes) = message.first_chunk_mut() {
            *bytes = value.to_le_bytes();
        }
        self.seen = value;
        Ok(())
    }
}
