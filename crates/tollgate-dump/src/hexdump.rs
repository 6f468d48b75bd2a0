//! `hexdump -C`, `xxd`, `od` and plain `hexdump`: the bytes of a file. The leading number is an offset in the file, not an
//! address, and is dropped. Rows of one answer are contiguous, until `*` stands for omitted rows.
//!
//! `hexdump -C` ends a row with its text between bars (hexdump(1)). `xxd` has a colon after the offset and groups bytes in
//! memory order (xxd(1)). `od -t x1` and `hexdump` have offsets of 6 or 7 digits; words of more than one byte are
//! little-endian values (od(1), POSIX).

use crate::number::{in_memory_order, is_hex, little_endian, plain, word};
use crate::{complaint::Wrong, format::Format, line::Line, sink::Sink};

/// The most bytes of a row (xxd `-c`).
const MOST: usize = 256;

pub(crate) fn read_canonical(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    if text == "*" {
        sink.gap();
        return sink.is_hinted;
    }
    if !text.ends_with('|') || !text.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return false;
    }
    let Some(bar) = text.find('|').filter(|&bar| bar + 1 < text.len()) else { return false };
    let (offset, rest) = word(&text[..bar]);
    if !is_hex(offset) || offset.len() < 7 {
        return false;
    }
    let mut bytes = Vec::with_capacity(16);
    for text in rest.split_ascii_whitespace() {
        match plain(text) {
            Some(hex) if hex.digits == 2 => bytes.push(hex.value as u8),
            Some(hex) if hex.digits % 2 == 1 => {
                return sink.complain(Format::Hexdump, Wrong::odd(text, hex.digits));
            }
            _ => return false,
        }
    }
    let characters = text[bar + 1..text.len() - 1].chars().count();
    if !bytes.is_empty() && characters > bytes.len() {
        return sink.complain(Format::Hexdump, Wrong::RowTooShort { bytes: bytes.len(), characters });
    }
    sink.bytes(Format::Hexdump, None, bytes)
}

pub(crate) fn read_xxd(sink: &mut Sink, line: &Line<'_>) -> bool {
    let Some((offset, rest)) = line.text.split_once(": ") else { return false };
    if !is_hex(offset) || !(7..=16).contains(&offset.len()) {
        return false;
    }
    // The text begins after two spaces.
    let rest = rest.trim_start_matches(' ');
    let groups = &rest[..rest.find("  ").unwrap_or(rest.len())];
    let mut bytes = Vec::with_capacity(16);
    let mut width = 0;
    for group in groups.split(' ') {
        // The last group may be shorter than the others, not longer.
        let fits = is_hex(group) && bytes.len() < MOST && (width == 0 || group.len() <= width);
        if !fits {
            break;
        }
        if group.len() % 2 == 1 {
            return sink.complain(Format::Xxd, Wrong::odd(group, group.len()));
        }
        width = width.max(group.len());
        bytes.extend(in_memory_order(group));
    }
    sink.bytes(Format::Xxd, None, bytes)
}

pub(crate) fn read_od(sink: &mut Sink, line: &Line<'_>) -> bool {
    let (offset, rest) = word(line.text);
    if !is_hex(offset) || !matches!(offset.len(), 6 | 7) {
        return false;
    }
    let mut bytes = Vec::with_capacity(16);
    let mut width = 0;
    for (count, text) in rest.split_ascii_whitespace().enumerate() {
        let Some(hex) = plain(text).filter(|hex| matches!(hex.digits, 2 | 4 | 8 | 16)) else {
            return complain(sink, text, width, count);
        };
        if width != 0 && hex.digits != width {
            return complain(sink, text, width, count);
        }
        width = hex.digits;
        little_endian(hex.value, width / 2, &mut bytes);
    }
    // Two numbers in a line of text are not a row.
    if bytes.len() < 8 && !sink.is_hinted {
        return false;
    }
    sink.bytes(Format::Od, None, bytes);
    true
}

/// Reports a bad word after enough good ones to recognise a row.
fn complain(sink: &mut Sink, text: &str, width: usize, count: usize) -> bool {
    let is_odd = text.len() % 2 == 1;
    let wrong = || if is_odd { Wrong::odd(text, text.len()) } else { Wrong::mixed(width, text, text.len()) };
    width * count >= 16 && is_hex(text) && sink.complain(Format::Od, wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{What, read};
    use proptest::prelude::*;

    fn bytes(text: &str) -> Option<(Format, Vec<u8>)> {
        let pieces = read(text.as_bytes(), None).pieces.into_iter();
        let mut rows = pieces.filter_map(|piece| match piece.what {
            What::Bytes { address: None, bytes } => Some((piece.format, bytes)),
            _ => None,
        });
        rows.next()
    }

    const TABLE: [u8; 16] = [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0, 0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0];

    #[test]
    fn one_table_from_all_tools() {
        for (format, text) in [
            (
                Format::Hexdump,
                "00000000  ff ff 00 00 00 9b cf 00  ff ff 00 00 00 93 cf 00  |................|",
            ),
            (Format::Xxd, "00000000: ffff 0000 009b cf00 ffff 0000 0093 cf00  ................"),
            (Format::Xxd, "00000000: ff ff 00 00 00 9b cf 00 ff ff 00 00 00 93 cf 00  ................"),
            (Format::Od, "0000000 ff ff 00 00 00 9b cf 00 ff ff 00 00 00 93 cf 00"),
            (Format::Od, "0000000 ffff 0000 9b00 00cf ffff 0000 9300 00cf"),
            (Format::Od, "000000 00cf9b000000ffff 00cf93000000ffff"),
        ] {
            assert_eq!(bytes(text), Some((format, TABLE.to_vec())), "{text}");
        }
    }

    #[test]
    fn what_went_wrong_is_named() {
        for text in [
            "00000000  ff ff 0  |...|",
            "00000000  ff ff  |...|",
            "00000000: ffff 000",
            "0000000 ff ff 00 00 00 9b cf 00 f",
            "0000000 ff ff 00 00 00 9b cf 00 ffff",
        ] {
            let dump = read(text.as_bytes(), None);
            assert_eq!((dump.pieces.len(), dump.complaints.len()), (0, 1), "{text}: {dump:?}");
        }
    }

    #[test]
    fn dates_and_tables_are_no_rows() {
        for text in
            ["201702 12", "000000 a b", "0000000: text", "20170219: 1 2 3 4 text", "| a |", "1234567 12 13"]
        {
            assert_eq!(bytes(text).filter(|(_, bytes)| bytes.len() > 4), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(raw: [u8; 16], count in 8usize..=16) {
            let raw = &raw[..count];
            let pairs: Vec<String> = raw.iter().map(|byte| format!("{byte:02x}")).collect();
            let text: String = raw.iter().map(|&b| if matches!(b, b' '..=b'~') { char::from(b) } else { '.' }).collect();
            let canonical = format!("00000010  {}  |{text}|", pairs.join(" "));
            prop_assert_eq!(bytes(&canonical), Some((Format::Hexdump, raw.to_vec())));
            let groups: Vec<String> = pairs.chunks(2).map(|pair| pair.concat()).collect();
            let xxd = format!("00000010: {}  {text}", groups.join(" "));
            prop_assert_eq!(bytes(&xxd), Some((Format::Xxd, raw.to_vec())));
            let od = format!("0000020 {}", pairs.join(" "));
            prop_assert_eq!(bytes(&od), Some((Format::Od, raw.to_vec())));
        }
    }
}
