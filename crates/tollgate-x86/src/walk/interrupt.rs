//! Entry through the interrupt descriptor table. SDM 2A, INT n, operation; SDM 3A, "Exception and interrupt handling in
//! 64-bit mode"; APM 2, "Long-mode interrupt control transfers".

use crate::{Gate, GateKind, Rflags, Selector, WideGate, Width};

use super::event::Event;
use super::flags;
use super::machine::{Directory, Hidden, Machine, Mode, Register, Segment, SegmentRegister};
use super::number::Number;
use super::outcome::{Exception, NotModelled, Outcome, Unknown};
use super::reading::{
    Found, access, address_bytes, check, code_behind_gate, expect, fault, invalid_opcode, is_conforming,
    is_reachable, level, look_up, missed,
};
use super::rule::Rule;
use super::stack::Stack;
use super::step::{FlagsBy, Item, Origin, Step};
use super::task_stack::{legacy_stack, long_pointer};
use super::{Size, Walked, fred, task};

/// A gate that was read, of either width.
#[derive(Clone, Copy)]
struct Door {
    kind: GateKind,
    slot: Size,
    selector: Selector,
    offset: u64,
    dpl: u8,
    present: bool,
    ist: u8,
}

/// The stack that the handler gets.
struct NewStack {
    stack: Stack,
    /// The value that SS is loaded with; none where it stays.
    segment: Option<NewSegment>,
}

enum NewSegment {
    /// A null selector with the new level in it: long mode.
    Null(Selector),
    /// The stack that the TSS names.
    Found(Found),
}

pub(super) fn enter<M: Machine + ?Sized>(machine: &mut M, event: Event) -> Walked<()> {
    if event == Event::Into && machine.mode() == Some(Mode::Long64) {
        let rule = Rule::Exists("INTO", machine.mode(), machine.vendor());
        let otherwise = invalid_opcode(machine);
        return check(machine, rule, false, otherwise);
    }
    if fred(machine) {
        return Err(Outcome::NotModelled(NotModelled::Fred));
    }
    let door = find_gate(machine, event)?;
    may_enter(machine, event, &door)?;
    let external = event.external();
    if door.kind == GateKind::Task {
        return task::switch(machine, door.selector, task::By::Event(event));
    }
    let cpl = level(machine)?;
    let code = code_behind_gate(machine, door.selector, cpl, external, false)?;
    let ring = new_ring(machine, cpl, &code);
    let mut new = find_stack(machine, &door, cpl, ring, external)?;
    if machine.width() == Width::Long {
        let otherwise = fault(machine, Exception::STACK, Some(external));
        new.stack.is_canonical(machine, otherwise)?;
        new.stack.align(machine);
    }
    is_fit(machine, event, &door, &code, &new)?;
    push_frame(machine, &mut new.stack, event, door.slot, new.segment.is_some())?;
    load(machine, &door, &code, &new, ring)
}

/// Reads the gate of the vector. An entry takes 8 bytes, in long mode 16.
fn find_gate<M: Machine + ?Sized>(machine: &mut M, event: Event) -> Walked<Door> {
    let width = machine.width();
    let size = match width {
        Width::Legacy => 8,
        Width::Long => 16,
    };
    let vector = event.vector();
    let refused = on_vector(machine, event, Exception::GENERAL_PROTECTION, event.external());
    look_up(machine, Directory::Idt, u16::from(vector), size, size, refused)?;
    let offset = u16::from(vector) * u16::from(size);
    let low = read_gate(machine, vector, offset)?;
    let high = match width {
        Width::Legacy => 0,
        Width::Long => read_gate(machine, vector, offset + 8)?,
    };
    let gate = Gate::decode(low.to_le_bytes());
    let rule = Rule::GateKind { s: gate.s, kind: gate.kind, width };
    let Some((kind, is_16_bit)) = gate.gate_kind(width).filter(|(kind, _)| *kind != GateKind::Call) else {
        return Err(match check(machine, rule, false, refused) {
            Err(outcome) => outcome,
            Ok(()) => refused,
        });
    };
    let wide = WideGate::decode((u128::from(low) | u128::from(high) << 64).to_le_bytes());
    let door = Door {
        kind,
        slot: match (width, is_16_bit) {
            (Width::Long, _) => Size::Quad,
            (Width::Legacy, false) => Size::Double,
            (Width::Legacy, true) => Size::Word,
        },
        selector: gate.selector,
        offset: match (width, is_16_bit) {
            (Width::Long, _) => wide.offset(),
            (Width::Legacy, false) => u64::from(gate.offset),
            (Width::Legacy, true) => u64::from(gate.offset & 0xffff),
        },
        dpl: gate.dpl,
        present: gate.p,
        ist: if width == Width::Long { wide.ist() } else { 0 },
    };
    machine.step(&Step::Gate {
        kind,
        slot: door.slot,
        present: door.present,
        dpl: door.dpl,
        selector: door.selector,
        offset: Number::new(Some(door.offset), address_bytes(width)),
        stack: door.ist,
        parameters: 0,
    });
    Ok(door)
}

