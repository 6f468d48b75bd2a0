//! A GDT as a list: one entry per line, after its position in the table.
//!
//! - `08: 00af9b000000ffff`: the offset in hexadecimal, which is the selector, then the value.
//! - `GDT[1] = 0x00af9b000000ffff`, `gdt[0x08]: 0x…`, `[1] = 0x…` of a C initializer: the index in decimal, or the selector
//!   with `0x`.
//! - `GDT_ENTRY_INIT(0xa09b, 0, 0xfffff)`, with or without an index before it: access byte and flags, base, limit (Linux,
//!   arch/x86/include/asm/desc_defs.h). If the index is a name, entries are in the order of the text.
//!
//! Values are little-endian in memory.

use tollgate_x86::Descriptor;

use crate::number::{is_hex, plain, strip_prefix};
use crate::piece::What;
use crate::printed::PrintedDescriptor;
use crate::{format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::List;
const DIGITS: usize = 16;
const ENTRIES: u64 = 8192;
const MACROS: [&str; 2] = ["GDT_ENTRY_INIT(", "GDT_ENTRY("];

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = without_comment(line.text);
    let Some((place, rest)) = place(text) else {
        return match init(text) {
            Some(value) => sink.bytes(FORMAT, None, value.to_le_bytes().to_vec()),
            None => false,
        };
    };
    let Some(value) = value(rest, place.has_offset).or_else(|| init(rest)) else { return false };
    match place.selector {
        Some(selector) => sink.push(FORMAT, What::Descriptor(explained(selector, value.to_le_bytes()))),
        None => sink.bytes(FORMAT, None, value.to_le_bytes().to_vec()),
    }
}

fn explained(selector: u16, raw: [u8; 8]) -> PrintedDescriptor {
    let descriptor = Descriptor::decode(raw);
    PrintedDescriptor {
        selector,
        flags: Some(descriptor.dg_flags()),
        mask: 0xfff,
        raw: Some(raw),
        ..PrintedDescriptor::default()
    }
}

struct EntryIndex {
    /// `None` if the index is a name.
    selector: Option<u16>,
    /// Whether it is an offset with a colon, after which digits need no `0x`.
    has_offset: bool,
}

fn place(text: &str) -> Option<(EntryIndex, &str)> {
    if let Some(bracket) = text.find('[')
        && is_table(&text[..bracket])
    {
        let (index, rest) = text[bracket + 1..].split_once(']')?;
        let rest = rest.trim_start_matches([' ', '=', ':']);
        return Some((EntryIndex { selector: index_of(index.trim())?, has_offset: false }, rest));
    }
    let (offset, rest) = text.split_once(':')?;
    let offset = strip_prefix(offset).unwrap_or(offset);
    let selector = plain(offset).filter(|hex| (2..=4).contains(&hex.digits))?.value;
    (selector % 8 == 0).then_some((
        EntryIndex { selector: Some(selector as u16), has_offset: true },
        rest.trim_start_matches(' '),
    ))
}

/// Returns whether an array of this name is a GDT; without a name it is in an initializer. A member of a structure is a
/// line of a program.
fn is_table(name: &str) -> bool {
    let name = name.trim_matches([' ', '{']).to_ascii_lowercase();
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return false;
    }
    name.is_empty() || name.contains("gdt") || name.contains("global_descriptor")
}

/// Returns the selector of an index in brackets: the inner `None` for a name, the outer one past the end of any table.
fn index_of(index: &str) -> Option<Option<u16>> {
    if let Some(digits) = strip_prefix(index) {
        let selector = plain(digits)?.value;
        return (selector % 8 == 0 && selector < 8 * ENTRIES).then_some(Some(selector as u16));
    }
    if let Ok(index) = index.parse::<u64>() {
        return (index < ENTRIES).then_some(Some((8 * index) as u16));
    }
    let is_name = index.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_name.then_some(None)
}

/// Parses a descriptor: sixteen digits, or fewer after `0x`. Words after it describe it.
fn value(text: &str, is_bare: bool) -> Option<u64> {
    let end = text.find([' ', ',', ';', '}']).unwrap_or(text.len());
    let word = text[..end].trim_end_matches(['u', 'U', 'l', 'L']);
    match strip_prefix(word) {
        Some(digits) => Some(plain(digits)?.value),
        None => (is_bare && word.len() == DIGITS && is_hex(word))
            .then(|| plain(word))
            .flatten()
            .map(|hex| hex.value),
    }
}

