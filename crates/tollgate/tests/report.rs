//! The page: it holds all measurements, is self-contained, and no text of a run is more than text on it.

use crate::common;
use common::machines::MACHINES;
use common::{Home, document, measured};
use proptest::prelude::*;
use serde_json::{Value, json};

fn page(documents: &[Value]) -> String {
    let home = Home::new();
    // A machine whose runs do not differ.
    home.keep_others_like(&documents[0]);
    let files: Vec<String> = documents
        .iter()
        .enumerate()
        .map(|(at, document)| home.file(&format!("{at}.json"), document.to_string()))
        .collect();
    let arguments = ["report"].into_iter().chain(files.iter().map(String::as_str)).chain(["-o", "-"]);
    home.output(arguments)
}

/// A tag, or the text between two.
#[derive(Debug, Clone, PartialEq)]
enum Token<'a> {
    Tag { name: &'a str, attributes: Vec<(&'a str, &'a str)> },
    Text(&'a str),
}

/// The tags of a page that quotes every attribute, and the text between them. The content of a script or a style is text.
fn tokens(page: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        tokens.push(Token::Text(&rest[..at]));
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c.is_whitespace() || c == '>').expect("a tag ends");
        let name = &rest[..end];
        rest = &rest[end..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>').or_else(|| rest.strip_prefix("/>")) {
                rest = after;
                break;
            }
            let end = rest.find(|c: char| "=> ".contains(c)).expect("an attribute ends");
            let attribute = &rest[..end];
            rest = &rest[end..];
            let mut value = "";
            if let Some(after) = rest.strip_prefix("=\"") {
                let end = after.find('"').expect("a value ends");
                value = &after[..end];
                rest = &after[end + 1..];
            } else if let Some(after) = rest.strip_prefix('=') {
                // Classes of verdicts, which are our own words.
                let end = after.find(['>', ' ']).expect("a value ends");
                assert!(
                    ["vf", "vs", "vn"].contains(&&after[..end]),
                    "a value without quotes: {}",
                    &after[..end]
                );
                value = &after[..end];
                rest = &after[end..];
            }
            attributes.push((attribute, value));
        }
        tokens.push(Token::Tag { name, attributes });
        if name == "script" || name == "style" {
            let end = rest.find(&format!("</{name}>")).expect("it ends");
            tokens.push(Token::Text(&rest[..end]));
            rest = &rest[end..];
        }
    }
    tokens
}

fn texts<'a>(page: &'a str, tag: &str, class: &str) -> Vec<&'a str> {
    let tokens = tokens(page);
    let text = |two: &[Token<'a>]| match two {
        [Token::Tag { name, attributes }, Token::Text(text)] if *name == tag => {
            let own = attributes.iter().find(|(name, _)| *name == "class").map_or("", |(_, class)| class);
            (own == class).then_some(text.trim())
        }
        _ => None,
    };
    tokens.windows(2).filter_map(text).collect()
}