fn read_gate<M: Machine + ?Sized>(machine: &mut M, vector: u8, offset: u16) -> Walked<u64> {
    match machine.gate(offset) {
        Ok(raw) => Ok(raw),
        Err(miss) => Err(missed(machine, miss, Unknown::Gate(vector))),
    }
}

/// A fault whose error code names the vector: bit 1 says that it is one of the IDT.
fn on_vector<M: Machine + ?Sized>(machine: &M, event: Event, exception: Exception, external: u32) -> Outcome {
    fault(machine, exception, Some(u32::from(event.vector()) << 3 | 0b10 | external))
}

/// An instruction needs a gate that is open to its level, everything a gate that is present.
fn may_enter<M: Machine + ?Sized>(machine: &mut M, event: Event, door: &Door) -> Walked<()> {
    if event.is_checked() {
        match machine.cpl() {
            Some(cpl) => {
                let otherwise = on_vector(machine, event, Exception::GENERAL_PROTECTION, 0);
                let rule = Rule::Open { dpl: door.dpl, cpl, rpl: None };
                check(machine, rule, door.dpl >= cpl, otherwise)?;
            }
            None => machine
                .step(&Step::Unchecked { whether: "the gate is open to the level", missing: Unknown::Level }),
        }
    }
    let otherwise = on_vector(machine, event, Exception::NOT_PRESENT, event.external());
    expect(machine, Rule::GatePresent, door.present, otherwise)
}

/// The level that the handler runs at.
pub(super) fn new_ring<M: Machine + ?Sized>(machine: &mut M, cpl: u8, code: &Found) -> u8 {
    let conforming = is_conforming(&code.descriptor);
    let dpl = code.descriptor.dpl;
    machine.step(&Step::Level { from: cpl, dpl, conforming });
    if conforming { cpl } else { dpl }
}

fn find_stack<M: Machine + ?Sized>(
    machine: &mut M,
    door: &Door,
    cpl: u8,
    ring: u8,
    external: u32,
) -> Walked<NewStack> {
    match machine.width() {
        Width::Legacy if ring == cpl => Ok(NewStack { stack: Stack::current(machine, cpl)?, segment: None }),
        Width::Legacy => {
            let (found, pointer) = legacy_stack(machine, ring, external)?;
            let hidden = Hidden { base: u64::from(found.descriptor.base), descriptor: found.descriptor };
            let stack = Stack::segmented(hidden, pointer, ring);
            Ok(NewStack { stack, segment: Some(NewSegment::Found(found)) })
        }
        Width::Long => {
            let pointer = if ring != cpl || door.ist != 0 {
                long_pointer(machine, ring, door.ist, external)?
            } else {
                machine.register(Register::Rsp).ok_or(Unknown::Register(Register::Rsp))?
            };
            let null = NewSegment::Null(Selector(0).with_rpl(ring));
            Ok(NewStack { stack: Stack::flat(pointer, ring), segment: (ring != cpl).then_some(null) })
        }
    }
}

