use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

use super::model::*;
use crate::walk::generated::{Rest, on_generated};
use crate::walk::{Crossing, Fault, Machine, Outcome, Register, SegmentRegister, walk};
use crate::{Msr, Selector, Vendor, Width};

/// Addresses near the memory, at the ends, and arbitrary ones.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..0xa000, Just(0), Just(u64::MAX), Just(0xffff_ffff), Just((1 << 47) - 8), any::<u64>(),]
}

fn vendor() -> impl Strategy<Value = Vendor> {
    prop_oneof![Just(Vendor::Intel), Just(Vendor::Amd)]
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::Legacy), Just(Width::Long)]
}

/// Checks the invariants of every completed walk.
fn is_consistent(
    machine: &impl Machine,
    crossing: Crossing,
    before: Option<u8>,
) -> Result<(), TestCaseError> {
    if crossing != Crossing::Swapgs {
        let cs = machine.segment(SegmentRegister::Cs);
        prop_assert_eq!(machine.cpl(), cs.selector.map(Selector::rpl));
    }
    match crossing {
        Crossing::Sysenter | Crossing::Syscall => prop_assert_eq!(machine.cpl(), Some(0)),
        Crossing::Sysexit { .. } | Crossing::Sysret { .. } => prop_assert_eq!(machine.cpl(), Some(3)),
        Crossing::Event(_) | Crossing::FarCall { .. } => prop_assert!(machine.cpl() <= before),
        Crossing::FarReturn { .. } | Crossing::InterruptReturn { .. } => {
            prop_assert!(machine.cpl() >= before)
        }
        Crossing::FarJump { .. } | Crossing::Swapgs => prop_assert_eq!(machine.cpl(), before),
    }
    Ok(())
}

proptest! {
    /// Inconsistent machines never cause a panic, and every step has a sentence.
    #[test]
    fn a_random_machine_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..1600)) {
        let mut sentences = Vec::new();
        on_generated(&bytes, |step| sentences.push(step.to_string()), |machine, crossing| {
            let before = machine.cpl();
            let outcome = walk(machine, crossing);
            prop_assert!(!outcome.to_string().is_empty());
            if outcome == Outcome::Done { is_consistent(machine, crossing, before) } else { Ok(()) }
        })?;
        prop_assert!(sentences.iter().all(|sentence| !sentence.is_empty() && !sentence.contains('`')));
    }

    /// A working machine, with some bytes of its tables and stacks changed.
    #[test]
    fn a_machine_that_is_nearly_right_stays_consistent(
        (vendor, width) in (vendor(), width()),
        crossing in prop::collection::vec(any::<u8>(), 24).prop_map(|bytes| Rest(&bytes).crossing()),
        is_kernel: bool,
        wrong in prop::collection::vec((0_u64..0x8000, any::<u8>()), 0..12),
        pointer in prop_oneof![3 => Just(USER_STACK), 1 => address()],
        missing in prop::option::weighted(0.2, 0_u64..10),
    ) {
        let mut model = if is_kernel { Model::kernel(width) } else { Model::user(width) };
        model.vendor = vendor;
        model.missing.extend(missing.map(|page| page << 12));
        for vector in 0..=255 {
            let kind = if vector % 2 == 0 { crate::GateKind::Trap } else { crate::GateKind::Interrupt };
            let to = [KERNEL_CODE, CONFORMING, RING_1_CODE][usize::from(vector as u8 % 3)];
            model.set_gate(vector, crate::WideGate::new(kind, Selector(to), 0x1000, 3, 0));
        }
        for at in 0..0x40 {
            model.put(USER_STACK + 4 * at, 4, [0x1000, 0x1b, 0x23, 0x08, 0][at as usize % 5]);
        }
        for (address, byte) in wrong {
            model.put(address, 1, u64::from(byte));
        }
        for msr in Msr::ALL {
            let value = if msr.is_canonical() { 0xffff_8010_0000_0d01 } else { 0x0023_0010_0000_0d01 };
            model.set_value(Register::Msr(msr), value);
        }
        model.set_value(Register::Rsp, pointer);
        model.set_value(Register::Rcx, pointer);
        model.set_value(Register::Rdx, USER_RIP);
        model.set_value(Register::R11, 0x202);
        let before = model.clone();
        match model.walk(crossing) {
            Outcome::Done => {
                is_consistent(&model, crossing, before.cpl())?;
                keeps_to_its_stack(&model, &before, crossing)?;
            }
            Outcome::Fault(Fault { crossed: false, level, .. }) => {
                prop_assert_eq!(level, before.cpl());
                prop_assert_eq!(&model.registers, &before.registers);
                prop_assert_eq!(&model.segments, &before.segments);
            }
            Outcome::Fault(_) => prop_assert_eq!(model.cpl(), Some(3)),
            Outcome::NotModelled(_) | Outcome::Impossible(_) => {
                prop_assert_eq!(&model.registers, &before.registers);
                prop_assert_eq!(&model.segments, &before.segments);
            }
            Outcome::Unknown(what) => prop_assert!(false, "everything is known: {what}"),
        }
    }
}

/// Checks that an event's frame lies right below the start of the new stack, and that only accessed bits are written
/// otherwise.
fn keeps_to_its_stack(model: &Model, before: &Model, crossing: Crossing) -> Result<(), TestCaseError> {
    let Crossing::Event(event) = crossing else { return Ok(()) };
    let rsp = model.value(Register::Rsp);
    let slots = 5 + u64::from(event.code().is_some());
    let slot = if model.width == Width::Long { 8 } else { 4 };
    if model.width == Width::Long {
        prop_assert_eq!(rsp.wrapping_add(slots * slot) % 16, 0, "the frame ends at 16 bytes");
    }
    let base = match model.segment(SegmentRegister::Ss).hidden {
        Some(hidden) if model.width == Width::Legacy => hidden.base,
        _ => 0,
    };
    let (mask, wrapped) = match model.width {
        Width::Long => (u64::MAX, 0xffff),
        // A 16-bit stack wraps around at 64 KiB.
        Width::Legacy => (0xffff_ffff, 0xffff),
    };
    let frame = |address: u64| address.wrapping_sub(base).wrapping_sub(rsp) & mask < slots * slot;
    for (address, byte) in &model.memory {
        if before.memory.get(address) != Some(byte) {
            let is_around = rsp.saturating_add(slots * slot) > wrapped;
            let is_table = (GDT..GDT + 0x1000).contains(address);
            prop_assert!(frame(*address) || is_around || is_table, "{address:x} {rsp:x} {base:x}");
        }
    }
    Ok(())
}
