//! Reading and checking descriptors and gates, as in every crossing through the tables.

use crate::{Descriptor, Kind, Selector, SystemKind, Table, Width};

use super::machine::{Directory, Machine, Miss, SegmentRegister, TableRegister};
use super::number::Number;
use super::outcome::{Exception, Fault, Outcome, Unknown};
use super::rule::{Role, Rule};
use super::step::Step;
use super::{Walked, cr4_has};

/// A fault at the current level, before anything was changed.
pub(super) fn fault<M: Machine + ?Sized>(machine: &M, exception: Exception, code: Option<u32>) -> Outcome {
    Outcome::Fault(Fault { exception, code, address: None, level: machine.cpl(), crossed: false })
}

/// #UD.
pub(super) fn invalid_opcode<M: Machine + ?Sized>(machine: &M) -> Outcome {
    fault(machine, Exception::INVALID_OPCODE, None)
}

/// The outcome of memory that could not be read or written.
pub(super) fn missed<M: Machine + ?Sized>(machine: &M, miss: Miss, unknown: Unknown) -> Outcome {
    match miss {
        Miss::Unknown => Outcome::Unknown(unknown),
        Miss::PageFault { address, code } => Outcome::Fault(Fault {
            exception: Exception::PAGE_FAULT,
            code: Some(code),
            address: Some(address),
            level: machine.cpl(),
            crossed: false,
        }),
    }
}

/// Checks a condition that is shown even where it holds.
pub(super) fn check<M: Machine + ?Sized>(
    machine: &mut M,
    rule: Rule,
    holds: bool,
    otherwise: Outcome,
) -> Walked<()> {
    machine.step(&Step::Check { rule, holds });
    if holds { Ok(()) } else { Err(otherwise) }
}

/// Checks a condition that is shown only where it does not hold.
pub(super) fn expect<M: Machine + ?Sized>(
    machine: &mut M,
    rule: Rule,
    holds: bool,
    otherwise: Outcome,
) -> Walked<()> {
    if holds { Ok(()) } else { check(machine, rule, false, otherwise) }
}

/// The current privilege level.
pub(super) fn level<M: Machine + ?Sized>(machine: &M) -> Walked<u8> {
    machine.cpl().ok_or(Outcome::Unknown(Unknown::Level))
}

/// Whether an address is canonical: its upper bits are copies of the highest that is translated. SDM 1,
/// "Canonical addressing". That some upper bits of data addresses may be ignored (LAM, EFER.UAIE) is left out: of targets
/// they never are.
pub(super) fn is_canonical<M: Machine + ?Sized>(machine: &M, address: u64) -> bool {
    let bits = if cr4_has(machine, crate::Cr4::LA57) { 57 } else { 48 };
    let unused = 64 - bits;
    ((address << unused) as i64 >> unused) as u64 == address
}

/// The width of an address in the tables, in bytes.
pub(super) const fn address_bytes(width: Width) -> u8 {
    match width {
        Width::Legacy => 4,
        Width::Long => 8,
    }
}

/// The part of an error code that names a selector. SDM 3A, "Error code".
pub(super) const fn selector_code(selector: Selector, external: u32) -> Option<u32> {
    Some((selector.0 & !0b11) as u32 | external)
}

/// How a descriptor was found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) selector: Selector,
    pub(super) descriptor: Descriptor,
}

/// The exception of a selector that points nowhere or at the wrong descriptor, and the EXT bit of its error code.
#[derive(Clone, Copy)]
pub(super) struct Blame {
    pub(super) exception: Exception,
    pub(super) external: u32,
}

impl Blame {
    /// #GP, as for all but the stacks that a TSS names.
    pub(super) const fn protection(external: u32) -> Self {
        Self { exception: Exception::GENERAL_PROTECTION, external }
    }

    /// #TS, for the stacks that a TSS names.
    pub(super) const fn task(external: u32) -> Self {
        Self { exception: Exception::INVALID_TSS, external }
    }

    pub(super) fn on<M: Machine + ?Sized>(self, machine: &M, selector: Selector) -> Outcome {
        fault(machine, self.exception, selector_code(selector, self.external))
    }
}

