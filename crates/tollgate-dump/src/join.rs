//! Joins the pieces of a text into machine states.

use std::collections::btree_map::Entry;

use tollgate_x86::{Msr, Selector, Width};

use crate::apart;
use crate::evidence::{self, Sign};
use crate::joined::{Apart, Joined, Segment, Table, Weight};
use crate::piece::{Dump, Heading, Hidden, Named, Piece, SegmentRegister, TableRegister, What};
use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::{check, format::Format, sourced::Sourced};

/// The most states that are kept apart.
pub const MAX_STATES: usize = 256;
const MAX_LINES: usize = 8;
const MAX_EXPLANATIONS: usize = 8;
const MAX_LOOSE: usize = 1 << 17;

/// The states in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The states of the systems, in the order of the text.
    pub states: Vec<Joined>,
    /// The line from which pieces are dropped, because [`MAX_STATES`] was reached.
    pub cut: Option<usize>,
}

/// Joins pieces into states. A new state begins at a line that names another system or processor, and at a heading or prose
/// between unrelated pieces (see [`Apart`]; [`Dump::of_one_machine`] disables that). It also begins at another value of
/// something that a machine has once: GDTR, IDTR, TR, an MSR of kernel entry, the bytes at an address, a gate or system
/// descriptor, or the form of the tables. Values that change while a system runs (general registers, CR3, segment
/// registers, the FS and GS bases) do not begin a state; the last one counts. A tool's answer is not split unless it
/// contradicts itself. `width` is the form of the tables, if the caller knows it.
pub fn join(dump: &Dump, width: Option<Width>) -> Session {
    let mut session = Session::default();
    let mut state = Joining::default();
    let mut headings = dump.headings.iter().peekable();
    let outermost = apart::outermost(&dump.headings);
    let mut rest = dump.pieces.as_slice();
    let mut before = 0;
    while let Some(first) = rest.first() {
        let prose = dump.prose.partition_point(|line| *line <= before);
        let prose = dump.prose.get(prose).copied().filter(|line| *line <= first.line);
        let mut boundary = prose.filter(|_| state.is_begun);
        let length = rest.iter().position(|piece| piece.block != first.block).unwrap_or(rest.len());
        let passage = apart::passage(dump, rest);
        let (block, behind) = rest.split_at(length);
        rest = behind;
        before = block.last().map_or(before, |piece| piece.line);
        while let Some(heading) = headings.next_if(|heading| heading.line <= first.line) {
            let begins = apart::parts(heading, outermost);
            if state.is_begun && begins {
                let apart = state.disagrees_with(passage, width, Weight::Hint);
                session.states.extend(state.follow(width, apart.unwrap_or(Apart::Section(heading.line))));
            } else if state.is_of_another(heading) {
                session.states.extend(state.finish(width, Apart::Named(heading.line)));
            } else if state.is_begun && heading.of == Named::Section {
                boundary = boundary.or(Some(heading.line));
            }
            state.name(heading, begins);
        }
        if let Some(apart) = boundary.and_then(|line| state.parts_from(passage, line, width)) {
            session.states.extend(state.follow(width, apart));
        }
        if let Some(apart) = state.disagrees_with(block, width, Weight::Strong) {
            session.states.extend(state.follow(width, apart));
        }
        for (index, piece) in block.iter().enumerate() {
            if let Some(apart) = state.disagrees_with(std::slice::from_ref(piece), width, Weight::Strong) {
                session.states.extend(state.follow(width, apart));
            }
            if session.states.len() >= MAX_STATES {
                session.cut = Some(piece.line);
                return session;
            }
            let is_next = index > 0 && matches!(block[index - 1].what, What::Bytes { address: None, .. });
            state.take(piece, is_next);
        }
    }
    session.states.extend(state.finish(width, Apart::Named(0)));
    session
}

#[derive(Debug, Default)]
struct Joining {
    joined: Joined,
    system: Option<Heading>,
    processor: Option<Heading>,
    /// The heading of the outermost rank.
    section: Option<Heading>,
    apart: Option<Apart>,
    is_begun: bool,
}

