//! Digits alone: bytes and words without an address, as typed by a person or in a program's source.
//!
//! Digits without `0x` are bytes in memory order: `ffff0000009bcf00` and `ff ff 00 00 00 9b cf 00` are the same eight
//! bytes. A word with `0x` is a little-endian value: `0x00cf9b000000ffff` and `0x0000ffff, 0x00cf9b00` are those eight
//! bytes too.

use crate::number::{in_memory_order, is_hex, little_endian, plain, strip_prefix};
use crate::{complaint::Wrong, format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::Hex;
/// The fewest digits that count as data without a format: those of a descriptor.
const LEAST: usize = 16;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = body(line.text);
    let begins = |c: char| c.is_ascii_hexdigit() || c == '\\';
    if !text.starts_with(begins) || !text.bytes().all(is_of_it) {
        return false;
    }
    let words = || text.split([' ', ',', '\\', '-', ':']).filter(|word| !word.is_empty());
    let Some(first) = words().next() else { return false };
    match strip_prefix(first) {
        Some(_) => values(sink, words()),
        None => bytes(sink, text.contains("\\x"), words()),
    }
}

fn body(text: &str) -> &str {
    let end =
        ["//", "/*", ";", "#", "}"].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].trim_matches([' ', '{', '"', ',', '`'])
}

const fn is_of_it(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
        || matches!(byte, b' ' | b',' | b'\\' | b'-' | b':' | b'x' | b'X' | b'u' | b'U' | b'l' | b'L')
}

/// Reads words with `0x`, all of one width.
fn values<'a>(sink: &mut Sink, words: impl Iterator<Item = &'a str>) -> bool {
    let mut bytes = Vec::new();
    let mut width = 0;
    for word in words {
        let digits = strip_prefix(word).map(|digits| digits.trim_end_matches(['u', 'U', 'l', 'L']));
        let Some(hex) = digits.and_then(plain) else { return false };
        if width != 0 && hex.digits != width {
            return complain(sink, Wrong::mixed(width, word, hex.digits), bytes.len() > 1);
        }
        if !matches!(hex.digits, 2 | 4 | 8 | 16) {
            return complain(sink, Wrong::odd(word, hex.digits), hex.digits > 8);
        }
        width = hex.digits;
        little_endian(hex.value, width / 2, &mut bytes);
    }
    // A single small number can occur in any text.
    if bytes.len() < 4 && !sink.is_hinted {
        return false;
    }
    sink.bytes(FORMAT, None, bytes)
}

/// Reads digits in memory order: in pairs, in words, or in one run. Each pair may follow `\x`.
fn bytes<'a>(sink: &mut Sink, is_escaped: bool, words: impl Iterator<Item = &'a str> + Clone) -> bool {
    let all =
        || words.clone().map(|word| if is_escaped { word.strip_prefix('x').unwrap_or(word) } else { word });
    if !all().all(is_hex) {
        return false;
    }
    let (total, count) = (all().map(str::len).sum::<usize>(), all().count());
    let longest = all().map(str::len).max().unwrap_or(0);
    if total < LEAST && !sink.is_hinted && !is_escaped {
        return false;
    }
    let is_data = count == 1 || sink.is_hinted || total >= 2 * LEAST || longest >= 8;
    if let Some(odd) = all().find(|word| word.len() % 2 == 1) {
        return complain(sink, Wrong::odd(odd, odd.len()), is_data);
    }
    let first = all().next().map_or(0, str::len);
    if let Some(other) = all().find(|word| word.len() != first) {
        return complain(sink, Wrong::mixed(first, other, other.len()), is_data);
    }
    sink.bytes(FORMAT, None, all().flat_map(in_memory_order).collect())
}

/// Reports the error if the line is likely to be data. Otherwise it is a line of numbers in a text.
fn complain(sink: &mut Sink, wrong: Wrong, is_data: bool) -> bool {
    (is_data || sink.is_hinted) && sink.complain(FORMAT, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use crate::testing::{self, wrong};
    use proptest::prelude::*;

    fn bytes_as(text: &str, hint: Option<Format>) -> Vec<u8> {
        testing::bytes_as(text, FORMAT, hint)
    }

    #[test]
    fn one_descriptor_in_many_spellings() {
        let descriptor = [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0];
        for text in [
            "ffff0000009bcf00",
            "FFFF0000009BCF00",
            "ff ff 00 00 00 9b cf 00",
            "ff,ff,00,00,00,9b,cf,00",
            "ff-ff-00-00-00-9b-cf-00",
            "ffff 0000 009b cf00",
            "ffff0000 009bcf00",
            "0x00cf9b000000ffff",
            "0x0000ffff 0x00cf9b00",
            "0x0000ffffu, 0x00cf9b00u,",
            "{ 0xff, 0xff, 0x00, 0x00, 0x00, 0x9b, 0xcf, 0x00 }, /* code */",
            "\\xff\\xff\\x00\\x00\\x00\\x9b\\xcf\\x00",
            "ffff0000009bcf00 ; kernel code",
        ] {
            assert_eq!(bytes_as(text, None), descriptor, "{text}");
            assert_eq!(bytes_as(text, Some(Format::Hex)), descriptor, "{text} as hex");
        }
    }

    #[test]
    fn what_went_wrong_is_named() {
        assert_eq!(wrong("ffff0000009bcf0"), None, "too short to be distinguished from a word");
        let dump = read(b"ffff0000009bcf0", Some(Format::Hex));
        assert_eq!(dump.complaints[0].wrong, Wrong::OddDigits { word: "ffff0000009bcf0".into(), digits: 15 });
        assert_eq!(
            wrong("ffff0000009bcf000"),
            Some(Wrong::OddDigits { word: "ffff0000009bcf000".into(), digits: 17 })
        );
        assert_eq!(
            wrong("0x0000ffff 0x00cf"),
            Some(Wrong::MixedWidths { first: 8, other: 4, word: "0x00cf".into() })
        );
        assert_eq!(
            wrong("ffff0000009bcf00 ffff"),
            Some(Wrong::MixedWidths { first: 16, other: 4, word: "ffff".into() })
        );
        assert_eq!(
            wrong("0x00cf9b000000fff"),
            Some(Wrong::OddDigits { word: "0x00cf9b000000fff".into(), digits: 15 })
        );
    }

    #[test]
    fn prose_dates_and_figures_are_no_data() {
        for text in [
            "be",
            "added",
            "2005-01-09",
            "478 439 570 311",
            "deadbeef",
            "0x10",
            "1 000 000",
            "ab: cd",
            "0x",
            "12:30",
        ] {
            assert_eq!((bytes_as(text, None), wrong(text)), (vec![], None), "{text}");
        }
        assert_eq!(bytes_as("0x10", Some(Format::Hex)), [0x10]);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(raw in prop::collection::vec(any::<u8>(), 8..100)) {
            let pairs: Vec<String> = raw.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(&bytes_as(&pairs.join(" "), Some(Format::Hex)), &raw);
            prop_assert_eq!(&bytes_as(&pairs.concat(), None), &raw);
            let words: Vec<String> = raw.as_chunks().0.iter().map(|word| format!("{:#018x}", u64::from_le_bytes(*word))).collect();
            prop_assert_eq!(bytes_as(&words.join(", "), None), raw[..raw.len() / 8 * 8].to_vec());
        }
    }
}
