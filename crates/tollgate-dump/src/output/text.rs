use tollgate_x86::{
    Cr0, Cr4, Descriptor, DescriptorKind, Efer, Gate, GateKind, Msr, Rflags, Selector, Star, SysenterCs,
    SystemKind, Tss32, Tss64, Width, is_canonical,
};

use super::item::{Item, flags, mode};
use crate::PrintedDescriptor;

/// Returns the short name of an item.
pub fn what(item: &Item) -> String {
    match item {
        Item::Segment(_, descriptor) => segment(descriptor, Width::Legacy),
        Item::System(_, descriptor) => segment(&descriptor.low, Width::Long),
        Item::Half(_, descriptor) => segment(descriptor, Width::Long),
        Item::Gate32(_, entry) => gate(entry, Width::Legacy),
        Item::Gate64(_, entry) => gate(&entry.low, Width::Long),
        Item::Tss32(..) | Item::Fields(Width::Legacy, _) => "32-bit TSS".to_owned(),
        Item::Tss64(..) | Item::Fields(Width::Long, _) => "64-bit TSS".to_owned(),
        Item::Explained(printed) => explained(printed),
        Item::Vector(..) => "vector of real mode".to_owned(),
        Item::Msr(msr, _) => format!("IA32_{}", msr.name()),
        Item::Rights(_, rights, limit) => {
            segment(&rights.with_limit(limit.unwrap_or_default()), Width::Legacy)
        }
    }
}

fn explained(printed: &PrintedDescriptor) -> String {
    let mut words = match printed.bits(0x1f) {
        Some(bits) => {
            let [_, flags] = printed.flags.unwrap_or_default().to_le_bytes();
            let (l, d) = (flags & 2 != 0, flags & 4 != 0);
            let descriptor = Descriptor {
                kind: bits as u8 & 0xf,
                s: bits & 0x10 != 0,
                l,
                d,
                p: true,
                ..Descriptor::default()
            };
            let width = if printed.kind.starts_with("64-Bit") { Width::Long } else { Width::Legacy };
            segment(&descriptor, width)
        }
        None => printed.kind.clone(),
    };
    if let Some((selector, offset)) = printed.target {
        words.push_str(&format!(", leads to {selector}:{offset:08x}"));
    }
    match printed.bits(0x80) {
        None => words.push_str("; whether it is present is not known"),
        Some(0) => words.push_str(", not present"),
        Some(_) => {}
    }
    words
}

/// Names the segment of a descriptor. `width` distinguishes a 32-bit system segment from a 64-bit one.
pub fn segment(descriptor: &Descriptor, width: Width) -> String {
    if *descriptor == Descriptor::default() {
        return "null".to_owned();
    }
    let mut words = match descriptor.kind() {
        DescriptorKind::Code { readable, conforming, accessed } => {
            let size = match (descriptor.l, descriptor.d) {
                (true, true) => "code with L and D set, which faults in long mode",
                (true, false) => "64-bit code",
                (false, true) => "32-bit code",
                (false, false) => "16-bit code",
            };
            let mut words = vec![size, if readable { "readable" } else { "execute only" }];
            words.extend(conforming.then_some("conforming"));
            words.extend(accessed.then_some("accessed"));
            words.join(", ")
        }
        DescriptorKind::Data { writable, expand_down, accessed } => {
            let mut words = vec!["data", if writable { "writable" } else { "read only" }];
            words.extend(expand_down.then_some("expand-down"));
            words.extend(accessed.then_some("accessed"));
            words.join(", ")
        }
        DescriptorKind::System(kind) => system(kind, width),
    };
    if !descriptor.p {
        words.push_str(", not present");
    }
    words
}

fn system(kind: SystemKind, width: Width) -> String {
    if !kind.is_in(width) {
        return SystemKind::Reserved.name().to_owned();
    }
    match kind {
        SystemKind::Tss { .. } | SystemKind::CallGate | SystemKind::InterruptGate | SystemKind::TrapGate => {
            format!("{}-bit {}", mode(width), kind.name())
        }
        _ => kind.name().to_owned(),
    }
}

pub(crate) fn gate(gate: &Gate, width: Width) -> String {
    let kind = if gate.s {
        "no gate: a code or data segment".to_owned()
    } else {
        match SystemKind::from_type(gate.kind) {
            kind if kind.is_gate() && kind.is_in(width) => system(kind, width),
            _ => "no gate: a reserved type".to_owned(),
        }
    };
    format!("{kind}{}", if gate.p { "" } else { ", not present" })
}

