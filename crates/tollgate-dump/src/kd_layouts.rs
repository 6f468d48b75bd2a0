//! The structures of the Windows kernel that the tables are made of, by its public symbols.

use crate::piece::Form;

/// A field: its name, the first bit and how many bits.
pub(crate) type Field = (&'static str, usize, usize);

/// A structure.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Its name in the symbols.
    pub name: &'static str,
    /// Its fields, as far as they matter.
    pub fields: &'static [Field],
    /// The form of the tables that its name shows.
    pub form: Form,
    /// Whether it is a TSS.
    pub is_tss: bool,
}

/// All of them; a name that another begins with comes after it.
pub(crate) const LAYOUTS: [Layout; 6] = [
    Layout { name: "_KIDTENTRY64", fields: &IDT_64, form: Form::LongName, is_tss: false },
    Layout { name: "_KGDTENTRY64", fields: &GDT, form: Form::LongName, is_tss: false },
    Layout { name: "_KTSS64", fields: &TSS_64, form: Form::LongName, is_tss: true },
    Layout { name: "_KIDTENTRY", fields: &IDT, form: Form::LegacyName, is_tss: false },
    Layout { name: "_KGDTENTRY", fields: &GDT, form: Form::LegacyName, is_tss: false },
    Layout { name: "_KTSS", fields: &TSS, form: Form::LegacyName, is_tss: true },
];

const IDT: [Field; 4] =
    [("Offset", 0, 16), ("Selector", 16, 16), ("Access", 32, 16), ("ExtendedOffset", 48, 16)];

const IDT_64: [Field; 11] = [
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

/// Of both widths: the first 8 bytes are the same, under one name or the other.
const GDT: [Field; 23] = [
    ("LimitLow", 0, 16),
    ("BaseLow", 16, 16),
    ("BaseMid", 32, 8),
    ("BaseMiddle", 32, 8),
    ("Flags1", 40, 8),
    ("Flags2", 48, 8),
    ("BaseHi", 56, 8),
    ("BaseHigh", 56, 8),
    ("Type", 40, 5),
    ("Dpl", 45, 2),
    ("Pres", 47, 1),
    ("Present", 47, 1),
    ("LimitHi", 48, 4),
    ("LimitHigh", 48, 4),
    ("Sys", 52, 1),
    ("System", 52, 1),
    ("Reserved_0", 53, 1),
    ("LongMode", 53, 1),
    ("Default_Big", 54, 1),
    ("DefaultBig", 54, 1),
    ("Granularity", 55, 1),
    ("BaseUpper", 64, 32),
    ("MustBeZero", 96, 32),
];

const TSS: [Field; 22] = [
    ("Backlink", 0, 16),
    ("Esp0", 0x04 * 8, 32),
    ("Ss0", 0x08 * 8, 16),
    ("CR3", 0x1c * 8, 32),
    ("Eip", 0x20 * 8, 32),
    ("EFlags", 0x24 * 8, 32),
    ("Eax", 0x28 * 8, 32),
    ("Ecx", 0x2c * 8, 32),
    ("Edx", 0x30 * 8, 32),
    ("Ebx", 0x34 * 8, 32),
    ("Esp", 0x38 * 8, 32),
    ("Ebp", 0x3c * 8, 32),
    ("Esi", 0x40 * 8, 32),
    ("Edi", 0x44 * 8, 32),
    ("Es", 0x48 * 8, 16),
    ("Cs", 0x4c * 8, 16),
    ("Ss", 0x50 * 8, 16),
    ("Ds", 0x54 * 8, 16),
    ("Fs", 0x58 * 8, 16),
    ("Gs", 0x5c * 8, 16),
    ("LDT", 0x60 * 8, 16),
    ("IoMapBase", 0x66 * 8, 16),
];

const TSS_64: [Field; 5] = [
    ("Reserved0", 0, 32),
    ("Rsp0", 0x04 * 8, 64),
    ("Rsp1", 0x0c * 8, 64),
    ("Rsp2", 0x14 * 8, 64),
    ("IoMapBase", 0x66 * 8, 16),
];
