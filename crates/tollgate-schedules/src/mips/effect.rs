use super::instruction::Instruction;
use super::kernel::Reason;
use super::memory::{Access, Fault, Word, word_at};
use super::processor::link;
use super::register::Register;
use super::state::State;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    pub(super) process: u8,
    pub(super) pc: u8,
    pub(super) act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Loaded { word: Word, value: u32 },
    Stored { word: Word, value: u32 },
    Returned(u32),
    Suspended,
    DisabledInterrupts,
    BranchedToStart,
    Restarted,
    Resumed,
    Killed(Fault, Reason),
}

pub(super) struct Executed<'a, const N: usize> {
    pub(super) instruction: Instruction,
    pub(super) who: usize,
    pub(super) before: &'a State<N>,
    pub(super) after: &'a State<N>,
}

impl<const N: usize> Executed<'_, N> {
    pub(super) fn effect(&self) -> (Vec<String>, Option<Act>) {
        let process = &self.after.processes[self.who];
        let act = self.act();
        let written = self.instruction.written().filter(|register| register.slot().is_some());
        let changes = [
            written.map(|register| format!("{register} = {}", value(process.get(register)))),
            match act {
                Some(Act::Stored { word, value: stored }) => Some(format!("{word} = {}", value(stored))),
                Some(Act::DisabledInterrupts) => Some("interrupts off".to_owned()),
                _ => None,
            },
            (self.instruction == Instruction::Ei).then(|| "interrupts on".to_owned()),
            self.branched().map(|_| "taken".to_owned()),
        ];
        (changes.into_iter().flatten().collect(), act)
    }

    fn act(&self) -> Option<Act> {
        match self.instruction {
            Instruction::Lw { base, offset, .. } | Instruction::Ll { base, offset, .. } => {
                let word = self.reached(base, offset)?;
                Some(Act::Loaded { word, value: self.before.load(self.who, word) })
            }
            Instruction::Sw { base, offset, .. } => self.reached(base, offset).map(|word| self.stored(word)),
            Instruction::Sc { base, offset, .. } => {
                let linked = self.before.processes[self.who].link;
                self.reached(base, offset).filter(|&word| link(word) == linked).map(|word| self.stored(word))
            }
            Instruction::Di => Some(Act::DisabledInterrupts),
            _ => self.branched().filter(|&target| target == 0).map(|_| Act::BranchedToStart),
        }
    }

    fn stored(&self, word: Word) -> Act {
        Act::Stored { word, value: self.after.load(self.who, word) }
    }

    /// Returns the target of a taken branch, which follows the delay slot.
    fn branched(&self) -> Option<u8> {
        let pc = usize::from(self.before.processes[self.who].pc);
        let next = self.after.processes[self.who].next;
        self.instruction.target(pc).filter(|_| usize::from(next) != pc + 2).map(|_| next)
    }

    fn reached(&self, base: Register, offset: i16) -> Option<Word> {
        let address = self.before.processes[self.who].get(base).wrapping_add_signed(i32::from(offset));
        word_at(address, Access::Read).ok()
    }
}

pub(super) fn value(value: u32) -> String {
    match value {
        0..=9 => value.to_string(),
        _ => format!("0x{value:08x}"),
    }
}
