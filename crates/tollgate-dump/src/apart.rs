//! Decides whether the text after a heading or prose can be from another machine than the text before it.
//!
//! A heading of the outermost rank separates its surroundings, in any language. Prose and headings within a section
//! separate pieces that have no part in common: tables, the MSRs of SYSENTER, those of SYSCALL. Pieces whose selectors name
//! the other's descriptors stay together, and so does everything that an article on one machine separates by prose. No walk
//! combines the tables of one machine with the MSRs of another.

use tollgate_x86::{Descriptor, DescriptorKind, Msr, Selector, Star, SysenterCs, Width};

use crate::joined::Joined;
use crate::piece::{Dump, Heading, Named, Piece, Register, Style, What};

/// Returns the style of headings that separate a text: the first one used twice, since a title is used once.
pub(crate) fn outermost(headings: &[Heading]) -> Option<Style> {
    let styles = || headings.iter().filter_map(|heading| heading.style);
    let mut seen: Vec<Style> = Vec::new();
    for style in styles() {
        if !seen.contains(&style) {
            seen.push(style);
        }
    }
    let count = |wanted: &Style| styles().filter(|style| style == wanted).count();
    seen.iter().copied().find(|style| count(style) > 1).or(seen.first().copied())
}

/// Returns whether a heading begins a section of the outermost rank or a higher one.
pub(crate) fn parts(heading: &Heading, outermost: Option<Style>) -> bool {
    heading.of == Named::Section && (heading.style == outermost || heading.style == Some(Style::Level(1)))
}

/// Returns the pieces from the first one on that only commands separate.
pub(crate) fn passage<'a>(dump: &Dump, pieces: &'a [Piece]) -> &'a [Piece] {
    let Some(first) = pieces.first() else { return pieces };
    let prose = dump.prose.get(dump.prose.partition_point(|line| *line <= first.line)).copied();
    let after = dump.headings.partition_point(|heading| heading.line <= first.line);
    let heading = dump.headings.get(after).map(|heading| heading.line);
    let end = prose.into_iter().chain(heading).min().unwrap_or(usize::MAX);
    &pieces[..pieces.partition_point(|piece| piece.line < end)]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Subjects(u8);

const TABLES: u8 = 1;
const SYSENTER: u8 = 2;
const SYSCALL: u8 = 4;

impl Subjects {
    fn of(pieces: &[Piece]) -> Self {
        Self(pieces.iter().fold(0, |all, piece| all | subject(&piece.what)))
    }

    fn of_state(state: &Joined) -> Self {
        let has_tables = [
            state.memory.is_empty(),
            [&state.gdtr, &state.idtr].iter().all(|table| table.base.is_none() && table.limit.is_none()),
            state.segments.is_empty(),
            state.printed_descriptors.is_empty(),
            state.printed_gates.is_empty(),
            state.printed_tss.is_empty(),
            state.bases.is_empty(),
        ]
        .contains(&false);
        // A text may have thousands of MSRs, and prose after each.
        let known = MSRS.into_iter().filter(|(msr, _)| state.msrs.contains_key(&msr.number()));
        let msrs = known.fold(0, |all, (_, subject)| all | subject);
        let control =
            state.registers.contains_key(&Register::CR0) || state.registers.contains_key(&Register::CR4);
        Self(msrs | if has_tables || control { TABLES } else { 0 })
    }

    const fn meets(self, other: Self) -> bool {
        self.0 == 0 || other.0 == 0 || self.0 & other.0 != 0
    }
}

fn subject(what: &What) -> u8 {
    match what {
        What::Bytes { address: Some(_), .. }
        | What::TableRegister { .. }
        | What::Segment { .. }
        | What::Descriptor(_)
        | What::Gate(_)
        | What::TssField { .. }
        | What::Base { .. }
        | What::Register { register: Register::CR0 | Register::CR4, .. } => TABLES,
        What::Msr { number, .. } => of_msr(*number),
        _ => 0,
    }
}

const MSRS: [(Msr, u8); 8] = [
    (Msr::SysenterCs, SYSENTER),
    (Msr::SysenterEsp, SYSENTER),
    (Msr::SysenterEip, SYSENTER),
    (Msr::Efer, SYSCALL),
    (Msr::Star, SYSCALL),
    (Msr::Lstar, SYSCALL),
    (Msr::Cstar, SYSCALL),
    (Msr::Fmask, SYSCALL),
];

fn of_msr(number: u32) -> u8 {
    MSRS.into_iter().find(|(msr, _)| msr.number() == number).map_or(0, |(_, subject)| subject)
}

/// Returns whether pieces after prose have nothing to do with the state before it.
pub(crate) fn is_untied(state: &Joined, pieces: &[Piece]) -> bool {
    if Subjects::of_state(state).meets(Subjects::of(pieces)) {
        return false;
    }
    let mut other = Joined::default();
    pieces.iter().for_each(|piece| other.take(piece, false));
    !explains(state, &other) && !calls(&other, state)
}

/// Returns whether tables have the descriptors that the MSRs before them name.
fn explains(before: &Joined, tables: &Joined) -> bool {
    let msr = |state: &Joined, msr: Msr| state.msrs.get(&msr.number()).map(|value| value.value);
    let sysenter = msr(before, Msr::SysenterCs).map(|value| SysenterCs(value).sysenter_cs());
    sysenter.is_some_and(|selector| has_kernel_code(tables, selector, Width::Legacy)) || calls(before, tables)
}

/// Returns whether SYSCALL by one's MSRs enters 64-bit code in the other's tables.
fn calls(msrs: &Joined, tables: &Joined) -> bool {
    let star = msrs.msrs.get(&Msr::Star.number()).map(|value| Star(value.value));
    star.is_some_and(|star| has_kernel_code(tables, star.syscall_cs(), Width::Long))
}

/// Returns whether a selector names code of ring 0, with L set in long mode and clear outside.
fn has_kernel_code(tables: &Joined, selector: Selector, width: Width) -> bool {
    let is_it = |descriptor: &Descriptor| {
        let is_code = matches!(descriptor.kind(), DescriptorKind::Code { .. });
        is_code && descriptor.p && descriptor.dpl == 0 && descriptor.l == (width == Width::Long)
    };
    tables.descriptor(selector, width).is_some_and(|found| is_it(&found.value))
}
