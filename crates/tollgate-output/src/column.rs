//! A field of a row, declared once: its key, its head, its unit, a sentence about it, and how it is got from a row. A list of
//! columns is what every format shows rows by; a screen chooses from it by key.
//!
//! (As the fields of facebookincubator/below can each be asked for by name and have one configuration of how they are shown.)

use std::borrow::Cow;

use crate::value::Value;

/// What the figures of a column are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// No unit: texts, numbers of things, ratios.
    #[default]
    Bare,
    /// The unit of the row's samples.
    OfRow,
}

/// What a program reads in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A figure.
    Number,
    /// A number of things.
    Whole,
    /// Yes or no.
    Flag,
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// The parameters of a case, by name.
    Params,
}

#[cfg(feature = "schema")]
impl ValueKind {
    /// Its JSON Schema.
    pub(crate) fn schema(self) -> serde_json::Value {
        use serde_json::json;
        match self {
            Self::Number => json!({ "type": "number" }),
            Self::Whole => json!({ "type": "integer", "minimum": 0 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Text => json!({ "type": "string" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Params => {
                json!({ "type": "object", "additionalProperties": { "type": ["boolean", "integer", "string"] } })
            }
        }
    }
}

/// A field of rows of type `R`.
pub struct Column<R> {
    /// Its name for programs and screens.
    pub key: &'static str,
    /// Its name above a table.
    pub head: Cow<'static, str>,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What its figures are in.
    pub measure: Measure,
    /// Whether it holds words, which begin below each other; figures end below each other.
    pub is_words: bool,
    fields: Option<&'static [&'static str]>,
    kinds: &'static [ValueKind],
    is_always: bool,
    is_blank: bool,
    value: fn(&R) -> Option<Value>,
}

impl<R> Clone for Column<R> {
    fn clone(&self) -> Self {
        Self { head: self.head.clone(), ..*self }
    }
}

impl<R> Column<R> {
    /// A column of figures without a unit. None of a row is unknown, or does not apply.
    pub fn new(
        key: &'static str,
        head: &'static str,
        about: &'static str,
        value: fn(&R) -> Option<Value>,
    ) -> Self {
        Self {
            key,
            head: Cow::Borrowed(head),
            about,
            measure: Measure::Bare,
            is_words: false,
            fields: None,
            kinds: &[],
            is_always: false,
            is_blank: false,
            value,
        }
    }

    /// Its figures are in the unit of the row.
    pub fn in_unit(self) -> Self {
        Self { measure: Measure::OfRow, ..self }
    }

    /// It holds words.
    pub fn of_words(self) -> Self {
        Self { is_words: true, ..self }
    }

    /// For programs it is several fields with these names, or none, where other columns have what it shows.
    pub fn with_fields(self, fields: &'static [&'static str]) -> Self {
        Self { fields: Some(fields), ..self }
    }

    /// A program reads this in its fields, one for each; figures, or texts where it [holds words](Self::of_words), where it is not said.
    pub fn with_kinds(self, kinds: &'static [ValueKind]) -> Self {
        Self { kinds, ..self }
    }

    /// It is known of every row.
    pub fn always(self) -> Self {
        Self { is_always: true, ..self }
    }

    /// Whether it is known of every row.
    pub fn is_always(&self) -> bool {
        self.is_always
    }

    /// What a program reads in field `at`.
    pub fn kind(&self, at: usize) -> ValueKind {
        let usual = if self.is_words { ValueKind::Text } else { ValueKind::Number };
        self.kinds.get(at).copied().unwrap_or(usual)
    }

    /// The names of its fields.
    pub fn fields(&self) -> &[&'static str] {
        self.fields.unwrap_or(std::slice::from_ref(&self.key))
    }

    /// Its value of a row.
    pub fn value(&self, row: &R) -> Value {
        let blank = || Value::default().in_words(self.is_blank.then(String::new));
        (self.value)(row).unwrap_or_else(blank)
    }
}

/// A list of columns, in the order in which every format has them.
pub struct Columns<R>(Vec<Column<R>>);

impl<R> Columns<R> {
    /// These columns.
    pub fn new<const N: usize>(columns: [Column<R>; N]) -> Self {
        Self(columns.into())
    }

    /// Those with these keys, in the order of the list.
    pub fn pick(&self, keys: &[&str]) -> Self {
        let keys: Vec<&str> = keys.iter().filter_map(|key| self.get(key)).map(|column| column.key).collect();
        Self(self.iter().filter(|column| keys.contains(&column.key)).cloned().collect())
    }

    /// The same in the order of the keys, for a table that leaves out the last where it is narrow.
    pub fn arranged(&self, keys: &[&str]) -> Self {
        Self(keys.iter().filter_map(|key| self.get(key)).cloned().collect())
    }

    /// All but those with these keys.
    pub fn without(&self, keys: &[&str]) -> Self {
        Self(self.iter().filter(|column| !keys.contains(&column.key)).cloned().collect())
    }

    /// The same, where people read nothing in the place of what is unknown.
    pub fn or_blank(mut self) -> Self {
        self.0.iter_mut().for_each(|column| column.is_blank = true);
        self
    }

    /// The same with one more.
    pub fn with(mut self, column: Column<R>) -> Self {
        self.0.push(column);
        self
    }

    /// The same with another head for the column with this key.
    pub fn headed(mut self, key: &str, head: impl Into<Cow<'static, str>>) -> Self {
        let head = head.into();
        self.0.iter_mut().filter(|column| column.key == key).for_each(|column| column.head = head.clone());
        self
    }

    /// The value of a row in the column with this key.
    pub fn value(&self, key: &str, row: &R) -> Value {
        self.get(key).map(|column| column.value(row)).unwrap_or_default()
    }

    /// A key that there is not is a slip of the program, which tests find.
    fn get(&self, key: &str) -> Option<&Column<R>> {
        let column = self.iter().find(|column| column.key == key);
        debug_assert!(column.is_some(), "no column {key}");
        column
    }

    /// The columns.
    pub fn iter(&self) -> impl Iterator<Item = &Column<R>> + Clone {
        self.0.iter()
    }

    /// The values of a row.
    pub fn values(&self, row: &R) -> Vec<Value> {
        self.iter().map(|column| column.value(row)).collect()
    }
}
