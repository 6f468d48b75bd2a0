//! Entries of tables, not as bytes but as a tool explains them.

use tollgate_x86::{Descriptor, Gate, Selector, WideGate};

/// A descriptor as a tool explains it. Values that the tool does not print are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedDescriptor {
    /// Its selector, with RPL 0: its offset in the GDT.
    pub selector: u16,
    /// Where the segment begins, as printed.
    pub base: Option<u64>,
    /// The limit in bytes, as printed.
    pub limit: Option<u64>,
    /// The tool's name of it.
    pub kind: String,
    /// Access byte, and above it G, D, L and AVL: see [`Descriptor::dg_flags`].
    pub flags: Option<u16>,
    /// Which of the bits of `flags` the tool prints.
    pub mask: u16,
    /// The bytes, where the tool shows them.
    pub raw: Option<[u8; 8]>,
    /// Whether the tool prints addresses of 64 bits.
    pub is_wide: bool,
    /// Of a gate in the table: where it leads.
    pub target: Option<(Selector, u64)>,
}

impl PrintedDescriptor {
    /// Some of the flags, where the tool prints all of them.
    pub fn bits(&self, mask: u16) -> Option<u16> {
        self.flags.filter(|_| self.mask & mask == mask).map(|flags| flags & mask)
    }

    /// The descriptor of 8 bytes that would be explained so, if all of it is said and there can be one. Of a base the
    /// low 32 bits count.
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

/// A gate as a tool explains it. Values that the tool does not print are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrintedGate {
    /// Which entry of the IDT.
    pub vector: u8,
    /// Whether the tool printed other digits in front of the vector.
    pub has_noise: bool,
    /// The tool's name of it; empty where it prints none.
    pub kind: String,
    /// The type, 4 bits.
    pub type_bits: Option<u8>,
    /// The segment that it leads to.
    pub selector: Option<Selector>,
    /// Where in it.
    pub offset: Option<u64>,
    /// The descriptor privilege level.
    pub dpl: Option<u8>,
    /// The stack of the interrupt stack table that it switches to: the address.
    pub stack: Option<u64>,
    /// The symbol at its target.
    pub symbol: Option<String>,
    /// The first 8 bytes, where the tool shows them.
    pub raw: Option<[u8; 8]>,
    /// Its number in a list in which every 8 bytes are an entry, whatever the mode: of a gate of 16 bytes twice the vector.
    pub slot: Option<u16>,
}

impl PrintedGate {
    /// The gate, if the tool printed all of it; of one of 8 bytes the upper half counts nothing. It is taken for present.
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
