//! Entries into Windows 2000, XP and XP x64, from a kernel debugger's output (marbacka.net, "int 2E/sysenter/syscall",
//! 2005).

use std::string::{String, ToString};
use std::vec::Vec;

use crate::walk::{
    Bounds, Crossing, Event, Hidden, Mode, Outcome, Piece, Segment, SegmentRegister, Sketch, walk,
};
use crate::{Descriptor, Msr, Selector, Vendor, Width};

const GATE_2E: [u8; 8] = [0xcd, 0x55, 0x08, 0x00, 0x00, 0xee, 0x86, 0x80];
const TSS: [u8; 16] =
    [0x57, 0xff, 0x75, 0x08, 0x00, 0x3c, 0x87, 0x80, 0x10, 0x00, 0x8b, 0x45, 0x10, 0x89, 0x85, 0x78];
const FLAT_CODE: [u8; 8] = [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0];
const FLAT_DATA: [u8; 8] = [0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0];
const TSS_BUSY: [u8; 8] = [0xab, 0x20, 0x00, 0x20, 0x04, 0x8b, 0x00, 0x80];

#[test]
fn int_2e_of_windows_2000() {
    let (mut gate, mut tss, mut stack) = (GATE_2E, TSS, [0; 0x20]);
    let descriptors =
        [(Selector(0x08), Descriptor::decode(FLAT_CODE)), (Selector(0x10), Descriptor::decode(FLAT_DATA))];
    let mut pieces = [
        Piece { address: 0x8003_f570, bytes: &mut gate },
        Piece { address: 0x8004_2000, bytes: &mut tss },
        Piece { address: 0x8087_3be0, bytes: &mut stack },
    ];
    let mut sentences = Vec::new();
    let mut sketch = Sketch::new(Vendor::Amd, Width::Legacy, |step| sentences.push(step.to_string()));
    sketch.idt = Bounds { base: Some(0x8003_f400), limit: Some(0x7ff) };
    sketch.descriptors = &descriptors;
    sketch.pieces = &mut pieces;
    let tr = Descriptor::decode(TSS_BUSY);
    sketch.segments[SegmentRegister::Tr as usize] = Segment::new(Selector(0x28), tr);
    sketch.segments[SegmentRegister::Cs as usize].selector = Some(Selector(0x1b));
    sketch.segments[SegmentRegister::Ss as usize].selector = Some(Selector(0x23));
    sketch.rsp = Some(0x0006_fdf0);
    sketch.rflags = Some(0x0000_0246);
    sketch.rip = Some(0x77f8_2872);
    assert_eq!(walk(&mut sketch, Crossing::Event(Event::Int(0x2e))), Outcome::Done);
    assert_eq!(
        sentences,
        [
            "int 2e in protected mode at CPL 3, on AMD",
            "IDT entry 2e at 8003f570 (8003f400 + 2e × 8) within the limit 7ff",
            "32-bit interrupt gate, present, DPL 3, leads to 0008:808655cd",
            "DPL 3 >= CPL 3: an instruction may use the gate",
            "GDT entry 1 (where the GDT begins is not known)",
            "cannot be checked: whether the entry is within the table, since the limit of the GDT is not known",
            "CS 0008: 32-bit code, non-conforming, ring 0, present, base 00000000, limit ffffffff",
            "DPL 0 of the code < CPL 3: the level changes to ring 0",
            "SS0 0010 from 80042008, ESP0 80873c00 from 80042004: TSS of TR 0028",
            "GDT entry 2 (where the GDT begins is not known)",
            "cannot be checked: whether the entry is within the table, since the limit of the GDT is not known",
            "SS 0010: writable data, ring 0, present, base 00000000, limit ffffffff",
            "push SS 0023 at 80873bfc",
            "push ESP 0006fdf0 at 80873bf8",
            "push EFLAGS 00000246 at 80873bf4",
            "push CS 001b at 80873bf0",
            "push EIP 77f82872 at 80873bec",
            "TF, IF, NT, RF, VM cleared by the interrupt gate: EFLAGS 00000046 (was 00000246)",
            "SS 0010 from the TSS, its hidden part from the descriptor",
            "ESP 80873bec after the pushes",
            "CS 0008 from the gate, its hidden part from the descriptor",
            "EIP 808655cd from the gate",
        ]
    );
}

