use tollgate_dump::output::{self as decode, Item as Decoded, Position};
use tollgate_model::text::listed;
use tollgate_x86::walk::{SegmentRegister, TableRegister};
use tollgate_x86::{Descriptor, Rflags, WideGate, Width};

use crate::setup::{ADDRESS, Item, LARGE, PRESENT, Region, USER};

const WRITABLE: u64 = 1 << 1;

pub(super) fn place(item: &Item) -> String {
    match item {
        Item::Port { port, .. } => format!("port {port:x}"),
        Item::Control { number, .. } => format!("CR{number}"),
        Item::Msr { msr, .. } => format!("MSR {:x}, {}", msr.number(), msr.name()),
        Item::Table { register: TableRegister::Gdtr, .. } => "GDTR".to_owned(),
        Item::Table { register: TableRegister::Idtr, .. } => "IDTR".to_owned(),
        Item::Segments { registers, .. } => listed(&registers.iter().map(register).collect::<Vec<_>>()),
        Item::Cleared { place, .. } => table(*place).to_owned(),
        Item::Pages { level, table, first, count, .. } => {
            let entries = match count {
                1 => format!("entry {first:x}"),
                more => format!("entries {first:x} to {:x}", first + (more - 1)),
            };
            format!("{} at {table:x}, {entries}", level_name(*level))
        }
        Item::Descriptor { selector, .. } => format!("GDT {:02x}", selector.0),
        Item::Task { field, .. } => format!("TSS + {:x}, {}", field.offset, field.name),
        Item::Gates { first, count: 1, .. } => format!("IDT {first:02x}"),
        Item::Gates { first, count, .. } => {
            format!("IDT {first:02x} to {:02x}", u16::from(*first) + (count - 1))
        }
        Item::Kernel { offset, .. } => format!("GS:{offset:x} of the kernel"),
        Item::Program { .. } => "the program of ring 3".to_owned(),
        Item::Return { .. } => "ring 3".to_owned(),
    }
}

pub(super) fn value(item: &Item) -> Option<String> {
    Some(match item {
        Item::Port { value, .. } => format!("{value:02x}"),
        Item::Control { value, .. } | Item::Msr { value, .. } => format!("{value:016x}"),
        Item::Task { field, value } => format!("{value:0digits$x}", digits = 2 * field.size),
        Item::Kernel { value, .. } | Item::Pages { value, .. } => format!("{value:016x}"),
        Item::Table { base, limit, .. } => format!("base {base:x}, limit {limit:x}"),
        Item::Segments { selector, .. } => selector.to_string(),
        Item::Descriptor { bytes, .. } => spelled(bytes),
        Item::Gates { gate, .. } => spelled(&gate.encode()),
        Item::Cleared { .. } => "0".to_owned(),
        Item::Program { .. } | Item::Return { .. } => return None,
    })
}

/// Formats words of 8 bytes, in order of addresses.
fn spelled(bytes: &[u8]) -> String {
    let words: Vec<String> =
        bytes.as_chunks().0.iter().map(|word| format!("{:016x}", u64::from_le_bytes(*word))).collect();
    words.join(" ")
}

pub(super) fn decoded(item: &Item) -> String {
    match item {
        Item::Port { value: 0xff, .. } => "all of its inputs are masked".to_owned(),
        Item::Port { value, .. } => format!("inputs {value:08b} are masked"),
        Item::Control { number: 3, value } => {
            format!("the root of the page tables is at {:x}", value & ADDRESS)
        }
        Item::Control { number, value } => {
            decode::control(&format!("cr{number}"), *value).unwrap_or_else(|| format!("{value:x}"))
        }
        Item::Msr { msr, value } => decode::sentences(&Decoded::Msr(*msr, *value)).join(" "),
        Item::Table { register, limit, .. } => {
            let (size, what) = match register {
                TableRegister::Gdtr => (8, "entries of 8 bytes"),
                TableRegister::Idtr => (16, "gates of 16 bytes"),
            };
            format!("{} {what}", (u32::from(*limit) + 1) / size)
        }
        Item::Segments { registers, hidden, .. } if registers[..] == [SegmentRegister::Tr] => format!(
            "{}, at {:x}, last byte {:x}",
            decode::segment(&hidden.descriptor, Width::Long),
            hidden.base,
            hidden.descriptor.effective_limit()
        ),
        Item::Segments { hidden, .. } => segment(&hidden.descriptor),
        Item::Cleared { address, bytes, .. } => format!("{bytes:x}h bytes from {address:x} on"),
        Item::Pages { level, count, value, step, .. } => pages(*level, *count, *value, *step),
        Item::Descriptor { selector, bytes } => descriptor(selector.0, bytes),
        Item::Task { field, value } => match field.name {
            "iomap" => format!("a map of ports would begin {value:x}h bytes after the beginning"),
            _ => format!("a stack that ends at {value:x}"),
        },
        Item::Gates { count, gate, step, .. } => gates(*count, gate, *step),
        Item::Kernel { offset: 0, value } => format!("the stack of system calls ends at {value:x}"),
        Item::Kernel { value, .. } => format!("{value:x}, the caller's stack pointer later"),
        Item::Program { address, bytes } => format!("{bytes} bytes at {address:x}"),
        Item::Return { cs, rip, rflags, ss, rsp } => {
            let flags = Rflags(*rflags);
            let set = decode::control("rflags", *rflags).unwrap_or_default();
            format!(
                "CS {cs}, RIP {rip:x}, RFLAGS {rflags:x} ({set}, IOPL {}), SS {ss}, RSP {rsp:x}",
                flags.iopl()
            )
        }
    }
}

