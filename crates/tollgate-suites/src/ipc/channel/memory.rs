//! Shared memory: the sender copies each message into a slot, and the receiver copies it out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::{End, Ends, Fault, Outcome};
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// By futex(2). Between threads the kernel finds the words by address (FUTEX_PRIVATE_FLAG).
    Asleep { is_private: bool },
    /// By loads alone.
    Polling,
}

const SLOTS: u32 = 8;

/// A count that one end changes, in its own pair of cache lines, and whether the other end sleeps until it changes.
#[repr(C, align(128))]
struct Count {
    value: AtomicU32,
    is_awaited: AtomicU32,
}

/// One direction: the number of messages that were put in, and of those that were taken out.
#[repr(C)]
struct Lane {
    put: Count,
    taken: Count,
}

struct Slots {
    memory: Arc<Mapping>,
    into: usize,
    bytes: usize,
    put: u32,
    taken: u32,
    /// The number of messages that the other end had taken when this end last looked.
    seen_taken: u32,
    wait: Wait,
}

/// Makes two lanes of slots, in memory that is shared with children.
pub fn slots(bytes: usize, wait: Wait) -> Result<Ends> {
    let length = 2 * stride(bytes);
    let memory = Arc::new(Mapping::anonymous(length, libc::MAP_SHARED).or_refused("mmap(2) is refused")?);
    let end =
        |into| Slots { memory: Arc::clone(&memory), into, bytes, put: 0, taken: 0, seen_taken: 0, wait };
    Ok((Box::new(end(0)), Box::new(end(1))))
}

fn slot(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

/// Bytes of a lane with its slots, in whole pages.
fn stride(bytes: usize) -> usize {
    (size_of::<Lane>() + SLOTS as usize * slot(bytes)).next_multiple_of(4096)
}

impl Slots {
    #[inline(always)]
    fn base(&self, lane: usize) -> *mut u8 {
        // SAFETY: the mapping has two lanes.
        unsafe { self.memory.address().add(lane * stride(self.bytes)) }
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> &Lane {
        // SAFETY: a lane begins on a page and holds atomic words only, for which zeros are valid.
        unsafe { &*self.base(lane).cast::<Lane>() }
    }

    /// Waits until the next message's slot is free: its message of [`SLOTS`] messages ago was taken. Returns how many were taken.
    ///
    /// The other end changes this cache line with each message. So it is transferred once for [`SLOTS`] messages, not for each.
    fn wait_for_slot(&self) -> Result<u32, Fault> {
        let (taken, full) = (&self.lane(self.into).taken, self.put.wrapping_sub(SLOTS));
        wait_while(taken, self.wait, |taken| taken == full)?;
        Ok(taken.value.load(SeqCst))
    }

    #[inline(always)]
    fn slot(&self, lane: usize, number: u32) -> *mut u8 {
        let at = size_of::<Lane>() + (number % SLOTS) as usize * slot(self.bytes);
        // SAFETY: [`SLOTS`] slots follow the lane.
        unsafe { self.base(lane).add(at) }
    }
}

impl End for Slots {
    /// Touches each page without changing it: a child has no page tables for shared memory yet, and would fault during the exchange.
    fn enter(&mut self) {
        for at in (0..2 * stride(self.bytes)).step_by(4096) {
            // SAFETY: an aligned word within the mapping; zeros are valid.
            unsafe { &*self.memory.address().add(at).cast::<AtomicU32>() }.fetch_or(0, SeqCst);
        }
    }

    #[inline(always)]
    fn send(&mut self, message: &[u8]) -> Outcome {
        if self.put.wrapping_sub(self.seen_taken) == SLOTS {
            self.seen_taken = self.wait_for_slot()?;
        }
        let lane = self.lane(self.into);
        let length = message.len().min(self.bytes);
        // SAFETY: the slot has `bytes` bytes, and belongs to this end until it is put in.
        unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), self.slot(self.into, self.put), length) };
        change(&lane.put, self.put.wrapping_add(1), self.wait)?;
        self.put = self.put.wrapping_add(1);
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, message: &mut [u8]) -> Outcome {
        let from = 1 - self.into;
        let lane = self.lane(from);
        let seen = self.taken;
        wait_while(&lane.put, self.wait, |put| put == seen)?;
        let length = message.len().min(self.bytes);
        // SAFETY: the slot has `bytes` bytes, and belongs to this end until it is taken.
        unsafe { std::ptr::copy_nonoverlapping(self.slot(from, seen), message.as_mut_ptr(), length) };
        change(&lane.taken, seen.wrapping_add(1), self.wait)?;
        self.taken = seen.wrapping_add(1);
        Ok(())
    }
}

