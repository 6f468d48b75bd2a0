//! The time stamp counter.

use std::arch::asm;
use std::arch::x86_64::{_mm_lfence, _rdtsc};

use super::cpuid::cpuid;

/// Names the counter.
pub const NAME: &str = "tsc";
/// Names the source of [`stated_rate`].
pub const RATE: &str = "CPUID.15H";

/// Reads the counter so that earlier instructions have ended and later ones have not begun. `lfence` waits for all earlier
/// instructions, `rdtscp` names the processor (IA32_TSC_AUX), and the second `lfence` holds back what follows (Intel SDM vol. 2,
/// RDTSC and RDTSCP; AMD APM vol. 3 with DE_CFG\[1\] set, as Linux does). Returns the processor too.
///
/// # Safety
/// The processor has the instruction ([`is_there`]), and the process may execute it (`PR_GET_TSC` of prctl(2)).
#[inline(always)]
pub unsafe fn start() -> (u64, u32) {
    let (low, high, aux): (u32, u32, u32);
    // SAFETY: the instructions touch only the named registers; the caller answers for the rest.
    unsafe {
        asm!("lfence", "rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") aux, options(nostack));
    }
    (u64::from(high) << 32 | u64::from(low), aux)
}

/// Reads the counter after all earlier instructions: `rdtscp` waits for them, and `lfence` holds back later ones.
///
/// # Safety
/// As for [`start`].
#[inline(always)]
pub unsafe fn end() -> (u64, u32) {
    let (low, high, aux): (u32, u32, u32);
    // SAFETY: as in `start`.
    unsafe {
        asm!("rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") aux, options(nostack));
    }
    (u64::from(high) << 32 | u64::from(low), aux)
}

/// Reads the counter between two fences, by RDTSC, which every x86-64 processor has.
///
/// # Safety
/// The process may execute it (`PR_GET_TSC` of prctl(2)).
#[inline(always)]
pub unsafe fn fenced() -> u64 {
    // SAFETY: every x86-64 processor has both instructions; the caller answers for the rest.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Whether the processor has RDTSCP: CPUID.80000001H:EDX\[27\].
pub fn is_there() -> bool {
    cpuid(0x8000_0000, 0).eax >= 0x8000_0001 && cpuid(0x8000_0001, 0).edx & 1 << 27 != 0
}

/// Whether the counter's rate stays the same when the processor's frequency changes: CPUID.80000007H:EDX\[8\].
pub fn is_invariant() -> bool {
    cpuid(0x8000_0000, 0).eax >= 0x8000_0007 && cpuid(0x8000_0007, 0).edx & 1 << 8 != 0
}

/// Returns the counter's ticks per second, if the processor states them.
pub fn stated_rate() -> Option<u64> {
    if cpuid(0, 0).eax < 0x15 {
        return None;
    }
    // SDM vol. 2, CPUID leaf 15H: TSC Hz = ECX * EBX / EAX, each possibly not enumerated (0).
    let leaf = cpuid(0x15, 0);
    let is_stated = leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0;
    is_stated.then(|| u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax))
}

/// Returns the counter's ticks per second, if a hypervisor states them: leaf 4000_0010H, in kHz.
pub fn hypervisors_rate() -> Option<u64> {
    let hypervisor = cpuid(1, 0).ecx & 1 << 31 != 0;
    if !hypervisor || !(0x4000_0010..0x4000_0100).contains(&cpuid(0x4000_0000, 0).eax) {
        return None;
    }
    let khz = cpuid(0x4000_0010, 0).eax;
    (khz != 0).then(|| u64::from(khz) * 1000)
}
