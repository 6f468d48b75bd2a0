//! Rows as a table in GitHub Flavored Markdown. Text of a document becomes character references, which never have a structural
//! meaning (CommonMark 0.31, 2.5), so no label and no fact can make a link, a cell or an element.

use std::fmt::Write;

use crate::column::{Column, Columns};
use crate::markup::Text;
use crate::value::{Tone, Value};

/// Writes a table of rows. Changed cells are bold.
pub fn table<R>(columns: &Columns<R>, rows: impl IntoIterator<Item = R>) -> String {
    let heads: Vec<&str> = columns.iter().map(|column| &*column.head).collect();
    let rules: String = columns.iter().enumerate().map(rule).collect();
    let mut text = format!("| {} |\n|{rules}\n", heads.join(" | "));
    for row in rows {
        let cells: Vec<String> = columns.values(&row).iter().map(cell).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    text
}

/// Wraps a table so that a click on its caption unfolds it.
pub fn folded(caption: &str, table: &str) -> String {
    format!("<details><summary>{caption}</summary>\n\n{table}</details>\n\n")
}

/// Names and words are left-aligned, figures right-aligned.
fn rule<R>((at, column): (usize, &Column<R>)) -> &'static str {
    if at == 0 || column.is_words { "---|" } else { "--:|" }
}

fn cell(value: &Value) -> String {
    let words = plain(value.words());
    match value.tone() {
        Tone::Changed => format!("**{words}**"),
        Tone::Flagged => format!("~ {words}"),
        Tone::Plain | Tone::Open => words,
    }
}

/// Escapes text of a document so that it is only text in any position.
pub fn plain(text: &str) -> String {
    let mut safe = String::new();
    let mut before = ' ';
    let text = Text::new(text);
    let mut characters = text.as_str().chars().peekable();
    while let Some(c) = characters.next() {
        let next = characters.peek().copied().unwrap_or_default();
        match c {
            c if c.is_whitespace() => safe.push(' '),
            // A word joiner keeps an address or a mention from becoming a link.
            '@' => safe.push_str("&#64;&#8288;"),
            // `www.` begins a link.
            '.' if before.eq_ignore_ascii_case(&'w') => safe.push_str("&#46;"),
            // Within a word it does not emphasize, and before a space it does not begin a link.
            '_' if before.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() => safe.push('_'),
            ':' if next == ' ' => safe.push(':'),
            '.' | ',' | ';' | '/' | '-' | '+' | '=' | '%' | '(' | ')' | '{' | '}' | '?' | '\'' | '"' => {
                safe.push(c)
            }
            c if c.is_ascii_punctuation() => {
                let _ = write!(safe, "&#{};", u32::from(c));
            }
            c => safe.push(c),
        }
        before = c;
    }
    safe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_cases_and_figures_stay_readable() {
        assert_eq!(plain("entry/seccomp{instructions=32}"), "entry/seccomp{instructions=32}");
        assert_eq!(plain("6.18.44-fc (Debian), 12 %"), "6.18.44-fc (Debian), 12 %");
        assert_eq!(plain("a|b\n`c`"), "a&#124;b&#92;n&#96;c&#96;");
        assert_eq!(plain("<b>[x](https://y)"), "&#60;b&#62;&#91;x&#93;(https&#58;//y)");
        assert_eq!(plain("dirty_mib: _a_"), "dirty_mib: &#95;a&#95;");
        assert_eq!(plain("www.a.org a@b.org"), "www&#46;a.org a&#64;&#8288;b.org");
    }

    proptest! {
        #[test]
        fn no_text_has_a_meaning_for_the_structure(text in any::<String>()) {
            let safe = plain(&text);
            prop_assert!(!safe.contains(['<', '>', '|', '`', '*', '[', ']', '\\', '!', '~', '$', '@', '\n', '\r']));
            prop_assert!(!safe.to_lowercase().contains("www."));
            prop_assert!(safe.split(':').skip(1).all(|rest| rest.starts_with(' ')), "{safe}");
            let words: Vec<&str> = safe.split('_').collect();
            for pair in words.windows(2) {
                let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                prop_assert!(word(pair[0].chars().last()) && word(pair[1].chars().next()), "{safe}");
            }
            for (at, _) in safe.match_indices('&') {
                let end = safe[at..].find(';').expect("a reference ends");
                prop_assert!(safe[at + 1..at + end].starts_with('#'), "{safe}");
                prop_assert!(safe[at + 2..at + end].chars().all(|c| c.is_ascii_digit()), "{safe}");
            }
            for (at, _) in safe.match_indices('#') {
                prop_assert!(safe[..at].ends_with('&'), "{safe}");
            }
        }
    }
}