#[inline(always)]
fn change(count: &Count, value: u32, wait: Wait) -> Outcome {
    count.value.store(value, SeqCst);
    let Wait::Asleep { is_private } = wait else { return Ok(()) };
    if count.is_awaited.load(SeqCst) == 0 {
        return Ok(());
    }
    let operation = libc::FUTEX_WAKE | flags(is_private);
    let arguments = [count.value.as_ptr() as u64, operation as u64, 1, 0];
    // SAFETY: the kernel only takes the word's address.
    match unsafe { call(libc::SYS_futex, arguments) } {
        0.. => Ok(()),
        error => Err(Fault::from_result(error)),
    }
}

/// Waits until the count no longer stops this end.
#[inline(always)]
fn wait_while(count: &Count, wait: Wait, stops: impl Fn(u32) -> bool) -> Outcome {
    match wait {
        Wait::Polling => poll_while(count, stops),
        Wait::Asleep { is_private } => sleep_while(count, flags(is_private), stops),
    }
}

fn flags(is_private: bool) -> libc::c_int {
    if is_private { libc::FUTEX_PRIVATE_FLAG } else { 0 }
}

#[inline(always)]
fn sleep_while(count: &Count, flags: libc::c_int, stops: impl Fn(u32) -> bool) -> Outcome {
    if !stops(count.value.load(SeqCst)) {
        return Ok(());
    }
    // Set before the count is read once more, so that an end that changes it later sees the mark.
    count.is_awaited.store(1, SeqCst);
    let mut outcome = Ok(());
    loop {
        let value = count.value.load(SeqCst);
        if !stops(value) {
            break;
        }
        let operation = (libc::FUTEX_WAIT | flags) as u64;
        let arguments = [count.value.as_ptr() as u64, operation, u64::from(value), 0];
        // SAFETY: the kernel reads the word and, without a timeout, nothing else.
        let waited = unsafe { call(libc::SYS_futex, arguments) };
        if waited < 0 && waited != -i64::from(libc::EAGAIN) {
            outcome = Err(Fault::from_result(waited));
            break;
        }
    }
    count.is_awaited.store(0, SeqCst);
    outcome
}

#[inline(always)]
fn poll_while(count: &Count, stops: impl Fn(u32) -> bool) -> Outcome {
    /// About a second: PAUSE takes 40 to 140 cycles.
    const POLLS: u32 = 1 << 25;
    for _ in 0..POLLS {
        if !stops(count.value.load(SeqCst)) {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    Err(Fault::Silent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_looks_at_what_was_taken_where_it_has_no_slot_left() {
        let mut end = Slots {
            memory: Arc::new(Mapping::anonymous(2 * stride(1), libc::MAP_SHARED).expect("memory")),
            into: 0,
            bytes: 1,
            put: 0,
            taken: 0,
            seen_taken: 0,
            wait: Wait::Polling,
        };
        // As if no message of the previous round had been taken: a sender that looks waits in vain.
        end.lane(0).taken.value.store(0_u32.wrapping_sub(SLOTS), SeqCst);
        for _ in 0..SLOTS {
            assert_eq!(end.send(&[1]), Ok(()));
        }
        end.lane(0).taken.value.store(3, SeqCst);
        assert_eq!((end.send(&[1]), end.seen_taken), (Ok(()), 3));
    }
}
