//! Entries through the interrupt descriptor table, and every fault on the way.

use super::model::*;
use crate::walk::{
    Crossing, Event, Fault, Machine, Next, NotModelled, Outcome, Register, SegmentRegister, Unknown,
};
use crate::{Cr4, Descriptor, Gate, GateKind, Selector, WideGate, Width};

const TARGET: u64 = 0xffff_8000_0000_1000;

fn gate(kind: GateKind, selector: u16, dpl: u8, ist: u8) -> WideGate {
    WideGate::new(kind, Selector(selector), TARGET, dpl, ist)
}

fn int(vector: u8) -> Crossing {
    Crossing::Event(Event::Int(vector))
}

#[test]
fn from_ring_3_in_64_bit_mode() {
    let mut model = Model::user(Width::Long);
    model.set_gate(0x80, gate(GateKind::Trap, KERNEL_CODE, 3, 0));
    model.put(TSS + 4, 8, KERNEL_STACK + 9);
    model.done(int(0x80));
    assert_eq!(model.state(), (KERNEL_CODE, TARGET, 0, KERNEL_STACK - 0x28, 0x202));
    let frame: [u64; 5] = core::array::from_fn(|at| model.get(KERNEL_STACK - 0x28 + 8 * at as u64, 8));
    assert_eq!(frame, [USER_RIP, u64::from(USER_CODE), 0x202, USER_STACK, u64::from(USER_DATA)]);
    assert!(!model.segment_is_usable(SegmentRegister::Ss), "SS is null");
    assert!(model.steps.contains(&"RSP 0000000000009009 aligned to 16 bytes: 0000000000009000".into()));
}

#[test]
fn from_compatibility_mode_all_is_pushed_in_8_bytes() {
    let mut model = Model::compatibility();
    model.set_gate(0x80, gate(GateKind::Interrupt, KERNEL_CODE, 3, 0));
    model.done(int(0x80));
    assert_eq!(model.state(), (KERNEL_CODE, TARGET, 0, KERNEL_STACK - 0x28, 0x2));
    assert_eq!(model.get(KERNEL_STACK - 0x20, 8), u64::from(USER_CODE_32));
}

#[test]
fn an_exception_pushes_its_error_code_and_rf() {
    let mut model = Model::user(Width::Long);
    model.set_gate(13, gate(GateKind::Interrupt, KERNEL_CODE, 0, 0));
    let event = Event::Exception { vector: 13, code: Some(0x2a) };
    model.done(Crossing::Event(event));
    assert_eq!(model.value(Register::Rsp), KERNEL_STACK - 0x30);
    assert_eq!(model.get(KERNEL_STACK - 0x30, 8), 0x2a);
    assert_eq!(model.get(KERNEL_STACK - 0x18, 8), 0x1_0202, "RF keeps a breakpoint from stopping it again");
    for (event, flags) in [
        (Event::Exception { vector: 1, code: None }, 0x202),
        (Event::External { vector: 13 }, 0x202),
        (Event::Int1, 0x202),
        (Event::Exception { vector: 6, code: None }, 0x1_0202),
    ] {
        let mut model = Model::user(Width::Long);
        model.set_gate(u64::from(event.vector()), gate(GateKind::Interrupt, KERNEL_CODE, 0, 0));
        model.done(Crossing::Event(event));
        assert_eq!(model.get(KERNEL_STACK - 0x18, 8), flags, "{event:?}");
    }
}

#[test]
fn in_the_kernel_the_stack_is_aligned_and_ss_stays() {
    let mut model = Model::kernel(Width::Long);
    model.set_gate(0x20, gate(GateKind::Interrupt, KERNEL_CODE, 0, 0));
    model.done(Crossing::Event(Event::External { vector: 0x20 }));
    let aligned = (KERNEL_STACK - 0x408) & !0xf;
    assert_eq!(model.state(), (KERNEL_CODE, TARGET, KERNEL_DATA, aligned - 0x28, 0x2));
    assert_eq!(model.get(aligned - 0x10, 8), KERNEL_STACK - 0x408);
}

#[test]
fn the_interrupt_stack_table_switches_at_any_level() {
    for mut model in [Model::kernel(Width::Long), Model::user(Width::Long)] {
        model.put(TSS + 36 + 8, 8, 0xf00d_0000);
        model.set_gate(2, gate(GateKind::Interrupt, KERNEL_CODE, 0, 2));
        model.done(Crossing::Event(Event::External { vector: 2 }));
        assert_eq!(model.value(Register::Rsp), 0xf00d_0000 - 0x28);
        assert!(
            model.steps.iter().any(|step| step.starts_with("IST2 00000000f00d0000 from 000000000000402c"))
        );
    }
}