impl Joining {
    fn is_of_another(&self, heading: &Heading) -> bool {
        let printed = match heading.of {
            Named::System { .. } => &self.system,
            Named::Processor(_) => &self.processor,
            Named::Section => return false,
        };
        // Pieces before any name may belong to any system.
        let differs = printed
            .as_ref()
            .map_or(matches!(heading.of, Named::System { .. }), |printed| printed.of != heading.of);
        self.is_begun && differs
    }

    fn name(&mut self, heading: &Heading, begins: bool) {
        match heading.of {
            Named::Section if begins => {
                (self.system, self.processor) = (None, None);
                self.section = Some(heading.clone());
            }
            Named::Section => {}
            Named::System { .. } => {
                self.processor = None;
                self.system = Some(heading.clone());
            }
            Named::Processor(_) => self.processor = Some(heading.clone()),
        }
    }

    fn finish(&mut self, width: Option<Width>, next: Apart) -> Option<Joined> {
        let ended = std::mem::take(self);
        self.system = ended.system.clone();
        self.processor = ended.processor.clone();
        if !ended.is_begun {
            self.apart = ended.apart;
            return None;
        }
        self.apart = Some(next);
        let mut joined = ended.joined;
        joined.apart = ended.apart;
        joined.heading = ended.system.or(ended.section).or(ended.processor);
        if let Some(width) = width {
            joined.width.note(None, (width, Weight::Asked, "it was asked for"));
        }
        joined.note_gates();
        joined.width.decide();
        joined.join_halves();
        check::check(&mut joined);
        Some(joined)
    }

    fn follow(&mut self, width: Option<Width>, next: Apart) -> Option<Joined> {
        let ended = self.finish(width, next);
        self.system = None;
        self.processor = None;
        ended
    }

    fn parts_from(&self, passage: &[Piece], line: usize, width: Option<Width>) -> Option<Apart> {
        let contradiction = self.disagrees_with(passage, width, Weight::Hint);
        contradiction.or_else(|| {
            (self.is_begun && apart::is_untied(&self.joined, passage)).then_some(Apart::Prose(line))
        })
    }

    /// Returns why the pieces cannot be part of the state, if so. Evidence for the form of tables counts from this strength
    /// on.
    fn disagrees_with(&self, pieces: &[Piece], width: Option<Width>, least: Weight) -> Option<Apart> {
        let first = pieces.first().filter(|_| self.is_begun)?.line;
        if let Some(other) = pieces.iter().find(|piece| self.has_other(piece)) {
            return Some(Apart::Contradiction(other.line));
        }
        (width.is_none() && self.has_other_form(pieces, least)).then_some(Apart::Width(first))
    }

    fn has_other_form(&self, pieces: &[Piece], least: Weight) -> bool {
        let [legacy, long] = evidence::strongest(pieces.iter().filter_map(evidence::sign_of), least);
        let mine =
            self.joined.width.reasons.iter().map(|reason| -> Sign { (reason.width, reason.weight, "") });
        let [my_legacy, my_long] = evidence::strongest(mine, least);
        legacy.is_some() && long.is_none() && my_long.is_some() && my_legacy.is_none()
            || long.is_some() && legacy.is_none() && my_legacy.is_some() && my_long.is_none()
    }

