//! Comma-separated values (RFC 4180) that are safe to open in a spreadsheet.

use serde_json::Value as Raw;
use tollgate_model::text::clean;

use crate::column::Columns;

pub use csv::Terminator;

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell(String);

impl From<&str> for Cell {
    /// Spreadsheets evaluate a field that begins like a formula (OWASP, "CSV Injection"). A leading apostrophe makes it text. A
    /// field that begins with an apostrophe gets another, so that removing one always restores the text.
    fn from(text: &str) -> Self {
        let is_computed = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']);
        Self(if is_computed { format!("'{text}") } else { text.to_owned() })
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        Self(number.map(|number| number.to_string()).unwrap_or_default())
    }
}

impl Cell {
    fn new(raw: Raw, reader: Reader) -> Self {
        match raw {
            Raw::Number(number) if number.is_f64() => number.as_f64().into(),
            Raw::Null | Raw::Bool(_) | Raw::Number(_) => Self(plain(&raw)),
            raw if reader == Reader::Terminal => Self::from(&*clean(&plain(&raw))),
            raw => Self::from(plain(&raw).as_str()),
        }
    }
}

/// A value as one text. List items are separated by `; `, the pairs of an object are `name=value`, separated by a space. A
/// backslash precedes a space, an equals sign or a backslash within a name or a value.
fn plain(raw: &Raw) -> String {
    match raw {
        Raw::Null => String::new(),
        Raw::String(text) => text.clone(),
        Raw::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join("; "),
        Raw::Object(pairs) => {
            let pairs =
                pairs.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(&plain(value))));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Raw::Bool(_) | Raw::Number(_) => raw.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let escape = |c: char| if matches!(c, ' ' | '=' | '\\') { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// The reader of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A terminal, or a program next to it: lines end with a line feed, and control sequences are written out.
    Terminal,
    /// Another system: lines end as in RFC 4180, and every text reads back unchanged.
    System,
}

/// Writes rows, with the names of their fields as a header.
pub fn from_rows<R>(columns: &Columns<R>, data: impl IntoIterator<Item = R>, reader: Reader) -> String {
    let header = columns.iter().flat_map(|column| column.fields()).map(|field| (*field).to_owned());
    let record = |row: R| {
        let cells = columns.iter().flat_map(|column| {
            let value = column.value(&row);
            (0..column.fields().len()).map(|at| Cell::new(value.raw(at), reader)).collect::<Vec<_>>()
        });
        cells.collect()
    };
    let end = match reader {
        Reader::Terminal => Terminator::Any(b'\n'),
        Reader::System => Terminator::CRLF,
    };
    rows(header.collect(), data.into_iter().map(record), end)
}

/// Writes a table with a header. All rows have as many fields as the header.
pub fn rows(header: Vec<String>, data: impl IntoIterator<Item = Vec<Cell>>, end: Terminator) -> String {
    let mut writer = csv::WriterBuilder::new().terminator(end).from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(header);
    for row in data {
        let _ = writer.write_record(row.into_iter().map(|cell| cell.0.into_bytes()));
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::column::Column;
    use crate::value::Value;

    fn line(values: &[Raw], reader: Reader) -> String {
        let columns =
            Columns::new([Column::new("v", "", "", |value: &Raw| Some(Value::new([value.clone()], "")))]);
        let lines = from_rows(&columns, values.to_vec(), reader);
        lines.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
    }

    #[test]
    fn texts_are_no_formulas_and_numbers_are_numbers() {
        let texts = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "'x", "x=1", ""].map(Raw::from);
        let lines = line(&texts, Reader::System);
        assert_eq!(lines, "'=1+1\r\n'+x\r\n'-x\r\n'@x\r\n'\tx\r\n\"'\rx\"\r\n''x\r\nx=1\r\n\"\"\r\n");
        assert_eq!(
            line(&[json!(-0.5), json!(7), json!(true), json!(3.0)], Reader::Terminal),
            "-0.5\n7\ntrue\n3\n"
        );
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let lines = line(&["plain", "a, \"b\"", "two\nlines"].map(Raw::from), Reader::System);
        assert_eq!(lines, "plain\r\n\"a, \"\"b\"\"\"\r\n\"two\nlines\"\r\n");
        // Text of a document must not control a terminal.
        assert_eq!(line(&["two\nlines\u{9b}2J".into()], Reader::Terminal), "two\\nlines\\u{9b}2J\n");
    }

    #[test]
    fn a_list_and_an_object_are_one_field() {
        let values = [json!(["a", "b"]), json!({"n": 4, "with": "a b=c\\"})];
        assert_eq!(line(&values, Reader::System), "a; b\r\nn=4 with=a\\ b\\=c\\\\\r\n");
    }
}
