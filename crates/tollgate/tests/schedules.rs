//! `tollgate schedules`: verdicts, schedules, and the documents with the same content.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common;
use common::{Home, one_line};
use serde_json::Value;

fn program<'a>(document: &'a Value, name: &str) -> &'a Value {
    let programs = document["programs"].as_array().expect("a list");
    programs.iter().find(|program| program["name"] == name).expect(name)
}

fn without_times(mut document: Value) -> Value {
    for program in document["programs"].as_array_mut().expect("a list") {
        assert!(program["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{program}");
        program["seconds"] = Value::Null;
    }
    document
}

#[test]
fn every_program_is_in_the_table_and_as_expected() {
    let home = Home::new();
    let text = home.output(["schedules"]);
    let document = home.json(["schedules", "--format", "json"]);
    for program in document["programs"].as_array().expect("a list") {
        let name = program["name"].as_str().expect("a name");
        assert_eq!(program["verdict"], program["expected"]["verdict"], "{name}");
        assert_eq!(program["harm"], program["expected"]["harm"], "{name}");
        assert_eq!(program["complete"], true, "{name}");
        let row = text.lines().find(|line| line.split_whitespace().next() == Some(name)).expect(name);
        // The time and its unit follow.
        assert_eq!(row.split_whitespace().nth_back(2), Some(program["states"].to_string().as_str()), "{row}");
    }
    assert!(text.ends_with("; all as expected\n"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(!text.contains('\u{1b}') && home.files().is_empty());
}

#[test]
fn two_runs_say_the_same() {
    let home = Home::new();
    let document = || without_times(home.json(["schedules", "--format", "json"]));
    assert_eq!(document(), document());
}

#[test]
fn lamport_needs_two_fences_across_processors_and_none_on_one() {
    let home = Home::new();
    let verdicts = |arguments: &[&str]| {
        let document = home.json([&["schedules", "--format", "json"], arguments].concat());
        ["lamport", "lamport-no-x-fence", "lamport-no-y-fence", "lamport-no-fence"]
            .map(|name| program(&document, name)["verdict"].as_str().expect("a verdict").to_owned())
    };
    let four = ["lamport", "lamport-no-x-fence", "lamport-no-y-fence", "lamport-no-fence"];
    assert_eq!(verdicts(&four), ["holds", "violated", "violated", "violated"]);
    let on_one = [&four[..], &["--processors", "1"]].concat();
    assert_eq!(verdicts(&on_one), ["holds"; 4]);
    let of_three = [&four[..], &["--processes=3", "--rounds=1", "--processors=3"]].concat();
    assert_eq!(verdicts(&of_three), ["holds", "violated", "violated", "violated"]);
}

#[test]

fn a_narrow_terminal_gets_narrow_lines() {
    let home = Home::new();
    for columns in ["30", "44", "60", "100"] {
        let mut command = home.tollgate(["schedules", "lamport-no-x-fence", "lamport"]);
        let output = command.env("COLUMNS", columns).assert().success().get_output().stdout.clone();
        let text = String::from_utf8(output).expect("text");
        let width = columns.parse().expect("a number");
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{columns}: {line}");
        }
    }
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let home = Home::new();
    assert!(!home.output(["schedules", "lamport"]).contains('\u{1b}'));
    let coloured = |no_color: &str| {
        let mut command = home.tollgate(["schedules", "lamport"]);
        command.env("CLICOLOR_FORCE", "1").env("NO_COLOR", no_color);
        command.assert().success().get_output().stdout.contains(&0x1b)
    };
    assert!(coloured(""));
    let mut plain = home.tollgate(["schedules", "lamport"]);
    let plain = plain.env("NO_COLOR", "1").assert().success().get_output().stdout.clone();
    assert!(!plain.contains(&0x1b));
}

#[test]

fn a_reader_that_goes_away_is_no_error() {
    let home = Home::new();
    let mut child = std::process::Command::new(common::program())
        .args(["schedules", "--format", "json"])
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut first).expect("a line");
    let output = child.wait_with_output().expect("ended");
    assert_eq!((first.as_str(), output.status.code(), output.stderr.as_slice()), ("{\n", Some(0), &b""[..]));
}

#[test]
fn the_program_of_the_documentation_is_one_and_its_directives_are_known() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedules.md"));
    let text = text.expect("the documentation");
    let blocks: Vec<&str> = text.split("```").map(|block| block.trim_start_matches('\n')).collect();
    let program_text = blocks.iter().find(|block| block.starts_with("# Figure 11")).expect("a program");
    let directives: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("| `.")?.split('`').next()).collect();
    assert_eq!(directives.len(), 10, "{directives:?}");
    // One of them is an instruction.
    let directives = directives.iter().filter(|directive| !directive.starts_with("word"));
    let all: String = directives.map(|directive| format!(".{directive}\n")).collect();
    let home = Home::new();
    let states = |text: &str| {
        let document = home.json(["schedules", &home.file("program.s", text), "--format", "json"]);
        let program = program(&document, "program.s");
        assert_eq!((&program["verdict"], &program["group"]), (&"holds".into(), &"own".into()));
        program["states"].as_u64()
    };
    // The directives are the defaults.
    assert_eq!(states(program_text), states(&format!("{all}{program_text}")));
    let published = home.json(["schedules", "figure-11", "--format", "json"]);
    assert_eq!(states(program_text), program(&published, "figure-11")["states"].as_u64());
    // And the dependency is missing.
    let without = home.file("program.s", format!(".kernel k1=unset\n{program_text}"));
    let document = home.json(["schedules", &without, "--format", "json"]);
    assert_eq!(program(&document, "program.s")["harm"], "exclusion");
}