/// That the stack has room for the frame, and that the target is within its segment.
fn is_fit<M: Machine + ?Sized>(
    machine: &mut M,
    event: Event,
    door: &Door,
    code: &Found,
    new: &NewStack,
) -> Walked<()> {
    let external = event.external();
    let switched = new.segment.is_some() || door.slot == Size::Quad;
    let slots = 3 + 2 * u16::from(switched) + u16::from(event.code().is_some());
    let named = match &new.segment {
        Some(NewSegment::Found(found)) => u32::from(found.selector.0 & !0b11),
        _ => 0,
    };
    let full = fault(machine, Exception::STACK, Some(named | external));
    new.stack.has_room(machine, slots, door.slot, full)?;
    let outside = fault(machine, Exception::GENERAL_PROTECTION, Some(external));
    is_reachable(machine, &code.descriptor, door.offset, outside)
}

/// Pushes what the handler returns with: in long mode SS and RSP always, otherwise where the stack was switched.
fn push_frame<M: Machine + ?Sized>(
    machine: &mut M,
    stack: &mut Stack,
    event: Event,
    slot: Size,
    switched: bool,
) -> Walked<()> {
    let selector =
        |machine: &M, register| machine.segment(register).selector.map(|selector| u64::from(selector.0));
    if switched || slot == Size::Quad {
        let ss = selector(machine, SegmentRegister::Ss);
        stack.push(machine, Item::Ss, ss, slot)?;
        let pointer = machine.register(Register::Rsp);
        stack.push(machine, Item::Rsp, pointer, slot)?;
    }
    let resume = if event.sets_rf() { Rflags::RF.0 } else { 0 };
    let flags = machine.register(Register::Rflags).map(|flags| flags | resume);
    stack.push(machine, Item::Rflags, flags, slot)?;
    let cs = selector(machine, SegmentRegister::Cs);
    stack.push(machine, Item::Cs, cs, slot)?;
    let next = machine.register(Register::Rip);
    stack.push(machine, Item::Rip, next, slot)?;
    match event.code() {
        Some(code) => stack.push(machine, Item::Code, Some(u64::from(code)), slot),
        None => Ok(()),
    }
}

/// Loads flags, stack and code. The accessed bits come first: they are in memory and may fault.
fn load<M: Machine + ?Sized>(
    machine: &mut M,
    door: &Door,
    code: &Found,
    new: &NewStack,
    ring: u8,
) -> Walked<()> {
    let descriptor = access(machine, code)?;
    let segment = match &new.segment {
        Some(NewSegment::Found(found)) => Some(Segment::of(found.selector, access(machine, found)?)),
        Some(NewSegment::Null(selector)) => Some(Segment::null(*selector)),
        None => None,
    };
    let bytes = address_bytes(machine.width());
    flags::change(machine, FlagsBy::gate(door.kind), None, bytes);
    if let Some(segment) = segment {
        machine.set_segment(SegmentRegister::Ss, segment);
        let selector = segment.selector.unwrap_or_default();
        machine.step(&match new.segment {
            Some(NewSegment::Null(_)) => Step::NullStack { selector },
            _ => Step::LoadSegment { register: SegmentRegister::Ss, selector, origin: Origin::TaskState },
        });
    }
    new.stack.store(machine, Origin::Pushes);
    enter_code(machine, code.selector.with_rpl(ring), descriptor, door.offset, Origin::Gate);
    Ok(())
}

/// Loads CS and RIP.
pub(super) fn enter_code<M: Machine + ?Sized>(
    machine: &mut M,
    selector: Selector,
    descriptor: crate::Descriptor,
    offset: u64,
    origin: Origin,
) {
    machine.set_segment(SegmentRegister::Cs, Segment::of(selector, descriptor));
    machine.step(&Step::LoadSegment { register: SegmentRegister::Cs, selector, origin });
    machine.set_register(Register::Rip, Some(offset));
    let value = Number::new(Some(offset), super::stack::code_bytes(machine));
    machine.step(&Step::Load { item: Item::Rip, value, origin });
}
