//! Segment descriptors and system-segment descriptors (SDM 3A, "Segment descriptors" and "System descriptor
//! types"; APM 2, "Legacy segment descriptors" and "Long-mode segment descriptors").

use crate::Width;

/// An entry of 8 bytes in the GDT or an LDT. SDM 3A, "Segment descriptors"; APM 2, "Legacy segment descriptors".
///
/// If `s` is clear and the type is that of a gate, the same bytes are a [`Gate`](crate::Gate).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Descriptor {
    /// Base address of the segment: bytes 2, 3, 4 and 7.
    pub base: u32,
    /// Limit, 20 bits, in bytes or in units of 4 KiB, see [`Descriptor::effective_limit`].
    pub limit: u32,
    /// Type, 4 bits, whose meaning depends on `s`.
    pub kind: u8,
    /// Set for code and data; clear for system segments and gates.
    pub s: bool,
    /// Descriptor privilege level, 0 to 3.
    pub dpl: u8,
    /// Present.
    pub p: bool,
    /// Available to software.
    pub avl: bool,
    /// For code in long mode: set for 64-bit mode, clear for compatibility mode.
    pub l: bool,
    /// Default operand size: set for 32 bits, clear for 64-bit code. For a stack: 32-bit stack pointer.
    pub d: bool,
    /// Granularity: the limit counts units of 4 KiB.
    pub g: bool,
}

impl Descriptor {
    /// Decodes the bytes.
    pub const fn decode(bytes: [u8; 8]) -> Self {
        let raw = u64::from_le_bytes(bytes);
        Self {
            base: (raw >> 16 & 0xff_ffff | raw >> 32 & 0xff00_0000) as u32,
            limit: (raw & 0xffff | raw >> 32 & 0xf_0000) as u32,
            kind: (raw >> 40 & 0xf) as u8,
            s: raw >> 44 & 1 == 1,
            dpl: (raw >> 45 & 0b11) as u8,
            p: raw >> 47 & 1 == 1,
            avl: raw >> 52 & 1 == 1,
            l: raw >> 53 & 1 == 1,
            d: raw >> 54 & 1 == 1,
            g: raw >> 55 & 1 == 1,
        }
    }

    /// Returns the bytes. Bits of `limit`, `kind` and `dpl` beyond their fields are dropped.
    pub const fn encode(self) -> [u8; 8] {
        let (base, limit) = (self.base as u64, self.limit as u64);
        let low = limit & 0xffff | (base & 0xff_ffff) << 16;
        let access = (self.kind as u64 & 0xf) << 40
            | (self.s as u64) << 44
            | (self.dpl as u64 & 0b11) << 45
            | (self.p as u64) << 47;
        let flags =
            (self.avl as u64) << 52 | (self.l as u64) << 53 | (self.d as u64) << 54 | (self.g as u64) << 55;
        let high = (limit >> 16 & 0xf) << 48 | (base >> 24) << 56;
        (low | access | flags | high).to_le_bytes()
    }

    /// Returns a flat code segment from 0 to 4 GiB at privilege level `dpl`, accessed: 64-bit or 32-bit code.
    pub const fn flat_code(dpl: u8, is_64_bit: bool) -> Self {
        let (l, d) = (is_64_bit, !is_64_bit);
        Self { limit: 0xf_ffff, kind: 0xb, s: true, dpl, p: true, l, d, g: true, ..Self::decode([0; 8]) }
    }

    /// Returns a flat data segment from 0 to 4 GiB at privilege level `dpl`, writable, accessed.
    pub const fn flat_data(dpl: u8) -> Self {
        Self { kind: 0x3, l: false, d: true, ..Self::flat_code(dpl, false) }
    }

    /// Returns the limit in bytes: the last valid offset, or the last invalid one of an expand-down segment.
    pub const fn effective_limit(&self) -> u32 {
        let limit = self.limit & 0xf_ffff;
        if self.g { limit << 12 | 0xfff } else { limit }
    }

    /// Returns the first and last valid offset: up to the limit, or for expand-down data from above it to FFFFh or
    /// FFFFFFFFh, depending on the D/B bit (SDM 3A, "Limit checking"). No offset is valid if the first is greater than the
    /// last.
    pub const fn valid_offsets(&self) -> (u32, u32) {
        match self.kind() {
            DescriptorKind::Data { expand_down: true, .. } => {
                let last = if self.d { u32::MAX } else { 0xffff };
                match self.effective_limit() {
                    u32::MAX => (u32::MAX, 0),
                    limit => (limit + 1, last),
                }
            }
            _ => (0, self.effective_limit()),
        }
    }

    /// Returns the kind, from the S bit and the type.
    pub const fn kind(&self) -> DescriptorKind {
        let (accessed, second, third) =
            (self.kind & 1 == 1, self.kind >> 1 & 1 == 1, self.kind >> 2 & 1 == 1);
        match (self.s, self.kind >> 3 & 1 == 1) {
            (false, _) => DescriptorKind::System(SystemKind::from_type(self.kind)),
            (true, true) => DescriptorKind::Code { readable: second, conforming: third, accessed },
            (true, false) => DescriptorKind::Data { writable: second, expand_down: third, accessed },
        }
    }

