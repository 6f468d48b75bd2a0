//! Bochs' `sreg`, `creg` and `r`.
//!
//! From bx_debug/dbg_main.cc: `bx_dbg_info_segment_regs_command` prints `cs:0x0008, dh=0x00cf9b00, dl=0x0000ffff, valid=1`
//! with the upper and lower half of the descriptor that the hidden part was loaded from (older versions
//! `cs:s=0x0008, dl=0x0000ffff, dh=0x00cf9b00, valid=1`) and `gdtr:base=0x00000000c0000900, limit=0x1f`;
//! `bx_dbg_info_control_regs_command` prints `CR0=0xe0000011: PG CD NW ac wp ne ET ts em mp PE`;
//! `bx_dbg_info_registers_command` prints `rip: 00000000_00000cd6` and `eflags 0x00000006: id vip ...`. If Bochs is built
//! for 64 bits, addresses have 16 digits in every mode, so their width shows nothing.

use tollgate_x86::{Descriptor, Msr, Selector};

use crate::number::{assigned, number, pairs, prefixed, word};
use crate::piece::{Hidden, Register, SegmentRegister, TableRegister, What};
use crate::{format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::BochsRegisters;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    if is_explanation(sink, text) {
        return true;
    }
    if let Some(flags) = text.strip_prefix("eflags 0x").or_else(|| text.strip_prefix("eflags: 0x")) {
        let Some(flags) = number(flags.split([':', ' ']).next().unwrap_or_default()) else { return false };
        return sink.push(FORMAT, What::Register { register: Register::RFLAGS, value: flags.value });
    }
    if let Some((name, rest)) = text.split_once('=').filter(|(name, _)| is_control_register(name)) {
        return control(sink, name, rest);
    }
    let Some((name, rest)) = text.split_once(':').filter(|(name, _)| name.len() <= 14) else { return false };
    let name = name.trim_end_matches(' ');
    match name {
        "gdtr" => table(sink, TableRegister::Gdt, rest),
        "idtr" => table(sink, TableRegister::Idt, rest),
        "MSR_FS_BASE" => base(sink, Msr::FsBase, rest),
        "MSR_GS_BASE" => base(sink, Msr::GsBase, rest),
        _ => match SegmentRegister::by_name(name) {
            Some(register) => segment(sink, register, rest),
            None => general(sink, text),
        },
    }
}

fn is_control_register(name: &str) -> bool {
    let is_numbered = name.starts_with("CR") || name.starts_with("DR");
    name == "EFER" || is_numbered && Register::by_name(name).is_some()
}

/// Matches the explanation of `dh` and `dl` below a segment register, and the lines below CR3.
fn is_explanation(sink: &Sink, text: &str) -> bool {
    let is_below = ["Data segment, base=", "Code segment, base=", "PCD=page-level", "PWT=page-level"];
    sink.line() > 1 && is_below.iter().any(|known| text.starts_with(known))
}

fn table(sink: &mut Sink, table: TableRegister, rest: &str) -> bool {
    let limit = assigned(rest, "limit").and_then(|limit| u32::try_from(limit).ok());
    let (base @ Some(_), limit @ Some(_)) = (assigned(rest, "base"), limit) else { return false };
    sink.push(FORMAT, What::TableRegister { table, base, limit })
}

fn base(sink: &mut Sink, msr: Msr, rest: &str) -> bool {
    let Some(value) = prefixed(word(rest).0) else { return false };
    sink.push(FORMAT, What::msr(msr, value.value))
}

/// Parses `0x0008, dh=0x00cf9b00, dl=0x0000ffff, valid=1`, or with `s=` before the selector.
fn segment(sink: &mut Sink, register: SegmentRegister, rest: &str) -> bool {
    let rest = rest.trim_start_matches(' ');
    let rest = rest.strip_prefix("s=").unwrap_or(rest);
    let Some((selector, halves)) = rest.split_once(',') else { return false };
    let value = |wanted| assigned(halves, wanted).and_then(|value| u32::try_from(value).ok());
    let selector = prefixed(selector).and_then(|hex| u16::try_from(hex.value).ok());
    let (Some(selector), Some(high), Some(low)) = (selector, value("dh"), value("dl")) else { return false };
    let descriptor = Descriptor::decode((u64::from(high) << 32 | u64::from(low)).to_le_bytes());
    let hidden = Hidden {
        base: descriptor.base.into(),
        base_bits: 32,
        limit: descriptor.effective_limit(),
        rights: Some(descriptor.access_rights()),
    };
    sink.push(FORMAT, What::Segment { register, selector: Selector(selector), hidden: Some(hidden) })
}

