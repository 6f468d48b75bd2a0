//! Whether the processor itself executes a guest's ring 0.
//!
//! On some machines KVM runs without virtualization by hardware: ring 3 is executed, but ring 0 is emulated, instruction by
//! instruction. Times there are the emulator's. So a loop runs first, in 64-bit mode in ring 0 as the experiments do: a processor
//! needs one or two cycles for an iteration, an emulator a thousand. KVM's own counters confirm it, if they can be read.

use std::fmt;
use std::time::Duration;

use crate::alarm::Alarm;
use crate::state::long;
use crate::vm::Vm;
use crate::{Kvm, KvmError, failed, run, statistics};

const ITERATIONS: u32 = 1000;
const INSTRUCTIONS_AN_ITERATION: u64 = 2;
/// Instructions around the loop.
const AROUND: u64 = 14;
/// Repetitions; the shortest counts.
const SAMPLES: u32 = 8;
/// Ticks of the time-stamp counter per iteration: a processor takes fewer, an emulator more.
const MOST_TICKS: u64 = 100;
/// An emulator needs some 30 ms for all repetitions.
const PATIENCE: Duration = Duration::from_secs(1);

/// Code and tables fit into one page of 2 MiB.
const MEMORY: usize = 2 << 20;
const CODE_AT: u64 = 0x1000;
const PML4_AT: u64 = 0x2000;
const PDPT_AT: u64 = 0x3000;
const PAGES_AT: u64 = 0x4000;
const TABLE: u64 = 3;
const PAGE: u64 = 0x83;

/// The loop: leaves its ticks in RAX, exits, and begins again.
#[rustfmt::skip]
const CODE: [u8; 46] = [
    0xb9, (ITERATIONS & 0xff) as u8, (ITERATIONS >> 8) as u8, 0, 0, // mov ecx, ITERATIONS
    0x0f, 0xae, 0xe8,       // lfence
    0x0f, 0x31,             // rdtsc
    0x0f, 0xae, 0xe8,       // lfence
    0x48, 0xc1, 0xe2, 0x20, // shl rdx, 32
    0x48, 0x09, 0xd0,       // or rax, rdx
    0x48, 0x89, 0xc3,       // mov rbx, rax
    0xff, 0xc9,             // dec ecx
    0x75, 0xfc,             // jnz to the dec
    0x0f, 0xae, 0xe8,       // lfence
    0x0f, 0x31,             // rdtsc
    0x48, 0xc1, 0xe2, 0x20, // shl rdx, 32
    0x48, 0x09, 0xd0,       // or rax, rdx
    0x48, 0x29, 0xd8,       // sub rax, rbx
    0xe6, 0xf4,             // out 0xf4, al
    0xeb, 0xd2,             // jmp to the mov
];

/// The result of the loop.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Calibration {
    /// It ran. `ticks` of the time-stamp counter for all iterations together, the minimum of several repetitions, and
    /// KVM's counters over all repetitions, if they can be read.
    Ran { ticks: u64, iterations: u32, counted: Option<Counted> },
    /// It did not run, so nothing is known of ring 0 here, and no time is a latency. `why` is a clause.
    Failed { why: String },
}

/// KVM's counters while the loop ran (KVM_GET_STATS_FD).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Instructions that the loop executed.
    pub instructions: u64,
    /// Those that KVM's emulator executed, of all instructions: `insn_emulation`.
    pub emulated: u64,
    /// VM exits: `exits`.
    pub exits: u64,
}

impl Calibration {
    /// Returns whether something else than the processor executes ring 0.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        match self {
            Self::Ran { ticks, iterations, counted } => {
                *ticks > MOST_TICKS * u64::from(*iterations)
                    || counted.is_some_and(|counted| counted.emulated > counted.instructions / 2)
            }
            Self::Failed { .. } => true,
        }
    }
}