fn segment(descriptor: &Descriptor) -> String {
    if !descriptor.p {
        return "null".to_owned();
    }
    format!("{}, DPL {}", decode::segment(descriptor, Width::Long), descriptor.dpl)
}

fn descriptor(selector: u16, bytes: &[u8]) -> String {
    let Some(low) = bytes.first_chunk().map(|bytes| Descriptor::decode(*bytes)) else { return String::new() };
    match bytes.first_chunk::<16>() {
        None if selector == 0 => "null: no segment".to_owned(),
        None => segment(&low),
        Some(wide) => {
            let item = Decoded::entry(None, wide, Width::Long);
            let what = item.as_ref().map(decode::what).unwrap_or_default();
            match item {
                Some(Decoded::Gate64(_, gate)) => {
                    format!("{what} to {}:{:x}, DPL {}", gate.low.selector, gate.offset(), gate.low.dpl)
                }
                Some(Decoded::System(_, it)) => {
                    format!("{what}, at {:x}, last byte {:x}", it.base(), it.low.effective_limit())
                }
                _ => what,
            }
        }
    }
}

fn gates(count: u16, gate: &WideGate, step: u64) -> String {
    let what = decode::what(&Decoded::Gate64(Position::Unknown, *gate));
    let (what, apart) = match count {
        1 => (what, String::new()),
        _ => (format!("{what}s"), format!(", each {step:x}h after the one before")),
    };
    let stack = match gate.ist() {
        0 => String::new(),
        ist => format!(", stack IST{ist}"),
    };
    format!("{what} to {}:{:x}{apart}, DPL {}{stack}", gate.low.selector, gate.offset(), gate.low.dpl)
}

fn pages(level: u8, count: u16, value: u64, step: u64) -> String {
    if value & PRESENT == 0 {
        return "not present".to_owned();
    }
    let is_page = level == 1 || value & LARGE != 0;
    let size = 1_u64 << (12 + 9 * u32::from(level - 1)) >> 20;
    let address = if is_page { value & ADDRESS & !0x1000 } else { value & ADDRESS };
    let to = match (is_page, count) {
        (false, _) => format!("the {} at {address:x}", level_name(level - 1)),
        (true, 1) => format!("a page of {size} MiB at {address:x}"),
        (true, _) => format!("pages of {size} MiB from {address:x} on, {step:x}h apart"),
    };
    let write = if value & WRITABLE == 0 { "read only" } else { "writable" };
    let ring = if value & USER == 0 { "not for ring 3" } else { "also for ring 3" };
    format!("{to}, {write}, {ring}")
}

fn level_name(level: u8) -> &'static str {
    match level {
        4 => "PML4",
        3 => "PDPT",
        2 => "page directory",
        _ => "page table",
    }
}

fn table(place: Region) -> &'static str {
    match place {
        Region::Pages => "the page tables",
        Region::Gdt => "the GDT",
        Region::Task => "the TSS",
        Region::Idt => "the IDT",
        Region::Kernel => "the kernel's data of this processor",
        Region::Program => "the page of the program",
    }
}

fn register(register: &SegmentRegister) -> &'static str {
    match register {
        SegmentRegister::Cs => "CS",
        SegmentRegister::Ss => "SS",
        SegmentRegister::Ds => "DS",
        SegmentRegister::Es => "ES",
        SegmentRegister::Fs => "FS",
        SegmentRegister::Gs => "GS",
        SegmentRegister::Tr => "TR",
        SegmentRegister::Ldtr => "LDTR",
    }
}