#[test]
fn conforming_code_stays_at_the_level() {
    let mut model = Model::user(Width::Long);
    model.set_gate(0x80, gate(GateKind::Trap, CONFORMING, 3, 0));
    model.done(int(0x80));
    assert_eq!(model.selector(SegmentRegister::Cs), CONFORMING | 3);
    assert_eq!(model.value(Register::Rsp), USER_STACK - 8 - 0x28, "the user's own stack, aligned");
    assert_eq!(model.selector(SegmentRegister::Ss), USER_DATA);
}

#[test]
fn protected_mode_pushes_ss_only_where_the_level_changes() {
    let mut model = Model::kernel(Width::Legacy);
    model.set_gate(0x20, gate(GateKind::Interrupt, KERNEL_CODE, 0, 0));
    model.done(Crossing::Event(Event::External { vector: 0x20 }));
    assert_eq!(model.state(), (KERNEL_CODE, 0x1000, KERNEL_DATA, KERNEL_STACK - 0x414, 0x2));
    let mut model = Model::user(Width::Legacy);
    model.set_gate(0x20, gate(GateKind::Interrupt, KERNEL_CODE, 0, 0));
    model.done(Crossing::Event(Event::External { vector: 0x20 }));
    assert_eq!(model.state(), (KERNEL_CODE, 0x1000, KERNEL_DATA, KERNEL_STACK - 0x14, 0x2));
    assert_eq!(model.get(KERNEL_STACK - 4, 4), u64::from(USER_DATA));
    assert_eq!(model.get(KERNEL_STACK - 8, 4), USER_STACK);
}

#[test]
fn a_16_bit_gate_pushes_words() {
    let mut model = Model::user(Width::Legacy);
    let gate = Gate { kind: 0x6, offset: 0xdead_1234, ..gate(GateKind::Interrupt, KERNEL_CODE, 3, 0).low };
    model.set_gate(0x80, WideGate { low: gate, ..WideGate::default() });
    model.done(int(0x80));
    assert_eq!(model.state(), (KERNEL_CODE, 0x1234, KERNEL_DATA, KERNEL_STACK - 10, 0x2));
    assert_eq!(model.get(KERNEL_STACK - 10, 2), USER_RIP & 0xffff);
}

#[test]
fn a_16_bit_stack_wraps_within_its_16_bits() {
    let mut model = Model::kernel(Width::Legacy);
    let small = Descriptor { base: 0x2_0000, limit: 0xffff, d: false, g: false, ..Descriptor::flat_data(0) };
    model.set_segment_of(SegmentRegister::Ss, KERNEL_DATA, small);
    model.set_value(Register::Rsp, 0xabcd_0000);
    model.set_gate(0x20, gate(GateKind::Interrupt, KERNEL_CODE, 0, 0));
    model.done(Crossing::Event(Event::External { vector: 0x20 }));
    assert_eq!(model.value(Register::Rsp), 0xabcd_fff4);
    assert_eq!(model.get(0x2_fffc, 4), 0x202);
}

#[test]
fn accessed_bits_are_set_once() {
    let mut model = Model::user(Width::Legacy);
    model.set_descriptor(KERNEL_CODE, Descriptor { kind: 0xa, ..Descriptor::flat_code(0, false) });
    model.set_descriptor(KERNEL_DATA, Descriptor { kind: 0x2, ..Descriptor::flat_data(0) });
    model.set_gate(0x80, gate(GateKind::Trap, KERNEL_CODE, 3, 0));
    model.done(int(0x80));
    assert_eq!(model.get(GDT + 8 + 5, 1), 0x9b);
    assert_eq!(model.get(GDT + 16 + 5, 1), 0x93);
    let said = |model: &Model| model.steps.iter().filter(|step| step.starts_with("accessed bit")).count();
    assert_eq!(said(&model), 2);
}

