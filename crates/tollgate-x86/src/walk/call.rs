//! Far calls and jumps: to code, and through call gates. SDM 2A, CALL and JMP, operation; APM 2, "Control-transfer
//! privilege checks".

use crate::{Descriptor, DescriptorKind, Gate, GateKind, Selector, SystemKind, WideGate, Width};

use super::gate::{Door, NewStack};
use super::interrupt::{enter_code, new_ring};
use super::machine::Machine;
use super::outcome::{Exception, Unknown};
use super::reading::{
    Blame, FoundDescriptor, GP0, Refusal, SS0, access, bounds, check, code_behind_gate, expect, fault, find,
    has_code_level, has_one_width, is_conforming, is_present, is_reachable, level, look_up, missed,
    selector_code,
};
use super::registers::{Directory, Register};
use super::rule::{Role, Rule};
use super::stack::Stack;
use super::step::{Item, Origin};
use super::{Size, Walked, fred, task};

/// The most parameters that a gate copies: its count has 5 bits.
const MOST: usize = 31;

pub(super) fn far(
    machine: &mut impl Machine,
    selector: Selector,
    offset: u64,
    size: Size,
    is_call: bool,
) -> Walked<()> {
    let cpl = level(machine)?;
    expect(machine, Rule::NotNull(Role::Target), !selector.is_null(), GP0)?;
    let found = find(machine, Role::Target, selector, Blame::protection(0))?;
    let legacy = machine.width() == Width::Legacy;
    match found.descriptor.kind() {
        DescriptorKind::Code { .. } => direct(machine, &found, offset, size, cpl, is_call),
        DescriptorKind::System(SystemKind::CallGate) => through_gate(machine, &found, cpl, is_call),
        DescriptorKind::System(SystemKind::CallGate16) if legacy => {
            through_gate(machine, &found, cpl, is_call)
        }
        DescriptorKind::System(SystemKind::TaskGate) if legacy => {
            let gate = Gate::decode(found.descriptor.encode());
            is_open(machine, &found, cpl)?;
            expect(machine, Rule::GatePresent, gate.p, not_present(selector))?;
            task::switch(machine, gate.selector, by(is_call))
        }
        DescriptorKind::System(SystemKind::Tss { busy: false } | SystemKind::Tss16 { busy: false })
            if legacy =>
        {
            is_open(machine, &found, cpl)?;
            task::switch(machine, selector, by(is_call))
        }
        _ => {
            let Descriptor { s, kind, .. } = found.descriptor;
            let width = machine.width();
            check(machine, Rule::GateKind { s, kind, width }, false, Blame::protection(0).on(selector))
        }
    }
}

const fn by(is_call: bool) -> task::By {
    if is_call { task::By::Call } else { task::By::Jump }
}

const fn not_present(selector: Selector) -> Refusal {
    (Exception::NOT_PRESENT, selector_code(selector, 0))
}

fn direct(
    machine: &mut impl Machine,
    found: &FoundDescriptor,
    offset: u64,
    size: Size,
    cpl: u8,
    is_call: bool,
) -> Walked<()> {
    let code = &found.descriptor;
    let refused = Blame::protection(0).on(found.selector);
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
    is_reachable(machine, code, offset, GP0)?;
    finish(machine, found, stack, size, offset, cpl, Origin::Operand)
}

fn room_for_return(machine: &mut impl Machine, stack: Option<Stack>, size: Size, cpl: u8) -> Walked<Stack> {
    let stack = stack.map_or_else(|| Stack::current(machine, cpl), Ok)?;
    stack.has_room(machine, 2, size, SS0)?;
    Ok(stack)
}

/// Pushes the return address if there is a stack, and continues in the code segment at level `cpl`.
fn finish(
    machine: &mut impl Machine,
    code: &FoundDescriptor,
    mut stack: Option<Stack>,
    size: Size,
    offset: u64,
    cpl: u8,
    origin: Origin,
) -> Walked<()> {
    if let Some(stack) = &mut stack {
        stack.save(machine, Item::Cs, size)?;
        stack.save(machine, Item::Rip, size)?;
    }
    let descriptor = access(machine, code)?;
    if let Some(stack) = stack {
        stack.store(machine, Origin::Pushes);
    }
    enter_code(machine, code.selector.with_rpl(cpl), descriptor, offset, origin);
    Ok(())
}

