//! Entry followed by return: the way back leads to where the entry began.

use super::fast::with_msrs;
use super::model::*;
use crate::walk::{Crossing, Event, Register, Size};
use crate::{Gate, GateKind, Msr, Selector, Vendor, WideGate, Width};

#[test]
fn interrupt_and_iret() {
    for (model, kind) in [
        (Model::user(Width::Long), 0xe),
        (Model::compatibility(), 0xf),
        (Model::kernel(Width::Long), 0xe),
        (Model::user(Width::Legacy), 0xe),
        (Model::kernel(Width::Legacy), 0xf),
    ] {
        let mut model = model;
        let gate = WideGate::new(GateKind::Trap, Selector(KERNEL_CODE), 0x1_0000, 3, 0);
        model.set_gate(0x80, WideGate { low: Gate { kind, ..gate.low }, ..gate });
        model.set_value(Register::Rflags, 0x0_0a46);
        let before = model.state();
        model.done(Crossing::Event(Event::Int(0x80)));
        assert_ne!(model.state(), before);
        let size = if model.width == Width::Long { Size::Quad } else { Size::Double };
        model.done(Crossing::InterruptReturn { size });
        assert_eq!(model.state(), before, "{:#?}", model.steps);
    }
}

#[test]
fn a_16_bit_interrupt_and_iret() {
    let mut model = Model::user(Width::Legacy);
    let gate = WideGate::new(GateKind::Interrupt, Selector(KERNEL_CODE), 0x1000, 3, 0);
    model.set_gate(0x80, WideGate { low: Gate { kind: 0x6, ..gate.low }, ..gate });
    model.set_value(Register::Rip, 0x1000);
    let before = model.state();
    model.done(Crossing::Event(Event::Int(0x80)));
    model.done(Crossing::InterruptReturn { size: Size::Word });
    assert_eq!(model.state(), before);
}

#[test]
fn an_exception_and_iret_past_its_error_code() {
    let mut model = Model::user(Width::Long);
    model.set_gate(14, WideGate::new(GateKind::Interrupt, Selector(KERNEL_CODE), 0x1000, 0, 0));
    let before = model.state();
    model.done(Crossing::Event(Event::Exception { vector: 14, code: Some(7) }));
    let pointer = model.value(Register::Rsp);
    model.set_value(Register::Rsp, pointer + 8);
    model.done(Crossing::InterruptReturn { size: Size::Quad });
    let (cs, rip, ss, rsp, flags) = before;
    assert_eq!(model.state(), (cs, rip, ss, rsp, flags | 0x1_0000), "RF for the second try");
}

#[test]
fn call_gate_and_far_return() {
    for width in [Width::Legacy, Width::Long] {
        let mut model = Model::user(width);
        let mut gate = WideGate::new(GateKind::Call, Selector(KERNEL_CODE), 0x1000, 3, 0);
        let size = match width {
            Width::Legacy => {
                gate.low.byte_4 = 2;
                model.put(GDT + u64::from(GATE), 8, u64::from_le_bytes(gate.low.encode()));
                Size::Double
            }
            Width::Long => {
                model.put_wide(GDT + u64::from(GATE), gate);
                Size::Quad
            }
        };
        let before = model.state();
        model.done(Crossing::FarCall { selector: Selector(GATE), offset: 0, size });
        let release = if width == Width::Legacy { 8 } else { 0 };
        model.done(Crossing::FarReturn { size, release });
        let (cs, rip, ss, rsp, flags) = before;
        assert_eq!(model.state(), (cs, rip, ss, rsp + u64::from(release), flags));
    }
}

#[test]
fn sysenter_and_sysexit() {
    for (model, wide, selectors) in [
        (Model::user(Width::Long), true, (0x33, 0x3b)),
        (Model::compatibility(), false, (0x23, 0x2b)),
        (Model::user(Width::Legacy), false, (0x23, 0x2b)),
    ] {
        let mut model = with_msrs(model);
        let (_, rip, _, rsp, _) = model.state();
        model.done(Crossing::Sysenter);
        model.set_value(Register::Rcx, rsp);
        model.set_value(Register::Rdx, rip);
        model.done(Crossing::Sysexit { wide });
        let flags = 0x2; // IF stays clear: the kernel sets it by STI.
        assert_eq!(model.state(), (selectors.0, rip, selectors.1, rsp, flags));
    }
}

#[test]
fn syscall_and_sysret() {
    for vendor in [Vendor::Intel, Vendor::Amd] {
        let mut model = Model { vendor, ..with_msrs(Model::user(Width::Long)) };
        model.set_value(Register::Msr(Msr::Star), 0x0023_0010_0000_0000);
        model.set_value(Register::Rflags, 0xa46);
        let (_, rip, _, rsp, flags) = model.state();
        model.done(Crossing::Syscall);
        model.done(Crossing::Sysret { wide: true });
        assert_eq!(model.state(), (0x33, rip, 0x2b, rsp, flags));
    }
    let mut model = Model { vendor: Vendor::Amd, ..with_msrs(Model::compatibility()) };
    let (_, rip, _, rsp, flags) = model.state();
    model.done(Crossing::Syscall);
    model.done(Crossing::Sysret { wide: false });
    assert_eq!(model.state(), (0x23, rip, 0x2b, rsp, flags));
}
