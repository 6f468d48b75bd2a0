//! The page: between its marks stand tables of fields and lists of columns, which are made of the types.
//!
//! `<!-- fields: show ShownRun -->` is the table of the type of that name in docs/schema/show.json; tables of other types link to it. Types
//! that have no table are described in the tables of those that have them: `quality.grade`. Further names are those of types whose
//! fields are in this table too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tollgate_model::Run;
use tollgate_model::sorting::Ordered as _;
use tollgate_view::summary::Summary;

use super::Described;

/// How the mark of a table begins.
pub const BEGIN: &str = "<!-- fields: ";
const COLUMNS: &str = "<!-- columns: ";
const END: &str = "<!-- end -->";

/// A comment of a type as a document's readers understand it: in one line, `null` for what is None.
pub fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace(". None", ". Null").replace("None", "null");
    let mut shown = String::new();
    let mut rest = text.as_str();
    // A link to a type is one in Rust's documentation alone.
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        let is_link = after.starts_with('(');
        shown.push_str(&if is_link { format!("{before}[`{name}`]") } else { format!("{before}`{name}`") });
        rest = after;
    }
    shown.push_str(rest);
    // A call or a field begins small in a sentence too.
    let is_word = shown
        .split(' ')
        .next()
        .is_some_and(|word| word.chars().all(|letter| letter.is_alphabetic() || letter == ','));
    if is_word {
        let first = shown.chars().next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        shown = first + shown.chars().skip(1).collect::<String>().as_str();
    }
    if shown.is_empty() || shown.ends_with(['.', ':', '?']) { shown } else { shown + "." }
}

/// The page with all that stands between its marks.
pub fn filled(page: &str, documents: &[Described]) -> String {
    let mut written = Written { homes: homes(page), explained: BTreeSet::new(), places: BTreeMap::new() };
    let (mut filled, mut is_inside) = (String::new(), false);
    for line in page.lines() {
        if line == END {
            is_inside = false;
        }
        if !is_inside {
            filled.push_str(line);
            filled.push('\n');
        }
        if let Some(mark) = mark(line, BEGIN) {
            let (file, name) = (mark[0], mark[1]);
            let document = documents.iter().find(|document| document.name == file);
            let schema = &document.unwrap_or_else(|| panic!("no document {file}")).schema;
            filled.push_str(&written.table(file, schema, name));
            is_inside = true;
        }
        if let Some(mark) = mark(line, COLUMNS) {
            filled.push_str(&columns(mark[0]));
            is_inside = true;
        }
    }
    filled
}

fn mark<'p>(line: &'p str, begins: &str) -> Option<Vec<&'p str>> {
    Some(line.strip_prefix(begins)?.strip_suffix(" -->")?.split(' ').collect())
}

/// What the headings above the tables say, and their anchors, by the types of the tables.
fn homes(page: &str) -> BTreeMap<String, (String, String)> {
    let (mut homes, mut heading) = (BTreeMap::new(), "");
    for line in page.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
        }
        for name in mark(line, BEGIN).iter().flatten().skip(1) {
            let title =
                heading.strip_prefix("A ").or_else(|| heading.strip_prefix("The ")).unwrap_or(heading);
            let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
            let anchor: String = heading.to_lowercase().chars().filter(kept).collect();
            homes.insert((*name).to_owned(), (clause(title), anchor.replace(' ', "-")));
        }
    }
    homes
}

