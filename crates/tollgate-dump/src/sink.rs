use crate::complaint::{Complaint, Wrong};
use crate::line::{Line, MAX_LINE, Tool, excerpt};
use crate::piece::{Dump, Form, Heading, Named, Piece, Style, What};
use crate::{format::Format, heading, structure::Structure};

/// The most pieces that are kept. A table of the maximum size, entry by entry, has 8192.
pub const MAX_PIECES: usize = 1 << 18;
/// The most lines that are read, which takes seconds; a hundred sessions have fewer.
pub const MAX_LINES: usize = 1 << 20;
/// The most bytes of memory that are kept.
pub const MAX_BYTES: usize = 8 << 20;
/// The most complaints that are kept; further ones are only counted.
pub const MAX_COMPLAINTS: usize = 100;
const MAX_HEADINGS: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Oops {
    #[default]
    Outside,
    /// After registers.
    Registers,
    /// Among the words of the stack.
    Stack,
}

#[derive(Debug, Default)]
pub(crate) struct Sink {
    dump: Dump,
    line: usize,
    is_cut: bool,
    block: usize,
    /// The format of the current answer, until another line intervenes.
    open: Option<Format>,
    form: Option<(usize, Form)>,
    bytes: usize,
    /// The last system and processor that were named.
    system: Option<Named>,
    processor: Option<Named>,
    /// The tool of the last prompt.
    tool: Option<Tool>,
    /// The previous line, if no reader took it: the next line may make it a heading.
    above: Option<(usize, String)>,
    /// Whether the caller named the format, so that short and odd lines count as well.
    pub is_hinted: bool,
    /// The last command or its beginning.
    pub command: String,
    /// The structure whose fields are being read.
    pub structure: Option<Structure>,
    /// Whether vectors and handlers are being read.
    pub in_idt: bool,
    pub vector: Option<u8>,
    /// Whether the fields of a processor's control region are being read.
    pub in_pcr: bool,
    pub oops: Oops,
    /// Whether the fields of Bochs' `info tss` are being read.
    pub in_tss: bool,
    /// The last base that the text gave for IDTR and GDTR.
    pub bases: [Option<u64>; 2],
}

impl Sink {
    pub fn new(is_hinted: bool) -> Self {
        Self { is_hinted, ..Self::default() }
    }

    pub fn begin(&mut self, line: &Line<'_>) {
        self.line = line.number;
        self.is_cut = line.is_cut;
        self.dump.lines.total += 1;
        if let Some(number) = line.processor {
            self.note(line.number, &format!("{number}: kd>"), Named::Processor(number), None);
        }
        if line.tool.is_some() && self.tool != line.tool {
            if self.tool.is_some() {
                self.part();
            }
            self.tool = line.tool;
        }
    }

    pub fn empty(&mut self) {
        self.dump.lines.empty += 1;
        self.close();
        self.above = None;
    }

    pub fn understood(&mut self) {
        self.dump.lines.understood += 1;
        self.above = None;
        if self.is_cut {
            self.complain(self.open.unwrap_or(Format::Hex), Wrong::LineTooLong { limit: MAX_LINE });
        }
    }

    pub fn heading(&mut self, line: &Line<'_>, of: Named) {
        self.dump.lines.understood += 1;
        self.close();
        self.above = None;
        self.note(line.number, excerpt(line.text), of, heading::style(line));
    }

    /// Takes a heading that names no system.
    pub fn section(&mut self, line: &Line<'_>) {
        self.foreign(line);
        self.above = None;
        self.note(line.number, excerpt(line.text), Named::Section, heading::style(line));
    }

    pub fn foreign(&mut self, line: &Line<'_>) {
        self.dump.lines.foreign += 1;
        self.close();
        self.in_idt = false;
        self.in_pcr = false;
        let above = self.above.take();
        let is_command = line.is_command || heading::is_command(line.text);
        if let (Some((number, text)), Some(level)) = (&above, heading::underline(line.text)) {
            self.note(*number, text, Named::Section, Some(Style::Level(level)));
        } else if !is_command {
            if heading::is_prose(line.text) {
                self.part();
                // The following text does not answer an earlier command.
                self.command.clear();
            }
            self.above = Some((line.number, excerpt(line.text).to_owned()));
        }
        if is_command {
            self.command.clear();
            self.command.push_str(excerpt(line.text));
        }
    }

