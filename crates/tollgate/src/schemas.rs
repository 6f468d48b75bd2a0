//! docs/schema: the descriptions that the types of documents carry. A test compares the files with the types; `UPDATE=1 cargo
//! test -p tollgate schemas` writes them.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use tollgate_view::{benchmarks, bill, compare, doctor, session, show, versus};

struct Described {
    name: &'static str,
    schema: Value,
}

fn described<T: JsonSchema>(name: &'static str) -> Described {
    // As documents are written: nulls are present.
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12().for_serialize());
    let mut schema = generator.into_root_schema_for::<T>();
    let types = schema.get("$defs").cloned().unwrap_or_default();
    merge(schema.ensure_object(), &types);
    tidy(schema.ensure_object());
    Described { name, schema: schema.to_value() }
}

/// Puts the fields of a type beside the tag that an enumeration gives it: if a type admits no further field, a reference and a
/// tag exclude each other.
fn merge(schema: &mut Map<String, Value>, types: &Value) {
    let referred = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
    if let Some(of_type) = referred.map(|name| types[name].clone())
        && let Some(Value::Object(own)) = schema.get_mut("properties")
    {
        own.extend(of_type["properties"].as_object().cloned().unwrap_or_default());
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.extend(of_type["required"].as_array().cloned().unwrap_or_default());
        }
        schema.remove("$ref");
    }
    for inner in schema.values_mut() {
        match inner {
            Value::Object(one) => merge(one, types),
            Value::Array(all) => {
                all.iter_mut().filter_map(Value::as_object_mut).for_each(|one| merge(one, types))
            }
            _ => {}
        }
    }
}

fn never_null(field: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            field.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(kinds)) = field.get_mut("anyOf") {
        kinds.retain(|one| one["type"] != "null");
        if let [Value::Object(one)] = kinds.as_slice() {
            let one = one.clone();
            field.remove("anyOf");
            field.extend(one);
        }
    }
}

/// JSON in lines of limited length, so that changes are visible in them.
fn written(value: &Value, indent: usize) -> String {
    const LENGTH: usize = 120;
    let line = value.to_string();
    let (inner, outer) = (" ".repeat(indent + 2), " ".repeat(indent));
    let is_leaf = |value: &Value| value.as_object().is_none_or(|fields| !fields.contains_key("properties"));
    let lines: Vec<String> = match value {
        _ if line.len() + indent < LENGTH && is_leaf(value) => return line,
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| format!("{inner}{}: {}", json!(name), written(field, indent + 2)))
            .collect(),
        Value::Array(all) => all.iter().map(|one| format!("{inner}{}", written(one, indent + 2))).collect(),
        _ => return line,
    };
    let [open, close] = if value.is_array() { ["[", "]"] } else { ["{", "}"] };
    format!("{open}\n{}\n{outer}{close}", lines.join(",\n"))
}

fn all() -> Vec<Described> {
    vec![
        described::<tollgate_model::Run>("run-document"),
        described::<show::json::ShowDocument>("show"),
        described::<session::json::SessionDocument>("session"),
        described::<compare::json::CompareDocument>("compare"),
        described::<benchmarks::List>("list"),
        described::<versus::json::VersusDocument>("versus"),
        described::<versus::revisions::SameFile>("same-file"),
        described::<versus::revisions::Bisected>("bisect"),
        described::<crate::runs::Runs>("runs"),
        described::<tollgate_schedules::output::SchedulesDocument>("schedules"),
        described::<tollgate_view::inspect::facts::FactsDocument>("inspect"),
        described::<crate::inspect::CapturedTree>("inspect-capture"),
        described::<tollgate_inspect::output::aslr::AslrDocument>("inspect-aslr"),
        described::<tollgate_inspect::output::kernel::KernelDocument>("inspect-kernel"),
        described::<tollgate_kconfig::output::ConfigDocument>("inspect-config"),
        described::<tollgate_dump::output::ItemRecord>("decode-item"),
        described::<tollgate_dump::output::DecodedBytes>("decode-bytes"),
        described::<tollgate_dump::output::DecodedText>("decode-text"),
        described::<tollgate_dump::output::LiveTables>("decode-live"),
        described::<tollgate_lab::output::LabDocument>("lab"),
        described::<Vec<crate::lab::Page>>("lab-explain"),
        described::<tollgate_lab::output::Programs>("lab-program"),
        described::<tollgate_lab::output::Locks>("lab-locks"),
        described::<tollgate_lab::output::Orders>("lab-prove"),
        described::<crate::trace::TraceDocument>("trace"),
        described::<crate::trace::Part>("trace-interval"),
        described::<tollgate_trace::output::calibration::CalibrationRecord>("trace-calibrate"),
        described::<tollgate_trace::output::keys::KeysRecord>("trace-keys"),
        described::<tollgate_store::fleet::Listed>("store-list"),
        described::<doctor::Diagnosis>("doctor"),
        described::<bill::BillDocument>("bill"),
        described::<tollgate_claims::ClaimsDocument>("claims"),
        described::<tollgate_claims::published::AsPublished>("claims-as-published"),
        described::<crate::environments::Environments>("environments"),
        described::<crate::config::Shown>("config"),
    ]
}

