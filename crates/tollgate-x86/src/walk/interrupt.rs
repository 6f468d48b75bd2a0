//! Entry through the interrupt descriptor table. SDM 2A, INT n, operation; SDM 3A, "Exception and interrupt handling in
//! 64-bit mode"; APM 2, "Long-mode interrupt control transfers".

use crate::{Gate, GateKind, Rflags, Selector, Width};

use super::event::Event;
use super::flags;
use super::gate::{Door, NewStack};
use super::machine::Machine;
use super::number::Number;
use super::outcome::{Exception, NotModelled, Outcome, Unknown};
use super::reading::{
    FoundDescriptor, Refusal, UD, access, address_bytes, check, code_behind_gate, expect, is_conforming,
    is_reachable, level, look_up, missed, refuse, unchecked,
};
use super::registers::{Directory, Mode, Register, Segment, SegmentRegister};
use super::rule::Rule;
use super::stack::Stack;
use super::step::{FlagsBy, Item, Origin, Step};
use super::{Size, Walked, fred, task};

pub(super) fn enter(machine: &mut impl Machine, event: Event) -> Walked<()> {
    if event == Event::Into && machine.mode() == Some(Mode::Long64) {
        return refuse(machine, Rule::Exists("INTO", Mode::Long64, machine.vendor()), UD);
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
    let (mut stack, new) = find_stack(machine, &door, cpl, ring, external)?;
    if machine.width() == Width::Long {
        stack.is_canonical(machine, (Exception::STACK, Some(external)))?;
        stack.align(machine);
    }
    // Long mode always pushes SS and RSP, other modes only if the stack is switched.
    let pushes_stack = new.is_some() || door.slot == Size::Quad;
    let slots = 3 + 2 * u16::from(pushes_stack) + u16::from(event.code().is_some());
    let full = (Exception::STACK, Some(new.map_or(0, |new| new.code()) | external));
    stack.has_room(machine, slots, door.slot, full)?;
    let outside = (Exception::GENERAL_PROTECTION, Some(external));
    is_reachable(machine, &code.descriptor, door.offset, outside)?;
    push_frame(machine, &mut stack, event, door.slot, pushes_stack)?;
    // Setting the accessed bits comes first, since it writes to memory and may fault.
    let descriptor = access(machine, &code)?;
    let segment = new.map(|new| new.segment(machine)).transpose()?;
    flags::change(machine, FlagsBy::gate(door.kind), None, address_bytes(machine.width()));
    if let Some((new, segment)) = new.zip(segment) {
        new.load(machine, segment);
    }
    stack.store(machine, Origin::Pushes);
    enter_code(machine, code.selector.with_rpl(ring), descriptor, door.offset, Origin::Gate);
    Ok(())
}

fn find_gate(machine: &mut impl Machine, event: Event) -> Walked<Door> {
    let width = machine.width();
    let size = match width {
        Width::Legacy => 8,
        Width::Long => 16,
    };
    let vector = event.vector();
    let refused = on_vector(event, Exception::GENERAL_PROTECTION, event.external());
    look_up(machine, Directory::Idt, u16::from(vector), size, size, refused)?;
    let offset = u16::from(vector) * u16::from(size);
    let low = read_gate(machine, vector, offset)?;
    let high = match width {
        Width::Legacy => 0,
        Width::Long => read_gate(machine, vector, offset + 8)?,
    };
    let gate = Gate::decode(low.to_le_bytes());
    match gate.gate_kind(width) {
        Some((kind, is_16_bit)) if kind != GateKind::Call => {
            Ok(Door::read(machine, kind, is_16_bit, low, high))
        }
        _ => refuse(machine, Rule::GateKind { s: gate.s, kind: gate.kind, width }, refused),
    }
}

fn read_gate(machine: &mut impl Machine, vector: u8, offset: u16) -> Walked<u64> {
    machine.gate(offset).map_err(|miss| missed(machine, miss, Unknown::Gate(vector)))
}

/// Returns a fault whose error code names the vector; bit 1 means the IDT.
fn on_vector(event: Event, exception: Exception, external: u32) -> Refusal {
    (exception, Some(u32::from(event.vector()) << 3 | 0b10 | external))
}

/// Checks that the gate is present and, for an instruction, open to the current level.
fn may_enter(machine: &mut impl Machine, event: Event, door: &Door) -> Walked<()> {
    if event.is_checked() {
        match machine.cpl() {
            Some(cpl) => {
                let rule = Rule::Open { dpl: door.dpl, cpl, rpl: None };
                check(machine, rule, door.dpl >= cpl, on_vector(event, Exception::GENERAL_PROTECTION, 0))?;
            }
            None => unchecked(machine, "the gate is open to the level", Unknown::Level)?,
        }
    }
    expect(
        machine,
        Rule::GatePresent,
        door.present,
        on_vector(event, Exception::NOT_PRESENT, event.external()),
    )
}

pub(super) fn new_ring(machine: &mut impl Machine, cpl: u8, code: &FoundDescriptor) -> u8 {
    let conforming = is_conforming(&code.descriptor);
    let dpl = code.descriptor.dpl;
    machine.step(&Step::Level { from: cpl, dpl, conforming });
    if conforming { cpl } else { dpl }
}

/// Returns the handler's stack and the value for SS; `None` if the stack is not switched.
fn find_stack(
    machine: &mut impl Machine,
    door: &Door,
    cpl: u8,
    ring: u8,
    external: u32,
) -> Walked<(Stack, Option<NewStack>)> {
    if ring != cpl || door.ist != 0 {
        let (stack, new) = NewStack::find(machine, ring, door.ist, external)?;
        return Ok((stack, (ring != cpl).then_some(new)));
    }
    let stack = match machine.width() {
        Width::Legacy => Stack::current(machine, cpl)?,
        Width::Long => {
            let pointer = machine.register(Register::Rsp).ok_or(Unknown::Register(Register::Rsp))?;
            Stack::flat(pointer, ring)
        }
    };
    Ok((stack, None))
}

fn push_frame(
    machine: &mut impl Machine,
    stack: &mut Stack,
    event: Event,
    slot: Size,
    pushes_stack: bool,
) -> Walked<()> {
    if pushes_stack {
        stack.save(machine, Item::Ss, slot)?;
        stack.save(machine, Item::Rsp, slot)?;
    }
    let resume = if event.sets_rf() { Rflags::RF.0 } else { 0 };
    let flags = machine.register(Register::Rflags).map(|flags| flags | resume);
    stack.push(machine, Item::Rflags, flags, slot)?;
    stack.save(machine, Item::Cs, slot)?;
    stack.save(machine, Item::Rip, slot)?;
    match event.code() {
        Some(code) => stack.push(machine, Item::Code, Some(u64::from(code)), slot),
        None => Ok(()),
    }
}

pub(super) fn enter_code(
    machine: &mut impl Machine,
    selector: Selector,
    descriptor: crate::Descriptor,
    offset: u64,
    origin: Origin,
) {
    machine.set_segment(SegmentRegister::Cs, Segment::new(selector, descriptor));
    machine.step(&Step::LoadSegment { register: SegmentRegister::Cs, selector, origin });
    machine.set_register(Register::Rip, Some(offset));
    let value = Number::new(Some(offset), super::stack::code_bytes(machine));
    machine.step(&Step::Load { item: Item::Rip, value, origin });
}
