//! What a column holds of a row: the value as it is, for programs, and as people read it.

use serde_json::Value as Raw;

/// What stands in the place of a value that is unknown, or does not apply.
pub const NONE: &str = "–";

/// How a value is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As any other.
    #[default]
    Plain,
    /// A change.
    Changed,
    /// Nothing that can be relied on.
    Open,
    /// Noisy: a `~` stands before the name.
    Flagged,
}

/// A value. Every format takes it from here: those for programs as it is, those for people in words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Value {
    /// One for each field of its column; fewer where they are unknown.
    raw: Vec<Raw>,
    words: Option<String>,
    short: Option<String>,
    tone: Tone,
}

impl Value {
    /// Fields as they are, and what people read of them.
    pub fn new(raw: impl IntoIterator<Item = Raw>, words: impl Into<String>) -> Self {
        Self { raw: raw.into_iter().collect(), words: Some(words.into()), ..Self::default() }
    }

    /// A text, which is itself in words.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new([Raw::from(text.clone())], text)
    }

    /// A figure, and how people read it.
    pub fn figure(figure: f64, words: impl FnOnce(f64) -> String) -> Self {
        Self::new([Raw::from(figure)], words(figure))
    }

    /// The two ends of an interval, and how people read it.
    pub fn ends(ends: [f64; 2], words: impl FnOnce([f64; 2]) -> String) -> Self {
        Self::new(ends.map(Raw::from), words(ends))
    }

    /// A number of things.
    pub fn number(number: u64) -> Self {
        Self::new([Raw::from(number)], number.to_string())
    }

    /// Names, none of which is a value too.
    pub fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        Self::new([Raw::from(names.clone())], names.join(", "))
    }

    /// What people alone read: other columns have its fields.
    pub fn of_words(words: impl Into<String>) -> Self {
        Self::new([], words)
    }

    /// The same fields with other words, or none.
    pub fn in_words(self, words: Option<String>) -> Self {
        Self { words, ..self }
    }

    /// With shorter words for a place that has no room for them.
    pub fn or_short(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }

    /// With this tone.
    pub fn with_tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Field `at` of its column, as it is.
    pub fn raw(&self, at: usize) -> Raw {
        self.raw.get(at).cloned().unwrap_or_default()
    }

    /// The words, or [`NONE`].
    pub fn words(&self) -> &str {
        self.words.as_deref().unwrap_or(NONE)
    }

    /// The words, where it has any.
    pub fn known(self) -> Option<String> {
        self.words
    }

    /// The words for a place that has no room for [`Self::words`].
    pub fn short(&self) -> Option<&str> {
        self.short.as_deref()
    }

    /// How it is to be looked at.
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