impl fmt::Display for Calibration {
    /// Writes a clause: `a loop of two instructions takes 1.0 ticks an iteration in ring 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran { ticks, iterations, counted } => {
                let iteration = *ticks as f64 / f64::from(*iterations);
                write!(f, "a loop of two instructions takes {iteration:.1} ticks an iteration in ring 0")?;
                counted.map_or(Ok(()), |Counted { instructions, emulated, exits }| {
                    write!(f, ", and KVM emulated {emulated} of {instructions} instructions ({exits} exits)")
                })
            }
            Self::Failed { why } => write!(f, "no loop could be timed in ring 0: {why}"),
        }
    }
}

pub(super) fn calibrate(kvm: &Kvm) -> Calibration {
    let ran = kvm.with_vm(MEMORY, PATIENCE, |vm, alarm| {
        vm.load(&CODE, CODE_AT)?;
        for (at, entry) in [(PML4_AT, PDPT_AT | TABLE), (PDPT_AT, PAGES_AT | TABLE), (PAGES_AT, PAGE)] {
            vm.load(&entry.to_le_bytes(), at)?;
        }
        vm.enter(CODE_AT, |sregs| long(sregs, PML4_AT))?;
        sample(vm, alarm)
    });
    ran.unwrap_or_else(|error| Calibration::Failed { why: error.to_string() })
}

fn sample(vm: &mut Vm, alarm: &Alarm) -> Result<Calibration, KvmError> {
    let before = statistics::read(&vm.vcpu);
    let mut ticks = u64::MAX;
    for _ in 0..SAMPLES {
        if let Some(why) = run::run(vm, alarm, &mut Vec::new()) {
            return Ok(Calibration::Failed { why });
        }
        ticks = ticks.min(vm.vcpu.get_regs().map_err(failed("KVM_GET_REGS"))?.rax);
    }
    let counted = before.zip(statistics::read(&vm.vcpu)).map(|(before, after)| Counted {
        instructions: u64::from(SAMPLES) * (u64::from(ITERATIONS) * INSTRUCTIONS_AN_ITERATION + AROUND),
        emulated: after.emulated.saturating_sub(before.emulated),
        exits: after.exits.saturating_sub(before.exits),
    });
    Ok(Calibration::Ran { ticks, iterations: ITERATIONS, counted })
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    use super::*;

    #[test]
    fn the_code_is_what_is_said_beside_it() {
        let decoder = Decoder::with_ip(64, &CODE, CODE_AT, DecoderOptions::NONE);
        let code: Vec<_> = decoder.into_iter().collect();
        assert!(code.iter().all(|instruction| !instruction.is_invalid()));
        assert_eq!(code[0].immediate32(), ITERATIONS);
        let dec = code.iter().position(|instruction| instruction.mnemonic() == Mnemonic::Dec).unwrap();
        assert_eq!(code[dec + 1].mnemonic(), Mnemonic::Jne);
        assert_eq!(code[dec + 1].near_branch_target(), code[dec].ip());
        let last = code.last().unwrap();
        assert_eq!((last.mnemonic(), last.near_branch_target()), (Mnemonic::Jmp, CODE_AT));
        assert_eq!(code.len() as u64, AROUND + INSTRUCTIONS_AN_ITERATION);
    }

    #[test]
    fn either_figure_tells_an_emulator() {
        let ran = |ticks, emulated: Option<u64>| Calibration::Ran {
            ticks,
            iterations: 1000,
            counted: emulated.map(|emulated| Counted { instructions: 2000, emulated, exits: 7 }),
        };
        assert!(!ran(1300, Some(0)).is_emulated());
        assert!(!ran(1300, None).is_emulated());
        assert!(ran(1300, Some(1900)).is_emulated());
        let why = "a loop of two instructions takes 2800.0 ticks an iteration in ring 0, \
                   and KVM emulated 2000 of 2000 instructions (7 exits)";
        let ran = ran(2_800_000, Some(2000));
        assert_eq!((ran.is_emulated(), ran.to_string().as_str()), (true, why));
        let failed = Calibration::Failed { why: "it halted".to_owned() };
        assert!(failed.is_emulated());
        assert_eq!(failed.to_string(), "no loop could be timed in ring 0: it halted");
    }
}
