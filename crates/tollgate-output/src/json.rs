//! Rows as JSON: an object for each, with all fields of its columns in their order.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value as Raw;

use crate::column::{Columns, Measure};

/// A row as an object. It can be flattened into a larger one.
#[derive(Debug, Clone, PartialEq)]
pub struct Record(Vec<(String, Raw)>);

impl Record {
    /// The fields of a row.
    pub fn of<R>(columns: &Columns<R>, row: &R) -> Self {
        Self::with(columns, row, |field, raw, _| (field.to_owned(), raw))
    }

    /// The same of a row that is in nanoseconds, for a document whose times are in seconds, as the ends of their names say: `adds_s`.
    pub fn in_seconds<R>(columns: &Columns<R>, row: &R) -> Self {
        Self::with(columns, row, |field, raw, measure| match measure {
            Measure::Bare => (field.to_owned(), raw),
            Measure::OfRow => {
                (format!("{field}_s"), raw.as_f64().map_or(Raw::Null, |ns| Raw::from(ns / 1e9)))
            }
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

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (field, raw) in &self.0 {
            map.serialize_entry(field, raw)?;
        }
        map.end()
    }
}
