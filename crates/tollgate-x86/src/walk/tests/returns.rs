//! IRET and far returns, and every fault on the way.

use super::model::*;
use crate::walk::{
    Crossing, Hidden, Machine, NotModelled, Outcome, Register, Segment, SegmentRegister, Size,
};
use crate::{Cr4, Descriptor, Selector, Width};

const IRETQ: Crossing = Crossing::InterruptReturn { size: Size::Quad };
const IRETD: Crossing = Crossing::InterruptReturn { size: Size::Double };

/// Returns the kernel with a frame on its stack that leads to user code.
fn about_to_return(width: Width, slots: &[u64]) -> Model {
    let mut model = Model::kernel(width);
    let size = if width == Width::Long { 8 } else { 4 };
    let stack = KERNEL_STACK - 0x100;
    for (at, slot) in slots.iter().enumerate() {
        model.put(stack + at as u64 * size, size, *slot);
    }
    model.set_value(Register::Rsp, stack);
    model
}

const FRAME: [u64; 5] = [0x1234, USER_CODE as u64, 0x246, 0x7777_0000, USER_DATA as u64];

#[test]
fn to_ring_3() {
    for (width, crossing) in [(Width::Long, IRETQ), (Width::Legacy, IRETD)] {
        let mut model = about_to_return(width, &FRAME);
        model.set_segment_of(SegmentRegister::Ds, KERNEL_DATA, Descriptor::flat_data(0));
        model.done(crossing);
        assert_eq!(model.state(), (USER_CODE, 0x1234, USER_DATA, 0x7777_0000, 0x246));
        assert_eq!(model.selector(SegmentRegister::Ds), 0, "the kernel's data is closed to ring 3");
        assert_eq!(model.selector(SegmentRegister::Es), USER_DATA);
        assert!(model.steps.contains(&"DS 0010 becomes null: its DPL 0 < the new CPL 3".into()));
    }
}

#[test]
fn to_compatibility_mode() {
    let frame = [0x1234, u64::from(USER_CODE_32), 0x246, 0x1_7777_0000, u64::from(USER_DATA)];
    let mut model = about_to_return(Width::Long, &frame);
    model.done(IRETQ);
    assert_eq!(model.state(), (USER_CODE_32, 0x1234, USER_DATA, 0x7777_0000, 0x246));
    let mut model = about_to_return(Width::Long, &frame);
    model.put(KERNEL_STACK - 0x100, 8, 0x1_0000_0000);
    assert_eq!(model.fault(IRETQ), ("GP", Some(0)), "beyond the segment");
}

#[test]
fn a_16_bit_stack_keeps_the_upper_half_of_the_kernel_s_pointer() {
    let mut model =
        about_to_return(Width::Long, &[0x1234, u64::from(USER_CODE_32), 0x246, 0x7777_4444, 0x23]);
    let small = Descriptor { d: false, g: false, limit: 0xffff, ..Descriptor::flat_data(3) };
    model.set_descriptor(USER_DATA, small);
    model.set_segment_of(SegmentRegister::Ds, USER_DATA, small);
    model.set_value(Register::Rsp, 0xffff_8000_aaaa_0000);
    for (at, slot) in [0x1234, u64::from(USER_CODE_32), 0x246, 0x7777_4444, 0x23].into_iter().enumerate() {
        model.put(0xffff_8000_aaaa_0000 + 8 * at as u64, 8, slot);
    }
    model.done(IRETQ);
    assert_eq!(model.value(Register::Rsp), 0xaaaa_4444, "what Linux has espfix for");
}

#[test]
fn to_the_same_level() {
    let mut model = about_to_return(Width::Legacy, &[0x1234, u64::from(KERNEL_CODE), 0x46]);
    model.done(IRETD);
    assert_eq!(model.state(), (KERNEL_CODE, 0x1234, KERNEL_DATA, KERNEL_STACK - 0x100 + 12, 0x46));
    let frame = [0x1234, u64::from(KERNEL_CODE), 0x46, 0x8888, 0];
    let mut model = about_to_return(Width::Long, &frame);
    model.done(IRETQ);
    assert_eq!(model.state(), (KERNEL_CODE, 0x1234, 0, 0x8888, 0x46), "64-bit mode pops SS and RSP always");
    assert!(!model.segment_is_usable(SegmentRegister::Ss));
}

