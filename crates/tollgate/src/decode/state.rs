//! A machine's state, as far as a text tells of it, for eyes.

use tollgate_inspect::dump::{Dump, Joined, Reason, Session, Table as TableRegister, WidthFound};
use tollgate_x86::{Descriptor, Gate, Msr, Selector, Tss32, Tss64, WideDescriptor, WideGate, Width};

use super::item::{Item, Place};
use super::remarks::remarks;
use super::walks::{Walked, walks};
use super::{document, given};
use super::{tables, words};
use crate::args::DecodeArgs;
use crate::figures;
use crate::table::{Look, Table, heading, paragraph};

/// More gates than these are not all shown: those that differ from the others are.
const MANY_GATES: usize = 40;
/// So many complaints are shown.
const MOST_COMPLAINTS: usize = 10;

/// In which widths a state is to be read: the one that it tells, or both.
pub fn widths(state: &Joined) -> Vec<Width> {
    match state.width.width {
        Some(width) => vec![width],
        // Nothing that is read by width is there: one is enough.
        None if [Width::Legacy, Width::Long]
            .iter()
            .all(|&width| entries(state, width).is_empty() && loose(state, width).is_empty()) =>
        {
            vec![Width::Legacy]
        }
        None => vec![Width::Legacy, Width::Long],
    }
}

/// Everything in a state that is decoded, read in one width.
pub fn items(state: &Joined, width: Width) -> Vec<Item> {
    let mut items = entries(state, width);
    let msrs =
        state.msrs.iter().filter_map(|(number, value)| Some(Item::Msr(Msr::of(*number)?, value.value)));
    items.extend(msrs);
    items
}

fn entries(state: &Joined, width: Width) -> Vec<Item> {
    let gdt = state.gdt(width);
    let mut items: Vec<Item> = gdt
        .iter()
        .filter_map(|entry| descriptor(Some(Selector(entry.selector)), &entry.bytes.value, width))
        .collect();
    let told = state.told_descriptors.iter().filter(|(selector, _)| {
        gdt.iter().all(|entry| !covers(entry.selector, entry.bytes.value.len(), **selector))
    });
    items.extend(told.filter_map(|(selector, told)| {
        let descriptor = told.iter().find_map(|told| told.value.descriptor())?;
        Some(Item::Segment(Some(Selector(*selector)), descriptor))
    }));
    items.sort_by_key(|item| item.selector().map(|selector| selector.0));
    let idt = state.idt(width);
    items.extend(idt.iter().filter_map(|entry| gate(entry.vector, &entry.bytes.value, width)));
    items.extend(task(state, width));
    items
}

/// Whether an entry of so many bytes takes the place of a selector.
fn covers(first: u16, bytes: usize, selector: u16) -> bool {
    selector >= first && usize::from(selector - first) < bytes
}

fn descriptor(selector: Option<Selector>, bytes: &[u8], width: Width) -> Option<Item> {
    if let Some(wide) = bytes.first_chunk::<16>() {
        let is_gate = tollgate_x86::SystemKind::of(wide[5]).is_gate();
        return Some(match is_gate {
            true => Item::Gate64(selector.map_or(Place::Untold, Place::Selector), WideGate::decode(*wide)),
            false => Item::System(selector, WideDescriptor::decode(*wide)),
        });
    }
    let bytes = bytes.first_chunk::<8>()?;
    let descriptor = Descriptor::decode(*bytes);
    let is_gate = matches!(descriptor.kind(), tollgate_x86::Kind::System(kind) if kind.is_gate());
    Some(match is_gate && width == Width::Legacy {
        true => Item::Gate32(selector.map_or(Place::Untold, Place::Selector), Gate::decode(*bytes)),
        false => Item::Segment(selector, descriptor),
    })
}

fn gate(vector: u8, bytes: &[u8], width: Width) -> Option<Item> {
    Some(match width {
        Width::Legacy => Item::Gate32(Place::Vector(vector), Gate::decode(*bytes.first_chunk()?)),
        Width::Long => Item::Gate64(Place::Vector(vector), WideGate::decode(*bytes.first_chunk()?)),
    })
}

