//! Model-specific registers used by SYSENTER and SYSCALL (SDM 2B, SYSENTER, SYSCALL; SDM 4, "Architectural MSRs"; APM 2,
//! "Fast system call and return").

use crate::{Selector, Vendor};

/// Returns whether an address is canonical for linear addresses of `bits` bits, 48 or 57: its upper bits are copies of the
/// highest translated bit. SDM 1, "Canonical addressing".
pub const fn is_canonical(address: u64, bits: u32) -> bool {
    let unused = 64 - bits;
    ((address << unused) as i64 >> unused) as u64 == address
}

/// A model-specific register of kernel entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Msr {
    /// IA32_SYSENTER_CS, 174h: see [`SysenterCs`].
    SysenterCs,
    /// IA32_SYSENTER_ESP, 175h: the kernel's stack pointer.
    SysenterEsp,
    /// IA32_SYSENTER_EIP, 176h: the target of SYSENTER.
    SysenterEip,
    /// IA32_EFER, C0000080h: see [`Efer`](crate::Efer).
    Efer,
    /// IA32_STAR, C0000081h: see [`Star`].
    Star,
    /// IA32_LSTAR, C0000082h: the target of SYSCALL from 64-bit mode.
    Lstar,
    /// IA32_CSTAR, C0000083h: the target of SYSCALL from compatibility mode, on AMD processors.
    Cstar,
    /// IA32_FMASK, C0000084h, the APM's SFMASK: the flags that SYSCALL clears, see
    /// [`Rflags::masked_by`](crate::Rflags::masked_by).
    Fmask,
    /// IA32_FS_BASE, C0000100h.
    FsBase,
    /// IA32_GS_BASE, C0000101h.
    GsBase,
    /// IA32_KERNEL_GS_BASE, C0000102h: SWAPGS exchanges it with the GS base.
    KernelGsBase,
    /// IA32_TSC_AUX, C0000103h: RDTSCP and RDPID read it.
    TscAux,
}

impl Msr {
    /// All registers, by number.
    pub const ALL: [Self; 12] = [
        Self::SysenterCs,
        Self::SysenterEsp,
        Self::SysenterEip,
        Self::Efer,
        Self::Star,
        Self::Lstar,
        Self::Cstar,
        Self::Fmask,
        Self::FsBase,
        Self::GsBase,
        Self::KernelGsBase,
        Self::TscAux,
    ];

    /// Numbers, and the SDM's names without `IA32_`, in the order of `ALL`.
    const TABLE: [(u32, &str); Self::ALL.len()] = [
        (0x174, "SYSENTER_CS"),
        (0x175, "SYSENTER_ESP"),
        (0x176, "SYSENTER_EIP"),
        (0xc000_0080, "EFER"),
        (0xc000_0081, "STAR"),
        (0xc000_0082, "LSTAR"),
        (0xc000_0083, "CSTAR"),
        (0xc000_0084, "FMASK"),
        (0xc000_0100, "FS_BASE"),
        (0xc000_0101, "GS_BASE"),
        (0xc000_0102, "KERNEL_GS_BASE"),
        (0xc000_0103, "TSC_AUX"),
    ];

    /// Returns the number that RDMSR takes in ECX.
    pub const fn number(self) -> u32 {
        Self::TABLE[self as usize].0
    }

    /// Returns the register with this number.
    pub fn by_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|msr| msr.number() == number)
    }

    /// Returns whether it holds a linear address, which WRMSR requires to be canonical: SDM 2B, WRMSR; APM 2, "Canonical
    /// address form". Only Intel's processors check the two of SYSENTER.
    pub const fn is_canonical(self) -> bool {
        matches!(
            self,
            Self::SysenterEsp
                | Self::SysenterEip
                | Self::Lstar
                | Self::Cstar
                | Self::FsBase
                | Self::GsBase
                | Self::KernelGsBase
        )
    }

    /// Returns its name in the SDM, without `IA32_`.
    pub const fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }
}

/// IA32_STAR: the selectors that SYSCALL and SYSRET load, and the target of SYSCALL outside long mode. SDM 3A, "Fast system
/// calls in 64-bit mode"; APM 2, "SYSCALL and SYSRET".
///
/// Both instructions set the hidden parts of the segments to fixed values without reading the descriptor tables. The tables
/// must agree, because the next load of these selectors reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Star(
    /// Base of SYSRET's selectors in bits 63 to 48, of SYSCALL's in 47 to 32, EIP in 31 to 0.
    pub u64,
);

impl Star {
    /// Builds the register from its three parts.
    pub const fn new(sysret: Selector, syscall: Selector, eip: u32) -> Self {
        Self((sysret.0 as u64) << 48 | (syscall.0 as u64) << 32 | eip as u64)
    }

    /// Returns bits 63 to 48, the base of SYSRET's selectors.
    pub const fn sysret(self) -> Selector {
        Selector((self.0 >> 48) as u16)
    }