#[test]
fn ring_3_cannot_change_its_privileges() {
    let mut model = Model::user(Width::Long);
    let frame = [0x1234, u64::from(USER_CODE), 0x3f_7fd7, 0x8888, u64::from(USER_DATA)];
    for (at, slot) in frame.into_iter().enumerate() {
        model.put(USER_STACK + 8 * at as u64, 8, slot);
    }
    model.set_value(Register::Rflags, 2);
    model.done(IRETQ);
    let flags = model.value(Register::Rflags);
    assert_eq!(flags, 0x25_4dd7, "neither IF nor IOPL, VIF, VIP or VM");
    let mut model = about_to_return(Width::Long, &[0x1234, u64::from(USER_CODE), 0x3f_7fd7, 0, 0x23]);
    model.done(IRETQ);
    assert_eq!(model.value(Register::Rflags), 0x3d_7fd7, "ring 0 can, but for VM");
}

const STACK: u64 = KERNEL_STACK - 0x100;

#[test]
fn every_fault_of_iret_in_long_mode() {
    let cases: [(&str, Spoil, (&str, u32)); 16] = [
        ("NT", |m| m.set_value(Register::Rflags, 0x4002), ("GP", 0)),
        ("stack", |m| m.set_value(Register::Rsp, (1 << 47) - 16), ("SS", 0)),
        ("null code", |m| m.put(STACK + 8, 8, 3), ("GP", 0)),
        ("beyond", |m| m.put(STACK + 8, 8, 0x93), ("GP", 0x90)),
        ("data", |m| m.put(STACK + 8, 8, 0x23), ("GP", 0x20)),
        ("code of another level", |m| m.put(STACK + 8, 8, 0x0b), ("GP", 0x08)),
        (
            "L and D",
            |m| m.set_descriptor(USER_CODE, Descriptor { d: true, ..Descriptor::flat_code(3, true) }),
            ("GP", 0x18),
        ),
        (
            "absent code",
            |m| m.set_descriptor(USER_CODE, Descriptor { p: false, ..Descriptor::flat_code(3, true) }),
            ("NP", 0x18),
        ),
        ("null stack for ring 3", |m| m.put(STACK + 32, 8, 0), ("GP", 0)),
        ("stack's RPL", |m| m.put(STACK + 32, 8, 0x20), ("GP", 0x20)),
        ("stack's DPL", |m| m.put(STACK + 32, 8, 0x13), ("GP", 0x10)),
        ("stack beyond", |m| m.put(STACK + 32, 8, 0x93), ("GP", 0x90)),
        ("stack is code", |m| m.put(STACK + 32, 8, 0x1b), ("GP", 0x18)),
        (
            "absent stack",
            |m| m.set_descriptor(USER_DATA, Descriptor { p: false, ..Descriptor::flat_data(3) }),
            ("SS", 0x20),
        ),
        ("target", |m| m.put(STACK, 8, 1 << 47), ("GP", 0)),
        ("FRED", |m| m.set_value(Register::Cr4, Cr4::FRED.0), ("GP", 0x18)),
    ];
    for (name, spoil, (exception, code)) in cases {
        let mut model = about_to_return(Width::Long, &FRAME);
        spoil(&mut model);
        assert_eq!(model.fault(IRETQ), (exception, Some(code)), "{name}");
    }
    let mut model = Model::user(Width::Long);
    model.put(USER_STACK + 8, 8, u64::from(KERNEL_CODE));
    assert_eq!(model.fault(IRETQ), ("GP", Some(8)));
    assert_eq!(model.steps.last().unwrap(), "RPL 0 < CPL 3: a return cannot lead to a more privileged level");
    let mut model = about_to_return(Width::Long, &[0x1234, u64::from(KERNEL_CODE), 0x46, 0x8888, 1]);
    assert_eq!(model.fault(IRETQ), ("GP", Some(0)), "a null SS has the level in it");
}