/// The header of comma-separated values, in whole lines.
fn columns(of: &str) -> String {
    let run: Run = serde_json::from_value(serde_json::json!({
        "schema": tollgate_model::run::SCHEMA, "tool": { "name": "tollgate", "version": "0" }, "id": "a", "label": null,
        "environment": "host", "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:00Z", "facts": {}, "measurements": [],
    }))
    .expect("a run");
    let csv = match of {
        "show" => tollgate_view::show::csv::csv(&Summary::of(&run)),
        _ => panic!("no columns {of}"),
    };
    let names = csv.lines().next().unwrap_or_default().replace(',', ", ");
    let mut lines = vec![String::new()];
    for word in names.split(' ') {
        if lines.last().is_some_and(|line| line.len() + word.len() > 130) {
            lines.push(String::new());
        }
        let line = lines.last_mut().expect("a line");
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    format!("`{}`\n", lines.join("\n"))
}

/// What has been written of the page.
struct Written {
    homes: BTreeMap<String, (String, String)>,
    /// The types whose values have been explained.
    explained: BTreeSet<String>,
    /// Where in a table types have their fields.
    places: BTreeMap<String, String>,
}

/// A row of a table.
struct Row {
    paths: Vec<String>,
    kind: String,
    says: String,
}

impl Written {
    fn table(&mut self, file: &str, schema: &Value, name: &str) -> String {
        let mut rows = Vec::new();
        let is_root = schema["title"] == name;
        let of_type = if is_root { schema } else { &schema["$defs"][name] };
        assert!(!of_type.is_null(), "no type {name} in {}", schema["title"]);
        self.places.clear();
        self.rows(schema, of_type, "", &mut rows);
        let link = if is_root { format!("\n[JSON Schema](schema/{file}.json)\n") } else { String::new() };
        let mut table = link + "\n| field | type | |\n|---|---|---|\n";
        for Row { paths, kind, says } in merged(rows) {
            let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
            table.push_str(&format!("| {} | {kind} | {} |\n", paths.join(", "), says.replace('|', "\\|")));
        }
        table + "\n"
    }

    /// A row for each field of a type, and for those of the types within that have no table.
    fn rows(&mut self, root: &Value, of_type: &Value, within: &str, rows: &mut Vec<Row>) {
        for (name, is_required, field) in fields(root, of_type) {
            let path = format!("{within}{name}");
            let mut says = self.says(root, &field);
            assert!(!says.is_empty(), "{path} in {} has no sentence", root["title"]);
            let kind = self.kind(root, &field);
            if !is_required && !kind.contains("null") {
                says = says.replace("null", "absent").replace("Null", "Absent");
            }
            if !is_required && !says.contains("bsent") {
                says.push_str(" Absent where it does not apply.");
            }
            assert!(!says.contains("::"), "{path} in {}: {says}", root["title"]);
            rows.push(Row { paths: vec![path.clone()], kind, says });
            self.rows_within(root, &field, &path, rows);
        }
        if let Some(each) = of_type.get("additionalProperties").filter(|each| each.is_object()) {
            self.rows_within(root, each, &format!("{within}*"), rows);
        }
    }

    fn rows_within(&mut self, root: &Value, field: &Value, path: &str, rows: &mut Vec<Row>) {
        let (field, name) = resolved(root, field);
        if name.is_some_and(|name| self.homes.contains_key(name) || self.places.contains_key(name)) {
            return;
        }
        if let Some(name) = name.filter(|_| !fields(root, field).is_empty()) {
            self.places.insert(name.to_owned(), path.to_owned());
        }
        if let Some(items) = field.get("items") {
            return self.rows_within(root, items, &format!("{path}[]"), rows);
        }
        if let Some(each) = field.get("additionalProperties").filter(|each| each.is_object()) {
            return self.rows_within(root, each, &format!("{path}.*"), rows);
        }
        if !fields(root, field).is_empty() {
            return self.rows(root, field, &format!("{path}."), rows);
        }
        for one in branches(field) {
            self.rows_within(root, one, path, rows);
        }
    }

    /// The sentence of a field, or else that of its type, and what its values mean.
    fn says(&mut self, root: &Value, field: &Value) -> String {
        let (of_type, name) = resolved(root, field);
        let described = |it: &Value| it["description"].as_str().map(str::to_owned);
        let mut says = described(field).or_else(|| described(of_type)).unwrap_or_default();
        let values = values(of_type);
        if !values.is_empty() && !name.is_some_and(|name| self.homes.contains_key(name)) {
            let is_new = name.is_none_or(|name| self.explained.insert(name.to_owned()));
            let value = |(value, meaning): &(String, Option<String>)| match meaning {
                Some(meaning) if is_new => format!("`{value}`: {}", clause(meaning)),
                _ => format!("`{value}`"),
            };
            let joint = if is_new { "; " } else { ", " };
            let values = values.iter().map(value).collect::<Vec<_>>().join(joint);
            says = format!("{}: {values}.", says.trim_end_matches('.'));
        }
        says
    }

    fn kind(&self, root: &Value, field: &Value) -> String {
        let (of_type, name) = resolved(root, field);
        if let Some((title, anchor)) = name.and_then(|name| self.homes.get(name)) {
            let or_null = if is_nullable(field) { " or null" } else { "" };
            return format!("[{title}](#{anchor}){or_null}");
        }
        if let Some(place) = name.and_then(|name| self.places.get(name)) {
            let or_null = if is_nullable(field) { " or null" } else { "" };
            return format!("object as `{place}`{or_null}");
        }
        let mut kinds: Vec<String> = Vec::new();
        let types = match &of_type["type"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            Value::String(one) => vec![one.as_str()],
            _ => Vec::new(),
        };
        for one in types {
            kinds.push(match (one, of_type.get("items")) {
                ("array", Some(items)) => format!("list of {}", plural(&self.kind(root, items))),
                ("array", None) => {
                    let each: Vec<String> = of_type["prefixItems"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(|it| self.kind(root, it))
                        .collect();
                    format!("[{}]", each.join(", "))
                }
                ("object", _) => match of_type.get("additionalProperties").filter(|each| each.is_object()) {
                    Some(each) if !self.kind(root, each).contains(" or ") => {
                        format!("object of {}", plural(&self.kind(root, each)))
                    }
                    _ => one.to_owned(),
                },
                _ => one.to_owned(),
            });
        }
        if kinds.is_empty() {
            for one in branches(of_type) {
                let one = self.kind(root, one);
                kinds.extend(one.split(" or ").map(str::to_owned));
            }
        }
        if is_nullable(field) {
            kinds.push("null".to_owned());
        }
        let mut seen = BTreeSet::new();
        kinds.retain(|kind| seen.insert(kind.clone()));
        // Nothing is the last.
        kinds.order_by_key(|kind| kind == "null");
        kinds.join(" or ")
    }
}

/// The fields of an object, in their order, each with whether it is always there; of several kinds of object those of all.
fn fields(root: &Value, of_type: &Value) -> Vec<(String, bool, Value)> {
    let mut found: Vec<(String, bool, Value)> = Vec::new();
    if let Some(properties) = of_type["properties"].as_object() {
        let required: Vec<&str> =
            of_type["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let others = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
        for name in required.iter().copied().chain(others) {
            found.push((name.to_owned(), required.contains(&name), properties[name].clone()));
        }
    }
    let own = found.len();
    let all = branches(of_type);
    let constants = |one: &Value, name: &str| one["properties"][name].get("const").cloned();
    for one in &all {
        let (one, _) = resolved(root, one);
        for (name, is_required, mut field) in fields(root, one) {
            if field.get("description").is_none()
                && let Some(says) = one.get("description")
            {
                field["description"] = says.clone();
            }
            let has_it = |one: &&Value| resolved(root, one).0["properties"].get(&name).is_some();
            let is_in_all = all.iter().all(has_it);
            if let Some(known) = found[own..].iter_mut().find(|(known, ..)| *known == name) {
                if constants(one, &name).is_some() {
                    known.2["oneOf"]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|all| all.push(meaning(one, &field)));
                } else if known.2 != field {
                    known.2["description"] = format!(
                        "{} {}",
                        known.2["description"].as_str().unwrap_or_default(),
                        field["description"].as_str().unwrap_or_default()
                    )
                    .into();
                }
                continue;
            }
            if constants(one, &name).is_some() {
                field = serde_json::json!({ "type": "string", "description": "What it is.", "oneOf": [meaning(one, &field)] });
            }
            found.push((name, is_required && is_in_all, field));
        }
    }
    found
}

/// A value of a tag, and what its branch says.
fn meaning(branch: &Value, tag: &Value) -> Value {
    serde_json::json!({ "const": tag["const"], "description": branch["description"] })
}

/// What it is one of, but for null.
fn branches(of_type: &Value) -> Vec<&Value> {
    let all = ["oneOf", "anyOf"].iter().filter_map(|joint| of_type[joint].as_array()).flatten();
    all.filter(|one| one["type"] != "null").collect()
}

fn is_nullable(field: &Value) -> bool {
    let all = ["oneOf", "anyOf"].iter().filter_map(|joint| field[joint].as_array()).flatten();
    all.into_iter().any(|one| one["type"] == "null")
}

/// The type that a field refers to, with its name; that of one that may be null too.
fn resolved<'r>(root: &'r Value, field: &'r Value) -> (&'r Value, Option<&'r str>) {
    if let Some(name) = field["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return (&root["$defs"][name], Some(name));
    }
    match branches(field).as_slice() {
        [one] if is_nullable(field) => resolved(root, one),
        _ => (field, None),
    }
}

/// The texts that it can be, with what they mean.
fn values(of_type: &Value) -> Vec<(String, Option<String>)> {
    let mut values = Vec::new();
    for one in of_type["oneOf"].as_array().into_iter().flatten() {
        if let Some(value) = one["const"].as_str() {
            values.push((value.to_owned(), one["description"].as_str().map(str::to_owned)));
        }
        let others = one["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        values.extend(others.map(|value| (value.to_owned(), None)));
    }
    let all = of_type["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    values.extend(all.map(|value| (value.to_owned(), None)));
    values
}

/// A sentence within another one.
fn clause(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().unwrap_or_default();
    let rest = letters.as_str();
    let is_name = rest.chars().next().is_some_and(|second| !second.is_lowercase() && second != ' ');
    if is_name { format!("{first}{rest}") } else { format!("{}{rest}", first.to_lowercase()) }
}

/// Neighbours of which the same is said are one row.
fn merged(rows: Vec<Row>) -> Vec<Row> {
    let mut merged: Vec<Row> = Vec::new();
    for row in rows {
        match merged.last_mut() {
            Some(last) if last.says == row.says && last.kind == row.kind => last.paths.extend(row.paths),
            _ => merged.push(row),
        }
    }
    merged
}

/// Several of a kind.
fn plural(kind: &str) -> String {
    if kind.contains(" or ") && !kind.contains('`') {
        return format!("({kind})");
    }
    for one in ["object", "list"] {
        if let Some(rest) = kind.strip_prefix(one).filter(|rest| rest.starts_with(' ')) {
            return format!("{one}s{rest}");
        }
    }
    if kind.ends_with([')', ']']) { kind.to_owned() } else { format!("{kind}s") }
}
