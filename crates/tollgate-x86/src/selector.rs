//! Segment selectors (SDM 3A and APM 2, "Segment selectors").

use core::fmt;

/// The visible part of a segment register: a descriptor's index, its table, and a requested privilege level. SDM 3A,
/// "Segment selectors".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Selector(
    /// Index in bits 15 to 3, table in bit 2, requested privilege level in bits 1 and 0.
    pub u16,
);

/// The table that a selector points into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// The global descriptor table.
    Gdt,
    /// The local descriptor table.
    Ldt,
}

impl Selector {
    /// Returns the selector of entry `index` (low 13 bits) of a table, at privilege level `rpl` (low 2 bits).
    pub const fn new(index: u16, table: Table, rpl: u8) -> Self {
        let table = match table {
            Table::Gdt => 0,
            Table::Ldt => 1 << 2,
        };
        Self(index << 3 | table | (rpl & 0b11) as u16)
    }

    /// Returns the index of the entry, of 8 bytes each. Selector 28h is entry 5.
    pub const fn index(self) -> u16 {
        self.0 >> 3
    }

    /// Returns the offset of the descriptor in its table, in bytes.
    pub const fn offset(self) -> u16 {
        self.0 & !0b111
    }

    /// Returns the table of the descriptor.
    pub const fn table(self) -> Table {
        if self.0 & 1 << 2 == 0 { Table::Gdt } else { Table::Ldt }
    }

    /// Returns the requested privilege level, 0 to 3; for CS and SS, the current one.
    pub const fn rpl(self) -> u8 {
        (self.0 & 0b11) as u8
    }

    /// Returns the selector with the low two bits of `rpl` as its privilege level.
    #[must_use]
    pub const fn with_rpl(self, rpl: u8) -> Self {
        Self(self.0 & !0b11 | (rpl & 0b11) as u16)
    }

    /// Returns whether it is a null selector: entry 0 of the GDT, at any level.
    pub const fn is_null(self) -> bool {
        self.0 & !0b11 == 0
    }
}

/// Four hexadecimal digits, as in the manuals.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selector_28_is_entry_5() {
        assert_eq!(Selector(0x28).index(), 5);
        assert_eq!(Selector(0x2b).offset(), 0x28);
        assert_eq!(Selector(0x2b).rpl(), 3);
    }

    #[test]
    fn every_selector_is_made_of_its_parts() {
        for bits in 0..=u16::MAX {
            let selector = Selector(bits);
            assert_eq!(Selector::new(selector.index(), selector.table(), selector.rpl()), selector);
            assert_eq!(selector.is_null(), bits < 4);
        }
    }
}
