//! The state of a processor as Bochs logs it at a triple fault, at a panic, and when its debugger ends.
//!
//! From cpu/debugstuff.cc, `BX_CPU_C::debug`: `CPU is in long mode (active)`, `EFER   = 0x00000500`, `| RAX=... RBX=...`,
//! the flags by name with set ones in capitals (since 2.7 with their value), ` CS:0008( 0001| 0|  0) base limit G D`,
//! `| RIP=... (...)`, `| CR0=0x... CR2=0x...`. Each line is preceded by the time in instructions, a letter, and the
//! processor. Only the low 32 bits of segment bases are printed. Limits are in bytes; up to 2.3 they are printed as in the
//! descriptor, regardless of G.

use tollgate_x86::{Msr, Rflags, Selector};

use crate::number::{assignments, plain, prefixed, word};
use crate::piece::{Form, Hidden, Register, SegmentRegister, What};
use crate::{format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::BochsLog;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let Some((processor, text)) = entry(line.text) else { return false };
    let text = text.trim_start_matches([' ', '|']);
    let Some(found) = state(text) else { return false };
    sink.processor(processor);
    for what in found {
        match what {
            What::Form(form) => sink.form(FORMAT, form),
            what => {
                sink.push(FORMAT, what);
            }
        }
    }
    true
}

fn entry(text: &str) -> Option<(u32, &str)> {
    let (head, rest) = text.split_once('[').filter(|(head, _)| head.len() <= 24)?;
    let time = head.strip_suffix(['i', 'd', 'e', 'p'])?;
    let (device, rest) = rest.split_once(']')?;
    let processor = device.strip_prefix("CPU")?.trim_end_matches(' ').parse().ok()?;
    (!time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit())).then_some((processor, rest))
}

fn state(text: &str) -> Option<Vec<What>> {
    if let Some(mode) = text.strip_prefix("CPU is in ") {
        let is_long = ["long mode", "compatibility mode"].iter().any(|name| mode.starts_with(name));
        return Some(vec![What::Form(if is_long { Form::BochsLong } else { Form::BochsLegacy })]);
    }
    if ["CS.mode", "SS.mode", "SEG s"].iter().any(|known| text.starts_with(known)) {
        return Some(Vec::new());
    }
    if text.starts_with("IOPL=") {
        return flags(text).map(|value| vec![What::Register { register: Register::RFLAGS, value }]);
    }
    if let Some((name, value)) = text.split_once(':').filter(|(name, _)| !name.contains('=')) {
        return named(name, value).map(|what| vec![what]);
    }
    let found: Vec<What> = assignments(text).filter_map(|(name, value)| assigned(name, value)).collect();
    (!found.is_empty()).then_some(found)
}

fn assigned(name: &str, value: &str) -> Option<What> {
    let value = value.trim_end_matches(':');
    let value = prefixed(value).or_else(|| plain(value)).filter(|hex| hex.digits >= 8)?.value;
    match name {
        "EFER" => Some(What::msr(Msr::Efer, value)),
        _ => Some(What::Register { register: Register::by_name(name)?, value }),
    }
}

fn flags(text: &str) -> Option<u64> {
    let (first, names) = word(text);
    let level: u64 = first.strip_prefix("IOPL=")?.parse().ok().filter(|level| *level < 4)?;
    let mut value = Rflags::FIXED.0 | level << 12;
    for name in names.split(' ').filter(|name| !name.is_empty()) {
        let bit = Rflags::BITS.iter().find(|bit| bit.name.eq_ignore_ascii_case(name))?;
        value |= u64::from(name == bit.name) << bit.number;
    }
    Some(value)
}

