//! Rows as JSON: an object per row, with all fields of its columns in order.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value as Raw;

use crate::column::{Columns, Measure};

/// A row as an object. It can be flattened into a larger one.
#[derive(Debug, Clone, PartialEq)]
pub struct Record(Vec<(String, Raw)>);

impl Record {
    /// Returns the fields of a row.
    pub fn from_row<R>(columns: &Columns<R>, row: &R) -> Self {
        Self::with(columns, row, |field, raw, _| (field.to_owned(), raw))
    }

    /// Returns the fields of a row in nanoseconds, for a document whose times are in seconds, as the suffixes of their names say:
    /// `adds_s`.
    pub fn in_seconds<R>(columns: &Columns<R>, row: &R) -> Self {
        Self::with(columns, row, |field, raw, measure| {
            let raw = match measure {
                Measure::Bare => raw,
                Measure::OfRow => raw.as_f64().map_or(Raw::Null, |ns| Raw::from(ns / 1e9)),
            };
            (name_in_seconds(field, measure), raw)
        })
    }

    fn with<R>(
        columns: &Columns<R>,
        row: &R,
        shown: impl Fn(&'static str, Raw, Measure) -> (String, Raw),
    ) -> Self {
        let fields = columns.iter().flat_map(|column| {
            let value = column.value(row);
            let fields = column.fields().iter().copied().enumerate();
            fields.map(|(at, field)| shown(field, value.raw(at), column.measure)).collect::<Vec<_>>()
        });
        Self(fields.collect())
    }
}

fn name_in_seconds(field: &str, measure: Measure) -> String {
    match measure {
        Measure::Bare => field.to_owned(),
        Measure::OfRow => format!("{field}_s"),
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (field, raw) in &self.0 {
            map.serialize_entry(field, raw)?;
        }
        map.end()
    }
}

/// A type that says in a schema what a [`Record`] of some columns is.
#[cfg(feature = "schema")]
#[macro_export]
macro_rules! described {
    ($(#[doc = $about:literal])* $name:ident, $schema:expr) => {
        $(#[doc = $about])*
        pub(crate) struct $name;

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema: schemars::Schema = $schema;
                schema.insert("description".to_owned(), [$($about.trim()),*].join(" ").into());
                schema
            }
        }
    };
}

/// Returns the JSON Schema of [`Record::from_row`] with these columns.
#[cfg(feature = "schema")]
pub fn schema<R>(columns: &Columns<R>) -> schemars::Schema {
    described(columns, |field, _| vec![field.to_owned()])
}

/// Returns the JSON Schema of a record that is [in seconds](Record::in_seconds), or unchanged if its rows are not times.
#[cfg(feature = "schema")]
pub fn schema_in_seconds<R>(columns: &Columns<R>) -> schemars::Schema {
    described(columns, |field, measure| {
        let mut names = vec![field.to_owned(), name_in_seconds(field, measure)];
        names.dedup();
        names
    })
}

/// `names` returns the names that a field can have; one of them is present.
#[cfg(feature = "schema")]
fn described<R>(columns: &Columns<R>, names: impl Fn(&str, Measure) -> Vec<String>) -> schemars::Schema {
    use serde_json::json;

    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    for column in columns.iter() {
        for (at, field) in column.fields().iter().enumerate() {
            let mut of_field = column.kind(at).schema();
            if !column.is_always() {
                of_field["type"] = json!([of_field["type"], "null"]);
            }
            of_field["description"] = json!(column.about);
            let names = names(field, column.measure);
            if let [name] = names.as_slice() {
                required.push(name.clone());
            } else {
                of_field["nullable"] = json!(true);
            }
            properties.extend(names.into_iter().map(|name| (name, of_field.clone())));
        }
    }
    let whole = json!({ "type": "object", "properties": properties, "required": required });
    schemars::Schema::try_from(whole).unwrap_or_default()
}
