use crate::{GateKind, Rflags};

use super::machine::Machine;
use super::number::Number;
use super::registers::Register;
use super::step::{FlagsBy, Step};

/// The flags that SYSRET can set: all that are defined except RF and VM. SDM 2B, SYSRET: `(R11 & 3C7FD7H) | 2`.
const SYSRET: u64 = 0x003c_7fd7;

impl FlagsBy {
    /// Returns the flags that a gate clears. SDM 2A, INT n.
    pub(super) const fn gate(kind: GateKind) -> Self {
        let all = Rflags::TF.with(Rflags::NT).with(Rflags::RF).with(Rflags::VM);
        match kind {
            GateKind::Interrupt => Self::Gate(kind, all.with(Rflags::IF)),
            _ => Self::Gate(kind, all),
        }
    }

    /// Returns the new flags. `image` is the value that IRET read or that R11 holds.
    fn apply(self, before: Option<u64>, image: Option<u64>) -> Option<u64> {
        let fixed = Rflags::FIXED.0;
        match self {
            Self::Gate(_, bits) | Self::Cleared(bits) => Some(before? & !bits.0),
            Self::Mask(mask) => Some(Rflags(before?).masked_by(mask?.with(Rflags::RF)).0 | fixed),
            Self::Set(bits) => Some(before? | bits.0),
            Self::Popped(bits) => match before {
                Some(before) => Some(before & !bits.0 | image? & bits.0),
                // At level 0 all named flags are read except VM, which is clear.
                None if bits.iopl() == 3 && bits.has(Rflags::RF) => Some(image? & bits.0 | fixed),
                None => None,
            },
            Self::R11 => Some(image? & SYSRET | fixed),
        }
    }
}

pub(super) fn change(machine: &mut impl Machine, by: FlagsBy, image: Option<u64>, bytes: u8) {
    let before = machine.register(Register::Rflags);
    let after = by.apply(before, image);
    machine.set_register(Register::Rflags, after);
    machine.step(&Step::Flags { before: Number::new(before, bytes), after: Number::new(after, bytes), by });
}

/// Returns the flags that IRET loads from the stack at level `cpl`. SDM 2A, IRET.
pub(super) fn popped_by_iret(cpl: u8, iopl: u8, has_upper_half: bool) -> Rflags {
    let mut bits = [
        Rflags::CF,
        Rflags::PF,
        Rflags::AF,
        Rflags::ZF,
        Rflags::SF,
        Rflags::TF,
        Rflags::DF,
        Rflags::OF,
        Rflags::NT,
    ]
    .into_iter()
    .fold(Rflags(0), Rflags::with);
    if has_upper_half {
        bits = bits.with(Rflags::RF).with(Rflags::AC).with(Rflags::ID);
    }
    if cpl <= iopl {
        bits = bits.with(Rflags::IF);
    }
    if cpl == 0 {
        bits = bits.with_iopl(3);
        if has_upper_half {
            bits = bits.with(Rflags::VIF).with(Rflags::VIP);
        }
    }
    bits
}