fn named(name: &str, rest: &str) -> Option<What> {
    let msr = match name {
        "MSR_FS_BASE" => Some(Msr::FsBase),
        "MSR_GS_BASE" => Some(Msr::GsBase),
        _ => None,
    };
    if let Some(msr) = msr {
        return Some(What::msr(msr, plain(word(rest).0)?.value));
    }
    let register = SegmentRegister::by_name(name)?;
    let (selector, rest) = rest.split_once('(')?;
    let (_, rest) = rest.split_once(')')?;
    let (base, rest) = word(rest);
    let (limit, rest) = word(rest);
    let digits = |word: &str, digits| plain(word).filter(|hex| hex.digits == digits).map(|hex| hex.value);
    let (selector, base, limit) = (digits(selector, 4)?, digits(base, 8)?, digits(limit, 8)? as u32);
    // A limit in pages that was converted to bytes ends at the end of a page.
    let is_in_pages = word(rest).0 == "1" && (limit & 0xfff != 0xfff || limit == 0xf_ffff);
    let limit = if is_in_pages { limit << 12 | 0xfff } else { limit };
    let hidden = Hidden { base, base_bits: 32, limit, rights: None };
    Some(What::Segment { register, selector: Selector(selector as u16), hidden: Some(hidden) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::whats;

    #[test]
    fn a_state_of_32_bits() {
        let printed = whats(
            "00159146725i[CPU0  ] CPU is in protected mode (active)
00159146725i[CPU0  ] CS.mode = 32 bit
00159146725i[CPU0  ] EFER   = 0x00000000
00159146725i[CPU0  ] | EAX=001010bc  EBX=00ee0000  ECX=00000000  EDX=000003fd
00159146725i[CPU0  ] | IOPL=3 ID vip vif ac VM RF nt of df if tf sf zf af pf cf
00159146725i[CPU0  ] | SEG sltr(index|ti|rpl)     base    limit G D
00159146725i[CPU0  ] |  CS:0010( 0002| 0|  0) 00000000 000fffff 1 1
00159146725i[CPU0  ] |  GS:0043( 0008| 0|  3) 000b8000 0000ffff 0 0
00159146725i[CPU0  ] | EIP=00100805 (00100805)
00159146725i[CPU0  ] | CR0=0x60000011 CR2=0x00000000
00159146725p[CPU0  ] >>PANIC<< exception(): 3rd (13) exception with no resolution",
        );
        let flags = Rflags::FIXED.0 | 3 << 12 | Rflags::ID.0 | Rflags::VM.0 | Rflags::RF.0;
        let segment = |register, selector, base, limit| What::Segment {
            register,
            selector: Selector(selector),
            hidden: Some(Hidden { base, base_bits: 32, limit, rights: None }),
        };
        for wanted in [
            What::msr(Msr::Efer, 0),
            What::Register { register: Register::RFLAGS, value: flags },
            segment(SegmentRegister::Cs, 0x10, 0, 0xffff_ffff),
            segment(SegmentRegister::Gs, 0x43, 0xb_8000, 0xffff),
            What::Register { register: Register::RIP, value: 0x10_0805 },
            What::Register { register: Register::CR0, value: 0x6000_0011 },
        ] {
            assert!(printed.contains(&wanted), "{wanted:?}: {printed:#?}");
        }
        let later = whats(
            "00159146725i[CPU1  ] | EFLAGS=00000002: id vip vif ac vm rf nt IOPL=0 of df if tf sf zf af pf cf",
        );
        assert_eq!(later, [What::Register { register: Register::RFLAGS, value: 2 }]);
    }

    #[test]
    fn other_lines_of_the_log_are_passed_over() {
        for text in [
            "00143437569e[CPU0  ] interrupt(): gate descriptor is not valid sys seg (vector=0x06)",
            "00018109499i[BIOS  ] Booting from 07c0:0000",
            "i[CPU0  ] | CR3=0x00101000",
            "[CPU0  ] | CR3=0x00101000",
            "00143437569i[CPU0  ] | IOPL=9 id",
            "00143437569i[CPU0  ] |  CS:0010( 0002",
        ] {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    takes_any! { text in "\\PC{0,60}" => whats(&format!("00143437569i[CPU0  ] | {text}")) }
}
