//! `tollgate inspect config`: relations of its pages; what it prints of small configurations are cases.

use crate::common;
use common::{Home, one_line};
use serde_json::Value;

const OLD: &str = include_str!("cases/inspect-config.in/old");
const NEW: &str = include_str!("cases/inspect-config.in/new");

const PTI: &str = "MITIGATION_PAGE_TABLE_ISOLATION";
const BHI: &str = "MITIGATION_SPECTRE_BHI";

fn two(home: &Home) -> (String, String) {
    (home.file("old", OLD), home.file("new", NEW))
}

/// Without line ends, which depend on the width.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn affecting(document: &Value) -> &Vec<Value> {
    document["configurations"][0]["affecting"].as_array().expect("a list")
}

/// A kernel with many options on still has a short page.
#[test]
fn the_page_is_short_and_its_reasons_are_asked_for() {
    let home = Home::new();
    let (old, _) = two(&home);
    let document = home.json(["inspect", "config", &old, "--format", "json"]);
    let affecting = affecting(&document);
    let (off, on): (Vec<&Value>, Vec<&Value>) = affecting.iter().partition(|it| it["area"] == "debugging");
    assert!(on.len() > 150 && off.len() > 30, "{} {}", on.len(), off.len());
    let name = |it: &Value| it["option"].as_str().expect("a name").to_owned();
    let on: String = on.iter().map(|it| format!("CONFIG_{}=y\n", name(it))).collect();
    let checks: String = off.iter().map(|it| format!("# CONFIG_{} is not set\n", name(it))).collect();
    let full = home.file("full", on + &checks);
    let page = home.tollgate(["inspect", "config", &full]).env("COLUMNS", "80").assert().success();
    let page = String::from_utf8(page.get_output().stdout.clone()).expect("text");
    assert!(page.lines().count() <= 110, "{}: {page}", page.lines().count());
    assert!(flat(&page).contains(&format!("off: {} of debugging", off.len())), "{page}");
    let names = |text: &str, option| flat(text).split([' ', ',']).any(|word| word == option);
    let explains = |text: &str, option| {
        let known = affecting.iter().find(|it| it["option"] == option).expect("known");
        flat(text).contains(known["affects"]["why"].as_str().expect("a reason"))
    };
    assert!(names(&page, PTI) && !explains(&page, PTI), "{page}");
    let explained = home.output(["inspect", "config", &full, "--explain"]);
    assert!(explains(&explained, PTI) && names(&explained, "KASAN"), "{explained}");
    // Configurations that differ much have no reasons either; those that differ little have.
    let many = home.output(["inspect", "config", &full, &old]);
    assert!(names(&many, BHI) && !explains(&many, BHI), "{many}");
    let many = home.output(["inspect", "config", &full, &old, "--explain"]);
    assert!(explains(&many, BHI), "{many}");
    let few = home.file("few", format!("{OLD}CONFIG_{BHI}=y\n"));
    let few = home.output(["inspect", "config", &few, &old]);
    assert!(explains(&few, BHI), "{few}");
}

#[test]
fn programs_get_what_differs_under_the_names_of_today() {
    let home = Home::new();
    let (old, new) = two(&home);
    let document = home.json(["inspect", "config", &old, &new, "--format", "json"]);
    let difference = |name: &str| {
        let all = document["differences"].as_array().expect("a list");
        all.iter().find(|it| it["option"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(difference("PAGE_TABLE_ISOLATION"), Value::Null);
    let retpoline = difference("MITIGATION_RETPOLINE");
    assert_eq!(retpoline["values"], serde_json::json!(["y", "n"]));
    assert_eq!(retpoline["formerly"], serde_json::json!(["RETPOLINE", null]));
    assert_eq!(difference("MITIGATION_MDS")["values"], serde_json::json!([null, "y"]));
    assert_eq!(difference("KASAN")["kind"], "offered");
    let document = home.json(["inspect", "config", &old, "--area", "scheduling", "--format", "json"]);
    let record = &document["configurations"][0];
    assert_eq!(record["options"], serde_json::json!({"HZ": "250", "PREEMPT": "n"}));
    assert_eq!((&record["built_in"], &record["modules"], &record["off"]), (&5.into(), &1.into(), &3.into()));
}

#[test]
fn standard_input_is_read() {
    let home = Home::new();
    let mut command = home.tollgate(["inspect", "config", "-"]);
    let output = command.write_stdin(OLD).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(output).expect("text").lines().nth(1), Some("standard input"));
    let mut command = home.tollgate(["inspect", "config", "-"]);
    let shown = one_line(&command.write_stdin("").assert().code(2).stdout("").get_output().stderr.clone());
    assert_eq!(shown, "standard input is empty; a configuration has lines such as CONFIG_SMP=y");
}

#[test]
fn every_width_is_kept() {
    let home = Home::new();
    let (old, new) = two(&home);
    for columns in ["40", "60", "80", "120"] {
        for arguments in
            [vec![old.as_str()], vec![&old, "--explain"], vec![&old, &new], vec![&old, &new, &old, "--all"]]
        {
            let mut command = home.tollgate([&["inspect", "config"], arguments.as_slice()].concat());
            let output = command.env("COLUMNS", columns).assert().success().get_output().stdout.clone();
            let text = String::from_utf8(output).expect("text");
            let width = columns.parse().expect("a number");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{columns}: {text}");
        }
    }
}
