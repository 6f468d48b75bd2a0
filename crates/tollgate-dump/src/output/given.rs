//! Decodes items from bytes without an address, in the order of a table.

use tollgate_model::text::clean;
use tollgate_x86::{Descriptor, DescriptorKind, Gate, Msr, SystemKind, WideDescriptor, WideGate, Width};

use super::item::{Item, Position};
use crate::{Dump, Format, What};

/// An input that is not of the named kind; the message is a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

impl Unfit {
    fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// Reads items of one kind.
///
/// # Errors
/// The input has other items, or none.
pub fn items_of(kind: &'static str, input: &[u8]) -> Result<Vec<Item>, Unfit> {
    let text = String::from_utf8_lossy(input);
    match kind {
        "msr" => registers(&text),
        "lar_lsl" => rights(&text).map(|item| vec![item]),
        _ => {
            let dump = crate::read(input, None);
            expect_sound(&dump)?;
            // Digits too few to be recognised are still bytes if a kind was named.
            let dump = if dump.pieces.is_empty() { crate::read(input, Some(Format::Hex)) } else { dump };
            expect_sound(&dump)?;
            let bytes: Vec<u8> =
                dump.pieces.iter().flat_map(|piece| bytes_of(&piece.what)).copied().collect();
            of_kind(kind, &bytes)
        }
    }
}

pub(crate) fn bytes_of(what: &What) -> &[u8] {
    match what {
        What::Bytes { bytes, .. } => bytes,
        _ => &[],
    }
}

/// Checks that all of an input of a named kind is readable.
///
/// # Errors
/// The first damaged line.
pub fn expect_sound(dump: &Dump) -> Result<(), Unfit> {
    dump.complaints.first().map_or(Ok(()), |complaint| {
        Err(Unfit(format!("line {}: {}", complaint.line, clean(&complaint.wrong.to_string()))))
    })
}

pub(crate) const KINDS: [(&str, &str); 8] = [
    ("gdt8", "descriptors of 8 bytes"),
    ("gdt16", "TSS or LDT descriptors of long mode, 16 bytes each"),
    ("gate32", "gates of 8 bytes"),
    ("gate64", "gates of long mode, 16 bytes each"),
    ("tss32", "a TSS outside long mode, or as much of it as there is"),
    ("tss64", "a TSS of long mode, or as much of it as there is"),
    ("msr", "the number of a register and its value"),
    ("lar_lsl", "what LAR loads, and after it what LSL loads"),
];

/// Decodes bytes as items of one kind.
///
/// # Errors
/// The number of bytes is not a multiple of the item's size.
fn of_kind(kind: &str, bytes: &[u8]) -> Result<Vec<Item>, Unfit> {
    let pieces = |size| whole(kind, bytes, size);
    Ok(match kind {
        "gdt8" => pieces(8)?.map(|it| Item::Segment(None, Descriptor::decode(fixed(it)))).collect(),
        "gdt16" => pieces(16)?.map(|it| Item::System(None, WideDescriptor::decode(fixed(it)))).collect(),
        "gate32" => pieces(8)?.map(|it| Item::Gate32(Position::Unknown, Gate::decode(fixed(it)))).collect(),
        "gate64" => {
            pieces(16)?.map(|it| Item::Gate64(Position::Unknown, WideGate::decode(fixed(it)))).collect()
        }
        "tss32" | "tss64" if bytes.is_empty() => {
            return Err(Unfit::new(format!("{kind}: there are no bytes")));
        }
        "tss32" => vec![Item::Tss32(bytes.to_vec(), None)],
        "tss64" => vec![Item::Tss64(bytes.to_vec(), None)],
        _ => return Err(Unfit::new(format!("{kind} is not a kind of bytes"))),
    })
}

fn whole<'a>(kind: &str, bytes: &'a [u8], size: usize) -> Result<std::slice::ChunksExact<'a, u8>, Unfit> {
    match bytes.len() {
        0 => Err(Unfit::new(format!("{kind}: there are no bytes; one takes {size}"))),
        there if there % size != 0 => {
            Err(Unfit::new(format!("{kind}: {there} bytes are not a whole number of them; one takes {size}")))
        }
        _ => Ok(bytes.chunks_exact(size)),
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

/// Decodes bytes as entries of a table in one width, and returns the number of bytes left at the end.
pub(crate) fn of_table(bytes: &[u8], width: Width) -> (Vec<Item>, usize) {
    let mut items = Vec::new();
    let mut rest = bytes;
    while let Some((item, behind)) = first(rest, width) {
        items.push(item);
        rest = behind;
    }
    (items, rest.len())
}

/// Reverses the bytes, eight at a time, if only that makes entries of them: they were written as numbers, such as
/// `00cf9b000000ffff`, not in memory order.
pub(crate) fn as_numbers(bytes: &[u8]) -> Option<Vec<u8>> {
    let (words, rest) = bytes.as_chunks::<8>();
    let turned: Vec<[u8; 8]> = words.iter().map(|word| u64::from_le_bytes(*word).to_be_bytes()).collect();
    let is_entry = |word: &[u8; 8]| {
        let it = Descriptor::decode(*word);
        it.p && !matches!(it.kind(), DescriptorKind::System(SystemKind::Reserved))
    };
    let is_null = |word: &&[u8; 8]| **word == [0; 8];
    let is_it = rest.is_empty()
        && !words.iter().any(is_entry)
        && turned.iter().any(is_entry)
        && turned.iter().filter(|word| !is_null(word)).all(is_entry);
    is_it.then(|| turned.into_flattened())
}

/// Returns whether entries can be those of a table. Any few can; of more, nearly all that are not null must be present and
/// of a known type. This rejects other bytes, such as a program's.
pub(crate) fn is_table(items: &[Item]) -> bool {
    /// Fewer are shown in any case.
    const FEW: usize = 4;
    let is_meant = |item: &&Item| match item {
        Item::Segment(_, it) => it.p && !matches!(it.kind(), DescriptorKind::System(SystemKind::Reserved)),
        Item::System(_, it) => it.low.p && it.is_well_formed(),
        Item::Gate32(_, it) => it.p && !it.selector.is_null(),
        Item::Gate64(_, it) => it.low.p && !it.low.selector.is_null(),
        _ => true,
    };
    let is_null = |item: &&Item| item.bytes().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    let (null, others): (Vec<&Item>, Vec<&Item>) = items.iter().partition(is_null);
    null.len() + others.len() < FEW
        || 8 * others.iter().filter(|item| is_meant(item)).count() >= 7 * others.len()
}

/// Returns whether an entry is present code with L set, which only long mode has.
pub(crate) fn has_64_bit_code(bytes: &[u8]) -> bool {
    let (items, _) = of_table(bytes, Width::Long);
    items.iter().any(|item| match item {
        Item::Segment(_, it) => it.p && it.l && matches!(it.kind(), DescriptorKind::Code { .. }),
        _ => false,
    })
}

fn first(bytes: &[u8], width: Width) -> Option<(Item, &[u8])> {
    let low = Descriptor::decode(*bytes.first_chunk()?);
    let is_wide =
        matches!(low.kind(), DescriptorKind::System(kind) if width == Width::Long && kind.is_in(width));
    let (entry, behind) = bytes.split_at_checked(if is_wide { 16 } else { 8 })?;
    Some((Item::entry(None, entry, width)?, behind))
}

/// Parses a register's number and value: `c0000081 0023001000000000`, with `=` or `:` between, and a backtick or colon
/// between the halves of the value, as debuggers write them.
///
/// # Errors
/// A word is not such a number, or the register has no part in kernel entry.
fn registers(text: &str) -> Result<Vec<Item>, Unfit> {
    let text = text.replace("msr[", " ").replace(['=', ']', ','], " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err(Unfit::new(
            "msr: a register's number and its value belong together, such as c0000081 0023001000000000",
        ));
    }
    words.chunks_exact(2).map(|pair| register(pair[0], pair[1])).collect()
}

