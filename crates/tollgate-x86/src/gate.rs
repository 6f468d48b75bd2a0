//! Call, interrupt, trap and task gates (SDM 3A, "Call gates", "IDT descriptors" and "64-bit mode
//! IDT"; APM 2, "Gate descriptors").

use crate::{Selector, SystemKind, Width};

/// A gate of 8 bytes, outside long mode. SDM 3A, figures "Call-gate descriptor" and "IDT gate descriptors".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Gate {
    /// Target offset in the code segment. A 16-bit gate reserves the upper half, a task gate all of it.
    pub offset: u32,
    /// Selector of the target code segment, or of the TSS for a task gate.
    pub selector: Selector,
    /// Byte 4. In a call gate, bits 4 to 0 are the number of parameters to copy. Everything else is reserved.
    pub byte_4: u8,
    /// Type, 4 bits.
    pub kind: u8,
    /// Clear for a gate. If set, the bytes are a code or data segment.
    pub s: bool,
    /// Descriptor privilege level, 0 to 3: the least privileged level whose instructions may use the gate.
    pub dpl: u8,
    /// Present.
    pub p: bool,
}

/// A gate of 16 bytes, in long mode. SDM 3A, figures "Call-gate descriptor in IA-32e mode" and "64-bit IDT gate
/// descriptors"; APM 2, "Gate descriptors".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WideGate {
    /// The first 8 bytes, laid out like an 8-byte gate. `offset` holds bits 31 to 0; bits 2 to 0 of `byte_4` select a stack
    /// in the interrupt stack table.
    pub low: Gate,
    /// Bits 63 to 32 of the offset: bytes 8 to 11.
    pub offset_high: u32,
    /// Bytes 12 to 15. In a call gate, bits 12 to 8 must be 0.
    pub reserved: u32,
}

/// The kind of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateKind {
    /// Entered by CALL or JMP; may copy parameters from the old stack to the new one.
    Call,
    /// Entered by an event, which clears RFLAGS.IF.
    Interrupt,
    /// Entered by an event, which leaves RFLAGS.IF alone.
    Trap,
    /// Switches to a task.
    Task,
}

impl Gate {
    /// Decodes the bytes.
    pub const fn decode(bytes: [u8; 8]) -> Self {
        let raw = u64::from_le_bytes(bytes);
        Self {
            offset: (raw & 0xffff | raw >> 32 & 0xffff_0000) as u32,
            selector: Selector((raw >> 16) as u16),
            byte_4: (raw >> 32) as u8,
            kind: (raw >> 40 & 0xf) as u8,
            s: raw >> 44 & 1 == 1,
            dpl: (raw >> 45 & 0b11) as u8,
            p: raw >> 47 & 1 == 1,
        }
    }

    /// Returns the bytes. Bits of `kind` and `dpl` beyond their fields are dropped.
    pub const fn encode(self) -> [u8; 8] {
        let offset = self.offset as u64;
        let access = (self.byte_4 as u64) << 32
            | (self.kind as u64 & 0xf) << 40
            | (self.s as u64) << 44
            | (self.dpl as u64 & 0b11) << 45
            | (self.p as u64) << 47;
        let raw = offset & 0xffff | (self.selector.0 as u64) << 16 | access | (offset >> 16) << 48;
        raw.to_le_bytes()
    }

    /// Returns the kind, and whether stack slots are 2 bytes wide instead of 4 or 8. `None` if the type is not a gate's, or
    /// not one of this width.
    pub const fn gate_kind(&self, width: Width) -> Option<(GateKind, bool)> {
        let kind = SystemKind::from_type(self.kind);
        if self.s || !kind.is_in(width) {
            return None;
        }
        match kind {
            SystemKind::CallGate => Some((GateKind::Call, false)),
            SystemKind::CallGate16 => Some((GateKind::Call, true)),
            SystemKind::InterruptGate => Some((GateKind::Interrupt, false)),
            SystemKind::InterruptGate16 => Some((GateKind::Interrupt, true)),
            SystemKind::TrapGate => Some((GateKind::Trap, false)),
            SystemKind::TrapGate16 => Some((GateKind::Trap, true)),
            SystemKind::TaskGate => Some((GateKind::Task, false)),
            _ => None,
        }
    }

