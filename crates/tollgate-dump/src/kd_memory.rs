//! The Windows debugger's `db`, `dw`, `dd`, `dq`, `dps`: an address, words of one width, and their text or symbol.
//!
//! From the debugger's documentation of *d, da, db, dc, dd, dD, df, dp, dq, du, dw* and *dds, dps, dqs*: `db` shows bytes
//! with a dash after the eighth and their characters beside them, words are shown as values, and unreadable memory as
//! question marks. Addresses have 8 digits, or 16 with a backtick in the middle.

use crate::number::{Hex, digit, is_hex, little_endian, number, plain, word};
use crate::{complaint::Wrong, format::Format, line::Line, piece::Form, sink::Sink};

const ROW: usize = 16;

const COMMANDS: [&str; 12] = ["d", "db", "dw", "dW", "dd", "dc", "dq", "dp", "dps", "dds", "dqs", "dpp"];

struct Row<'a> {
    /// Bytes in a word.
    unit: usize,
    /// The readable bytes, with the index of the first in each stretch.
    stretches: Vec<(usize, Vec<u8>)>,
    /// Number of bytes, readable or not.
    length: usize,
    /// The text after the words, and the number of spaces before it.
    tail: &'a str,
    spaces: usize,
}

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    if !line.text.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return false;
    }
    let (first, rest) = word(line.text);
    let Some(address) = address(first) else { return false };
    let gap = rest.len() - rest.trim_start_matches(' ').len();
    let Some(row) = words(rest.trim_start_matches(' ')).filter(|row| !is_code(row)) else { return false };
    let is_sure = gap > 1 || row.length == ROW || row.unit == 1 && row.length >= 8;
    if !is_sure && !sink.is_hinted && !sink.was_asked(&COMMANDS) {
        return false;
    }
    let format = match row.unit {
        1 => Format::Db,
        2 => Format::Dw,
        4 | 8 if row.length == row.unit && row.tail.contains('!') => Format::Dps,
        4 => Format::Dd,
        _ => Format::Dq,
    };
    if let Some(wrong) = wrong_of(&row, gap) {
        let loses_its_place = matches!(wrong, Wrong::RowTooShort { .. });
        sink.complain(format, wrong);
        if loses_its_place {
            return true;
        }
    }
    sink.form(format, if address.digits > 8 { Form::DebuggerWide } else { Form::DebuggerNarrow });
    for (at, bytes) in row.stretches {
        match address.value.checked_add(at as u64) {
            Some(address) => sink.bytes(format, Some(address), bytes),
            None => sink.complain(format, Wrong::PastTheEnd),
        };
    }
    true
}

fn address(word: &str) -> Option<Hex> {
    number(word).filter(|hex| {
        matches!(hex.digits, 8 | 16) && digit(word.as_bytes()[0]).is_some() && !word.contains('x')
    })
}

fn words(text: &str) -> Option<Row<'_>> {
    let (first, _) = split(text, true);
    let digits = first.len();
    let unit = match digits {
        2 => 1,
        4 => 2,
        8 => 4,
        16 | 17 => 8,
        _ => return None,
    };
    let mut row = Row { unit, stretches: Vec::new(), length: 0, tail: "", spaces: 0 };
    let mut rest = text;
    let mut is_known = false;
    while row.length < ROW {
        let (word, behind) = split(rest, unit == 1);
        let value = (word.len() == digits).then(|| value(word, unit)).flatten();
        match value {
            Some(Some(value)) => {
                if !is_known {
                    row.stretches.push((row.length, Vec::with_capacity(ROW)));
                }
                let (_, bytes) = row.stretches.last_mut()?;
                little_endian(value, unit, bytes);
                is_known = true;
            }
            Some(None) => is_known = false,
            None => break,
        }
        row.length += unit;
        rest = behind.strip_prefix('-').unwrap_or(behind);
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        rest = &rest[spaces..];
        row.spaces = spaces;
        if spaces > 1 {
            break;
        }
    }
    row.tail = rest;
    (row.length > 0).then_some(row)
}

fn split(text: &str, at_dash: bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| byte == b' ' || at_dash && byte == b'-');
    text.split_at(end.unwrap_or(text.len()))
}

