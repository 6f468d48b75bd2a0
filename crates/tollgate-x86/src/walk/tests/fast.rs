//! SYSENTER, SYSEXIT, SYSCALL, SYSRET and SWAPGS on Intel's processors: faults and values.

use std::string::ToString as _;

use super::model::*;
use crate::walk::{Crossing, Machine, NotModelled, Outcome, Register, SegmentRegister};
use crate::{Cr4, Descriptor, Msr, Width};

pub(super) const ENTRY: u64 = 0xffff_ffff_8100_0000;

/// Sets the MSRs of a kernel with the selectors of Linux.
pub(super) fn with_msrs(mut model: Model) -> Model {
    for (msr, value) in [
        (Msr::Star, 0x0023_0010_dead_0000),
        (Msr::Lstar, ENTRY),
        (Msr::Cstar, ENTRY + 0x800),
        (Msr::Fmask, 0x4_7700),
        (Msr::SysenterCs, 0x10),
        (Msr::SysenterEsp, KERNEL_STACK),
        (Msr::SysenterEip, if model.width == Width::Long { ENTRY + 0x400 } else { 0xc010_0000 }),
    ] {
        model.set_value(Register::Msr(msr), value);
    }
    model
}

#[test]
fn sysenter_in_long_mode_goes_to_64_bit_mode() {
    for model in [Model::user(Width::Long), Model::compatibility(), Model::kernel(Width::Long)] {
        let mut model = with_msrs(model);
        model.done(Crossing::Sysenter);
        assert_eq!(model.state(), (0x10, ENTRY + 0x400, 0x18, KERNEL_STACK, 0x2));
        let hidden = model.segment(SegmentRegister::Cs).hidden.unwrap();
        assert_eq!(hidden.descriptor, Descriptor::flat_code(0, true));
    }
}

#[test]
fn sysexit_goes_to_the_code_that_it_is_asked_for() {
    let mut model = with_msrs(Model::kernel(Width::Long));
    model.set_value(Register::Rcx, 0x7fff_ffff_e000);
    model.set_value(Register::Rdx, 0x5555_0000_1000);
    let mut narrow = model.clone();
    model.done(Crossing::Sysexit { wide: true });
    assert_eq!(model.state(), (0x33, 0x5555_0000_1000, 0x3b, 0x7fff_ffff_e000, 0x202));
    narrow.done(Crossing::Sysexit { wide: false });
    assert_eq!(narrow.state(), (0x23, 0x1000, 0x2b, 0xffff_e000, 0x202));
    assert_eq!(narrow.mode(), Some(crate::walk::Mode::Compatibility));
}

#[test]
fn syscall_keeps_the_stack_pointer() {
    let mut model = with_msrs(Model::user(Width::Long));
    model.set_value(Register::Rflags, 0x5_0746);
    model.done(Crossing::Syscall);
    assert_eq!(model.state(), (0x10, ENTRY, 0x18, USER_STACK, 0x46));
    assert_eq!((model.value(Register::Rcx), model.value(Register::R11)), (USER_RIP, 0x5_0746));
}

#[test]
fn sysret_loads_the_flags_but_for_rf_and_vm() {
    let mut model = with_msrs(Model::kernel(Width::Long));
    model.set_value(Register::Rcx, 0x1_2345_6789);
    model.set_value(Register::R11, u64::MAX);
    let mut narrow = model.clone();
    model.done(Crossing::Sysret { wide: true });
    assert_eq!(model.state(), (0x33, 0x1_2345_6789, 0x2b, KERNEL_STACK - 0x408, 0x3c_7fd7));
    narrow.done(Crossing::Sysret { wide: false });
    assert_eq!(narrow.state(), (0x23, 0x2345_6789, 0x2b, KERNEL_STACK - 0x408, 0x3c_7fd7));
}

#[test]
fn swapgs_exchanges_the_bases() {
    let mut model = Model::kernel(Width::Long);
    model.set_value(Register::Msr(Msr::GsBase), 1);
    model.set_value(Register::Msr(Msr::KernelGsBase), 2);
    model.done(Crossing::Swapgs);
    let bases = (model.value(Register::Msr(Msr::GsBase)), model.value(Register::Msr(Msr::KernelGsBase)));
    assert_eq!(bases, (2, 1));
    assert_eq!(Model::user(Width::Long).fault(Crossing::Swapgs), ("GP", Some(0)));
    assert_eq!(Model::compatibility().fault(Crossing::Swapgs), ("UD", None));
}

