//! gdb's `x` and `info registers`; `x` of Bochs and QEMU prints alike.
//!
//! `x/16xb`, `x/8xh`, `x/4xw` and `x/2xg` print an address, perhaps a symbol, a colon, and values with as many digits as
//! the unit (`0xcd`, `0x55cd`, `0x000855cd`). QEMU's monitor omits `0x` before the address. `info registers` prints a name,
//! the value, and its meaning.

use tollgate_x86::Msr;

use crate::line::{Line, excerpt};
use crate::number::{is_hex, little_endian, number, prefixed, strip_prefix, word};
use crate::piece::{Form, Register, SegmentRegister, What};
use crate::{complaint::Wrong, format::Format, sink::Sink};

pub(crate) fn read_memory(sink: &mut Sink, line: &Line<'_>) -> bool {
    const FORMAT: Format = Format::GdbMemory;
    if !line.text.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return false;
    }
    let Some((head, rest)) = split(line.text) else { return false };
    let Some(address) = number(head).filter(|hex| hex.digits >= 8 || head.starts_with("0x")) else {
        return false;
    };
    let mut digits = 0;
    let mut bytes = Vec::with_capacity(16);
    for value in rest.split_ascii_whitespace() {
        let Some(hex) = prefixed(value).filter(|hex| matches!(hex.digits, 2 | 4 | 8 | 16)) else {
            return complain(sink, value, digits);
        };
        if digits != 0 && hex.digits != digits {
            return sink.complain(FORMAT, Wrong::mixed(digits, value, hex.digits));
        }
        digits = hex.digits;
        little_endian(hex.value, digits / 2, &mut bytes);
    }
    if bytes.is_empty() {
        return false;
    }
    sink.bytes(FORMAT, Some(address.value), bytes)
}

fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take(20).position(|byte| matches!(byte, b' ' | b':'))?;
    let (address, rest) = text.split_at(end);
    let rest = rest.trim_start_matches(' ');
    let rest = match rest.strip_prefix('<') {
        Some(symbol) => symbol.split_once('>')?.1,
        None => rest,
    };
    Some((address, rest.trim_start_matches(' ').strip_prefix(':')?))
}

/// Reports a bad word after good ones: the line was truncated, or is something else.
fn complain(sink: &mut Sink, value: &str, digits: usize) -> bool {
    let is_cut = strip_prefix(value).is_some_and(|rest| rest.is_empty() || is_hex(rest));
    digits != 0 && is_cut && sink.complain(Format::GdbMemory, Wrong::within(value, digits))
}

pub(crate) fn read_registers(sink: &mut Sink, line: &Line<'_>) -> bool {
    const FORMAT: Format = Format::GdbRegisters;
    let text = line.text.strip_prefix('$').unwrap_or(line.text);
    let (name, rest) = word(text);
    let rest = rest.trim_start_matches([' ', ':']);
    if name.len() > 9 || rest.len() == text.len() - name.len() {
        return false;
    }
    let (value, _) = word(rest);
    let Some(value) = prefixed(value) else { return false };
    let msr = match name {
        "fs_base" => Some(Msr::FsBase),
        "gs_base" => Some(Msr::GsBase),
        "k_gs_base" => Some(Msr::KernelGsBase),
        "efer" => Some(Msr::Efer),
        _ => None,
    };
    let what = if let Some(msr) = msr {
        What::msr(msr, value.value)
    } else if let Some(register) = Register::by_name(name) {
        What::Register { register, value: value.value }
    } else {
        match (SegmentRegister::by_name(name), u16::try_from(value.value)) {
            (Some(register), Ok(selector)) => What::selector(register, selector),
            _ => return false,
        }
    };
    match name {
        "rip" => sink.form(FORMAT, Form::WideRegisters),
        "eip" => sink.form(FORMAT, Form::NarrowRegisters),
        _ => {}
    }
    let symbol = rest.split_once('<').and_then(|(_, symbol)| symbol.split_once('>'));
    let symbol = match (&what, symbol) {
        (What::Register { register, .. }, Some((symbol, _))) => {
            Some(What::symbol(*register, excerpt(symbol)))
        }
        _ => None,
    };
    sink.push(FORMAT, what);
    symbol.is_none_or(|symbol| sink.push(FORMAT, symbol))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{whats, wrong};
    use proptest::prelude::*;

    const GATE: [u8; 8] = [0xcd, 0x55, 8, 0, 0, 0xee, 0x86, 0x80];

    #[test]
    fn memory_in_all_units_and_from_all_tools() {
        for text in [
            "0x8003f570:\t0xcd\t0x55\t0x08\t0x00\t0x00\t0xee\t0x86\t0x80",
            "(gdb) x/4xh 0x8003f570\n0x8003f570 <idt_table+368>:\t0x55cd\t0x0008\t0xee00\t0x8086",
            "0x000000008003f570 <bogus+       0>:\t0x000855cd\t0x8086ee00",
            "(qemu) x/1xg 0x8003f570\n000000008003f570: 0x8086ee00000855cd",
        ] {
            assert_eq!(
                whats(text),
                [What::Bytes { address: Some(0x8003_f570), bytes: GATE.to_vec() }],
                "{text}"
            );
        }
    }

    #[test]
    fn what_went_wrong_is_named() {
        assert_eq!(
            wrong("0x1000:\t0xcd\t0x5"),
            Some(Wrong::EndsWithinWord { word: "0x5".into(), digits: 2 })
        );
        assert_eq!(
            wrong("0x1000:\t0xcd\t0x0055"),
            Some(Wrong::MixedWidths { first: 2, other: 4, word: "0x0055".into() })
        );
        assert_eq!(
            wrong("0xfffffffffffffff8:\t0x0000000000000000\t0x0000000000000000"),
            Some(Wrong::PastTheEnd)
        );
        assert_eq!(wrong("0x1000: a note"), None);
        assert_eq!(wrong("0x1000 <main>: push %rbp"), None);
    }

    #[test]
    fn registers() {
        let text = "rsp            0x7fffffffe0d8      0x7fffffffe0d8
rip            0xffffffff81e00080  0xffffffff81e00080 <entry_SYSCALL_64>
eflags         0x246               [ IF ZF PF ]
cs             0x10                16
gs_base        0x0                 0
cr0            0x80050033          [ PG AM WP NE ET MP PE ]
efer           0xd01               [ NXE LMA LME SCE ]";
        let printed = whats(text);
        assert_eq!(printed.len(), 8);
        assert!(printed.contains(&What::symbol(Register::RIP, "entry_SYSCALL_64")));
        assert!(printed.contains(&What::Msr { number: 0xc000_0080, value: 0xd01 }));
        let register = SegmentRegister::Cs;
        assert!(printed.contains(&What::selector(register, 0x10)));
        for text in ["rip", "rip the", "a 0x10", "cs 0x12345", "rip0x10"] {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(address in 0u64..u64::MAX - 16, raw: [u8; 16], unit in 0u32..4, words in 1usize..=16) {
            let unit = 1usize << unit;
            let kept = &raw[..(unit * words).min(16)];
            let mut text = format!("{address:#x}:");
            for word in kept.chunks(unit) {
                let value = word.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
                text.push_str(&format!("\t0x{value:0width$x}", width = 2 * unit));
            }
            prop_assert_eq!(whats(&text), [What::Bytes { address: Some(address), bytes: kept.to_vec() }]);
        }
    }
}
