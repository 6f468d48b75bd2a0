use tollgate_x86::{Descriptor, Gate, Selector, WideGate};

/// A descriptor as a tool explains it; `None` for values that the tool does not print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedDescriptor {
    /// Selector with RPL 0: the offset in the GDT.
    pub selector: u16,
    /// Base of the segment, as printed.
    pub base: Option<u64>,
    /// Limit in bytes, as printed.
    pub limit: Option<u64>,
    /// The tool's name for it.
    pub kind: String,
    /// Access byte, and above it G, D, L and AVL: see [`Descriptor::dg_flags`].
    pub flags: Option<u16>,
    /// Mask of the bits of `flags` that the tool prints.
    pub mask: u16,
    /// The bytes, if the tool shows them.
    pub raw: Option<[u8; 8]>,
    /// Whether the tool prints 64-bit addresses.
    pub is_wide: bool,
    /// Target of a gate in the table.
    pub target: Option<(Selector, u64)>,
}

impl PrintedDescriptor {
    /// Returns the flags in `mask`, if the tool prints all of them.
    pub fn bits(&self, mask: u16) -> Option<u16> {
        self.flags.filter(|_| self.mask & mask == mask).map(|flags| flags & mask)
    }

    /// Returns the 8-byte descriptor that has this explanation, if it is complete and such a descriptor exists. Only the
    /// low 32 bits of the base count.
    pub fn descriptor(&self) -> Option<Descriptor> {
        if let Some(raw) = self.raw {
            return Some(Descriptor::decode(raw));
        }
        let (base, limit, flags) = (self.base?, self.limit?, self.flags?);
        if self.mask != 0xfff {
            return None;
        }
        let [access, upper] = flags.to_le_bytes();
        let rights = Descriptor::decode([0, 0, 0, 0, 0, access, upper << 4, 0]);
        let limit = u32::try_from(limit).ok()?;
        let descriptor =
            Descriptor { base: base as u32, limit: if rights.g { limit >> 12 } else { limit }, ..rights };
        (descriptor.limit <= 0xf_ffff && descriptor.effective_limit() == limit).then_some(descriptor)
    }
}

/// A gate as a tool explains it; `None` for values that the tool does not print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedGate {
    /// Index in the IDT.
    pub vector: u8,
    /// Whether the tool printed other digits before the vector.
    pub has_noise: bool,
    /// The tool's name for it; empty if it prints none.
    pub kind: String,
    /// Type, 4 bits.
    pub type_bits: Option<u8>,
    /// Target segment.
    pub selector: Option<Selector>,
    /// Target offset in the segment.
    pub offset: Option<u64>,
    /// Descriptor privilege level.
    pub dpl: Option<u8>,
    /// Address of its stack in the interrupt stack table.
    pub stack: Option<u64>,
    /// The symbol at its target.
    pub symbol: Option<String>,
    /// The first 8 bytes, if the tool shows them.
    pub raw: Option<[u8; 8]>,
    /// Number in a list of 8-byte entries, as in any mode; for a gate of 16 bytes, twice the vector.
    pub slot: Option<u16>,
}

impl PrintedGate {
    /// Returns the gate, if the tool printed all of it. Without its bytes it counts as present. The upper half means
    /// nothing for a gate of 8 bytes.
    pub fn gate(&self) -> Option<WideGate> {
        let low = match self.raw {
            Some(raw) => Gate::decode(raw),
            None => Gate {
                offset: self.offset? as u32,
                selector: self.selector?,
                byte_4: 0,
                kind: self.type_bits?,
                s: false,
                dpl: self.dpl?,
                p: true,
            },
        };
        let offset_high = self.offset.map_or(0, |offset| (offset >> 32) as u32);
        Some(WideGate { low, offset_high, reserved: 0 })
    }
}