/// Describes an item in sentences: its bits, and their meaning.
pub fn sentences(item: &Item) -> Vec<String> {
    match item {
        Item::Segment(selector, descriptor) => {
            let mut text = found_by(*selector);
            text.extend(of_segment(descriptor, descriptor.base.into(), Width::Legacy));
            text
        }
        Item::System(selector, descriptor) => {
            let mut text = found_by(*selector);
            text.extend(of_segment(&descriptor.low, descriptor.base(), Width::Long));
            if !descriptor.is_well_formed() {
                text.push(
                    "Bits 12 to 8 of its last four bytes are not 0, which faults when it is loaded.".into(),
                );
            }
            text
        }
        Item::Half(selector, descriptor) => {
            let mut text = found_by(*selector);
            text.push(format!(
                "Only the low 32 bits of its base are known, {:08x}: it takes 16 bytes, but the input has 8.",
                descriptor.base
            ));
            text.extend(of_access(descriptor, Width::Long));
            text
        }
        Item::Explained(printed) => {
            let mut text = found_by(Some(Selector(printed.selector)));
            text.extend(printed.base.map(|base| format!("It begins at {base:x}.")));
            text.extend(printed.limit.map(|limit| format!("The last offset is {limit:x}.")));
            text.push(format!("It is: {}.", explained(printed)));
            text
        }
        Item::Vector(vector, segment, offset) => vec![format!(
            "INT {vector:x} goes to {segment:04x}:{offset:04x}, the address {:x}, and pushes FLAGS, CS and IP (SDM 3B, \"8086 \
             emulation\").",
            16 * u32::from(*segment) + u32::from(*offset)
        )],
        Item::Fields(..) => Vec::new(),
        Item::Gate32(_, entry) => of_gate(entry, entry.offset.into(), 0, Width::Legacy),
        Item::Gate64(_, entry) => of_gate(&entry.low, entry.offset(), entry.ist(), Width::Long),
        Item::Tss32(bytes, limit) => of_tss(Tss32::FIELDS, bytes, *limit),
        Item::Tss64(bytes, limit) => of_tss(Tss64::FIELDS, bytes, *limit),
        Item::Msr(msr, value) => of_register(*msr, *value),
        Item::Rights(selector, rights, limit) => {
            let descriptor = rights.with_limit(limit.unwrap_or_default());
            let mut text = found_by(*selector);
            text.push("LAR and LSL do not give its base.".into());
            text.extend(of_access(&descriptor, Width::Legacy));
            match limit {
                Some(limit) => text.push(format!("LSL gives its last offset: {limit:x}.")),
                None => text.push("LSL is not known, so its limit is not known.".into()),
            }
            text
        }
    }
}

fn found_by(selector: Option<Selector>) -> Vec<String> {
    let text = |selector: Selector| {
        format!(
            "Selector {selector} finds entry {} of the {}, {:x} bytes from its base: a selector counts bytes, and its low \
             three bits are the table and the requested privilege level {}.",
            selector.index(),
            selector.table(),
            selector.offset(),
            selector.rpl(),
        )
    };
    selector.map(text).into_iter().collect()
}

fn of_segment(descriptor: &Descriptor, base: u64, width: Width) -> Vec<String> {
    let is_gate = matches!(descriptor.kind(), DescriptorKind::System(kind) if kind.is_gate());
    let mut text = Vec::new();
    if is_gate {
        text.push(
            "The type is a gate's: read as a gate (gate32, gate64), it has a selector and an offset instead."
                .into(),
        );
    }
    let bytes = match width {
        Width::Legacy => "Bytes 2, 3, 4 and 7",
        Width::Long => "Bytes 2, 3, 4, 7 and 8 to 11",
    };
    text.push(format!("{bytes}: it begins at {base:x}."));
    let (limit, last) = (descriptor.limit, descriptor.effective_limit());
    let unit =
        if descriptor.g { "G is set, so it counts units of 4 KiB" } else { "G is clear, so it counts bytes" };
    text.push(format!(
        "Bytes 0, 1 and the low half of 6: the limit is {limit:x}; {unit}: the last offset is {last:x}."
    ));
    if let DescriptorKind::Data { expand_down: true, .. } = descriptor.kind() {
        let (first, last) = descriptor.valid_offsets();
        text.push(if first <= last {
            format!("It expands down: the offsets above its limit are the valid ones, {first:x} to {last:x}.")
        } else {
            "It expands down from the top: no offset is valid.".into()
        });
    }
    text.extend(of_access(descriptor, width));
    text
}

