//! The complete state of the machine.
//!
//! Outside `tst()` the registers of a process are dead: a call sets those that it defines, and [`Process::enter`] sets the
//! others. So they are zero there, which makes equal states compare equal.

use super::memory::{CALLER, LOCK, LOCKS, Word};
use super::register::{KEPT, Register};

pub(super) const PROCESSES: usize = 4;
pub(super) const PROCESSORS: u8 = 3;
pub(super) const NOWHERE: u8 = u8::MAX;
/// Number of the instruction after the delay slot of `jr ra`.
pub(super) const CALLER_NEXT: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    #[default]
    Outside,
    Inside,
    /// In `tst()`, in the delay slot of the previous instruction.
    Slot,
    Critical,
    Releasing,
    Done,
    Killed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Process {
    registers: [u32; KEPT],
    pub(super) preempted: u32,
    pub(super) phase: Phase,
    pub(super) pc: u8,
    /// The one after it: pc + 1, or the target of a branch while pc is in its delay slot.
    pub(super) next: u8,
    /// 1 + the word of the lock to which ll linked it; 0 without a link.
    pub(super) link: u8,
    pub(super) held: u8,
    pub(super) left: u8,
    pub(super) processor: u8,
    pub(super) interrupts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct State<const N: usize> {
    pub(super) processes: [Process; N],
    pub(super) locks: [u32; LOCKS],
}

impl Process {
    /// Returns a process that has not started, on a processor or on [`NOWHERE`].
    pub(super) fn new(rounds: u8, processor: u8) -> Self {
        Self { left: rounds, processor, interrupts: true, ..Self::default() }
    }

    pub(super) fn inside(&self) -> bool {
        matches!(self.phase, Phase::Inside | Phase::Slot)
    }

    pub(super) fn alive(&self) -> bool {
        !matches!(self.phase, Phase::Done | Phase::Killed)
    }

    pub(super) fn waits(&self) -> bool {
        self.processor == NOWHERE && self.alive()
    }

    pub(super) fn get(&self, register: Register) -> u32 {
        match register.slot() {
            Some(slot) => self.registers[slot],
            None if register == Register::Ra => CALLER,
            None => 0,
        }
    }

    /// Writes a register. A write to zero is lost, and no instruction of the model writes ra.
    pub(super) fn set(&mut self, register: Register, value: u32) {
        if let Some(slot) = register.slot() {
            self.registers[slot] = value;
        }
    }

    /// Calls `tst()` for the next word of the lock. The kernel has started or resumed the process before, so k1 and
    /// `preempted` have the values of a return path.
    pub(super) fn enter(&mut self, k1: u32) {
        self.set(Register::A0, LOCK + 4 * u32::from(self.held));
        self.set(Register::K1, k1);
        self.preempted = 1;
        self.resume(0);
    }

    /// Continues in `tst()` at an instruction that is not in a delay slot.
    pub(super) fn resume(&mut self, pc: u8) {
        (self.phase, self.pc, self.next) = (Phase::Inside, pc, pc + 1);
    }

    /// Returns the instruction at which it continues after an exception: that at pc, or the branch before it if pc is in a
    /// delay slot.
    pub(super) fn epc(&self) -> u8 {
        if self.phase == Phase::Slot { self.pc.saturating_sub(1) } else { self.pc }
    }

    pub(super) fn leave(&mut self, phase: Phase) {
        self.registers = [0; KEPT];
        (self.preempted, self.pc, self.next, self.link) = (0, 0, 0, 0);
        self.phase = phase;
        if !self.alive() {
            (self.processor, self.interrupts) = (NOWHERE, true);
        }
    }
}

impl<const N: usize> State<N> {
    pub(super) fn load(&self, who: usize, word: Word) -> u32 {
        match word {
            Word::Lock(number) => self.locks[usize::from(number)],
            Word::Preempted => self.processes[who].preempted,
        }
    }

    /// Stores to a word, which breaks the links of all others to it.
    pub(super) fn store(&mut self, who: usize, word: Word, value: u32) {
        match word {
            Word::Preempted => self.processes[who].preempted = value,
            Word::Lock(number) => {
                self.locks[usize::from(number)] = value;
                for (other, process) in self.processes.iter_mut().enumerate() {
                    if other != who && process.link == number + 1 {
                        process.link = 0;
                    }
                }
            }
        }
    }

    pub(super) fn is_lost(&self, word: usize) -> bool {
        self.locks[word] != 0 && self.holders(word).next().is_none()
    }

    pub(super) fn holders(&self, word: usize) -> impl Iterator<Item = usize> {
        let holds =
            move |process: &Process| usize::from(process.held) > word && process.phase != Phase::Killed;
        (0..N).filter(move |&who| holds(&self.processes[who]))
    }
}
