//! Comma-separated values (RFC 4180), safe to open in a spreadsheet.

use serde_json::Value as Raw;

use crate::column::Columns;

pub use csv::Terminator;

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell(String);

impl From<&str> for Cell {
    /// Spreadsheets compute a field that begins like a formula (OWASP, "CSV Injection"). An apostrophe before it makes it text. A
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

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl From<Raw> for Cell {
    /// A list has its values apart by `; `, an object its pairs `name=value` by blanks.
    fn from(raw: Raw) -> Self {
        let of = |raw: Raw| Self::from(raw).0;
        match raw {
            Raw::Null => Self(String::new()),
            Raw::Bool(flag) => Self(flag.to_string()),
            Raw::Number(number) if number.is_f64() => number.as_f64().into(),
            Raw::Number(number) => Self(number.to_string()),
            Raw::String(text) => Self::from(text.as_str()),
            Raw::Array(values) => Self(values.into_iter().map(of).collect::<Vec<_>>().join("; ")),
            Raw::Object(pairs) => {
                let pairs = pairs.into_iter().map(|(name, value)| format!("{name}={}", of(value)));
                Self(pairs.collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// Rows, with the names of their fields as a header.
pub fn of<R>(columns: &Columns<R>, data: impl IntoIterator<Item = R>, end: Terminator) -> String {
    let header = columns.iter().flat_map(|column| column.fields()).map(|field| (*field).to_owned());
    let record = |row: R| {
        let cells = columns.iter().flat_map(|column| {
            let value = column.value(&row);
            let cells = (0..column.fields().len()).map(|at| Cell::from(value.raw(at)));
            cells.collect::<Vec<_>>()
        });
        cells.collect()
    };
    rows(header.collect(), data.into_iter().map(record), end)
}

/// A table with a header.
pub fn table<const N: usize>(
    columns: [&str; N],
    data: impl IntoIterator<Item = [Cell; N]>,
    end: Terminator,
) -> String {
    rows(columns.map(str::to_owned).into(), data.into_iter().map(Vec::from), end)
}

/// The same where the number of columns follows from the data. All rows have as many fields as the header.
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
    use super::*;

    #[test]
    fn texts_are_no_formulas_and_numbers_are_numbers() {
        let row = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "'x", "x=1", ""].map(Cell::from);
        let text = table(["a", "b", "c", "d", "e", "f", "g", "h", "i"], [row], Terminator::CRLF);
        assert_eq!(text, "a,b,c,d,e,f,g,h,i\r\n'=1+1,'+x,'-x,'@x,'\tx,\"'\rx\",''x,x=1,\r\n");
        let row = [Cell::from(Some(-0.5)), None.into(), 7.into()];
        assert_eq!(table(["a", "b", "c"], [row], Terminator::Any(b'\n')), "a,b,c\n-0.5,,7\n");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let row = ["plain", "a, \"b\"", "two\nlines"].map(Cell::from);
        let text = table(["a", "b", "c"], [row], Terminator::Any(b'\n'));
        assert_eq!(text, "a,b,c\nplain,\"a, \"\"b\"\"\",\"two\nlines\"\n");
    }
}
