//! Finds instructions that use registers which the lab's kernel neither offers nor keeps: x87, MMX and SSE. Also finds those that
//! LOCK makes invalid.
//!
//! The kernel keeps the general registers of a thread of control. Unless told so, a compiler uses SSE to copy a structure.

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter};

use super::Program;

/// An instruction of a program that needs a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Linear address of the instruction.
    pub address: u64,
    /// Bytes of the instruction.
    pub bytes: Vec<u8>,
    /// The instruction in Intel's syntax.
    pub text: String,
}

/// Finds such instructions in the program's executable segments by decoding them from end to end, data included.
/// Writable segments, and so flat binaries, have too much data and are skipped.
pub fn foreign(program: &Program) -> Vec<Foreign> {
    instructions(program, DecoderOptions::NONE, is_foreign)
}

/// Finds the instructions there that their LOCK prefix makes invalid, such as `f0 89 c8`. #UD is due (SDM 2A, "LOCK"),
/// but QEMU's translator executes some as if the prefix were absent.
pub fn refused_locks(program: &Program) -> Vec<Foreign> {
    let bits = bits(program);
    instructions(program, DecoderOptions::NO_INVALID_CHECK, |_, bytes| is_refused_lock(bytes, bits))
}

pub(crate) fn is_refused_lock(bytes: &[u8], bits: u32) -> bool {
    let decoded = |options| Decoder::new(bits, bytes, options).decode();
    let instruction = decoded(DecoderOptions::NO_INVALID_CHECK);
    let is_locked = instruction.has_lock_prefix() && !instruction.is_invalid();
    is_locked && decoded(DecoderOptions::NONE).is_invalid()
}

fn bits(program: &Program) -> u32 {
    if program.is_32_bit { 32 } else { 64 }
}

fn instructions(
    program: &Program,
    options: u32,
    is_meant: impl Fn(&Instruction, &[u8]) -> bool,
) -> Vec<Foreign> {
    let bits = bits(program);
    let code = program.segments.iter().filter(|segment| segment.rights.execute && !segment.rights.write);
    let mut found = Vec::new();
    for segment in code {
        let mut decoder = Decoder::with_ip(bits, &segment.bytes, segment.address, options);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            let from = decoder.position();
            decoder.decode_out(&mut instruction);
            let bytes = segment.bytes.get(from..decoder.position()).unwrap_or_default();
            if is_meant(&instruction, bytes) {
                let mut text = String::new();
                IntelFormatter::new().format(&instruction, &mut text);
                found.push(Foreign { address: instruction.ip(), bytes: bytes.to_vec(), text });
            }
        }
    }
    found
}

fn is_foreign(instruction: &Instruction, bytes: &[u8]) -> bool {
    let operands = 0..instruction.op_count();
    let is_vector = |at| {
        let register = instruction.op_register(at);
        register.is_vector_register() || register.is_mm() || register.is_st()
    };
    operands.into_iter().any(is_vector) || opcode(bytes).is_some_and(|first| matches!(first, 0xd8..=0xdf))
}

/// Returns the first byte after the prefixes. SDM 2A, "Instruction prefixes".
fn opcode(bytes: &[u8]) -> Option<u8> {
    let is_prefix =
        |byte: u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    bytes.iter().copied().find(|&byte| !is_prefix(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{ADDRESSES, Rights, Segment};

    fn found(bytes: &[u8], write: bool) -> Vec<(u64, String)> {
        found_by(foreign, bytes, write)
    }

    fn found_by(scan: fn(&Program) -> Vec<Foreign>, bytes: &[u8], write: bool) -> Vec<(u64, String)> {
        let rights = Rights { read: true, write, execute: true };
        let segment =
            Segment { address: ADDRESSES.start, size: bytes.len() as u64, bytes: bytes.to_vec(), rights };
        let program = Program::new("x", ADDRESSES.start, vec![segment]);
        scan(&program).into_iter().map(|it| (it.address, it.text)).collect()
    }

    #[test]
    fn what_the_kernel_does_not_keep_is_named() {
        let code = [
            0x48, 0x89, 0xc8, // mov rax, rcx
            0x0f, 0x28, 0xc1, // movaps xmm0, xmm1
            0xdd, 0x06, // fld qword [rsi]
            0x0f, 0xef, 0xc0, // pxor mm0, mm0
            0x41, 0xd9, 0x00, // fld dword [r8]
            0xc3,
        ];
        let named = found(&code, false);
        let addresses: Vec<u64> = named.iter().map(|it| it.0 - ADDRESSES.start).collect();
        assert_eq!(addresses, [3, 6, 8, 11]);
        assert_eq!(named[0].1, "movaps xmm0,xmm1");
        assert_eq!(found(&code, true), [], "data that is written is no code");
        assert_eq!(found(&[0x0f], false), []);
    }

    #[test]
    fn a_lock_that_makes_an_instruction_invalid_is_named() {
        let code = [
            0xf0, 0x89, 0xc8, // lock mov eax, ecx
            0xf0, 0x0f, 0xb1, 0x0f, // lock cmpxchg [rdi], ecx
            0xf0, 0xff, 0xc0, // lock inc eax
            0x89, 0xc8, 0xc3,
        ];
        let named = found_by(refused_locks, &code, false);
        let named: Vec<(u64, &str)> =
            named.iter().map(|it| (it.0 - ADDRESSES.start, it.1.as_str())).collect();
        assert_eq!(named, [(0, "lock mov eax,ecx"), (7, "lock inc eax")]);
    }
}