/// Returns the value of a word; the inner `None` means unreadable memory.
fn value(word: &str, unit: usize) -> Option<Option<u64>> {
    if word.bytes().all(|byte| byte == b'?' || byte == b'`') && word.contains('?') {
        return Some(None);
    }
    let hex = if unit == 8 { number(word) } else { plain(word) };
    hex.filter(|hex| hex.digits == 2 * unit).map(|hex| Some(hex.value))
}

/// Returns whether the row is an instruction with its bytes, as disassemblers print it.
fn is_code(row: &Row<'_>) -> bool {
    const MNEMONICS: &str = " add and bt bts call cld cli clts cmp cpuid dec div enter hlt idiv imul in inc int invlpg iret iretd \
        iretq ja jae jb jbe je jg jge jl jle jmp jne jns js jnz jz lea leave lfence lgdt lidt lldt lodsd lods ltr mfence mov \
        movabs movd movq movs movsd movsx movsxd movzx mul neg nop not or out pop popad popf popfd popfq push pushad pushf \
        pushfd pushfq rdmsr rdtsc rep repe repne ret retf retn rol ror sar sbb sete setne sfence sgdt shl shr sidt sldt std \
        sti stos str sub swapgs syscall sysenter sysexit sysret sysretq test ud2 verw wrmsr xadd xchg xor ";
    let mnemonic = word(row.tail).0.to_ascii_lowercase();
    let is_known = mnemonic.len() > 1 && MNEMONICS.split(' ').any(|known| known == mnemonic);
    let shown =
        || row.stretches.iter().flat_map(|(_, bytes)| bytes).map(|&byte| shown(byte)).collect::<String>();
    is_known && shown().trim() != row.tail
}

fn wrong_of(row: &Row<'_>, gap: usize) -> Option<Wrong> {
    let (next, behind) = word(row.tail);
    let digits = 2 * row.unit;
    if row.spaces < 2 && gap > 1 && row.length < ROW && is_hex(next) && next.len() != digits {
        return Some(match (behind.is_empty(), next.len() % 2) {
            (true, _) if next.len() < digits => Wrong::within(next, digits),
            (_, 1) => Wrong::odd(next, next.len()),
            _ => Wrong::mixed(digits, next, next.len()),
        });
    }
    let characters = row.tail.chars().count();
    let is_text = row.unit == 1 && row.spaces > 1 && (row.length + 1..=ROW).contains(&characters);
    (is_text && row.stretches.len() == 1 && shows(row.tail, &row.stretches[0].1))
        .then_some(Wrong::RowTooShort { bytes: row.length, characters })
}

/// Returns whether `text` has the characters of `bytes` in order, with others in between: then bytes are missing.
fn shows(text: &str, bytes: &[u8]) -> bool {
    let mut text = text.chars();
    bytes.iter().all(|&byte| text.any(|c| c == shown(byte)))
}