    fn close(&mut self) {
        self.finish_structure();
        self.open = None;
        self.in_tss = false;
        if self.oops == Oops::Stack {
            self.oops = Oops::Outside;
        }
    }

    /// Ends the structure, and adds the values of its fields to the dump.
    pub fn finish_structure(&mut self) {
        let Some(structure) = self.structure.take().filter(Structure::is_begun) else { return };
        self.gap();
        for what in structure.pieces() {
            self.push_at(structure.line(), Format::Dt, what);
        }
    }

    /// Records once which system or processor the following text is from, or that another section begins.
    fn note(&mut self, line: usize, text: &str, of: Named, style: Option<Style>) {
        let last = match of {
            Named::System { .. } => &mut self.system,
            Named::Processor(_) => &mut self.processor,
            Named::Section => &mut None,
        };
        if last.as_ref() == Some(&of) {
            return;
        }
        if self.dump.headings.len() < MAX_HEADINGS {
            *last = Some(of.clone());
            if of == Named::Section {
                // The section may be about the system named before, or about another one.
                self.system = None;
            }
            self.dump.headings.push(Heading { line, text: text.to_owned(), of, style });
        } else {
            self.part();
        }
    }

    /// Notes that the following text is from this processor.
    pub fn processor(&mut self, number: u32) {
        self.note(self.line, &format!("CPU{number}"), Named::Processor(number), None);
    }

    /// Records, once between two pieces, that the following text may be from another machine.
    fn part(&mut self) {
        let last = self.dump.pieces.last().map_or(0, |piece| piece.line);
        if last > 0 && self.dump.prose.last().is_none_or(|line| *line < last) {
            self.dump.prose.push(self.line);
        }
    }

    /// Adds a value of this line, which is thereby understood.
    pub fn push(&mut self, format: Format, what: What) -> bool {
        self.push_at(self.line, format, what);
        true
    }

    /// Adds a value of an earlier line.
    pub fn push_at(&mut self, line: usize, format: Format, what: What) {
        if self.open != Some(format) {
            self.open = Some(format);
            self.block += 1;
        }
        if let What::Bytes { bytes, .. } = &what {
            self.bytes += bytes.len();
        }
        if let What::TableRegister { table, base: Some(base), .. } = what {
            self.bases[table as usize] = Some(base);
        }
        self.dump.pieces.push(Piece { line, format, block: self.block, what });
    }

    /// Adds evidence for the form of the tables, once per answer.
    pub fn form(&mut self, format: Format, form: Form) {
        if self.open != Some(format) || self.form != Some((self.block, form)) {
            self.push(format, What::Form(form));
            self.form = Some((self.block, form));
        }
    }

    /// Adds contiguous bytes from `address`, unless they go past the last address. Returns whether there are any.
    pub fn bytes(&mut self, format: Format, address: Option<u64>, bytes: Vec<u8>) -> bool {
        let last = (bytes.len() as u64).saturating_sub(1);
        if address.is_some_and(|address| address.checked_add(last).is_none()) {
            return self.complain(format, Wrong::PastTheEnd);
        }
        !bytes.is_empty() && self.push(format, What::Bytes { address, bytes })
    }

    /// Ends a stretch of contiguous bytes.
    pub fn gap(&mut self) {
        self.open = None;
    }

    /// Adds a complaint about this line, which is thereby understood.
    pub fn complain(&mut self, format: Format, wrong: Wrong) -> bool {
        if self.dump.complaints.len() < MAX_COMPLAINTS {
            self.dump.complaints.push(Complaint { line: self.line, format, wrong });
        } else {
            self.dump.more_complaints += 1;
        }
        true
    }

    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns whether the last command begins with one of these words.
    pub fn was_asked(&self, words: &[&str]) -> bool {
        let word = self.command.split(' ').next().unwrap_or_default();
        words.contains(&word)
    }

    /// Returns whether a limit of pieces or lines is reached.
    pub fn is_full(&self) -> bool {
        self.dump.pieces.len() >= MAX_PIECES || self.bytes >= MAX_BYTES || self.dump.lines.total >= MAX_LINES
    }

    pub fn finish(mut self) -> Dump {
        self.finish_structure();
        self.dump.cut = self.is_full().then_some(self.line + 1);
        self.dump
    }
}
