//! Text that anybody may have written, made fit to be shown.

use std::borrow::Cow;

/// Text from elsewhere with what would command a terminal or turn the direction of writing written out instead.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(commands_a_reader) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| match commands_a_reader(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// Control characters, the marks that turn the direction of writing or break lines, and what cannot be
/// seen at all.
pub fn commands_a_reader(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
