use std::fmt::Write as _;

use tollgate_x86::{Descriptor, Selector, Width};

use crate::joined::{
    Contradiction, Defect, DefectOf, GdtEntry, IdtEntry, Joined, Origin, Segment, Segmentation, Weight,
};
use crate::piece::{Register, SegmentRegister};
use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::tables::{flags, upper_base};
use crate::{format::Format, sourced::Sourced};

const MOST: usize = 256;
/// TSS BUSY and ACCESSED, which are set while a system runs.
const MOVING: u16 = 0x3;

pub(crate) fn check(state: &mut Joined) {
    let mut found = Found::default();
    found.forms(state);
    for width in [Width::Legacy, Width::Long] {
        if state.width.width.is_none_or(|printed| printed == width) {
            found.descriptors(state, width);
            found.gates(state, width);
            found.task(state, width);
        }
    }
    found.limits(state);
    found.tools(state);
    found.defects.append(&mut state.defects);
    found.contradictions.dedup();
    found.defects.sort_by_key(|defect| (defect.of, defect.lines.first().copied()));
    found.defects.dedup();
    found.contradictions.truncate(MOST);
    found.defects.truncate(MOST);
    state.contradictions = found.contradictions;
    state.defects = found.defects;
}

#[derive(Default)]
struct Found {
    contradictions: Vec<Contradiction>,
    defects: Vec<Defect>,
}