fn shown(byte: u8) -> char {
    if matches!(byte, b' '..=b'~') { char::from(byte) } else { '.' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wrong;
    use crate::{Dump, What, read};
    use proptest::prelude::*;

    fn bytes(dump: &Dump) -> Vec<(u64, Vec<u8>)> {
        let bytes = dump.pieces.iter().filter_map(|piece| match &piece.what {
            What::Bytes { address: Some(address), bytes } => Some((*address, bytes.clone())),
            _ => None,
        });
        bytes.collect()
    }

    fn print(address: u64, bytes: &[u8], unit: usize, is_wide: bool) -> String {
        let hex = |value: u64, digits: usize| {
            let text = format!("{value:0digits$x}");
            if digits == 16 { format!("{}`{}", &text[..8], &text[8..]) } else { text }
        };
        let mut row = format!("{} ", hex(address, if is_wide { 16 } else { 8 }));
        for (index, word) in bytes.chunks(unit).enumerate() {
            let value = word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            row.push(if unit == 1 && index == 8 { '-' } else { ' ' });
            row.push_str(&hex(value, 2 * unit));
        }
        if unit == 1 {
            let text =
                bytes.iter().map(|&byte| if matches!(byte, b' '..=b'~') { char::from(byte) } else { '.' });
            row.push_str("  ");
            row.extend(text);
        }
        row
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(
            address: u64, raw: [u8; 16], unit in 0u32..4, words in 1usize..=16, is_wide: bool,
        ) {
            let unit = 1usize << unit;
            let address = if is_wide { address } else { address & 0xffff_ffff };
            prop_assume!(address.checked_add(15).is_some());
            let bytes_kept = &raw[..(words * unit).min(16)];
            let row = print(address, bytes_kept, unit, is_wide);
            let dump = read(row.as_bytes(), None);
            prop_assert_eq!(bytes(&dump), [(address, bytes_kept.to_vec())], "{}", row);
            prop_assert_eq!(dump.complaints, []);
        }
    }

    #[test]
    fn rows_of_all_widths() {
        let memory = [0xcd, 0x55, 8, 0, 0, 0xee, 0x86, 0x80];
        for text in [
            "8003f570  cd 55 08 00 00 ee 86 80                          .U......",
            "8003f570  cd 55 08 00 00 ee 86 80-",
            "8003f570  55cd 0008 ee00 8086",
            "8003f570  000855cd 8086ee00  .U......",
            "8003f570  8086ee00`000855cd",
            "kd> db 8003f570 L8\n8003f570 cd 55 08 00 00 ee 86 80 .U......",
        ] {
            assert_eq!(bytes(&read(text.as_bytes(), None)), [(0x8003_f570, memory.to_vec())], "{text}");
        }
    }

    #[test]
    fn symbols_are_passed_over() {
        let dump = read(b"fffff800`00b95080  fffff800`01023d80 nt!KiSystemCall32+0x1", None);
        assert!(dump.pieces.iter().all(|piece| piece.format == Format::Dps));
        assert_eq!(bytes(&dump)[0].1, 0xffff_f800_0102_3d80_u64.to_le_bytes());
    }

    #[test]
    fn unreadable_memory_is_left_out() {
        let dump = read(b"80042000  ?? ?? 01 02 ?? 03", None);
        assert_eq!(bytes(&dump), [(0x8004_2002, vec![1, 2]), (0x8004_2005, vec![3])]);
    }

    #[test]
    fn what_went_wrong_is_named() {
        assert_eq!(wrong("8003f570  cd 55 0"), Some(Wrong::EndsWithinWord { word: "0".into(), digits: 2 }));
        assert_eq!(wrong("8003f570  cd 5 08 00"), Some(Wrong::OddDigits { word: "5".into(), digits: 1 }));
        assert_eq!(
            wrong("8003f570  cd 55 0800 00"),
            Some(Wrong::MixedWidths { first: 2, other: 4, word: "0800".into() })
        );
        assert_eq!(
            wrong("8003f570  cd 55 08 00 ee 86 80  .U......"),
            Some(Wrong::RowTooShort { bytes: 7, characters: 8 })
        );
        assert_eq!(wrong("ffffffff`fffffff8  00 01 02 03 04 05 06 07-08"), Some(Wrong::PastTheEnd));
        assert_eq!(wrong("8003f570  cd 55 08 00  ; gate 2e is the one"), None);
    }

    #[test]
    fn instructions_are_no_memory() {
        for text in [
            "77F88C1C  B8 9A 00 00 00   mov         eax,9Ah",
            "7FFE0302  0F 34            sysenter",
            "kd> db 80865710\n80865710 6a23            push    0x23",
            "fffff800`01024040  0f 01 f8  swapgs",
        ] {
            assert_eq!(bytes(&read(text.as_bytes(), None)), [], "{text}");
        }
        assert_eq!(
            bytes(&read(
                b"80042000  61 6e 64 20 74 68 65 20-6e 65 78 74 20 6f 6e 65  and the next one",
                None
            ))[0]
                .1,
            b"and the next one"
        );
    }

    #[test]
    fn dates_and_amounts_are_no_rows() {
        for text in ["20170219 12 30", "00000478 00000439", "deadbeef cafe"] {
            assert_eq!(bytes(&read(text.as_bytes(), None)), [], "{text}");
        }
    }
}
