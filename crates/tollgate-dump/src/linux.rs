//! The registers in Linux's report of an oops, a warning or a panic.
//!
//! From arch/x86/kernel/process_64.c and process_32.c, `__show_regs`, and dumpstack.c, `show_ip`:
//! `RSP: 0018:ffffc90009af7660 EFLAGS: 00010216`, `RIP: 0010:function+0x1/0x2`,
//! `FS:  00007fc64cdeb540(0000) GS:ffff9d20d7240000(0000) knlGS:0000000000000000`,
//! `CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033`, `CR2: ... CR3: ... CR4: ...`. A time in brackets may stand before.

use tollgate_x86::{Msr, Selector};

use crate::number::{pairs, plain};
use crate::piece::{Form, Register, SegmentRegister, What};
use crate::{format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::Oops;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = without_time(line.text);
    let Some((first, _)) = text.split_once(':') else { return false };
    if first.len() > 6 || !first.starts_with(|c: char| c.is_ascii_uppercase()) {
        return false;
    }
    pairs(text).take_while(|(name, value)| register(sink, name, value)).count() > 0
}

/// Without `[ 2150.391559]` and `[    C1]`.
fn without_time(text: &str) -> &str {
    let mut text = text;
    for _ in 0..2 {
        let bracket = text.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let Some((inner, rest)) = bracket.filter(|(inner, _)| inner.len() <= 20 && inner.is_ascii()) else {
            break;
        };
        let is_mark =
            inner.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'.' | b'C' | b'T'));
        if !is_mark {
            break;
        }
        text = rest.trim_start_matches(' ');
    }
    text
}

fn register(sink: &mut Sink, name: &str, value: &str) -> bool {
    match name {
        "FS" | "GS" | "knlGS" => return base(sink, name, value),
        "RSP" | "RIP" | "ESP" | "EIP" if value.contains(':') => return with_segment(sink, name, value),
        "DR0" | "DR1" | "DR2" | "DR3" | "PKRU" | "ORIG_RAX" => return plain(value).is_some(),
        _ => {}
    }
    if let Some(register) = SegmentRegister::by_name(name).filter(|_| name.len() == 2) {
        let Some(selector) = plain(value).filter(|hex| hex.digits == 4) else { return false };
        sink.push(FORMAT, What::selector(register, selector.value as u16));
        return true;
    }
    let is_upper = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let register = Register::by_name(name).filter(|_| is_upper);
    let Some((register, value)) = register.zip(plain(value).filter(|hex| matches!(hex.digits, 8 | 16)))
    else {
        return false;
    };
    if register == Register::CR0 {
        sink.form(FORMAT, if value.digits == 16 { Form::LongName } else { Form::LegacyName });
    }
    sink.push(FORMAT, What::Register { register, value: value.value })
}

/// `00007fc64cdeb540(0000)`: the base, and the selector in parentheses; of knlGS the base alone. (32-bit kernels print
/// selectors alone: `FS: 00d8`.)
fn base(sink: &mut Sink, name: &str, value: &str) -> bool {
    let (base, selector) = value.split_once('(').unwrap_or((value, ""));
    let Some(base) = plain(base) else { return false };
    if base.digits == 4 && name != "knlGS" {
        return SegmentRegister::by_name(name).is_some_and(|register| {
            let selector = Selector(base.value as u16);
            sink.push(FORMAT, What::Segment { register, selector, hidden: None })
        });
    }
    if base.digits != 16 {
        return false;
    }
    let (msr, register) = match name {
        "FS" => (Msr::FsBase, Some(SegmentRegister::Fs)),
        "GS" => (Msr::GsBase, Some(SegmentRegister::Gs)),
        _ => (Msr::KernelGsBase, None),
    };
    sink.push(FORMAT, What::msr(msr, base.value));
    let selector = plain(selector.trim_end_matches(')')).and_then(|hex| u16::try_from(hex.value).ok());
    if let Some((register, selector)) = register.zip(selector) {
        sink.push(FORMAT, What::selector(register, selector));
    }
    true
}

/// `0018:ffffc90009af7660`, `0010:function+0x1/0x2`, `0033:0x7f642a4d0f8d`, `0060:[<c01063a4>]`.
fn with_segment(sink: &mut Sink, name: &str, value: &str) -> bool {
    let Some((selector, offset)) = value.split_once(':') else { return false };
    let Some(selector) = plain(selector).filter(|hex| hex.digits == 4) else { return false };
    let (register, segment) = match name {
        "RSP" | "ESP" => (Register::RSP, SegmentRegister::Ss),
        _ => (Register::RIP, SegmentRegister::Cs),
    };
    let selector = Selector(selector.value as u16);
    sink.push(FORMAT, What::Segment { register: segment, selector, hidden: None });
    let offset = offset.trim_start_matches("[<").trim_start_matches("0x").trim_end_matches(['>', ']']);
    if let Some(value) = plain(offset).filter(|hex| hex.digits >= 8) {
        sink.push(FORMAT, What::Register { register, value: value.value });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, testing::whats};
    use proptest::prelude::*;

    #[test]
    fn a_report_of_64_bits() {
        let text = "> [ 2150.391530] RIP: 0010:traverse.part.0+0x2bd/0x640
> [ 2150.391540][   T28] RSP: 0018:ffffc90003e1fa58 EFLAGS: 00010247
> [ 2150.391556] FS:  00007fc64cdeb540(0000) GS:ffff9d20d7240000(0000) knlGS:0000000000000000
> [ 2150.391559] CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033
> [ 2150.391562] CR2: 000055e43c381608 CR3: 0000000076408000 CR4: 00000000003526f0";
        let printed = whats(text);
        assert!(printed.contains(&What::Register { register: Register::RFLAGS, value: 0x10247 }));
        assert!(printed.contains(&What::Register { register: Register::CR4, value: 0x35_26f0 }));
        assert!(printed.contains(&What::Msr { number: 0xc000_0101, value: 0xffff_9d20_d724_0000 }));
        let register = SegmentRegister::Ss;
        assert!(printed.contains(&What::selector(register, 0x18)));
        assert_eq!(read(text.as_bytes(), None).lines.foreign, 0);
    }

    #[test]
    fn prose_with_colons_is_passed_over() {
        for text in
            ["CS: the segment", "RAX: 12", "A: B", "Note: this", "CR0:", "RIP: 00:x", "[x] CS: 0010", ": :"]
        {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(selector: u16, cr0: u64) {
            let register = SegmentRegister::Cs;
            prop_assert_eq!(
                whats(&format!("CS:  {selector:04x} CR0: {cr0:016x}")),
                [
                    What::selector(register, selector),
                    What::Register { register: Register::CR0, value: cr0 },
                ]
            );
        }
    }
}
