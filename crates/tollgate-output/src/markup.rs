//! Text that is safe to show on a page, and how to escape it.

use std::fmt;

use tollgate_model::text::{clean, commands_a_reader};

/// Untrusted text, made safe: no character changes the direction of writing, is invisible or stacks, and its length is bounded.
/// It must still be escaped for its context.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(String);

/// The longest sentence or value, in characters.
const LONG: usize = 320;
/// The longest label in a picture, in characters.
const SHORT: usize = 64;
const CUT: char = '…';
/// The most combining marks of a letter.
const MOST_MARKS: usize = 2;

impl Text {
    /// Makes a sentence or a value.
    pub fn new(text: &str) -> Self {
        Self::cut(text, LONG)
    }

    /// Makes a label in a picture, where lines do not break.
    pub fn label(text: &str) -> Self {
        Self::cut(text, SHORT)
    }

    /// Makes text that is cut after `most` characters.
    pub fn cut(text: &str, most: usize) -> Self {
        let mut shown = String::new();
        let (mut characters, mut marks) = (0, 0);
        for c in text.chars() {
            marks = if combines(c) { marks + 1 } else { 0 };
            if marks > MOST_MARKS {
                continue;
            }
            if characters == most {
                shown.push(CUT);
                break;
            }
            characters += 1;
            if commands_a_reader(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
        }
        Self(shown)
    }

    /// Returns the text, not escaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a character combines with the one before it, and so can stack beyond its line: the Unicode blocks of such marks, and
/// those of scripts that stack them.
fn combines(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{6d6}'..='\u{6ed}' | '\u{e31}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{eb1}'..='\u{ebc}' | '\u{ec8}'..='\u{ece}' | '\u{f71}'..='\u{fbc}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{302a}'..='\u{302f}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{e0100}'..='\u{e01ef}')
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Escapes text for an element or a quoted attribute of HTML and SVG, and characters that command a reader or are not XML (1.0, 2.2).
pub fn escaped(text: &str) -> impl fmt::Display + '_ {
    struct Escaped<'a>(&'a str);
    impl fmt::Display for Escaped<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for c in self.0.chars() {
                match c {
                    '&' => f.write_str("&amp;")?,
                    '<' => f.write_str("&lt;")?,
                    '>' => f.write_str("&gt;")?,
                    '"' => f.write_str("&#34;")?,
                    '\'' => f.write_str("&#39;")?,
                    c if commands_a_reader(c) => write!(f, "{}", c.escape_default())?,
                    c => fmt::Write::write_char(f, c)?,
                }
            }
            Ok(())
        }
    }
    Escaped(text)
}

/// Escapes text for an element only, so without quotes.
pub fn escaped_between_tags(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_long_is_cut_with_a_mark() {
        assert_eq!(Text::cut("abcdef", 3).as_str(), "abc…");
        assert_eq!(Text::cut("abc", 3).as_str(), "abc");
        let huge = "x".repeat(10 << 20);
        assert_eq!(Text::new(&huge).as_str().chars().count(), LONG + 1);
    }

    #[test]
    fn marks_do_not_stack_and_directions_are_escaped() {
        let stacked = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(Text::new(&stacked).as_str(), "a\u{301}\u{301}b");
        assert_eq!(Text::new("a\u{202e}b\0").as_str(), "a\\u{202e}b\\u{0}");
    }

    proptest! {
        #[test]
        fn nothing_escaped_can_end_a_context(text in any::<String>()) {
            let shown = escaped(&text).to_string();
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            let between = escaped_between_tags(&text);
            prop_assert!(!between.contains(['<', '>']));
            prop_assert!(![&shown, &between].iter().any(|shown| shown.contains(commands_a_reader)));
            for (at, _) in shown.match_indices('&') {
                let known = ["&amp;", "&lt;", "&gt;", "&#34;", "&#39;"];
                prop_assert!(known.iter().any(|entity| shown[at..].starts_with(entity)));
            }
        }

        #[test]
        fn plain_text_is_left_as_it_is(text in "[a-zA-Z0-9 .,:/={}-]{0,60}") {
            let shown = Text::new(&text);
            prop_assert_eq!(shown.as_str(), text.as_str());
            prop_assert_eq!(escaped(&text).to_string(), text);
        }
    }
}