fn of_access(descriptor: &Descriptor, width: Width) -> Vec<String> {
    let mut text = vec![format!(
        "S is {} and the type {:x}: {}.",
        u8::from(descriptor.s),
        descriptor.kind,
        segment(&Descriptor { p: true, ..*descriptor }, width),
    )];
    text.push(format!("DPL {}, {}.", descriptor.dpl, if descriptor.p { "present" } else { "not present" }));
    if let DescriptorKind::Code { .. } = descriptor.kind() {
        text.push(match (descriptor.l, descriptor.d) {
            (true, false) => "L is set: in long mode it runs in 64-bit mode, its base and limit are ignored.".into(),
            (true, true) => "L and D are both set: loading it in long mode faults.".into(),
            (false, d) => {
                format!("L is clear: in long mode it runs in compatibility mode; D is {}: operands are {} bits wide.",
                    u8::from(d), if d { 32 } else { 16 })
            }
        });
    }
    if descriptor.avl {
        text.push("AVL is set, which is for software.".into());
    }
    text
}

fn of_gate(entry: &Gate, offset: u64, ist: u8, width: Width) -> Vec<String> {
    let bytes = match width {
        Width::Legacy => "Bytes 0, 1, 6 and 7",
        Width::Long => "Bytes 0, 1, 6, 7 and 8 to 11",
    };
    let kind = entry.gate_kind(width);
    let mut text = vec![format!("Type {:x}: {}.", entry.kind, gate(entry, width))];
    match kind {
        Some((GateKind::Task, _)) => {
            text.push(format!(
                "Bytes 2 and 3: it leads to the task of TSS {}; its offset is ignored.",
                entry.selector
            ));
        }
        Some(_) => text.push(format!("{bytes}, and 2 and 3: it leads to {}:{offset:x}.", entry.selector)),
        None => {}
    }
    match kind {
        Some((GateKind::Call, _)) => text.push(format!(
            "DPL {}: CALL and JMP may use it where CPL <= {} and the RPL of their selector <= {}, and raise #GP elsewhere (SDM 3A, \
             \"Accessing a code segment through a call gate\").",
            entry.dpl, entry.dpl, entry.dpl
        )),
        Some(_) => text.push(format!(
            "DPL {}: INT n, INT3 and INTO may use it where CPL <= {}, and raise #GP elsewhere. The processor ignores the DPL for \
             interrupts of hardware, for exceptions and for INT1 (SDM 3A, \"Protection of exception- and \
             interrupt-handler procedures\").",
            entry.dpl, entry.dpl
        )),
        None => {}
    }
    match (kind, width) {
        (Some((GateKind::Call, _)), Width::Legacy) => text.push(match entry.parameters() {
            0 => "It copies no parameters.".into(),
            number => format!("It copies {number} parameters from the old stack to the new one."),
        }),
        (Some((GateKind::Interrupt, _)), _) => {
            text.push("It clears IF: no maskable interrupt comes before the handler allows it.".into());
        }
        (Some((GateKind::Trap, _)), _) => text.push("It leaves IF as it is.".into()),
        _ => {}
    }
    if kind.is_some() && width == Width::Long && !matches!(kind, Some((GateKind::Call, _))) {
        text.push(match ist {
            0 => "IST 0: the stack is that of the new ring; it stays if the ring does not change.".into(),
            ist => format!("IST {ist}: the stack is always IST{ist} of the TSS."),
        });
    }
    text
}

fn of_tss(fields: &[tollgate_x86::Field], bytes: &[u8], limit: Option<u64>) -> Vec<String> {
    let mut text = Vec::new();
    let read =
        |name: &str| fields.iter().find(|field| field.name == name).and_then(|field| field.read(bytes));
    if let Some((esp0, ss0)) = read("esp0").zip(read("ss0")) {
        text.push(format!("An entry to ring 0 from another ring takes the stack {ss0:04x}:{esp0:08x}."));
    }
    if let Some(rsp0) = read("rsp0") {
        text.push(format!(
            "An entry to ring 0 from another ring takes the stack {rsp0:016x}, with a null SS."
        ));
    }
    text.push(match (read("iomap"), limit) {
        (None, _) => format!("{} of its {} bytes are known.", bytes.len(), Tss64::SIZE),
        (Some(base), Some(last)) if base > last => format!(
            "Its I/O bitmap would begin at {base:x}, after its last byte {last:x}: there is none, and every port is closed \
             to programs without the I/O privilege level."
        ),
        (Some(base), Some(_)) => format!("Its I/O bitmap begins at {base:x}."),
        (Some(base), None) => format!(
            "Its I/O bitmap begins at {base:x}, if that is within its limit, which is not known; beyond it there is none, and \
             every port is closed to programs without the I/O privilege level."
        ),
    });
    text
}

