//! IRET, IRETD and IRETQ. SDM 2A, IRET, operation; SDM 3A, "IRET in IA-32e mode".

use crate::{Rflags, Selector, Width};

use super::flags::{self, popped_by_iret};
use super::interrupt::enter_code;
use super::machine::Machine;
use super::outcome::{NotModelled, Outcome, Unknown};
use super::reading::{GP0, SS0, access, address_bytes, expect, is_reachable, level, unchecked};
use super::registers::{Mode, Register};
use super::return_far::{clear_data, load_stack, return_code, return_stack};
use super::rule::Rule;
use super::stack::Stack;
use super::step::{FlagsBy, Item, Origin};
use super::{Size, Walked, task};

pub(super) fn leave(machine: &mut impl Machine, size: Size) -> Walked<()> {
    let before = machine.register(Register::Rflags).map(Rflags);
    match before {
        None => unchecked(machine, "NT is clear", Unknown::Register(Register::Rflags))?,
        Some(flags) if flags.has(Rflags::NT) => {
            if machine.width() == Width::Legacy {
                return task::switch_back(machine);
            }
            expect(machine, Rule::NotNested, false, GP0)?;
        }
        Some(_) => {}
    }
    let cpl = level(machine)?;
    let mut stack = Stack::current(machine, cpl)?;
    let slot = u16::from(size.bytes());
    let short = SS0;
    stack.holds(machine, 0, 3, size, short)?;
    let offset = stack.peek(machine, Item::Rip, 0, size)?;
    let selector = Selector(stack.peek(machine, Item::Cs, slot, size)? as u16);
    let image = stack.peek(machine, Item::Rflags, 2 * slot, size)?;
    if machine.width() == Width::Legacy && Rflags(image).has(Rflags::VM) && cpl == 0 {
        return Err(Outcome::NotModelled(NotModelled::Virtual8086));
    }
    let code = return_code(machine, selector, cpl)?;
    let ring = selector.rpl();
    let change = FlagsBy::Popped(popped_by_iret(cpl, before.map_or(0, Rflags::iopl), size != Size::Word));
    // At outer levels IOPL decides whether IF changes.
    let image = if before.is_none() && cpl != 0 { None } else { Some(image) };
    let bytes = address_bytes(machine.width());
    let outside = GP0;
    if ring == cpl && machine.mode() != Some(Mode::Long64) {
        is_reachable(machine, &code.descriptor, offset, outside)?;
        let descriptor = access(machine, &code)?;
        stack.release(3 * u64::from(slot));
        stack.store(machine, Origin::Stack);
        flags::change(machine, change, image, bytes);
        enter_code(machine, selector, descriptor, offset, Origin::Stack);
        return Ok(());
    }
    // 64-bit mode pops SS and RSP at every level.
    stack.holds(machine, 3 * slot, 2, size, short)?;
    let pointer = stack.peek(machine, Item::Rsp, 3 * slot, size)?;
    let ss = Selector(stack.peek(machine, Item::Ss, 4 * slot, size)? as u16);
    let new = return_stack(machine, ss, &code, ring)?;
    is_reachable(machine, &code.descriptor, offset, outside)?;
    let (descriptor, segment) = (access(machine, &code)?, new.segment(machine)?);
    flags::change(machine, change, image, bytes);
    enter_code(machine, selector, descriptor, offset, Origin::Stack);
    load_stack(machine, segment, pointer);
    if ring != cpl {
        clear_data(machine, ring);
    }
    Ok(())
}
