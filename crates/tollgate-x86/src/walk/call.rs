//! Far calls and jumps: to code, and through call gates. SDM 2A, CALL and JMP, operation; APM 2, "Control-transfer
//! privilege checks".

use crate::{Descriptor, Gate, GateKind, Kind, Selector, SystemKind, Table, WideGate, Width};

use super::interrupt::{enter_code, new_ring};
use super::machine::{Directory, Hidden, Machine, Register, Segment, SegmentRegister};
use super::number::Number;
use super::outcome::{Exception, Outcome, Unknown};
use super::reading::{
    Blame, Found, access, address_bytes, bounds, check, code_behind_gate, expect, fault, find,
    has_code_level, has_one_width, is_conforming, is_present, is_reachable, level, look_up, missed,
    selector_code,
};
use super::rule::{Role, Rule};
use super::stack::Stack;
use super::step::{Item, Origin, Step};
use super::task_stack::{legacy_stack, long_pointer};
use super::{Size, Walked, fred, task};

/// The most parameters that a gate can copy: its count has 5 bits.
const MOST: usize = 31;

/// A call gate of either width.
#[derive(Clone, Copy)]
struct Door {
    selector: Selector,
    offset: u64,
    slot: Size,
    parameters: u8,
}

pub(super) fn far<M: Machine + ?Sized>(
    machine: &mut M,
    selector: Selector,
    offset: u64,
    size: Size,
    is_call: bool,
) -> Walked<()> {
    let cpl = level(machine)?;
    let null = fault(machine, Exception::GENERAL_PROTECTION, Some(0));
    expect(machine, Rule::NotNull(Role::Target), !selector.is_null(), null)?;
    let found = find(machine, Role::Target, selector, Blame::protection(0))?;
    let refused = Blame::protection(0).on(machine, selector);
    let legacy = machine.width() == Width::Legacy;
    match found.descriptor.kind() {
        Kind::Code { .. } => direct(machine, &found, offset, size, cpl, is_call),
        Kind::System(SystemKind::CallGate) => through_gate(machine, &found, cpl, is_call),
        Kind::System(SystemKind::CallGate16) if legacy => through_gate(machine, &found, cpl, is_call),
        Kind::System(SystemKind::TaskGate) if legacy => {
            let gate = Gate::decode(found.descriptor.encode());
            is_open(machine, &found, cpl)?;
            expect(machine, Rule::GatePresent, gate.p, not_present(machine, selector))?;
            task::switch(machine, gate.selector, by(is_call))
        }
        Kind::System(SystemKind::Tss { busy: false } | SystemKind::Tss16 { busy: false }) if legacy => {
            is_open(machine, &found, cpl)?;
            task::switch(machine, selector, by(is_call))
        }
        _ => {
            let Descriptor { s, kind, .. } = found.descriptor;
            let width = machine.width();
            check(machine, Rule::GateKind { s, kind, width }, false, refused)
        }
    }
}

const fn by(is_call: bool) -> task::By {
    if is_call { task::By::Call } else { task::By::Jump }
}

fn not_present<M: Machine + ?Sized>(machine: &M, selector: Selector) -> Outcome {
    fault(machine, Exception::NOT_PRESENT, selector_code(selector, 0))
}

/// To code without a gate: the level stays.
fn direct<M: Machine + ?Sized>(
    machine: &mut M,
    found: &Found,
    offset: u64,
    size: Size,
    cpl: u8,
    is_call: bool,
) -> Walked<()> {
    let code = &found.descriptor;
    let refused = Blame::protection(0).on(machine, found.selector);
    has_one_width(machine, code, refused)?;
    if !is_conforming(code) {
        let rpl = found.selector.rpl();
        expect(machine, Rule::Requested { rpl, cpl }, rpl <= cpl, refused)?;
    }
    has_code_level(machine, code, cpl, refused)?;
    let allowed = !(fred(machine) && cpl == 0 && !code.l);
    expect(machine, Rule::AllowedByFred, allowed, refused)?;
    is_present(machine, Role::Cs, found, Exception::NOT_PRESENT, 0)?;
    let stack = if is_call { Some(room_for_return(machine, None, size, cpl)?) } else { None };
    let offset =
        size.cut(if machine.width() == Width::Long && code.l { offset } else { offset & 0xffff_ffff });
    let outside = fault(machine, Exception::GENERAL_PROTECTION, Some(0));
    is_reachable(machine, code, offset, outside)?;
    finish(machine, found, stack, size, offset, cpl, Origin::Operand)
}