/// An instruction in the kernel with tables of this width, the defect, and the fault.
type Case = (Width, Crossing, Spoil, (&'static str, Option<u32>));

#[test]
fn every_fault() {
    let null_cs: Spoil = |m| m.set_value(Register::Msr(Msr::SysenterCs), 0xffff_0003);
    let no_sce: Spoil = |m| m.set_value(Register::Msr(Msr::Efer), 0xd00);
    let user: Spoil = |m| {
        m.set_segment_of(SegmentRegister::Cs, USER_CODE, Descriptor::flat_code(3, m.width == Width::Long));
    };
    let far: Spoil = |m| {
        m.set_value(Register::Rcx, 1 << 47);
        m.set_value(Register::Rdx, 0);
    };
    let fred: Spoil = |m| m.set_value(Register::Cr4, Cr4::FRED.0);
    let sysexit = Crossing::Sysexit { wide: true };
    let sysret = Crossing::Sysret { wide: true };
    let cases: [Case; 15] = [
        (Width::Long, Crossing::Sysenter, null_cs, ("GP", Some(0))),
        (Width::Legacy, Crossing::Sysenter, null_cs, ("GP", Some(0))),
        (Width::Long, sysexit, null_cs, ("GP", Some(0))),
        (Width::Long, sysexit, user, ("GP", Some(0))),
        (Width::Legacy, sysexit, user, ("GP", Some(0))),
        (Width::Long, sysexit, far, ("GP", Some(0))),
        (Width::Long, sysexit, fred, ("UD", None)),
        (Width::Long, Crossing::Syscall, no_sce, ("UD", None)),
        (Width::Legacy, Crossing::Syscall, |_| {}, ("UD", None)),
        (Width::Long, sysret, no_sce, ("UD", None)),
        (Width::Long, sysret, user, ("GP", Some(0))),
        (Width::Long, sysret, far, ("GP", Some(0))),
        (Width::Long, sysret, fred, ("UD", None)),
        (Width::Legacy, sysret, |_| {}, ("UD", None)),
        (Width::Long, Crossing::Swapgs, fred, ("UD", None)),
    ];
    for (at, (width, crossing, spoil, expected)) in cases.into_iter().enumerate() {
        let mut model = with_msrs(Model::kernel(width));
        model.set_value(Register::Rcx, 0x1000);
        model.set_value(Register::Rdx, 0x1000);
        spoil(&mut model);
        assert_eq!(model.fault(crossing), expected, "case {at}: {crossing}");
    }
    for crossing in [Crossing::Syscall, Crossing::Sysenter] {
        let mut model = with_msrs(Model::user(Width::Long));
        fred(&mut model);
        assert_eq!(model.walk(crossing), Outcome::NotModelled(NotModelled::Fred));
    }
}

#[test]
fn with_57_bits_more_addresses_are_canonical() {
    let mut model = with_msrs(Model::kernel(Width::Long));
    model.set_value(Register::Rcx, 1 << 47);
    model.set_value(Register::R11, 0x202);
    assert_eq!(model.fault(Crossing::Sysret { wide: true }), ("GP", Some(0)));
    model.set_value(Register::Cr4, Cr4::LA57.0);
    model.done(Crossing::Sysret { wide: true });
    let mut model = with_msrs(Model::kernel(Width::Long));
    model.set_value(Register::Cr4, Cr4::LA57.0);
    model.set_value(Register::Rcx, 1 << 56);
    model.set_value(Register::R11, 0x202);
    assert_eq!(model.fault(Crossing::Sysret { wide: true }), ("GP", Some(0)));
}

#[test]
fn an_address_that_cannot_be_written_is_no_target() {
    const HIGH: u64 = 0x0f00_f800_0102_4040;
    const WIDE: u64 = 0x0000_f800_0102_4040;
    let with = |msr, value| {
        let mut model = with_msrs(Model::user(Width::Long));
        model.set_value(Register::Msr(msr), value);
        model
    };
    let outcome = with(Msr::Lstar, HIGH).walk(Crossing::Syscall);
    assert_eq!(outcome, Outcome::Impossible(Msr::Lstar));
    assert_eq!(outcome.to_string(), "MSR c0000082, LSTAR, cannot hold this: WRMSR of it raises #GP(0000)");
    assert_eq!(with(Msr::SysenterEip, HIGH).walk(Crossing::Sysenter), Outcome::Impossible(Msr::SysenterEip));
    assert_eq!(with(Msr::SysenterEsp, HIGH).walk(Crossing::Sysenter), Outcome::Impossible(Msr::SysenterEsp));
    // The address is canonical with 57 bits: a processor that has them can hold it, but fetches from it only if they are
    // enabled.
    let mut model = with(Msr::Lstar, WIDE);
    let Outcome::Fault(fault) = model.walk(Crossing::Syscall) else { panic!() };
    assert_eq!((fault.exception.mnemonic(), fault.level, fault.crossed), (Some("GP"), Some(0), true));
    assert_eq!(model.value(Register::Rip), WIDE);
    let mut model = with(Msr::Lstar, WIDE);
    model.set_value(Register::Cr4, Cr4::LA57.0);
    model.done(Crossing::Syscall);
    let mut sketch = crate::walk::Sketch::new(crate::Vendor::Intel, Width::Long, |_| {});
    sketch.set_program(3, crate::walk::Mode::Long64);
    sketch.set_msr(Msr::Star, 0x0023_0010_0000_0000);
    sketch.set_msr(Msr::Lstar, WIDE);
    assert_eq!(crate::walk::walk(&mut sketch, Crossing::Syscall), Outcome::Done, "CR4 is not known");
}