    /// Returns bits 47 to 32, the base of SYSCALL's selectors.
    pub const fn syscall(self) -> Selector {
        Selector((self.0 >> 32) as u16)
    }

    /// Returns bits 31 to 0: EIP after SYSCALL outside long mode, on AMD processors.
    pub const fn legacy_eip(self) -> u32 {
        self.0 as u32
    }

    /// Returns CS after SYSCALL: bits 47 to 32 with privilege level 0.
    pub const fn syscall_cs(self) -> Selector {
        self.syscall().with_rpl(0)
    }

    /// Returns SS after SYSCALL: bits 47 to 32, plus 8. Unlike that of CS, its privilege level is not masked (SDM 2B and
    /// APM 3, SYSCALL).
    pub const fn syscall_ss(self) -> Selector {
        Selector(self.syscall().0.wrapping_add(8))
    }

    /// Returns CS after SYSRET to 32-bit code: bits 63 to 48 with privilege level 3.
    pub const fn sysret32_cs(self) -> Selector {
        self.sysret().with_rpl(3)
    }

    /// Returns CS after SYSRET to 64-bit code: bits 63 to 48, plus 16, with privilege level 3.
    pub const fn sysret64_cs(self) -> Selector {
        Selector(self.sysret().0.wrapping_add(16)).with_rpl(3)
    }

    /// Returns SS after SYSRET according to the SDM: bits 63 to 48, plus 8, with privilege level 3. See
    /// [`Star::sysret_ss_of`].
    pub const fn sysret_ss(self) -> Selector {
        self.sysret_ss_of(Vendor::Intel)
    }

    /// Returns SS after SYSRET on one vendor's processors: bits 63 to 48, plus 8. The privilege level is 3 according to the
    /// SDM; according to the APM it is bits 49 and 48, which should be 3.
    pub const fn sysret_ss_of(self, vendor: Vendor) -> Selector {
        let selector = Selector(self.sysret().0.wrapping_add(8));
        match vendor {
            Vendor::Intel => selector.with_rpl(3),
            Vendor::Amd => selector,
        }
    }
}

/// IA32_SYSENTER_CS, the base of the selectors that SYSENTER and SYSEXIT load. SDM 2B, SYSENTER and SYSEXIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SysenterCs(
    /// The selector in bits 15 to 0; the rest is ignored.
    pub u64,
);

impl SysenterCs {
    const fn plus(self, distance: u16, rpl: u8) -> Selector {
        Selector((self.0 as u16 & !0b11).wrapping_add(distance)).with_rpl(rpl)
    }

    /// Returns whether SYSENTER and SYSEXIT fault, because bits 15 to 2 are 0.
    pub const fn is_null(self) -> bool {
        Selector(self.0 as u16).is_null()
    }

    /// Returns CS after SYSENTER.
    pub const fn sysenter_cs(self) -> Selector {
        self.plus(0, 0)
    }

    /// Returns SS after SYSENTER: the base plus 8.
    pub const fn sysenter_ss(self) -> Selector {
        self.plus(8, 0)
    }

    /// Returns CS after SYSEXIT to 32-bit code: the base plus 16.
    pub const fn sysexit32_cs(self) -> Selector {
        self.plus(16, 3)
    }

    /// Returns SS after SYSEXIT to 32-bit code: the base plus 24.
    pub const fn sysexit32_ss(self) -> Selector {
        self.plus(24, 3)
    }

    /// Returns CS after SYSEXIT to 64-bit code: the base plus 32.
    pub const fn sysexit64_cs(self) -> Selector {
        self.plus(32, 3)
    }

    /// Returns SS after SYSEXIT to 64-bit code: the base plus 40.
    pub const fn sysexit64_ss(self) -> Selector {
        self.plus(40, 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_s_star_counts_its_own_selectors() {
        let star = Star::new(Selector(0x23), Selector(0x10), 0);
        assert_eq!(star, Star(0x0023_0010_0000_0000));
        assert_eq!((star.syscall_cs(), star.syscall_ss()), (Selector(0x10), Selector(0x18)));
        assert_eq!((star.sysret64_cs(), star.sysret_ss()), (Selector(0x33), Selector(0x2b)));
    }

    #[test]
    fn selectors_wrap_and_never_panic() {
        assert_eq!(Star(u64::MAX).sysret64_cs(), Selector(0x000f));
        assert_eq!(SysenterCs(u64::MAX).sysexit64_ss(), Selector(0x0027));
        assert!(SysenterCs(0x1_0003).is_null());
    }

    #[test]
    fn numbers_and_registers_are_one_to_one() {
        for msr in Msr::ALL {
            assert_eq!(Msr::by_number(msr.number()), Some(msr));
        }
        assert_eq!(Msr::by_number(0x10), None);
        assert!(Msr::ALL.is_sorted_by_key(|msr| msr.number()));
    }
}