/// The stack that the machine is on, with room for CS and RIP.
fn room_for_return<M: Machine + ?Sized>(
    machine: &mut M,
    stack: Option<Stack>,
    size: Size,
    cpl: u8,
) -> Walked<Stack> {
    let stack = match stack {
        Some(stack) => stack,
        None => Stack::current(machine, cpl)?,
    };
    let full = fault(machine, Exception::STACK, Some(0));
    stack.has_room(machine, 2, size, full)?;
    Ok(stack)
}

/// Pushes the return address, if there is a stack to push it onto, and goes on in the code segment at level `cpl`.
fn finish<M: Machine + ?Sized>(
    machine: &mut M,
    code: &Found,
    stack: Option<Stack>,
    size: Size,
    offset: u64,
    cpl: u8,
    origin: Origin,
) -> Walked<()> {
    let stack = match stack {
        Some(mut stack) => {
            push_return(machine, &mut stack, size)?;
            Some(stack)
        }
        None => None,
    };
    let descriptor = access(machine, code)?;
    if let Some(stack) = stack {
        stack.store(machine, Origin::Pushes);
    }
    enter_code(machine, code.selector.with_rpl(cpl), descriptor, offset, origin);
    Ok(())
}

fn push_return<M: Machine + ?Sized>(machine: &mut M, stack: &mut Stack, size: Size) -> Walked<()> {
    let cs = selector_in(machine, SegmentRegister::Cs);
    stack.push(machine, Item::Cs, cs, size)?;
    let next = machine.register(Register::Rip);
    stack.push(machine, Item::Rip, next, size)
}

fn selector_in<M: Machine + ?Sized>(machine: &M, register: SegmentRegister) -> Option<u64> {
    machine.segment(register).selector.map(|selector| u64::from(selector.0))
}

fn through_gate<M: Machine + ?Sized>(machine: &mut M, found: &Found, cpl: u8, is_call: bool) -> Walked<()> {
    let refused = Blame::protection(0).on(machine, found.selector);
    expect(machine, Rule::WithoutFred("call gates"), !fred(machine), refused)?;
    let door = read_door(machine, found)?;
    is_open(machine, found, cpl)?;
    expect(machine, Rule::GatePresent, found.descriptor.p, not_present(machine, found.selector))?;
    let code = code_behind_gate(machine, door.selector, cpl, 0, !is_call)?;
    let ring = new_ring(machine, cpl, &code);
    if ring < cpl {
        return inwards(machine, &door, &code, cpl, ring);
    }
    let stack = if is_call {
        let flat = match (machine.width(), machine.register(Register::Rsp)) {
            (Width::Long, Some(pointer)) => Some(Stack::flat(pointer, cpl)),
            _ => None,
        };
        Some(room_for_return(machine, flat, door.slot, cpl)?)
    } else {
        None
    };
    let outside = fault(machine, Exception::GENERAL_PROTECTION, Some(0));
    is_reachable(machine, &code.descriptor, door.offset, outside)?;
    finish(machine, &code, stack, door.slot, door.offset, cpl, Origin::Gate)
}

/// A gate is open to code at its level or an inner one, with a selector that asks for no less.
fn is_open<M: Machine + ?Sized>(machine: &mut M, found: &Found, cpl: u8) -> Walked<()> {
    let (dpl, rpl) = (found.descriptor.dpl, found.selector.rpl());
    let refused = Blame::protection(0).on(machine, found.selector);
    check(machine, Rule::Open { dpl, cpl, rpl: Some(rpl) }, dpl >= cpl && dpl >= rpl, refused)
}

/// Reads the rest of a gate, whose second half long mode finds behind the first.
fn read_door<M: Machine + ?Sized>(machine: &mut M, found: &Found) -> Walked<Door> {
    let selector = found.selector;
    let low = found.descriptor.encode();
    let gate = Gate::decode(low);
    let width = machine.width();
    let door = match width {
        Width::Legacy => {
            let is_16_bit = found.descriptor.kind() == Kind::System(SystemKind::CallGate16);
            let (slot, mask) = if is_16_bit { (Size::Word, 0xffff) } else { (Size::Double, u32::MAX) };
            let offset = u64::from(gate.offset & mask);
            Door { selector: gate.selector, offset, slot, parameters: gate.parameters() }
        }
        Width::Long => {
            let high = upper_half(machine, selector)?;
            let wide = WideGate::decode(
                (u128::from(u64::from_le_bytes(low)) | u128::from(high) << 64).to_le_bytes(),
            );
            let refused = Blame::protection(0).on(machine, selector);
            expect(machine, Rule::WellFormed, wide.is_well_formed(), refused)?;
            Door { selector: gate.selector, offset: wide.offset(), slot: Size::Quad, parameters: 0 }
        }
    };
    machine.step(&Step::Gate {
        kind: GateKind::Call,
        slot: door.slot,
        present: gate.p,
        dpl: gate.dpl,
        selector: door.selector,
        offset: Number::new(Some(door.offset), address_bytes(width)),
        stack: 0,
        parameters: door.parameters,
    });
    Ok(door)
}

