//! Far calls and jumps.

use super::model::*;
use crate::walk::{Crossing, NotModelled, Outcome, Register, SegmentRegister, Size};
use crate::{Cr4, Descriptor, Gate, GateKind, Selector, WideGate, Width};

const TARGET: u64 = 0xffff_8000_0000_2000;

fn call(selector: u16) -> Crossing {
    Crossing::FarCall { selector: Selector(selector), offset: 0x1234, size: Size::Double }
}

fn jump(selector: u16) -> Crossing {
    Crossing::FarJump { selector: Selector(selector), offset: 0x1234, size: Size::Double }
}

fn with_gate(mut model: Model, selector: u16, parameters: u8) -> Model {
    let mut gate = WideGate::new(GateKind::Call, Selector(selector), TARGET, 3, 0);
    if model.width == Width::Legacy {
        gate.low.byte_4 = parameters;
        model.put(GDT + u64::from(GATE), 8, u64::from_le_bytes(gate.low.encode()));
    } else {
        model.put_wide(GDT + u64::from(GATE), gate);
    }
    model
}

#[test]
fn a_call_gate_of_protected_mode_copies_parameters() {
    let mut model = with_gate(Model::user(Width::Legacy), KERNEL_CODE, 2);
    model.put(USER_STACK, 8, 0x2222_2222_1111_1111);
    model.done(call(GATE | 3));
    assert_eq!(model.state(), (KERNEL_CODE, 0x2000, KERNEL_DATA, KERNEL_STACK - 24, 0x202));
    let frame: [u64; 6] = core::array::from_fn(|at| model.get(KERNEL_STACK - 24 + 4 * at as u64, 4));
    assert_eq!(
        frame,
        [USER_RIP, u64::from(USER_CODE), 0x1111_1111, 0x2222_2222, USER_STACK, u64::from(USER_DATA)]
    );
    assert!(model.steps.contains(&"push parameter 1 22222222 at 00008ff4".into()), "{:#?}", model.steps);
}

#[test]
fn a_16_bit_call_gate_pushes_words() {
    let mut model = Model::user(Width::Legacy);
    let gate = WideGate::new(GateKind::Call, Selector(KERNEL_CODE), 0x5555_2000, 3, 0).low;
    let gate = Gate { kind: 0x4, byte_4: 1, ..gate };
    model.put(GDT + u64::from(GATE), 8, u64::from_le_bytes(gate.encode()));
    model.put(USER_STACK, 2, 0x1111);
    model.done(call(GATE));
    assert_eq!(model.state(), (KERNEL_CODE, 0x2000, KERNEL_DATA, KERNEL_STACK - 10, 0x202));
    assert_eq!(model.get(KERNEL_STACK - 6, 2), 0x1111);
}

#[test]
fn a_call_gate_of_long_mode_copies_nothing_and_leads_to_64_bit_code() {
    for from in [Model::user(Width::Long), Model::compatibility()] {
        let mut model = with_gate(from, KERNEL_CODE, 0);
        let cs = u64::from(model.selector(SegmentRegister::Cs));
        model.done(call(GATE | 3));
        assert_eq!(model.state(), (KERNEL_CODE, TARGET, 0, KERNEL_STACK - 32, 0x202));
        let frame: [u64; 4] = core::array::from_fn(|at| model.get(KERNEL_STACK - 32 + 8 * at as u64, 8));
        assert_eq!(frame, [USER_RIP, cs, USER_STACK, u64::from(USER_DATA)]);
    }
}

#[test]
fn a_gate_to_conforming_code_or_to_the_same_level_keeps_the_stack() {
    for (from, to, pointer) in [
        (Model::user(Width::Long), CONFORMING, USER_STACK - 16),
        (Model::kernel(Width::Long), KERNEL_CODE, KERNEL_STACK - 0x408 - 16),
        (Model::user(Width::Legacy), CONFORMING, USER_STACK - 8),
    ] {
        let mut model = with_gate(from, to, 3);
        let (ss, cpl) = (model.selector(SegmentRegister::Ss), model.selector(SegmentRegister::Cs) & 3);
        model.done(call(GATE));
        assert_eq!(model.value(Register::Rsp), pointer);
        assert_eq!(model.selector(SegmentRegister::Ss), ss);
        assert_eq!(model.selector(SegmentRegister::Cs), to | cpl);
    }
}

