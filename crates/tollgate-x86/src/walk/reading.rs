use crate::{Descriptor, DescriptorKind, Selector, SystemKind, Width};

use super::machine::{Machine, Miss};
use super::number::Number;
use super::outcome::{Exception, Fault, Outcome, Unknown};
use super::registers::{Bounds, Directory, SegmentRegister, TableRegister};
use super::rule::{Role, Rule};
use super::step::Step;
use super::{Walked, cr4_has};

pub(super) type Refusal = (Exception, Option<u32>);

pub(super) const UD: Refusal = (Exception::INVALID_OPCODE, None);
pub(super) const GP0: Refusal = (Exception::GENERAL_PROTECTION, Some(0));
pub(super) const SS0: Refusal = (Exception::STACK, Some(0));

pub(super) fn fault(machine: &impl Machine, (exception, code): Refusal) -> Outcome {
    Outcome::Fault(Fault { exception, code, address: None, level: machine.cpl(), crossed: false })
}

pub(super) fn missed(machine: &impl Machine, miss: Miss, unknown: Unknown) -> Outcome {
    match miss {
        Miss::Unknown => Outcome::Unknown(unknown),
        Miss::PageFault { address, code } => Outcome::Fault(Fault::of_page(address, code, machine.cpl())),
    }
}

/// Checks a condition and shows it even if it holds; [`expect`] shows only a failure.
pub(super) fn check(machine: &mut impl Machine, rule: Rule, holds: bool, otherwise: Refusal) -> Walked<()> {
    if !holds {
        return refuse(machine, rule, otherwise);
    }
    machine.step(&Step::Check { rule, holds });
    Ok(())
}

pub(super) fn refuse<T>(machine: &mut impl Machine, rule: Rule, otherwise: Refusal) -> Walked<T> {
    machine.step(&Step::Check { rule, holds: false });
    Err(fault(machine, otherwise))
}

/// Reports that a condition cannot be checked because a value is unknown, and assumes that it holds.
pub(super) fn unchecked(
    machine: &mut impl Machine,
    whether: &'static str,
    missing: impl Into<Unknown>,
) -> Walked<()> {
    machine.step(&Step::Unchecked { whether, missing: missing.into() });
    Ok(())
}

pub(super) fn expect(machine: &mut impl Machine, rule: Rule, holds: bool, otherwise: Refusal) -> Walked<()> {
    if holds { Ok(()) } else { refuse(machine, rule, otherwise) }
}

pub(super) fn level(machine: &impl Machine) -> Walked<u8> {
    machine.cpl().ok_or(Outcome::Unknown(Unknown::Level))
}

/// Returns whether an address is canonical: its upper bits are copies of the highest translated bit. SDM 1, "Canonical
/// addressing". Modes that ignore upper bits of data addresses (LAM, EFER.UAIE) are not modelled, since they never apply to
/// branch targets.
pub(super) fn is_canonical(machine: &impl Machine, address: u64) -> bool {
    let bits = if cr4_has(machine, crate::Cr4::LA57) { 57 } else { 48 };
    crate::is_canonical(address, bits)
}

pub(super) const fn address_bytes(width: Width) -> u8 {
    match width {
        Width::Legacy => 4,
        Width::Long => 8,
    }
}

/// Returns the selector part of an error code. SDM 3A, "Error code".
pub(super) const fn selector_code(selector: Selector, external: u32) -> Option<u32> {
    Some((selector.0 & !0b11) as u32 | external)
}

#[derive(Clone, Copy)]
pub(super) struct FoundDescriptor {
    pub(super) selector: Selector,
    pub(super) descriptor: Descriptor,
}

/// The exception for a selector without a proper descriptor, and the EXT bit of its error code.
#[derive(Clone, Copy)]
pub(super) struct Blame {
    pub(super) exception: Exception,
    pub(super) external: u32,
}

impl Blame {
    /// #GP, for everything except stacks from a TSS.
    pub(super) const fn protection(external: u32) -> Self {
        Self { exception: Exception::GENERAL_PROTECTION, external }
    }

    /// #TS, for stacks from a TSS.
    pub(super) const fn task(external: u32) -> Self {
        Self { exception: Exception::INVALID_TSS, external }
    }

    pub(super) const fn on(self, selector: Selector) -> Refusal {
        (self.exception, selector_code(selector, self.external))
    }
}

/// Returns the base and limit of a table. A null LDT has neither, like an unknown one, so callers check for it.
pub(super) fn bounds(machine: &impl Machine, directory: Directory) -> Bounds {
    match directory {
        Directory::Gdt => machine.table(TableRegister::Gdtr),
        Directory::Idt => machine.table(TableRegister::Idtr),
        Directory::Ldt => {
            let hidden = machine.segment(SegmentRegister::Ldtr).hidden.filter(|hidden| hidden.descriptor.p);
            let limit = hidden.map(|hidden| hidden.descriptor.effective_limit());
            Bounds { base: hidden.map(|hidden| hidden.base), limit }
        }
    }
}

fn has_no_ldt(machine: &impl Machine) -> bool {
    machine.segment(SegmentRegister::Ldtr).hidden.is_some_and(|hidden| !hidden.descriptor.p)
}

