//! Properties of every machine.

use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

use super::model::*;
use crate::walk::{
    Bounds, Crossing, Event, Fault, Hidden, Machine, Outcome, Piece, Register, Segment, SegmentRegister,
    Size, Sketch, walk_watched,
};
use crate::{Descriptor, Msr, Selector, Vendor, Width};

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![Just(Size::Word), Just(Size::Double), Just(Size::Quad)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        any::<u8>().prop_map(Event::Int),
        Just(Event::Int3),
        Just(Event::Into),
        Just(Event::Int1),
        (any::<u8>(), any::<Option<u32>>()).prop_map(|(vector, code)| Event::Exception { vector, code }),
        any::<u8>().prop_map(|vector| Event::External { vector }),
    ]
}

/// Selectors, most of them of entries that there are.
fn selector() -> impl Strategy<Value = Selector> {
    prop_oneof![4 => 0_u16..0x90, 1 => any::<u16>()].prop_map(Selector)
}

fn crossing() -> impl Strategy<Value = Crossing> {
    prop_oneof![
        3 => event().prop_map(Crossing::Event),
        1 => (selector(), any::<u64>(), size())
            .prop_map(|(selector, offset, size)| Crossing::FarCall { selector, offset, size }),
        1 => (selector(), any::<u64>(), size())
            .prop_map(|(selector, offset, size)| Crossing::FarJump { selector, offset, size }),
        1 => (size(), any::<u16>()).prop_map(|(size, release)| Crossing::FarReturn { size, release }),
        1 => size().prop_map(|size| Crossing::InterruptReturn { size }),
        1 => Just(Crossing::Sysenter),
        1 => any::<bool>().prop_map(|wide| Crossing::Sysexit { wide }),
        1 => Just(Crossing::Syscall),
        1 => any::<bool>().prop_map(|wide| Crossing::Sysret { wide }),
        1 => Just(Crossing::Swapgs),
    ]
}

/// Addresses: near, at the ends, and any.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..0xa000, Just(0), Just(u64::MAX), Just(0xffff_ffff), Just((1 << 47) - 8), any::<u64>(),]
}

fn segment() -> impl Strategy<Value = Segment> {
    let hidden = (address(), any::<[u8; 8]>())
        .prop_map(|(base, bytes)| Hidden { base, descriptor: Descriptor::decode(bytes) });
    (prop::option::of(selector()), prop::option::of(hidden))
        .prop_map(|(selector, hidden)| Segment { selector, hidden })
}

fn bounds() -> impl Strategy<Value = Bounds> {
    (prop::option::of(address()), any::<Option<u32>>()).prop_map(|(base, limit)| Bounds { base, limit })
}

fn vendor() -> impl Strategy<Value = Vendor> {
    prop_oneof![Just(Vendor::Intel), Just(Vendor::Amd)]
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::Legacy), Just(Width::Long)]
}

/// The invariants after every walk that is done.
fn is_consistent<M: Machine>(
    machine: &M,
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
    /// Inconsistent machines: no panic, and a sentence for every step.
    #[test]
    fn a_random_machine_never_panics(
        (vendor, width, crossing) in (vendor(), width(), crossing()),
        numbers in prop::collection::vec(prop::option::of(address()), 8),
        msrs in prop::collection::vec(any::<Option<u64>>(), 12),
        segments in prop::collection::vec(segment(), 8),
        (gdt, idt) in (bounds(), bounds()),
        mut memory in prop::collection::vec(any::<u8>(), 0x400),
        base in address(),
        cpl in prop::option::of(0_u8..4),
    ) {
        let mut pieces = [Piece { address: base, bytes: &mut memory }];
        let mut sketch = Sketch::new(vendor, width);
        sketch.pieces = &mut pieces;
        sketch.cpl = cpl;
        let registers = [
            Register::Rip, Register::Rsp, Register::Rflags, Register::Rcx,
            Register::Rdx, Register::R11, Register::Cr4, Register::Cr0,
        ];
        for (register, value) in registers.into_iter().zip(numbers) {
            sketch.set_register(register, value.map(|value| match register {
                Register::Cr0 => value | 1,
                Register::Rflags => value & !0x2_0000,
                _ => value,
            }));
        }
        for (msr, value) in Msr::ALL.into_iter().zip(msrs) {
            sketch.set_register(Register::Msr(msr), value);
        }
        sketch.segments.copy_from_slice(&segments);
        (sketch.gdt, sketch.idt) = (gdt, idt);
        let before = sketch.cpl();
        let mut sentences = Vec::new();
        let outcome = walk_watched(&mut sketch, crossing, |step| sentences.push(step.to_string()));
        prop_assert!(!outcome.to_string().is_empty());
        prop_assert!(sentences.iter().all(|sentence| !sentence.is_empty() && !sentence.contains('`')));
        if outcome == Outcome::Done {
            is_consistent(&sketch, crossing, before)?;
        }
    }

    /// A machine that works, with some bytes of its tables and stacks made wrong.
    #[test]
    fn a_machine_that_is_nearly_right_stays_consistent(
        (vendor, width, crossing) in (vendor(), width(), crossing()),
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
            model.set_value(Register::Msr(msr), 0x0023_0010_0000_0d01);
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
            Outcome::NotModelled(_) => {
                prop_assert_eq!(&model.registers, &before.registers);
                prop_assert_eq!(&model.segments, &before.segments);
            }
            Outcome::Unknown(what) => prop_assert!(false, "everything is known: {what}"),
        }
    }
}

/// An event's frame lies right below where the new stack begins, and nothing else but accessed bits is written.
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
        // A 16-bit stack goes around at its own end.
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