#[test]
fn the_figures_of_the_paper_are_names_and_their_schedules_are_shown() {
    let home = Home::new();
    let document =
        home.json(["schedules", "figure-3", "figure-6", "figure-7", "figure-10", "--format", "json"]);
    let played = |name: &str| &program(&document, name)["preemptions"];
    assert_eq!(
        (&played("figure-3")[0]["before"], &played("figure-3")[0]["harm"]),
        (&4.into(), &"exclusion".into())
    );
    assert_eq!(
        (&played("figure-10")[0]["before"], &played("figure-10")[0]["harm"]),
        (&6.into(), &Value::Null)
    );
    assert_eq!(played("figure-6").as_array().map(Vec::len), Some(1));
    assert_eq!(played("figure-7").as_array().map(Vec::len), Some(0));
    for (figure, other) in [
        ("figure-3", "figure-2"),
        ("figure-6", "system-call"),
        ("figure-7", "lamport-up"),
        ("figure-10", "figure-9"),
    ] {
        let other = home.json(["schedules", other, "--format", "json"]);
        for field in ["verdict", "harm", "states", "listing"] {
            assert_eq!(program(&document, figure)[field], other["programs"][0][field], "{figure} {field}");
        }
    }
    let figure_10 = program(&document, "figure-10");
    assert_eq!((&figure_10["verdict"], &figure_10["states"]), (&"holds".into(), &1127.into()));
}

#[test]
fn a_printed_listing_gives_the_built_in_verdict() {
    let home = Home::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/schedules.in/figure2.txt");
    let document = home.json(["schedules", file, "figure-2", "--format", "json"]);
    let (own, built_in) = (program(&document, "figure2.txt"), program(&document, "figure-2"));
    for field in ["verdict", "harm", "states", "listing"] {
        assert_eq!(own[field], built_in[field], "{field}");
    }
}

#[test]
fn programs_for_x86_are_files_too() {
    let home = Home::new();
    let listing =
        home.json(["schedules", "lamport-no-fence", "--format", "json"])["programs"][0]["listing"].clone();
    let file = home.file("lamport.txt", listing.as_str().expect("a text"));
    let result = |processors: &str| {
        let document = home.json(["schedules", &file, "--processors", processors, "--format", "json"]);
        let program = program(&document, "lamport.txt");
        let steps = program["counterexample"]["steps"].as_array().map(Vec::len);
        (program["verdict"].clone(), program["harm"].clone(), program["states"].clone(), steps)
    };
    assert_eq!(result("2"), ("violated".into(), "exclusion".into(), 48078.into(), Some(10)));
    assert_eq!(result("1"), ("holds".into(), Value::Null, 8276.into(), None));
}

#[test]
fn a_program_comes_from_standard_input_too() {
    const SPIN: &str = ".init x=1\n1: lock; decl x\n jns 3f\n2: cmpl $0,x\n jle 2b\n jmp 1b\n3: critical section\n movl $1,x\n";
    let home = Home::new();
    let output =
        home.tollgate(["schedules", "-"]).write_stdin(SPIN).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).expect("text");
    assert!(text.starts_with("standard input") && text.contains("holds: "), "{text}");
    let refused =
        home.tollgate(["schedules", "-"]).write_stdin("").assert().code(2).get_output().stderr.clone();
    assert!(one_line(&refused).starts_with("-: line 1: "), "{}", one_line(&refused));
}
