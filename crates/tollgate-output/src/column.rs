//! A field of a row, declared once: its key, head, unit, a sentence about it, and how to get it from a row. Every format shows rows
//! by a list of columns; a screen selects some by key, as in facebookincubator/below.

use std::borrow::Cow;

use crate::value::Value;

/// The unit of a column's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// No unit: texts, counts, ratios.
    #[default]
    Bare,
    /// The unit of the row's samples.
    OfRow,
}

/// The type of a field for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A number that may be fractional.
    Number,
    /// A count.
    Whole,
    /// A boolean.
    Flag,
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// The parameters of a case, by name.
    Params,
}

#[cfg(feature = "schema")]
impl ValueKind {
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
    /// Its name for programs, and for screens that select it.
    pub key: &'static str,
    /// Its heading in a table.
    pub head: Cow<'static, str>,
    /// A sentence that describes it.
    pub about: &'static str,
    /// The unit of its figures.
    pub measure: Measure,
    /// Whether it holds words, which are left-aligned; figures are right-aligned.
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
    /// Makes a column of figures without a unit. A value of `None` is unknown, or does not apply.
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

    /// Gives its figures the unit of the row.
    pub fn in_unit(self) -> Self {
        Self { measure: Measure::OfRow, ..self }
    }

    /// Makes it hold words.
    pub fn of_words(self) -> Self {
        Self { is_words: true, ..self }
    }

    /// Names its fields for programs: several, or none if other columns have what it shows.
    pub fn with_fields(self, fields: &'static [&'static str]) -> Self {
        Self { fields: Some(fields), ..self }
    }

    /// Sets the type of each field. The default is a number, or a text if it [holds words](Self::of_words).
    pub fn with_kinds(self, kinds: &'static [ValueKind]) -> Self {
        Self { kinds, ..self }
    }

    /// Declares that every row has a value.
    pub fn always(self) -> Self {
        Self { is_always: true, ..self }
    }

    /// Whether every row has a value.
    pub fn is_always(&self) -> bool {
        self.is_always
    }

    /// Returns the type of field `at`.
    pub fn kind(&self, at: usize) -> ValueKind {
        let usual = if self.is_words { ValueKind::Text } else { ValueKind::Number };
        self.kinds.get(at).copied().unwrap_or(usual)
    }

    /// Returns the names of its fields.
    pub fn fields(&self) -> &[&'static str] {
        self.fields.unwrap_or(std::slice::from_ref(&self.key))
    }

    /// Returns its value for a row.
    pub fn value(&self, row: &R) -> Value {
        let blank = || Value::default().in_words(self.is_blank.then(String::new));
        (self.value)(row).unwrap_or_else(blank)
    }
}

/// Columns in the order in which every format shows them.
pub struct Columns<R>(Vec<Column<R>>);

impl<R> Columns<R> {
    /// Makes a list of these columns.
    pub fn new<const N: usize>(columns: [Column<R>; N]) -> Self {
        Self(columns.into())
    }

    /// Selects the columns with these keys, in the order of the list.
    pub fn pick(&self, keys: &[&str]) -> Self {
        let keys: Vec<&str> = keys.iter().filter_map(|key| self.get(key)).map(|column| column.key).collect();
        Self(self.iter().filter(|column| keys.contains(&column.key)).cloned().collect())
    }

    /// Selects columns in the order of the keys, for a table that drops the last ones if it is narrow.
    pub fn arranged(&self, keys: &[&str]) -> Self {
        Self(keys.iter().filter_map(|key| self.get(key)).cloned().collect())
    }

    /// Removes the columns with these keys.
    pub fn without(&self, keys: &[&str]) -> Self {
        Self(self.iter().filter(|column| !keys.contains(&column.key)).cloned().collect())
    }

    /// Shows nothing to people where a value is unknown.
    pub fn or_blank(mut self) -> Self {
        self.0.iter_mut().for_each(|column| column.is_blank = true);
        self
    }

    /// Appends a column.
    pub fn with(mut self, column: Column<R>) -> Self {
        self.0.push(column);
        self
    }

    /// Replaces the heading of the column with this key.
    pub fn headed(mut self, key: &str, head: impl Into<Cow<'static, str>>) -> Self {
        let head = head.into();
        self.0.iter_mut().filter(|column| column.key == key).for_each(|column| column.head = head.clone());
        self
    }

    /// Returns the value of a row in the column with this key.
    pub fn value(&self, key: &str, row: &R) -> Value {
        self.get(key).map(|column| column.value(row)).unwrap_or_default()
    }

    /// An unknown key is a bug of the program that tests find.
    fn get(&self, key: &str) -> Option<&Column<R>> {
        let column = self.iter().find(|column| column.key == key);
        debug_assert!(column.is_some(), "no column {key}");
        column
    }

    /// Returns the columns.
    pub fn iter(&self) -> impl Iterator<Item = &Column<R>> + Clone {
        self.0.iter()
    }

    /// Returns the values of a row.
    pub fn values(&self, row: &R) -> Vec<Value> {
        self.iter().map(|column| column.value(row)).collect()
    }
}
