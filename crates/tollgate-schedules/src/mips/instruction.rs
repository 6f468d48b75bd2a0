//! The model's instructions, as machine words and as assembler.

use std::fmt;

use thiserror::Error;

use super::register::Register;

/// One instruction. Branch offsets count instructions from the delay slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    Lw { rt: Register, base: Register, offset: i16 },
    Sw { rt: Register, base: Register, offset: i16 },
    Ll { rt: Register, base: Register, offset: i16 },
    Sc { rt: Register, base: Register, offset: i16 },
    Addu { rd: Register, rs: Register, rt: Register },
    Or { rd: Register, rs: Register, rt: Register },
    Addiu { rt: Register, rs: Register, immediate: i16 },
    Lui { rt: Register, immediate: u16 },
    Sll { rd: Register, rt: Register, shift: u8 },
    Beq { rs: Register, rt: Register, offset: i16 },
    Bne { rs: Register, rt: Register, offset: i16 },
    Jr { rs: Register },
    Di,
    Ei,
    Syscall,
}

/// Why the model cannot execute a word.
#[expect(missing_docs, reason = "the message of a problem speaks of its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not an instruction of the model.
    #[error("0x{0:08x} is not one of the model's lw sw ll sc addu or addiu lui sll beq bne jr di ei syscall")]
    Unknown(u32),
    /// A register that the model does not have.
    #[error("0x{word:08x} names register ${number}; the model has zero v0 a0 k1 t0 t1 t2 ra")]
    Register { word: u32, number: u32 },
    /// A word that would change the return address of `tst()`.
    #[error("0x{0:08x} writes ra, which belongs to the caller in the model; write to v0 or t0 to t2")]
    WritesRa(u32),
}

/// di and ei of the Emotion Engine, which may be used in user mode.
const DI: u32 = 0x4200_0039;
const EI: u32 = 0x4200_0038;
const SYSCALL: u32 = 0x0000_000c;

mod opcode {
    pub(super) const SPECIAL: u32 = 0x00;
    pub(super) const BEQ: u32 = 0x04;
    pub(super) const BNE: u32 = 0x05;
    pub(super) const ADDIU: u32 = 0x09;
    pub(super) const LUI: u32 = 0x0f;
    pub(super) const LW: u32 = 0x23;
    pub(super) const SW: u32 = 0x2b;
    pub(super) const LL: u32 = 0x30;
    pub(super) const SC: u32 = 0x38;
}

mod function {
    pub(super) const SLL: u32 = 0x00;
    pub(super) const JR: u32 = 0x08;
    pub(super) const ADDU: u32 = 0x21;
    pub(super) const OR: u32 = 0x25;
}

impl Instruction {
    /// `nop` is `sll zero,zero,0`.
    pub(super) const NOP: Self = Self::Sll { rd: Register::Zero, rt: Register::Zero, shift: 0 };

    pub(super) fn encode(self) -> u32 {
        let immediate = |opcode: u32, rs: Register, rt: Register, low: u16| {
            opcode << 26 | rs.number() << 21 | rt.number() << 16 | u32::from(low)
        };
        let special = |rs: Register, rt: Register, rd: Register, shift: u8, function: u32| {
            rs.number() << 21 | rt.number() << 16 | rd.number() << 11 | u32::from(shift) << 6 | function
        };
        let zero = Register::Zero;
        match self {
            Self::Lw { rt, base, offset } => immediate(opcode::LW, base, rt, offset.cast_unsigned()),
            Self::Sw { rt, base, offset } => immediate(opcode::SW, base, rt, offset.cast_unsigned()),
            Self::Ll { rt, base, offset } => immediate(opcode::LL, base, rt, offset.cast_unsigned()),
            Self::Sc { rt, base, offset } => immediate(opcode::SC, base, rt, offset.cast_unsigned()),
            Self::Addiu { rt, rs, immediate: low } => immediate(opcode::ADDIU, rs, rt, low.cast_unsigned()),
            Self::Lui { rt, immediate: low } => immediate(opcode::LUI, zero, rt, low),
            Self::Beq { rs, rt, offset } => immediate(opcode::BEQ, rs, rt, offset.cast_unsigned()),
            Self::Bne { rs, rt, offset } => immediate(opcode::BNE, rs, rt, offset.cast_unsigned()),
            Self::Addu { rd, rs, rt } => special(rs, rt, rd, 0, function::ADDU),
            Self::Or { rd, rs, rt } => special(rs, rt, rd, 0, function::OR),
            Self::Sll { rd, rt, shift } => special(zero, rt, rd, shift, function::SLL),
            Self::Jr { rs } => special(rs, zero, zero, 0, function::JR),
            Self::Di => DI,
            Self::Ei => EI,
            Self::Syscall => SYSCALL,
        }
    }