/// The text of a page from its heading on that a reader sees, as lines: cells are separate, those of a verdict have its class,
/// and pictures have no signs.
fn seen(page: &str) -> String {
    let (_, main) = page.split_once("<h1>").expect("a heading");
    let (main, _) = main.split_once("</main>").expect("its end");
    let mut all = String::new();
    for token in tokens(&format!("<h1>{main}</main>")) {
        match token {
            Token::Text(text) => all.push_str(text),
            Token::Tag { name: "td" | "th", attributes } => {
                all.push_str(" | ");
                let class = attributes.iter().find(|(name, _)| *name == "class");
                class.iter().for_each(|(_, class)| all.push_str(&format!("{class}: ")));
            }
            Token::Tag { .. } => all.push(' '),
        }
    }
    let lines = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Names of tags and attributes, without the text.
fn skeleton(page: &str) -> Vec<(&str, Vec<&str>)> {
    let tags = tokens(page).into_iter().filter_map(|token| match token {
        Token::Tag { name, attributes } => Some((name, attributes.iter().map(|(name, _)| *name).collect())),
        Token::Text(_) => None,
    });
    tags.collect()
}

/// Checks that a page fetches nothing, runs only its own script and has only elements that our pages have.
fn expect_harmless(page: &str) {
    const ATTRIBUTES: [&str; 33] = [
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "d",
        "width",
        "height",
        "viewBox",
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "dx",
        "role",
        "aria-hidden",
        "aria-label",
        "aria-labelledby",
        "aria-describedby",
        "focusable",
        "title",
        "tabindex",
        "scope",
        "colspan",
        "preserveAspectRatio",
        "data-run",
        "data-environment",
        "html",
    ];
    let mut scripts = 0;
    for token in tokens(page) {
        let Token::Tag { name, attributes } = token else { continue };
        scripts += usize::from(name == "script");
        let foreign =
            ["img", "iframe", "object", "embed", "link", "base", "form", "input", "image", "foreignObject"];
        assert!(!foreign.contains(&name), "<{name}>");
        for (attribute, value) in attributes {
            assert!(ATTRIBUTES.contains(&attribute), "{attribute} of <{name}>");
            assert!(!attribute.starts_with("on") && attribute != "style" && attribute != "src");
            assert!(attribute != "href" || value.starts_with('#'), "{value}");
            assert!(!value.contains(['<', '>']) || attribute == "content", "{value}");
        }
    }
    assert_eq!(scripts, 1);
    let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("a style");
    assert!(!style.contains("@import") && !style.contains("@font-face"));
    assert!(style.matches("url(").count() == style.matches("url(#").count());
    let policy = "content=\"default-src 'none'; style-src 'sha256-";
    assert!(page.contains(policy), "no policy");
    // No character changes the direction of writing, and none is invisible.
    assert!(
        !page
            .chars()
            .any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\0' | '\u{1b}'))
    );
}

/// A made-up run in which every free text of a document is `text`; names that would be refused are unchanged.
fn telling(text: &str) -> Value {
    let mut run = document("20261121-015427-0001", Some("environment"), 1.0);
    let name: String =
        text.chars().filter(|c| !tollgate_model::text::commands_a_reader(*c)).take(40).collect();
    run["facts"]["cpu.model"] = json!({"status": "known", "value": text, "source": text});
    run["facts"]["cpu.flags"] = json!({"status": "known", "value": [text, text], "source": text});
    run["facts"]["cpu.smt"] = json!({"status": "unknown", "why": format!("refused: {text}")});
    run["facts"]["run.clock"] = json!({"status": "known", "value": text, "source": text});
    run["facts"][format!("zz{name}")] = json!({"status": "known", "value": text, "source": text});
    run["started"] = json!(name);
    run["tool"]["name"] = json!(name);
    let rows = run["measurements"].as_array_mut().expect("measurements");
    rows.push(measured(&format!("zz/{name}"), 50.0, &[text, "b"]));
    for (at, row) in rows.iter_mut().enumerate() {
        row["params"] = json!({"by": format!("{at} {name}")});
        if row["status"] == "measured" {
            row["notes"] = json!([text, format!("{at}")]);
            row["counters"] = json!([{"what": text, "number": 100_000}]);
            row["group"] = json!(format!("g{name}"));
            row["baseline"] = Value::Null;
        }
    }
    rows.push(json!({"benchmark": "entry/rdtsc", "params": {}, "status": "skipped", "why": text}));
    rows.push(json!({"benchmark": "entry/vm-exit", "params": {}, "status": "failed", "error": text}));
    let mut traced_rows = measured("workloads/make", 2e9, &[]);
    let traced = traced(text);
    let number = traced_rows["samples"].as_array().expect("samples").len();
    traced_rows["traced"] = json!(vec![traced; number]);
    rows.push(traced_rows);
    run
}

fn traced(text: &str) -> Value {
    let call = json!({"name": text, "count": 3, "errors": 0, "total_ns": 5_000_000, "max_ns": 4_000_000, "on_cpu_ns": 1_000_000,
                      "sleep_ns": 0, "disk_ns": 4_000_000, "runqueue_ns": 0});
    json!({
        "command": [text], "backend": "bpf", "ended": {"exit": 0}, "processors": 2, "wall_ns": 2_000_000_000_u64,
        "user_ns": 900_000_000, "sys_ns": 300_000_000,
        "idle": {"runqueue_ns": 100_000_000, "disk_ns": 200_000_000, "sleep_ns": 500_000_000},
        "processes": 3, "threads": 3, "calls": [call],
    })
}

#[test]
fn a_page_holds_what_was_measured_and_how() {
    let page = page(&[document("20261121-015427-0001", Some("native"), 1.0)]);
    expect_harmless(&page);
    let maker = format!("tollgate {}, run native", env!("CARGO_PKG_VERSION"));
    assert_eq!(texts(&page, "p", "maker"), [maker]);
    insta::assert_snapshot!(seen(&page));
}

#[test]
fn several_environments_are_compared_with_verdicts() {
    let native = document("20261121-015427-0001", Some("native"), 1.0);
    let vm = document("20261121-015428-0002", Some("vm"), 1.5);
    let page = page(&[native, vm]);
    expect_harmless(&page);
    insta::assert_snapshot!(seen(&page));
    // Ids distinguish two sides of the same run, and nothing differs.
    let same = document("20261121-015427-0001", None, 1.0);
    let page = self::page(&[same.clone(), same]);
    let id = "20261121-015427-0001";
    assert_eq!(texts(&page, "h1", ""), [format!("{id} (2) compared with {id} (1)")]);
    assert!(texts(&page, "p", "").contains(&"No fact differs between the environments."));
}

#[test]
fn where_the_time_of_a_command_went_is_a_table() {
    let page = page(&[telling("openat")]);
    let cells = texts(&page, "td", "");
    let parts =
        ["2.00 s", "900 ms", "300 ms", "100 ms", "200 ms", "500 ms", "0.0 ns", "openat 5.00 ms in 3 calls"];
    assert!(cells.windows(parts.len()).any(|row| row == parts), "{cells:?}");
}

fn run_of(id: &str, label: Option<&str>, rows: &[Value]) -> Value {
    let mut run = document(id, label, 1.0);
    run["measurements"] = json!(rows);
    run
}

fn traced_case(benchmark: &str, params: Value) -> Value {
    let mut row = measured(benchmark, 2e9, &[]);
    row["params"] = params;
    row["samples"] = json!([2e9]);
    row["discarded"] = json!(0);
    row["processes"] = json!([{"rounds": 1, "discarded": []}]);
    row["traced"] = json!([traced("openat")]);
    row
}

#[test]
fn a_traced_command_has_a_section_of_its_own_and_its_own_name() {
    let mut run = run_of("20261121-015427-0001", None, &[traced_case("trace/command", json!({}))]);
    run["facts"].as_object_mut().expect("facts").remove("run.clock");
    let page = page(&[run]);
    expect_harmless(&page);
    // The suite is known, but the clock is not.
    let leads = ["A command and all processes that it started, traced.", "executed by hardware; 1 process."];
    assert_eq!(texts(&page, "p", "lead"), leads);
    // The command names the row; a single time makes no ruler, and has nothing to differ from.
    assert!(texts(&page, "th", "").contains(&"openat"), "no command");
    assert_eq!(texts(&page, "h2", ""), ["trace", "Facts of the environment"]);
    assert_eq!(texts(&page, "a", ""), ["Verdict", "trace", "Facts"]);
    assert_eq!(texts(&page, "h3", ""), ["trace: where the time of commands went, and their slowest calls"]);
    let row = "| trace/command noisy: 1 process only | 2.00 s | | 2.00 s | 1 | 500 | | 0";
    assert!(seen(&page).lines().any(|line| line == row), "one process differs");
}

#[test]
fn experiments_of_the_lab_have_their_own_descriptions() {
    let page = page(&[run_of("20261121-015427-0001", None, &[measured("lab/syscall", 50.0, &[])])]);
    expect_harmless(&page);
    let lead = "Ring crossings in the lab&#39;s own small kernel, without an operating system.";
    assert_eq!(texts(&page, "p", "lead")[0], lead);
    let operation = "SYSCALL by itself, with a handler that needs neither stack nor data.";
    assert_eq!(texts(&page, "small", ""), [operation]);
}

#[test]
fn every_part_of_a_page_has_a_name_that_no_other_has() {
    let rows = [
        traced_case("workloads/grep", json!({"cache": "warm", "size": "small"})),
        traced_case("trace/command", json!({})),
    ];
    let page = page(&[run_of("20261121-015427-0001", None, &rows)]);
    expect_harmless(&page);
    let mut names: Vec<&str> = page.split("role=\"region\" aria-label=\"").skip(1).collect();
    names = names.iter().filter_map(|rest| rest.split('"').next()).collect();
    let number = names.len();
    assert!(number > 3, "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number, "{names:?}");
    // The heading above it names the suite.
    assert!(texts(&page, "th", "").contains(&"grep{cache=warm, size=small}"));
}

#[test]
fn ids_distinguish_the_same_run_twice() {
    let run = run_of("20261121-015427-0001", None, &[traced_case("trace/command", json!({}))]);
    let page = page(&[run.clone(), run]);
    expect_harmless(&page);
    let compared = "20261121-015427-0001 (2) compared with 20261121-015427-0001 (1)";
    assert_eq!(texts(&page, "h1", ""), [compared]);
    let counts = format!("{compared}, 1 case in both: 0 slower, 0 faster, 1 same, 0 inconclusive.");
    assert_eq!(texts(&page, "p", "count"), [counts]);
    assert!(texts(&page, "p", "").contains(&"No fact differs between the environments."), "an empty table");
}

#[test]
fn the_matrix_of_processors_is_a_heat_map() {
    let mut run = document("20261121-015427-0001", Some("four"), 1.0);
    let rows = run["measurements"].as_array_mut().expect("measurements");
    for (low, high) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let mut pair = measured("memory/pingpong", 40.0 + f64::from(low * 10 + high), &[]);
        pair["params"] = json!({"from": high, "to": low, "protocol": "store"});
        rows.push(pair);
    }
    let page = page(&[run]);
    expect_harmless(&page);
    assert!(seen(&page).lines().any(|line| line == "| 2 and 3 | four | store | 63.2 ns"), "no figures");
    assert!(page.contains("<svg class=\"plot heat\""), "no map");
}

#[test]
fn a_hostile_run_changes_nothing_outside_its_own_text() {
    let plain = page(&[telling("plain words")]);
    for text in [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'><svg onload=alert(1)>",
        "--><!--<script>",
        "]]></title></svg></details></table>",
        "javascript:alert(1)",
        "&lt;script&gt; &amp; &#x3c;",
        "url(http://example.org/) @import 'x'",
        "\u{202e}turned\u{2066}\u{200b}",
        "{{ page.title }} {% include x %}",
    ] {
        let hostile = page(&[telling(text)]);
        expect_harmless(&hostile);
        assert!(skeleton(&hostile) == skeleton(&plain), "{text} changes the page");
    }
}

#[test]
fn what_is_huge_is_cut() {
    // The text occurs about thirty times in the document.
    let mut run = telling(&"x".repeat(1 << 16));
    run["facts"]["cpu.model"]["value"] = json!("x".repeat(1 << 20));
    let page = page(std::slice::from_ref(&run));
    expect_harmless(&page);
    assert!(page.len() < 200_000, "{} bytes", page.len());
    // Thousands of cases make as many rows, but a bounded number of pictures.
    let rows = run["measurements"].as_array_mut().expect("measurements");
    rows.clear();
    for at in 0..4000 {
        let samples = [1e300, 1e-300, -1.0, 5.0, f64::MAX];
        rows.push(json!({
            "benchmark": format!("entry/{}", at % 300), "params": {"n": at}, "status": "measured", "unit": "ns",
            "provenance": "hardware", "ops_per_sample": u64::MAX, "clock_hz": 1, "samples": samples, "discarded": 0,
            "processes": [{"rounds": 5, "discarded": []}], "group": "g",
        }));
    }
    let page = self::page(&[run]);
    expect_harmless(&page);
    assert_eq!(page.matches("><th><details>").count(), 4000);
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(
        !["NaN%", "\"NaN", "MNaN", "inf%", "Minf"].iter().any(|odd| page.contains(odd)),
        "no number in a picture"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn any_text_is_only_text(text in "[<>\"'&/=a-z \\p{Any}]{1,40}") {
        let shown = page(&[telling(&text)]);
        expect_harmless(&shown);
        prop_assert!(skeleton(&shown) == skeleton(&page(&[telling("plain words")])));
    }
}

#[test]
fn the_page_of_a_run_of_everything_is_small() {
    let (home, machine) = (Home::new(), MACHINES[0].topology());
    let mut run = document("20261121-015427-0001", Some("everything"), 1.0);
    let rows = run["measurements"].as_array_mut().expect("measurements");
    rows.clear();
    let mut estimate = 1.0;
    for benchmark in tollgate_suites::SUITES.iter().flat_map(|suite| suite.benchmarks) {
        let cases = (benchmark.cases)(&machine).into_iter();
        for params in cases.filter(|params| (benchmark.in_everything)(params, &machine)) {
            estimate = if estimate > 1e7 { 1.0 } else { estimate * 1.05 };
            let mut row = measured(benchmark.name, estimate, &[]);
            row["params"] = json!(params);
            rows.push(row);
        }
    }
    let cases = rows.len();
    assert!(cases > 100, "{cases}");
    run["facts"] = home.json(["inspect", "--format", "json"])["facts"].clone();
    let page = page(&[run]);
    expect_harmless(&page);
    assert!(page.len() < 260_000, "{} bytes for {cases} cases", page.len());
    // Tables and facts are folded; the height comes from the rows of pictures, some twenty pixels each.
    let drawn = page.matches("\n<li").count();
    assert!((50..250).contains(&drawn), "{drawn} rows");
}

/// A run in three processes, which support no interval, beside one in eight.
#[test]
fn a_noisy_row_is_hollow_and_without_an_interval_no_band_is_drawn() {
    let mut few = measured("entry/vm-exit", 2000.0, &[]);
    few["processes"] = json!(vec![json!({"rounds": 160, "discarded": []}); 3]);
    few["discarded"] = json!(0);
    // The other run's processes differ by a few percent, so that its interval is visible.
    let mut enough = measured("entry/int80", 900.0, &[]);
    let samples = enough["samples"].as_array().expect("samples").iter().enumerate();
    let samples =
        samples.map(|(at, sample)| sample.as_f64().expect("a number") * (1.0 + (at / 60) as f64 * 0.01));
    enough["samples"] = json!(samples.collect::<Vec<f64>>());
    let rows = [few, measured("entry/syscall", 80.0, &[]), enough];
    let page = page(&[run_of("20261121-015427-0001", None, &rows)]);
    let row = |name: &str| {
        let rest = page.split(&format!("<span>{name}</span>")).nth(1).expect("a row");
        rest.split("</li>").next().expect("it ends").to_owned()
    };
    let signs = |row: &str| {
        let tokens = tokens(row).into_iter();
        let of_tag = tokens.filter_map(|token| match token {
            Token::Tag { attributes, .. } => attributes.into_iter().find(|(name, _)| *name == "class"),
            Token::Text(_) => None,
        });
        of_tag.map(|(_, class)| class.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(signs(&row("VM exit (CPUID)")), ["h"]);
    assert_eq!(signs(&row("int 0x80")), ["i", "m", "f"]);
    assert!(page.lines().any(|line| line.starts_with("<li class=\"noisy\"><span>VM exit (CPUID)</span>")));
}

/// The summary of runs with these documents, and the exit status with these arguments.
fn summary(documents: &[Value], arguments: &[&str]) -> (String, Option<i32>) {
    let home = Home::new();
    home.keep_others_like(&documents[0]);
    let name = |(at, document): (usize, &Value)| home.file(&format!("{at}.json"), document.to_string());
    let files: Vec<String> = documents.iter().enumerate().map(name).collect();
    let files = files.iter().map(String::as_str);
    let all = ["report"].into_iter().chain(files).chain(["--format", "md"]).chain(arguments.iter().copied());
    let done = home.tollgate(all).output().expect("it runs");
    (String::from_utf8(done.stdout).expect("UTF-8"), done.status.code())
}

#[test]
fn the_summary_of_a_job_has_what_changed_and_the_status_of_compare() {
    let native = document("20261121-015427-0001", Some("native"), 1.0);
    let vm = document("20261121-015428-0002", Some("vm"), 1.5);
    let (text, status) = summary(&[native.clone(), vm.clone()], &["--fail-on", "slower"]);
    insta::assert_snapshot!(text);
    assert_eq!(status, Some(1));
    assert_eq!(summary(&[native.clone(), vm], &["--fail-on", "faster"]).1, Some(0));
    let (text, status) = summary(std::slice::from_ref(&native), &[]);
    let row = "| syscall (unknown number) | 80.2 ns | 80.2–80.3 | 80.0 ns | ×1.00 |";
    assert!(text.lines().any(|line| line == row) && status == Some(0), "{text}");
    assert_eq!(summary(&[native], &["--fail-on", "slower"]).1, Some(2));
}

#[test]
fn a_hostile_run_is_only_text_in_the_summary() {
    // Every line without its text: what Markdown takes for structure.
    let structure = |text: &str| {
        let special = |c: &char| "|`*[]<>!~$\\\n".contains(*c);
        text.chars().filter(special).collect::<String>()
    };
    let plain = structure(&summary(&[telling("plain words")], &[]).0);
    for text in [
        "| a | b |\n|---|---|",
        "</summary></details><script>alert(1)</script>",
        "[x](javascript:alert(1)) ![y](http://example.org/)",
        "`` ` `` **b** ~~c~~ $d$ \\| e",
        "http://example.org www.example.org @someone #1",
        "\u{202e}turned",
    ] {
        let (hostile, _) = summary(&[telling(text)], &[]);
        assert_eq!(structure(&hostile), plain, "{text}: {hostile}");
        assert!(!hostile.contains("://") && !hostile.contains("www.") && !hostile.contains('@'), "{hostile}");
    }
}

#[test]
fn a_page_is_the_same_in_a_file() {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", Some("native"), 1.0));
    home.output(["report", "native", "-o", "page.html"]);
    let written = std::fs::read_to_string(home.path().join("page.html")).expect("a page");
    assert_eq!(written, home.output(["report", "native", "-o", "-"]));
}

#[test]
fn the_page_has_a_name_where_none_is_given() {
    let home = Home::new();
    let run = home.file("run.json", document("20260101-000000-aaaa", None, 1.0).to_string());
    let said = home.tollgate(["report", &run]).assert().success().stdout("").get_output().stderr.clone();
    assert_eq!(common::one_line(&said), "the page is in tollgate-report.html");
    let page = std::fs::read_to_string(home.path().join("tollgate-report.html")).expect("written");
    assert!(page.starts_with("<!DOCTYPE html>"), "{}", &page[..40.min(page.len())]);
}

/// The page's absolute path is given to the desktop's program; if there is none, or it fails, the page is still written.
#[test]
fn the_page_is_opened_by_the_desktops_program() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let run = home.file("run.json", document("20260101-000000-aaaa", None, 1.0).to_string());
    let opener = home.file("bin/xdg-open", "#!/bin/sh\nprintf %s \"$1\" > \"${0%/*}/opened\"; exit 3\n");
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = home.tollgate(["report", &run, "--open", "--out=-page.html"]);
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    let said = command.env("PATH", path).assert().code(2).get_output().stderr.clone();
    let line = "--open: xdg-open ended with exit status: 3; open -page.html in a browser";
    assert_eq!(common::one_line(&said), line);
    let opened = std::fs::read_to_string(home.path().join("bin/opened")).expect("it was called");
    assert!(opened.starts_with('/') && opened.ends_with("/-page.html"), "{opened}");
    assert!(home.path().join("-page.html").exists());
}

#[test]
fn a_run_and_a_comparison_have_a_picture() {
    let home = Home::new();
    let ids = ["20260101-000000-aaaa", "20260101-000001-bbbb"];
    let files = [(ids[0], 1.0), (ids[1], 1.5)]
        .map(|(id, factor)| home.file(&format!("{id}.json"), document(id, None, factor).to_string()));
    let one = home.output(["show", &files[0], "--format", "svg"]);
    assert!(one.starts_with("<svg xmlns=") && one.ends_with("</svg>\n"), "{one}");
    assert_eq!(texts(&one, "text", "d")[0], format!("unknown processor; Linux 6.1.1; run {}", ids[0]));
    assert_eq!(texts(&one, "text", ""), ["syscall (unknown number)"]);
    for (format, shows) in [("svg", "draws the overview"), ("md", "has all rows")] {
        let said = home.refusal(["show", &files[0], "entry", "--format", format]);
        let instead = "omit the patterns, or use --format csv";
        assert_eq!(said, format!("--format {format} {shows}; {instead}"));
    }
    let both = home.output(["compare", &files[0], &files[1], "--format=svg"]);
    assert_eq!(texts(&both, "text", "head"), ["Ratio to the base"]);
    assert_eq!(texts(&both, "text", "d")[0], format!("{} compared with {}", ids[1], ids[0]));
    assert_eq!(texts(&both, "text", ""), ["entry/syscall", "entry/user-dispatch", "entry/call"]);
    assert_eq!(texts(&both, "text", "x"), ["×1.500", "×1.500", "×1.000"]);
    let empty = json!({"measurements": []});
    let mut nothing = document(ids[0], None, 1.0);
    nothing["measurements"] = empty["measurements"].clone();
    let nothing = home.file("nothing.json", nothing.to_string());
    let line = "--format svg has nothing to draw: found neither a latency of the overview nor a curve of sharing; --format json has all figures";
    assert_eq!(home.refusal(["show", &nothing, "--format", "svg"]), line);
}
