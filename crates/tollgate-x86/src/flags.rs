//! RFLAGS (SDM 1, "EFLAGS register"; APM 1, "Flags register").

use crate::register::bits_of;

bits_of! {
    /// RFLAGS, or the part of it that a frame holds. SDM 1, "EFLAGS register".
    Rflags {
        CF = 0, "Carry.";
        FIXED = 1, "Always set.";
        PF = 2, "Parity.";
        AF = 4, "Auxiliary carry.";
        ZF = 6, "Zero.";
        SF = 7, "Sign.";
        TF = 8, "Trap after each instruction.";
        IF = 9, "Maskable interrupts are taken.";
        DF = 10, "String instructions go downwards.";
        OF = 11, "Overflow.";
        NT = 14, "Nested task: IRET returns through the task link.";
        RF = 16, "Instruction breakpoints are ignored for one instruction.";
        VM = 17, "Virtual-8086 mode.";
        AC = 18, "Alignment check, and the kernel's leave to touch user pages under SMAP.";
        VIF = 19, "Virtual interrupt flag.";
        VIP = 20, "Virtual interrupt pending.";
        ID = 21, "CPUID is available.";
    }
}

impl Rflags {
    const IOPL: u32 = 12;

    /// Returns the I/O privilege level, 0 to 3.
    pub const fn iopl(self) -> u8 {
        (self.0 >> Self::IOPL & 0b11) as u8
    }

    /// Returns the flags with the low two bits of `level` as the I/O privilege level.
    #[must_use]
    pub const fn with_iopl(self, level: u8) -> Self {
        Self(self.0 & !(0b11 << Self::IOPL) | ((level & 0b11) as u64) << Self::IOPL)
    }

    /// Returns the flags after SYSCALL: every bit that is set in `mask` (IA32_FMASK, the APM's SFMASK) is cleared. SDM 2B,
    /// SYSCALL: `RFLAGS := RFLAGS AND NOT(IA32_FMASK)`; APM 3, SYSCALL.
    #[must_use]
    pub const fn masked_by(self, mask: Self) -> Self {
        Self(self.0 & !mask.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_of_the_mask_are_cleared() {
        let user = Rflags(0x246).with(Rflags::TF).with(Rflags::DF);
        let kernel = user.masked_by(Rflags(0x14700));
        assert_eq!(kernel, Rflags(0x046));
        assert!(kernel.has(Rflags::ZF) && !kernel.has(Rflags::IF));
    }

    #[test]
    fn the_privilege_level_is_a_number() {
        assert_eq!(Rflags(0x3000).iopl(), 3);
        assert_eq!(Rflags(0xffff_ffff).with_iopl(1).iopl(), 1);
        assert_eq!(Rflags(0).with_iopl(7), Rflags(0x3000));
    }
}
