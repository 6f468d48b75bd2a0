//! QEMU's `info registers`, which it also logs with `-d cpu_reset` and `-d int`, and when a KVM run fails.
//!
//! From target/i386/cpu-dump.c: `x86_cpu_dump_state` and `cpu_x86_dump_seg_cache`. Segments are printed with their hidden
//! parts, with 16-digit bases while 64-bit code runs and 8-digit ones otherwise; the flags are the upper half of the
//! descriptor under 00FFFF00h. GDT and IDT have 16 digits while EFER.LMA is set, 8 otherwise. Only the low 32 bits of CR4
//! are printed.

use tollgate_x86::{AccessRights, Msr, Selector};

use crate::number::{Hex, assignments, plain, word};
use crate::piece::{Form, Hidden, Register, SegmentRegister, TableRegister, What};
use crate::{complaint::Wrong, format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::Qemu;
/// The mask of LAR, without the limit's bits.
const RIGHTS: u64 = 0x00f0_ff00;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    if !text.starts_with(|c: char| c.is_ascii_uppercase()) {
        return false;
    }
    let Some((name, rest)) = text.split_once('=').filter(|(name, _)| name.len() <= 9) else { return false };
    let name = name.trim_end_matches(' ');
    match name {
        "GDT" => table(sink, TableRegister::Gdt, rest),
        "IDT" => table(sink, TableRegister::Idt, rest),
        _ => match SegmentRegister::by_name(name) {
            Some(register) => segment(sink, register, rest),
            None => others(sink, name, text),
        },
    }
}

fn table(sink: &mut Sink, table: TableRegister, rest: &str) -> bool {
    let (base, rest) = word(rest);
    let (limit, _) = word(rest);
    let (Some(base), Some(limit)) = (plain(base), plain(limit)) else { return false };
    if !matches!(base.digits, 8 | 16) || limit.digits != 8 {
        return false;
    }
    sink.form(FORMAT, if base.digits == 16 { Form::QemuLong } else { Form::QemuLegacy });
    let limit = u32::try_from(limit.value).ok();
    sink.push(FORMAT, What::TableRegister { table, base: Some(base.value), limit })
}

fn segment(sink: &mut Sink, register: SegmentRegister, rest: &str) -> bool {
    let (selector, rest) = word(rest);
    let (base, rest) = word(rest);
    let (limit, rest) = word(rest);
    let (flags, rest) = word(rest);
    let all = [selector, base, limit, flags].map(plain);
    let [Some(selector), Some(base), Some(limit), Some(flags)] = all else {
        return complain(sink, [selector, base, limit, flags]);
    };
    if !matches!([selector, base, limit, flags].map(|hex| hex.digits), [4, 8 | 16, 8, 8]) {
        return false;
    }
    let kind = rest.trim_start_matches(' ').get(6..).unwrap_or_default();
    if register == SegmentRegister::Tr && kind.starts_with("TSS") {
        sink.form(FORMAT, if kind.starts_with("TSS64") { Form::LongName } else { Form::LegacyName });
    }
    let hidden = Hidden {
        base: base.value,
        base_bits: 4 * base.digits as u32,
        limit: limit.value as u32,
        rights: Some(AccessRights((flags.value & RIGHTS) as u32)),
    };
    let selector = Selector(selector.value as u16);
    sink.push(FORMAT, What::Segment { register, selector, hidden: Some(hidden) })
}

fn complain(sink: &mut Sink, words: [&str; 4]) -> bool {
    const DIGITS: [usize; 4] = [4, 16, 8, 8];
    let is_begun = plain(words[0]).is_some_and(|hex| hex.digits == 4);
    let missing = words.iter().zip(DIGITS).find(|(word, _)| plain(word).is_none());
    if let Some((word, digits)) = missing.filter(|_| is_begun) {
        sink.complain(FORMAT, Wrong::within(word, digits));
    }
    is_begun
}

