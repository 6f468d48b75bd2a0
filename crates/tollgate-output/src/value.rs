//! The value of a column for a row, as data for programs and as words for people.

use serde_json::Value as Raw;

/// Stands for a value that is unknown or does not apply.
pub const NONE: &str = "–";

/// How a value is emphasized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Not emphasized.
    #[default]
    Plain,
    /// A change.
    Changed,
    /// Unreliable.
    Open,
    /// Noisy: a `~` before the name.
    Flagged,
}

/// A value. Formats for programs show its data, those for people its words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Value {
    /// One per field of its column; fewer if some are unknown.
    raw: Vec<Raw>,
    words: Option<String>,
    short: Option<String>,
    tone: Tone,
}

impl Value {
    /// Makes a value from its fields and its words.
    pub fn new(raw: impl IntoIterator<Item = Raw>, words: impl Into<String>) -> Self {
        Self { raw: raw.into_iter().collect(), words: Some(words.into()), ..Self::default() }
    }

    /// Makes a text, which is its own words.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new([Raw::from(text.clone())], text)
    }

    /// Makes a figure with its words.
    pub fn figure(figure: f64, words: impl FnOnce(f64) -> String) -> Self {
        Self::new([Raw::from(figure)], words(figure))
    }

    /// Makes an interval from its two ends, with its words.
    pub fn ends(ends: [f64; 2], words: impl FnOnce([f64; 2]) -> String) -> Self {
        Self::new(ends.map(Raw::from), words(ends))
    }

    /// Makes a count.
    pub fn number(number: u64) -> Self {
        Self::new([Raw::from(number)], number.to_string())
    }

    /// Makes a list of names. An empty list is a value too.
    pub fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        Self::new([Raw::from(names.clone())], names.join(", "))
    }

    /// Makes words only for people: other columns have its fields.
    pub fn of_words(words: impl Into<String>) -> Self {
        Self::new([], words)
    }

    /// Replaces the words, or removes them.
    pub fn in_words(self, words: Option<String>) -> Self {
        Self { words, ..self }
    }

    /// Adds shorter words for a place without room.
    pub fn or_short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    /// Sets the tone.
    pub fn with_tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Returns field `at` of its column, as data.
    pub fn raw(&self, at: usize) -> Raw {
        self.raw.get(at).cloned().unwrap_or_default()
    }

    /// Returns the words, or [`NONE`].
    pub fn words(&self) -> &str {
        self.words.as_deref().unwrap_or(NONE)
    }

    /// Returns the words, if it has any.
    pub fn known(self) -> Option<String> {
        self.words
    }

    /// Returns the short words for a place without room for [`Self::words`].
    pub fn short(&self) -> Option<&str> {
        self.short.as_deref()
    }

    /// Returns the tone.
    pub fn tone(&self) -> Tone {
        self.tone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_null_for_programs_and_a_dash_for_people() {
        let unknown = Value::default();
        assert_eq!((unknown.raw(0), unknown.words()), (Raw::Null, NONE));
        assert_eq!(Value::figure(f64::NAN, |_| String::new()).raw(0), Raw::Null);
    }

    #[test]
    fn a_value_is_kept_as_it_is_beside_its_words() {
        let ratio = Value::figure(1.23456, |ratio| format!("{ratio:.3}"));
        assert_eq!((ratio.raw(0), ratio.words()), (Raw::from(1.23456), "1.235"));
        let ends = Value::ends([1.0, 2.0], |[low, high]| format!("{low}–{high}"));
        assert_eq!((ends.raw(0), ends.raw(1), ends.words()), (Raw::from(1.0), Raw::from(2.0), "1–2"));
        assert_eq!(Value::names([]).raw(0), Raw::Array(Vec::new()));
        let count = Value::figure(0.0, |_| "0".to_owned()).in_words(None);
        assert_eq!((count.raw(0), count.words()), (Raw::from(0.0), NONE));
    }
}
