pub mod json;

use tollgate_inspect::{Attempt, Mechanism, Ring3, TableRegister};
use tollgate_model::{Fact, Unknown};
use tollgate_output::table::{Look, Table, heading, paragraph};
use tollgate_x86::{Cr0, Msr, Selector, WideDescriptor};

use super::item::Item;
use super::tables;
use crate::{Dump, Piece, SegmentRegister, What};

const SIGFPE: i32 = 8;
const SEGMENTS: [&str; 6] = ["cs", "ss", "ds", "es", "fs", "gs"];

/// The tables of this machine, as read.
pub struct Live {
    /// The tables as a program in ring 3 sees them, or why that is unknown.
    pub ring3: Result<Ring3, Unknown>,
    /// The ways into the kernel.
    pub mechanisms: Vec<Mechanism>,
    /// MSRs of processor 0.
    pub msrs: Vec<(Msr, Result<u64, Unknown>)>,
    /// Tables of processor 0.
    pub tables: Result<tollgate_inspect::Tables, Unknown>,
}

impl Live {
    /// Converts the readings of ring 0 into a dump, so that both are shown alike.
    pub fn as_dump(&self) -> Dump {
        let mut pieces = Vec::new();
        if let Ok(tables) = &self.tables {
            for region in [&tables.idt, &tables.gdt, &tables.tss] {
                pieces.push(What::Bytes { address: Some(region.address), bytes: region.bytes.clone() });
            }
            for (table, region) in
                [(crate::TableRegister::Idt, &tables.idt), (crate::TableRegister::Gdt, &tables.gdt)]
            {
                let limit = u32::try_from(region.bytes.len()).ok().and_then(|size| size.checked_sub(1));
                pieces.push(What::TableRegister { table, base: Some(region.address), limit });
            }
            let selector = Selector(tables.tr);
            pieces.push(What::Segment { register: SegmentRegister::Tr, selector, hidden: None });
            // The TSS that the processor uses is at another address of the same memory, which its descriptor has.
            let descriptor =
                tables.gdt.bytes.get(selector.offset().into()..).and_then(|bytes| bytes.first_chunk());
            if let Some(descriptor) = descriptor {
                let address = Some(WideDescriptor::decode(*descriptor).base());
                pieces.push(What::Bytes { address, bytes: tables.tss.bytes.clone() });
            }
        }
        let msrs = self.msrs.iter().filter_map(|(msr, value)| Some((msr.number(), *value.as_ref().ok()?)));
        pieces.extend(msrs.map(|(number, value)| What::Msr { number, value }));
        let piece = |(at, what)| Piece { line: at + 1, format: crate::Format::Hex, block: at, what };
        Dump { pieces: pieces.into_iter().enumerate().map(piece).collect(), ..Dump::default() }
    }

