//! The published experiment: a signal handler emulates an invalid instruction.

use std::sync::atomic::Ordering::Relaxed;

use super::handler::{self, Handled, SIGNAL, SIGNALS};
use super::power::{decode, power};
use super::{imul::TEN, locked::Locked};
use crate::prelude::*;

timed_loop! {
    /// `lock mov eax, ecx`, each with both operands reloaded.
    ten_lock_movs:
        ".rept 10", "mov eax, 3", "mov ecx, 3", ".byte 0xf0, 0x89, 0xc8", ".endr"
}

timed_loop! {
    /// `ud1 ecx, eax`, each with both operands reloaded.
    ten_ud1s:
        ".rept 10", "mov eax, 3", "mov ecx, 3", ".byte 0x0f, 0xb9, 0xc8", ".endr"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/invalid-opcode",
    operation: "One invalid opcode, ten in a row, that a SIGILL handler decodes, emulates as a power, and steps over.",
    avoid: "Choose the code by CPUID at start instead of emulating missing instructions in a handler.",
    source: "Intel SDM vol. 3, Interrupt 6; sigaction(2)",
    baseline: Some("traps/imul"),
    cases: || vec![Params::new(), params(&[("opcode", "ud1".into())])],
    timed: |params| {
        let opcode = Opcode::of(params);
        Timed::Loop { code: opcode.code, instruction: opcode.mnemonic, times: TEN as usize }
    },
    kind: Kind::Instance(|timed, params, _| {
        let opcode = Opcode::of(params);
        check(&opcode)?;
        let code = [opcode.entry(), emulate as *const () as usize, power as *const () as usize];
        let (locked, note) = match Locked::code(&code) {
            Ok(locked) => (Some(locked), None),
            Err(error) => (
                None,
                Some(format!(
                    "its code is not locked in memory: mlock(2): {}",
                    tollgate_model::text::plainly(&error)
                )),
            ),
        };
        // SAFETY: the loop needs nothing from its context; its instructions trap, as the trial showed, and the
        // handler steps over them.
        let timed_loop = unsafe { Loop::new(timed, [0; 7], Some(Box::new(locked)), twenty_seven) }?;
        let handled = Handled::new(libc::SIGILL, emulate, timed);
        Ok(timed_loop.with_hooks(handled).here().with_ops(TEN).with_notes(note))
    }),
    ..SIGNAL
};

struct Opcode {
    code: TimedLoop,
    mnemonic: &'static str,
    /// The instruction alone, between a load of its operands and a return.
    alone: Alone,
    /// Its effect where it does not trap.
    otherwise: &'static str,
}

impl Opcode {
    fn of(params: &Params) -> Self {
        if word(params, "opcode") == "ud1" {
            let otherwise = "0f b9 c8 does not trap here: it had no visible effect";
            Self { code: TimedLoop::Long(ten_ud1s), mnemonic: "ud1", alone: ud1, otherwise }
        } else {
            let otherwise = "f0 89 c8 does not trap here: it ran as a plain mov";
            Self { code: TimedLoop::Long(ten_lock_movs), mnemonic: "lock mov", alone: lock_mov, otherwise }
        }
    }

    fn entry(&self) -> usize {
        match self.code {
            TimedLoop::Long(code) => code.address(),
            TimedLoop::Compat(_) => 0,
        }
    }
}

/// Returns the instruction's result in `rax`.
type Alone = unsafe extern "C" fn(rax: u64, rcx: u64) -> u64;

/// `lock mov eax, ecx` alone.
#[unsafe(naked)]
unsafe extern "C" fn lock_mov(rax: u64, rcx: u64) -> u64 {
    core::arch::naked_asm!("mov rax, rdi", "mov rcx, rsi", ".byte 0xf0, 0x89, 0xc8", "ret")
}

/// `ud1 ecx, eax` alone.
#[unsafe(naked)]
unsafe extern "C" fn ud1(rax: u64, rcx: u64) -> u64 {
    core::arch::naked_asm!("mov rax, rdi", "mov rcx, rsi", ".byte 0x0f, 0xb9, 0xc8", "ret")
}

