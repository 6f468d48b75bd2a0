//! The published experiment: an invalid instruction is emulated by a signal handler; `module_emulation` has a kernel module.

use std::sync::atomic::Ordering::Relaxed;

use tollgate_arch::signal::{OPERANDS, RIP};

use super::handler::{self, Handled, SIGNAL, SIGNALS};
use super::opcode::{Alone, Opcode, Which, check_pairs, twenty_seven};
use super::power::{decode, power};
use super::{imul::TEN, locked::Locked, module_emulation};
use crate::prelude::*;
use tollgate_model::Case;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/invalid-opcode",
    operation: "One invalid opcode, ten in a row, that a SIGILL handler or a kernel module decodes, emulates as a power, and steps over.",
    avoid: "Choose the code by CPUID at start instead of emulating missing instructions in a handler.",
    source: "Intel SDM vol. 3, Interrupt 6; sigaction(2); do_error_trap(), arch/x86/kernel/traps.c",
    baseline: Baseline::Benchmark("traps/imul"),
    cases: |_| {
        let of = |by: &str, opcode: &str| {
            let named = [("by", by), ("opcode", opcode)].into_iter().filter(|(_, word)| !word.is_empty());
            named.map(|(key, word)| (key.to_owned(), word.into())).collect()
        };
        By::WORDS.iter().flat_map(|by| Which::WORDS.iter().map(move |opcode| of(by, opcode))).collect()
    },
    counts: Some("traps"),
    crossed_in: |params, boundary| match By::try_from(params) {
        Ok(By::ModuleInRing3) => !matches!(boundary, Signal | SystemCall),
        Ok(By::ModuleInRing0) => matches!(boundary, Exception | KernelCode),
        _ => true,
    },
    // The module's loop in ring 0 has the same body.
    beside: &[("traps/breakpoint", "an exception with its signal and handler, of which nothing is emulated")],
    timed: |params| {
        let timed = |opcode: Opcode| Timed::Loop {
            code: opcode.code,
            instruction: opcode.mnemonic,
            times: TEN as usize,
        };
        Which::try_from(params).map_or(NOT_TIMED, |which| timed(which.value()))
    },
    kind: Kind::Instance(|timed, params, _| {
        let opcode = Which::try_from(params)?.value();
        match By::try_from(params)? {
            By::Signal => by_signal(timed, &opcode),
            By::ModuleInRing3 => module_emulation::in_ring_3(timed, &opcode),
            By::ModuleInRing0 => module_emulation::in_ring_0(&opcode),
        }
    }),
    ..SIGNAL
};

words! {
    /// The emulator of the opcode: a handler of SIGILL, or a kernel module, for a program or for the kernel itself.
    enum By("by") { Signal = "", ModuleInRing3 = "module-ring3", ModuleInRing0 = "module-ring0" }
}

/// Returns whether a case needs the kernel module, which is built for a guest.
pub fn needs_kernel_module(case: &Case) -> bool {
    case.benchmark == BENCHMARK.name && By::try_from(&case.params).is_ok_and(|by| by != By::Signal)
}

fn by_signal(timed: Timed, opcode: &Opcode) -> Result<Instance> {
    check_pairs(opcode, |base, exponent| emulated(opcode.alone, base.into(), exponent.into()))?;
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
    // SAFETY: the loop needs no context; its instructions trap, as the trial showed, and the handler steps over them.
    let timed_loop = unsafe { Loop::new(timed, [0; 7], Some(Box::new(locked)), twenty_seven) }?;
    let handled = Handled::new(libc::SIGILL, emulate, timed);
    Ok(timed_loop.with_hooks(handled).here().with_ops(TEN).with_notes(note))
}

/// Returns the result of one emulated instruction, and its number of signals.
fn emulated(alone: Alone, rax: u64, rcx: u64) -> Result<(u64, u64)> {
    let mut handled = Handled::of_code(libc::SIGILL, emulate, alone as usize);
    handled.install()?;
    // SAFETY: the instruction changes at most the two registers; if it traps, the handler steps over it.
    let result = unsafe { alone(rax, rcx) };
    Ok((result, handled.remove()))
}

/// The handler: eax becomes eax to the power of ecx, as in a 32-bit operation (the upper half of rax becomes zero), and the
/// program continues after the instruction. Other instructions kill.
unsafe extern "C" fn emulate(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the third argument of an SA_SIGINFO handler points to its own ucontext_t (sigaction(2)), which has these at the offsets.
    let [ip, base, exponent] =
        [RIP, OPERANDS[0], OPERANDS[1]].map(|offset| unsafe { &mut *context.byte_add(offset).cast::<u64>() });
    let at = *ip as usize;
    // SAFETY: the first byte was just fetched, and each further byte is read only if those before it begin a longer instruction.
    let code = (0..).map(|offset| unsafe { ((at + offset) as *const u8).read() });
    let Some(length) = decode(code) else { return handler::refuse(signal) };
    *base = power(*base as u32, *exponent as u32).into();
    *ip = (at + length) as u64;
    // No other thread writes the counter.
    SIGNALS.store(SIGNALS.load(Relaxed) + 1, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traps::opcode::{lock_mov, ud1};
    use crate::traps::power::power_by_hand;
    use crate::traps::tests::{alone, died_of};
    use proptest::prelude::*;

    /// Another architecture has not even the instructions.
    fn traps(alone: Alone) -> bool {
        if let Some(why) = BENCHMARK.why_absent(&Topology::default()) {
            eprintln!("skipped: {why}");
            return false;
        }
        let traps = emulated(alone, 3, 3).expect("a handler").1 == 1;
        if !traps {
            eprintln!("skipped: it does not trap here");
        }
        traps
    }

    proptest! {
        // Another architecture says once why it is skipped.
        #![proptest_config(ProptestConfig::with_cases(
            if BENCHMARK.why_absent(&Topology::default()).is_some() { 1 } else { 1000 }
        ))]

        #[test]
        fn the_trap_and_the_function_agree(base: u64, exponent: u64) {
            let _alone = alone();
            for opcode in [lock_mov, ud1] as [Alone; 2] {
                if !traps(opcode) {
                    continue;
                }
                let (result, signals) = emulated(opcode, base, exponent).expect("a handler");
                // The upper halves of the operands are ignored; that of the result is zero.
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
            tollgate_arch::code! {
                fn undefined() { "ud2" } aarch64 { "udf 0" }
            }
            // SAFETY: ends this process, which the test expects.
            unsafe { undefined() };
        });
        assert_eq!(signal, Some(libc::SIGILL));
    }

    #[test]
    fn an_instruction_that_runs_is_refused() {
        let _alone = alone();
        tollgate_arch::code! {
        /// f0 89 c8 as some emulators execute it.
        fn plain_mov(rax: u64, rcx: u64) -> u64 { "mov rax, rdi", "mov rcx, rsi", "mov eax, ecx", "ret" }
        aarch64 { "mov x0, x1", "ret" }
        }
        let opcode = Opcode { alone: plain_mov, ..Which::LockMov.value() };
        let why = "f0 89 c8 does not trap here: it ran as a plain mov and left 0x3 in rax";
        let checked =
            check_pairs(&opcode, |base, exponent| emulated(plain_mov, base.into(), exponent.into()));
        assert_eq!(checked, Err(Refusal::Skip(why.to_owned())));
    }
}
