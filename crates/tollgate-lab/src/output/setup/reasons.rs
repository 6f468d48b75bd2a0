//! Why each thing is written, as the manuals say, and the experiments that lack it.
//!
//! A reason depends on the written item, never on its place in the kernel's code.

use std::borrow::Cow;

use tollgate_model::text::listed;
use tollgate_x86::walk::{SegmentRegister, TableRegister};
use tollgate_x86::{
    Cr4, Descriptor, DescriptorKind, Efer, Msr, Selector, Star, SysenterCs, SystemKind, Vendor,
};

use crate::setup::{Item, Region, Setup, USER};

pub(super) struct Reason {
    pub(super) why: Cow<'static, str>,
    pub(super) manual: &'static str,
    /// Names of experiments, the clearest first.
    pub(super) otherwise: &'static [&'static str],
}

fn reason(why: &'static str, manual: &'static str, otherwise: &'static [&'static str]) -> Option<Reason> {
    Some(Reason { why: why.into(), manual, otherwise })
}

/// Facts about a segment or a table that other writes state: the selectors that instructions compute from MSRs, those of
/// gates, and CR3.
pub(super) struct Sums {
    vendor: Vendor,
    star: Option<Star>,
    sysenter: Option<SysenterCs>,
    gates: Vec<Selector>,
    root: Option<u64>,
}

impl Sums {
    pub(super) fn of(setup: &Setup) -> Self {
        let of = |wanted: Msr| {
            setup.writes.iter().find_map(|write| match write.item {
                Item::Msr { msr, value } if msr == wanted => Some(value),
                _ => None,
            })
        };
        let gates = setup.writes.iter().filter_map(|write| match &write.item {
            Item::Gates { gate, .. } => Some(gate.low.selector),
            _ => None,
        });
        let root = setup.writes.iter().find_map(|write| match write.item {
            Item::Control { number: 3, value } => Some(value & !0xfff),
            _ => None,
        });
        Self {
            vendor: setup.vendor,
            star: of(Msr::Star).map(Star),
            sysenter: of(Msr::SysenterCs).map(SysenterCs),
            gates: gates.collect(),
            root,
        }
    }

    /// Lists the loads of this entry of the GDT, at any privilege level, that STAR and SYSENTER_CS imply.
    fn loads(&self, selector: Selector) -> Vec<&'static str> {
        let star = self.star.map(|star| {
            [
                ("CS of SYSCALL", star.syscall_cs()),
                ("SS of SYSCALL", star.syscall_ss()),
                ("CS of SYSRET to 32-bit code", star.sysret32_cs()),
                ("SS of SYSRET", star.sysret_ss()),
                ("CS of SYSRET to 64-bit code", star.sysret64_cs()),
            ]
        });
        let sysenter = self.sysenter.map(|base| {
            [
                ("CS of SYSENTER", base.sysenter_cs()),
                ("SS of SYSENTER", base.sysenter_ss()),
                ("CS of SYSEXIT to 32-bit code", base.sysexit32_cs()),
                ("SS of SYSEXIT to 32-bit code", base.sysexit32_ss()),
                ("CS of SYSEXIT to 64-bit code", base.sysexit64_cs()),
                ("SS of SYSEXIT to 64-bit code", base.sysexit64_ss()),
            ]
        });
        let all = star.iter().flatten().chain(sysenter.iter().flatten());
        let mut loads: Vec<&str> =
            all.filter(|(_, it)| it.offset() == selector.offset()).map(|(what, _)| *what).collect();
        let is_of_gates = self.gates.iter().any(|gate| gate.offset() == selector.offset());
        loads.extend(is_of_gates.then_some("CS of the handlers in the IDT"));
        loads
    }
}

const PAGING: &str = "SDM 3A, \"4-level paging and 5-level paging\"";
const RIGHTS: &str = "SDM 3A, \"Determination of access rights\"";
const LONG_MODE: &str = "SDM 3A, \"Initializing IA-32e mode\"";
const TASK: &str = "SDM 3A, \"Task management in 64-bit mode\"";
const IDT: &str = "SDM 3A, \"64-bit mode IDT\"";

