use tollgate_x86::{AccessRights, Cr0, Cr4, Efer, Msr, Star, Width};

use crate::joined::Weight::{self, Hint, Proof, Strong};
use crate::joined::{Reason, WidthFound};
use crate::piece::{Form, Piece, Register, SegmentRegister, What};

pub(crate) type Sign = (Width, Weight, &'static str);

const LARGE: Sign = long(Proof, "an address has more than 32 bits");

fn is_large(address: u64) -> bool {
    address > u64::from(u32::MAX)
}

pub(crate) fn sign_of(piece: &Piece) -> Option<Sign> {
    match &piece.what {
        What::Form(form) => Some(of_form(*form)),
        What::Bytes { address: Some(address), .. } => is_large(*address).then_some(LARGE),
        What::TableRegister { base: Some(base), .. } => is_large(*base).then_some(LARGE),
        What::Segment { register, hidden: Some(hidden), .. } => {
            of_segment(*register, hidden.base, hidden.rights)
        }
        What::Register { register, value } => of_register(*register, *value),
        What::Msr { number, value } => of_msr(Msr::by_number(*number)?, *value),
        What::Base { base, .. } => is_large(*base).then_some(LARGE),
        What::Gate(gate) => gate.offset.is_some_and(is_large).then_some(LARGE),
        // L is reserved outside long mode, but a table may be built before the mode is entered.
        What::Descriptor(printed) => {
            let is_long_code =
                printed.flags.is_some_and(|flags| flags & printed.mask & 0x200 != 0 && flags & 0x18 == 0x18);
            is_long_code.then_some(long(Hint, "a code descriptor has L set"))
        }
        _ => None,
    }
}

const fn long(weight: Weight, why: &'static str) -> Sign {
    (Width::Long, weight, why)
}

const fn legacy(weight: Weight, why: &'static str) -> Sign {
    (Width::Legacy, weight, why)
}

const fn of_form(form: Form) -> Sign {
    match form {
        Form::DebuggerWide => long(Proof, "the debugger prints addresses of 64 bits"),
        Form::DebuggerNarrow => legacy(Strong, "the debugger prints addresses of 32 bits"),
        Form::NarrowTableRegister => legacy(Proof, "the debugger prints the table's address in 32 bits"),
        Form::QemuLong => {
            long(Proof, "QEMU prints table registers in 64 bits, as it does while EFER.LMA is set")
        }
        Form::QemuLegacy => {
            legacy(Proof, "QEMU prints table registers in 32 bits, as it does while EFER.LMA is clear")
        }
        Form::LongName => long(Proof, "a name occurs that only 64-bit systems have"),
        Form::LegacyName => legacy(Proof, "a name occurs that only 32-bit systems have"),
        Form::WideRegisters => long(Hint, "the instruction pointer is called RIP"),
        Form::NarrowRegisters => legacy(Hint, "the instruction pointer is called EIP"),
        Form::BochsLong => long(Proof, "Bochs logs that the processor is in long mode"),
        Form::BochsLegacy => legacy(Proof, "Bochs logs that the processor is not in long mode"),
    }
}

fn of_segment(register: SegmentRegister, base: u64, rights: Option<AccessRights>) -> Option<Sign> {
    let is_long_code = rights.is_some_and(|rights| rights.0 & 1 << 21 != 0 && rights.0 >> 8 & 0x98 == 0x98);
    if register == SegmentRegister::Cs && is_long_code {
        return Some(long(Proof, "the processor runs code with L set"));
    }
    is_large(base).then_some(long(Proof, "a segment's base has more than 32 bits"))
}

fn of_register(register: Register, value: u64) -> Option<Sign> {
    match register {
        Register::RIP | Register::RSP => is_large(value).then_some(LARGE),
        Register::CR0 => {
            (value & Cr0::PG.0 == 0).then_some(legacy(Proof, "CR0.PG is clear, and long mode needs paging"))
        }
        Register::CR4 => {
            (value & Cr4::FRED.0 != 0).then_some(long(Proof, "CR4.FRED is set, which is for long mode"))
        }
        _ => None,
    }
}

fn of_msr(msr: Msr, value: u64) -> Option<Sign> {
    match msr {
        Msr::Efer if Efer(value).has(Efer::LMA) => Some(long(Proof, "EFER.LMA is set")),
        Msr::Efer => Some(legacy(Proof, "EFER.LMA is clear")),
        Msr::Lstar | Msr::Cstar | Msr::SysenterEip | Msr::SysenterEsp if is_large(value) => {
            Some(long(Proof, "an MSR of kernel entry holds an address of more than 32 bits"))
        }
        Msr::Star if is_of_long_mode(Star(value)) => {
            Some(long(Strong, "STAR has selectors but no EIP, which only long mode does not need"))
        }
        Msr::Fmask if value != 0 => Some(long(Strong, "FMASK is set, which is for long mode")),
        // A 64-bit kernel is in the upper half of the address space, a 32-bit one in the upper part of 4 GiB.
        Msr::SysenterEip if value >= 1 << 30 => Some(legacy(Hint, "SYSENTER_EIP is an address of 32 bits")),
        _ => None,
    }
}

/// Outside long mode SYSCALL jumps to the EIP in the low half (APM 2, "SYSCALL and SYSRET").
fn is_of_long_mode(star: Star) -> bool {
    star.legacy_eip() == 0 && !star.syscall().is_null() && !star.sysret().is_null()
}

/// Returns the strongest evidence for each form, if it is at least this strong.
pub(crate) fn strongest(signs: impl Iterator<Item = Sign>, least: Weight) -> [Option<Weight>; 2] {
    let mut strongest = [None; 2];
    for (width, weight, _) in signs.filter(|(_, weight, _)| *weight >= least) {
        let place = &mut strongest[usize::from(width == Width::Long)];
        *place = (*place).max(Some(weight));
    }
    strongest
}

impl WidthFound {
    pub(crate) fn note(&mut self, line: Option<usize>, (width, weight, why): Sign) {
        if !self.reasons.iter().any(|reason| reason.why == why) {
            self.reasons.push(Reason { line, width, weight, why: why.to_owned() });
        }
    }

    pub(crate) fn decide(&mut self) {
        self.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
        let signs = || self.reasons.iter().map(|reason| (reason.width, reason.weight, ""));
        let [legacy, long] = strongest(signs(), Weight::Hint);
        self.width = match legacy.cmp(&long) {
            std::cmp::Ordering::Less => Some(Width::Long),
            std::cmp::Ordering::Greater => Some(Width::Legacy),
            std::cmp::Ordering::Equal => None,
        };
        self.is_certain = self.width.is_some() && legacy.max(long) >= Some(Weight::Proof);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stronger_sign_counts_and_equal_ones_do_not_decide() {
        let mut found = WidthFound::default();
        found.decide();
        assert_eq!((found.width, found.is_certain), (None, false));
        found.note(Some(1), (Width::Long, Weight::Hint, "a"));
        found.decide();
        assert_eq!((found.width, found.is_certain), (Some(Width::Long), false));
        found.note(Some(2), (Width::Legacy, Weight::Proof, "b"));
        found.note(Some(3), (Width::Legacy, Weight::Proof, "b"));
        found.decide();
        assert_eq!((found.width, found.is_certain, found.reasons.len()), (Some(Width::Legacy), true, 2));
        assert_eq!(found.reasons[0].line, Some(2));
        found.note(Some(4), (Width::Long, Weight::Proof, "c"));
        found.decide();
        assert_eq!((found.width, found.is_certain), (None, false));
    }

    #[test]
    fn registers_and_msrs() {
        assert_eq!(of_register(Register::CR0, 0x8005_0033), None);
        assert_eq!(of_register(Register::CR0, 0x11).map(|sign| sign.0), Some(Width::Legacy));
        assert_eq!(of_msr(Msr::Efer, 0xd01).map(|sign| sign.0), Some(Width::Long));
        assert_eq!(
            of_msr(Msr::SysenterEip, 0x8086_5710),
            Some((Width::Legacy, Weight::Hint, "SYSENTER_EIP is an address of 32 bits"))
        );
        assert_eq!(of_msr(Msr::SysenterCs, 8), None);
        assert_eq!(of_msr(Msr::Star, 0x0023_0010_0000_0000).map(|sign| sign.0), Some(Width::Long));
        assert_eq!(of_msr(Msr::Star, 0x001b_0008_8050_1234), None, "a kernel of K6 processors");
    }
}