    /// Decodes a word.
    ///
    /// # Errors
    /// The model has no such instruction or register.
    pub(super) fn decode(word: u32) -> Result<Self, DecodeError> {
        let register = |shift: u32| {
            let number = word >> shift & 31;
            Register::numbered(number).ok_or(DecodeError::Register { word, number })
        };
        let (rs, rt, rd) = (|| register(21), || register(16), || register(11));
        let low = word as u16;
        let offset = low.cast_signed();
        let instruction = match word >> 26 {
            _ if word == DI => Self::Di,
            _ if word == EI => Self::Ei,
            _ if word == SYSCALL => Self::Syscall,
            opcode::LW => Self::Lw { rt: rt()?, base: rs()?, offset },
            opcode::SW => Self::Sw { rt: rt()?, base: rs()?, offset },
            opcode::LL => Self::Ll { rt: rt()?, base: rs()?, offset },
            opcode::SC => Self::Sc { rt: rt()?, base: rs()?, offset },
            opcode::ADDIU => Self::Addiu { rt: rt()?, rs: rs()?, immediate: offset },
            opcode::LUI => Self::Lui { rt: rt()?, immediate: low },
            opcode::BEQ => Self::Beq { rs: rs()?, rt: rt()?, offset },
            opcode::BNE => Self::Bne { rs: rs()?, rt: rt()?, offset },
            opcode::SPECIAL => match word & 63 {
                function::ADDU => Self::Addu { rd: rd()?, rs: rs()?, rt: rt()? },
                function::OR => Self::Or { rd: rd()?, rs: rs()?, rt: rt()? },
                function::SLL => Self::Sll { rd: rd()?, rt: rt()?, shift: (word >> 6 & 31) as u8 },
                function::JR => Self::Jr { rs: rs()? },
                _ => return Err(DecodeError::Unknown(word)),
            },
            _ => return Err(DecodeError::Unknown(word)),
        };
        if instruction.encode() != word {
            // A field that must be zero is not.
            return Err(DecodeError::Unknown(word));
        }
        if instruction.written() == Some(Register::Ra) {
            return Err(DecodeError::WritesRa(word));
        }
        Ok(instruction)
    }

    pub(super) fn written(self) -> Option<Register> {
        match self {
            Self::Lw { rt, .. }
            | Self::Ll { rt, .. }
            | Self::Sc { rt, .. }
            | Self::Addiu { rt, .. }
            | Self::Lui { rt, .. } => Some(rt),
            Self::Addu { rd, .. } | Self::Or { rd, .. } | Self::Sll { rd, .. } => Some(rd),
            Self::Syscall => Some(Register::V0),
            _ => None,
        }
    }

    pub(super) fn jumps(self) -> bool {
        matches!(self, Self::Beq { .. } | Self::Bne { .. } | Self::Jr { .. })
    }

    pub(super) fn reaches_memory(self) -> bool {
        matches!(self, Self::Lw { .. } | Self::Sw { .. } | Self::Ll { .. } | Self::Sc { .. })
    }

    /// Returns the target of a branch at instruction `index`, as the number of an instruction if the program has one there.
    pub(super) fn target(self, index: usize) -> Option<i64> {
        match self {
            Self::Beq { offset, .. } | Self::Bne { offset, .. } => Some(index as i64 + 1 + i64::from(offset)),
            _ => None,
        }
    }

    pub(super) fn at(self, index: usize) -> impl fmt::Display {
        At { instruction: self, index }
    }
}