#[test]
fn a_gate_may_lead_to_ring_1() {
    let mut model = with_gate(Model::user(Width::Legacy), RING_1_CODE, 0);
    model.done(call(GATE));
    assert_eq!(model.state(), (RING_1_CODE | 1, 0x2000, RING_1_DATA | 1, KERNEL_STACK - 0x810, 0x202));
    let mut model = with_gate(Model::user(Width::Long), RING_1_CODE, 0);
    model.done(call(GATE));
    assert_eq!(model.state(), (RING_1_CODE | 1, TARGET, 1, KERNEL_STACK - 0x820, 0x202));
}

#[test]
fn a_direct_call_keeps_the_level() {
    let mut model = Model::user(Width::Long);
    model.done(call(USER_CODE_32));
    assert_eq!(model.state(), (USER_CODE_32, 0x1234, USER_DATA, USER_STACK - 8, 0x202));
    let mut model = Model::user(Width::Legacy);
    model.done(jump(CONFORMING));
    assert_eq!(model.state(), (CONFORMING | 3, 0x1234, USER_DATA, USER_STACK, 0x202));
    let mut model = Model::user(Width::Legacy);
    model.done(Crossing::FarCall { selector: Selector(USER_CODE), offset: 0x9_1234, size: Size::Word });
    assert_eq!(model.state(), (USER_CODE, 0x1234, USER_DATA, USER_STACK - 4, 0x202));
}

/// A name, a call by a user program with tables of this width, the defect, and the fault.
type Direct = (&'static str, Width, Crossing, Spoil, (&'static str, u32));

const HERE: u64 = GDT + GATE as u64;

#[test]
fn every_fault_of_a_direct_call() {
    let nothing: Spoil = |_| {};
    let cases: [Direct; 10] = [
        ("null", Width::Long, call(3), nothing, ("GP", 0)),
        ("beyond", Width::Long, call(0x90), nothing, ("GP", 0x90)),
        ("data", Width::Long, call(USER_DATA), nothing, ("GP", 0x20)),
        ("inner code", Width::Long, call(KERNEL_CODE), nothing, ("GP", 8)),
        ("inner code", Width::Legacy, jump(KERNEL_CODE), nothing, ("GP", 8)),
        (
            "L and D",
            Width::Long,
            call(USER_CODE),
            |m| m.set_descriptor(USER_CODE, Descriptor { d: true, ..Descriptor::flat_code(3, true) }),
            ("GP", 0x18),
        ),
        (
            "absent",
            Width::Legacy,
            jump(USER_CODE),
            |m| m.set_descriptor(USER_CODE, Descriptor { p: false, ..Descriptor::flat_code(3, false) }),
            ("NP", 0x18),
        ),
        ("stack", Width::Long, call(USER_CODE), |m| m.set_value(Register::Rsp, (1 << 47) + 4), ("SS", 0)),
        (
            "target",
            Width::Long,
            Crossing::FarCall { selector: Selector(USER_CODE), offset: 1 << 50, size: Size::Quad },
            nothing,
            ("GP", 0),
        ),
        (
            "target",
            Width::Legacy,
            call(USER_CODE),
            |m| m.set_descriptor(USER_CODE, Descriptor { limit: 0, ..Descriptor::flat_code(3, false) }),
            ("GP", 0),
        ),
    ];
    for (name, width, crossing, spoil, (exception, code)) in cases {
        let mut model = Model::user(width);
        spoil(&mut model);
        assert_eq!(model.fault(crossing), (exception, Some(code)), "{name}");
    }
}