type Expected = (&'static str, Option<u32>);

#[test]
fn every_fault_in_long_mode() {
    let cases: [(&str, Spoil, Expected, Expected); 13] = [
        ("limit", |m| m.idt.limit = Some(0x80e), ("GP", Some(0x402)), ("GP", Some(0x403))),
        ("type", |m| m.put(IDT + 0x805, 1, 0xe5), ("GP", Some(0x402)), ("GP", Some(0x403))),
        ("segment", |m| m.put(IDT + 0x805, 1, 0xfe), ("GP", Some(0x402)), ("GP", Some(0x403))),
        ("absent gate", |m| m.put(IDT + 0x805, 1, 0x6e), ("NP", Some(0x402)), ("NP", Some(0x403))),
        ("null", |m| m.put(IDT + 0x802, 2, 3), ("GP", Some(0)), ("GP", Some(1))),
        ("beyond", |m| m.put(IDT + 0x802, 2, 0x90), ("GP", Some(0x90)), ("GP", Some(0x91))),
        ("in no LDT", |m| m.put(IDT + 0x802, 2, 0x0c), ("GP", Some(0x0c)), ("GP", Some(0x0d))),
        ("data", |m| m.put(IDT + 0x802, 2, 0x10), ("GP", Some(0x10)), ("GP", Some(0x11))),
        ("32-bit code", |m| m.put(IDT + 0x802, 2, 0x53), ("GP", Some(0x50)), ("GP", Some(0x51))),
        ("absent code", |m| m.put(IDT + 0x802, 2, 0x40), ("NP", Some(0x40)), ("NP", Some(0x41))),
        ("short TSS", |m| m.set_task_limit(10), ("TS", Some(0x28)), ("TS", Some(0x29))),
        ("stack", |m| m.put(TSS + 4, 8, 1 << 47), ("SS", Some(0)), ("SS", Some(1))),
        ("target", |m| m.put(IDT + 0x808, 4, 0x1234_0000), ("GP", Some(0)), ("GP", Some(1))),
    ];
    for (name, spoil, software, hardware) in cases {
        let mut model = Model::user(Width::Long);
        model.set_gate(0x80, gate(GateKind::Interrupt, KERNEL_CODE, 3, 0));
        spoil(&mut model);
        assert_eq!(model.clone().fault(int(0x80)), software, "{name}");
        let event = Crossing::Event(Event::External { vector: 0x80 });
        assert_eq!(model.fault(event), hardware, "{name}");
    }
}

#[test]
fn every_fault_in_protected_mode() {
    let cases: [(&str, Spoil, Expected); 17] = [
        ("limit", |m| m.idt.limit = Some(0x406), ("GP", Some(0x402))),
        ("type", |m| m.put(IDT + 0x405, 1, 0xec), ("GP", Some(0x402))),
        ("absent gate", |m| m.put(IDT + 0x405, 1, 0x6e), ("NP", Some(0x402))),
        ("null", |m| m.put(IDT + 0x402, 2, 0), ("GP", Some(0))),
        ("data", |m| m.put(IDT + 0x402, 2, 0x10), ("GP", Some(0x10))),
        ("absent code", |m| m.put(IDT + 0x402, 2, 0x40), ("NP", Some(0x40))),
        ("short TSS", |m| m.set_task_limit(8), ("TS", Some(0x28))),
        ("null stack", |m| m.put(TSS + 8, 2, 0), ("TS", Some(0))),
        ("stack beyond", |m| m.put(TSS + 8, 2, 0x90), ("TS", Some(0x90))),
        ("stack's RPL", |m| m.put(TSS + 8, 2, 0x11), ("TS", Some(0x10))),
        ("stack's DPL", |m| m.put(TSS + 8, 2, 0x20), ("TS", Some(0x20))),
        ("stack is code", |m| m.put(TSS + 8, 2, 0x08), ("TS", Some(0x08))),
        ("read-only stack", |m| m.put(TSS + 8, 2, 0x68), ("TS", Some(0x68))),
        ("absent stack", |m| m.put(TSS + 8, 2, 0x70), ("SS", Some(0x70))),
        (
            "small stack",
            |m| m.set_descriptor(KERNEL_DATA, Descriptor { limit: 7, ..Descriptor::flat_data(0) }),
            ("SS", Some(0x10)),
        ),
        (
            "target beyond",
            |m| {
                m.set_descriptor(
                    KERNEL_CODE,
                    Descriptor { limit: 0, g: true, ..Descriptor::flat_code(0, false) },
                )
            },
            ("GP", Some(0)),
        ),
        ("less privileged code", |m| m.put(IDT + 0x402, 2, u64::from(USER_CODE)), ("GP", Some(0x18))),
    ];
    for (name, spoil, expected) in cases {
        let from_kernel = name == "less privileged code";
        let mut model = if from_kernel { Model::kernel(Width::Legacy) } else { Model::user(Width::Legacy) };
        model.set_gate(0x80, gate(GateKind::Interrupt, KERNEL_CODE, 3, 0));
        spoil(&mut model);
        assert_eq!(model.fault(int(0x80)), expected, "{name}");
    }
}

#[test]
fn the_frame_may_go_around_the_end_of_a_flat_segment() {
    let mut model = Model::user(Width::Legacy);
    model.put(TSS + 4, 4, 8);
    model.set_gate(0x80, gate(GateKind::Interrupt, KERNEL_CODE, 3, 0));
    model.done(int(0x80));
    assert_eq!(model.value(Register::Rsp), 0xffff_fff4);
    model.put(TSS + 4, 4, 6);
    let mut model = Model { segments: Model::user(Width::Legacy).segments, ..model };
    assert_eq!(model.fault(int(0x80)), ("SS", Some(0x10)), "a slot may not");
}

#[test]
fn only_instructions_need_the_gate_s_level() {
    for width in [Width::Legacy, Width::Long] {
        for event in [Event::Int(3), Event::Int3] {
            let mut model = Model::user(width);
            model.set_gate(3, gate(GateKind::Trap, KERNEL_CODE, 2, 0));
            assert_eq!(model.fault(Crossing::Event(event)), ("GP", Some(3 << 3 | 2)));
            assert_eq!(model.steps.last().unwrap(), "DPL 2 < CPL 3: an instruction may not use the gate");
        }
        for event in [Event::Exception { vector: 3, code: None }, Event::External { vector: 3 }, Event::Int1]
        {
            let mut model = Model::user(width);
            model.set_gate(u64::from(event.vector()), gate(GateKind::Trap, KERNEL_CODE, 0, 0));
            model.done(Crossing::Event(event));
        }
    }
}

#[test]
fn into_is_not_in_64_bit_mode() {
    let mut model = Model::user(Width::Long);
    model.set_gate(4, gate(GateKind::Trap, KERNEL_CODE, 3, 0));
    assert_eq!(model.fault(Crossing::Event(Event::Into)), ("UD", None));
    let mut model = Model::compatibility();
    model.set_gate(4, gate(GateKind::Trap, KERNEL_CODE, 3, 0));
    model.done(Crossing::Event(Event::Into));
}

#[test]
fn a_task_gate_is_a_fault_in_long_mode_and_a_task_switch_outside() {
    let task = WideGate::new(GateKind::Task, Selector(OTHER_TASK), 0, 3, 0);
    let mut model = Model::user(Width::Long);
    model.set_gate(8, task);
    assert_eq!(model.fault(int(8)), ("GP", Some(0x42)));
    let mut model = Model::user(Width::Legacy);
    model.set_gate(8, task);
    assert_eq!(model.walk(int(8)), Outcome::NotModelled(NotModelled::TaskSwitch));
    assert_eq!(
        model.steps[model.steps.len() - 2..],
        [
            "task switch: the registers are saved in the TSS of TR 0028 at 00004000, which stays busy",
            "task switch: the registers are loaded from the TSS of 0078 at 00005000, which is marked busy; its \
             link is set to the old task and NT is set",
        ]
    );
    let cases: [(&str, Spoil, Expected); 5] = [
        ("busy", |m| m.set_descriptor(OTHER_TASK, system(0xb, 0x5000, 0x67)), ("GP", Some(0x78))),
        ("no TSS", |m| m.set_descriptor(OTHER_TASK, Descriptor::flat_data(0)), ("GP", Some(0x78))),
        ("short", |m| m.set_descriptor(OTHER_TASK, system(0x9, 0x5000, 0x66)), ("TS", Some(0x78))),
        (
            "absent",
            |m| m.set_descriptor(OTHER_TASK, Descriptor { p: false, ..system(0x9, 0x5000, 0x67) }),
            ("NP", Some(0x78)),
        ),
        ("LDT", |m| m.put(IDT + 8 * 8 + 2, 2, 0x7c), ("GP", Some(0x7c))),
    ];
    for (name, spoil, expected) in cases {
        let mut model = Model::user(Width::Legacy);
        model.set_gate(8, task);
        spoil(&mut model);
        assert_eq!(model.fault(int(8)), expected, "{name}");
    }
}

#[test]
fn a_page_that_is_missing_changes_nothing() {
    for (page, code) in [(IDT, 0), (GDT, 0), (TSS, 0), (KERNEL_STACK - 0x1000, 2)] {
        for width in [Width::Legacy, Width::Long] {
            let mut model = Model::user(width);
            model.set_gate(0x80, gate(GateKind::Trap, KERNEL_CODE, 3, 0));
            model.missing.push(page);
            let before = model.state();
            let outcome = model.walk(int(0x80));
            let Outcome::Fault(fault) = outcome else { panic!("{outcome:?}") };
            assert_eq!((fault.exception.0, fault.code), (14, Some(code)), "{page:x}");
            assert_eq!(fault.address.unwrap() & !0xfff, page);
            assert_eq!(model.state(), before);
        }
    }
}

#[test]
fn a_fault_in_the_delivery_of_another_may_be_a_double_fault() {
    let fault = |vector, code| Fault {
        exception: crate::walk::Exception(vector),
        code,
        address: None,
        level: Some(0),
        crossed: false,
    };
    let exception = |vector, code| Event::Exception { vector, code };
    let double = Next::Deliver(exception(8, Some(0)));
    for (first, second, next) in [
        (exception(13, Some(0)), fault(13, Some(0)), double),
        (exception(14, Some(0)), fault(14, Some(2)), double),
        (exception(14, Some(0)), fault(11, Some(8)), double),
        (exception(13, Some(0)), fault(14, Some(2)), Next::Deliver(exception(14, Some(2)))),
        (exception(6, None), fault(13, Some(8)), Next::Deliver(exception(13, Some(8)))),
        (exception(13, Some(0)), fault(6, None), Next::Deliver(exception(6, None))),
        (Event::Int(0x80), fault(13, Some(0x402)), Next::Deliver(exception(13, Some(0x402)))),
        (Event::External { vector: 14 }, fault(14, Some(2)), Next::Deliver(exception(14, Some(2)))),
        (exception(8, Some(0)), fault(14, Some(2)), Next::Shutdown),
        (exception(8, Some(0)), fault(13, Some(2)), Next::Shutdown),
    ] {
        assert_eq!(Next::after(first, &second), next, "{first:?} {second:?}");
    }
}

#[test]
fn what_is_not_walked_is_said() {
    let mut model = Model::user(Width::Long);
    model.set_value(Register::Cr4, Cr4::FRED.0);
    assert_eq!(model.walk(int(0x80)), Outcome::NotModelled(NotModelled::Fred));
    let sentence = std::format!("{}", NotModelled::Fred);
    assert!(["FRED", "IA32_FRED_CONFIG", "ERETU"].iter().all(|name| sentence.contains(name)), "{sentence}");
    let mut model = Model::user(Width::Legacy);
    model.set_value(Register::Rflags, 0x2_0202);
    assert_eq!(model.walk(int(0x80)), Outcome::NotModelled(NotModelled::Virtual8086));
    model.set_value(Register::Cr0, 0x10);
    assert_eq!(model.walk(int(0x80)), Outcome::NotModelled(NotModelled::RealMode));
    let mut model = Model::user(Width::Long);
    model.set_value(Register::Cr4, Cr4::CET.0);
    model.set_gate(0x80, gate(GateKind::Trap, KERNEL_CODE, 3, 0));
    model.done(int(0x80));
    assert!(model.steps[1].starts_with("CR4.CET is set"), "{:?}", model.steps);
    assert!(
        ["shadow-stack pointer", "ENDBRANCH"].iter().all(|it| model.steps[1].contains(it)),
        "{:?}",
        model.steps
    );
}

#[test]
fn unknown_values_are_pushed_as_not_known() {
    let mut model = Model::user(Width::Long);
    model.set_gate(0x80, gate(GateKind::Interrupt, KERNEL_CODE, 3, 0));
    model.registers.clear();
    model.done(int(0x80));
    assert!(model.steps.contains(&"push RSP not known at 0000000000008ff0".into()), "{:#?}", model.steps);
    assert_eq!(model.register(Register::Rflags), None);
    let mut model = Model::user(Width::Long);
    model.set_gate(0x80, gate(GateKind::Interrupt, KERNEL_CODE, 3, 0));
    model.segments[SegmentRegister::Tr as usize].hidden = None;
    assert_eq!(model.walk(int(0x80)), Outcome::Unknown(Unknown::TaskState { offset: 4, size: 8 }));
}