    fn has_other(&self, piece: &Piece) -> bool {
        let joined = &self.joined;
        match &piece.what {
            What::Bytes { address: Some(address), bytes } => !joined.memory.agrees(*address, bytes),
            What::TableRegister { table, base, limit } => {
                let table = joined.table(*table);
                differs(&table.base, base) || differs(&table.limit, limit)
            }
            What::Segment { register: SegmentRegister::Tr, selector, hidden } => {
                joined.segments.get(&SegmentRegister::Tr).is_some_and(|printed| {
                    let base = printed.base.as_ref().zip(*hidden);
                    let is_other = |((mine, bits), hidden): (&(Sourced<u64>, u32), Hidden)| {
                        *bits == hidden.base_bits && mine.value != hidden.base
                    };
                    printed.selector.value != *selector || base.is_some_and(is_other)
                })
            }
            What::Base { register, base, .. } => {
                joined.bases.get(register).is_some_and(|mine| differs(&mine.base, &Some(*base)))
            }
            What::Msr { number, value } => {
                !is_of_a_task(*number)
                    && joined.msrs.get(number).is_some_and(|printed| printed.value != *value)
            }
            What::Descriptor(printed) => {
                let selector = Selector(printed.selector).with_rpl(0).0;
                let mine = joined.printed_descriptors.get(&selector).into_iter().flatten();
                let mut mine = mine.filter(|mine| mine.value.is_wide == printed.is_wide);
                mine.any(|mine| mine.value.flags.is_some() && is_other(&mine.value, printed))
            }
            What::Gate(PrintedGate { slot: Some(256..), .. }) => false,
            What::Gate(gate) => {
                let mine = joined.printed_gates.get(&gate.vector).into_iter().flatten();
                let differs =
                    |mine: Option<u64>| mine.is_some() && gate.offset.is_some() && mine != gate.offset;
                mine.map(|mine| mine.value.offset).any(differs)
            }
            _ => false,
        }
    }

    /// Takes the value of the piece. `is_next`: it directly follows the bytes of the previous piece.
    fn take(&mut self, piece: &Piece, is_next: bool) {
        let joined = &mut self.joined;
        if !self.is_begun {
            joined.lines.0 = piece.line;
            self.is_begun = true;
        }
        joined.lines.1 = piece.line;
        if !joined.formats.contains(&piece.format) {
            joined.formats.push(piece.format);
        }
        if let Some(sign) = evidence::sign_of(piece) {
            joined.width.note(Some(piece.line), sign);
        }
        joined.take(piece, is_next);
    }
}

impl Joined {
    /// Returns GDTR or IDTR.
    pub fn table(&self, table: TableRegister) -> &Table {
        match table {
            TableRegister::Gdt => &self.gdtr,
            TableRegister::Idt => &self.idtr,
        }
    }

    pub(crate) fn take(&mut self, piece: &Piece, is_next: bool) {
        let line = piece.line;
        match &piece.what {
            What::Bytes { address: Some(address), bytes } => self.memory.insert(*address, bytes, line),
            What::Bytes { address: None, bytes } => self.take_loose(bytes, line, is_next),
            What::TableRegister { table, base, limit } => {
                let table = match table {
                    TableRegister::Gdt => &mut self.gdtr,
                    TableRegister::Idt => &mut self.idtr,
                };
                tell(&mut table.base, *base, line);
                tell(&mut table.limit, *limit, line);
            }
            What::Segment { register, selector, hidden } => {
                self.take_segment(*register, *selector, hidden.as_ref(), line);
            }
            What::Register { register, value } => {
                put(self.registers.entry(*register), *value, line);
                // A symbol belongs to the address that it was printed with.
                self.symbols.retain(|named, symbol| named != register || symbol.lines.contains(&line));
            }
            What::Symbol { register, symbol } => {
                self.symbols.insert(*register, Sourced::at(symbol.clone(), line));
            }
            What::Base { register, base, limit } => {
                let mine = self.bases.entry(*register).or_default();
                tell(&mut mine.base, Some(*base), line);
                tell(&mut mine.limit, *limit, line);
            }
            What::Msr { number, value } => put(self.msrs.entry(*number), *value, line),
            What::TssField { name, value } => put(self.printed_tss.entry(name), *value, line),
            What::Descriptor(printed) => {
                let selector = Selector(printed.selector).with_rpl(0).0;
                add(self.printed_descriptors.entry(selector).or_default(), printed, line)
            }
            What::Gate(gate) => {
                if self.take_slot(gate, line) {
                    add(self.printed_gates.entry(gate.vector).or_default(), gate, line);
                }
            }
            What::Form(_) => {}
        }
        if let What::Descriptor(PrintedDescriptor { selector, raw: Some(raw), .. }) = &piece.what
            && piece.format == Format::BochsTables
            && let Some(base) = &self.gdtr.base
            && let Some(address) = base.value.checked_add(u64::from(*selector))
        {
            // Bytes that the tool could not explain are still bytes.
            self.memory.insert(address, raw, line);
        }
    }

