//! Far returns, and the parts that IRET shares with them. SDM 2B, RET, operation.

use crate::{Descriptor, DescriptorKind, Selector, Width};

use super::gate::NewStack;
use super::interrupt::enter_code;
use super::machine::Machine;
use super::number::Number;
use super::outcome::{Exception, Unknown};
use super::reading::{
    Blame, FoundDescriptor, GP0, SS0, access, expect, find, has_code_level, has_one_width, is_code,
    is_present, is_reachable, level, stack_segment,
};
use super::registers::{Hidden, Mode, Register, Segment, SegmentRegister};
use super::rule::{Role, Rule};
use super::stack::{Stack, pointer_mask};
use super::step::{Item, Origin, Step};
use super::{Size, Walked, fred};

pub(super) fn leave(machine: &mut impl Machine, size: Size, release: u16) -> Walked<()> {
    let cpl = level(machine)?;
    let mut stack = Stack::current(machine, cpl)?;
    let slot = u16::from(size.bytes());
    let short = SS0;
    stack.holds(machine, 0, 2, size, short)?;
    let offset = stack.peek(machine, Item::Rip, 0, size)?;
    let selector = Selector(stack.peek(machine, Item::Cs, slot, size)? as u16);
    let code = return_code(machine, selector, cpl)?;
    let outside = GP0;
    if selector.rpl() == cpl {
        is_reachable(machine, &code.descriptor, offset, outside)?;
        let descriptor = access(machine, &code)?;
        stack.release(2 * u64::from(slot));
        if release > 0 {
            stack.release(u64::from(release));
            machine.step(&Step::Release { bytes: release, to: stack.pointer() });
        }
        stack.store(machine, Origin::Stack);
        enter_code(machine, selector, descriptor, offset, Origin::Stack);
        return Ok(());
    }
    let skip = release.saturating_add(2 * slot);
    stack.holds(machine, skip, 2, size, short)?;
    let pointer = stack.peek(machine, Item::Rsp, skip, size)?;
    let ss = Selector(stack.peek(machine, Item::Ss, skip.saturating_add(slot), size)? as u16);
    let new = return_stack(machine, ss, &code, selector.rpl())?;
    is_reachable(machine, &code.descriptor, offset, outside)?;
    let (code, segment) = (access(machine, &code)?, new.segment(machine)?);
    if release > 0 {
        let to = Number::new(Some(size.cut(pointer.wrapping_add(u64::from(release)))), size.bytes());
        machine.step(&Step::Release { bytes: release, to });
    }
    let pointer = pointer.wrapping_add(u64::from(release));
    enter_code(machine, selector, code, offset, Origin::Stack);
    load_stack(machine, segment, size.cut(pointer));
    clear_data(machine, selector.rpl());
    Ok(())
}

/// Checks the code segment of a return: at its selector's level, which must be the current one or an outer one.
pub(super) fn return_code(
    machine: &mut impl Machine,
    selector: Selector,
    cpl: u8,
) -> Walked<FoundDescriptor> {
    expect(machine, Rule::NotNull(Role::Cs), !selector.is_null(), GP0)?;
    let blame = Blame::protection(0);
    let found = find(machine, Role::Cs, selector, blame)?;
    let refused = blame.on(selector);
    is_code(machine, &found, refused)?;
    has_one_width(machine, &found.descriptor, refused)?;
    let rpl = selector.rpl();
    super::reading::check(machine, Rule::NotInward { rpl, cpl }, rpl >= cpl, refused)?;
    let allowed = !(fred(machine) && (rpl > cpl || cpl == 0 && !found.descriptor.l));
    expect(machine, Rule::AllowedByFred, allowed, refused)?;
    has_code_level(machine, &found.descriptor, rpl, refused)?;
    is_present(machine, Role::Cs, &found, Exception::NOT_PRESENT, 0)?;
    Ok(found)
}

/// Checks the stack segment of a return. Only 64-bit code at levels 0 to 2 may have a null one.
pub(super) fn return_stack(
    machine: &mut impl Machine,
    selector: Selector,
    code: &FoundDescriptor,
    ring: u8,
) -> Walked<NewStack> {
    if !selector.is_null() {
        return stack_segment(machine, selector, ring, Blame::protection(0)).map(NewStack::Found);
    }
    let is_64_bit = machine.width() == Width::Long && code.descriptor.l;
    let allowed = is_64_bit && ring != 3 && selector.rpl() == ring;
    expect(machine, Rule::NullStack, allowed, GP0)?;
    Ok(NewStack::Null(selector))
}

/// Loads SS and the stack pointer, after CS. Outside 64-bit mode the segment decides how many bits change: a 16-bit stack
/// keeps the upper ones.
pub(super) fn load_stack(machine: &mut impl Machine, segment: Segment, pointer: u64) {
    let selector = segment.selector.unwrap_or_default();
    machine.set_segment(SegmentRegister::Ss, segment);
    let register = SegmentRegister::Ss;
    machine.step(&Step::LoadSegment { register, selector, origin: Origin::Stack });
    let mask = segment.hidden.map_or(u64::MAX, |hidden| pointer_mask(&hidden.descriptor));
    let (value, bytes) = match machine.mode() {
        Some(Mode::Long64) => (Some(pointer), 8),
        _ if mask == 0xffff => {
            (machine.register(Register::Rsp).map(|old| old & 0xffff_0000 | pointer & mask), 4)
        }
        _ => (Some(pointer & 0xffff_ffff), 4),
    };
    machine.set_register(Register::Rsp, value);
    machine.step(&Step::Load { item: Item::Rsp, value: Number::new(value, bytes), origin: Origin::Stack });
}

/// Nulls DS, ES, FS and GS if their segments are more privileged than the new level. The bases of FS and GS stay.
pub(super) fn clear_data(machine: &mut impl Machine, cpl: u8) {
    let mut missing = None;
    for register in [SegmentRegister::Ds, SegmentRegister::Es, SegmentRegister::Fs, SegmentRegister::Gs] {
        let segment = machine.segment(register);
        let Some(hidden) = segment.hidden else {
            missing = missing.or(Some(Unknown::Hidden(register)));
            continue;
        };
        let descriptor = hidden.descriptor;
        let depends = !matches!(
            descriptor.kind(),
            DescriptorKind::Code { conforming: true, .. } | DescriptorKind::System(_)
        );
        if descriptor.p && depends && descriptor.dpl < cpl {
            let hidden = Hidden { base: hidden.base, descriptor: Descriptor::default() };
            machine.set_segment(register, Segment { selector: Some(Selector(0)), hidden: Some(hidden) });
            let selector = segment.selector.unwrap_or_default();
            machine.step(&Step::Cleared { register, selector, dpl: descriptor.dpl, cpl });
        }
    }
    if let Some(missing) = missing {
        machine.step(&Step::Unchecked { whether: "DS, ES, FS and GS are open to the new level", missing });
    }
}
