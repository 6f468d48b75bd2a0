//! Data directives of assemblers: GNU as (`.byte`, `.word`, `.long`, `.quad` and synonyms; its manual, 7, "Assembler
//! directives") and NASM (`db`, `dw`, `dd`, `dq`; its manual, 3.2.1). Values are little-endian.
//!
//! A line with anything but numbers is skipped, since the assembler evaluates expressions.

use crate::line::{Line, excerpt};
use crate::number::{is_hex, little_endian, plain, strip_prefix, word};
use crate::{complaint::Wrong, format::Format, sink::Sink};

const FORMAT: Format = Format::Assembler;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let Some((unit, is_gas, rest)) = directive(line.text) else { return false };
    let values = without_comment(rest, is_gas).trim_end_matches([' ', ',']);
    if values.is_empty() || is_command(values, is_gas) {
        return false;
    }
    let mut bytes = Vec::with_capacity(16);
    for text in values.split(',') {
        let text = text.trim_matches(' ');
        let Some(value) = number(text, is_gas) else { return false };
        let fits = unit == 8 || value >> (8 * unit) == 0;
        // A negative number was extended to 64 bits.
        let is_negative = text.starts_with('-') && (value as i64) >> (8 * unit - 1) == -1;
        if !fits && !is_negative {
            return sink.complain(FORMAT, Wrong::TooLarge { word: excerpt(text).to_owned(), bytes: unit });
        }
        little_endian(value, unit, &mut bytes);
    }
    sink.bytes(FORMAT, None, bytes)
}

/// Returns the size of a value in bytes, whether the directive is GNU as', and the text after it. A label may precede it.
fn directive(text: &str) -> Option<(usize, bool, &str)> {
    let (first, rest) = word(text);
    if let Some((unit, is_gas)) = named(first) {
        return Some((unit, is_gas, rest));
    }
    let is_label =
        first.ends_with(':') && first.len() > 1 && !first.starts_with(|c: char| c.is_ascii_digit());
    let (second, rest) = word(rest);
    let (unit, is_gas) = named(second).filter(|_| is_label)?;
    Some((unit, is_gas, rest))
}

fn named(word: &str) -> Option<(usize, bool)> {
    let lower = match word.len() {
        2 => word.to_ascii_lowercase(),
        5..=6 => word.to_owned(),
        _ => return None,
    };
    Some(match lower.as_str() {
        ".byte" => (1, true),
        ".word" | ".short" | ".hword" | ".2byte" | ".value" => (2, true),
        ".long" | ".int" | ".4byte" => (4, true),
        ".quad" | ".8byte" => (8, true),
        "db" => (1, false),
        "dw" => (2, false),
        "dd" => (4, false),
        "dq" => (8, false),
        _ => return None,
    })
}

fn without_comment(text: &str, is_gas: bool) -> &str {
    let marks: &[&str] = if is_gas { &["#", ";", "//", "/*"] } else { &[";", "#", "//"] };
    let end = marks.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].trim_matches(' ')
}

/// `dd 80042000` without a prompt is the Windows debugger's command, not an eight-digit decimal number.
fn is_command(values: &str, is_gas: bool) -> bool {
    !is_gas && values.len() >= 5 && is_hex(values) && !is_binary(values)
}

fn is_binary(values: &str) -> bool {
    values
        .strip_suffix(['b', 'B'])
        .is_some_and(|digits| digits.bytes().all(|digit| matches!(digit, b'0' | b'1')))
}

