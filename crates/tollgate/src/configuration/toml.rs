//! The part of TOML 1.0 that a configuration file needs: tables, and in them text, numbers, `true`, `false` and lists of those. What else
//! TOML has (dates, tables in a line, dotted keys, text of several lines) is refused by name.
//!
//! A crate for all of TOML adds 45 to 95 KiB to the program. A test holds this reader against one.

/// More lists in lists are none that an option takes, and more names of a table none that a verb has.
const MOST_DEPTH: usize = 8;
/// More tables and values than all options of all verbs have. Each key is compared with those before it.
const MOST: usize = 1000;

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text, without its quotes.
    Text(String),
    /// A number in decimal.
    Number(String),
    /// `true` or `false`.
    Truth(bool),
    /// A list.
    List(Vec<Value>),
}

/// A line that gives a key its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The names of its table; none before the first.
    pub table: Vec<String>,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The number of its line, from 1.
    pub line: usize,
}

/// Why a text is not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Fault {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub why: String,
}

/// The entries of a text, in its order.
///
/// # Errors
/// What is no TOML, what this reader has no use for, and a key or table that is there twice.
pub fn read(text: &str) -> Result<Vec<Entry>, Fault> {
    let mut reader = Reader { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1, left: MOST };
    let mut entries: Vec<Entry> = Vec::new();
    let mut tables: Vec<Vec<String>> = Vec::new();
    let mut table: Vec<String> = Vec::new();
    loop {
        reader.skip(true)?;
        let line = reader.line;
        let fault = |why: String| Fault { line, why };
        if reader.rest.is_empty() {
            return Ok(entries);
        }
        if reader.take('[') {
            table = reader.header()?;
            if tables.contains(&table) {
                return Err(fault(format!("the table [{}] is there twice", table.join("."))));
            }
            tables.push(table.clone());
            if entries.iter().any(|entry| entry.is_above(&table)) {
                return Err(fault(format!("[{}] has a value already, and is no table", table.join("."))));
            }
        } else {
            let key = reader.key()?;
            reader.skip(false)?;
            if reader.rest.starts_with('.') {
                return Err(fault("a key has no dot; write a table, such as [store.list]".to_owned()));
            }
            if !reader.take('=') {
                return Err(fault(format!("behind the key {key} comes `=` and a value")));
            }
            let value = reader.value(MOST_DEPTH)?;
            let entry = Entry { table: table.clone(), key, value, line };
            if entries.iter().any(|known| known.key == entry.key && known.table == entry.table) {
                return Err(fault(format!("{} is there twice", entry.key)));
            }
            if tables.iter().any(|table| entry.is_above(table)) {
                return Err(fault(format!("{} is a table already, and no value", entry.key)));
            }
            entries.push(entry);
        }
        reader.skip(false)?;
        if !reader.rest.is_empty() && !reader.newline() {
            return Err(reader.fault("the line goes on behind its end"));
        }
    }
}

impl Entry {
    /// Whether a table would lie in this value, or be it.
    fn is_above(&self, table: &[String]) -> bool {
        table.get(self.table.len()) == Some(&self.key) && table.starts_with(&self.table)
    }
}

impl Value {
    /// A text or a number.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Truth(_) | Self::List(_) => None,
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
    /// How many tables and values may come.
    left: usize,
}

