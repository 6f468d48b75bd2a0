//! Printing: results to standard output, everything else to standard error, and nothing to a terminal
//! that a document could have put there to command it.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

/// Columns where nobody says how many there are.
const USUAL_WIDTH: usize = 80;

/// Writes a result, whole.
///
/// # Errors
/// When standard output is closed or full.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stream = anstream::stdout();
    let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    written.map_err(|error| Failure::of_output(&error))
}

/// Writes bytes that are not for eyes: completions, manual pages.
///
/// # Errors
/// When standard output is closed or full.
pub fn print_raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut stream = std::io::stdout();
    let written = stream.write_all(bytes).and_then(|()| stream.flush());
    written.map_err(|error| Failure::of_output(&error))
}

/// Writes a result as JSON, one field a line.
///
/// # Errors
/// When standard output is closed or full.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::input(format!("the result cannot be written as JSON: {error}")))?;
    text.push('\n');
    print_raw(escape_in_json(&text).as_bytes())
}

/// One line to standard error, in the program's name. Nobody can be told when that fails.
pub fn say(sentence: &str) {
    let mut stream = anstream::stderr();
    let _ = writeln!(stream, "tollgate: {}", clean(sentence));
}

/// Lines to standard error, already clean and wrapped.
pub fn warn(lines: &str) {
    let mut stream = anstream::stderr();
    let _ = stream.write_all(lines.as_bytes());
}

/// The columns of the terminal that standard output is; `COLUMNS` overrides.
pub fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || columns_of(rustix::stdio::stdout());
    said.or_else(seen).filter(|&columns| columns > 0).unwrap_or(USUAL_WIDTH).clamp(30, 160)
}

/// The columns of the terminal that standard error is, for what is drawn there.
pub fn width_of_errors() -> usize {
    columns_of(rustix::stdio::stderr()).filter(|&columns| columns > 0).unwrap_or(USUAL_WIDTH)
}

fn columns_of(stream: rustix::fd::BorrowedFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col))
}

/// Text from elsewhere, fit for a terminal: what would command it is written out instead.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(commands_a_terminal) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| match commands_a_terminal(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Control characters, and the marks that turn the direction of writing or break lines.
fn commands_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON leaves DEL, the C1 controls and direction marks as they are; they occur only in its strings.
fn escape_in_json(json: &str) -> Cow<'_, str> {
    let unsafe_here = |c: char| !c.is_ascii_whitespace() && commands_a_terminal(c);
    if !json.contains(unsafe_here) {
        return Cow::Borrowed(json);
    }
    let escaped = |c: char| match unsafe_here(c) {
        // All of them are below U+10000.
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(json.chars().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_written_out() {
        assert_eq!(clean("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(clean("two\nlines\u{9b}\u{202e}\u{61c}"), "two\\nlines\\u{9b}\\u{202e}\\u{61c}");
        assert!(matches!(clean("12.3 µs – fine"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_keeps_its_meaning_when_escaped() {
        let text = "del \u{7f} csi \u{9b} turn \u{202e} line\n";
        let json = serde_json::to_string_pretty(&[text]).expect("json");
        let escaped = escape_in_json(&json);
        assert!(!escaped.contains(['\u{7f}', '\u{9b}', '\u{202e}']));
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).expect("still json"), [text]);
    }
}