impl Found {
    fn say<'a>(&mut self, lines: impl IntoIterator<Item = &'a usize>, what: String) {
        let mut lines: Vec<usize> = lines.into_iter().copied().collect();
        lines.sort_unstable();
        lines.dedup();
        if self.contradictions.len() <= MOST {
            self.contradictions.push(Contradiction { lines, what });
        }
    }

    fn defect(&mut self, of: DefectOf, lines: &[usize]) {
        if self.defects.len() <= MOST {
            self.defects.push(Defect { lines: lines.to_vec(), of });
        }
    }

    fn forms(&mut self, state: &Joined) {
        let of = |width| {
            let mut reasons = state.width.reasons.iter().filter(move |reason| reason.width == width);
            reasons.find(|reason| reason.weight == Weight::Proof)
        };
        if let Some((legacy, long)) = of(Width::Legacy).zip(of(Width::Long)) {
            let lines: Vec<usize> = legacy.line.into_iter().chain(long.line).collect();
            self.say(&lines, format!("{}, and {}", legacy.why, long.why));
        }
    }

    /// Compares explanations with bytes and hidden parts.
    fn descriptors(&mut self, state: &Joined, width: Width) {
        let entries = state.gdt(width);
        let entry_of = |selector: u16| {
            let index = entries.binary_search_by_key(&selector, |entry| entry.selector).ok()?;
            entries.get(index)
        };
        for (selector, rows) in &state.printed_descriptors {
            for row in rows {
                self.row(state, width, row, entry_of(*selector), entry_of(selector.wrapping_sub(8)));
            }
            if let [first, second, ..] = rows.as_slice() {
                self.rows(*selector, first, second);
            }
        }
        for (register, segment) in holders(state) {
            let selector = segment.selector.value;
            let Some(entry) = entry_of(selector.offset()).filter(|_| !selector.is_null()) else { continue };
            let Some(descriptor) = low(entry) else { continue };
            if let Some(rights) = &segment.rights
                && (flags(rights.value) ^ descriptor.dg_flags()) & !MOVING != 0
            {
                let (hidden, table) = (flags(rights.value), descriptor.dg_flags());
                let what = format!(
                    "{} was loaded with rights {hidden:03x}, and its descriptor has {table:03x}",
                    register.name()
                );
                self.say(rights.lines.iter().chain(&entry.bytes.lines), what);
            }
        }
    }

    /// Compares one row of `dg` or `info gdt` with the bytes of its entry.
    fn row(
        &mut self,
        state: &Joined,
        width: Width,
        row: &Sourced<PrintedDescriptor>,
        entry: Option<&GdtEntry>,
        before: Option<&GdtEntry>,
    ) {
        let printed = &row.value;
        let is_extended = printed.base.is_some_and(|base| base >> 31 == 0x1_ffff_ffff);
        let is_data = printed.flags.is_some_and(|flags| flags & printed.mask & 0x10 != 0);
        if printed.is_wide && is_extended && is_data {
            self.defect(DefectOf::DgExtendsSign, &row.lines);
        }
        let is_wide_kind =
            printed.flags.is_some_and(|flags| matches!(flags & printed.mask & 0x1f, 2 | 9 | 0xb));
        if width == Width::Long && is_wide_kind && is_cut(printed) {
            let of = if printed.is_wide { DefectOf::DgCutsBase } else { DefectOf::BochsCutsBase };
            self.defect(of, &row.lines);
            if let Some(upper) =
                state.printed_descriptors.get(&printed.selector.wrapping_add(8)).and_then(|rows| rows.last())
                && (upper.value.kind.starts_with("<Reserved>") || upper.value.raw.is_some())
            {
                self.defect(if printed.is_wide { DefectOf::DgBogusRow } else { of }, &upper.lines);
            }
        }
        if let Some(descriptor) = entry.and_then(low) {
            let bytes = entry.map_or(&[][..], |entry| &entry.bytes.lines);
            let lines = [&row.lines, bytes].concat();
            for what in disagreements(printed, &descriptor) {
                self.say(&lines, format!("selector {:04x}: {what}", printed.selector));
            }
        } else if let Some((both, printed_row)) =
            before.filter(|_| width == Width::Long).and_then(|entry| upper(entry, printed))
        {
            // The row is the upper half of the previous entry, so it must at least match the bytes.
            if both != printed_row {
                let what = format!(
                    "selector {:04x}: the upper half of the base is {printed_row:08x} in the row and {both:08x} in the bytes",
                    printed.selector.wrapping_sub(8)
                );
                self.say(&row.lines, what);
            }
        }
    }

    fn rows(
        &mut self,
        selector: u16,
        first: &Sourced<PrintedDescriptor>,
        second: &Sourced<PrintedDescriptor>,
    ) {
        let (a, b) = (&first.value, &second.value);
        let mut what = format!("selector {selector:04x} is printed twice with different values");
        let same = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        let is_alike = same(a.base, b.base) && same(a.limit, b.limit);
        if let (false, Some(first), Some(second)) = (same(a.base, b.base), a.base, b.base) {
            let _ = write!(what, ": bases {first:x} and {second:x}");
        }
        let mask = a.mask & b.mask & !MOVING;
        let is_alike = is_alike && (a.flags.unwrap_or_default() ^ b.flags.unwrap_or_default()) & mask == 0;
        if !is_alike {
            self.say(first.lines.iter().chain(&second.lines), what);
        }
    }

    /// Compares explanations of gates with their bytes.
    fn gates(&mut self, state: &Joined, width: Width) {
        let entries = state.idt(width);
        for (vector, rows) in &state.printed_gates {
            let entry = entries
                .binary_search_by_key(vector, |entry| entry.vector)
                .ok()
                .and_then(|at| entries.get(at));
            for row in rows {
                if row.value.has_noise {
                    self.defect(DefectOf::IdtVectorNoise, &row.lines);
                }
                if let Some(what) = entry.and_then(|entry| gate_disagreement(&row.value, entry)) {
                    let lines = entry.map_or(&[][..], |entry| &entry.bytes.lines);
                    self.say(row.lines.iter().chain(lines), format!("vector {vector:02x}: {what}"));
                }
            }
        }
    }

    /// Compares TR's hidden part with its descriptor and the TSS.
    fn task(&mut self, state: &Joined, width: Width) {
        let task = state.task(width);
        let Some(tr) = state.segments.get(&SegmentRegister::Tr) else { return };
        let selector = tr.selector.value;
        let places = [
            (state.segment_in_memory(selector, width), Origin::Bytes, "its descriptor in memory"),
            (
                state.segment_explained(selector, width),
                Origin::Explained,
                "its descriptor as it was explained",
            ),
        ];
        for (segment, origin, name) in places {
            let (Some((base, limit)), Some((my_base, my_origin))) = (segment, &task.base) else { continue };
            if *my_origin == origin {
                continue;
            }
            if base.value != my_base.value {
                let what = format!("the TSS is at {:x}, and by {name} at {:x}", my_base.value, base.value);
                self.say(my_base.lines.iter().chain(&base.lines), what);
            }
            if let Some((my_limit, _)) =
                task.limit.as_ref().filter(|(my_limit, _)| my_limit.value != limit.value)
            {
                let what = format!(
                    "the TSS has a limit of {:x}, and by {name} of {:x}",
                    my_limit.value, limit.value
                );
                self.say(my_limit.lines.iter().chain(&limit.lines), what);
            }
        }
        let in_memory: Vec<_> = task.fields.iter().filter(|_| task.base.is_some()).collect();
        for (name, printed) in &state.printed_tss {
            let other = in_memory.iter().find(|(field, value)| field == name && value.value != printed.value);
            if let Some((_, other)) = other {
                let what =
                    format!("{name} of the TSS is {:x}, and {:x} in memory", printed.value, other.value);
                self.say(printed.lines.iter().chain(&other.lines), what);
            }
        }
    }

    fn limits(&mut self, state: &Joined) {
        if let Some(limit) = &state.idtr.limit
            && let Some(width) = state.width.width
        {
            let size = if width == Width::Long { 16 } else { 8 };
            let beyond = |vector: u8| (u64::from(vector) + 1) * size - 1 > u64::from(limit.value);
            for (vector, rows) in state.printed_gates.iter().filter(|(vector, _)| beyond(**vector)) {
                let what = format!("vector {vector:02x} is printed, and IDTR's limit is {:x}", limit.value);
                self.say(limit.lines.iter().chain(&rows[0].lines), what);
            }
        }
        let Some(limit) = &state.gdtr.limit else { return };
        let beyond = |selector: u16| u64::from(selector | 7) > u64::from(limit.value);
        let in_gdt = |selector: u16| Selector(selector).table() == tollgate_x86::Table::Gdt;
        let rows = state.printed_descriptors.iter().filter(|(selector, _)| in_gdt(**selector));
        for (selector, rows) in rows.filter(|(selector, _)| beyond(**selector)) {
            // A debugger shows entries that do not exist as reserved.
            if rows[0].value.flags.is_some_and(|flags| flags != 0) {
                let what =
                    format!("selector {selector:04x} is printed, and GDTR's limit is {:x}", limit.value);
                self.say(limit.lines.iter().chain(&rows[0].lines), what);
            }
        }
        for (register, segment) in holders(state) {
            let Selector(selector) = segment.selector.value;
            if selector & 0b100 == 0 && selector > 3 && beyond(selector & !0b111) {
                let what = format!(
                    "{} holds {selector:04x}, and GDTR's limit is {:x}",
                    register.name(),
                    limit.value
                );
                self.say(limit.lines.iter().chain(&segment.selector.lines), what);
            }
        }
    }

    /// Reports values that tools omit or truncate.
    fn tools(&mut self, state: &Joined) {
        let is_long = state.width.width == Some(Width::Long);
        if state.formats.contains(&Format::Qemu) && state.segmentation() != Segmentation::Real {
            let segment = state.segments.values().find(|segment| segment.base.is_some());
            if let Some(segment) =
                segment.filter(|_| state.gdtr.base.is_some() && state.gdt(Width::Legacy).is_empty())
            {
                self.defect(DefectOf::QemuHiddenOnly, &segment.selector.lines);
            }
            if let Some(cr4) = state.registers.get(&Register::CR4).filter(|_| is_long) {
                self.defect(DefectOf::QemuCutsCr4, &cr4.lines);
            }
            let cut = state
                .segments
                .values()
                .find_map(|segment| segment.base.as_ref().filter(|(_, bits)| *bits == 32));
            if let Some((base, _)) = cut.filter(|_| is_long) {
                self.defect(DefectOf::QemuCutsBases, &base.lines);
            }
        }
        if let Some(tss) =
            state.base_of(SegmentRegister::Tr).filter(|_| state.formats.contains(&Format::KdPcr) && is_long)
        {
            self.defect(DefectOf::PcrTakesNames, &tss.lines);
        }
        if state.formats.contains(&Format::BochsTss) && is_long {
            let lines = state.printed_tss.values().next().map_or(&[][..], |printed| &printed.lines);
            self.defect(DefectOf::BochsReadsTss32, lines);
        }
        if state.formats.contains(&Format::BochsTables) {
            let mut rows = state.printed_descriptors.values().flatten();
            if let Some(row) = rows.find(|row| {
                row.value.mask & 0x90 == 0x10 && row.value.flags.is_some_and(|flags| flags & 0x10 != 0)
            }) {
                self.defect(DefectOf::BochsLeavesOut, &row.lines);
            }
        }
    }
}