    /// Returns how many parameters a call gate outside long mode copies, each as wide as the gate.
    pub const fn parameters(&self) -> u8 {
        self.byte_4 & 0b1_1111
    }
}

impl WideGate {
    /// Decodes the bytes.
    pub const fn decode(bytes: [u8; 16]) -> Self {
        let raw = u128::from_le_bytes(bytes);
        Self {
            low: Gate::decode((raw as u64).to_le_bytes()),
            offset_high: (raw >> 64) as u32,
            reserved: (raw >> 96) as u32,
        }
    }

    /// Returns the bytes.
    pub const fn encode(self) -> [u8; 16] {
        let low = u64::from_le_bytes(self.low.encode()) as u128;
        (low | (self.offset_high as u128) << 64 | (self.reserved as u128) << 96).to_le_bytes()
    }

    /// Returns a gate that is present and leads to `offset` in the segment of `selector`. `kind` is one of long mode's:
    /// call, interrupt or trap gate. Only the low three bits of `ist` count; 0 selects no stack of the table.
    pub const fn new(kind: GateKind, selector: Selector, offset: u64, dpl: u8, ist: u8) -> Self {
        let kind = match kind {
            GateKind::Call => 0xc,
            GateKind::Interrupt => 0xe,
            GateKind::Trap => 0xf,
            GateKind::Task => 0x5,
        };
        let low = Gate { offset: offset as u32, selector, byte_4: ist & 0b111, kind, s: false, dpl, p: true };
        Self { low, offset_high: (offset >> 32) as u32, reserved: 0 }
    }

    /// Returns the target offset in the code segment.
    pub const fn offset(&self) -> u64 {
        (self.offset_high as u64) << 32 | self.low.offset as u64
    }

    /// Returns the number of its stack in the interrupt stack table, 1 to 7; 0 for none.
    pub const fn ist(&self) -> u8 {
        self.low.byte_4 & 0b111
    }

    /// Returns whether the bits of a call gate that must be 0 are 0. Otherwise a selector of the upper 8 bytes would find a
    /// descriptor.
    pub const fn is_well_formed(&self) -> bool {
        self.reserved >> 8 & 0b1_1111 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_and_encode_are_inverses(bytes: [u8; 16]) {
            let low: [u8; 8] = bytes[..8].try_into().unwrap();
            prop_assert_eq!(Gate::decode(low).encode(), low);
            prop_assert_eq!(WideGate::decode(bytes).encode(), bytes);
        }
    }

    #[test]
    fn a_made_gate_is_read_back() {
        let gate = WideGate::new(GateKind::Interrupt, Selector(0x10), 0xffff_ffff_8100_1234, 3, 2);
        let again = WideGate::decode(gate.encode());
        assert_eq!(again.offset(), 0xffff_ffff_8100_1234);
        assert_eq!(again.low.gate_kind(Width::Long), Some((GateKind::Interrupt, false)));
        assert_eq!((again.ist(), again.low.dpl, again.low.p), (2, 3, true));
    }

    #[test]
    fn long_mode_has_no_task_gates_and_none_of_16_bits() {
        let of = |kind, width| Gate { kind, ..Gate::default() }.gate_kind(width);
        assert_eq!(of(0x5, Width::Legacy), Some((GateKind::Task, false)));
        assert_eq!(of(0x6, Width::Legacy), Some((GateKind::Interrupt, true)));
        assert_eq!(of(0x5, Width::Long), None);
        assert_eq!(of(0x6, Width::Long), None);
        assert_eq!(of(0x9, Width::Legacy), None, "a TSS is no gate");
    }
}
