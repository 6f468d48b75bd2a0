//! Segment selectors (SDM 3A and APM 2, "Segment selectors").

use core::fmt;

/// The visible part of a segment register: the index of a descriptor, its table, and a requested privilege level. SDM
/// 3A, "Segment selectors".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Selector(
    /// Index in bits 15 to 3, table in bit 2, privilege level in bits 1 and 0.
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
    /// The selector of entry `index` of a table, of which the low 13 bits count, at privilege level `rpl`,
    /// of which the low 2 bits count.
    pub const fn new(index: u16, table: Table, rpl: u8) -> Self {
        let table = match table {
            Table::Gdt => 0,
            Table::Ldt => 1 << 2,
        };
        Self(index << 3 | table | (rpl & 0b11) as u16)
    }

    /// Which entry: 8 bytes each. Selector 28h is entry 5.
    pub const fn index(self) -> u16 {
        self.0 >> 3
    }

    /// Where the descriptor begins in its table, in bytes.
    pub const fn offset(self) -> u16 {
        self.0 & !0b111
    }

    /// Which table.
    pub const fn table(self) -> Table {
        if self.0 & 1 << 2 == 0 { Table::Gdt } else { Table::Ldt }
    }

    /// The requested privilege level, 0 to 3; of CS and SS the current one.
    pub const fn rpl(self) -> u8 {
        (self.0 & 0b11) as u8
    }

    /// The same entry at another privilege level, of which the low two bits count.
    #[must_use]
    pub const fn with_rpl(self, rpl: u8) -> Self {
        Self(self.0 & !0b11 | (rpl & 0b11) as u16)
    }

    /// Whether it is the null selector: entry 0 of the GDT, at whatever level.
    pub const fn is_null(self) -> bool {
        self.0 & !0b11 == 0
    }
}

/// As the manuals write it: four hexadecimal digits.
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
