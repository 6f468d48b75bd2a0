//! Instructions as the kernel takes them: opcode, two registers, an offset and an immediate in 8 bytes; constants of 64 bits take two.

use super::asm::{Assembler, Constant, Instruction, Label, Operand, Register};

// Classes, sources and modes of opcodes: include/uapi/linux/bpf_common.h and bpf.h.
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const JMP: u8 = 0x05;
const ALU64: u8 = 0x07;
const FROM_REGISTER: u8 = 0x08;
const MEM: u8 = 0x60;
const ATOMIC: u8 = 0xc0;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
// The kinds of a 64-bit constant, in its source register.
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

impl Assembler {
    /// The instructions in the form that bpf(2) takes.
    ///
    /// # Errors
    /// A label that was never placed, or a jump over more than 32,767 instructions.
    pub fn finish(&self) -> Result<Vec<u64>, String> {
        encode(&self.instructions, self.labels as usize)
    }
}

fn encode(instructions: &[Instruction], labels: usize) -> Result<Vec<u64>, String> {
    let places = places(instructions, labels);
    let mut words = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        // Jumps count from the instruction after them.
        let offset_to = |label: Label| {
            let place = places.get(label.index()).copied().flatten().ok_or("a jump has no target")?;
            i16::try_from(place as i64 - words.len() as i64 - 1).map_err(|_| "a jump is too far".to_owned())
        };
        match *instruction {
            Instruction::Label(_) => {}
            Instruction::Operate(operation, to, with) => {
                let (source, register, immediate) = operand(with);
                words.push(word(ALU64 | source | operation as u8, to.0, register, 0, immediate));
            }
            Instruction::Constant(to, constant) => {
                let (kind, low, high) = match constant {
                    Constant::Number(number) => (0, number as u32, (number >> 32) as u32),
                    Constant::Map(fd) => (PSEUDO_MAP_FD, fd as u32, 0),
                    Constant::Value(fd, offset) => (PSEUDO_MAP_VALUE, fd as u32, offset),
                };
                words.push(word(LOAD_IMMEDIATE_64, to.0, kind, 0, low as i32));
                words.push(word(0, 0, 0, 0, high as i32));
            }
            Instruction::Load(to, base, field) => {
                words.push(word(LDX | MEM | field.width as u8, to.0, base.0, field.offset, 0));
            }
            Instruction::Store(base, field, from) => {
                let (source, register, immediate) = operand(from);
                let class = if source == FROM_REGISTER { STX } else { ST };
                let opcode = class | MEM | field.width as u8;
                words.push(word(opcode, base.0, register, field.offset, immediate));
            }
            Instruction::Atomic(atomic, base, field, with) => {
                let opcode = STX | ATOMIC | field.width as u8;
                words.push(word(opcode, base.0, with.0, field.offset, atomic as i32));
            }
            Instruction::Jump(label) => words.push(word(JMP, 0, 0, offset_to(label)?, 0)),
            Instruction::JumpIf(condition, a, b, label) => {
                let (source, register, immediate) = operand(b);
                let opcode = JMP | source | condition as u8;
                words.push(word(opcode, a.0, register, offset_to(label)?, immediate));
            }
            Instruction::Call(helper) => words.push(word(JMP | CALL, 0, 0, 0, helper as i32)),
            Instruction::Exit => words.push(word(JMP | EXIT, 0, 0, 0, 0)),
        }
    }
    Ok(words)
}

/// The number of the instruction that each label stands before.
fn places(instructions: &[Instruction], labels: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; labels];
    let mut at = 0;
    for instruction in instructions {
        match *instruction {
            Instruction::Label(label) => {
                if let Some(place) = places.get_mut(label.index()) {
                    *place = Some(at);
                }
            }
            Instruction::Constant(..) => at += 2,
            _ => at += 1,
        }
    }
    places
}

fn word(opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) -> u64 {
    u64::from(opcode)
        | u64::from(to & 0xf | from << 4) << 8
        | u64::from(offset as u16) << 16
        | u64::from(immediate as u32) << 32
}

fn operand(operand: Operand) -> (u8, u8, i32) {
    match operand {
        Operand::Register(Register(number)) => (FROM_REGISTER, number, 0),
        Operand::Immediate(immediate) => (0, 0, immediate),
    }
}

#[cfg(test)]
mod tests {
    use super::super::asm::*;

    /// Each instruction's bytes, by hand from the instruction set's document.
    #[test]
    fn instructions_are_the_words_of_the_manual() {
        let mut a = Assembler::default();
        a.mov(R6, R1);
        a.mov(R2, -1);
        a.add(R2, 8);
        a.shl(R3, R4);
        a.load(R0, R6, Field::double(8));
        a.load(R1, FRAME, Field { offset: -4, width: Width::Word });
        a.store(FRAME, Field { offset: -8, width: Width::Byte }, 7);
        a.store(R8, Field { offset: 16, width: Width::Half }, R9);
        a.atomic(Atomic::Add, R1, Field::double(0), R2);
        a.atomic(Atomic::FetchAdd, R1, Field::double(24), R2);
        a.atomic(Atomic::CompareExchange, R1, Field::double(0), R2);
        a.call(Helper::KtimeGetNs);
        a.exit();
        let words = a.finish().unwrap();
        let expected: [u64; 14] = [
            0x0000_0000_0000_16bf,
            0xffff_ffff_0000_02b7,
            0x0000_0008_0000_0207,
            0x0000_0000_0000_436f,
            0x0000_0000_0008_6079,
            0x0000_0000_fffc_a161,
            0x0000_0007_fff8_0a72,
            0x0000_0000_0010_986b,
            0x0000_0000_0000_21db,
            0x0000_0001_0018_21db,
            0x0000_00f1_0000_21db,
            0x0000_0005_0000_0085,
            0x0000_0000_0000_00b7,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(words, expected, "{words:#018x?}");
    }

    #[test]
    fn constants_of_64_bits_take_two_words_and_jumps_count_them() {
        let mut a = Assembler::default();
        let end = a.label();
        let again = a.label();
        a.bind(again);
        a.jump_if(Condition::Equal, R1, 0, end);
        a.constant(R2, 0x1122_3344_5566_7788);
        a.map(R1, 5);
        a.value(R1, 6, 64);
        a.jump_if(Condition::AtLeast, R1, R2, again);
        a.jump(end);
        a.bind(end);
        a.exit();
        let words = a.finish().unwrap();
        assert_eq!(words[0], 0x0000_0000_0008_0115);
        assert_eq!(&words[1..3], &[0x5566_7788_0000_0218, 0x1122_3344_0000_0000]);
        assert_eq!(&words[3..5], &[0x0000_0005_0000_1118, 0]);
        assert_eq!(&words[5..7], &[0x0000_0006_0000_2118, 0x0000_0040_0000_0000]);
        assert_eq!(words[7], 0x0000_0000_fff8_213d);
        assert_eq!(words[8], 0x0000_0000_0000_0005);
    }

    #[test]
    fn a_label_that_is_not_bound_is_refused() {
        let mut a = Assembler::default();
        let nowhere = a.label();
        a.jump(nowhere);
        assert!(a.finish().is_err());
    }
}
