//! Bochs' `info gdt`, `info ldt`, `info idt`, and `info ivt` of real mode.
//!
//! From bx_debug/dbg_main.cc: `bx_dbg_print_descriptor` and `bx_dbg_print_descriptor64`. Limits are in bytes for code and
//! data, but not scaled for a TSS. DPL and P of code and data are not printed, nor is the base of a 64-bit TSS. Up to
//! version 2.6, entries of 16 bytes are printed as two of 8, the second as `??? descriptor hi=0x00000000, lo=0xffff8000`.
//! GDT entries are numbered by four-digit selectors, in older versions by two-digit indices. `info ivt` prints
//! `INT# 10 > C000:0155 (0x000c0155)` for the 4 bytes at four times the vector.

use tollgate_x86::Selector;

use crate::line::{Line, excerpt};
use crate::number::{after, assigned, assignments, number, plain, prefixed, word};
use crate::piece::{Form, SegmentRegister, TableRegister, What};
use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::{format::Format, sink::Sink};

const FORMAT: Format = Format::BochsTables;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    if text.starts_with("You can list individual entries with") {
        return true;
    }
    for (names, table) in [
        (["Global Descriptor Table (base=", "gdt (base="], Ok(TableRegister::Gdt)),
        (["Interrupt Descriptor Table (base=", "idt (base="], Ok(TableRegister::Idt)),
        (["Local Descriptor Table (base=", "ldt (base="], Err(SegmentRegister::Ldtr)),
    ] {
        if names.iter().any(|name| text.starts_with(name)) {
            return header(sink, table, text);
        }
    }
    let Some((table, rest)) = text.split_at_checked(4) else { return false };
    match table {
        "GDT[" | "gdt[" => gdt_entry(sink, rest),
        "IDT[" | "idt[" => idt_entry(sink, rest),
        "LDT[" | "ldt[" => ldt_entry(sink, rest),
        "INT#" => vector(sink, rest),
        _ => false,
    }
}

/// Parses `Global Descriptor Table (base=0x00000000c0000900, limit=31):`, with a decimal limit.
fn header(sink: &mut Sink, table: Result<TableRegister, SegmentRegister>, text: &str) -> bool {
    let mut pairs = assignments(text);
    let base = pairs.next().and_then(|(_, value)| prefixed(value));
    let limit = pairs.next().and_then(|(_, value)| value.split(')').next()?.parse().ok());
    let (Some(base), Some(limit)) = (base, limit) else { return false };
    let base = base.value;
    sink.push(
        FORMAT,
        match table {
            Ok(table) => What::TableRegister { table, base: Some(base), limit: Some(limit) },
            Err(register) => What::Base { register, base, limit: Some(limit) },
        },
    )
}

/// Returns the number before `]=`, hexadecimal with `0x` and decimal without, and the text after it.
fn index(rest: &str) -> Option<(u64, usize, &str)> {
    let (index, rest) = rest.split_once("]=")?;
    let (value, digits) = match prefixed(index) {
        Some(hex) => (hex.value, hex.digits),
        None => (index.parse().ok()?, 0),
    };
    Some((value, digits, rest.trim_start_matches(' ')))
}

fn gdt_entry(sink: &mut Sink, rest: &str) -> bool {
    entry(sink, rest, 0)
}

/// Selectors of the LDT have bit 2 set. Rows that are not descriptors are accepted too.
fn ldt_entry(sink: &mut Sink, rest: &str) -> bool {
    entry(sink, rest, 0b100);
    true
}

fn vector(sink: &mut Sink, rest: &str) -> bool {
    let Some((number, target)) = rest.split_once('>') else { return false };
    let target =
        word(target).0.split_once(':').and_then(|(segment, offset)| plain(segment).zip(plain(offset)));
    let (Some(number), Some((segment, offset))) = (plain(number.trim_matches(' ')), target) else {
        return false;
    };
    if number.digits != 2 || segment.digits != 4 || offset.digits != 4 {
        return false;
    }
    let bytes = (segment.value << 16 | offset.value) as u32;
    sink.bytes(FORMAT, Some(4 * number.value), bytes.to_le_bytes().to_vec())
}

