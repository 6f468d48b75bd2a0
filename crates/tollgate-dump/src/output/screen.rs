use tollgate_output::figures;
use tollgate_output::table::{Look, Table, heading, paragraph};
use tollgate_x86::Width;

use super::item::{Item, mode};
use super::remarks::remarks;
use super::state::{Loose, handlers, items, loose, widths};
use super::walks::{Options, Walked, walks};
use super::{apart, star, tables, text};
use crate::{
    Dump, Joined, Reason, Register, Segment, Segmentation, Session, Table as TableRegister, WidthFound,
};

/// If there are more gates than these, only unusual ones are shown.
const MANY_GATES: usize = 40;
const MOST_COMPLAINTS: usize = 10;

pub(crate) fn too_few(left: usize, columns: usize) -> String {
    if left == 0 {
        return String::new();
    }
    let bytes = figures::count(left, "byte at the end is", "bytes at the end are");
    paragraph(&format!("{bytes} too few for one more."), columns, "")
}

/// Shows the states of a text.
pub fn render(dump: &Dump, session: &Session, options: &Options, columns: usize) -> String {
    let mut parts = Vec::new();
    for (at, state) in session.states.iter().enumerate() {
        let number = (session.states.len() > 1).then_some(at + 1);
        parts.push(one(state, number, options, columns));
    }
    parts.push(complaints(dump, columns));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn one(state: &Joined, number: Option<usize>, options: &Options, columns: usize) -> String {
    let mut parts = vec![introduction(state, number, columns)];
    parts.push(registers(state, columns));
    let widths = widths(state);
    for &width in &widths {
        let items = items(state, width);
        if widths.len() > 1 {
            parts.push(heading(&format!("Read as {}-bit tables", mode(width)), columns));
        }
        parts.push(shown(&items, options.explain, columns));
        parts.push(of_handlers(state, width, columns));
        parts.extend(loose(state, width).iter().map(|loose| of_loose(loose, options.explain, columns)));
        parts.push(disagreements(state, columns));
        if let Some((said, fits)) = star::compared(state, width) {
            let mark = if fits { "" } else { "! " };
            parts.push(said.iter().map(|sentence| paragraph(sentence, columns, mark)).collect());
        }
        for walked in walks(state, &items, width, options) {
            parts.push(walk(&walked, columns));
        }
        let remarks = remarks(state, &items);
        if !remarks.is_empty() {
            let mut text = heading("Common errors", columns);
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
    if let Some(apart) = state.apart {
        text.push_str(&paragraph(&apart::reason(apart), columns, ""));
    }
    text.extend(mode_of(state).map(|mode| paragraph(&mode, columns, "")));
    if state.segmentation() != Segmentation::Real {
        text.push_str(&paragraph(&width_reason(&state.width), columns, ""));
    }
    text
}

/// Names a mode in which segment registers do not hold selectors, or system-management mode.
fn mode_of(state: &Joined) -> Option<String> {
    let line = |register: Register| {
        let line = state.registers.get(&register).and_then(|value| value.lines.last());
        line.map_or_else(String::new, |line| format!(" (line {line})"))
    };
    let mode = match state.segmentation() {
        Segmentation::Real => Some(format!(
            "The processor is in real mode: CR0.PE is clear{}. A segment begins at 16 × the value of its register, and no table is \
             read for it. The IDT has 4 bytes for each vector; GDT, LDTR and TR are not used.",
            line(Register::CR0)
        )),
        Segmentation::Virtual8086 => Some(format!(
            "The processor is in virtual-8086 mode, in ring 3: EFLAGS.VM is set{}. A segment begins at 16 × the value of its \
             register, and no table is read for it.",
            line(Register::RFLAGS)
        )),
        Segmentation::Protected => None,
    };
    let is_managed = state.registers.get(&Register::SMM).is_some_and(|value| value.value != 0);
    let managed = is_managed.then(|| {
        format!("The processor is in system-management mode: the tool says SMM=1{}.", line(Register::SMM))
    });
    let sentences: Vec<String> = mode.into_iter().chain(managed).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn width_reason(found: &WidthFound) -> String {
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
        None => "It is unknown whether these are long-mode tables, so both readings are shown; choose with --mode 32 or 64."
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

fn registers(state: &Joined, columns: usize) -> String {
    let mut table = Table::new(&["register", "holds"]).with_words(&["holds"]);
    let digits = if state.width.width == Some(Width::Legacy) { 8 } else { 16 };
    let mut any = false;
    let mut row = |name: &str, holds: String, meaning: String| {
        any = true;
        table.row(Look::Plain, &[name.to_owned(), holds], &[meaning]);
    };
    for (name, register) in [("gdtr", &state.gdtr), ("idtr", &state.idtr)] {
        if let Some((holds, meaning)) = of_table(register, digits, name, state.segmentation()) {
            row(name, holds, meaning);
        }
    }
    for (register, segment) in &state.segments {
        let selector = segment.selector.value;
        let meaning = match state.segmentation() {
            Segmentation::Real | Segmentation::Virtual8086 if !register.is_of_system() => {
                of_sixteenth(segment)
            }
            Segmentation::Protected if !register.is_of_system() && segment.is_of_real_mode() => {
                format!("still as real mode loaded it: {}", of_sixteenth(segment))
            }
            Segmentation::Real => "not used in real mode".to_owned(),
            _ => of_selector(segment, state.width.width.unwrap_or(Width::Legacy)),
        };
        let base = state.bases.get(register).filter(|_| segment.base.is_none());
        let meaning = base.map_or(meaning.clone(), |base| format!("{meaning}, {}", of_base(base, digits)));
        row(register.name(), selector.to_string(), meaning);
    }
    for (register, table) in state.bases.iter().filter(|(known, _)| !state.segments.contains_key(known)) {
        row(register.name(), "not known".to_owned(), of_base(table, digits));
    }
    for (register, value) in &state.registers {
        let name = register.name();
        if let Some(set) = text::control(name, value.value) {
            row(name, format!("{:0digits$x}", value.value), set);
        } else if name == "cpl" {
            row(name, value.value.to_string(), String::new());
        } else if ["rip", "rsp", "cr2", "cr3"].contains(&name) {
            let symbol = state.symbols.get(register).map(|symbol| symbol.value.clone());
            row(name, format!("{:0digits$x}", value.value), symbol.unwrap_or_default());
        }
    }
    for (register, symbol) in state.symbols.iter().filter(|(known, _)| !state.registers.contains_key(known)) {
        row(register.name(), "not known".to_owned(), symbol.value.clone());
    }
    let mut text = if any { table.render(columns) } else { String::new() };
    text.push_str(&other_msrs(state, columns));
    text
}

fn other_msrs(state: &Joined, columns: usize) -> String {
    const MOST: usize = 8;
    let others: Vec<String> = state
        .msrs
        .iter()
        .filter(|(number, _)| tollgate_x86::Msr::by_number(**number).is_none())
        .map(|(number, value)| format!("{number:x} = {:x}", value.value))
        .collect();
    if others.is_empty() {
        return String::new();
    }
    let shown = others.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = match others.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more in --format json"),
    };
    paragraph(&format!("MSRs that no entry uses: {shown}{more}."), columns, "")
}

fn of_base(table: &TableRegister, digits: usize) -> String {
    let base = table.base.as_ref().map(|base| format!("base {:0digits$x}", base.value));
    let limit = table.limit.as_ref().map(|limit| format!("last offset {:x}", limit.value));
    base.into_iter().chain(limit).collect::<Vec<_>>().join(", ")
}

/// Shows a segment register of real or virtual-8086 mode. A base other than 16 × its value was set by a reset or in another
/// mode.
fn of_sixteenth(segment: &Segment) -> String {
    let value = u64::from(segment.selector.value.0);
    let base = segment.base.as_ref().map_or(16 * value, |(base, _)| base.value);
    let mut meaning = vec![format!("base {base:08x}")];
    if base != 16 * value {
        meaning.push(format!("from a reset or another mode: 16 × {value:x} is {:08x}", 16 * value));
    }
    meaning.extend(segment.limit.as_ref().map(|limit| format!("last offset {:x}", limit.value)));
    meaning.join(", ")
}

fn of_selector(segment: &Segment, width: Width) -> String {
    let selector = segment.selector.value;
    let mut meaning = if selector.is_null() {
        vec!["null".to_owned()]
    } else {
        vec![format!("entry {} of the {}, RPL {}", selector.index(), selector.table(), selector.rpl())]
    };
    let base = segment.base.as_ref().filter(|(base, _)| base.value != 0 || !selector.is_null());
    if let Some((base, bits)) = base {
        let digits = if *bits == 64 { 16 } else { 8 };
        meaning.push(format!("base {:0digits$x}", base.value));
    }
    // For a null selector only the base counts, for FS and GS in 64-bit mode.
    if !selector.is_null() {
        meaning.extend(segment.limit.as_ref().map(|limit| format!("last offset {:x}", limit.value)));
        let rights = segment.rights.as_ref().map(|rights| rights.value.with_limit(0));
        meaning.extend(rights.map(|rights| text::segment(&rights, width)));
    }
    meaning.join(", ")
}

fn of_table(
    register: &TableRegister,
    digits: usize,
    name: &str,
    segmentation: Segmentation,
) -> Option<(String, String)> {
    let base = register.base.as_ref().map(|base| format!("{:0digits$x}", base.value));
    let limit = register.limit.as_ref().map(|limit| limit.value);
    if base.is_none() && limit.is_none() {
        return None;
    }
    let holds = match limit {
        Some(limit) => format!("{} limit {limit:x}", base.as_deref().unwrap_or("base not known,")),
        None => base.unwrap_or_default(),
    };
    let meaning = match (name, limit) {
        ("idtr", Some(limit)) if segmentation == Segmentation::Real => {
            figures::count(((limit as usize + 1) / 4).min(256), "vector of 4 bytes", "vectors of 4 bytes")
        }
        ("gdtr", _) if segmentation == Segmentation::Real => "not used in real mode".to_owned(),
        (_, None) => "limit not known".to_owned(),
        ("idtr", Some(limit)) => {
            let size = if digits == 8 { 8 } else { 16 };
            // A vector has 8 bits, however large the table's limit is.
            figures::count(((limit as usize + 1) / size).min(256), "gate", "gates")
        }
        (_, Some(limit)) => figures::count((limit as usize + 1) / 8, "entry", "entries"),
    };
    Some((holds, meaning))
}

fn shown(items: &[Item], explain: bool, columns: usize) -> String {
    let gates = items.iter().filter(|item| item.vector().is_some()).count();
    if gates <= MANY_GATES || explain {
        return tables::render(items, explain, columns);
    }
    let (kept, left): (Vec<&Item>, Vec<&Item>) =
        items.iter().partition(|item| item.vector().is_none() || stands_out(item));
    let kept: Vec<Item> = kept.into_iter().cloned().collect();
    let mut text = tables::render(&kept, explain, columns);
    let output = format!(
        "{} more of the {gates} gates are interrupt gates for ring 0 or not present; --explain and --format json show all.",
        left.len()
    );
    text.push_str(&paragraph(&output, columns, ""));
    text
}

fn of_loose(loose: &Loose, explain: bool, columns: usize) -> String {
    /// Fewer bytes are not an entry.
    const ENTRY: usize = 16;
    const MOST: usize = 64;
    let place =
        loose.address.map_or_else(|| "Bytes without an address".to_owned(), |at| format!("Bytes at {at:x}"));
    if loose.items.is_empty() && loose.left > ENTRY {
        let bytes = figures::count(loose.left, "byte", "bytes");
        let output =
            format!("{place}: {bytes} that cannot be a table, since few of its entries would be present.");
        return paragraph(&output, columns, "");
    }
    let order = if loose.as_numbers { " of numbers, the highest byte first" } else { "" };
    let mut text = heading(&format!("{place}, read as the entries of a table{order}"), columns);
    let shown = &loose.items[..loose.items.len().min(MOST)];
    text.push_str(&tables::render(shown, explain, columns));
    if shown.len() < loose.items.len() {
        let output = format!("{} more are in --format json.", loose.items.len() - shown.len());
        text.push_str(&paragraph(&output, columns, ""));
    }
    text.push_str(&too_few(loose.left, columns));
    text
}

fn of_handlers(state: &Joined, width: Width, columns: usize) -> String {
    let handlers = handlers(state, width);
    if handlers.is_empty() {
        return String::new();
    }
    let digits = if width == Width::Long { 16 } else { 8 };
    let mut table = Table::new(&["at", "handler"]).with_words(&["handler"]);
    for gate in handlers {
        let target = match (gate.offset, gate.selector) {
            (Some(offset), _) => format!("{offset:0digits$x}"),
            (None, Some(selector)) => format!("task {selector}"),
            (None, None) => String::new(),
        };
        let kind = gate.offset.is_none() && gate.selector.is_none() && gate.symbol.is_none();
        let meaning = [
            kind.then(|| format!("no gate: {}", gate.kind)),
            gate.symbol.clone(),
            gate.stack.map(|stack| format!("on the stack {stack:0digits$x}")),
        ];
        let meaning: Vec<String> = meaning.into_iter().flatten().collect();
        table.row(Look::Plain, &[format!("int {:02x}", gate.vector), target], &[meaning.join(", ")]);
    }
    table.render(columns)
}

/// Returns whether a gate is open to ring 3, has a stack of its own, belongs to an exception, or is not an interrupt gate.
fn stands_out(item: &Item) -> bool {
    let (gate, width, stack) = match item {
        Item::Gate32(_, gate) => (gate, Width::Legacy, 0),
        Item::Gate64(_, gate) => (&gate.low, Width::Long, gate.ist()),
        _ => return true,
    };
    let is_usual = matches!(gate.gate_kind(width), Some((tollgate_x86::GateKind::Interrupt, false)));
    gate.p && (gate.dpl != 0 || stack != 0 || !is_usual)
}

fn disagreements(state: &Joined, columns: usize) -> String {
    let mut text = String::new();
    for contradiction in &state.contradictions {
        let output = format!("{}: {}.", at_lines(&contradiction.lines), contradiction.what);
        text.push_str(&paragraph(&output, columns, "! "));
    }
    for defect in &state.defects {
        text.push_str(&paragraph(&format!("{}: {}.", at_lines(&defect.lines), defect.of), columns, "! "));
    }
    text
}

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

/// Shows a walk step by step.
pub fn walk(walked: &Walked, columns: usize) -> String {
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

pub(crate) fn complaints(dump: &Dump, columns: usize) -> String {
    let mut text = String::new();
    for complaint in dump.complaints.iter().take(MOST_COMPLAINTS) {
        let output =
            format!("Line {}, read as {}: {}.", complaint.line, complaint.format.name(), complaint.wrong);
        text.push_str(&paragraph(&output, columns, "! "));
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
            &format!("The text was read up to line {line}; the rest exceeds the limit."),
            columns,
            "! ",
        ));
    }
    text
}
