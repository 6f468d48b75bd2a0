//! Task switches, outside long mode: the checks before the registers are exchanged. The exchange itself is not modelled.
//! SDM 3A, "Task switching".

use crate::{Descriptor, DescriptorKind, Selector, SystemKind, Table};

use super::Walked;
use super::event::Event;
use super::machine::Machine;
use super::number::Number;
use super::outcome::{Exception, NotModelled, Outcome, Unknown};
use super::reading::{Blame, expect, find, is_present, missed};
use super::registers::SegmentRegister;
use super::rule::{Role, Rule};
use super::step::Step;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// An event through a task gate.
    Event(Event),
    Call,
    Jump,
    /// IRET with NT set.
    Return,
}

impl By {
    const fn external(self) -> u32 {
        match self {
            Self::Event(event) => event.external(),
            _ => 0,
        }
    }

    const fn nests(self) -> bool {
        matches!(self, Self::Event(_) | Self::Call)
    }
}

pub(super) fn switch(machine: &mut impl Machine, selector: Selector, by: By) -> Walked<()> {
    // A return finds its TSS through the link, so an error in it is the current TSS's fault.
    let blame = match by {
        By::Return => Blame::task(0),
        _ => Blame::protection(by.external()),
    };
    let refused = blame.on(selector);
    expect(machine, Rule::InGdt, selector.table() == Table::Gdt, refused)?;
    let found = find(machine, Role::Task, selector, blame)?;
    let wants_busy = by == By::Return;
    let rule = Rule::IsTask { kind: found.descriptor.kind, busy: wants_busy };
    expect(machine, rule, is_task(&found.descriptor, wants_busy), refused)?;
    is_present(machine, Role::Task, &found, Exception::NOT_PRESENT, by.external())?;
    let last = if has_32_bits(&found.descriptor) { 0x67 } else { 0x2b };
    let limit = found.descriptor.effective_limit();
    expect(
        machine,
        Rule::TaskLimit { last, limit },
        limit >= u32::from(last),
        Blame::task(by.external()).on(selector),
    )?;
    let tr = machine.segment(SegmentRegister::Tr);
    machine.step(&Step::TaskSave {
        tr: tr.selector,
        base: Number::new(tr.hidden.map(|hidden| hidden.base), 4),
        stays_busy: by.nests(),
    });
    let base = Number::new(Some(u64::from(found.descriptor.base)), 4);
    machine.step(&Step::TaskLoad { selector, base, nests: by.nests() });
    Err(Outcome::NotModelled(NotModelled::TaskSwitch))
}

/// Switches back to the task in the link of the current TSS: IRET with NT set.
pub(super) fn switch_back(machine: &mut impl Machine) -> Walked<()> {
    let link = match machine.task_state(0, 2) {
        Ok(link) => Selector(link as u16),
        Err(miss) => return Err(missed(machine, miss, Unknown::TaskState { offset: 0, size: 2 })),
    };
    expect(machine, Rule::NotNull(Role::Task), !link.is_null(), (Exception::INVALID_TSS, Some(0)))?;
    switch(machine, link, By::Return)
}

fn is_task(descriptor: &Descriptor, wants_busy: bool) -> bool {
    match descriptor.kind() {
        DescriptorKind::System(SystemKind::Tss { busy } | SystemKind::Tss16 { busy }) => busy == wants_busy,
        _ => false,
    }
}

fn has_32_bits(descriptor: &Descriptor) -> bool {
    matches!(descriptor.kind(), DescriptorKind::System(SystemKind::Tss { .. }))
}
