//! The virtual counter of the generic timer (Arm ARM, D12.2).

use std::arch::asm;

use super::rseq::library;

/// Names the counter.
pub const NAME: &str = "cntvct";
/// Names the source of [`stated_rate`].
pub const RATE: &str = "CNTFRQ_EL0";

/// Reads the counter so that earlier instructions have ended and later ones have not begun: a reading may otherwise be made early
/// (Arm ARM, D12.2.2). Returns the processor too, as the kernel keeps it in the thread's rseq area; without an area, always the same
/// number.
///
/// # Safety
/// The process may read it (CNTKCTL_EL1.EL0VCTEN, which Linux sets; `PR_GET_TSC` of prctl(2)).
#[inline(always)]
pub unsafe fn start() -> (u64, u32) {
    let processor = processor();
    // SAFETY: by the caller's contract.
    (unsafe { fenced() }, processor)
}

/// Reads the counter after all earlier instructions, and holds back later ones.
///
/// # Safety
/// As for [`start`].
#[inline(always)]
pub unsafe fn end() -> (u64, u32) {
    // SAFETY: by the caller's contract.
    let ticks = unsafe { fenced() };
    (ticks, processor())
}

/// Reads the counter between two barriers.
///
/// # Safety
/// As for [`start`].
#[inline(always)]
pub unsafe fn fenced() -> u64 {
    let ticks: u64;
    // SAFETY: the instructions touch only the named register; the caller answers for the rest.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack)) };
    ticks
}

/// `cpu_id` of struct rseq (linux/rseq.h), the second word of four bytes.
#[inline(always)]
fn processor() -> u32 {
    let library = library();
    let Some(area) = library.area() else { return u32::MAX };
    // SAFETY: the library registered the area, which the kernel alone writes while the thread lives.
    unsafe { (area as *const u32).add(1).read_volatile() }
}

/// Every processor has the counter.
pub fn is_there() -> bool {
    true
}

/// The counter's rate never changes with the processor's frequency (Arm ARM, D12.1.2).
pub fn is_invariant() -> bool {
    true
}

/// Returns the counter's ticks per second, if the firmware stated them.
pub fn stated_rate() -> Option<u64> {
    let hz: u64;
    // SAFETY: EL0 may read the register wherever it may read the counter (Arm ARM, CNTKCTL_EL1).
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    // The upper 32 bits are reserved.
    let hz = hz & u64::from(u32::MAX);
    (hz != 0).then_some(hz)
}

/// A hypervisor states no other rate.
pub fn hypervisors_rate() -> Option<u64> {
    None
}
