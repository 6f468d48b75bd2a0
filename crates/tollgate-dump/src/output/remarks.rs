//! Common errors. Each is wrong in a published account of kernel entry (marbacka.net, "int 2E/sysenter/syscall", 2005 and
//! 2017) and in later ones; the manuals have it right.

use tollgate_x86::{DescriptorKind, Msr, Rflags};

use super::item::{Item, Position, flags};
use crate::{Joined, SegmentRegister, Segmentation};

pub(crate) fn remarks(state: &Joined, items: &[Item]) -> Vec<String> {
    [
        of_selectors(state),
        of_interrupts(state, items),
        of_long_code(items),
        of_mask(state),
        of_two_instructions(state),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_selectors(state: &Joined) -> Option<String> {
    let selector = state.segments.get(&SegmentRegister::Tr)?.selector.value;
    (state.segmentation() != Segmentation::Real && !selector.is_null()).then(|| {
        format!(
            "Selector {selector} is entry {} of the {} and not the {:x}th: a selector counts bytes, 8 an entry (SDM 3A, \"Segment \
             selectors\").",
            selector.index(),
            selector.table(),
            selector.offset()
        )
    })
}

fn of_interrupts(state: &Joined, items: &[Item]) -> Option<String> {
    let has_gate = items.iter().any(|item| {
        matches!(item, Item::Gate32(Position::Vector(_), _) | Item::Gate64(Position::Vector(_), _))
    }) || !state.printed_gates.is_empty();
    has_gate.then(|| {
        "INT copies no parameters from the old stack: only a call gate does, outside long mode. SS, ESP, EFLAGS, CS and \
         EIP go to the new ring's stack, not to the one of the program (SDM 3A, \"Exception- or interrupt-handler \
         procedures\")."
            .to_owned()
    })
}

fn of_long_code(items: &[Item]) -> Option<String> {
    let is_long = |item: &Item| match item {
        Item::Segment(_, descriptor) => {
            descriptor.l && matches!(descriptor.kind(), DescriptorKind::Code { .. })
        }
        _ => false,
    };
    items.iter().any(is_long).then(|| {
        "L=1 is 64-bit mode. Compatibility mode is long mode with L=0 (SDM 3A, \"Code-segment descriptor in 64-bit mode\")."
            .to_owned()
    })
}

fn of_mask(state: &Joined) -> Option<String> {
    let mask = state.msrs.get(&Msr::Fmask.number())?.value;
    (mask != 0).then(|| {
        format!(
            "SYSCALL clears the flags that are set in FMASK, {}: it does RFLAGS AND NOT FMASK, and does not carry them \
             over (SDM 2B and APM 3, SYSCALL).",
            flags(Rflags(mask)).join(", ")
        )
    })
}

fn of_two_instructions(state: &Joined) -> Option<String> {
    let text = |msr: Msr| state.msrs.contains_key(&msr.number());
    (text(Msr::SysenterEip) || text(Msr::Lstar) || text(Msr::Star)).then(|| {
        "SYSENTER and SYSCALL differ in more than their MSRs: SYSENTER loads the stack pointer from an MSR and saves \
         nothing; SYSCALL saves RIP in RCX, in long mode RFLAGS in R11, and leaves the stack pointer alone. SYSENTER \
         faults where SYSENTER_CS is null. AMD processors have no SYSENTER in long mode, Intel processors no SYSCALL \
         outside 64-bit mode."
            .to_owned()
    })
}
