//! A program that fits the page of `tst()`, and leaves it only by a jump.

use std::fmt::Write;

use super::instruction::{Instruction, Place};
use super::memory::PREEMPTED;
use super::text_error::Problem;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    pub(super) const MOST: usize = 128;

    /// Checks and builds a program.
    ///
    /// # Errors
    /// The number of an instruction, and its error.
    pub(super) fn new(instructions: Vec<Instruction>) -> Result<Self, (usize, Problem)> {
        let count = instructions.len();
        if count == 0 {
            return Err((0, Problem::Empty));
        }
        if count > Self::MOST {
            return Err((Self::MOST, Problem::TooLong { count, most: Self::MOST }));
        }
        let program = Self { instructions };
        for (index, &instruction) in program.instructions.iter().enumerate() {
            program.placed(index, instruction).map_err(|problem| (index, problem))?;
        }
        program.ends().map_err(|index| (index, Problem::FallsOff))?;
        Ok(program)
    }

    pub(super) fn len(&self) -> usize {
        self.instructions.len()
    }

    pub(super) fn instruction(&self, index: usize) -> Option<Instruction> {
        self.instructions.get(index).copied()
    }

    pub(super) fn number(&self, index: i64) -> Option<u8> {
        u8::try_from(index).ok().filter(|&number| usize::from(number) < self.len())
    }

    pub(super) fn words_at(&self, index: usize) -> String {
        self.instruction(index).map_or_else(String::new, |instruction| instruction.at(index).to_string())
    }

    pub(super) fn has_flag(&self) -> bool {
        let page = (PREEMPTED >> 16) as u16;
        self.instructions.iter().any(
            |&instruction| matches!(instruction, Instruction::Lui { immediate, .. } if immediate == page),
        )
    }

    pub(super) fn has_link(&self) -> bool {
        self.instructions.iter().any(|instruction| matches!(instruction, Instruction::Ll { .. }))
    }

    pub(super) fn listing(&self) -> String {
        let mut text = String::new();
        for (index, instruction) in self.instructions.iter().enumerate() {
            let place = Place(index as i64).to_string();
            let _ = writeln!(text, "{place:<8} {:08x}  {}", instruction.encode(), instruction.at(index));
        }
        text
    }

    fn placed(&self, index: usize, instruction: Instruction) -> Result<(), Problem> {
        if let Some(target) = instruction.target(index)
            && self.number(target).is_none()
        {
            let target = Place(target).to_string();
            return Err(Problem::Target { target, last: Place(self.len() as i64 - 1).to_string() });
        }
        if !instruction.jumps() {
            return Ok(());
        }
        match self.instruction(index + 1) {
            None => Err(Problem::NoSlot),
            Some(slot) if slot.jumps() || slot == Instruction::Syscall => {
                Err(Problem::Slot { found: slot.at(index + 1).to_string() })
            }
            Some(_) => Ok(()),
        }
    }

    /// Follows every path from the first instruction.
    ///
    /// # Errors
    /// The instruction after which a path runs past the last one.
    fn ends(&self) -> Result<(), usize> {
        let mut seen = vec![false; self.len()];
        let mut ways = vec![0];
        while let Some(index) = ways.pop() {
            if index >= self.len() {
                return Err(self.len() - 1);
            }
            if !std::mem::replace(&mut seen[index], true) {
                ways.extend(self.ways_from(index));
            }
        }
        Ok(())
    }

    /// Returns the possible next instructions; for a branch, those after its delay slot.
    fn ways_from(&self, index: usize) -> Vec<usize> {
        let instruction = self.instructions[index];
        let target = instruction.target(index).and_then(|target| usize::try_from(target).ok());
        match instruction {
            Instruction::Jr { .. } => vec![],
            Instruction::Beq { rs, rt, .. } if rs == rt => target.into_iter().collect(),
            Instruction::Bne { rs, rt, .. } if rs == rt => vec![index + 2],
            _ if instruction.jumps() => target.into_iter().chain([index + 2]).collect(),
            _ => vec![index + 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mips::register::Register::{Ra, T0, Zero};

    const NOP: Instruction = Instruction::NOP;
    const RETURN: Instruction = Instruction::Jr { rs: Ra };

    fn branch(offset: i16) -> Instruction {
        Instruction::Beq { rs: T0, rt: Zero, offset }
    }

    fn always(offset: i16) -> Instruction {
        Instruction::Beq { rs: Zero, rt: Zero, offset }
    }

    #[test]
    fn a_program_ends_in_a_jump_on_every_way() {
        let ends =
            |instructions: &[Instruction]| Program::new(instructions.to_vec()).map_err(|error| error.1);
        assert!(ends(&[RETURN, NOP]).is_ok());
        assert!(ends(&[always(-1), NOP]).is_ok());
        assert!(ends(&[branch(1), NOP, RETURN, NOP]).is_ok());
        // Unreachable words may be anything.
        assert!(ends(&[RETURN, NOP, NOP]).is_ok());
        assert_eq!(ends(&[NOP]), Err(Problem::FallsOff));
        assert_eq!(ends(&[branch(-1), NOP]), Err(Problem::FallsOff));
        assert_eq!(ends(&[RETURN]), Err(Problem::NoSlot));
        assert_eq!(ends(&[]), Err(Problem::Empty));
        assert!(matches!(ends(&[branch(2), NOP, RETURN]), Err(Problem::Target { .. })));
        assert!(matches!(ends(&[branch(-2), NOP, RETURN, NOP]), Err(Problem::Target { .. })));
        assert!(matches!(ends(&[RETURN, RETURN, NOP]), Err(Problem::Slot { .. })));
        assert!(matches!(ends(&[RETURN, Instruction::Syscall]), Err(Problem::Slot { .. })));
        assert!(matches!(ends(&[NOP; Program::MOST + 1]), Err(Problem::TooLong { .. })));
    }
}