fn through_gate(machine: &mut impl Machine, found: &FoundDescriptor, cpl: u8, is_call: bool) -> Walked<()> {
    expect(
        machine,
        Rule::WithoutFred("call gates"),
        !fred(machine),
        Blame::protection(0).on(found.selector),
    )?;
    let door = read_door(machine, found)?;
    is_open(machine, found, cpl)?;
    expect(machine, Rule::GatePresent, found.descriptor.p, not_present(found.selector))?;
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
    is_reachable(machine, &code.descriptor, door.offset, GP0)?;
    finish(machine, &code, stack, door.slot, door.offset, cpl, Origin::Gate)
}

fn is_open(machine: &mut impl Machine, found: &FoundDescriptor, cpl: u8) -> Walked<()> {
    let (dpl, rpl) = (found.descriptor.dpl, found.selector.rpl());
    check(
        machine,
        Rule::Open { dpl, cpl, rpl: Some(rpl) },
        dpl >= cpl && dpl >= rpl,
        Blame::protection(0).on(found.selector),
    )
}

fn read_door(machine: &mut impl Machine, found: &FoundDescriptor) -> Walked<Door> {
    let low = u64::from_le_bytes(found.descriptor.encode());
    let mut high = 0;
    if machine.width() == Width::Long {
        high = upper_half(machine, found.selector)?;
        let wide = WideGate::decode((u128::from(low) | u128::from(high) << 64).to_le_bytes());
        let refused = Blame::protection(0).on(found.selector);
        expect(machine, Rule::WellFormed, wide.is_well_formed(), refused)?;
    }
    let is_16_bit = found.descriptor.kind() == DescriptorKind::System(SystemKind::CallGate16);
    Ok(Door::read(machine, GateKind::Call, is_16_bit, low, high))
}

fn upper_half(machine: &mut impl Machine, selector: Selector) -> Walked<u64> {
    let directory = Directory::from(selector.table());
    let refused = Blame::protection(0).on(selector);
    let last = u32::from(selector.offset()) + 15;
    if bounds(machine, directory).limit.is_some_and(|limit| limit < last) {
        look_up(machine, directory, selector.index(), 8, 16, refused)?;
    }
    let Some(offset) = selector.offset().checked_add(8) else {
        return Err(fault(machine, refused));
    };
    machine
        .descriptor(selector.table(), offset)
        .map_err(|miss| missed(machine, miss, Unknown::Descriptor(selector)))
}

/// Enters a more privileged level: its stack comes from the TSS, and outside long mode parameters are copied to it.
fn inwards(machine: &mut impl Machine, door: &Door, code: &FoundDescriptor, cpl: u8, ring: u8) -> Walked<()> {
    let (mut stack, new) = NewStack::find(machine, ring, 0, 0)?;
    let full = (Exception::STACK, Some(new.code()));
    stack.has_room(machine, 4 + u16::from(door.parameters), door.slot, full)?;
    is_reachable(machine, &code.descriptor, door.offset, GP0)?;
    push_call(machine, &mut stack, door, cpl)?;
    let descriptor = access(machine, code)?;
    let segment = new.segment(machine)?;
    new.load(machine, segment);
    stack.store(machine, Origin::Pushes);
    enter_code(machine, code.selector.with_rpl(ring), descriptor, door.offset, Origin::Gate);
    Ok(())
}

fn push_call(machine: &mut impl Machine, stack: &mut Stack, door: &Door, cpl: u8) -> Walked<()> {
    let mut parameters = [0; MOST];
    let count = usize::from(door.parameters).min(MOST);
    if count > 0 {
        let old = Stack::current(machine, cpl)?;
        old.holds(machine, 0, count as u16, door.slot, SS0)?;
        for (index, parameter) in parameters.iter_mut().take(count).enumerate() {
            let distance = index as u16 * u16::from(door.slot.bytes());
            *parameter = old.peek(machine, Item::Parameter(index as u8), distance, door.slot)?;
        }
    }
    stack.save(machine, Item::Ss, door.slot)?;
    stack.save(machine, Item::Rsp, door.slot)?;
    for (index, parameter) in parameters.iter().take(count).enumerate().rev() {
        stack.push(machine, Item::Parameter(index as u8), Some(*parameter), door.slot)?;
    }
    stack.save(machine, Item::Cs, door.slot)?;
    stack.save(machine, Item::Rip, door.slot)
}