/// Where the entries of a table are, and whether the one that ends at `last` is within the limit.
pub(super) fn bounds<M: Machine + ?Sized>(machine: &M, directory: Directory) -> (Option<u64>, Option<u32>) {
    match directory {
        Directory::Gdt => {
            let table = machine.table(TableRegister::Gdtr);
            (table.base, table.limit)
        }
        Directory::Idt => {
            let table = machine.table(TableRegister::Idtr);
            (table.base, table.limit)
        }
        Directory::Ldt => match machine.segment(SegmentRegister::Ldtr).hidden {
            Some(hidden) if hidden.descriptor.p => {
                (Some(hidden.base), Some(hidden.descriptor.effective_limit()))
            }
            // A null LDT has no entries, which no limit says: the check is the caller's.
            _ => (None, None),
        },
    }
}

/// Whether the LDT is known to be null.
fn has_no_ldt<M: Machine + ?Sized>(machine: &M) -> bool {
    machine.segment(SegmentRegister::Ldtr).hidden.is_some_and(|hidden| !hidden.descriptor.p)
}

/// Looks an entry up: says where it is, and whether it is within the table.
pub(super) fn look_up<M: Machine + ?Sized>(
    machine: &mut M,
    directory: Directory,
    index: u16,
    scale: u8,
    size: u8,
    beyond: Outcome,
) -> Walked<()> {
    let (base, limit) = bounds(machine, directory);
    let offset = u32::from(index) * u32::from(scale);
    let last = offset + u32::from(size) - 1;
    let within = if directory == Directory::Ldt && has_no_ldt(machine) {
        Some(false)
    } else {
        limit.map(|limit| last <= limit)
    };
    let width = machine.width();
    let bytes = address_bytes(width);
    let address = base.map(|base| width.linear(base.wrapping_add(u64::from(offset))));
    machine.step(&Step::Entry {
        directory,
        index,
        scale,
        base: Number::new(base, bytes),
        address: Number::new(address, bytes),
        limit,
        within,
    });
    match within {
        Some(true) => Ok(()),
        Some(false) => Err(beyond),
        None => {
            let missing = Unknown::Limit(directory);
            machine.step(&Step::Unchecked { whether: "the entry is within the table", missing });
            Ok(())
        }
    }
}

/// Finds the descriptor of a selector that is not null.
pub(super) fn find<M: Machine + ?Sized>(
    machine: &mut M,
    role: Role,
    selector: Selector,
    blame: Blame,
) -> Walked<Found> {
    let directory = match selector.table() {
        Table::Gdt => Directory::Gdt,
        Table::Ldt => Directory::Ldt,
    };
    let beyond = blame.on(machine, selector);
    look_up(machine, directory, selector.index(), 8, 8, beyond)?;
    let raw = match machine.descriptor(selector.table(), selector.offset()) {
        Ok(raw) => raw,
        Err(miss) => return Err(missed(machine, miss, Unknown::Descriptor(selector))),
    };
    let descriptor = Descriptor::decode(raw.to_le_bytes());
    machine.step(&Step::Segment { role, selector, descriptor });
    Ok(Found { selector, descriptor })
}

/// The code segment that a gate leads to: checked as code that may be entered from `cpl`. Behind it the level is
/// its DPL, or where it is conforming the same as before. A jump may not change the level.
pub(super) fn code_behind_gate<M: Machine + ?Sized>(
    machine: &mut M,
    selector: Selector,
    cpl: u8,
    external: u32,
    is_jump: bool,
) -> Walked<Found> {
    let blame = Blame::protection(external);
    let null = fault(machine, Exception::GENERAL_PROTECTION, Some(external));
    expect(machine, Rule::NotNull(Role::Cs), !selector.is_null(), null)?;
    let found = find(machine, Role::Cs, selector, blame)?;
    let refused = blame.on(machine, selector);
    is_code(machine, &found, refused)?;
    let dpl = found.descriptor.dpl;
    expect(machine, Rule::NotOutward { dpl, cpl }, dpl <= cpl, refused)?;
    if is_jump {
        has_code_level(machine, &found.descriptor, cpl, refused)?;
    }
    if machine.width() == Width::Long {
        let is_64_bit = found.descriptor.l && !found.descriptor.d;
        expect(machine, Rule::Is64Bit, is_64_bit, refused)?;
    }
    is_present(machine, Role::Cs, &found, Exception::NOT_PRESENT, external)?;
    Ok(found)
}