fn entry(sink: &mut Sink, rest: &str, table: u16) -> bool {
    let Some((index, digits, rest)) = index(rest) else { return false };
    let selector = if digits == 4 { Some(index) } else { index.checked_mul(8) };
    let Some(selector) = selector.and_then(|selector| u16::try_from(selector).ok()) else { return false };
    let Some((descriptor, form)) = descriptor(selector & !0b111 | table, rest) else { return false };
    if let Some(form) = form {
        sink.form(FORMAT, form);
    }
    sink.push(FORMAT, What::Descriptor(descriptor))
}

/// Returns an entry of the GDT, and the form of the table that its name implies.
fn descriptor(selector: u16, rest: &str) -> Option<(PrintedDescriptor, Option<Form>)> {
    let mut printed = PrintedDescriptor { selector, kind: kind(rest), ..PrintedDescriptor::default() };
    let flags = |flag: &[(&str, u16)]| {
        flag.iter().filter(|(word, _)| rest.contains(word)).map(|(_, bit)| bit).sum::<u16>()
    };
    if rest.starts_with("Code segment") {
        printed.flags = Some(
            0x18 + flags(&[
                ("Execute/Read", 2),
                (", Conforming", 4),
                (", Accessed", 1),
                ("64-bit", 0x200),
                ("32-bit", 0x400),
            ]),
        );
        printed.mask = 0x61f;
    } else if rest.starts_with("Data segment") {
        printed.flags = Some(0x10 + flags(&[("Read/Write", 2), (", Expand-down", 4), (", Accessed", 1)]));
        printed.mask = 0x1f;
    } else if rest.starts_with("<null entry>") {
        printed.raw = Some([0; 8]);
    } else if rest.starts_with("???") {
        printed.raw = Some(raw(rest)?);
    } else {
        printed.flags = Some(type_of(rest)?.into());
        printed.mask = 0x1f;
        if let Some((selector, offset, behind)) = target(rest) {
            printed.target = Some((selector, offset));
            if let Some(level) = level(behind) {
                printed.flags = printed.flags.map(|flags| flags | u16::from(level) << 5);
                printed.mask |= 0x60;
            }
        }
        if let Some(at) = rest.find(" at 0x") {
            let (base, length) = rest[at + 4..].split_once(',')?;
            printed.base = Some(prefixed(base)?.value);
            printed.limit = Some(prefixed(word(after(length, "length")?).0)?.value);
        }
    }
    printed.base = printed.base.or_else(|| assigned(rest, "base"));
    printed.limit = printed.limit.or_else(|| assigned(rest, "limit"));
    Some((printed, form(rest)))
}

fn raw(rest: &str) -> Option<[u8; 8]> {
    let mut halves = assignments(rest).map(|(_, value)| u32::try_from(prefixed(value)?.value).ok());
    let (high, low) = (halves.next()??, halves.next()??);
    Some((u64::from(high) << 32 | u64::from(low)).to_le_bytes())
}

fn kind(rest: &str) -> String {
    let ends =
        [" at 0x", " target=", ", base=", " descriptor "].map(|mark| rest.find(mark).unwrap_or(rest.len()));
    let end = ends.into_iter().min().unwrap_or(rest.len());
    excerpt(rest[..end].trim_end_matches(' ')).to_owned()
}

fn type_of(rest: &str) -> Option<u8> {
    const NAMES: [(&str, u8); 11] = [
        ("16-Bit TSS (available)", 1),
        ("LDT", 2),
        ("16-Bit TSS (Busy)", 3),
        ("16-Bit Call Gate", 4),
        ("Task Gate", 5),
        ("16-Bit Interrupt Gate", 6),
        ("16-Bit Trap Gate", 7),
        ("TSS (Available)", 9),
        ("TSS (Busy)", 0xb),
        ("Call Gate", 0xc),
        ("Interrupt Gate", 0xe),
    ];
    let name = kind(rest);
    let of_width = name.strip_prefix("32-Bit ").or_else(|| name.strip_prefix("64-Bit "));
    match of_width {
        Some("Trap Gate") => Some(0xf),
        Some(short) => NAMES[7..].iter().find(|(known, _)| *known == short).map(|(_, number)| *number),
        None => NAMES[..7].iter().find(|(known, _)| *known == name).map(|(_, number)| *number),
    }
}

/// `64-Bit` is printed only in long mode; `32-Bit` was once printed there too.
fn form(rest: &str) -> Option<Form> {
    rest.starts_with("64-Bit").then_some(Form::LongName)
}

