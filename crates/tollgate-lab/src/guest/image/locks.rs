//! The programs of locks (`system/locks.s`), and the memory that makes up the system's state (`system/restart.s`).

use super::{assembled, offset, word};

unsafe extern "C" {
    static tollgate_guest_locks: u8;
    static tollgate_guest_locks_end: u8;
    static tollgate_guest_lock_entries: u8;
    static tollgate_guest_lock_entries_end: u8;
    static tollgate_guest_system_state: u8;
    static tollgate_guest_system_state_end: u8;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockWords {
    pub(crate) address: u64,
    pub(crate) words: usize,
}

pub(crate) fn lock_programs() -> &'static [u8] {
    between(&raw const tollgate_guest_locks, &raw const tollgate_guest_locks_end)
}

/// Returns the entry of a program, by its index in the list of `locks.s`; if `alone`, the entry without a critical section.
pub(crate) fn entry_of(lock: usize, alone: bool) -> Option<u64> {
    let (from, to) = (&raw const tollgate_guest_lock_entries, &raw const tollgate_guest_lock_entries_end);
    let line = between(from, to).chunks_exact(8).nth(lock)?;
    Some(u64::from(word(line, usize::from(alone))))
}

/// Returns the memory that the next steps of programs depend on, besides registers, their stacks and the page tables: the words
/// that they share, the kernel's own words, and two parts for each of the first threads. The second part has the registers.
pub(crate) fn system_state() -> Vec<LockWords> {
    let (from, to) = (&raw const tollgate_guest_system_state, &raw const tollgate_guest_system_state_end);
    let state = |line: &[u8]| LockWords { address: u64::from(word(line, 0)), words: word(line, 1) as usize };
    between(from, to).chunks_exact(8).map(state).collect()
}

fn between(from: *const u8, to: *const u8) -> &'static [u8] {
    assembled().get(offset(from)..offset(to)).unwrap_or_default()
}