fn register(number: &str, value: &str) -> Result<Item, Unfit> {
    let number_of_it = number_of(number, 8).ok_or_else(|| {
        Unfit::new(format!("msr: {number:?} is not the number of a register, such as c0000081"))
    })?;
    let value = number_of(value, 16).ok_or_else(|| {
        Unfit::new(format!("msr: {value:?} is not a 64-bit value, such as 0023001000000000"))
    })?;
    let msr = u32::try_from(number_of_it).ok().and_then(Msr::by_number);
    let msr = msr.ok_or_else(|| {
        let known: Vec<String> = Msr::ALL.iter().map(|msr| format!("{:x}", msr.number())).collect();
        Unfit::new(format!("msr: {number} is not used in kernel entry; these are: {}", known.join(", ")))
    })?;
    Ok(Item::Msr(msr, value))
}

/// Parses the values of LAR and LSL, in hexadecimal.
///
/// # Errors
/// Other words.
fn rights(text: &str) -> Result<Item, Unfit> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |word: &str| {
        let number = number_of(word, 8).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| Unfit::new(format!("lar_lsl: {word:?} is not a 32-bit value, such as 00cffb00")))
    };
    match words.as_slice() {
        [lar] => Ok(Item::Rights(None, tollgate_x86::AccessRights(number(lar)?), None)),
        [lar, lsl] => Ok(Item::Rights(None, tollgate_x86::AccessRights(number(lar)?), Some(number(lsl)?))),
        _ => Err(Unfit::new("lar_lsl: give what LAR loads, such as 00cffb00, and if known what LSL loads")),
    }
}

