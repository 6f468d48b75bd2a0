//! `tollgate config`: the effective values of configuration files, and the source of each.

use serde::Serialize;
use tollgate_output::table::{Look, Table};

use crate::args::{ConfigurationArgs, Format};
use crate::configuration::{Configuration, Origin, Setting, Value};
use crate::failure::Failure;
use crate::out;

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Settings"))]
pub struct Shown {
    /// The files that were looked for, the one with precedence first.
    files: Vec<File>,
    /// One object for each key that a file has.
    settings: Vec<SettingRecord>,
}

/// A file of settings.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FileOfSettings"))]
struct File {
    /// Its path.
    path: String,
    /// `given`, `project` or `user`.
    origin: &'static str,
    /// Number of its values; None if it is not read.
    values: Option<usize>,
    /// Why it is not read, or None.
    why: Option<String>,
}

/// A key and its value.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Setting"))]
struct SettingRecord {
    /// The table, such as `store.list`; empty for all verbs.
    table: String,
    /// The key.
    key: String,
    /// A text, a number, a truth value, or a list of these.
    value: serde_json::Value,
    /// Path and line.
    from: String,
    /// Whether it counts. A value that a project's file may not give does not.
    counts: bool,
    #[serde(skip)]
    why: String,
}

impl ConfigurationArgs {
    pub fn execute(&self) -> Result<(), Failure> {
        let shown =
            Shown { files: self.read.files.iter().map(file).collect(), settings: records(&self.read) };
        match self.format {
            Format::Json => out::print_json(&shown),
            Format::Table => out::print(&text(&shown)),
        }
    }
}

fn file(file: &crate::configuration::File) -> File {
    let origin = match file.origin {
        Origin::Given => "given",
        Origin::Found => "project",
        Origin::User => "user",
    };
    let why = file.why.clone();
    File { path: file.path.display().to_string(), origin, values: why.is_none().then_some(file.entries), why }
}

fn records(read: &Configuration) -> Vec<SettingRecord> {
    let from = |file: usize, line: usize| format!("{}:{line}", read.files[file].path.display());
    let record = |one: &Setting, why: Option<&str>| SettingRecord {
        table: one.verb.join("."),
        key: one.key.clone(),
        value: json(&one.value),
        from: from(one.file, one.line),
        counts: why.is_none(),
        why: why.unwrap_or_default().to_owned(),
    };
    let (counting, refused) = read.counting();
    let settings = counting.into_iter().map(|one| record(one, None));
    let refused = refused.into_iter().map(|(one, why)| record(one, Some(why)));
    let environments = read.environments.iter().map(|one| SettingRecord {
        table: "environments".to_owned(),
        key: one.name.clone(),
        value: one.environment.clone().into(),
        from: one.from.clone(),
        counts: one.refused.is_none(),
        why: one.refused.clone().unwrap_or_default(),
    });
    let mut records: Vec<SettingRecord> = settings.chain(refused).chain(environments).collect();
    records.sort_by(|a, b| (&a.table, &a.key).cmp(&(&b.table, &b.key)));
    records
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.clone().into(),
        Value::Number(number) => serde_json::from_str(number).unwrap_or_else(|_| number.clone().into()),
        Value::Truth(truth) => (*truth).into(),
        Value::List(values) => values.iter().map(json).collect(),
    }
}

fn text(shown: &Shown) -> String {
    let mut files = Table::new(&["file", "values"]).with_words(&["file"]);
    for file in &shown.files {
        let values = file.values.map_or_else(|| "–".to_owned(), |values| values.to_string());
        let why: Vec<String> = file.why.iter().cloned().collect();
        files.row(Look::Plain, &[file.path.clone(), values], &why);
    }
    let mut text = files.render(out::width());
    if shown.settings.is_empty() {
        return text + "No value is set.\n";
    }
    let mut settings =
        Table::new(&["table", "key", "value", "from"]).with_words(&["table", "key", "value", "from"]);
    for one in &shown.settings {
        let table = if one.table.is_empty() { "–".to_owned() } else { format!("[{}]", one.table) };
        let reason = if one.why.is_empty() { String::new() } else { format!(" ({})", one.why) };
        let note = (!one.counts).then(|| {
            format!("not taken from a file that was found, not named{reason}; name the file with --config")
        });
        let note: Vec<String> = note.into_iter().collect();
        let look = if one.counts { Look::Plain } else { Look::Flagged };
        settings.row(look, &[table, one.key.clone(), one.value.to_string(), one.from.clone()], &note);
    }
    text.push('\n');
    text + &settings.render(out::width())
}