/// Returns the registers that hold selectors: none in real mode, TR and LDTR in virtual-8086 mode.
fn holders(state: &Joined) -> impl Iterator<Item = (&SegmentRegister, &Segment)> {
    let segmentation = state.segmentation();
    state.segments.iter().filter(move |(register, segment)| match segmentation {
        Segmentation::Real => false,
        Segmentation::Virtual8086 => register.is_of_system(),
        Segmentation::Protected => register.is_of_system() || !segment.is_of_real_mode(),
    })
}

fn low(entry: &GdtEntry) -> Option<Descriptor> {
    Some(Descriptor::decode(entry.bytes.value.get(..8)?.try_into().ok()?))
}

/// Returns whether the row has only the low half of a 64-bit base.
fn is_cut(printed: &PrintedDescriptor) -> bool {
    let is_low = printed.base.is_some_and(|base| base <= u64::from(u32::MAX) || base >> 32 == 0xffff_ffff);
    is_low && (printed.is_wide || printed.kind.starts_with("32-Bit"))
}

fn upper(entry: &GdtEntry, row: &PrintedDescriptor) -> Option<(u32, u32)> {
    let half = u32::from_le_bytes(entry.bytes.value.get(8..12)?.try_into().ok()?);
    let printed = match row.raw {
        Some([a, b, c, d, ..]) => u32::from_le_bytes([a, b, c, d]),
        None => upper_base(row.base?, row.limit?),
    };
    Some((half, printed))
}