struct At {
    instruction: Instruction,
    index: usize,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Instruction as I;
        use Register::Zero;
        let target = Place(self.instruction.target(self.index).unwrap_or(0));
        match self.instruction {
            I::NOP => f.write_str("nop"),
            I::Lw { rt, base, offset } => write!(f, "lw {rt},{}({base})", shown(offset)),
            I::Sw { rt, base, offset } => write!(f, "sw {rt},{}({base})", shown(offset)),
            I::Ll { rt, base, offset } => write!(f, "ll {rt},{}({base})", shown(offset)),
            I::Sc { rt, base, offset } => write!(f, "sc {rt},{}({base})", shown(offset)),
            I::Addu { rd, rs, rt: Zero } => write!(f, "move {rd},{rs}"),
            I::Addu { rd, rs, rt } => write!(f, "addu {rd},{rs},{rt}"),
            I::Or { rd, rs, rt } => write!(f, "or {rd},{rs},{rt}"),
            I::Addiu { rt, rs: Zero, immediate } => write!(f, "li {rt},{immediate}"),
            I::Addiu { rt, rs, immediate } => write!(f, "addiu {rt},{rs},{immediate}"),
            I::Lui { rt, immediate } => write!(f, "lui {rt},0x{immediate:x}"),
            I::Sll { rd, rt, shift } => write!(f, "sll {rd},{rt},{shift}"),
            I::Beq { rs: Zero, rt: Zero, .. } => write!(f, "b {target}"),
            I::Beq { rs, rt: Zero, .. } => write!(f, "beqz {rs},{target}"),
            I::Beq { rs, rt, .. } => write!(f, "beq {rs},{rt},{target}"),
            I::Bne { rs, rt: Zero, .. } => write!(f, "bnez {rs},{target}"),
            I::Bne { rs, rt, .. } => write!(f, "bne {rs},{rt},{target}"),
            I::Jr { rs } => write!(f, "jr {rs}"),
            I::Di => f.write_str("di"),
            I::Ei => f.write_str("ei"),
            I::Syscall => f.write_str("syscall"),
        }
    }
}

/// An offset as assemblers show it: empty for 0.
fn shown(offset: i16) -> String {
    if offset == 0 { String::new() } else { offset.to_string() }
}

/// Shows the number of an instruction as `tst`, `tst+0x8`.
pub(super) struct Place(pub(super) i64);

impl Place {
    /// The reach of a branch, beyond the length of any program.
    pub(super) const NEAR: std::ops::RangeInclusive<i64> = -0x1_0000..=0x1_0000;
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = 4 * self.0;
        match bytes {
            0 => f.write_str("tst"),
            1.. => write!(f, "tst+0x{bytes:x}"),
            _ => write!(f, "tst-0x{:x}", -bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words that GNU as for MIPS makes, except di and ei of the Emotion Engine.
    #[test]
    fn words_are_those_of_the_architecture() {
        for (word, text) in [
            (0x0080_d821, "move k1,a0"),
            (0x8c82_0000, "lw v0,(a0)"),
            (0x8d02_fffc, "lw v0,-4(t0)"),
            (0xaf68_0000, "sw t0,(k1)"),
            (0xc082_0000, "ll v0,(a0)"),
            (0xe088_0000, "sc t0,(a0)"),
            (0x2408_0001, "li t0,1"),
            (0x2508_ffff, "addiu t0,t0,-1"),
            (0x3c08_1001, "lui t0,0x1001"),
            (0x0109_5021, "addu t2,t0,t1"),
            (0x0109_5025, "or t2,t0,t1"),
            (0x0008_4880, "sll t1,t0,2"),
            (0x1440_0004, "bnez v0,tst+0x1c"),
            (0x1764_fffa, "bne k1,a0,tst-0xc"),
            (0x1000_ffff, "b tst+0x8"),
            (0x1100_0000, "beqz t0,tst+0xc"),
            (0x1109_0000, "beq t0,t1,tst+0xc"),
            (0x03e0_0008, "jr ra"),
            (0, "nop"),
            (0x4200_0038, "ei"),
            (0x4200_0039, "di"),
            (0x0000_000c, "syscall"),
        ] {
            let instruction = Instruction::decode(word).unwrap();
            assert_eq!((instruction.at(2).to_string().as_str(), instruction.encode()), (text, word));
        }
    }

    #[test]
    fn words_that_are_not_executed_say_why() {
        assert_eq!(Instruction::decode(0xffff_ffff), Err(DecodeError::Unknown(0xffff_ffff)));
        // jr with a nonzero field that must be zero; syscall with a code.
        assert_eq!(Instruction::decode(0x03e0_0048), Err(DecodeError::Unknown(0x03e0_0048)));
        assert_eq!(Instruction::decode(0x0000_004c), Err(DecodeError::Unknown(0x0000_004c)));
        let s0 = DecodeError::Register { word: 0x8e02_0000, number: 16 };
        assert_eq!(Instruction::decode(0x8e02_0000), Err(s0));
        assert_eq!(Instruction::decode(0x8c9f_0000), Err(DecodeError::WritesRa(0x8c9f_0000)));
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_word(word: u32) {
            if let Ok(instruction) = Instruction::decode(word) {
                prop_assert_eq!(instruction.encode(), word);
            }
        }
    }
}