fn control(sink: &mut Sink, name: &str, rest: &str) -> bool {
    let rest = rest.strip_prefix("page fault laddr=").unwrap_or(rest);
    let end = rest.find([':', ' ']).unwrap_or(rest.len());
    let Some(value) = prefixed(&rest[..end]) else { return false };
    let register = |register| What::Register { register, value: value.value };
    sink.push(FORMAT, Register::by_name(name).map_or(What::msr(Msr::Efer, value.value), register))
}

fn general(sink: &mut Sink, text: &str) -> bool {
    let one = |(name, value): (&str, &str)| {
        let register = Register::by_name(name).filter(|_| name.len() <= 8)?;
        // Digits without a prefix are from Linux.
        let value = number(value).filter(|hex| hex.digits >= 8 && value.len() > hex.digits)?.value;
        Some(What::Register { register, value })
    };
    pairs(text).map_while(one).map(|what| sink.push(FORMAT, what)).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::whats;
    use proptest::prelude::*;

    #[test]
    fn segments_of_new_and_old_versions() {
        let new = whats(
            "<bochs:2> sreg\nss:0x0010, dh=0x00cf9300, dl=0x0000ffff, valid=31\n\tData segment, base=0x00000000, limit=0xffffffff, Read/Write, Accessed",
        );
        assert_eq!(new, whats("ss:s=0x0010, dl=0x0000ffff, dh=0x00cf9300, valid=31"));
        let What::Segment { hidden: Some(hidden), .. } = new[0] else { panic!("{new:?}") };
        assert_eq!(
            (hidden.limit, hidden.rights),
            (0xffff_ffff, Some(tollgate_x86::AccessRights(0x00c0_9300)))
        );
        let tr = whats("tr:0x0040, dh=0x00008b14, dl=0xc380006b, valid=1");
        assert!(matches!(
            tr[0],
            What::Segment { hidden: Some(Hidden { base: 0x14_c380, limit: 0x6b, .. }), .. }
        ));
    }

    #[test]
    fn tables_and_control_registers() {
        let table = TableRegister::Gdt;
        assert_eq!(
            whats("gdtr:base=0x00000000c0000900, limit=0x1f"),
            [What::TableRegister { table, base: Some(0xc000_0900), limit: Some(0x1f) }]
        );
        assert_eq!(
            whats("CR0=0xe0000011: PG CD NW ac wp ne ET ts em mp PE\nEFER=0x00000d00: ffxsr NXE LMA LME sce"),
            [
                What::Register { register: Register::CR0, value: 0xe000_0011 },
                What::Msr { number: 0xc000_0080, value: 0xd00 },
            ]
        );
    }

    #[test]
    fn general_registers() {
        let printed = whats(
            "rax: 00000000_00000001 rcx: 00000000_00000002\nrip: 00000000_c00018fd\neip: 0xc00018fd\neflags 0x00000086: id vip",
        );
        assert_eq!(printed.len(), 5);
        assert_eq!(printed[2], printed[3]);
        assert_eq!(printed[4], What::Register { register: Register::RFLAGS, value: 0x86 });
        for text in ["rax: the register", "cs: 10, dh=1", "gdtr: base", "eip:", "note: 00000000_00000001"] {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    #[test]
    fn digits_without_a_mark_are_those_of_linux() {
        let format = |text: &[u8]| crate::read(text, None).pieces.last().map(|piece| piece.format);
        assert_eq!(format(b"eax: 00000000_00000001 ebx: 00000000_00000002"), Some(FORMAT));
        assert_eq!(format(b"eax: 00000001   ebx: 00000002"), Some(Format::Oops));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(selector: u16, bytes: [u8; 8], base: u64, limit: u16) {
            let descriptor = Descriptor::decode(bytes);
            let raw = u64::from_le_bytes(bytes);
            let printed = whats(&format!("tr:0x{selector:04x}, dh=0x{:08x}, dl=0x{:08x}, valid=1", raw >> 32, raw as u32));
            let hidden = Hidden {
                base: descriptor.base.into(), base_bits: 32, limit: descriptor.effective_limit(),
                rights: Some(descriptor.access_rights()),
            };
            let register = SegmentRegister::Tr;
            prop_assert_eq!(printed, [What::Segment { register, selector: Selector(selector), hidden: Some(hidden) }]);
            let table = TableRegister::Idt;
            prop_assert_eq!(
                whats(&format!("idtr:base=0x{base:016x}, limit=0x{limit:x}")),
                [What::TableRegister { table, base: Some(base), limit: Some(limit.into()) }]
            );
        }
    }
}
