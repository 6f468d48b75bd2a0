use crate::Selector;

use super::Walked;
use super::machine::Machine;
use super::number::Number;
use super::outcome::{Exception, Unknown};
use super::reading::{Blame, FoundDescriptor, expect, has_tss16, missed, stack_segment};
use super::registers::SegmentRegister;
use super::rule::{Role, Rule};
use super::step::Step;

/// Reads SS and ESP of a ring from the TSS, and finds the segment. SDM 3A, "Stack switching".
pub(super) fn legacy_stack(
    machine: &mut impl Machine,
    ring: u8,
    external: u32,
) -> Walked<(FoundDescriptor, u64)> {
    let (pointer_at, ss_at, size) = if has_tss16(machine) {
        (u16::from(ring) * 4 + 2, u16::from(ring) * 4 + 4, 2)
    } else {
        (u16::from(ring) * 8 + 4, u16::from(ring) * 8 + 8, 4)
    };
    has_field(machine, ss_at + 1, external)?;
    let pointer = task_field(machine, pointer_at, size)?;
    let ss = Selector(task_field(machine, ss_at, 2)? as u16);
    let base = machine.segment(SegmentRegister::Tr).hidden.map(|hidden| hidden.base);
    let address =
        |offset| Number::new(base.map(|base| base.wrapping_add(u64::from(offset)) & 0xffff_ffff), 4);
    machine.step(&Step::TaskStack {
        ring,
        stack: 0,
        ss: Some((ss, address(ss_at))),
        pointer: Number::new(Some(pointer), size),
        address: address(pointer_at),
        tr: machine.segment(SegmentRegister::Tr).selector,
    });
    expect(machine, Rule::NotNull(Role::Ss), !ss.is_null(), (Exception::INVALID_TSS, Some(external)))?;
    Ok((stack_segment(machine, ss, ring, Blame::task(external))?, pointer))
}

/// Reads RSP of a ring, or a stack of the interrupt stack table, from the TSS. SDM 3A, "Stack switching in IA-32e mode".
pub(super) fn long_pointer(machine: &mut impl Machine, ring: u8, ist: u8, external: u32) -> Walked<u64> {
    let offset = if ist == 0 { u16::from(ring) * 8 + 4 } else { u16::from(ist) * 8 + 28 };
    has_field(machine, offset + 7, external)?;
    let pointer = task_field(machine, offset, 8)?;
    let tr = machine.segment(SegmentRegister::Tr);
    let address = tr.hidden.map(|hidden| hidden.base.wrapping_add(u64::from(offset)));
    machine.step(&Step::TaskStack {
        ring,
        stack: ist,
        ss: None,
        pointer: Number::new(Some(pointer), 8),
        address: Number::new(address, 8),
        tr: tr.selector,
    });
    Ok(pointer)
}

fn has_field(machine: &mut impl Machine, last: u16, external: u32) -> Walked<()> {
    let tr = machine.segment(SegmentRegister::Tr);
    let Some(hidden) = tr.hidden else {
        let missing = Unknown::Hidden(SegmentRegister::Tr);
        machine.step(&Step::Unchecked { whether: "the TSS has the stack's field", missing });
        return Ok(());
    };
    let limit = hidden.descriptor.effective_limit();
    let code = u32::from(tr.selector.unwrap_or_default().0 & !0b11) | external;
    expect(
        machine,
        Rule::TaskLimit { last, limit },
        u32::from(last) <= limit,
        (Exception::INVALID_TSS, Some(code)),
    )
}

fn task_field(machine: &mut impl Machine, offset: u16, size: u8) -> Walked<u64> {
    machine
        .task_state(offset, size)
        .map_err(|miss| missed(machine, miss, Unknown::TaskState { offset, size }))
}