/// Checks that the instruction traps here, and that the emulation is right.
fn check(opcode: &Opcode) -> Result<()> {
    const PAIRS: [(u32, u32); 7] =
        [(3, 3), (0, 0), (7, 0), (0, 5), (2, 31), (65_537, 2), (u32::MAX, u32::MAX)];
    for (base, exponent) in PAIRS {
        let (result, signals) = emulated(opcode.alone, base.into(), exponent.into())?;
        match signals {
            0 => return Err(skip!("{} and left {result:#x} in rax", opcode.otherwise)),
            1 if result == u64::from(power(base, exponent)) => {}
            _ => {
                return Err(fail!(
                    "{base} to the power of {exponent} was {result:#x} after {signals} signals"
                ));
            }
        }
    }
    Ok(())
}

/// The result of one emulated instruction, and its number of signals.
fn emulated(alone: Alone, rax: u64, rcx: u64) -> Result<(u64, u64)> {
    let mut handled = Handled::of_code(libc::SIGILL, emulate, alone as usize);
    handled.install()?;
    // SAFETY: the instruction changes at most the two registers; if it traps, the handler steps over it.
    let result = unsafe { alone(rax, rcx) };
    Ok((result, handled.remove()))
}

pub(super) fn twenty_seven(result: u64) -> Result<(), String> {
    match result {
        27 => Ok(()),
        other => Err(format!("3 to the power of 3 was {other}")),
    }
}

/// The handler: eax becomes eax to the power of ecx, as a 32-bit operation does it (the upper half of rax is zero
/// afterwards), and the program continues after the instruction. Other instructions kill.
unsafe extern "C" fn emulate(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the third argument of an SA_SIGINFO handler points to its own ucontext_t (sigaction(2)).
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    // SAFETY: the first byte was just fetched, and each next one is read only if those before it begin a longer
    // instruction.
    let code = (0..).map(|offset| unsafe { ((at + offset) as *const u8).read() });
    let Some(length) = decode(code) else { return handler::refuse(signal) };
    let (base, exponent) = (registers[libc::REG_RAX as usize], registers[libc::REG_RCX as usize]);
    registers[libc::REG_RAX as usize] = i64::from(power(base as u32, exponent as u32));
    registers[libc::REG_RIP as usize] = (at + length) as i64;
    // No other thread writes the counter.
    SIGNALS.store(SIGNALS.load(Relaxed) + 1, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traps::power::power_by_hand;
    use crate::traps::tests::{alone, died_of};
    use proptest::prelude::*;

    /// Whether it traps here; otherwise the test is skipped.
    fn traps(alone: Alone) -> bool {
        let traps = emulated(alone, 3, 3).expect("a handler").1 == 1;
        if !traps {
            eprintln!("skipped: it does not trap here");
        }
        traps
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_trap_and_the_function_agree(base: u64, exponent: u64) {
            let _alone = alone();
            for opcode in [lock_mov, ud1] as [Alone; 2] {
                if !traps(opcode) {
                    continue;
                }
                let (result, signals) = emulated(opcode, base, exponent).expect("a handler");
                // The upper halves of the operands are ignored, that of the result is zero.
                let (low_base, low_exponent) = (base as u32, exponent as u32);
                prop_assert_eq!(result, u64::from(low_base.wrapping_pow(low_exponent)));
                prop_assert_eq!(result, u64::from(power_by_hand(low_base, low_exponent)));
                prop_assert_eq!(signals, 1);
            }
        }
    }

    #[test]
    fn an_unknown_opcode_kills() {
        let _alone = alone();
        let signal = died_of(|| {
            let mut handled = Handled::of_code(libc::SIGILL, emulate, 0);
            if handled.install().is_err() {
                return;
            }
            // SAFETY: ends this process, which is what is tested.
            unsafe { core::arch::asm!("ud2") };
        });
        assert_eq!(signal, Some(libc::SIGILL));
    }

    #[test]
    fn an_instruction_that_runs_is_refused() {
        let _alone = alone();
        /// f0 89 c8 as some emulators run it.
        #[unsafe(naked)]
        unsafe extern "C" fn plain_mov(rax: u64, rcx: u64) -> u64 {
            core::arch::naked_asm!("mov rax, rdi", "mov rcx, rsi", "mov eax, ecx", "ret")
        }
        let opcode = Opcode { alone: plain_mov, ..Opcode::of(&Params::new()) };
        let why = "f0 89 c8 does not trap here: it ran as a plain mov and left 0x3 in rax";
        assert_eq!(check(&opcode), Err(Refusal::Skip(why.to_owned())));
    }
}