    /// Returns the access rights as LAR loads them.
    pub const fn access_rights(self) -> AccessRights {
        let bytes = self.encode();
        AccessRights(u32::from_le_bytes([0, bytes[5], bytes[6] & 0xf0, 0]))
    }

    /// Returns the flags as the Windows debugger's `dg` prints them: the access byte, and above it G, D, L and AVL.
    pub const fn dg_flags(self) -> u16 {
        let rights = self.access_rights().0;
        (rights >> 8 & 0xff | rights >> 12 & 0xf00) as u16
    }
}

/// The kind of a descriptor, by its S bit and type.
#[expect(
    missing_docs,
    reason = "the sentence of a kind speaks of its fields; accessed: it was loaded since the bit was cleared"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DescriptorKind {
    /// Code, executable and possibly readable. Less privileged code may enter conforming code, and keeps its own level. SDM
    /// 3A, table "Code- and data-segment types", types 8 to 15.
    Code { readable: bool, conforming: bool, accessed: bool },
    /// Data, readable and possibly writable. In an expand-down segment the offsets above the limit are valid. SDM 3A, table
    /// "Code- and data-segment types", types 0 to 7.
    Data { writable: bool, expand_down: bool, accessed: bool },
    /// A system segment or a gate.
    System(SystemKind),
}

/// Types of system segments and gates. SDM 3A, table "System-segment and gate-descriptor types"; APM 2, "System
/// descriptors".
///
/// Long mode has only the LDT, the TSS, and call, interrupt and trap gates. They take 16 bytes there, and the 32-bit types
/// mean 64-bit ones. The bytes alone do not show which.
#[expect(missing_docs, reason = "busy: a task uses it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemKind {
    /// Types 0, 8, 10 and 13. The upper half of a 16-byte descriptor has type 0.
    Reserved,
    /// Type 1, or 3 when busy: a task-state segment of the 80286. Not in long mode.
    Tss16 { busy: bool },
    /// Type 2: a local descriptor table.
    Ldt,
    /// Type 4. Not in long mode.
    CallGate16,
    /// Type 5. Not in long mode.
    TaskGate,
    /// Type 6. Not in long mode.
    InterruptGate16,
    /// Type 7. Not in long mode.
    TrapGate16,
    /// Type 9, or 11 when busy: a 32-bit task-state segment, 64-bit in long mode.
    Tss { busy: bool },
    /// Type 12: a 32-bit call gate, 64-bit in long mode.
    CallGate,
    /// Type 14: a 32-bit interrupt gate, 64-bit in long mode.
    InterruptGate,
    /// Type 15: a 32-bit trap gate, 64-bit in long mode.
    TrapGate,
}

impl SystemKind {
    /// Returns the kind for the low 4 bits of a type.
    pub const fn from_type(kind: u8) -> Self {
        match kind & 0xf {
            0x1 => Self::Tss16 { busy: false },
            0x2 => Self::Ldt,
            0x3 => Self::Tss16 { busy: true },
            0x4 => Self::CallGate16,
            0x5 => Self::TaskGate,
            0x6 => Self::InterruptGate16,
            0x7 => Self::TrapGate16,
            0x9 => Self::Tss { busy: false },
            0xb => Self::Tss { busy: true },
            0xc => Self::CallGate,
            0xe => Self::InterruptGate,
            0xf => Self::TrapGate,
            _ => Self::Reserved,
        }
    }

    /// Returns the name, which is the same in and outside long mode.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved type",
            Self::Tss16 { busy: false } => "16-bit TSS, available",
            Self::Tss16 { busy: true } => "16-bit TSS, busy",
            Self::Ldt => "LDT",
            Self::CallGate16 => "16-bit call gate",
            Self::TaskGate => "task gate",
            Self::InterruptGate16 => "16-bit interrupt gate",
            Self::TrapGate16 => "16-bit trap gate",
            Self::Tss { busy: false } => "TSS, available",
            Self::Tss { busy: true } => "TSS, busy",
            Self::CallGate => "call gate",
            Self::InterruptGate => "interrupt gate",
            Self::TrapGate => "trap gate",
        }
    }

    /// Returns whether it is a gate.
    pub const fn is_gate(self) -> bool {
        !matches!(self, Self::Reserved | Self::Tss16 { .. } | Self::Ldt | Self::Tss { .. })
    }

    /// Returns whether the type exists for this width. Long mode reserves the others.
    pub const fn is_in(self, width: Width) -> bool {
        match self {
            Self::Reserved => false,
            Self::Ldt | Self::Tss { .. } | Self::CallGate | Self::InterruptGate | Self::TrapGate => true,
            _ => matches!(width, Width::Legacy),
        }
    }
}