/// Parses `0x1f`, `0b101`, `-1` and decimal in both; `017` in GNU as; `1fh`, `0h1f`, `$1f`, `101b` and underscores in NASM.
fn number(text: &str, is_gas: bool) -> Option<u64> {
    if let Some(positive) = text.strip_prefix('-') {
        return number(positive, is_gas).filter(|_| !positive.starts_with('-')).map(u64::wrapping_neg);
    }
    let clean: String;
    let text = if !is_gas && text.contains('_') && text.len() <= 40 {
        clean = text.replace('_', "");
        &clean
    } else {
        text
    };
    if let Some(digits) = strip_prefix(text).or_else(|| text.strip_prefix("0h").filter(|_| !is_gas)) {
        return Some(plain(digits)?.value);
    }
    let of_radix = |digits: &str, radix| {
        let begins = digits.starts_with(|c: char| c.is_ascii_digit());
        begins.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
    };
    if let Some(digits) = text.strip_prefix("0b") {
        return of_radix(digits, 2);
    }
    if !is_gas {
        let begins_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
        let suffixed = |suffixes: [char; 2]| text.strip_suffix(suffixes).filter(|_| begins_with_digit);
        if let Some(digits) = suffixed(['h', 'H']) {
            return plain(digits).or_else(|| plain(digits.strip_prefix('0')?)).map(|hex| hex.value);
        }
        if let Some(digits) = suffixed(['b', 'B']) {
            return of_radix(digits, 2);
        }
        return of_radix(text, 10);
    }
    match text.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        Some(octal) => of_radix(octal, 8),
        None => of_radix(text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, testing::bytes_as};
    use proptest::prelude::*;

    fn bytes(text: &str) -> Vec<u8> {
        bytes_as(text, FORMAT, None)
    }

    #[test]
    fn one_descriptor_in_many_spellings() {
        let descriptor = [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0];
        for text in [
            "\t.quad\t0x00cf9b000000ffff\t/* __KERNEL32_CS */",
            "gdt: .long 0x0000ffff, 0x00cf9b00 # code",
            ".word 0xffff, 0, 0x9b00, 0x00cf",
            ".byte 255, 0377, 0, 0, 0b0, 0x9b, 0xcf, 0,",
            "code: dq 00CF9B000000FFFFh ; flat",
            "dq 0x00cf_9b00_0000_ffff",
            "dw 0FFFFh, 0, 9b00h, 207",
            "db -1, 0xff, 0, 0, 0, 10011011b, 0cfh, 0",
        ] {
            assert_eq!(bytes(text), descriptor, "{text}");
        }
    }

    #[test]
    fn a_descriptor_field_by_field() {
        let text = "gdt_code:\n  dw 0xffff\n  dw 0\n  db 0\n  db 10011011b\n  db 11001111b ; flags\n  db 0\n";
        assert_eq!(bytes(text), [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0]);
    }

    #[test]
    fn expressions_commands_and_prose_are_passed_over() {
        for text in [
            ".word gdt_end - gdt - 1",
            "kd> db 8003f570",
            "db 8003f570",
            "dd 80042000",
            "dq",
            "db 'text', 0",
            ".quad",
            "4: dd 1",
            ".quad 99999999999999999999",
            ".byte 0x",
            ".byte --1",
        ] {
            assert!(bytes(text).is_empty(), "{text}");
            assert_eq!(read(text.as_bytes(), None).complaints, [], "{text}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_named() {
        let dump = read(b".byte 0x1ff", None);
        assert_eq!(dump.complaints[0].wrong, Wrong::TooLarge { word: "0x1ff".into(), bytes: 1 });
        assert!(dump.pieces.is_empty());
        assert_eq!(read(b".byte -129", None).complaints.len(), 1);
        assert_eq!(bytes(".byte -128"), [0x80]);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(values in prop::collection::vec(any::<u64>(), 1..5), unit in 0usize..4) {
            let size = 1usize << unit;
            let mask = u64::MAX >> (64 - 8 * size);
            let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect();
            let list = values.iter().map(|value| format!("{:#x}", value & mask)).collect::<Vec<_>>().join(", ");
            for name in [[".byte", ".word", ".long", ".quad"][unit], ["db", "dw", "dd", "dq"][unit]] {
                prop_assert_eq!(&bytes(&format!("{name} {list}")), &expected);
            }
        }
    }
}