/// Returns the reason for a write; `None` for a write that this kernel never does.
pub(super) fn reason_of(item: &Item, sums: &Sums) -> Option<Reason> {
    match item {
        Item::Port { .. } => reason(
            "Only requested interrupts may arrive. Firmware leaves the controllers at vectors 8 to f and 70 to 77; 8 to f \
             are exceptions in protected mode, so that the timer would look like #DF.",
            "Intel 8259A data sheet, \"Operation control words\", OCW1",
            &[],
        ),
        Item::Control { number, value } => control(*number, *value),
        Item::Msr { msr: Msr::SysenterCs | Msr::SysenterEsp | Msr::SysenterEip, .. }
            if sums.vendor == Vendor::Amd =>
        {
            reason(
                "On AMD's processors SYSENTER is #UD in long mode: this is for Intel's.",
                "APM 3, SYSENTER",
                &[],
            )
        }
        Item::Msr { msr, value } => register(*msr, *value),
        Item::Table { register, .. } => Some(table(*register)),
        Item::Segments { registers, selector, .. } => segments(registers, *selector),
        Item::Cleared { place, .. } => cleared(*place),
        Item::Pages { level, table, value, count, first, .. } => {
            pages(*level, *value, *count, *first, sums.root == Some(*table))
        }
        Item::Descriptor { selector, bytes } => descriptor(*selector, bytes, sums),
        Item::Task { field, .. } => task(field.name),
        Item::Gates { gate, .. } if gate.low.dpl == 3 => reason(
            "INT n from ring 3 asks whether the gate's DPL is 3; the code segment that it leads to is ring 0's.",
            IDT,
            &["wrong-gate-dpl", "wrong-gate-data", "wrong-gate-null", "wrong-segment-absent"],
        ),
        Item::Gates { .. } => reason(
            "Every exception has a gate. DPL 0: a program cannot call it by INT n. An IST: even if the stack was bad, the handler \
             has one that is sound.",
            "SDM 3A, \"64-bit mode IDT\" and \"Interrupt stack table\"",
            &["wrong-gate-absent", "wrong-ist"],
        ),
        Item::Kernel { offset: 0, .. } => reason(
            "SYSCALL changes no stack: its handler finds the kernel's here, after SWAPGS.",
            "SDM 2B, SYSCALL and SWAPGS",
            &["wrong-kernel-gs"],
        ),
        Item::Kernel { .. } => reason(
            "The handler keeps the caller's stack pointer here, while there is no other place for it.",
            "SDM 2B, SWAPGS",
            &[],
        ),
        Item::Program { .. } => reason(
            "The program is loaded to a page of its own, the only one that ring 3 may use.",
            RIGHTS,
            &["wrong-read"],
        ),
        Item::Return { .. } => reason(
            "IRETQ is the way to ring 3 that loads everything at once. IOPL 0: the program may neither turn interrupts off nor \
             use ports. The address must be canonical: RIP is checked while the ring is still 0.",
            "SDM 2A, IRET; SDM 1, \"I/O privilege level\"",
            &["iopl-halt", "wrong-iret"],
        ),
    }
}

fn control(number: u8, value: u64) -> Option<Reason> {
    match number {
        0 => reason(
            "PG with EFER.LME begins long mode: the processor sets EFER.LMA. WP: the kernel cannot write to \
             read-only pages either. NE: an x87 error is #MF.",
            LONG_MODE,
            &[],
        ),
        3 => reason(
            "The root of the page tables, before paging begins. Writing it empties the TLB of all pages that are not global.",
            LONG_MODE,
            &["wrong-user-page"],
        ),
        4 if Cr4(value).has(Cr4::PAE) => reason(
            "Long mode's page tables have entries of 8 bytes: without PAE the write to CR0 that begins it is #GP. Other bits \
             are 0: no process-context identifiers, no SMEP, no SMAP. CET and FRED stay off: no shadow stack \
             is written, and events go by the IDT.",
            LONG_MODE,
            &[],
        ),
        _ => None,
    }
}

