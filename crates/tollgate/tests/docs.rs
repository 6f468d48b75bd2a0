//! The samples of docs/ whose output is the same on every machine match the program's output. Times and line breaks are not
//! compared. A line `…` stands for omitted lines.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::fs;
use std::path::Path;

use crate::common;
use common::{Home, document};

/// The pages with samples of these verbs.
const PAGES: [&str; 8] = [
    "decode.md",
    "json.md",
    "lab.md",
    "lab-proofs.md",
    "locks.md",
    "schedules.md",
    "schedules-x86.md",
    "trace.md",
];
const VERBS: [&str; 2] = ["decode", "schedules"];
/// The samples of these verbs that read a file, and those of locks.
const BEGINNINGS: [&str; 7] = [
    "inspect --from crates/",
    "trace --from ",
    "lab locks --on interpreter",
    "lab locks --prove",
    "lab register-late",
    "lab entries --prove",
    "lab entry-gs8 --prove",
];

/// How a program begins, and the file that a sample reads it from.
const PROGRAMS: [(&str, &str); 4] = [
    ("# Figure 11 ", "figure-11.s"),
    ("# Figure 8 ", "figure-8.s"),
    ("# A spin lock", "spin.s"),
    ("X86 SB", "sb.litmus"),
];

fn blocks(page: &str) -> Vec<&str> {
    page.split("\n```").skip(1).step_by(2).filter_map(|block| Some(block.split_once('\n')?.1)).collect()
}

/// The words of a text, without those of times.
fn words(text: &str) -> Vec<&str> {
    let is_time = |pair: &[&str]| {
        pair[0].trim_start_matches('(').parse::<f64>().is_ok() && ["ms)", "s)", "µs)"].contains(&pair[1])
    };
    let all: Vec<&str> = text.split_whitespace().collect();
    let timed: Vec<usize> = (1..all.len()).filter(|&at| is_time(&all[at - 1..=at])).collect();
    let stays = |at: &usize| !timed.contains(at) && !timed.contains(&(at + 1));
    (0..all.len()).filter(stays).map(|at| all[at]).collect()
}

/// Fails unless the output has every part of the sample, in their order.
fn agrees(command: &str, sample: &str, output: &str) {
    let output = words(output);
    let mut rest = &output[..];
    for part in sample.split('…').map(words).filter(|part| !part.is_empty()) {
        let at = rest.windows(part.len()).position(|found| found == part);
        let at = at.unwrap_or_else(|| {
            panic!("{command} does not print\n{}\nbut\n{}", part.join(" "), rest.join(" "))
        });
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn samples_of_what_needs_no_machine_are_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = Vec::new();
    for name in PAGES {
        let page = fs::read_to_string(root.join("docs").join(name)).expect("a page");
        let blocks = blocks(&page);
        let home = Home::new();
        for block in &blocks {
            // A later sample reads this program.
            for (begins, file) in PROGRAMS {
                if block.starts_with(begins) {
                    home.file(file, block);
                }
            }
            let Some((command, sample)) =
                block.strip_prefix("$ tollgate ").and_then(|block| block.split_once('\n'))
            else {
                continue;
            };
            let arguments: Vec<&str> = command.split(' ').collect();
            if !VERBS.contains(&arguments[0]) && !BEGINNINGS.iter().any(|begins| command.starts_with(begins))
            {
                continue;
            }
            // The dumps are in the repository, the programs in the home.
            let mut program = home.tollgate(arguments);
            if command.contains("crates/") {
                program.current_dir(&root);
            }
            if command.contains("--prove entry") {
                program.current_dir(root.join("docs/lab"));
            }
            let output = program.output().expect("the program starts").stdout;
            agrees(command, sample, &String::from_utf8(output).expect("text"));
            seen.push(command.to_owned());
        }
    }
    assert_eq!(seen.len(), 16, "{seen:?}");
}

#[test]
fn the_page_has_the_columns_of_csv() {
    let home = Home::new();
    home.keep(&document("20261121-015427-00000001", Some("one"), 1.0));
    let csv = home.output(["show", "one", "--format", "csv"]);
    let header = csv.lines().next().expect("a header").replace(',', ", ");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = fs::read_to_string(page).expect("a page").replace('\n', " ");
    assert!(page.contains(&format!("`{header}`")), "docs/json.md has not the columns {header}");
}
