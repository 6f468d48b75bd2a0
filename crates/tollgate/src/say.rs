//! Words for people on standard error, and nothing to a terminal that a document could have put there to
//! command it.

use std::io::Write;

pub use tollgate_model::text::{clean, commands_a_reader as commands_a_terminal};

/// One line to standard error, in the program's name. A failure to write it cannot be reported.
pub fn say(sentence: &str) {
    let mut stream = anstream::stderr();
    let _ = writeln!(stream, "tollgate: {}", clean(sentence));
}

/// Lines to standard error, already clean and wrapped.
pub fn warn(lines: &str) {
    let mut stream = anstream::stderr();
    let _ = stream.write_all(lines.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn what_commands_a_terminal_is_written_out() {
        assert_eq!(clean("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(clean("two\nlines\u{9b}\u{202e}\u{61c}"), "two\\nlines\\u{9b}\\u{202e}\\u{61c}");
        assert!(matches!(clean("12.3 µs – fine"), Cow::Borrowed(_)));
    }
}
