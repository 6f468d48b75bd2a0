//! Features of the processor.

/// Operations on memory that are atomic in one instruction: LSE of Armv8.1 (HWCAP_ATOMICS).
pub fn has_atomics() -> bool {
    std::arch::is_aarch64_feature_detected!("lse")
}

/// DC ZVA, which sets a block of memory to zero. DZP of DCZID_EL0 prohibits it (Arm ARM, D19.2).
pub fn has_zva() -> bool {
    const DZP: u64 = 1 << 4;
    let id: u64;
    // SAFETY: programs may read this register, and nothing else is changed.
    unsafe { std::arch::asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    id & DZP == 0
}

/// Whether the kernel executes reads of ID registers, which are undefined in EL0, and answers them (HWCAP_CPUID).
pub fn emulates_id_registers() -> bool {
    const CPUID: u64 = 1 << 11;
    // SAFETY: getauxval(3) has no preconditions.
    unsafe { libc::getauxval(libc::AT_HWCAP) & CPUID != 0 }
}

/// TLBI reaches all processors without an interrupt (arch/arm64/include/asm/tlbflush.h).
pub const FLUSHES_BY_INTERRUPTS: bool = false;

/// Only x86-64 has this extension.
pub fn has_avx2() -> bool {
    false
}

/// Only x86-64 has this extension.
pub fn has_avx512() -> bool {
    false
}