fn target(rest: &str) -> Option<(Selector, u64, &str)> {
    let (target, behind) = word(&rest[rest.find("target=")? + 7..]);
    let (selector, offset) = target.trim_end_matches(',').split_once(':')?;
    let selector = u16::try_from(prefixed(selector)?.value).ok()?;
    Some((Selector(selector), number(offset)?.value, behind))
}

fn level(text: &str) -> Option<u8> {
    let (_, level) = assignments(text).find(|(name, _)| *name == "DPL")?;
    level.parse().ok().filter(|level| *level < 4)
}

fn idt_entry(sink: &mut Sink, rest: &str) -> bool {
    let Some((index, _, rest)) = index(rest) else { return false };
    // A limit of ffff gives a list of 8192 entries of 8 bytes. Vectors go up to ff, and their halves up to 1ff.
    let Some(slot) = u16::try_from(index).ok().filter(|slot| *slot < 8192) else { return false };
    let is_wide = rest.starts_with("64-Bit");
    if slot >= 512 || is_wide && slot >= 256 {
        return true;
    }
    let mut gate = PrintedGate {
        vector: slot as u8,
        slot: (!is_wide).then_some(slot),
        kind: kind(rest),
        ..PrintedGate::default()
    };
    if rest.contains("target=") {
        let Some((selector, offset, behind)) = target(rest) else { return false };
        gate.selector = Some(selector);
        gate.offset = Some(offset);
        gate.type_bits = type_of(rest);
        gate.dpl = level(behind);
        gate.symbol =
            behind.split_once('(').map(|(_, symbol)| excerpt(symbol.trim_end_matches(')')).to_owned());
    } else if rest.starts_with("???") {
        gate.raw = raw(rest);
    } else if type_of(rest).is_none() && !rest.contains(" segment, base=") {
        return false;
    }
    if let Some(form) = form(rest) {
        sink.form(FORMAT, form);
    }
    sink.push(FORMAT, What::Gate(gate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use crate::testing::{found, whats};
    use proptest::prelude::*;
    use tollgate_x86::{Descriptor, DescriptorKind, Gate, SystemKind};

    fn descriptors(text: &str) -> Vec<PrintedDescriptor> {
        found(text, |what| if let What::Descriptor(descriptor) = what { Some(descriptor) } else { None })
    }

    fn print(descriptor: &Descriptor) -> String {
        let (base, limit) = (descriptor.base, descriptor.effective_limit());
        let is = |yes: bool, text: &'static str| if yes { text } else { "" };
        match descriptor.kind() {
            DescriptorKind::Code { readable, conforming, accessed } => format!(
                "Code segment, base=0x{base:08x}, limit=0x{limit:08x}, {}, {}{}, {}-bit",
                if readable { "Execute/Read" } else { "Execute-Only" },
                if conforming { "Conforming" } else { "Non-Conforming" },
                is(accessed, ", Accessed"),
                match (descriptor.l && !descriptor.d, descriptor.d) {
                    (true, _) => 64,
                    (_, true) => 32,
                    _ => 16,
                }
            ),
            DescriptorKind::Data { writable, expand_down, accessed } => format!(
                "Data segment, base=0x{base:08x}, limit=0x{limit:08x}, {}{}{}",
                if writable { "Read/Write" } else { "Read-Only" },
                is(expand_down, ", Expand-down"),
                is(accessed, ", Accessed")
            ),
            DescriptorKind::System(SystemKind::Tss { busy }) => format!(
                "32-Bit TSS ({}) at 0x{base:08x}, length 0x{:05x}",
                if busy { "Busy" } else { "Available" },
                descriptor.limit
            ),
            _ => {
                let raw = u64::from_le_bytes(descriptor.encode());
                format!("??? descriptor hi=0x{:08x}, lo=0x{:08x}", raw >> 32, raw as u32)
            }
        }
    }

    proptest! {
        #[test]
        fn descriptors_are_read_as_printed(index in 0u16..8192, bytes: [u8; 8]) {
            let descriptor = Descriptor::decode(bytes);
            let text = format!("GDT[0x{:04x}]={}", index * 8, print(&descriptor));
            let printed = descriptors(&text);
            prop_assert_eq!(printed.len(), 1, "{}", text);
            prop_assert_eq!(printed[0].selector, index * 8);
            if let Some(raw) = printed[0].raw {
                prop_assert_eq!(raw, bytes);
            } else {
                prop_assert_eq!(printed[0].base, Some(descriptor.base.into()));
                prop_assert_eq!(printed[0].flags.unwrap() & 0x1f, descriptor.dg_flags() & 0x1f);
            }
        }

        #[test]
        fn gates_are_read_as_printed(vector: u8, selector: u16, offset: u32, dpl in 0u8..4) {
            let text = format!("IDT[0x{vector:02x}]=32-Bit Interrupt Gate target=0x{selector:04x}:0x{offset:08x}, DPL={dpl}");
            let gate = PrintedGate {
                vector, slot: Some(vector.into()), kind: "32-Bit Interrupt Gate".into(), type_bits: Some(0xe), selector: Some(Selector(selector)),
                offset: Some(offset.into()), dpl: Some(dpl), ..PrintedGate::default()
            };
            prop_assert_eq!(whats(&text), [What::Gate(gate)]);
        }
    }

    #[test]
    fn both_ways_of_counting_and_all_headers() {
        let old = descriptors("GDT[0x04]=32-Bit TSS (Busy) at 0xc0007320, length 0x0006b");
        let new = descriptors("gdt[0x0020]=32-Bit TSS (Busy) at 0xc0007320, length 0x0006b");
        let decimal = descriptors("GDT[4]=32-Bit TSS (Busy) at 0xc0007320, length 0x0006b   IDLE");
        assert_eq!((&old, &old), (&new, &decimal));
        assert_eq!((old[0].selector, old[0].base, old[0].limit), (0x20, Some(0xc000_7320), Some(0x6b)));
        for text in [
            "Global Descriptor Table (base=0x00000000c0000900, limit=31):",
            "gdt (base=0xc0000900, limit=31):",
        ] {
            let table = TableRegister::Gdt;
            assert_eq!(
                whats(text),
                [What::TableRegister { table, base: Some(0xc000_0900), limit: Some(31) }]
            );
        }
    }

    #[test]
    fn sixty_four_bit_names_are_known() {
        let dump =
            read(b"IDT[0x00]=64-Bit Interrupt Gate target=0x0010:0xffffffff81000000, DPL=0 (entry)", None);
        assert_eq!(dump.pieces[0].what, What::Form(Form::LongName));
        let What::Gate(gate) = &dump.pieces[1].what else { panic!("{dump:?}") };
        assert_eq!((gate.offset, gate.symbol.as_deref()), (Some(0xffff_ffff_8100_0000), Some("entry")));
        let raw = Gate { offset: 1, ..Gate::default() }.encode();
        let What::Gate(gate) = &whats("IDT[0x08]=??? descriptor hi=0x00000000, lo=0x00000001")[0] else {
            panic!()
        };
        assert_eq!(gate.raw, Some(raw));
    }

    #[test]
    fn an_ldt_a_gate_in_a_table_and_the_vectors_of_real_mode() {
        let row =
            descriptors("LDT[0x0008]=Data segment, base=0x00010000, limit=0x00000fff, Read/Write, Accessed");
        assert_eq!((row[0].selector, row[0].base), (0x0c, Some(0x1_0000)));
        let row = descriptors("GDT[0x0030]=32-Bit Call Gate target=0x0008:0xc0001000, DPL=3");
        assert_eq!((row[0].target, row[0].bits(0x7f)), (Some((Selector(8), 0xc000_1000)), Some(0x6c)));
        assert_eq!(
            whats("INT# 10 > C000:0155 (0x000c0155) VIDEO"),
            [What::Bytes { address: Some(0x40), bytes: vec![0x55, 1, 0, 0xc0] }]
        );
    }

    #[test]
    fn what_is_no_entry() {
        for text in [
            "GDT[",
            "GDT[]=x",
            "IDT[0x200]=Task Gate",
            "IDT[0x2000]=Task Gate",
            "GDT[0x10]=nonsense",
            "IDT[0x2e]=",
            "GDT[0x08]=???",
            "INT# 10",
            "INT# 10 > C000:155 (0x000c0155)",
        ] {
            assert_eq!(whats(text), [], "{text}");
        }
    }
}
