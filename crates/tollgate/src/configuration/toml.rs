//! The entries of a configuration file: tables of TOML, with text, numbers, `true`, `false` and lists of those.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Number(String),
    Truth(bool),
    List(Vec<Value>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub table: Vec<String>,
    pub key: String,
    pub value: Value,
    pub line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub line: usize,
    pub why: String,
}

/// More values than all options of all verbs have. Each is checked like those of the command line.
const MOST: usize = 1000;

/// Fails on invalid TOML, a date or a list of tables, and more than [`MOST`] values.
pub fn read(text: &str) -> Result<Vec<Entry>, Fault> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let word = text.get(span.clone()).filter(|word| (1..=LONGEST).contains(&word.len()));
        let word = word.map(|word| format!("; found {word:?}")).unwrap_or_default();
        Fault { line: line(span.start), why: format!("{}{word}", error.message()) }
    })?;
    let mut found = BTreeMap::new();
    flatten(document.get_ref(), &[], &mut found)
        .map_err(|at| Fault { line: line(at), why: FORMS.to_owned() })?;
    let mut left = MOST;
    for (at, (.., value)) in &found {
        left = left.checked_sub(value.size()).ok_or_else(|| Fault {
            line: line(*at),
            why: format!("a file has at most {MOST} values, those of lists too"),
        })?;
    }
    let entry = |(at, (table, key, value))| Entry { table, key, value, line: line(at) };
    Ok(found.into_iter().map(entry).collect())
}

const LONGEST: usize = 40;

const FORMS: &str =
    "a value is text in quotes, a number such as 10 or 0.5, true, false, or a list of those in brackets";

/// The values of a table and of its subtables, by the position of their keys. The error is the position of a value of another
/// form.
fn flatten(
    table: &DeTable<'_>,
    names: &[String],
    found: &mut BTreeMap<usize, (Vec<String>, String, Value)>,
) -> Result<(), usize> {
    for (key, value) in table {
        let name = key.get_ref().to_string();
        if let DeValue::Table(inner) = value.get_ref() {
            flatten(inner, &[names, &[name]].concat(), found)?;
        } else {
            let read = Value::read(value.get_ref()).ok_or(value.span().start)?;
            found.insert(key.span().start, (names.to_vec(), name, read));
        }
    }
    Ok(())
}

impl Value {
    fn read(value: &DeValue<'_>) -> Option<Self> {
        Some(match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(number) => {
                Self::Number(i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string())
            }
            DeValue::Float(number) => Self::Number(number.as_str().to_owned()),
            DeValue::Boolean(truth) => Self::Truth(*truth),
            DeValue::Array(values) => {
                Self::List(values.iter().map(|value| Self::read(value.get_ref())).collect::<Option<_>>()?)
            }
            DeValue::Datetime(_) | DeValue::Table(_) => return None,
        })
    }

    /// Counts the values of lists too.
    fn size(&self) -> usize {
        let within: &[Self] = if let Self::List(values) = self { values } else { &[] };
        1 + within.iter().map(Self::size).sum::<usize>()
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Truth(_) | Self::List(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_have_their_tables_and_lines_in_the_order_of_the_text() {
        const FILE: &str = "\u{feff}color = \"never\" # as NO_COLOR\r\n\n[run]\ntime = 10\npattern = [\n  'entry', # first\n \"tr\\u0061ps\",\n]\n\
            quick = false\n[store.list] \nformat='a\\b'\n[ \"compare\" . x ]\nthreshold = -0.5\nleast = 0x10";
        let shown: Vec<String> = read(FILE)
            .expect("it reads")
            .iter()
            .map(|one| format!("{} {}.{} = {:?}", one.line, one.table.join("."), one.key, one.value))
            .collect();
        assert_eq!(
            shown,
            [
                "1 .color = Text(\"never\")",
                "4 run.time = Number(\"10\")",
                "5 run.pattern = List([Text(\"entry\"), Text(\"traps\")])",
                "9 run.quick = Truth(false)",
                "11 store.list.format = Text(\"a\\\\b\")",
                "13 compare.x.threshold = Number(\"-0.5\")",
                "14 compare.x.least = Number(\"16\")",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, why) in [
            ("a = 1\na = 2", 2, "duplicate key; found \"a\""),
            ("[a]\nb = 1\n[a]\n", 3, "duplicate key"),
            ("a", 1, "expected `=`"),
            ("a = b", 1, "must be quoted"),
            ("\na = 1979-05-27", 2, FORMS),
            ("[[a]]", 1, FORMS),
            ("a = 99999999999999999999", 1, FORMS),
            ("a = 'x", 1, "expected `'`"),
            ("\n\na = [1", 3, "expected `]`"),
            ("[a", 1, "expected `]`"),
        ] {
            let fault = read(text).expect_err(text);
            assert!(fault.line == line && fault.why.contains(why), "{text:?}: {fault:?}");
        }
        assert!(read(&format!("a = {}", "[".repeat(60_000))).is_err());
        assert!(read(&format!("[a{}]", ".a".repeat(30_000))).is_err());
    }

    #[test]
    fn values_are_counted() {
        let keys = |number| (0..number).map(|at| format!("a{at} = 1\n")).collect::<String>();
        let values = |number| format!("\na = [{}]", "1,\n".repeat(number));
        assert_eq!(read(&keys(MOST)).expect("keys").len(), MOST);
        assert!(read(&values(MOST - 1)).is_ok());
        for (text, line) in [(keys(MOST + 1), MOST + 1), (values(MOST), 2)] {
            let fault = read(&text).expect_err("too many");
            assert!(fault.line == line && fault.why.contains("at most 1000"), "{fault:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_entries_or_a_fault_in_one_of_its_lines(
            text in "([\\[a.b\\]=\"'#, \\\\tn0u1{}-]|\n|\r|true|a = |\\[a\\]\n){0,24}"
        ) {
            let lines = 1 + text.matches('\n').count();
            let line = read(&text).map_or_else(|fault| fault.line, |all| all.last().map_or(1, |one| one.line));
            prop_assert!((1..=lines).contains(&line), "{text:?}: {line}");
        }
    }
}
