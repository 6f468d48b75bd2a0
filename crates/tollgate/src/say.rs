//! Words for people on standard error, and nothing to a terminal that a document could have put there to
//! command it.

use std::borrow::Cow;
use std::io::Write;

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

/// Control characters, the marks that turn the direction of writing or break lines, and what cannot be
/// seen at all.
pub fn commands_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
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
}
