//! The registers in Linux's report of an oops, a warning or a panic.
//!
//! From arch/x86/kernel/process_64.c and process_32.c, `__show_regs`, and dumpstack.c, `show_ip`:
//! `RSP: 0018:ffffc90009af7660 EFLAGS: 00010216`, `RIP: 0010:function+0x1/0x2`,
//! `FS:  00007fc64cdeb540(0000) GS:ffff9d20d7240000(0000) knlGS:0000000000000000`,
//! `CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033`, `CR2: ... CR3: ... CR4: ...`. 32-bit kernels print
//! `EIP:    0060:[<c01063a4>]`, up to 2.6.19 `eax: 00000000   ebx: f7d3c000` and `ds: 007b   es: 007b   ss: 0068`
//! (arch/i386/kernel), and since 4.15 `EIP: function+0x1/0x2`. The words of the stack follow `Stack:`, and are not a table.

use tollgate_x86::{Msr, Selector};

use crate::format::Format;
use crate::line::{Line, excerpt};
use crate::number::{pairs, plain};
use crate::piece::{Form, Register, SegmentRegister, What};
use crate::sink::{Oops, Sink};

const FORMAT: Format = Format::Oops;
const LONGEST: usize = 8;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    if is_stack(sink, text) {
        return true;
    }
    if let Some(symbol) = text.strip_prefix("EIP is at ").and_then(symbol) {
        return sink.push(FORMAT, What::symbol(Register::RIP, symbol));
    }
    let Some((first, behind)) = text.split_once(':') else { return false };
    if first.len() > LONGEST || !first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    if pairs(text).take_while(|(name, value)| register(sink, name, value)).count() == 0 {
        return false;
    }
    if let Some(symbol) = symbol(behind).filter(|_| is_pointer(first)) {
        sink.push(FORMAT, What::symbol(Register::RIP, symbol));
    }
    sink.oops = Oops::Registers;
    true
}

/// Matches lines of the stack: `Stack: f7c1df98 c0123456`, and such words below it.
fn is_stack(sink: &mut Sink, text: &str) -> bool {
    let words = match sink.oops {
        Oops::Outside => return false,
        Oops::Registers => text.strip_prefix("Stack:"),
        Oops::Stack => Some(text),
    };
    let is_word = |word: &str| plain(word).is_some_and(|hex| matches!(hex.digits, 8 | 16));
    let is_it = words.is_some_and(|words| words.split_ascii_whitespace().all(is_word));
    if is_it {
        sink.oops = Oops::Stack;
    }
    is_it
}

fn is_pointer(name: &str) -> bool {
    matches!(name, "RIP" | "EIP")
}

fn symbol(text: &str) -> Option<&str> {
    let is_symbol = |word: &&str| {
        let offsets = word.split_once("+0x").and_then(|(_, rest)| rest.split_once("/0x"));
        offsets.is_some_and(|(offset, size)| plain(offset).is_some() && plain(size).is_some())
    };
    let word = text.split([' ', ':']).find(is_symbol)?;
    Some(excerpt(word))
}

fn register(sink: &mut Sink, name: &str, value: &str) -> bool {
    match name {
        "FS" | "GS" | "knlGS" | "fs" | "gs" => return base(sink, name, value),
        "RSP" | "RIP" | "ESP" | "EIP" if value.contains(':') => return with_segment(sink, name, value),
        "RIP" | "EIP" if symbol(value).is_some() => return true,
        "PKRU" | "ORIG_RAX" => return plain(value).is_some(),
        _ => {}
    }
    if let Some(register) = SegmentRegister::by_name(name).filter(|_| name.len() == 2) {
        let Some(selector) = selector(value) else { return false };
        return sink.push(FORMAT, What::selector(register, selector));
    }
    let is_one_case = [name.to_ascii_uppercase(), name.to_ascii_lowercase()].iter().any(|case| case == name);
    let register = Register::by_name(name).filter(|_| is_one_case);
    let Some((register, value)) = register.zip(plain(value).filter(|hex| matches!(hex.digits, 8 | 16)))
    else {
        return false;
    };
    match (register, name) {
        (Register::CR0, _) => {
            sink.form(FORMAT, if value.digits == 16 { Form::LongName } else { Form::LegacyName });
        }
        (_, "EAX" | "eax") => sink.form(FORMAT, Form::NarrowRegisters),
        _ => {}
    }
    sink.push(FORMAT, What::Register { register, value: value.value })
}

/// Parses four digits. Up to 2.6 `ss` was printed with eight, of which the upper four are 0.
fn selector(text: &str) -> Option<u16> {
    plain(text).filter(|hex| matches!(hex.digits, 4 | 8)).and_then(|hex| u16::try_from(hex.value).ok())
}

/// Parses a base with the selector in parentheses, `00007fc64cdeb540(0000)`; knlGS has only the base. 32-bit kernels print
/// only selectors: `FS: 00d8`.
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

/// Parses `0018:ffffc90009af7660`, `0010:function+0x1/0x2`, `0033:0x7f642a4d0f8d`, `0060:[<c01063a4>]`.
fn with_segment(sink: &mut Sink, name: &str, value: &str) -> bool {
    let Some((selector, offset)) = value.split_once(':') else { return false };
    let Some(selector) = plain(selector).filter(|hex| hex.digits == 4) else { return false };
    let (register, segment) = match name {
        "RSP" | "ESP" => (Register::RSP, SegmentRegister::Ss),
        _ => (Register::RIP, SegmentRegister::Cs),
    };
    if name.starts_with('E') {
        sink.form(FORMAT, Form::NarrowRegisters);
    }
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
        assert!(printed.contains(&What::symbol(Register::RIP, "traverse.part.0+0x2bd/0x640")));
        assert_eq!(read(text.as_bytes(), None).lines.foreign, 0);
    }

    #[test]
    fn a_report_of_a_32_bit_kernel() {
        let text = "EIP:    0060:[<c01063a4>]    Not tainted VLI
EFLAGS: 00010246   (2.6.18 #1)
EIP is at default_idle+0x12/0x30
eax: 00000000   ebx: f7d3c000   ecx: 00000000   edx: c0398000
ds: 007b   es: 007b   ss: 0068
Process swapper (pid: 0, ti=c0398000 task=c0325b40 task.ti=c0398000)
Stack: c0398000 c0101a4b 00000000 c039e6f5
       00000000 c0398000 c0101a4b 0000000e c03eb800";
        let printed = whats(text);
        for wanted in [
            What::selector(SegmentRegister::Cs, 0x60),
            What::Register { register: Register::RIP, value: 0xc010_63a4 },
            What::Register { register: Register::RFLAGS, value: 0x10246 },
            What::symbol(Register::RIP, "default_idle+0x12/0x30"),
            What::selector(SegmentRegister::Ss, 0x68),
        ] {
            assert!(printed.contains(&wanted), "{wanted:?}: {printed:#?}");
        }
        assert!(!printed.iter().any(|what| matches!(what, What::Bytes { .. })), "the stack is no table");
        let later = "EIP: native_halt+0x2/0x3\nEAX: 00000000 EBX: c1a0\nDS: 007b ES: 007b FS: 00d8 GS: 0033 SS: 0068 EFLAGS: 00210246";
        assert!(whats(later).contains(&What::selector(SegmentRegister::Gs, 0x33)));
        assert!(whats(later).contains(&What::symbol(Register::RIP, "native_halt+0x2/0x3")));
        assert!(whats("EIP: 0060:[<c01063a4>] EFLAGS: 00010246 CPU: 0").contains(&printed[2]));
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