/// Parses `GDT_ENTRY_INIT(flags, base, limit)`. The low byte of the flags is the access byte; the highest four bits are G,
/// D, L and AVL.
fn init(text: &str) -> Option<u64> {
    let rest = MACROS.iter().find_map(|name| Some(&text[text.find(name)? + name.len()..]))?;
    let (arguments, _) = rest.split_once(')')?;
    let mut numbers = arguments.split(',').map(|text| number(text.trim()));
    let [flags, base, limit] = [numbers.next()??, numbers.next()??, numbers.next()??];
    if numbers.next().is_some() || flags > 0xffff || base > 0xffff_ffff || limit > 0xf_ffff {
        return None;
    }
    Some(
        limit & 0xffff
            | (base & 0xff_ffff) << 16
            | (flags & 0xf0ff) << 40
            | (limit >> 16) << 48
            | (base >> 24) << 56,
    )
}

fn number(text: &str) -> Option<u64> {
    match strip_prefix(text) {
        Some(digits) => Some(plain(digits)?.value),
        None => text.parse().ok(),
    }
}

fn without_comment(text: &str) -> &str {
    let end = ["//", "/*", "#"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].trim_matches([' ', '{', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use proptest::prelude::*;

    const CODE: u64 = 0x00af_9b00_0000_ffff;

    fn entries(text: &str) -> Vec<(u16, u64)> {
        let dump = read(text.as_bytes(), None);
        assert_eq!(dump.complaints, [], "{text}");
        let entry = |piece: &crate::Piece| match &piece.what {
            What::Descriptor(PrintedDescriptor { selector, raw: Some(raw), .. }) => {
                Some((*selector, u64::from_le_bytes(*raw)))
            }
            _ => None,
        };
        dump.pieces.iter().filter_map(entry).collect()
    }

    #[test]
    fn an_entry_in_many_spellings() {
        for text in [
            "08: 00af9b000000ffff",
            "0x08: 0x00af9b000000ffff  kernel code",
            "0008: 00AF9B000000FFFF",
            "GDT[1] = 0x00af9b000000ffff",
            "gdt[1] = 0x00af9b000000ffffULL;",
            "gdt[0x08]: 0x00af9b000000ffff",
            "    [1] = 0x00af9b000000ffff, // code",
            "[1] = GDT_ENTRY_INIT(0xa09b, 0, 0xfffff),",
            "cpu_gdt[1]=GDT_ENTRY(0xa09b, 0, 0xfffff);",
        ] {
            assert_eq!(entries(text), [(8, CODE)], "{text}");
        }
        assert_eq!(entries("GDT[0] = 0x0"), [(0, 0)]);
    }

    #[test]
    fn a_name_as_index_leaves_the_order_of_the_text() {
        let dump = read(b"[GDT_ENTRY_KERNEL_CS] = GDT_ENTRY_INIT(0xa09b, 0, 0xfffff),", None);
        let bytes = CODE.to_le_bytes().to_vec();
        assert_eq!(dump.pieces[0].what, What::Bytes { address: None, bytes });
    }

    #[test]
    fn a_base_and_a_limit_are_where_the_manual_has_them() {
        let value = init("GDT_ENTRY_INIT(0x0089, 0x12345678, 0x206f)").expect("an entry");
        let descriptor = tollgate_x86::Descriptor::decode(value.to_le_bytes());
        assert_eq!((descriptor.base, descriptor.limit), (0x1234_5678, 0x206f));
    }

    #[test]
    fn other_lists_are_passed_over() {
        for text in [
            "12:30",
            "10: 20",
            "regs[1] = 0x00af9b000000ffff",
            "gdt.entries[1] = 0x00af9b000000ffff;",
            "GDT[9000] = 0x1",
            "GDT[1] = 00af9b000000ffff",
            "08: a line of prose",
            "GDT_ENTRY_INIT(0xa09b, 0)",
            "GDT_ENTRY_INIT(0xa09b, 0, 0x100000)",
            "GDT[",
        ] {
            assert_eq!(entries(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_listed_is_read(values in prop::collection::vec(any::<u64>(), 1..40)) {
            let expected: Vec<(u16, u64)> = values.iter().enumerate().map(|(at, value)| (8 * at as u16, *value)).collect();
            let by_offset: String = expected.iter().map(|(selector, value)| format!("{selector:02x}: {value:016x}\n")).collect();
            prop_assert_eq!(entries(&by_offset), expected.clone());
            let by_index: String = values.iter().enumerate().map(|(at, value)| format!("GDT[{at}] = {value:#x}\n")).collect();
            prop_assert_eq!(entries(&by_index), expected);
        }

        #[test]
        fn any_text_is_taken(text in "\\PC{0,60}") {
            read(text.as_bytes(), Some(FORMAT));
        }
    }
}
