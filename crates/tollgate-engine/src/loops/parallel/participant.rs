//! One thread or process: it waits for jobs, prepares what they need, and works through their windows.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::{io, ptr};

use tollgate_os::rusage::Usage;

use super::board::{ABANDONED, Board, Slot, sleep_while, wake_all};
use super::operation::{Operation, Seat, Words, Work};
use crate::machine::clock::Clock;
use crate::machine::cpu;

pub struct Participant {
    number: usize,
    ready: BTreeMap<(*const Operation, Words), Box<dyn Work>>,
}

impl Participant {
    pub fn new(number: usize) -> Self {
        Self { number, ready: BTreeMap::new() }
    }

    pub fn serve(mut self, board: &Board, processor: usize) {
        let pinned = cpu::pin(processor);
        let mut seen = 0;
        loop {
            let number = board.job().number.load(SeqCst);
            if board.job().leave.load(SeqCst) != 0 {
                return;
            }
            if number == seen {
                sleep_while(&board.job().number, seen, None);
                continue;
            }
            seen = number;
            if self.number >= board.job().tasks.load(SeqCst) as usize {
                continue;
            }
            let Some(slot) = board.slots(usize::MAX).get(self.number) else { return };
            match &pinned {
                Ok(()) => self.take_part(board, slot),
                Err(error) => refuse(board, slot, error.raw_os_error()),
            }
            if board.done().fetch_add(1, SeqCst) + 1 == board.job().tasks.load(SeqCst) {
                wake_all(board.done());
            }
        }
    }

    fn take_part(&mut self, board: &Board, slot: &Slot) {
        let work = match self.work(board) {
            Ok(work) => work,
            Err(error) => return refuse(board, slot, error.raw_os_error()),
        };
        // The first operation finds what the last job left in caches and predictors, so it is not counted.
        if let Err(error) = work.make(1) {
            return refuse(board, slot, Some(error));
        }
        let clock = clock_of(board);
        let step = board.job().step.load(SeqCst).max(1);
        arrive(board);
        let Some(from) = wait_for_window(board, clock) else { return };
        let until = board.window().until.load(SeqCst);
        let before = Usage::of_thread();
        while clock.moment() < from {
            std::hint::spin_loop();
        }
        let (mut made, first) = (0, clock.moment());
        let mut last = first;
        while last < until {
            if let Err(error) = work.make(step) {
                slot.error.store(error, SeqCst);
                break;
            }
            made += step;
            last = clock.moment();
        }
        let after = Usage::of_thread();
        slot.preempted.store(after.nivcsw.wrapping_sub(before.nivcsw), SeqCst);
        let numbers = |usage: &Usage| [usage.switches(), usage.minflt, usage.majflt];
        for ((word, after), before) in slot.usage.iter().zip(numbers(&after)).zip(numbers(&before)) {
            word.store(after.wrapping_sub(before), SeqCst);
        }
        slot.first.store(first, SeqCst);
        slot.last.store(last, SeqCst);
        slot.made.store(made, SeqCst);
    }

    fn work(&mut self, board: &Board) -> io::Result<&mut Box<dyn Work>> {
        use std::collections::btree_map::Entry;
        let unknown = || io::Error::from_raw_os_error(libc::EINVAL);
        let (operation, words) = board.operation().ok_or_else(unknown)?;
        match self.ready.entry((ptr::from_ref(operation), words)) {
            Entry::Occupied(ready) => Ok(ready.into_mut()),
            Entry::Vacant(place) => {
                Ok(place.insert((operation.prepare)(Seat { number: self.number, words })?))
            }
        }
    }
}

/// Stores the error and arrives, so that the others do not wait for it.
fn refuse(board: &Board, slot: &Slot, error: Option<i32>) {
    slot.error.store(error.unwrap_or(libc::EIO), SeqCst);
    arrive(board);
}

/// Arrives at the barrier. The last one opens the window, so that no other thread has to run.
fn arrive(board: &Board) {
    /// Microseconds until all have seen that the window opens.
    const LEAD_US: u64 = 5;
    if board.arrived().fetch_add(1, SeqCst) + 1 < board.job().tasks.load(SeqCst) {
        return;
    }
    let clock = clock_of(board);
    let from = clock.moment() + clock.hz() * LEAD_US / 1_000_000;
    board.window().until.store(from + board.job().length.load(SeqCst), SeqCst);
    // It may have been abandoned meanwhile.
    let _ = board.window().from.compare_exchange(0, from, SeqCst, SeqCst);
}

fn clock_of(board: &Board) -> Clock {
    match board.job().hz.load(SeqCst) {
        0 => Clock::Kernel,
        hz => Clock::Tsc { hz },
    }
}

/// Returns when the window begins; `None` if the thread that gave the job abandons it. The time limit here is only a safeguard.
fn wait_for_window(board: &Board, clock: Clock) -> Option<u64> {
    /// Between clock reads.
    const SPINS: u32 = 1 << 10;
    const LONGEST_S: u64 = 2;
    let gives_up = clock.moment() + LONGEST_S * clock.hz();
    loop {
        for _ in 0..SPINS {
            match board.window().from.load(SeqCst) {
                0 => std::hint::spin_loop(),
                ABANDONED => return None,
                from => return Some(from),
            }
        }
        if clock.moment() > gives_up {
            return None;
        }
    }
}