    /// Shows the readings as text.
    pub fn render(&self, explain: bool, width: usize) -> String {
        let mut parts = vec![ways(&self.mechanisms, width)];
        match &self.ring3 {
            Ok(seen) => {
                parts.extend([segments(seen, explain, width), registers(seen, width), vectors(seen, width)])
            }
            Err(why) => parts.push(paragraph(&format!("Ring 3 could not be tried: {why}."), width, "")),
        }
        parts.push(self.beyond(width));
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn beyond(&self, width: usize) -> String {
        let msrs = self.msrs.iter().find_map(|(_, value)| value.as_ref().err());
        let reasons = [("MSRs", msrs), ("The tables themselves", self.tables.as_ref().err())];
        let output = reasons.into_iter().filter_map(|(what, why)| Some(format!("{what}: {}.", why?)));
        output.map(|sentence| paragraph(&sentence, width, "")).collect()
    }
}

fn ways(mechanisms: &[Mechanism], width: usize) -> String {
    let mut table = Table::new(&["way into the kernel", "offered"]).with_words(&["offered"]);
    for mechanism in mechanisms {
        let (offered, source) = match &mechanism.offered {
            Fact::Known { value, source } => (value.to_string(), source.clone()),
            Fact::Unknown { why } => ("not known".to_owned(), why.to_string()),
        };
        table.row(Look::Plain, &[mechanism.name.to_owned(), offered], &[source]);
    }
    table.render(width)
}

fn segments(seen: &Ring3, explain: bool, width: usize) -> String {
    let items: Vec<Item> = seen
        .selectors
        .iter()
        .map(|known| Item::Rights(Some(known.selector), known.rights, known.limit))
        .collect();
    let mut text = heading("Descriptors visible to ring 3 through LAR and LSL", width);
    text.push_str(&tables::render(&items, explain, width));
    let loaded = SEGMENTS.iter().zip(seen.loaded).map(|(name, selector)| format!("{name} {selector}"));
    text.push_str(&paragraph(&format!("Loaded: {}.", loaded.collect::<Vec<_>>().join(", ")), width, ""));
    if let Some((cpu, node)) = seen.selectors.iter().find_map(cpu_and_node) {
        let output = format!(
            "The limit of 007b is not a limit: Linux stores there the processor that runs this, {cpu}, and its node, {node} (GDT \
             entry 15, arch/x86/include/asm/segment.h)."
        );
        text.push_str(&paragraph(&output, width, ""));
    }
    text
}

/// `GDT_ENTRY_CPUNODE`: the limit has the processor in bits 11 to 0, and the node above.
fn cpu_and_node(known: &tollgate_inspect::Visible) -> Option<(u32, u32)> {
    const SELECTOR: Selector = Selector(0x7b);
    const READ_ONLY_EXPAND_DOWN: u8 = 0x5;
    let rights = known.rights.with_limit(0);
    let is_it = known.selector == SELECTOR && rights.s && rights.kind == READ_ONLY_EXPAND_DOWN;
    known.limit.filter(|_| is_it).map(|limit| (limit & 0xfff, limit >> 12))
}

fn registers(seen: &Ring3, width: usize) -> String {
    let mut table = Table::new(&["instruction", "left"]).with_words(&["left"]);
    let mut row = |name: &str, (left, meaning): (String, String)| {
        table.row(Look::Plain, &[name.to_owned(), left], &[meaning]);
    };
    row("sgdt", meaning_of(&seen.gdtr, |it| (shown(it), of_table(*it))));
    row("sidt", meaning_of(&seen.idtr, |it| (shown(it), of_table(*it))));
    row(
        "sldt",
        meaning_of(&seen.ldtr, |it| {
            let meaning = if it.is_null() {
                "no LDT, or the kernel's answer"
            } else {
                "the LDT, or the kernel's answer"
            };
            (it.to_string(), meaning.to_owned())
        }),
    );
    row(
        "str",
        meaning_of(&seen.tr, |it| {
            (it.to_string(), format!("the TSS in entry {}, or the kernel's answer", it.index()))
        }),
    );
    row(
        "smsw",
        meaning_of(&seen.msw, |it| {
            let set: Vec<&str> = Cr0((*it).into()).set().map(|bit| bit.name).collect();
            (format!("{it:08x}"), format!("CR0: {}", set.join(" ")))
        }),
    );
    let mut text = table.render(width);
    if [&seen.gdtr, &seen.idtr]
        .iter()
        .any(|it| matches!(it, Attempt::Done(it) if tollgate_inspect::is_dummy(*it)))
    {
        let output = "UMIP is on: the instructions fault in ring 3, and the kernel emulates them with dummy addresses (arch/x86/kernel/umip.c).";
        text.push_str(&paragraph(output, width, ""));
    }
    text
}

fn meaning_of<T>(attempt: &Attempt<T>, show: impl Fn(&T) -> (String, String)) -> (String, String) {
    match attempt {
        Attempt::Done(value) => show(value),
        Attempt::Signal { signal, vector, .. } => {
            ("nothing".to_owned(), format!("refused: exception {vector}, signal {signal}"))
        }
        Attempt::Killed(signal) => {
            ("nothing".to_owned(), format!("it ended the process with signal {signal}"))
        }
        Attempt::NotTried => ("nothing".to_owned(), "not tried".to_owned()),
    }
}

fn shown(register: &TableRegister) -> String {
    format!("{:016x} limit {:x}", register.base, register.limit)
}

fn of_table(register: TableRegister) -> String {
    if tollgate_inspect::is_dummy(register) {
        "the kernel's dummy".to_owned()
    } else {
        format!("the table: {} bytes", u32::from(register.limit) + 1)
    }
}

fn vectors(seen: &Ring3, width: usize) -> String {
    let mut text = heading("INT n from ring 3", width);
    // Vectors with the same answer share a sentence, in the order of the first of them.
    let mut answers: Vec<(String, Vec<u8>)> = Vec::new();
    for (vector, attempt) in (0..=u8::MAX).zip(&seen.vectors) {
        let outcome = outcome(vector, attempt);
        match answers.iter_mut().find(|(answer, _)| *answer == outcome) {
            Some((_, vectors)) => vectors.push(vector),
            None => answers.push((outcome, vec![vector])),
        }
    }
    for (answer, vectors) in &answers {
        text.push_str(&paragraph(&format!("int {}: {answer}.", ranges(vectors)), width, ""));
    }
    text
}

fn ranges(vectors: &[u8]) -> String {
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for &vector in vectors {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(vector) => *last = vector,
            _ => ranges.push((vector, vector)),
        }
    }
    let range = |(first, last): &(u8, u8)| {
        if first == last { format!("{first:x}") } else { format!("{first:x}–{last:x}") }
    };
    let shown = ranges.iter().map(range);
    shown.collect::<Vec<_>>().join(", ")
}

