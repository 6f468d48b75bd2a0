//! The instructions of the published experiment, and the results that their emulation must give.

use super::power::power;
use crate::prelude::*;

timed_loop! {
    /// `lock mov eax, ecx`, each with both operands reloaded.
    ten_lock_movs:
        ".rept 10", "mov eax, 3", "mov ecx, 3", ".byte 0xf0, 0x89, 0xc8", ".endr";
    aarch64 none "the instruction that is emulated is one of x86"
}

timed_loop! {
    /// `ud1 ecx, eax`, each with both operands reloaded.
    ten_ud1s:
        ".rept 10", "mov eax, 3", "mov ecx, 3", ".byte 0x0f, 0xb9, 0xc8", ".endr";
    aarch64 none "the instruction that is emulated is one of x86"
}

/// An invalid instruction that is emulated.
pub(super) struct Opcode {
    pub code: TimedLoop,
    pub mnemonic: &'static str,
    /// The instruction alone, between a load of its operands and a return.
    pub alone: Alone,
    /// Its number in the orders of the kernel module.
    pub number: u32,
    /// Its effect if it does not trap.
    pub otherwise: &'static str,
}

words! {
    pub(super) enum Which("opcode"): Opcode {
        LockMov = "" => Opcode {
            code: TimedLoop::Long(ten_lock_movs),
            mnemonic: "lock mov",
            alone: lock_mov,
            number: 0,
            otherwise: "f0 89 c8 does not trap here: it ran as a plain mov",
        },
        Ud1 = "ud1" => Opcode {
            code: TimedLoop::Long(ten_ud1s),
            mnemonic: "ud1",
            alone: ud1,
            number: 1,
            otherwise: "0f b9 c8 does not trap here: it had no visible effect",
        },
    }
}

impl Opcode {
    pub fn entry(&self) -> usize {
        match self.code {
            TimedLoop::Long(code) => code.address(),
            TimedLoop::Compat(_) => 0,
        }
    }
}

/// Returns the instruction's result in `rax`.
pub(super) type Alone = unsafe extern "C" fn(rax: u64, rcx: u64) -> u64;

tollgate_arch::code! {
pub(super) fn lock_mov(rax: u64, rcx: u64) -> u64 { "mov rax, rdi", "mov rcx, rsi", ".byte 0xf0, 0x89, 0xc8", "ret" }
}

tollgate_arch::code! {
pub(super) fn ud1(rax: u64, rcx: u64) -> u64 { "mov rax, rdi", "mov rcx, rsi", ".byte 0x0f, 0xb9, 0xc8", "ret" }
}

/// Checks that the instruction traps here and that the emulation is correct: on pairs at the edges, and on random ones, the same
/// in each process. `emulated` returns a result and how often the instruction trapped.
pub(super) fn check_pairs(
    opcode: &Opcode,
    mut emulated: impl FnMut(u32, u32) -> Result<(u64, u64)>,
) -> Result<()> {
    const EDGES: [(u32, u32); 7] =
        [(3, 3), (0, 0), (7, 0), (0, 5), (2, 31), (65_537, 2), (u32::MAX, u32::MAX)];
    const PAIRS: usize = 1000;
    let mut random = Random::new(0);
    let random = std::iter::repeat_with(|| {
        let bits = random.next_u64();
        (bits as u32, (bits >> 32) as u32)
    });
    for (base, exponent) in EDGES.into_iter().chain(random.take(PAIRS)) {
        let (result, traps) = emulated(base, exponent)?;
        match traps {
            0 => return Err(skip!("{} and left {result:#x} in rax", opcode.otherwise)),
            1 if result == u64::from(power(base, exponent)) => {}
            _ => {
                return Err(fail!("{base} to the power of {exponent} was {result:#x} after {traps} traps"));
            }
        }
    }
    Ok(())
}

/// Expects 3 to the power of 3.
pub(super) fn twenty_seven(result: u64) -> Result<(), String> {
    match result {
        27 => Ok(()),
        other => Err(format!("3 to the power of 3 was {other}")),
    }
}