/// The second 8 bytes of a descriptor of 16.
fn upper_half<M: Machine + ?Sized>(machine: &mut M, selector: Selector) -> Walked<u64> {
    let directory = match selector.table() {
        Table::Gdt => Directory::Gdt,
        Table::Ldt => Directory::Ldt,
    };
    let refused = Blame::protection(0).on(machine, selector);
    let last = u32::from(selector.offset()) + 15;
    if bounds(machine, directory).1.is_some_and(|limit| limit < last) {
        look_up(machine, directory, selector.index(), 8, 16, refused)?;
    }
    let Some(offset) = selector.offset().checked_add(8) else {
        return Err(refused);
    };
    match machine.descriptor(selector.table(), offset) {
        Ok(raw) => Ok(raw),
        Err(miss) => Err(missed(machine, miss, Unknown::Descriptor(selector))),
    }
}

/// To a more privileged level: its stack comes from the TSS, and outside long mode takes the parameters along.
fn inwards<M: Machine + ?Sized>(machine: &mut M, door: &Door, code: &Found, cpl: u8, ring: u8) -> Walked<()> {
    let (mut stack, found) = match machine.width() {
        Width::Legacy => {
            let (found, pointer) = legacy_stack(machine, ring, 0)?;
            let hidden = Hidden { base: u64::from(found.descriptor.base), descriptor: found.descriptor };
            (Stack::segmented(hidden, pointer, ring), Some(found))
        }
        Width::Long => (Stack::flat(long_pointer(machine, ring, 0, 0)?, ring), None),
    };
    let named = found.map_or(0, |found| u32::from(found.selector.0 & !0b11));
    let full = fault(machine, Exception::STACK, Some(named));
    stack.has_room(machine, 4 + u16::from(door.parameters), door.slot, full)?;
    let outside = fault(machine, Exception::GENERAL_PROTECTION, Some(0));
    is_reachable(machine, &code.descriptor, door.offset, outside)?;
    push_call(machine, &mut stack, door, cpl)?;
    let descriptor = access(machine, code)?;
    let segment = match &found {
        Some(found) => Segment::of(found.selector, access(machine, found)?),
        None => Segment::null(Selector(0).with_rpl(ring)),
    };
    let selector = segment.selector.unwrap_or_default();
    machine.set_segment(SegmentRegister::Ss, segment);
    machine.step(&match found {
        Some(_) => Step::LoadSegment { register: SegmentRegister::Ss, selector, origin: Origin::TaskState },
        None => Step::NullStack { selector },
    });
    stack.store(machine, Origin::Pushes);
    enter_code(machine, code.selector.with_rpl(ring), descriptor, door.offset, Origin::Gate);
    Ok(())
}

/// Pushes the old stack, the parameters in the order that they lie in, and the return address.
fn push_call<M: Machine + ?Sized>(machine: &mut M, stack: &mut Stack, door: &Door, cpl: u8) -> Walked<()> {
    let mut parameters = [0; MOST];
    let count = usize::from(door.parameters).min(MOST);
    if count > 0 {
        let old = Stack::current(machine, cpl)?;
        let short = fault(machine, Exception::STACK, Some(0));
        old.holds(machine, 0, count as u16, door.slot, short)?;
        for (index, parameter) in parameters.iter_mut().take(count).enumerate() {
            let distance = index as u16 * u16::from(door.slot.bytes());
            *parameter = old.peek(machine, Item::Parameter(index as u8), distance, door.slot)?;
        }
    }
    let ss = selector_in(machine, SegmentRegister::Ss);
    stack.push(machine, Item::Ss, ss, door.slot)?;
    let pointer = machine.register(Register::Rsp);
    stack.push(machine, Item::Rsp, pointer, door.slot)?;
    for (index, parameter) in parameters.iter().take(count).enumerate().rev() {
        stack.push(machine, Item::Parameter(index as u8), Some(*parameter), door.slot)?;
    }
    push_return(machine, stack, door.slot)
}