fn disagreements(printed: &PrintedDescriptor, descriptor: &Descriptor) -> Vec<String> {
    if let Some(raw) = printed.raw {
        let is_same = raw == descriptor.encode();
        return if is_same {
            Vec::new()
        } else {
            vec!["the bytes in the row are not those in memory".to_owned()]
        };
    }
    let mut all = Vec::new();
    // The upper half of a wider base is not in these 8 bytes.
    if let Some(base) = printed.base.filter(|base| *base as u32 != descriptor.base) {
        all.push(format!("the base is {base:x} in the row and {:x} in the bytes", descriptor.base));
    }
    // Bochs does not scale the limit of a system segment.
    let limits = [u64::from(descriptor.effective_limit()), u64::from(descriptor.limit)];
    let limits =
        if printed.is_wide || descriptor.s || printed.mask == 0xfff { &limits[..1] } else { &limits[..] };
    if let Some(limit) = printed.limit.filter(|limit| !limits.contains(limit)) {
        all.push(format!(
            "the limit is {limit:x} in the row and {:x} in the bytes",
            descriptor.effective_limit()
        ));
    }
    let moving = if descriptor.s { 0x1 } else { 0x2 };
    let of = |flags: u16| flags & printed.mask & !moving;
    if let Some(flags) = printed.flags.filter(|flags| of(*flags) != of(descriptor.dg_flags())) {
        let (row, bytes) = (flags & printed.mask, descriptor.dg_flags() & printed.mask);
        all.push(format!("the flags are {row:03x} in the row and {bytes:03x} in the bytes"));
    }
    all
}

fn gate_disagreement(printed: &PrintedGate, entry: &IdtEntry) -> Option<String> {
    let bytes = &entry.bytes.value;
    let low = tollgate_x86::Gate::decode(bytes.get(..8)?.try_into().ok()?);
    let high = bytes.get(8..12).and_then(|half| half.try_into().ok()).map_or(0, u32::from_le_bytes);
    let offset = u64::from(high) << 32 | u64::from(low.offset);
    if let Some(raw) = printed.raw {
        return (raw[..] != bytes[..8]).then(|| "the bytes in the row are not those in memory".to_owned());
    }
    if let Some(printed) = printed.offset.filter(|printed| *printed != offset) {
        return Some(format!("the gate leads to {printed:x} in the row and to {offset:x} in the bytes"));
    }
    if let Some(Selector(printed)) = printed.selector.filter(|printed| *printed != low.selector) {
        return Some(format!(
            "the gate's selector is {printed:04x} in the row and {} in the bytes",
            low.selector
        ));
    }
    let dpl = printed.dpl.filter(|dpl| *dpl != low.dpl)?;
    Some(format!("the gate's DPL is {dpl} in the row and {} in the bytes", low.dpl))
}
