//! The Windows debugger's `r` and `rdmsr`.
//!
//! `r idtr` prints `idtr=8003f400`, and `r` prints pairs in three lines; addresses of a 64-bit target have 16 digits.
//! `rdmsr` prints `msr[174] = 00000000:00000008` up to the debuggers of Windows XP and ``msr[c0000082] =
//! fffff800`01024040`` since; HyperDbg prints the processor's number before it.

use crate::line::{Line, excerpt};
use crate::number::{Hex, assignments, number, plain, word};
use crate::piece::{Form, Register, SegmentRegister, TableRegister, What};
use crate::{complaint::Wrong, format::Format, sink::Sink};

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    let mut pairs = assignments(text);
    let Some((first, value)) = pairs.next() else { return false };
    let begins = text.starts_with(first) || line.is_command;
    if !begins || !is_register(first) || number(value).is_none() {
        return false;
    }
    for (name, value) in std::iter::once((first, value)).chain(pairs) {
        if let Some(value) = number(value) {
            register(sink, name, value);
        }
    }
    true
}

/// The debugger's names are in lower case; `msr` and flags such as `iopl` are not read here.
fn is_register(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_uppercase())
        && (matches!(name, "idtr" | "idtl" | "gdtr" | "gdtl")
            || Register::by_name(name).is_some()
            || SegmentRegister::by_name(name).is_some())
}

fn register(sink: &mut Sink, name: &str, Hex { value, digits }: Hex) {
    const FORMAT: Format = Format::KdRegisters;
    let small = u16::try_from(value);
    let what = match (name, Register::by_name(name), SegmentRegister::by_name(name), small) {
        ("idtr" | "gdtr", ..) => {
            sink.form(FORMAT, if digits > 8 { Form::DebuggerWide } else { Form::NarrowTableRegister });
            What::base(table(name), value)
        }
        ("idtl" | "gdtl", _, _, Ok(limit)) => {
            What::TableRegister { table: table(name), base: None, limit: Some(limit.into()) }
        }
        (_, _, Some(register), Ok(selector)) => What::selector(register, selector),
        ("idtl" | "gdtl", ..) | (_, _, Some(_), _) => {
            sink.complain(FORMAT, Wrong::TooLarge { word: format!("{name}={value:x}"), bytes: 2 });
            return;
        }
        (_, Some(register), ..) => {
            match name {
                "rip" | "rsp" => sink.form(FORMAT, Form::WideRegisters),
                "eip" | "esp" => sink.form(FORMAT, Form::NarrowRegisters),
                _ => {}
            }
            What::Register { register, value }
        }
        _ => return,
    };
    sink.push(FORMAT, what);
}

fn table(name: &str) -> TableRegister {
    if name.starts_with('i') { TableRegister::Idt } else { TableRegister::Gdt }
}

pub(crate) fn read_msr(sink: &mut Sink, line: &Line<'_>) -> bool {
    let found = msr(line.text).or_else(|| msr_alone(sink, line.text));
    found.is_some_and(|(number, value)| sink.push(Format::Rdmsr, What::Msr { number, value }))
}

/// Parses `msr[c0000081] = 00230010:00000000`, possibly with text before it.
fn msr(text: &str) -> Option<(u32, u64)> {
    let at = text.find("msr[")?;
    let (index, rest) = text[at + 4..].split_once(']')?;
    let (value, _) = word(rest.trim_start_matches(' ').strip_prefix('=')?);
    let value = match value.split_once(':') {
        Some((high, low)) => {
            let (high, low) = (plain(high)?, plain(low)?);
            (high.digits <= 8 && low.digits == 8).then_some(high.value << 32 | low.value)?
        }
        None => number(value)?.value,
    };
    Some((u32::try_from(number(index)?.value).ok()?, value))
}

/// Parses the output of msr-tools' `rdmsr`: only the value, without leading zeros.
fn msr_alone(sink: &Sink, text: &str) -> Option<(u32, u64)> {
    let command = excerpt(&sink.command).trim_start_matches(['#', '$', ' ']);
    let command = command.strip_prefix("sudo ").unwrap_or(command);
    let asked = command.strip_prefix("rdmsr ")?;
    let index = asked.split(' ').rfind(|word| !word.is_empty() && !word.starts_with('-'))?;
    Some((u32::try_from(number(index)?.value).ok()?, plain(text)?.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, testing::whats};
    use proptest::prelude::*;

    #[test]
    fn both_spellings_of_an_msr() {
        for text in [
            "msr[174] = 00000000:00000008",
            "msr[174] = 00000000`00000008",
            "kd> msr[174] = 0000000000000008",
        ] {
            assert_eq!(whats(text), [What::Msr { number: 0x174, value: 8 }], "{text}");
        }
        assert_eq!(
            whats("core : 0x1 - msr[c0000082] = fffff807`73553180"),
            [What::Msr { number: 0xc000_0082, value: 0xffff_f807_7355_3180 }]
        );
        assert_eq!(
            whats("$ sudo rdmsr -p 0 0xc0000081\n23001000000000"),
            [What::Msr { number: 0xc000_0081, value: 0x23_0010_0000_0000 }]
        );
        for text in ["msr[] = 1", "msr[1] = ", "msr[123456789] = 1", "msr[1] = 1:2", "msr[1] 2"] {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    #[test]
    fn tables_and_segments() {
        assert_eq!(
            whats("gdtr=80b99000   gdtl=03ff idtr=80b99400   idtl=07ff tr=0028  ldtr=0000"),
            [
                What::base(TableRegister::Gdt, 0x80b9_9000),
                What::TableRegister { table: TableRegister::Gdt, base: None, limit: Some(0x3ff) },
                What::base(TableRegister::Idt, 0x80b9_9400),
                What::TableRegister { table: TableRegister::Idt, base: None, limit: Some(0x7ff) },
                What::selector(SegmentRegister::Tr, 0x28),
                What::selector(SegmentRegister::Ldtr, 0),
            ]
        );
        assert_eq!(read(b"tr=12345", None).complaints.len(), 1);
        assert_eq!(read(b"idtl=12345678", None).complaints.len(), 1);
    }

    #[test]
    fn a_whole_answer_of_r() {
        let text = "eax=00000001 ebx=ffdff980 ecx=8054bd4c edx=000002f8 esi=00000000 edi=00000000
eip=804e3b25 esp=80549e70 ebp=80549e80 iopl=0         nv up ei pl nz na po nc
cs=0008  ss=0010  ds=0023  es=0023  fs=0030  gs=0000             efl=00000202";
        let whats = whats(text);
        assert_eq!(whats.len(), 16);
        assert!(whats.contains(&What::Register { register: Register::RFLAGS, value: 0x202 }));
        assert!(whats.contains(&What::Register { register: Register::RIP, value: 0x804e_3b25 }));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(number: u32, value: u64, base: u64, selector: u16) {
            let (high, low) = (value >> 32, value & 0xffff_ffff);
            for sign in [':', '`'] {
                let text = format!("msr[{number:x}] = {high:08x}{sign}{low:08x}");
                prop_assert_eq!(whats(&text), [What::Msr { number, value }]);
            }
            let segment = What::selector(SegmentRegister::Tr, selector);
            prop_assert_eq!(whats(&format!("tr={selector:04x}")), [segment]);
            let register = What::base(TableRegister::Idt, base);
            prop_assert_eq!(whats(&format!("idtr={base:016x}")), [register]);
        }
    }
}
