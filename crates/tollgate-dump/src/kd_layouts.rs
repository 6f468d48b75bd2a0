use tollgate_x86::{Field, Tss32, Tss64};

use crate::piece::Form;

/// A field's names separated by `|`, its first bit, and its number of bits.
type Bits = (&'static str, usize, usize);

#[derive(Debug)]
pub(crate) struct Layout {
    /// Its name in the symbols.
    pub name: &'static str,
    /// The relevant fields.
    fields: &'static [Bits],
    /// The form of the tables that its name implies.
    pub form: Form,
    /// The TSS fields, if it is a TSS.
    pub tss: Option<&'static [Field]>,
}

/// All layouts; one whose name begins with another's comes first.
pub(crate) const LAYOUTS: [Layout; 6] = [
    Layout { name: "_KIDTENTRY64", fields: &IDT_64, form: Form::LongName, tss: None },
    Layout { name: "_KGDTENTRY64", fields: &GDT, form: Form::LongName, tss: None },
    Layout { name: "_KTSS64", fields: &[], form: Form::LongName, tss: Some(Tss64::FIELDS) },
    Layout { name: "_KIDTENTRY", fields: &IDT, form: Form::LegacyName, tss: None },
    Layout { name: "_KGDTENTRY", fields: &GDT, form: Form::LegacyName, tss: None },
    Layout { name: "_KTSS", fields: &[], form: Form::LegacyName, tss: Some(Tss32::FIELDS) },
];

const IDT: [Bits; 4] =
    [("Offset", 0, 16), ("Selector", 16, 16), ("Access", 32, 16), ("ExtendedOffset", 48, 16)];

const IDT_64: [Bits; 11] = [
    ("OffsetLow", 0, 16),
    ("Selector", 16, 16),
    ("IstIndex", 32, 3),
    ("Reserved0", 35, 5),
    ("Type", 40, 5),
    ("Dpl", 45, 2),
    ("Present", 47, 1),
    ("OffsetMiddle", 48, 16),
    ("OffsetHigh", 64, 32),
    ("Reserved1", 96, 32),
    ("Alignment", 0, 64),
];

/// The first 8 bytes are the same for both widths.
const GDT: [Bits; 16] = [
    ("LimitLow", 0, 16),
    ("BaseLow", 16, 16),
    ("BaseMid|BaseMiddle", 32, 8),
    ("Flags1", 40, 8),
    ("Flags2", 48, 8),
    ("BaseHi|BaseHigh", 56, 8),
    ("Type", 40, 5),
    ("Dpl", 45, 2),
    ("Pres|Present", 47, 1),
    ("LimitHi|LimitHigh", 48, 4),
    ("Sys|System", 52, 1),
    ("Reserved_0|LongMode", 53, 1),
    ("Default_Big|DefaultBig", 54, 1),
    ("Granularity", 55, 1),
    ("BaseUpper", 64, 32),
    ("MustBeZero", 96, 32),
];

impl Layout {
    /// Returns a field's first bit and number of bits. TSS fields have nearly the manuals' names.
    pub(crate) fn field(&self, name: &str) -> Option<(usize, usize)> {
        let bits = self.fields.iter().find(|(names, ..)| names.split('|').any(|known| known == name));
        let in_tss = || {
            let name = match name {
                "Backlink" => "link",
                "IoMapBase" => "iomap",
                "Reserved0" => "reserved_00",
                name => name,
            };
            let field = self.tss?.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
            Some((8 * field.offset, 8 * field.size))
        };
        bits.map(|&(_, first, count)| (first, count)).or_else(in_tss)
    }
}