pub(super) fn look_up(
    machine: &mut impl Machine,
    directory: Directory,
    index: u16,
    scale: u8,
    size: u8,
    beyond: Refusal,
) -> Walked<()> {
    let Bounds { base, limit } = bounds(machine, directory);
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
        Some(false) => Err(fault(machine, beyond)),
        None => unchecked(machine, "the entry is within the table", Unknown::Limit(directory)),
    }
}

pub(super) fn find(
    machine: &mut impl Machine,
    role: Role,
    selector: Selector,
    blame: Blame,
) -> Walked<FoundDescriptor> {
    look_up(machine, selector.table().into(), selector.index(), 8, 8, blame.on(selector))?;
    let raw = match machine.descriptor(selector.table(), selector.offset()) {
        Ok(raw) => raw,
        Err(miss) => return Err(missed(machine, miss, Unknown::Descriptor(selector))),
    };
    let descriptor = Descriptor::decode(raw.to_le_bytes());
    machine.step(&Step::Segment { role, selector, descriptor });
    Ok(FoundDescriptor { selector, descriptor })
}

/// Checks the code segment of a gate, entered from `cpl`. The new level is its DPL, or the old level if it is conforming. A
/// jump may not change the level.
pub(super) fn code_behind_gate(
    machine: &mut impl Machine,
    selector: Selector,
    cpl: u8,
    external: u32,
    is_jump: bool,
) -> Walked<FoundDescriptor> {
    let blame = Blame::protection(external);
    expect(
        machine,
        Rule::NotNull(Role::Cs),
        !selector.is_null(),
        (Exception::GENERAL_PROTECTION, Some(external)),
    )?;
    let found = find(machine, Role::Cs, selector, blame)?;
    let refused = blame.on(selector);
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

pub(super) fn is_code(machine: &mut impl Machine, found: &FoundDescriptor, refused: Refusal) -> Walked<()> {
    expect(machine, Rule::IsCode, matches!(found.descriptor.kind(), DescriptorKind::Code { .. }), refused)
}

/// Checks that code may run at a level: non-conforming code only at its DPL, conforming code also at outer levels.
pub(super) fn has_code_level(
    machine: &mut impl Machine,
    code: &Descriptor,
    level: u8,
    refused: Refusal,
) -> Walked<()> {
    let (dpl, conforming) = (code.dpl, is_conforming(code));
    let holds = if conforming { dpl <= level } else { dpl == level };
    expect(machine, Rule::CodeLevel { dpl, level, conforming }, holds, refused)
}

/// Checks that L and D are not both set, which long mode reserves.
pub(super) fn has_one_width(machine: &mut impl Machine, code: &Descriptor, refused: Refusal) -> Walked<()> {
    let both = machine.width() == Width::Long && code.l && code.d;
    expect(machine, Rule::NotLAndD, !both, refused)
}

pub(super) fn is_present(
    machine: &mut impl Machine,
    role: Role,
    found: &FoundDescriptor,
    exception: Exception,
    external: u32,
) -> Walked<()> {
    expect(
        machine,
        Rule::Present(role),
        found.descriptor.p,
        (exception, selector_code(found.selector, external)),
    )
}

/// Checks the stack segment of another level, which must be writable data of that level. `blame` gives the exception,
/// except for a segment that is not present.
pub(super) fn stack_segment(
    machine: &mut impl Machine,
    selector: Selector,
    level: u8,
    blame: Blame,
) -> Walked<FoundDescriptor> {
    let found = find(machine, Role::Ss, selector, blame)?;
    let refused = blame.on(selector);
    let (rpl, dpl) = (selector.rpl(), found.descriptor.dpl);
    expect(machine, Rule::StackLevel { rpl, dpl, level }, rpl == level && dpl == level, refused)?;
    let writable = matches!(found.descriptor.kind(), DescriptorKind::Data { writable: true, .. });
    expect(machine, Rule::Writable, writable, refused)?;
    is_present(machine, Role::Ss, &found, Exception::STACK, blame.external)?;
    Ok(found)
}

pub(super) fn is_conforming(descriptor: &Descriptor) -> bool {
    matches!(descriptor.kind(), DescriptorKind::Code { conforming: true, .. })
}

/// Checks that a target is within its code segment, or canonical for 64-bit code.
pub(super) fn is_reachable(
    machine: &mut impl Machine,
    code: &Descriptor,
    offset: u64,
    otherwise: Refusal,
) -> Walked<()> {
    if machine.width() == Width::Long && code.l {
        let rule = Rule::CanonicalTarget(Number::new(Some(offset), 8));
        return expect(machine, rule, is_canonical(machine, offset), otherwise);
    }
    let limit = code.effective_limit();
    let rule = Rule::InSegment { offset: Number::new(Some(offset), 4), limit };
    expect(machine, rule, offset <= u64::from(limit), otherwise)
}

/// Sets the accessed bit of a code or data descriptor that is being loaded, and returns the descriptor with it.
pub(super) fn access(machine: &mut impl Machine, found: &FoundDescriptor) -> Walked<Descriptor> {
    let FoundDescriptor { selector, mut descriptor } = *found;
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

pub(super) fn has_tss16(machine: &impl Machine) -> bool {
    machine.segment(SegmentRegister::Tr).hidden.is_some_and(|hidden| {
        matches!(hidden.descriptor.kind(), DescriptorKind::System(SystemKind::Tss16 { .. }))
    })
}
