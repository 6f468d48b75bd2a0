//! Printing results to standard output. Every function fails if it is closed or full.

use std::borrow::Cow;
use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Command, Stdio};

use serde::Serialize;
use tollgate_os::programs;

use crate::failure::Failure;
use crate::say::{clean_lines, commands_a_terminal};

/// Columns if neither COLUMNS nor a terminal gives the number.
const USUAL_WIDTH: usize = 80;

pub fn print(text: &str) -> Result<(), Failure> {
    let mut stream = anstream::stdout();
    let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    written.map_err(|error| Failure::of_output(&error))
}

/// Writes a result that may be longer than the screen: on a terminal through `$PAGER`, by default less(1) if it is installed. An
/// empty `PAGER` or `cat` means no pager, and a dumb terminal has none.
pub fn page(text: &str) -> Result<(), Failure> {
    let rows =
        rustix::termios::tcgetwinsize(rustix::stdio::stdout()).map_or(0, |size| usize::from(size.ws_row));
    let is_dumb = std::env::var("TERM").map_or(true, |term| term == "dumb" || term.is_empty());
    let is_long = std::io::stdout().is_terminal() && text.lines().count() >= rows && !is_dumb;
    if is_long && through_pager(text).is_some() {
        return Ok(());
    }
    print(text)
}

fn through_pager(text: &str) -> Option<()> {
    let named = std::env::var("PAGER").unwrap_or_else(|_| "less -FRX".to_owned());
    let mut words = named.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    let mut pager =
        Command::new(programs::named(program.as_ref())?).args(words).stdin(Stdio::piped()).spawn().ok()?;
    // The pager answers Ctrl-C itself and shares the terminal until it ends.
    tollgate_engine::interrupt::install();
    let mut text = Cow::Borrowed(text);
    if anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never {
        text = Cow::Owned(anstream::adapter::strip_str(&text).to_string());
    }
    if let Some(mut input) = pager.stdin.take() {
        // A reader that has seen enough closes it.
        let _ = input.write_all(text.as_bytes());
    }
    let _ = pager.wait();
    Some(())
}

/// Writes bytes as they are: completions, manual pages.
pub fn print_raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stream = std::io::stdout();
    let written = stream.write_all(bytes).and_then(|()| stream.flush());
    written.map_err(|error| Failure::of_output(&error))
}

/// Writes a document instead of a table. A program gets its bytes unchanged; on a terminal no text in it controls the terminal.
pub fn print_document(document: &[u8], form: Form) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return print_raw(document);
    }
    let text = String::from_utf8_lossy(document);
    match form {
        Form::Json => print_raw(escape_in_json(&text).as_bytes()),
        Form::Lines => print_raw(clean_lines(&text).as_bytes()),
    }
}

/// How a text in a document is escaped so that the document keeps its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As JSON has it: `\u009b`.
    Json,
    /// Line by line, as the table has it: `\u{9b}`.
    Lines,
}

/// Whether standard output was closed when the program was started, so that printed output is lost.
pub fn is_closed() -> bool {
    tollgate_inspect::standard_output_is_closed()
}

pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print_by(|stream| serde_json::to_writer_pretty(stream, value))
}

/// One line, since another program's output may precede it.
pub fn print_json_line(value: &impl Serialize) -> Result<(), Failure> {
    print_by(|stream| serde_json::to_writer(stream, value))
}

/// The text is never whole in memory: for a large run it is larger than the run.
fn print_by(write: impl FnOnce(&mut EscapedJson) -> serde_json::Result<()>) -> Result<(), Failure> {
    let mut stream = EscapedJson(BufWriter::new(std::io::stdout().lock()));
    write(&mut stream).map_err(|error| {
        if error.is_io() {
            Failure::of_output(&error.into())
        } else {
            Failure::input(format!("the result cannot be written as JSON: {error}"))
        }
    })?;
    let ended = stream.write_all(b"\n").and_then(|()| stream.flush());
    ended.map_err(|error| Failure::of_output(&error))
}

/// JSON on its way to standard output, with characters that control a terminal escaped. It comes in pieces of whole characters,
/// as serde_json writes them.
struct EscapedJson<'a>(BufWriter<StdoutLock<'a>>);

impl Write for EscapedJson<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Most pieces are plain ASCII, which needs no escape.
        if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(escape_in_json(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// The columns of the terminal that standard output is; `COLUMNS` overrides.
pub fn width() -> usize {
    width_on(rustix::stdio::stdout())
}

/// The given number of columns: by `COLUMNS`, or by a terminal. A program that reads gets whole lines.
pub fn given_width() -> Option<usize> {
    let is_given = std::env::var_os("COLUMNS").is_some() || std::io::stdout().is_terminal();
    is_given.then(width)
}

/// Likewise for standard error, for a result printed there because standard output belongs to another program.
pub fn width_beside() -> usize {
    width_on(rustix::stdio::stderr())
}

fn width_on(stream: rustix::fd::BorrowedFd) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || columns_of(stream);
    said.or_else(seen).filter(|&columns| columns > 0).unwrap_or(USUAL_WIDTH).clamp(30, 160)
}

/// The columns of the terminal that standard error is, for drawing there.
pub fn width_of_errors() -> usize {
    columns_of(rustix::stdio::stderr()).filter(|&columns| columns > 0).unwrap_or(USUAL_WIDTH)
}

fn columns_of(stream: rustix::fd::BorrowedFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col))
}

/// JSON leaves DEL, the C1 controls and direction marks unescaped; they occur only in its strings.
fn escape_in_json(json: &str) -> Cow<'_, str> {
    let unsafe_here = |c: char| !c.is_ascii_whitespace() && commands_a_terminal(c);
    if !json.contains(unsafe_here) {
        return Cow::Borrowed(json);
    }
    let escaped = |c: char| {
        if unsafe_here(c) {
            // JSON escapes characters beyond U+FFFF as two UTF-16 units.
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        } else {
            c.to_string()
        }
    };
    Cow::Owned(json.chars().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning_when_escaped() {
        let text = "del \u{7f} csi \u{9b} turn \u{202e} line\n tag \u{e0041}";
        let json = serde_json::to_string_pretty(&[text]).expect("json");
        let escaped = escape_in_json(&json);
        assert!(!escaped.contains(['\u{7f}', '\u{9b}', '\u{202e}']));
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).expect("still json"), [text]);
    }
}