    fn take_loose(&mut self, bytes: &[u8], line: usize, is_next: bool) {
        match self.loose.last_mut().filter(|loose| is_next && loose.value.len() < MAX_LOOSE) {
            Some(loose) => {
                loose.value.extend_from_slice(bytes);
                loose.lines.push(line);
            }
            None => self.loose.push(Sourced::at(bytes.to_vec(), line)),
        }
    }

    fn take_segment(
        &mut self,
        register: SegmentRegister,
        selector: Selector,
        hidden: Option<&Hidden>,
        line: usize,
    ) {
        let new = Segment {
            selector: Sourced::at(selector, line),
            base: hidden.map(|hidden| (Sourced::at(hidden.base, line), hidden.base_bits)),
            limit: hidden.map(|hidden| Sourced::at(hidden.limit, line)),
            rights: hidden.and_then(|hidden| Some(Sourced::at(hidden.rights?, line))),
        };
        match self.segments.entry(register) {
            Entry::Occupied(mut old) if old.get().selector.value == selector => {
                let old = old.get_mut();
                again(&mut old.selector.lines, line);
                if new.base.is_some() {
                    (old.base, old.limit, old.rights) = (new.base, new.limit, new.rights);
                }
            }
            Entry::Occupied(mut old) => drop(old.insert(new)),
            Entry::Vacant(place) => drop(place.insert(new)),
        }
    }
}

/// Returns whether an MSR differs between threads or over time: FS, GS, KERNEL_GS, TSC and TSC_AUX.
fn is_of_a_task(number: u32) -> bool {
    const TSC: u32 = 0x10;
    let bases = [Msr::FsBase, Msr::GsBase, Msr::KernelGsBase, Msr::TscAux];
    number == TSC || bases.into_iter().any(|msr| msr.number() == number)
}

/// Returns whether two of a tool's explanations of an entry cannot be from one table. Data segments of threads move, and
/// BUSY and ACCESSED bits are set while a system runs.
fn is_other(mine: &PrintedDescriptor, printed: &PrintedDescriptor) -> bool {
    let mask = mine.mask & printed.mask;
    let flags = |of: &PrintedDescriptor| of.flags.unwrap_or_default() & mask;
    let is_system = flags(mine) & 0x10 == 0;
    let moving = if is_system { 0x2 } else { 0x1 };
    let limits = mine.limit.is_some() && printed.limit.is_some() && mine.limit != printed.limit;
    let bases = mine.base.is_some() && printed.base.is_some() && mine.base != printed.base;
    (flags(mine) ^ flags(printed)) & !moving != 0 || is_system && (limits || bases)
}

fn differs<T: PartialEq>(mine: &Option<Sourced<T>>, printed: &Option<T>) -> bool {
    mine.as_ref().zip(printed.as_ref()).is_some_and(|(mine, printed)| mine.value != *printed)
}

fn tell<T: PartialEq>(place: &mut Option<Sourced<T>>, value: Option<T>, line: usize) {
    let Some(value) = value else { return };
    match place {
        Some(printed) if printed.value == value => again(&mut printed.lines, line),
        _ => *place = Some(Sourced::at(value, line)),
    }
}

fn put<K: Ord>(place: Entry<'_, K, Sourced<u64>>, value: u64, line: usize) {
    match place {
        Entry::Occupied(mut old) if old.get().value == value => again(&mut old.get_mut().lines, line),
        Entry::Occupied(mut old) => drop(old.insert(Sourced::at(value, line))),
        Entry::Vacant(place) => drop(place.insert(Sourced::at(value, line))),
    }
}

fn add<T: Clone + PartialEq>(printed: &mut Vec<Sourced<T>>, value: &T, line: usize) {
    let is_room = printed.len() < MAX_EXPLANATIONS;
    match printed.iter_mut().find(|printed| printed.value == *value) {
        Some(printed) => again(&mut printed.lines, line),
        None if is_room => printed.push(Sourced::at(value.clone(), line)),
        None => {}
    }
}

fn again(lines: &mut Vec<usize>, line: usize) {
    if lines.last() != Some(&line) && lines.len() < MAX_LINES {
        lines.push(line);
    }
}
