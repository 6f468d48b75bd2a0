//! Reads descriptor tables, gates, TSS, MSRs and registers, the state by which an x86 processor enters its kernel, from the
//! text that debuggers, emulators and assemblers print.
//!
//! [`read`] accepts any text and never fails. It finds [`Piece`]s, each with its line and [`Format`], counts the lines that
//! it does not understand, and reports damaged data as a [`Complaint`]. [`join()`] combines the pieces into the states of
//! one or more machines ([`Joined`]), each value with its source lines. It reports contradictions ([`Contradiction`]) and
//! values that a tool is known to print wrongly ([`Defect`]). [`output`] shows a state: its tables, and the walk of an
//! entry through them.
//!
//! ```
//! let text = b"kd> r idtr\nidtr=8003f400\nkd> db 8003f570 L8\n8003f570  cd 55 08 00 00 ee 86 80                          .U......\n";
//! let session = tollgate_dump::join(&tollgate_dump::read(text, None), None);
//! let width = session.states[0].width.width.unwrap();
//! let gate = &session.states[0].idt(width)[0];
//! assert_eq!((gate.vector, gate.bytes.value.as_slice()), (0x2e, [0xcd, 0x55, 8, 0, 0, 0xee, 0x86, 0x80].as_slice()));
//! ```
//!
//! Text is read line by line, at most [`MAX_LINES`] of them. The reader copies one line at a time, at most [`MAX_LINE`]
//! bytes of it, and keeps at most [`MAX_PIECES`] pieces and [`MAX_BYTES`] bytes. It accepts prompts, quotation marks,
//! colours, other languages, Windows line ends, UTF-16 and non-breaking spaces.
//!
//! Files, bottom up: `markup` reads HTML, `log` removes prefixes of logs, `line` decodes bytes, and `number` reads digits.
//! `piece`, `printed` and `complaint` are the results, which `sink` collects from one file per family of formats. `format`
//! is their table. `heading` recognises prose, and lines that name a system or begin a section. `memory`, `joined`, `join`
//! and `apart` make states, and `evidence` (32-bit or 64-bit tables), `halves`, `tables` and `check` complete them.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/takes_any.rs"]
mod takes_any;

mod apart;
mod assembler;
mod bochs_log;
mod bochs_registers;
mod bochs_tables;
mod bochs_tss;
mod check;
mod complaint;
mod evidence;
mod format;
mod gdb;
mod halves;
mod heading;
mod hex;
mod hexdump;
mod join;
mod joined;
mod kd_dg;
mod kd_dt;
mod kd_idt;
mod kd_layouts;
mod kd_memory;
mod kd_pcr;
mod kd_registers;
mod line;
mod linux;
mod listed;
mod log;
mod markup;
mod memory;
mod number;
pub mod output;
mod piece;
mod printed;
mod qemu;
mod sink;
mod sourced;
mod structure;
mod tables;
#[cfg(test)]
mod testing;

use std::ops::ControlFlow;

pub use complaint::{Complaint, Wrong};
pub use format::{FORMATS, Format, FormatSpec};
pub use join::{MAX_STATES, Session, join};
pub use joined::{
    Apart, Contradiction, Defect, DefectOf, GdtEntry, IdtEntry, Joined, Origin, Reason, Segment,
    Segmentation, Table, Task, Weight, WidthFound,
};
pub use line::MAX_LINE;
pub use memory::Memory;
pub use piece::{
    Dump, Form, Heading, Hidden, Lines, Named, Piece, Register, SegmentRegister, Style, TableRegister, What,
};
pub use printed::{PrintedDescriptor, PrintedGate};
pub use sink::{MAX_BYTES, MAX_COMPLAINTS, MAX_LINES, MAX_PIECES};
pub use sourced::Sourced;

use line::Line;
use sink::Sink;

/// Reads a text of any bytes. If `hint` names a format, only formats of its family are read.
pub fn read(text: &[u8], hint: Option<Format>) -> Dump {
    let mut sink = Sink::new(hint.is_some());
    let readers = readers(hint);
    line::each(text, |line| {
        read_line(&mut sink, &readers, &line);
        if sink.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    sink.finish()
}

/// Reads a line: returns whether it is of the reader's family, and puts its content into the sink.
type Reader = fn(&mut Sink, &Line<'_>) -> bool;

const fn reader(format: Format) -> Reader {
    match format {
        Format::Dt => kd_dt::read,
        Format::Dg => kd_dg::read,
        Format::KdIdt => kd_idt::read,
        Format::Rdmsr => kd_registers::read_msr,
        Format::KdPcr => kd_pcr::read,
        Format::BochsLog => bochs_log::read,
        Format::Hexdump => hexdump::read_canonical,
        Format::Xxd => hexdump::read_xxd,
        Format::Od => hexdump::read_od,
        Format::Db | Format::Dw | Format::Dd | Format::Dq | Format::Dps => kd_memory::read,
        Format::Qemu => qemu::read,
        Format::BochsTables => bochs_tables::read,
        Format::BochsTss => bochs_tss::read,
        Format::BochsRegisters => bochs_registers::read,
        Format::KdRegisters => kd_registers::read,
        Format::GdbMemory => gdb::read_memory,
        Format::GdbRegisters => gdb::read_registers,
        Format::Assembler => assembler::read,
        Format::Oops => linux::read,
        Format::List => listed::read,
        Format::Hex => hex::read,
    }
}

/// Returns the readers to try on each line, in order. Formats of one family are adjacent and share a reader.
fn readers(hint: Option<Format>) -> Vec<Reader> {
    let Some(hint) = hint else {
        let mut readers: Vec<Reader> = FORMATS.iter().map(|spec| reader(spec.format)).collect();
        readers.dedup_by(|a, b| std::ptr::fn_addr_eq(*a, *b));
        return readers;
    };
    vec![reader(hint)]
}

fn read_line(sink: &mut Sink, readers: &[Reader], line: &Line<'_>) {
    sink.begin(line);
    if line.text.is_empty() {
        return sink.empty();
    }
    if readers.iter().any(|read| read(sink, line)) {
        return sink.understood();
    }
    match heading::read(line) {
        Some(of) => sink.heading(line, of),
        None if heading::style(line).is_some() => sink.section(line),
        None => sink.foreign(line),
    }
}

/// Reads a text with every format and joins the pieces, for generated inputs.
#[doc(hidden)]
pub fn fuzz(text: &[u8]) -> usize {
    let dump = read(text, None);
    let session = join(&dump, None);
    let entries = |state: &Joined| {
        [tollgate_x86::Width::Legacy, tollgate_x86::Width::Long]
            .map(|width| state.gdt(width).len() + state.idt(width).len() + state.task(width).fields.len())
    };
    session.states.iter().flat_map(entries).sum::<usize>() + dump.pieces.len() + dump.complaints.len()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