/// Parses a hexadecimal number of at most `digits` digits. If halves are separated, the lower one must have all eight
/// digits.
fn number_of(word: &str, digits: usize) -> Option<u64> {
    let word = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    let joined = match word.split_once(['`', ':', '_']) {
        Some((high, low)) if low.len() == 8 => format!("{high}{low}"),
        Some(_) => return None,
        None => word.to_owned(),
    };
    let fits = !joined.is_empty() && joined.trim_start_matches('0').len() <= digits;
    let is_hex = joined.bytes().all(|byte| byte.is_ascii_hexdigit());
    (fits && is_hex).then(|| u64::from_str_radix(&joined, 16).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_register_is_written_in_several_ways() {
        let star = Item::Msr(Msr::Star, 0x0023_0010_0000_0000);
        for text in [
            "c0000081 0023001000000000",
            "0xc0000081 = 0x0023001000000000",
            "msr[c0000081] = 00230010:00000000",
            "c0000081=00230010`00000000",
        ] {
            assert_eq!(registers(text).expect(text), std::slice::from_ref(&star), "{text}");
        }
        for text in
            ["", "c0000081", "10 0", "c0000081 00230010`0", "c0000081 x", "c0000081 -1", "c0000081 +1"]
        {
            assert!(registers(text).is_err(), "{text}");
        }
    }

    #[test]
    fn eight_bytes_may_be_half_of_sixteen() {
        let tss = [0x67, 0, 0x80, 0x20, 0xd5, 0x8b, 0, 1, 0, 0xf8, 0xff, 0xff, 0, 0, 0, 0];
        let (items, left) = of_table(&tss, Width::Long);
        assert!(matches!(items[..], [Item::System(..)]) && left == 0);
        let (items, left) = of_table(&tss, Width::Legacy);
        assert!(matches!(items[..], [Item::Segment(..), Item::Segment(..)]) && left == 0);
        let (items, left) = of_table(&tss[..8], Width::Long);
        assert!(items.is_empty() && left == 8);
    }

    #[test]
    fn a_descriptor_as_a_number_is_offered_and_one_in_memory_order_is_not() {
        let number = [0x00, 0xcf, 0x9b, 0, 0, 0, 0xff, 0xff];
        let memory = [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0x00];
        assert_eq!(as_numbers(&number), Some(memory.to_vec()));
        assert_eq!(as_numbers(&memory), None);
        assert_eq!(
            as_numbers(&[[0; 8], number].concat()),
            Some([[0; 8], memory].concat()),
            "a null descriptor"
        );
        assert_eq!(as_numbers(&[number, memory].concat()), None, "both ways at once");
        assert_eq!(as_numbers(&number[1..]), None);
        assert_eq!(as_numbers(&[0; 16]), None);
    }

    #[test]
    fn a_program_s_bytes_are_no_table() {
        let code = [
            0x57, 0xff, 0x75, 0x08, 0x00, 0x3c, 0x87, 0x80, 0x10, 0x00, 0x8b, 0x45, 0x10, 0x89, 0x85, 0x78,
            0xff, 0xff, 0xff, 0xe8, 0xa6, 0xf7, 0xff, 0xff, 0x8b, 0xc8, 0x33, 0xf6, 0x00, 0x90, 0x03, 0x00,
        ];
        assert!(!is_table(&of_table(&code, Width::Legacy).0));
        let gate = [0xcd, 0x55, 0x08, 0, 0, 0xee, 0x86, 0x80];
        assert!(is_table(&of_table(&gate.repeat(4), Width::Legacy).0));
        assert!(is_table(&of_table(&[0; 64], Width::Legacy).0));
    }

    #[test]
    fn what_is_no_whole_number_of_items_is_refused() {
        assert!(of_kind("gdt8", &[0; 7]).is_err() && of_kind("gdt8", &[]).is_err());
        assert!(of_kind("gate64", &[0; 24]).is_err());
        assert_eq!(of_kind("gate32", &[0; 16]).map(|items| items.len()).ok(), Some(2));
        assert_eq!(of_kind("tss32", &[0; 3]).map(|items| items.len()).ok(), Some(1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_table(bytes in prop::collection::vec(any::<u8>(), 0..100), long: bool) {
            let width = if long { Width::Long } else { Width::Legacy };
            let (items, left) = of_table(&bytes, width);
            let shown: usize = items.iter().filter_map(Item::bytes).map(|bytes| bytes.len()).sum();
            prop_assert_eq!(shown + left, bytes.len());
        }

        #[test]
        fn any_text_is_taken(text: String) {
            let _ = (registers(&text), rights(&text));
        }
    }
}