/// That a descriptor is code.
pub(super) fn is_code<M: Machine + ?Sized>(machine: &mut M, found: &Found, refused: Outcome) -> Walked<()> {
    expect(machine, Rule::IsCode, matches!(found.descriptor.kind(), Kind::Code { .. }), refused)
}

/// That code may run at a level: non-conforming code at its own only, conforming code at that or an outer one.
pub(super) fn has_code_level<M: Machine + ?Sized>(
    machine: &mut M,
    code: &Descriptor,
    level: u8,
    refused: Outcome,
) -> Walked<()> {
    let (dpl, conforming) = (code.dpl, is_conforming(code));
    let holds = if conforming { dpl <= level } else { dpl == level };
    expect(machine, Rule::CodeLevel { dpl, level, conforming }, holds, refused)
}

/// That code is not both 64-bit and 32-bit, which long mode reserves.
pub(super) fn has_one_width<M: Machine + ?Sized>(
    machine: &mut M,
    code: &Descriptor,
    refused: Outcome,
) -> Walked<()> {
    let both = machine.width() == Width::Long && code.l && code.d;
    expect(machine, Rule::NotLAndD, !both, refused)
}

/// That a segment is present.
pub(super) fn is_present<M: Machine + ?Sized>(
    machine: &mut M,
    role: Role,
    found: &Found,
    exception: Exception,
    external: u32,
) -> Walked<()> {
    let absent = fault(machine, exception, selector_code(found.selector, external));
    expect(machine, Rule::Present(role), found.descriptor.p, absent)
}

/// The stack segment of another level: data that can be written, at that level. The exception for all but a segment that
/// is not present is `blame`'s.
pub(super) fn stack_segment<M: Machine + ?Sized>(
    machine: &mut M,
    selector: Selector,
    level: u8,
    blame: Blame,
) -> Walked<Found> {
    let found = find(machine, Role::Ss, selector, blame)?;
    let refused = blame.on(machine, selector);
    let (rpl, dpl) = (selector.rpl(), found.descriptor.dpl);
    expect(machine, Rule::StackLevel { rpl, dpl, level }, rpl == level && dpl == level, refused)?;
    let writable = matches!(found.descriptor.kind(), Kind::Data { writable: true, .. });
    expect(machine, Rule::Writable, writable, refused)?;
    is_present(machine, Role::Ss, &found, Exception::STACK, blame.external)?;
    Ok(found)
}

/// Whether code is conforming.
pub(super) fn is_conforming(descriptor: &Descriptor) -> bool {
    matches!(descriptor.kind(), Kind::Code { conforming: true, .. })
}

/// That a target is within its code segment, or where it is 64-bit code, canonical.
pub(super) fn is_reachable<M: Machine + ?Sized>(
    machine: &mut M,
    code: &Descriptor,
    offset: u64,
    otherwise: Outcome,
) -> Walked<()> {
    if machine.width() == Width::Long && code.l {
        let rule = Rule::CanonicalTarget(Number::new(Some(offset), 8));
        return expect(machine, rule, is_canonical(machine, offset), otherwise);
    }
    let limit = code.effective_limit();
    let rule = Rule::InSegment { offset: Number::new(Some(offset), 4), limit };
    expect(machine, rule, offset <= u64::from(limit), otherwise)
}

/// Sets the accessed bit of a code or data descriptor that is being loaded, if it is not set, and gives the descriptor as
/// it is then.
pub(super) fn access<M: Machine + ?Sized>(machine: &mut M, found: &Found) -> Walked<Descriptor> {
    let Found { selector, mut descriptor } = *found;
    if descriptor.kind & 1 == 0 {
        descriptor.kind |= 1;
        let access = descriptor.encode()[5];
        if let Err(miss) = machine.set_access(selector.table(), selector.offset(), access) {
            return Err(missed(machine, miss, Unknown::Descriptor(selector)));
        }
        machine.step(&Step::Accessed { table: selector.table(), index: selector.index() });
    }
    Ok(descriptor)
}

/// Whether the task register holds a 16-bit TSS.
pub(super) fn has_tss16<M: Machine + ?Sized>(machine: &M) -> bool {
    machine
        .segment(SegmentRegister::Tr)
        .hidden
        .is_some_and(|hidden| matches!(hidden.descriptor.kind(), Kind::System(SystemKind::Tss16 { .. })))
}
