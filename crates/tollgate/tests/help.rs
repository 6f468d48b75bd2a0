//! The long help of every verb at 80 columns as a snapshot, so that a change of its words shows in review.

use crate::common;
use common::Home;
use common::text::refusals;

/// The verbs that have verbs or subjects of their own, with their own help.
const NESTED: [&str; 7] = [
    "runs rename",
    "runs delete",
    "inspect aslr",
    "inspect kernel",
    "inspect config",
    "store list",
    "store add",
];
const VERBS: [&str; 23] = [
    "run",
    "show",
    "explain",
    "compare",
    "versus",
    "claims",
    "runs",
    "list",
    "report",
    "inspect",
    "doctor",
    "bill",
    "environments",
    "trace",
    "ram",
    "export",
    "store",
    "config",
    "completions",
    "man",
    "decode",
    "lab",
    "schedules",
];

fn help(verb: &str) -> String {
    let home = Home::new();
    let words = verb.split_whitespace().chain(["--help"]);
    let output = home.tollgate(words).env("COLUMNS", "80").assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).expect("text");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn the_help_of_every_verb_is_as_reviewed() {
    insta::assert_snapshot!("tollgate", help(""));
    for verb in VERBS.iter().chain(&NESTED) {
        insta::assert_snapshot!(verb.replace(' ', "-"), help(verb));
    }
}

#[test]
fn every_verb_is_among_them_and_has_examples() {
    let main = help("");
    let listed = main.lines().skip_while(|line| *line != "Commands:").take_while(|line| *line != "Options:");
    let verbs: Vec<&str> = listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert_eq!(verbs, VERBS);
    for verb in VERBS {
        let text = help(verb);
        let (_, examples) = text.split_once("\nExamples:\n").expect("examples");
        let command = format!("  tollgate {verb}");
        let number = examples.lines().filter(|line| line.starts_with(&command)).count();
        assert!((2..=4).contains(&number), "{verb}: {examples}");
    }
}

#[test]
fn the_verb_help_prints_the_help_of_a_verb() {
    let home = Home::new();
    let printed = |words: &[&str]| {
        let output = home.tollgate(words.iter().copied()).env("COLUMNS", "80").assert().success();
        String::from_utf8(output.get_output().stdout.clone()).expect("text")
    };
    assert_eq!(printed(&["help", "compare"]), printed(&["compare", "--help"]));
    assert_eq!(printed(&["help", "inspect", "aslr"]), printed(&["inspect", "aslr", "--help"]));
    assert_eq!(printed(&["help"]), printed(&["--help"]));
}

#[test]
fn table_is_another_word_for_text() {
    let home = Home::new();
    home.keep(&common::document("20261121-015427-0001", None, 1.0));
    let shown = |format: &str| home.output(["show", "last", "--format", format]);
    assert_eq!(shown("text"), shown("table"));
    assert!(!help("show").contains("table]"), "the old word is shown");
}

#[test]
fn json_is_the_format_of_that_name_on_every_verb_that_has_it() {
    let has = |verb: &&&str| help(verb).contains("--format <FORMAT>") && help(verb).contains("- json:");
    let verbs: Vec<&&str> = VERBS.iter().chain(&NESTED).filter(has).collect();
    assert!(verbs.len() > 12, "{verbs:?}");
    for verb in verbs {
        assert!(help(verb).contains("--json"), "{verb}");
    }
    let home = Home::new();
    assert_eq!(home.output(["list", "entry", "--json"]), home.output(["list", "entry", "--format", "json"]));
    // Once with `--format`, and once with a verb that refuses it.
    let lines = ["list --json --format json", "lab --image lab.bin --json"];
    insta::assert_snapshot!("refusals-of-json", refusals(&home, lines));
}

#[test]
fn colors_are_where_they_are_asked_for() {
    let home = Home::new();
    let has_colors = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.tollgate(arguments.iter().copied());
        let command =
            command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
        command.assert().success().get_output().stdout.contains(&0x1b)
    };
    let list = ["list", "entry"];
    assert!(!has_colors(&list, &[]), "it is no terminal");
    assert!(has_colors(&list, &[("CLICOLOR_FORCE", "1")]));
    assert!(has_colors(&["list", "entry", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(has_colors(&["--color=always", "list", "entry"], &[]));
    assert!(!has_colors(&["list", "entry", "--color", "never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn manual_pages_are_written_into_a_directory_that_is_made() {
    let home = Home::new();
    home.output(["man", "share/man/man1"]);
    let pages = std::fs::read_dir(home.path().join("share/man/man1")).expect("a directory");
    assert_eq!(pages.count(), VERBS.len() + 1);
}