impl Reader<'_> {
    fn fault(&self, why: impl Into<String>) -> Fault {
        Fault { line: self.line, why: why.into() }
    }

    /// Counts a table or a value.
    fn count(&mut self) -> Result<(), Fault> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            self.fault(format!("a file has at most {MOST} tables and values, those of lists too"))
        })?;
        Ok(())
    }

    fn take(&mut self, what: char) -> bool {
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn newline(&mut self) -> bool {
        let rest = self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n'));
        self.rest = rest.unwrap_or(self.rest);
        self.line += usize::from(rest.is_some());
        rest.is_some()
    }

    /// Goes on behind spaces, comments, and where they may be ends of lines.
    fn skip(&mut self, lines: bool) -> Result<(), Fault> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if self.rest.starts_with('#') {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                let comment = self.rest[..end].trim_end_matches('\r');
                if comment.contains(is_refused) {
                    return Err(self.fault("a comment has a control character"));
                }
                self.rest = &self.rest[comment.len()..];
            }
            if !(lines && self.newline()) {
                return Ok(());
            }
        }
    }

    /// The names of `[a.b]`, behind its first bracket.
    fn header(&mut self) -> Result<Vec<String>, Fault> {
        if self.rest.starts_with('[') {
            return Err(self.fault("a table is there once: [name], and not [[name]]"));
        }
        self.count()?;
        let mut names = Vec::new();
        loop {
            self.skip(false)?;
            names.push(self.key()?);
            self.skip(false)?;
            if self.take(']') {
                return Ok(names);
            }
            if !self.take('.') {
                return Err(self.fault("a table's name ends with `]`"));
            }
            if names.len() == MOST_DEPTH {
                return Err(self.fault("tables are too deep in one another"));
            }
        }
    }

    fn key(&mut self) -> Result<String, Fault> {
        if self.rest.starts_with(['"', '\'']) {
            return self.text();
        }
        let is_of_it = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let end = self.rest.find(|c| !is_of_it(c)).unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(end);
        self.rest = rest;
        match key.is_empty() {
            true => Err(self.fault("a line is `key = value` or `[table]`")),
            false => Ok(key.to_owned()),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        self.count()?;
        self.skip(false)?;
        if self.rest.starts_with(['"', '\'']) {
            return self.text().map(Value::Text);
        }
        if self.take('[') {
            return self.list(depth).map(Value::List);
        }
        let end = self.rest.find([' ', '\t', '\r', '\n', ',', ']', '#']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = match word {
            "true" => Value::Truth(true),
            "false" => Value::Truth(false),
            number if is_decimal(number) => Value::Number(number.to_owned()),
            _ => {
                const FORMS: &str = "a value is text in quotes, a number such as 10 or 0.5, true, false, or a list of those in brackets";
                return Err(self.fault(FORMS));
            }
        };
        self.rest = rest;
        Ok(value)
    }

    /// The values of a list, behind its bracket.
    fn list(&mut self, depth: usize) -> Result<Vec<Value>, Fault> {
        if depth == 0 {
            return Err(self.fault("lists are too deep in one another"));
        }
        let mut values = Vec::new();
        loop {
            self.skip(true)?;
            if self.take(']') {
                return Ok(values);
            }
            values.push(self.value(depth - 1)?);
            self.skip(true)?;
            if !self.take(',') && !self.rest.starts_with(']') {
                return Err(self.fault("behind a value of a list comes `,` or `]`"));
            }
        }
    }

    /// Text in quotes, of which `"` has escapes.
    fn text(&mut self) -> Result<String, Fault> {
        let quote = if self.take('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.take(quote);
        }
        if self.rest.starts_with([quote; 2].iter().collect::<String>().as_str()) {
            return Err(self.fault("text has one line; several are a list"));
        }
        let mut text = String::new();
        let mut characters = self.rest.chars();
        loop {
            match characters.next() {
                Some(end) if end == quote => break,
                Some('\\') if quote == '"' => text.push(escaped(&mut characters).ok_or_else(|| {
                    self.fault("an escape is one of \\\\ \\\" \\n \\t \\r \\b \\f, \\uXXXX and \\UXXXXXXXX; a backslash is itself between single quotes")
                })?),
                None | Some('\n') => return Err(self.fault(format!("text ends with {quote} on its line"))),
                Some(control) if is_refused(control) => {
                    return Err(self.fault("text has a control character; write it as an escape"));
                }
                Some(other) => text.push(other),
            }
        }
        self.rest = characters.as_str();
        Ok(text)
    }
}

/// Control characters but the tab stand nowhere in TOML.
fn is_refused(c: char) -> bool {
    c.is_ascii_control() && c != '\t'
}

fn escaped(characters: &mut std::str::Chars<'_>) -> Option<char> {
    let letter = characters.next()?;
    let number = match letter {
        'u' => 4,
        'U' => 8,
        other => return simple(other),
    };
    let rest = characters.as_str();
    let digits = rest.get(..number).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    *characters = rest[number..].chars();
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

fn simple(letter: char) -> Option<char> {
    match letter {
        '"' | '\\' => Some(letter),
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        _ => None,
    }
}

/// `10`, `-1`, `0.5`: as programs write numbers, without the other forms of TOML.
fn is_decimal(word: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.strip_prefix('-').unwrap_or(word);
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    // An integer of TOML has 64 bits.
    is_digits(whole) && is_digits(part) && (whole == "0" || !whole.starts_with('0')) && whole.len() <= 18
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The entries of another reader's table, as this one has them, in the order of their names.
    fn flat(table: &toml::Table, names: &[String], found: &mut Vec<(Vec<String>, Value)>) -> bool {
        table.iter().all(|(key, value)| {
            let path: Vec<String> = names.iter().chain([key]).cloned().collect();
            match value {
                toml::Value::Table(inner) => flat(inner, &path, found),
                other => plain(other).is_some_and(|value| {
                    found.push((path, value));
                    true
                }),
            }
        })
    }

    fn plain(value: &toml::Value) -> Option<Value> {
        Some(match value {
            toml::Value::String(text) => Value::Text(text.clone()),
            toml::Value::Integer(number) => Value::Number(number.to_string()),
            toml::Value::Float(number) => Value::Number(number.to_string()),
            toml::Value::Boolean(truth) => Value::Truth(*truth),
            toml::Value::Array(values) => Value::List(values.iter().map(plain).collect::<Option<_>>()?),
            _ => return None,
        })
    }

    /// Numbers by their value.
    fn canonical(value: Value) -> Value {
        match value {
            Value::Number(number) => Value::Number(number.parse::<f64>().unwrap().to_string()),
            Value::List(values) => Value::List(values.into_iter().map(canonical).collect()),
            other => other,
        }
    }

    fn path(entry: &Entry) -> Vec<String> {
        entry.table.iter().chain([&entry.key]).cloned().collect()
    }

    /// What this reader accepts the other one accepts, with the same values.
    fn expect_the_same(text: &str) -> Option<Vec<Entry>> {
        let own = read(text).ok()?;
        let other: toml::Table = text.parse().unwrap_or_else(|why| panic!("{text:?}: {why}"));
        let mut expected = Vec::new();
        assert!(flat(&other, &[], &mut expected), "{text:?}");
        let by_path = |(path, value): (Vec<String>, Value)| (path, canonical(value));
        let mut expected: Vec<_> = expected.into_iter().map(by_path).collect();
        let mut found: Vec<_> = own.iter().map(|entry| by_path((path(entry), entry.value.clone()))).collect();
        expected.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(found, expected, "{text:?}");
        Some(own)
    }

    #[test]
    fn a_file_is_read_as_another_reader_reads_it() {
        const FILE: &str = "\u{feff}color = \"never\" # as NO_COLOR\r\n\n[run]\ntime = 10\npattern = [\n  'entry', # first\n \"tr\\u0061ps\",\n]\n\
            quick = false\n[store.list] \nformat='a\\b'\n[ \"compare\" . x ]\nthreshold = -0.5";
        let entries = expect_the_same(FILE).expect("it reads");
        assert_eq!(entries.len(), 6);
        assert_eq!(
            entries[2].value,
            Value::List(vec![Value::Text("entry".into()), Value::Text("traps".into())])
        );
        assert_eq!((entries[4].table.join("."), entries[4].line), ("store.list".to_owned(), 11));
        assert_eq!(entries[4].value, Value::Text("a\\b".into()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, why) in [
            ("a = 1\na = 2", 2, "a is there twice"),
            ("[a]\nb = 1\n[a]\n", 3, "the table [a] is there twice"),
            ("a = 1\n[a.b]\n", 2, "[a.b] has a value already"),
            ("[a.b]\n[c]\n[a]\nb = 1", 4, "b is a table already"),
            ("a", 1, "behind the key a comes `=`"),
            ("a.b = 1", 1, "a key has no dot"),
            ("a = b", 1, "text in quotes"),
            ("a = 1979-05-27", 1, "text in quotes"),
            ("a = {}", 1, "text in quotes"),
            ("a = 01", 1, "text in quotes"),
            ("a =", 1, "text in quotes"),
            ("a = 'x", 1, "text ends with '"),
            ("a = \"\"\"x\"\"\"", 1, "text has one line"),
            ("a = '\u{1}'", 1, "control character"),
            ("# \u{1}", 1, "control character"),
            ("a = \"\\x\"", 1, "an escape is one of"),
            ("a = \"\\uD800\"", 1, "an escape is one of"),
            ("a = [1", 1, "comes `,` or `]`"),
            ("a = [1\n 2]", 2, "comes `,` or `]`"),
            ("a = 1 b = 2", 1, "goes on behind its end"),
            ("[a", 1, "ends with `]`"),
            ("[[a]]", 1, "not [[name]]"),
            ("= 1", 1, "`key = value`"),
        ] {
            let fault = read(text).expect_err(text);
            assert!(fault.line == line && fault.why.contains(why), "{text:?}: {fault}");
        }
        assert!(read(&format!("a = {}", "[".repeat(100_000))).expect_err("deep").why.contains("too deep"));
    }

    #[test]
    fn tables_and_values_are_counted() {
        let lines = |number: usize, line: &dyn Fn(usize) -> String| (0..number).map(line).collect::<String>();
        let keys = |number| lines(number, &|at| format!("a{at} = 1\n"));
        let tables = |number| lines(number, &|at| format!("[a{at}]\n"));
        let values = |number| format!("a = [\n{}]", "1,\n".repeat(number));
        assert_eq!(read(&keys(MOST)).expect("keys").len(), MOST);
        assert!(read(&tables(MOST)).is_ok() && read(&values(MOST - 1)).is_ok());
        for (text, line) in
            [(keys(MOST + 1), MOST + 1), (tables(MOST + 1), MOST + 1), (values(MOST), MOST + 1)]
        {
            let fault = read(&text).expect_err("too many");
            assert!(fault.line == line && fault.why.contains("at most 1000"), "{fault}");
        }
        assert!(read("[a.a.a.a.a.a.a.a]").is_ok());
        assert!(read(&format!("[a{}]", ".a".repeat(30_000))).expect_err("deep").why.contains("too deep"));
    }

    proptest! {
        #[test]
        fn what_is_accepted_another_reader_accepts(text in "([\\[a.b\\]=\"'#, \\\\tn0u1-]|\n|\r|true|a = |\\[a\\]\n){0,24}") {
            expect_the_same(&text);
        }
    }
}
