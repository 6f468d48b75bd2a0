//! Text for people on standard error, without anything that a document could have put there to control a terminal.

use std::borrow::Cow;
use std::io::Write;

pub use tollgate_model::text::{clean, clean_lines, commands_a_reader as commands_a_terminal};

/// One line to standard error, in the program's name. A failure to write it cannot be reported.
pub fn say(sentence: &str) {
    let mut stream = anstream::stderr();
    let _ = writeln!(stream, "tollgate: {}", clean(&with_short_words(sentence)));
}

/// More characters than a word of a message has, and most paths.
const LONG: usize = 300;
const BEGINNING: usize = 120;
const END: usize = 60;

fn with_short_words(sentence: &str) -> Cow<'_, str> {
    let is_long = |word: &str| word.len() > LONG && word.chars().count() > LONG;
    if !sentence.split(' ').any(is_long) {
        return Cow::Borrowed(sentence);
    }
    let shortened = |word: &str| {
        let characters: Vec<char> = word.chars().collect();
        let (beginning, end) = (&characters[..BEGINNING], &characters[characters.len() - END..]);
        [beginning, &['…'], end].concat().into_iter().collect::<String>()
    };
    let words = sentence.split(' ').map(|word| if is_long(word) { shortened(word) } else { word.to_owned() });
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

/// Lines to standard error, already clean and wrapped.
pub fn warn(lines: &str) {
    let mut stream = anstream::stderr();
    let _ = stream.write_all(lines.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_3000_bytes_does_not_flood_the_screen() {
        let name = "é".repeat(1_500);
        let message = format!("no benchmark matches \"{name}\"; `tollgate list` shows all");
        let shown = with_short_words(&message);
        assert_eq!(shown.chars().count(), message.chars().count() - 1_503 + BEGINNING + END + 1);
        assert!(
            shown.starts_with("no benchmark matches \"é")
                && shown.ends_with("é\"; `tollgate list` shows all")
        );
        let path = format!("{}/run.json has no samples", "a".repeat(200));
        assert_eq!(with_short_words(&path), path);
    }

    #[test]
    fn what_commands_a_terminal_is_written_out() {
        assert_eq!(clean("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(clean("two\nlines\u{9b}\u{202e}\u{61c}"), "two\\nlines\\u{9b}\\u{202e}\\u{61c}");
        assert!(matches!(clean("12.3 µs – fine"), Cow::Borrowed(_)));
    }
}
