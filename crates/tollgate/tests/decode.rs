//! `tollgate decode`: bytes, pasted text, and this machine.

use std::process::Stdio;

use crate::common;
use common::Home;
use serde_json::Value;

/// Published examples of kernels, debuggers and manuals, with their meaning: the file that the library's own test reads.
const PUBLISHED: &str = include_str!("../../tollgate-x86/tests/published.json");

const WINDOWS: &str = include_str!("../../tollgate-dump/tests/dumps/kd-three-systems.txt");

/// The same systems in an article without a name in its headings.
const ARTICLE: &str = include_str!("../../tollgate-dump/tests/dumps/article-ja.txt");

fn published(kinds: &[&str]) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(PUBLISHED).expect("a list");
    all.into_iter().filter(|vector| kinds.contains(&vector["kind"].as_str().expect("a kind"))).collect()
}

/// Checks that `found` has every field of `expected` with the same value; texts are compared up to a remark after the value.
fn holds(found: &Value, expected: &Value, id: &Value) {
    for (name, value) in expected.as_object().expect("fields") {
        if name == "article_error" {
            continue;
        }
        let of_vector = value
            .as_str()
            .map_or(value.clone(), |text| Value::from(text.split(" (").next().expect("a first part")));
        assert_eq!(found[name], of_vector, "{id}: {name} of {found}");
    }
}

#[test]
fn everything_published_decodes_field_by_field() {
    let home = Home::new();
    let vectors = published(&["gdt8", "gdt16", "gate32", "gate64", "tss64"]);
    assert!(vectors.len() >= 50, "{}", vectors.len());
    for vector in vectors {
        let kind = vector["kind"].as_str().expect("a kind");
        let bytes = vector["bytes"].as_str().expect("bytes");
        let document = home.json(["decode", "--as", kind, "--format", "json", bytes]);
        assert_eq!(document["kind"], kind);
        assert_eq!(document["bytes"], bytes);
        holds(&document["decoded"], &vector["decoded"], &vector["id"]);
        if let Some(flags) = vector["dg_flags"].as_str() {
            assert_eq!(document["dg_flags"], flags, "{}", vector["id"]);
        }
    }
    for vector in published(&["msr"]) {
        let words = ["msr", "value"].map(|name| vector[name].as_str().expect("a number"));
        let document = home.json(["decode", "--as", "msr", "--format", "json", words[0], words[1]]);
        holds(&document["decoded"], &vector["decoded"], &vector["id"]);
    }
    for vector in published(&["lar_lsl"]) {
        let lar = vector["lar"].as_str().expect("a number");
        let document = home.json(["decode", "--as", "lar_lsl", "--format", "json", lar]);
        holds(&document["decoded"], &vector["decoded"], &vector["id"]);
    }
}

#[test]

fn standard_input_is_read_where_nothing_is_named() {
    let home = Home::new();
    let mut command = home.tollgate(["decode", "--as", "gdt8", "--format", "json"]);
    let output =
        command.write_stdin("ff ff 00 00 00 9b cf 00\r\n").assert().success().get_output().stdout.clone();
    let document: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(document["decoded"]["eff"], "0xffffffff");
}

#[test]

fn this_machine_shows_what_ring_3_runs_in() {
    let home = Home::new();
    let document = home.json(["decode", "--live", "--format", "json"]);
    if !document["ring3"]["unknown"].is_null() {
        return println!("skipped: {}", document["ring3"]["unknown"]);
    }
    let selectors = document["ring3"]["selectors"].as_array().expect("a list");
    let code = selectors.iter().find(|it| it["selector"] == document["ring3"]["loaded"]["cs"]).expect("CS");
    assert_eq!([&code["decoded"]["l"], &code["decoded"]["dpl"], &code["decoded"]["p"]], [1, 3, 1]);
    assert_eq!(document["mechanisms"][0]["offered"]["value"], true, "{}", document["mechanisms"][0]);
    let page_fault = &document["ring3"]["int"][14];
    assert_eq!((&page_fault["closed"], &page_fault["exception"]), (&Value::from(true), &Value::from(13)));
    let text = home.output(["decode", "--live"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(home.files().is_empty());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let home = Home::new();
    let file = home.file("session.txt", format!("{WINDOWS}{ARTICLE}"));
    for columns in ["60", "80", "120"] {
        for arguments in [vec!["decode", &file], vec!["decode", "--explain", &file], vec!["decode", "--live"]]
        {
            let mut command = home.tollgate(arguments.iter().copied());
            let output = command.env("COLUMNS", columns).assert().success().get_output().stdout.clone();
            let text = String::from_utf8(output).expect("text");
            let wide = columns.parse::<usize>().expect("a number");
            let line = text.lines().find(|line| line.chars().count() > wide);
            assert_eq!(line, None, "{columns} {arguments:?}");
        }
    }
}

#[test]
fn a_large_text_is_read_in_one_go() {
    let home = Home::new();
    let mut text = "何かの説明。 Some prose that says nothing at all.\n".repeat(200_000);
    text.push_str(WINDOWS);
    let path = home.file("large.txt", &text);
    let document = home.json(["decode", "--format", "json", &path]);
    assert_eq!(document["systems"].as_array().map(Vec::len), Some(3));
}

/// Ends early where the reader does.
#[test]
fn a_closed_pipe_is_no_error() {
    let home = Home::new();
    let mut command = std::process::Command::new(home.tollgate(["decode"]).get_program());
    command.args(["decode", "--live"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