/// The bytes of the TSS as far as they follow each other from its beginning: later fields are told by themselves.
fn task(state: &Joined, width: Width) -> Option<Item> {
    let task = state.task(width);
    let base = task.base.as_ref()?.0.value;
    let limit = task.limit.as_ref().map(|(limit, _)| limit.value);
    let last = limit.unwrap_or(u64::MAX);
    let size = match width {
        Width::Legacy => Tss32::SIZE,
        Width::Long => Tss64::SIZE,
    };
    let within = (0..size as u64).take_while(|at| *at <= last);
    let bytes: Vec<u8> = within.map_while(|at| state.memory.byte(base.wrapping_add(at))).collect();
    (!bytes.is_empty()).then_some(match width {
        Width::Legacy => Item::Tss32(bytes, limit),
        Width::Long => Item::Tss64(bytes, limit),
    })
}

/// Bytes that nothing tells the meaning of, with their address where that is told, as the entries that they would be.
pub struct Loose {
    /// The address of the first byte.
    pub address: Option<u64>,
    /// The entries.
    pub items: Vec<Item>,
    /// How many bytes at the end are too few for one more.
    pub left: usize,
}

/// The bytes of a state that lie in no table that it tells of.
pub fn loose(state: &Joined, width: Width) -> Vec<Loose> {
    let mut stretches: Vec<(Option<u64>, Vec<u8>)> = Vec::new();
    for (address, bytes, _) in
        state.memory.stretches().filter(|(address, ..)| !is_known(state, width, *address))
    {
        match stretches.last_mut() {
            // Lines of one listing are one stretch.
            Some((Some(first), known)) if first.checked_add(known.len() as u64) == Some(address) => {
                known.extend_from_slice(bytes);
            }
            _ => stretches.push((Some(address), bytes.to_vec())),
        }
    }
    stretches.extend(state.loose.iter().map(|told| (None, told.value.clone())));
    let read = stretches.into_iter().map(|(address, bytes)| {
        let (items, left) = given::of_table(&bytes, width);
        Loose { address, items, left }
    });
    read.collect()
}

/// Whether an address lies in the IDT, the GDT or the TSS, or where they would be if they went on.
fn is_known(state: &Joined, width: Width, address: u64) -> bool {
    let task = state.task(width);
    let told = [
        (state.idtr.base.as_ref(), state.idtr.limit.as_ref().map_or(0xfff, |it| it.value.into())),
        (state.gdtr.base.as_ref(), state.gdtr.limit.as_ref().map_or(0xffff, |it| it.value.into())),
        (task.base.as_ref().map(|(base, _)| base), task.limit.as_ref().map_or(0x67, |(it, _)| it.value)),
    ];
    told.into_iter().any(|(base, last)| {
        base.is_some_and(|base| address.checked_sub(base.value).is_some_and(|at| at <= last))
    })
}