fn register(msr: Msr, value: u64) -> Option<Reason> {
    const FAST: &str = "SDM 3A, \"Fast system calls in 64-bit mode\"";
    const SYSENTER: &str =
        "SDM 3A, \"Performing fast calls to system procedures with the SYSENTER and SYSEXIT instructions\"";
    match msr {
        Msr::Efer if Efer(value).has(Efer::SCE) => {
            reason("SCE: without it SYSCALL and SYSRET are #UD.", "SDM 2B, SYSCALL", &["wrong-sce"])
        }
        Msr::Efer => reason(
            "LME asks for long mode, while paging is off: it cannot change while paging is on.",
            LONG_MODE,
            &[],
        ),
        Msr::Star => reason(
            "SYSCALL and SYSRET add to these selectors and read no descriptor: the GDT must say the same in the same order, for \
             the next load of a selector reads it.",
            FAST,
            &["wrong-gdt-order"],
        ),
        Msr::Lstar => reason(
            "WRMSR requires a canonical address, and SYSCALL checks nothing: it arrives there in ring 0, on the caller's stack. RCX has the return address, which the handler must check.",
            FAST,
            &["wrong-lstar", "wrong-return"],
        ),
        Msr::Cstar => reason(
            "AMD's processors come here by SYSCALL from 32-bit code; on Intel's that is #UD, regardless of this value.",
            "APM 2, \"SYSCALL and SYSRET\"; SDM 2B, SYSCALL",
            &[],
        ),
        Msr::Fmask => reason(
            "The caller chose the flags. IF: the handler has no stack yet. TF: a single step would end in the kernel. DF, NT, AC \
             and IOPL change what its instructions do.",
            FAST,
            &["wrong-fmask"],
        ),
        Msr::GsBase => reason(
            "The program's GS begins at 0, and the kernel's in KERNEL_GS_BASE; before ring 3 is entered for the first time the \
             two already stand as ring 3 has them.",
            "SDM 2B, SWAPGS",
            &[],
        ),
        Msr::KernelGsBase => reason(
            "SWAPGS brings it in where SYSCALL has brought no stack: it is the handler's only way to memory of its own.",
            "SDM 2B, SWAPGS",
            &["wrong-kernel-gs"],
        ),
        Msr::SysenterCs => reason(
            "SYSENTER and SYSEXIT count four segments from it, as SYSCALL does from STAR. 0 means that there is no kernel to \
             enter.",
            SYSENTER,
            &["wrong-sysenter-cs"],
        ),
        Msr::SysenterEsp => reason(
            "SYSENTER loads the stack from here and does not save the old one.",
            SYSENTER,
            &["wrong-sysenter-esp"],
        ),
        Msr::SysenterEip => reason(
            "SYSENTER jumps here. The program itself has to pass the address to return to.",
            SYSENTER,
            &["wrong-sysenter-eip"],
        ),
        Msr::FsBase | Msr::TscAux => None,
    }
}

fn table(register: TableRegister) -> Reason {
    match register {
        TableRegister::Gdtr => Reason {
            why: "Selectors are offsets in this table; one beyond its limit is #GP. The far jump into 64-bit mode needs a first \
                  one; from then on it is the copy in the kernel's memory, which wrong set-ups may write over."
                .into(),
            manual: "SDM 3A, \"Segment descriptor tables\"",
            otherwise: &["wrong-gdt-limit"],
        },
        TableRegister::Idtr => Reason {
            why: "A vector is the number of a gate in this table. It is loaded once its gates are there.".into(),
            manual: IDT,
            otherwise: &["wrong-idt-limit"],
        },
    }
}

fn segments(registers: &[SegmentRegister], selector: Selector) -> Option<Reason> {
    match registers {
        [SegmentRegister::Tr] => reason(
            "Entries to ring 0 find their stacks through it. LTR sets the descriptor's busy bit, and refuses one that is set: \
             therefore the descriptor is written anew each time.",
            "SDM 2A, LTR",
            &["wrong-ltr"],
        ),
        [SegmentRegister::Cs] => reason(
            "A code segment with L set: from here on instructions are those of 64-bit mode.",
            "SDM 3A, \"Initializing IA-32e mode\" and \"Code segment descriptor in 64-bit mode\"",
            &[],
        ),
        _ if selector.is_null() => reason(
            "Null: no segment of the loader stays. In 64-bit mode only the bases of these two count, and MSRs hold them.",
            "SDM 3A, \"Segment loading instructions in IA-32e mode\"",
            &[],
        ),
        _ if selector.rpl() == 3 => reason(
            "What a program in 32-bit code uses must be there before it runs: IRETQ loads CS and SS alone.",
            "SDM 2A, IRET",
            &[],
        ),
        _ => reason(
            "The loader's segments end here. SS must be writable data of ring 0, or null in 64-bit mode; DS and ES \
             are not looked at there.",
            "SDM 2B, MOV, \"Loading a segment register while in protected mode\"",
            &[],
        ),
    }
}