#[test]
fn every_fault_of_iret_in_protected_mode() {
    let cases: [(&str, Spoil, (&str, u32)); 5] = [
        (
            "stack",
            |m| {
                let small = Descriptor { limit: STACK as u32 + 18, g: false, ..Descriptor::flat_data(0) };
                m.set_segment_of(SegmentRegister::Ss, KERNEL_DATA, small);
            },
            ("SS", 0),
        ),
        ("null stack", |m| m.put(STACK + 16, 4, 3), ("GP", 0)),
        ("inner stack", |m| m.put(STACK + 16, 4, 0x10), ("GP", 0x10)),
        (
            "target",
            |m| {
                let small = Descriptor { limit: 0x1233, g: false, ..Descriptor::flat_code(3, false) };
                m.set_descriptor(USER_CODE, small);
            },
            ("GP", 0),
        ),
        ("no task to return to", |m| m.set_value(Register::Rflags, 0x4002), ("TS", 0)),
    ];
    for (name, spoil, (exception, code)) in cases {
        let mut model = about_to_return(Width::Legacy, &FRAME);
        spoil(&mut model);
        assert_eq!(model.fault(IRETD), (exception, Some(code)), "{name}");
    }
}

#[test]
fn a_nested_task_returns_along_its_link() {
    let mut model = about_to_return(Width::Legacy, &FRAME);
    model.set_value(Register::Rflags, 0x4002);
    model.put(TSS, 2, u64::from(OTHER_TASK));
    assert_eq!(model.clone().fault(IRETD), ("TS", Some(0x78)), "the link has to be busy");
    model.set_descriptor(OTHER_TASK, system(0xb, 0x5000, 0x67));
    assert_eq!(model.walk(IRETD), Outcome::NotModelled(NotModelled::TaskSwitch));
    assert!(model.steps.last().unwrap().ends_with("which is busy; no link is written"));
}

#[test]
fn a_return_to_virtual_8086_mode_is_not_walked() {
    let mut model = about_to_return(Width::Legacy, &[0x1234, 0x1000, 0x2_0202, 0x8888, 0x2000]);
    assert_eq!(model.walk(IRETD), Outcome::NotModelled(NotModelled::Virtual8086));
}

#[test]
fn far_returns() {
    let far = |size, release| Crossing::FarReturn { size, release };
    let mut model = about_to_return(Width::Legacy, &[0x1234, u64::from(KERNEL_CODE)]);
    model.done(far(Size::Double, 8));
    assert_eq!(model.state(), (KERNEL_CODE, 0x1234, KERNEL_DATA, STACK + 16, 0x202));
    let frame = [0x1234, u64::from(USER_CODE), 0xaaaa, 0xbbbb, 0x7777_0000, u64::from(USER_DATA)];
    let mut model = about_to_return(Width::Legacy, &frame);
    model.done(far(Size::Double, 8));
    assert_eq!(
        model.state(),
        (USER_CODE, 0x1234, USER_DATA, 0x7777_0008, 0x202),
        "released from both stacks"
    );
    let mut model = about_to_return(Width::Long, &[0x1234, u64::from(USER_CODE), 0x7777_0000, 0x23]);
    model.done(far(Size::Quad, 0));
    assert_eq!(model.state(), (USER_CODE, 0x1234, USER_DATA, 0x7777_0000, 0x202));
    let mut model = Model::user(Width::Long);
    model.put(USER_STACK, 8, u64::from(KERNEL_CODE) << 32 | 0x1234);
    assert_eq!(model.fault(far(Size::Double, 0)), ("GP", Some(8)));
    let mut model = Model::kernel(Width::Long);
    model.set_value(Register::Rsp, (1 << 47) - 8);
    assert_eq!(model.fault(far(Size::Quad, 0)), ("SS", Some(0)));
    let mut model = about_to_return(Width::Long, &[0x1234, u64::from(USER_CODE), 0, 0]);
    assert_eq!(model.fault(far(Size::Quad, 0)), ("GP", Some(0)), "a null stack");
}

#[test]
fn a_base_of_fs_outlives_its_segment() {
    let mut model = about_to_return(Width::Long, &FRAME);
    let hidden = Hidden { base: 0x1234_5678_0000, descriptor: Descriptor::flat_data(0) };
    let segment = Segment { selector: Some(Selector(KERNEL_DATA)), hidden: Some(hidden) };
    model.set_segment(SegmentRegister::Fs, segment);
    model.done(IRETQ);
    let fs = model.segment(SegmentRegister::Fs);
    assert_eq!((fs.selector, fs.hidden.unwrap().base), (Some(Selector(0)), 0x1234_5678_0000));
}