/// All of it.
pub fn render(dump: &Dump, session: &Session, args: &DecodeArgs, columns: usize) -> String {
    let mut parts = Vec::new();
    for (at, state) in session.states.iter().enumerate() {
        let number = (session.states.len() > 1).then_some(at + 1);
        parts.push(one(state, number, args, columns));
    }
    parts.push(complaints(dump, columns));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn one(state: &Joined, number: Option<usize>, args: &DecodeArgs, columns: usize) -> String {
    let mut parts = vec![introduction(state, number, columns)];
    parts.push(registers(state, columns));
    let widths = widths(state);
    for &width in &widths {
        let items = items(state, width);
        if widths.len() > 1 {
            parts.push(heading(&format!("Read as {}-bit tables", document::mode(width)), columns));
        }
        parts.push(shown(&items, args.explain, columns));
        parts.extend(loose(state, width).iter().map(|loose| of_loose(loose, args.explain, columns)));
        parts.push(disagreements(state, columns));
        for walked in walks(state, &items, width, args) {
            parts.push(walk(&walked, columns));
        }
        let remarks = remarks(state, &items);
        if !remarks.is_empty() {
            let mut text = heading("Often told otherwise", columns);
            remarks.iter().for_each(|remark| text.push_str(&paragraph(remark, columns, "- ")));
            parts.push(text);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn introduction(state: &Joined, number: Option<usize>, columns: usize) -> String {
    let name = state.heading.as_ref().map(|heading| heading.text.trim().to_owned());
    let (first, last) = state.lines;
    let lines = format!("lines {first} to {last}");
    let title = match (number, name) {
        (Some(number), Some(name)) => format!("{number}. {name}, {lines}"),
        (Some(number), None) => format!("{number}. {lines}"),
        (None, Some(name)) => format!("{name}, {lines}"),
        (None, None) => String::new(),
    };
    let mut text = if title.is_empty() { title } else { heading(&title, columns) };
    text.push_str(&paragraph(&width_told(&state.width), columns, ""));
    text
}

fn width_told(found: &WidthFound) -> String {
    let reasons = |width| {
        let of = found.reasons.iter().filter(move |reason| reason.width == width);
        of.take(2).map(reason).collect::<Vec<_>>().join("; ")
    };
    match found.width {
        Some(width) => {
            let sure = if found.is_certain { "" } else { "probably " };
            let reasons = reasons(width);
            let why = if reasons.is_empty() { String::new() } else { format!(": {reasons}") };
            format!("The tables are {sure}those of {}{why}.", mode_name(width))
        }
        None => "Nothing tells whether the tables are those of long mode: what they would be in either is shown, and --mode \
                 32 or 64 chooses."
            .to_owned(),
    }
}

fn mode_name(width: Width) -> &'static str {
    match width {
        Width::Legacy => "32-bit protected mode",
        Width::Long => "long mode",
    }
}

fn reason(reason: &Reason) -> String {
    match reason.line {
        Some(line) => format!("{} (line {line})", reason.why),
        None => reason.why.clone(),
    }
}

/// What registers hold.
fn registers(state: &Joined, columns: usize) -> String {
    let mut table = Table::new(&["register", "holds"]).with_words(&["holds"]);
    let digits = if state.width.width == Some(Width::Legacy) { 8 } else { 16 };
    let mut any = false;
    let mut row = |name: &str, holds: String, meaning: String| {
        any = true;
        table.row(Look::Plain, &[name.to_owned(), holds], &[meaning]);
    };
    for (name, register) in [("gdtr", &state.gdtr), ("idtr", &state.idtr)] {
        if let Some((holds, meaning)) = of_table(register, digits, name) {
            row(name, holds, meaning);
        }
    }
    for (register, segment) in &state.segments {
        let selector = segment.selector.value;
        let mut meaning =
            format!("entry {} of the {}, RPL {}", selector.index(), selector.table(), selector.rpl());
        if selector.is_null() {
            meaning = "null".to_owned();
        }
        if let Some((base, bits)) = &segment.base {
            let digits = if *bits == 64 { 16 } else { 8 };
            meaning.push_str(&format!("; base {:0digits$x}", base.value));
        }
        if let Some(limit) = &segment.limit {
            meaning.push_str(&format!(", last offset {:x}", limit.value));
        }
        if let Some(rights) = &segment.rights {
            meaning.push_str(&format!(
                ", {}",
                words::segment(&rights.value.with_limit(0), state.width.width.unwrap_or(Width::Legacy))
            ));
        }
        row(register.name(), selector.to_string(), meaning);
    }
    for (register, value) in &state.registers {
        let name = register.name();
        if let Some(set) = words::control(name, value.value) {
            row(name, format!("{:0digits$x}", value.value), set);
        } else if ["rip", "rsp", "cr3", "cpl"].contains(&name) {
            row(name, format!("{:0digits$x}", value.value), String::new());
        }
    }
    if any { table.render(columns) } else { String::new() }
}

fn of_table(register: &TableRegister, digits: usize, name: &str) -> Option<(String, String)> {
    let base = register.base.as_ref().map(|base| format!("{:0digits$x}", base.value));
    let limit = register.limit.as_ref().map(|limit| limit.value);
    if base.is_none() && limit.is_none() {
        return None;
    }
    let holds = match limit {
        Some(limit) => format!("{} limit {limit:x}", base.as_deref().unwrap_or("base not told,")),
        None => base.unwrap_or_default(),
    };
    let meaning = match (name, limit) {
        (_, None) => "limit not told".to_owned(),
        ("idtr", Some(limit)) => {
            let size = if digits == 8 { 8 } else { 16 };
            figures::count((limit as usize + 1) / size, "gate", "gates")
        }
        (_, Some(limit)) => figures::count((limit as usize + 1) / 8, "entry", "entries"),
    };
    Some((holds, meaning))
}

/// The items; where there are many gates, those that stand out.
fn shown(items: &[Item], explain: bool, columns: usize) -> String {
    let gates = items.iter().filter(|item| item.vector().is_some()).count();
    if gates <= MANY_GATES || explain {
        return tables::render(items, explain, columns);
    }
    let (kept, left): (Vec<&Item>, Vec<&Item>) =
        items.iter().partition(|item| item.vector().is_none() || stands_out(item));
    let kept: Vec<Item> = kept.into_iter().cloned().collect();
    let mut text = tables::render(&kept, explain, columns);
    let told = format!(
        "{} more of the {gates} gates are interrupt gates for ring 0, or not present; --explain and --format json have all of them.",
        left.len()
    );
    text.push_str(&paragraph(&told, columns, ""));
    text
}

fn of_loose(loose: &Loose, explain: bool, columns: usize) -> String {
    /// More of what nobody said to be a table are not shown.
    const MOST: usize = 64;
    let place =
        loose.address.map_or_else(|| "Bytes without an address".to_owned(), |at| format!("Bytes at {at:x}"));
    let mut text = heading(&format!("{place}, read as the entries of a table"), columns);
    let shown = &loose.items[..loose.items.len().min(MOST)];
    text.push_str(&tables::render(shown, explain, columns));
    if shown.len() < loose.items.len() {
        let told = format!("{} more are in --format json.", loose.items.len() - shown.len());
        text.push_str(&paragraph(&told, columns, ""));
    }
    if loose.left > 0 {
        let bytes = figures::count(loose.left, "byte at the end is", "bytes at the end are");
        text.push_str(&paragraph(&format!("{bytes} too few for one more."), columns, ""));
    }
    text
}

/// Open to ring 3, with a stack of its own, an exception's, or something else than an interrupt gate.
fn stands_out(item: &Item) -> bool {
    let (gate, width, stack) = match item {
        Item::Gate32(_, gate) => (gate, Width::Legacy, 0),
        Item::Gate64(_, gate) => (&gate.low, Width::Long, gate.ist()),
        _ => return true,
    };
    let is_usual = matches!(gate.gate_kind(width), Some((tollgate_x86::GateKind::Interrupt, false)));
    gate.p && (gate.dpl != 0 || stack != 0 || !is_usual)
}

/// What does not agree, and what a tool is known to print wrongly.
fn disagreements(state: &Joined, columns: usize) -> String {
    let mut text = String::new();
    for contradiction in &state.contradictions {
        let told = format!("{}: {}.", at_lines(&contradiction.lines), contradiction.what);
        text.push_str(&paragraph(&told, columns, "! "));
    }
    for defect in &state.defects {
        text.push_str(&paragraph(&format!("{}: {}.", at_lines(&defect.lines), defect.of), columns, "! "));
    }
    text
}

/// `Line 3`, `Lines 3 and 17`
fn at_lines(lines: &[usize]) -> String {
    const MOST: usize = 6;
    match lines {
        [] => "Here".to_owned(),
        [only] => format!("Line {only}"),
        [first @ .., last] if lines.len() <= MOST => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("Lines {} and {last}", first.join(", "))
        }
        [first, .., last] => format!("{} lines from {first} to {last}", lines.len()),
    }
}

fn walk(walked: &Walked, columns: usize) -> String {
    let vendor = match walked.vendor {
        Some("amd") => ", AMD",
        Some(_) => ", Intel",
        None => "",
    };
    let title = format!("{} from ring {}, {}{vendor}", walked.entry, walked.cpl, walked.from);
    let mut text = heading(&title, columns);
    for (number, step) in walked.steps.iter().enumerate() {
        text.push_str(&paragraph(step, columns, &format!("{:3}. ", number + 1)));
    }
    text.push_str(&paragraph(&walked.outcome, columns, "  => "));
    text
}

/// The lines that look like data that went wrong.
pub fn complaints(dump: &Dump, columns: usize) -> String {
    let mut text = String::new();
    for complaint in dump.complaints.iter().take(MOST_COMPLAINTS) {
        let told =
            format!("Line {}, read as {}: {}.", complaint.line, complaint.format.name(), complaint.wrong);
        text.push_str(&paragraph(&told, columns, "! "));
    }
    let more = dump.complaints.len().saturating_sub(MOST_COMPLAINTS) + dump.more_complaints;
    if more > 0 {
        text.push_str(&paragraph(
            &format!("{} like them.", figures::count(more, "more line", "more lines")),
            columns,
            "! ",
        ));
    }
    if let Some(line) = dump.cut {
        text.push_str(&paragraph(
            &format!("From line {line} on nothing was read: so much is kept and no more."),
            columns,
            "! ",
        ));
    }
    text
}