fn others(sink: &mut Sink, first: &str, text: &str) -> bool {
    if is_passed_over(first) {
        return true;
    }
    let of_interest = |name: &str| name == "EFER" || Register::by_name(name).is_some();
    let is_upper = !first.bytes().any(|byte| byte.is_ascii_lowercase());
    let value_of =
        |name: &str, value: &str| plain(value).filter(|hex| hex.digits >= 8 || matches!(name, "CPL" | "SMM"));
    let begins = assignments(text).next().is_some_and(|(_, value)| value_of("", value).is_some());
    if !is_upper || !begins || !(of_interest(first) || is_extended(first)) {
        return false;
    }
    if first == "RIP" {
        // RIP is printed while 64-bit code runs.
        sink.form(FORMAT, Form::QemuLong);
    }
    for (name, value) in assignments(text) {
        if let Some(value) = value_of(name, value) {
            register(sink, name, value);
        }
    }
    true
}

fn is_extended(name: &str) -> bool {
    name.strip_prefix('R')
        .is_some_and(|number| number.parse::<u8>().is_ok_and(|number| (16..32).contains(&number)))
}

fn register(sink: &mut Sink, name: &str, value: Hex) {
    if name == "EFER" {
        sink.push(FORMAT, What::msr(Msr::Efer, value.value));
    } else if let Some(register) = Register::by_name(name) {
        sink.push(FORMAT, What::Register { register, value: value.value });
    }
}

fn is_passed_over(name: &str) -> bool {
    matches!(name, "CCS" | "FCW" | "Code")
        || ["FPR", "XMM", "YMM", "ZMM", "Opmask"].iter().any(|prefix| {
            name.strip_prefix(prefix).is_some_and(|number| !number.is_empty() && number.parse::<u8>().is_ok())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, testing::whats};
    use proptest::prelude::*;

    const LONG: &str = include_str!("../tests/dumps/qemu-linux-64.txt");
    const LEGACY: &str = include_str!("../tests/dumps/qemu-linux-32.txt");

    #[test]
    fn whole_answers_are_understood() {
        for text in [LONG, LEGACY] {
            let dump = read(text.as_bytes(), None);
            assert!(dump.complaints.is_empty(), "{dump:?}");
            assert!(dump.lines.foreign <= 1, "{:?}", dump.lines);
            assert!(dump.pieces.iter().all(|piece| piece.format == FORMAT), "{dump:?}");
        }
        let printed = whats(LONG);
        assert!(printed.contains(&What::Msr { number: 0xc000_0080, value: 0xd01 }));
        assert!(printed.contains(&What::Register { register: Register::CPL, value: 0 }));
        let table = TableRegister::Gdt;
        assert!(printed.contains(&What::TableRegister {
            table,
            base: Some(0xffff_fe00_0000_1000),
            limit: Some(0x7f)
        }));
    }

    #[test]
    fn a_line_that_ends_early_is_named() {
        let dump = read(b"TR =0040 fffffe0000003000 00004087", None);
        assert_eq!(dump.complaints[0].wrong, Wrong::EndsWithinWord { word: String::new(), digits: 8 });
        assert!(dump.pieces.is_empty());
    }

    #[test]
    fn shell_variables_are_no_registers() {
        for text in ["PATH=/bin", "CS=abc", "EAX=", "CPL=0", "A=0000000000000000", "CODE=1", "CR0=x"] {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(selector: u16, base: u64, limit: u32, flags: u32, is_wide: bool) {
            let (base, digits) = if is_wide { (base, 16) } else { (base & 0xffff_ffff, 8) };
            let flags = flags & 0x00ff_ff00;
            let hidden = Hidden {
                base, base_bits: 4 * digits as u32, limit, rights: Some(AccessRights(flags & 0x00f0_ff00)),
            };
            let text = format!("FS ={selector:04x} {base:0digits$x} {limit:08x} {flags:08x}");
            let register = SegmentRegister::Fs;
            let printed = What::Segment { register, selector: Selector(selector), hidden: Some(hidden) };
            prop_assert_eq!(whats(&text), [printed]);
            let text = format!("IDT=     {base:0digits$x} {limit:08x}");
            let printed = What::TableRegister { table: TableRegister::Idt, base: Some(base), limit: Some(limit) };
            prop_assert_eq!(whats(&text), [printed]);
        }
    }
}