/// A system-segment descriptor of long mode, for an LDT or a TSS: 16 bytes. SDM 3A, "Segment descriptor tables
/// in IA-32e mode" and "TSS descriptor in 64-bit mode"; APM 2, "Long-mode segment descriptors".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WideDescriptor {
    /// The first 8 bytes, laid out like an 8-byte descriptor; its `base` holds bits 31 to 0.
    pub low: Descriptor,
    /// Bits 63 to 32 of the base: bytes 8 to 11.
    pub base_high: u32,
    /// Bytes 12 to 15. Bits 12 to 8, where an 8-byte descriptor has its type, must be 0.
    pub reserved: u32,
}

impl WideDescriptor {
    /// Decodes the bytes.
    pub const fn decode(bytes: [u8; 16]) -> Self {
        let raw = u128::from_le_bytes(bytes);
        Self {
            low: Descriptor::decode((raw as u64).to_le_bytes()),
            base_high: (raw >> 64) as u32,
            reserved: (raw >> 96) as u32,
        }
    }

    /// Returns the bytes.
    pub const fn encode(self) -> [u8; 16] {
        let low = u64::from_le_bytes(self.low.encode()) as u128;
        (low | (self.base_high as u128) << 64 | (self.reserved as u128) << 96).to_le_bytes()
    }

    /// Returns the base address of the segment.
    pub const fn base(&self) -> u64 {
        (self.base_high as u64) << 32 | self.low.base as u64
    }

    /// Returns whether the bits that must be 0 are 0. Otherwise a selector of the upper 8 bytes would find a descriptor.
    pub const fn is_well_formed(&self) -> bool {
        self.reserved >> 8 & 0b1_1111 == 0
    }
}

/// Access rights as LAR loads them: bytes 4 to 7 of the descriptor, masked with 00FxFF00h. SDM 2A, LAR, uses 00F0FF00h
/// because it leaves the limit's bits undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessRights(
    /// Type, S, DPL and P in bits 8 to 15; AVL, L, D and G in bits 20 to 23.
    pub u32,
);

impl AccessRights {
    /// Returns a descriptor with these rights. Its base is unknown and left 0. `limit` is what LSL loads, in bytes.
    pub const fn with_limit(self, limit: u32) -> Descriptor {
        let [_, access, flags, _] = self.0.to_le_bytes();
        let rights = Descriptor::decode([0, 0, 0, 0, 0, access, flags & 0xf0, 0]);
        Descriptor { limit: if rights.g { limit >> 12 } else { limit & 0xf_ffff }, ..rights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_and_encode_are_inverses(bytes: [u8; 16]) {
            let (low, _) = bytes.split_at(8);
            let low: [u8; 8] = low.try_into().unwrap();
            prop_assert_eq!(Descriptor::decode(low).encode(), low);
            prop_assert_eq!(WideDescriptor::decode(bytes).encode(), bytes);
        }

        #[test]
        fn too_large_fields_are_cut(limit: u32, kind: u8, dpl: u8) {
            let descriptor = Descriptor { limit, kind, dpl, ..Descriptor::default() };
            let again = Descriptor::decode(descriptor.encode());
            prop_assert_eq!((again.limit, again.kind, again.dpl), (limit & 0xf_ffff, kind & 0xf, dpl & 3));
            prop_assert_eq!((again.base, again.p, again.g), (0, false, false));
            prop_assert_eq!(again.effective_limit(), descriptor.effective_limit());
        }

        #[test]
        fn rights_and_limit_give_the_descriptor_back(bytes: [u8; 8]) {
            let descriptor = Descriptor::decode(bytes);
            let decoded = descriptor.access_rights().with_limit(descriptor.effective_limit());
            prop_assert_eq!(decoded, Descriptor { base: 0, ..descriptor });
        }
    }

    #[test]
    fn bit_2_is_conforming_of_code_and_expand_down_of_data() {
        let of = |kind, s| Descriptor { kind, s, ..Descriptor::default() }.kind();
        assert_eq!(
            of(0xc, true),
            DescriptorKind::Code { readable: false, conforming: true, accessed: false }
        );
        assert_eq!(
            of(0x5, true),
            DescriptorKind::Data { writable: false, expand_down: true, accessed: true }
        );
        assert_eq!(of(0x5, false), DescriptorKind::System(SystemKind::TaskGate));
    }

    #[test]
    fn expand_down_data_is_valid_above_its_limit() {
        let stack = Descriptor { limit: 0xfff, kind: 0x7, s: true, d: true, ..Descriptor::default() };
        assert_eq!(stack.valid_offsets(), (0x1000, u32::MAX));
        assert_eq!(Descriptor { d: false, ..stack }.valid_offsets(), (0x1000, 0xffff));
        let nothing = Descriptor { limit: 0xf_ffff, g: true, ..stack };
        assert_eq!(nothing.valid_offsets(), (u32::MAX, 0));
        assert_eq!(Descriptor::flat_data(3).valid_offsets(), (0, u32::MAX));
    }

    #[test]
    fn long_mode_keeps_six_kinds() {
        let kept: std::vec::Vec<u8> =
            (0..16).filter(|&kind| SystemKind::from_type(kind).is_in(Width::Long)).collect();
        assert_eq!(kept, [0x2, 0x9, 0xb, 0xc, 0xe, 0xf]);
    }
}