fn cleared(place: Region) -> Option<Reason> {
    match place {
        Region::Pages => {
            reason("Memory holds anything at the start. An entry of 0 is not present.", PAGING, &[])
        }
        Region::Gdt => reason("Room for the call gate, which takes 16 bytes.", "SDM 3A, \"Call gates\"", &[]),
        Region::Task => reason(
            "Stacks that are not given are 0, and a gate that names one finds no page there.",
            TASK,
            &["wrong-ist"],
        ),
        Region::Idt => reason(
            "A vector without a gate is #GP: its type is that of no gate.",
            "SDM 2A, INT n, \"Operation\"",
            &[],
        ),
        Region::Kernel | Region::Program => None,
    }
}

fn pages(level: u8, value: u64, count: u16, first: u16, is_root: bool) -> Option<Reason> {
    match (level, value) {
        (_, value) if value & 1 == 0 => reason(
            "A page that is not there: the experiments on page faults, and some wrong set-ups, lead to it.",
            "SDM 3A, \"Interrupt 14: page-fault exception\"",
            &["wrong-lstar"],
        ),
        (4, _) if is_root => reason(
            "Ring 3 needs its bit on every level. Here it is set for all that lies below, so that the page directory decides.",
            RIGHTS,
            &["wrong-user-page"],
        ),
        (4, _) => {
            reason("A second root with the same mappings, for the experiments that change CR3.", PAGING, &[])
        }
        (3, _) => reason(
            "The first GiB, by one page directory; of this level too ring 3 needs the bit.",
            RIGHTS,
            &["wrong-user-page"],
        ),
        (_, value) if value & USER != 0 && count == 1 => {
            reason("The program's page, by one bit.", RIGHTS, &["wrong-user-page"])
        }
        _ if first == 0 => reason(
            "Each page has the address that it had without paging: the instruction after the write to CR0 is still where it \
             was. All are the kernel's.",
            "SDM 3A, \"Initializing IA-32e mode\" and \"Determination of access rights\"",
            &["wrong-read"],
        ),
        _ => None,
    }
}

fn descriptor(selector: Selector, bytes: &[u8], sums: &Sums) -> Option<Reason> {
    const ORDER: &str =
        "SDM 3A, \"Fast system calls in 64-bit mode\"; SDM 2B, SYSCALL, SYSRET, SYSENTER and SYSEXIT";
    let low = Descriptor::decode(*bytes.first_chunk()?);
    let loads = sums.loads(selector);
    match low.kind() {
        _ if selector.0 == 0 => reason(
            "The first entry is never used: a selector of 0 is null.",
            "SDM 3A, \"Segment selectors\"",
            &[],
        ),
        DescriptorKind::System(SystemKind::CallGate) => reason(
            "A far call through it comes to ring 0 at one address, regardless of the offset that it names. DPL 3: programs may.",
            "SDM 3A, \"Call gates\" and \"IA-32e mode call gates\"",
            &["wrong-call-dpl"],
        ),
        DescriptorKind::System(_) => reason(
            "In long mode a TSS's descriptor has 16 bytes, for a base of 64 bits. Stacks of the TSS must lie within its limit.",
            "SDM 3A, \"TSS descriptor in 64-bit mode\"",
            &["wrong-tss-limit"],
        ),
        _ if loads.is_empty() => {
            reason("Nothing loads it: wrong set-ups write over it.", "SDM 3A, \"Segment descriptors\"", &[])
        }
        kind => {
            let otherwise: &'static [&'static str] = match (kind, low.dpl) {
                (DescriptorKind::Code { .. }, 0) => &["wrong-segment-absent"],
                (_, 3) => &["wrong-gdt-order"],
                _ => &[],
            };
            Some(Reason { why: format!("It is {}.", listed(&loads)).into(), manual: ORDER, otherwise })
        }
    }
}

fn task(field: &str) -> Option<Reason> {
    match field {
        "rsp0" => reason(
            "The stack of every entry from ring 3 through a gate without a stack of its own.",
            TASK,
            &["wrong-rsp0"],
        ),
        "ist1" => reason(
            "The stack of the exceptions' gates. A gate may name seven; the others stay 0.",
            "SDM 3A, \"Interrupt stack table\"",
            &["wrong-ist"],
        ),
        "iomap" => reason(
            "Beyond the limit: there is no map, and every port is closed to ring 3. 0 would make a map of the TSS itself.",
            "SDM 1, \"I/O permission bit map\"",
            &["wrong-port"],
        ),
        _ => None,
    }
}