#[test]
fn sysenter_of_windows_xp() {
    let mut sentences = Vec::new();
    let mut sketch = Sketch::new(Vendor::Intel, Width::Legacy, |step| sentences.push(step.to_string()));
    sketch.set_program(3, Mode::Protected);
    sketch.set_msr(Msr::SysenterCs, 0x8);
    sketch.set_msr(Msr::SysenterEsp, 0xf7a3_4000);
    sketch.set_msr(Msr::SysenterEip, 0x8086_5710);
    assert_eq!(walk(&mut sketch, Crossing::Sysenter), Outcome::Done);
    assert_eq!(
        sentences,
        [
            "sysenter in protected mode at CPL 3, on Intel",
            "protected mode has SYSENTER on Intel",
            "MSR 174, SYSENTER_CS, 8: not null",
            "IF, VM cleared: EFLAGS not known",
            "CS 0008 from bits 15 to 0 of MSR 174, SYSENTER_CS; no descriptor is read: 32-bit code, \
             non-conforming, ring 0, present, base 00000000, limit ffffffff",
            "SS 0010 from bits 15 to 0 of MSR 174, SYSENTER_CS, plus 8; no descriptor is read: writable data, \
             ring 0, present, base 00000000, limit ffffffff",
            "ESP f7a34000 from MSR 175, SYSENTER_ESP",
            "EIP 80865710 from MSR 176, SYSENTER_EIP",
        ]
    );
}

/// Returns the sentences and the outcome of SYSCALL.
fn xp_x64(vendor: Vendor, mode: Mode) -> (Vec<String>, Outcome) {
    let mut sentences = Vec::new();
    let mut sketch = Sketch::new(vendor, Width::Long, |step| sentences.push(step.to_string()));
    sketch.set_program(3, mode);
    sketch.set_msr(Msr::Star, 0x0023_0010_0000_0000);
    sketch.set_msr(Msr::Lstar, 0xffff_f800_0102_4040);
    sketch.set_msr(Msr::Cstar, 0xffff_f800_0102_3d80);
    sketch.set_msr(Msr::Fmask, 0x14700);
    sketch.rip = Some(0x78ef_1234);
    sketch.rflags = Some(0x346);
    let outcome = walk(&mut sketch, Crossing::Syscall);
    (sentences, outcome)
}

#[test]
fn syscall_of_windows_xp_x64() {
    let (sentences, outcome) = xp_x64(Vendor::Amd, Mode::Long64);
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(
        sentences,
        [
            "syscall in 64-bit mode at CPL 3, on AMD",
            "64-bit mode has SYSCALL on AMD",
            "cannot be checked: whether EFER.SCE is set, since MSR c0000080, EFER, is not known",
            "RCX 0000000078ef1234 is the address of the next instruction",
            "R11 0000000000000346 from RFLAGS",
            "TF, IF, DF, NT, RF cleared by MSR c0000084, FMASK: RFLAGS 0000000000000046 (was 0000000000000346)",
            "CS 0010 from bits 47 to 32 of MSR c0000081, STAR; no descriptor is read: 64-bit code, \
             non-conforming, ring 0, present, base 00000000, limit ffffffff",
            "SS 0018 from bits 47 to 32 of MSR c0000081, STAR, plus 8; no descriptor is read: writable data, \
             ring 0, present, base 00000000, limit ffffffff",
            "RIP fffff80001024040 from MSR c0000082, LSTAR",
        ]
    );
}

#[test]
fn syscall_of_a_32_bit_program_on_windows_xp_x64() {
    let (sentences, outcome) = xp_x64(Vendor::Amd, Mode::Compatibility);
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(sentences[0], "syscall in compatibility mode at CPL 3, on AMD");
    assert_eq!(sentences.last().unwrap(), "RIP fffff80001023d80 from MSR c0000083, CSTAR");
    let (sentences, outcome) = xp_x64(Vendor::Intel, Mode::Compatibility);
    assert_eq!(sentences.last().unwrap(), "compatibility mode has no SYSCALL on Intel");
    assert_eq!(outcome.to_string(), "#UD, invalid opcode, in ring 3, before any register was changed");
}

#[test]
fn a_missing_value_ends_the_walk() {
    let mut sketch = Sketch::new(Vendor::Intel, Width::Legacy, |_| ());
    sketch.set_program(3, Mode::Protected);
    let outcome = walk(&mut sketch, Crossing::Event(Event::Int(0x2e)));
    assert_eq!(outcome.to_string(), "cannot go on: IDT entry 2e is not known");
    let outcome = walk(&mut sketch, Crossing::Sysenter);
    assert_eq!(outcome.to_string(), "cannot go on: MSR 174, SYSENTER_CS, is not known");
    let hidden = Hidden { base: 0, descriptor: Descriptor::flat_data(3) };
    assert_eq!(sketch.segments[SegmentRegister::Ss as usize].hidden, Some(hidden));
}

#[test]
fn the_order_of_the_sketch_s_registers_is_that_of_the_list() {
    for (place, msr) in Msr::ALL.into_iter().enumerate() {
        assert_eq!(msr as usize, place);
    }
}