/// Removes what is about Rust, makes sentences of descriptions, and admits no undeclared field.
fn tidy(schema: &mut Map<String, Value>) {
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = sentence(text);
    }
    let required = schema.get("required").cloned().unwrap_or(json!([]));
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let is_required = required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let Some(field) = field.as_object_mut() else { continue };
        // A field that is left out if None is never null, unless a type says so.
        if field.remove("nullable").is_none() && !is_required {
            never_null(field);
        }
    }
    let is_joined = ["oneOf", "anyOf", "allOf"].iter().any(|joint| schema.contains_key(*joint));
    if schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
        let closed = if is_joined { "unevaluatedProperties" } else { "additionalProperties" };
        schema.insert(closed.to_owned(), json!(false));
    }
    let is_branched = is_joined && schema.contains_key("properties");
    for (key, inner) in schema.iter_mut() {
        match (key.as_str(), inner) {
            ("properties" | "$defs", Value::Object(all)) => {
                all.values_mut().filter_map(Value::as_object_mut).for_each(tidy);
            }
            ("items" | "additionalProperties", Value::Object(one)) => tidy(one),
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                for one in all.iter_mut().filter_map(Value::as_object_mut) {
                    tidy(one);
                    if is_branched {
                        one.remove("additionalProperties");
                    }
                }
            }
            _ => {}
        }
    }
}

fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace(". None", ". Null").replace("None", "null");
    let mut shown = String::new();
    let mut rest = text.as_str();
    // A link to a type exists only in Rust's documentation.
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        let is_link = after.starts_with('(');
        shown.push_str(&if is_link { format!("{before}[`{name}`]") } else { format!("{before}`{name}`") });
        rest = after;
    }
    shown.push_str(rest);
    // A call or a field begins with a small letter in a sentence too.
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

/// The fields without a sentence: neither their own nor their type's, nor that of their branch. A path of Rust is not a sentence.
fn undescribed(part: &Value, types: &Value, is_said: bool) -> Vec<String> {
    let says = |it: &Value| it["description"].as_str().is_some_and(|text| !text.contains("::"));
    let of_type = |it: &Value| {
        let name = it["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"));
        name.is_some_and(|name| says(&types[name]))
    };
    let is_clear = |field: &Value| {
        let mut kinds = field["anyOf"].as_array().into_iter().flatten();
        says(field) || of_type(field) || kinds.any(of_type)
    };
    let fields = part["properties"].as_object().into_iter().flatten();
    let fields = fields.filter(|(_, field)| !is_said && !is_clear(field));
    let mut found: Vec<String> = fields.map(|(name, _)| name.clone()).collect();
    for one in part.as_array().into_iter().flatten() {
        found.extend(undescribed(one, types, says(one)));
    }
    for one in part.as_object().into_iter().flat_map(Map::values) {
        found.extend(undescribed(one, types, false));
    }
    found
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn expect(file: &Path, content: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, content).expect("written");
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    let line = found.lines().zip(content.lines()).position(|(found, content)| found != content);
    let line = line.unwrap_or_else(|| found.lines().count().min(content.lines().count())) + 1;
    assert!(
        found == content,
        "{}, line {line}, is not what the types say: `UPDATE=1 cargo test -p tollgate schemas` writes it",
        file.display()
    );
}

#[test]
fn every_document_has_the_schema_of_its_type() {
    let documents = all();
    for Described { name, schema } in &documents {
        expect(&docs().join(format!("schema/{name}.json")), &(written(schema, 0) + "\n"));
    }
    let files = fs::read_dir(docs().join("schema")).expect("a directory").flatten();
    let files = files.filter_map(|file| file.file_name().into_string().ok());
    let is_made = |file: &String| documents.iter().any(|document| *file == format!("{}.json", document.name));
    assert_eq!(files.filter(|file| !is_made(file)).collect::<Vec<_>>(), [""; 0], "of no document");
}

#[test]
fn names_of_types_are_of_one_type_each() {
    for Described { name, schema } in all() {
        let names = schema["$defs"].as_object().into_iter().flat_map(Map::keys);
        let numbered: Vec<&String> =
            names.filter(|name| name.ends_with(|end: char| end.is_ascii_digit())).collect();
        assert_eq!(numbered, [""; 0], "in {name}: two types have this name; schemars(rename) gives another");
    }
}

#[test]
fn every_field_has_a_sentence_and_the_page_names_every_document() {
    let page = fs::read_to_string(docs().join("json.md")).expect("a page");
    for Described { name, schema } in all() {
        assert_eq!(undescribed(&schema, &schema["$defs"], false), [""; 0], "in {name}");
        assert!(page.contains(&format!("(schema/{name}.json)")), "docs/json.md has no link to {name}");
    }
}

#[test]
fn a_field_that_is_added_or_undescribed_is_found() {
    #[derive(serde::Serialize, JsonSchema)]
    struct Small {
        /// The first.
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u8>,
        second: f64,
    }
    let small = described::<Small>("small");
    assert_eq!(small.schema["additionalProperties"], json!(false));
    assert_eq!(small.schema["required"], json!(["second"]));
    assert_eq!(undescribed(&small.schema, &Value::Null, false), ["second"]);
}