#[test]
fn every_fault_of_a_call_gate() {
    let both: [(&str, Spoil, (&str, u32)); 8] = [
        ("level", |m| m.put(HERE + 5, 1, 0xcc), ("GP", 0x58)),
        ("absent gate", |m| m.put(HERE + 5, 1, 0x6c), ("NP", 0x58)),
        ("null", |m| m.put(HERE + 2, 2, 2), ("GP", 0)),
        ("beyond", |m| m.put(HERE + 2, 2, 0x90), ("GP", 0x90)),
        ("data", |m| m.put(HERE + 2, 2, 0x10), ("GP", 0x10)),
        ("absent code", |m| m.put(HERE + 2, 2, 0x40), ("NP", 0x40)),
        ("short TSS", |m| m.set_task_limit(5), ("TS", 0x28)),
        ("not a gate", |m| m.put(HERE + 5, 1, 0xe2), ("GP", 0x58)),
    ];
    for width in [Width::Legacy, Width::Long] {
        for (name, spoil, (exception, code)) in both {
            let mut model = with_gate(Model::user(width), KERNEL_CODE, 0);
            spoil(&mut model);
            assert_eq!(model.fault(call(GATE | 3)), (exception, Some(code)), "{name} {width:?}");
        }
        let mut model = with_gate(Model::user(width), KERNEL_CODE, 0);
        assert_eq!(model.fault(jump(GATE)), ("GP", Some(8)), "a jump does not change the level");
    }
    let long: [(&str, Spoil, (&str, u32)); 6] = [
        ("upper type", |m| m.put(HERE + 13, 1, 1), ("GP", 0x58)),
        ("half beyond", |m| m.gdt.limit = Some(0x5f), ("GP", 0x58)),
        ("32-bit code", |m| m.put(HERE + 2, 2, 0x50), ("GP", 0x50)),
        ("stack", |m| m.put(TSS + 4, 8, (1 << 47) + 8), ("SS", 0)),
        ("target", |m| m.put(HERE + 8, 4, 0x7fff_ffff), ("GP", 0)),
        ("FRED", |m| m.set_value(Register::Cr4, Cr4::FRED.0), ("GP", 0x58)),
    ];
    for (name, spoil, (exception, code)) in long {
        let mut model = with_gate(Model::user(Width::Long), KERNEL_CODE, 0);
        spoil(&mut model);
        assert_eq!(model.fault(call(GATE)), (exception, Some(code)), "{name}");
    }
    let legacy: [(&str, Spoil, (&str, u32)); 5] = [
        ("null stack", |m| m.put(TSS + 8, 2, 0), ("TS", 0)),
        ("stack's level", |m| m.put(TSS + 8, 2, 0x20), ("TS", 0x20)),
        ("absent stack", |m| m.put(TSS + 8, 2, 0x70), ("SS", 0x70)),
        ("small stack", |m| m.put(TSS + 4, 4, 23), ("SS", 0x10)),
        ("no parameters", |m| m.set_value(Register::Rsp, 0xffff_fffe), ("SS", 0)),
    ];
    for (name, spoil, (exception, code)) in legacy {
        let mut model = with_gate(Model::user(Width::Legacy), KERNEL_CODE, 2);
        spoil(&mut model);
        assert_eq!(model.fault(call(GATE)), (exception, Some(code)), "{name}");
    }
    let mut model = with_gate(Model::user(Width::Legacy), KERNEL_CODE, 0);
    model.put(HERE + 5, 1, 0xac);
    assert_eq!(model.fault(call(GATE | 3)), ("GP", Some(0x58)));
    assert_eq!(model.steps.last().unwrap(), "DPL 1 < CPL 3: an instruction may not use the gate");
    let mut model = with_gate(Model::kernel(Width::Legacy), KERNEL_CODE, 0);
    model.put(HERE + 5, 1, 0xac);
    assert_eq!(model.fault(call(GATE | 3)), ("GP", Some(0x58)));
    assert_eq!(model.steps.last().unwrap(), "DPL 1 < RPL 3: an instruction may not use the gate");
}

#[test]
fn a_call_to_a_task_is_a_task_switch_outside_long_mode() {
    for (crossing, stays) in [(call(OTHER_TASK), true), (jump(OTHER_TASK), false)] {
        let mut model = Model::kernel(Width::Legacy);
        assert_eq!(model.walk(crossing), Outcome::NotModelled(NotModelled::TaskSwitch));
        let saved = &model.steps[model.steps.len() - 2];
        assert!(saved.ends_with(if stays { "stays busy" } else { "is marked available" }), "{saved}");
        assert_eq!(Model::user(Width::Legacy).fault(crossing), ("GP", Some(0x78)), "its DPL is 0");
        assert_eq!(Model::kernel(Width::Long).fault(crossing), ("GP", Some(0x78)));
    }
    let mut model = Model::user(Width::Legacy);
    let gate = WideGate::new(GateKind::Task, Selector(OTHER_TASK), 0, 3, 0);
    model.put(HERE, 8, u64::from_le_bytes(gate.low.encode()));
    assert_eq!(model.walk(call(GATE)), Outcome::NotModelled(NotModelled::TaskSwitch));
}

#[test]
fn code_may_be_in_the_ldt() {
    use crate::walk::{Hidden, Segment};
    let mut model = Model::user(Width::Legacy);
    model.put(LDT + 8, 8, u64::from_le_bytes(Descriptor::flat_code(3, false).encode()));
    let hidden = Hidden { base: LDT, descriptor: system(0x2, LDT as u32, 0xf) };
    model.segments[SegmentRegister::Ldtr as usize] =
        Segment { selector: Some(Selector(0x60)), hidden: Some(hidden) };
    model.done(call(0xf));
    assert_eq!(model.selector(SegmentRegister::Cs), 0xf);
    assert_eq!(model.fault(call(0x17)), ("GP", Some(0x14)));
}
