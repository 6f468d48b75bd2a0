//! Splits a litmus test into its parts: header, initial values, threads, and the question.

use super::super::text_error::TextError;

const ARCHITECTURES: &[&str] = &[
    "X86", "X86_64", "AArch64", "ARM", "ASL", "BPF", "C", "CPP", "JAVA", "LISA", "Bell", "MIPS", "PPC",
    "RISCV",
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
}

#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) arch: &'a str,
    pub(super) name: &'a str,
    pub(super) init: Part<'a>,
    /// Rows of cells: the names of the threads, then their instructions.
    pub(super) rows: Vec<Vec<Part<'a>>>,
    pub(super) locations: Option<Part<'a>>,
    pub(super) filter: Option<Part<'a>>,
    /// Text from `exists`, `~exists` or `forall` on.
    pub(super) question: Part<'a>,
}

pub(super) fn is_architecture(word: &str) -> bool {
    ARCHITECTURES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

pub(super) fn header(text: &str) -> Option<(usize, &str, &str)> {
    let (line, first) = (1..).zip(text.lines()).find(|(_, line)| !line.trim().is_empty())?;
    let (arch, name) = first.trim().split_once(char::is_whitespace)?;
    Some((line, arch, name.trim()))
}

/// Removes comments `(* … *)`. Lines keep their numbers.
pub(super) fn without_comments(text: &str) -> String {
    let mut depth = 0_usize;
    let mut code = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('(', Some('*')) => {
                depth += 1;
                chars.next();
            }
            ('*', Some(')')) if depth > 0 => {
                depth -= 1;
                chars.next();
                code.push(' ');
            }
            _ if depth == 0 || c == '\n' => code.push(c),
            _ => {}
        }
    }
    code
}

impl<'a> Parts<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, TextError> {
        let last = text.lines().count().max(1);
        let at = |line: usize, problem: &str| TextError { line, problem: problem.to_owned() };
        let (first, arch, name) = header(text)
            .ok_or_else(|| at(1, "a litmus test begins with its architecture and name, such as `X86 SB`"))?;
        if !arch.eq_ignore_ascii_case("X86") && !arch.eq_ignore_ascii_case("X86_64") {
            let problem = format!(
                "this test is for {arch}; the model has the store buffers of x86, for tests that begin with X86 or X86_64"
            );
            return Err(TextError { line: first, problem });
        }
        let missing = || at(last, "the test has no first values; write `{ x=0; y=0; }` before its threads");
        let open = text.find('{').ok_or_else(missing)?;
        let close = open + text[open..].find('}').ok_or_else(missing)?;
        let line_at = |offset: usize| 1 + text[..offset].matches('\n').count();
        let init = Part { line: line_at(open), text: &text[open + 1..close] };
        let mut parts =
            Self { arch, name, init, rows: vec![], locations: None, filter: None, question: Part::default() };
        // From here on a line that begins with a keyword begins a part.
        let mut part = Part { line: line_at(close + 1), text: &text[close + 1..] };
        let (mut kind, mut number, mut offset) = ("", part.line, 0);
        for line in text[close + 1..].split_inclusive('\n') {
            if let Some(next) = kind_of(line.trim_start()) {
                let begins = part.text.len() - (text.len() - close - 1 - offset);
                parts.add(kind, Part { text: &part.text[..begins], ..part });
                part = Part { line: number, text: &part.text[begins..] };
                kind = next;
            }
            offset += line.len();
            number += 1;
        }
        parts.add(kind, part);
        if parts.rows.is_empty() {
            return Err(at(
                last,
                "the test has no threads; write `P0 | P1 ;` and a row for each instruction",
            ));
        }
        if parts.question.text.is_empty() {
            return Err(at(
                last,
                "the test has no question; end it with `exists (0:EAX=0)`, `~exists (…)` or `forall (…)`",
            ));
        }
        Ok(parts)
    }

    fn add(&mut self, kind: &str, part: Part<'a>) {
        let behind = |word: &str| Part {
            line: part.line,
            text: part.text.trim_start().get(word.len()..).unwrap_or(""),
        };
        match kind {
            "" => self.rows = rows(part),
            "locations" => self.locations = Some(behind(kind)),
            "filter" => self.filter = Some(behind(kind)),
            // If there are several questions, the first counts.
            _ if self.question.text.is_empty() => self.question = part,
            _ => {}
        }
    }
}

fn kind_of(line: &str) -> Option<&'static str> {
    let begins = |word: &str| {
        line.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    };
    let not = line.strip_prefix('~').or_else(|| line.strip_prefix("not ")).map(str::trim_start);
    if begins("locations") {
        Some("locations")
    } else if begins("filter") {
        Some("filter")
    } else if begins("exists") || begins("forall") || not.is_some_and(|rest| rest.starts_with("exists")) {
        Some("question")
    } else {
        None
    }
}

/// Splits a table into rows, which end with semicolons.
fn rows(table: Part<'_>) -> Vec<Vec<Part<'_>>> {
    let mut rows = Vec::new();
    let mut line = table.line;
    for row in table.text.split(';') {
        let mut cells = Vec::new();
        for cell in row.split('|') {
            let blank = &cell[..cell.len() - cell.trim_start().len()];
            cells.push(Part { line: line + blank.matches('\n').count(), text: cell.trim() });
            line += cell.matches('\n').count();
        }
        if cells.iter().any(|cell| !cell.text.is_empty()) {
            rows.push(cells);
        }
    }
    rows
}