/// #GP means a closed gate: for an open one the kernel sends another signal. The error code does not help: FRED gives 0,
/// and QEMU's translator counts entries of 16 bytes.
fn is_closed(attempt: &Attempt<bool>) -> bool {
    const GENERAL_PROTECTION: u64 = 13;
    matches!(attempt, Attempt::Signal { vector: GENERAL_PROTECTION, .. })
}

fn outcome(vector: u8, attempt: &Attempt<bool>) -> String {
    match attempt {
        closed if is_closed(closed) => {
            "closed, #GP: the gate's DPL is below 3, or there is no gate".to_owned()
        }
        Attempt::Done(true) => "open, and answers: the 32-bit system calls".to_owned(),
        Attempt::Done(false) => "open, and returns without an answer".to_owned(),
        // A divide error, which is exception 0, is SIGFPE.
        Attempt::Signal { signal, vector: 0, .. } if *signal != SIGFPE => {
            format!("the kernel sends signal {signal} for it, without naming the exception")
        }
        Attempt::Signal { signal, vector: exception, .. } => {
            let open = if *exception == u64::from(vector) { "open: " } else { "" };
            format!("{open}the kernel sends signal {signal} for exception {exception}")
        }
        Attempt::Killed(signal) => format!("it ended the process with signal {signal}"),
        Attempt::NotTried => "not tried".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_that_follow_each_other_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 5, 0x80, 0xfe, 0xff]), "0–2, 5, 80, fe–ff");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn the_outcome_of_an_int_is_distinguished_from_an_unknown_one() {
        let signal = |signal, vector| Attempt::Signal { signal, vector, code: 0 };
        assert!(outcome(0x20, &signal(11, 13)).starts_with("closed"));
        assert!(outcome(3, &signal(5, 3)).starts_with("open"));
        assert!(outcome(0x20, &signal(11, 0)).contains("without naming the exception"));
        assert!(outcome(0, &signal(SIGFPE, 0)).starts_with("open"), "a divide error");
        assert!(outcome(0x80, &Attempt::Done(false)).contains("without an answer"));
    }
}
