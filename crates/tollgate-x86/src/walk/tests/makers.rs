//! Differences between Intel's and AMD's processors.

use std::string::ToString;

use super::fast::{ENTRY, with_msrs};
use super::model::*;
use crate::walk::{Crossing, Exception, Fault, Machine, Outcome, Register, SegmentRegister};
use crate::{Descriptor, Msr, Vendor, Width};

fn amd(model: Model) -> Model {
    Model { vendor: Vendor::Amd, ..with_msrs(model) }
}

#[test]
fn amd_has_no_sysenter_in_long_mode() {
    for model in [Model::kernel(Width::Long), Model::compatibility()] {
        for crossing in [Crossing::Sysenter, Crossing::Sysexit { wide: false }] {
            assert_eq!(amd(model.clone()).fault(crossing), ("UD", None));
        }
    }
    let mut model = amd(Model::user(Width::Legacy));
    model.done(Crossing::Sysenter);
    assert_eq!(model.state(), (0x10, 0xc010_0000, 0x18, KERNEL_STACK, 0x2));
}

#[test]
fn intel_has_syscall_in_64_bit_mode_only() {
    for model in [Model::user(Width::Legacy), Model::compatibility()] {
        for crossing in [Crossing::Syscall, Crossing::Sysret { wide: false }] {
            assert_eq!(with_msrs(model.clone()).fault(crossing), ("UD", None));
        }
    }
}

#[test]
fn amd_enters_from_compatibility_mode_by_cstar() {
    let mut model = amd(Model::compatibility());
    model.set_value(Register::Rflags, 0x1_0346);
    model.done(Crossing::Syscall);
    assert_eq!(model.state(), (0x10, ENTRY + 0x800, 0x18, USER_STACK, 0x46));
    assert_eq!(model.value(Register::R11), 0x346, "without RF");
}

#[test]
fn amd_enters_outside_long_mode_by_star() {
    let mut model = amd(Model::user(Width::Legacy));
    model.set_value(Register::Rflags, 0x1_0746);
    model.done(Crossing::Syscall);
    assert_eq!(model.state(), (0x10, 0xdead_0000, 0x18, USER_STACK, 0x546), "TF and DF stay: no mask");
    assert_eq!(model.value(Register::Rcx), USER_RIP);
    assert_eq!(model.register(Register::R11), None);
    let hidden = model.segment(SegmentRegister::Cs).hidden.unwrap();
    assert_eq!(hidden.descriptor, Descriptor::flat_code(0, false));
    model.done(Crossing::Sysret { wide: false });
    assert_eq!(model.state(), (0x23, USER_RIP, 0x2b, USER_STACK, 0x746), "IF is set again");
}

#[test]
fn sysret_to_an_address_that_is_not_canonical() {
    let mut model = with_msrs(Model::kernel(Width::Long));
    model.set_value(Register::Rcx, 1 << 47);
    model.set_value(Register::R11, 0x202);
    let crossing = Crossing::Sysret { wide: true };
    assert_eq!(model.clone().fault(crossing), ("GP", Some(0)), "Intel's is still in ring 0");
    model.vendor = Vendor::Amd;
    let fault = Fault {
        exception: Exception::GENERAL_PROTECTION,
        code: Some(0),
        address: None,
        level: Some(3),
        crossed: true,
    };
    assert_eq!(model.walk(crossing), Outcome::Fault(fault));
    assert_eq!((model.cpl(), model.value(Register::Rip)), (Some(3), 1 << 47));
    assert_eq!(
        Outcome::Fault(fault).to_string(),
        "#GP(0000), general protection, in ring 3, after the crossing"
    );
}

#[test]
fn sysret_s_stack_segment() {
    for (vendor, selector, fixed) in [(Vendor::Intel, 0x23, true), (Vendor::Amd, 0x20, false)] {
        let mut model = Model { vendor, ..with_msrs(Model::kernel(Width::Long)) };
        model.set_value(Register::Msr(Msr::Star), 0x0018_0010_0000_0000);
        model.set_value(Register::Rcx, 0x1000);
        model.set_value(Register::R11, 0x202);
        let before = model.segment(SegmentRegister::Ss).hidden;
        model.done(Crossing::Sysret { wide: true });
        assert_eq!(model.selector(SegmentRegister::Ss), selector);
        let hidden = model.segment(SegmentRegister::Ss).hidden;
        if fixed {
            assert_eq!(hidden.unwrap().descriptor, Descriptor::flat_data(3));
        } else {
            assert_eq!(hidden, before, "the hidden part stays");
        }
    }
}

#[test]
fn the_kernel_s_ss_has_the_level_that_star_has() {
    for vendor in [Vendor::Intel, Vendor::Amd] {
        let mut model = Model { vendor, ..with_msrs(Model::user(Width::Long)) };
        model.set_value(Register::Msr(Msr::Star), 0x0023_0013_0000_0000);
        model.done(Crossing::Syscall);
        assert_eq!((model.selector(SegmentRegister::Cs), model.selector(SegmentRegister::Ss)), (0x10, 0x1b));
    }
}
