//! The calibration loop.

use std::time::Duration;

use crate::alarm::Alarm;
use crate::refused::failed;
use crate::state::long;
use crate::vm::Vm;
use crate::{Calibration, Counted, KvmError, run, statistics};

const ITERATIONS: u32 = 1000;
const INSTRUCTIONS_AN_ITERATION: u64 = 2;
/// Instructions around the loop.
const AROUND: u64 = 14;
/// Repetitions; the shortest counts.
const SAMPLES: u32 = 8;
/// An emulator needs some 30 ms for all repetitions.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Code and tables fit into one page of 2 MiB.
pub(super) const MEMORY: usize = 2 << 20;
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

pub(super) fn calibrate(vm: &mut Vm, alarm: &Alarm) -> Result<Calibration, KvmError> {
    vm.load(&CODE, CODE_AT)?;
    for (at, entry) in [(PML4_AT, PDPT_AT | TABLE), (PDPT_AT, PAGES_AT | TABLE), (PAGES_AT, PAGE)] {
        vm.load(&entry.to_le_bytes(), at)?;
    }
    vm.enter(CODE_AT, |sregs| long(sregs, PML4_AT))?;
    sample(vm, alarm)
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
}