fn of_register(msr: Msr, value: u64) -> Vec<String> {
    let mut text = meaning_of(msr, value);
    text.extend(not_canonical(msr, value));
    text
}

/// Says if a value cannot be written to the register, or only by some processors.
fn not_canonical(msr: Msr, value: u64) -> Option<String> {
    if !msr.is_canonical() || is_canonical(value, 48) {
        return None;
    }
    if is_canonical(value, 57) {
        return Some(
            "The address is canonical only with 57-bit addresses, which CR4.LA57 enables.".to_owned(),
        );
    }
    let whose = match msr {
        Msr::SysenterEsp | Msr::SysenterEip => "no Intel processor",
        _ => "no processor",
    };
    Some(format!(
        "The address is not canonical, so {whose} can hold it: WRMSR of it raises #GP (SDM 2B, WRMSR)."
    ))
}

fn meaning_of(msr: Msr, value: u64) -> Vec<String> {
    match msr {
        Msr::SysenterCs => {
            let base = SysenterCs(value);
            if base.is_null() {
                return vec!["Bits 15 to 2 are 0: SYSENTER and SYSEXIT fault.".into()];
            }
            vec![
                format!("SYSENTER loads CS {} and SS {}.", base.sysenter_cs(), base.sysenter_ss()),
                format!(
                    "SYSEXIT loads CS {} and SS {}; with REX.W, to 64-bit code, CS {} and SS {}.",
                    base.sysexit32_cs(),
                    base.sysexit32_ss(),
                    base.sysexit64_cs(),
                    base.sysexit64_ss()
                ),
            ]
        }
        Msr::SysenterEsp => {
            vec![format!("SYSENTER loads the stack pointer {value:x} and does not save the old one.")]
        }
        Msr::SysenterEip => {
            vec![format!("SYSENTER goes to {value:x} and does not save the address that it came from.")]
        }
        Msr::Star => {
            let star = Star(value);
            vec![
                format!("SYSCALL loads CS {} and SS {}.", star.syscall_cs(), star.syscall_ss()),
                format!(
                    "SYSRET loads CS {} and SS {}; with REX.W, to 64-bit code, CS {}.",
                    star.sysret32_cs(),
                    star.sysret_ss(),
                    star.sysret64_cs()
                ),
                match star.legacy_eip() {
                    0 => "Outside long mode it has no entry: bits 31 to 0 are 0.".to_owned(),
                    eip => format!("Outside long mode, on AMD processors, SYSCALL goes to {eip:08x}."),
                },
            ]
        }
        Msr::Lstar => vec![format!("SYSCALL from 64-bit mode goes to {value:016x}.")],
        Msr::Cstar => vec![format!(
            "SYSCALL from compatibility mode goes to {value:016x} on AMD processors; on Intel processors it faults there."
        )],
        Msr::Fmask => vec![format!(
            "SYSCALL clears {}: each flag whose bit is set here (RFLAGS AND NOT the mask). The others stay{}.",
            all(&flags(Rflags(value))),
            if Rflags(value).has(Rflags::RF) { "" } else { ", but for RF, which SYSCALL clears by itself" }
        )],
        Msr::Efer => Efer(value).set().map(|bit| format!("{}: {}", bit.name, bit.about)).collect(),
        Msr::FsBase => vec![format!("FS begins at {value:016x}.")],
        Msr::GsBase => vec![format!("GS begins at {value:016x}.")],
        Msr::KernelGsBase => vec![format!("SWAPGS exchanges {value:016x} with the base of GS.")],
        Msr::TscAux => vec![format!("RDTSCP and RDPID read {value:x}.")],
    }
}

/// Names the set bits of a control register or EFER.
pub fn control(name: &str, value: u64) -> Option<String> {
    let bits = match name {
        "cr0" => Cr0::BITS,
        "cr4" => Cr4::BITS,
        "efer" => Efer::BITS,
        "rflags" | "eflags" => return Some(flags(Rflags(value)).join(" ")),
        _ => return None,
    };
    let set = bits.iter().filter(|bit| value >> bit.number & 1 == 1).map(|bit| bit.name);
    Some(set.collect::<Vec<_>>().join(" "))
}

fn all(items: &[String]) -> String {
    match items {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}
