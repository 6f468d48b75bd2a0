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

/// The paragraph of a screen that begins with these words, on one line and without the search time.
fn paragraph(text: &str, begin: &str) -> String {
    let found = text.split("\n\n").find(|paragraph| paragraph.starts_with(begin));
    let words: Vec<&str> = found.unwrap_or_else(|| panic!("{begin}: {text}")).split_whitespace().collect();
    let said = words.join(" ");
    match said.rsplit_once(['(', ';']) {
        Some((said, time)) if time.ends_with("s)") => said.trim_end().to_owned(),
        _ => said,
    }
}

/// The screen of the results on two processors, with TIME instead of the search time.
fn with_any_time(text: &str) -> String {
    let (before, after) = text.split_once("on 2 processors; ").expect("a time");
    let (_, after) = after.split_once(')').expect("its end");
    format!("{before}on 2 processors; TIME){after}")
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
fn the_methods_of_figures_12_and_13_are_compared() {
    let home = Home::new();
    let text = home.output(["schedules", "figure-12"]);
    assert_eq!(text, home.output(["schedules", "figure-13"]));
    let row = |method: &str| {
        let row = text.lines().find(|line| line.starts_with(method)).expect(method);
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("k1/magic"), ["k1/magic", "holds", "10", "0", "10 to 18", "1 in 1 of 10"]);
    assert_eq!(row("Lamport"), ["Lamport", "holds", "-", "0", "not played"]);
    assert_eq!(row("system call"), ["system call", "holds", "3", "1", "3 to 4", "1"]);
    let document = home.json(["schedules", "figure-12", "--format", "json"]);
    let call = program(&document, "figure-6");
    assert_eq!(
        (&call["cost"]["alone"]["instructions"], &call["cost"]["alone"]["entries"]),
        (&3.into(), &1.into())
    );
    let both = home.output(["schedules", "figure-12", "figure-2"]);
    assert!(both.contains("\nfigure-2\n") && both.starts_with("figure-11\n"), "{both}");
}

#[test]
fn without_preemption_the_table_says_what_that_changes() {
    let home = Home::new();
    let text = home.output(["schedules", "--no-preemption"]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "an interrupt goes back to it. Violated with preemption, hold without: figure-2, figure-3, figure-11-k1-after-load,",
        "Hold with preemption, violated without: figure-7, lamport-up. 16 hold, 12 do not",
    ] {
        assert!(said.contains(part), "{text}");
    }
    let one = home.output(["schedules", "figure-2", "--no-preemption"]);
    let said = "holds: 71 states, every interleaving of 2 processes, 1 round each, on 1 processor, without preemption in user mode";
    assert_eq!(
        paragraph(&one, "holds")
            .split(" Without")
            .next()
            .map(|said| said.rsplit_once(" (").map_or(said, |(said, _)| said)),
        Some(said)
    );
    assert!(!home.output(["schedules"]).contains("preemption"));
}

#[test]
fn what_holds_says_over_what() {
    let home = Home::new();
    let text = home.output(["schedules", "lamport"]);
    let said = "holds: 5933 states, every interleaving of 2 processes, 2 rounds each, on 2 processors";
    assert_eq!(paragraph(&text, "holds"), said);
    let listing: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("     1  lock:")).collect();
    assert_eq!(listing[1..3], ["     2          x = i", "     3          mfence"], "{text}");
    // A setting of the user's own has no expected verdict.
    let document = home.json(["schedules", "lamport", "--rounds", "1", "--format", "json"]);
    assert_eq!(
        (&document["programs"][0]["rounds"], &document["programs"][0]["expected"]),
        (&1.into(), &Value::Null)
    );
}

#[test]
fn what_does_not_hold_shows_the_schedule() {
    let home = Home::new();
    let text = home.output(["schedules", "lamport-no-fence"]);
    insta::assert_snapshot!(with_any_time(&text));

    let document = home.json(["schedules", "lamport-no-fence", "--format", "json"]);
    let program = &document["programs"][0];
    let counterexample = &program["counterexample"];
    assert_eq!((&program["harm"], &counterexample["harm"]), (&"exclusion".into(), &"exclusion".into()));
    assert_eq!(counterexample["steps"].as_array().expect("steps").len(), 10);
    assert_eq!(counterexample["steps"][1]["what"], "x = 1 into the store buffer");
    assert_eq!(counterexample["steps"][1]["process"], 0);
    assert_eq!((&counterexample["back_to"], &program["lacking"]), (&Value::Null, &Value::Null));
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
fn too_few_states_decide_nothing() {
    let home = Home::new();
    let text = home.output(["schedules", "lamport", "--max-states", "5932"]);
    let said = "not decided: no violation in 5932 states of 2 processes, 2 rounds each, on 2 processors, and the limit of states is reached (--max-states)";
    assert_eq!(paragraph(&text, "not decided"), said);
    assert!(!text.contains("holds"), "{text}");
    let document = home.json(["schedules", "lamport", "--max-states", "5932", "--format", "json"]);
    let program = &document["programs"][0];
    assert_eq!((&program["verdict"], &program["lacking"]), (&"not-decided".into(), &"states".into()));
    assert_eq!((&program["complete"], &program["states"]), (&false.into(), &5932.into()));
    let document = home.json(["schedules", "lamport", "--max-states", "5933", "--format", "json"]);
    let program = &document["programs"][0];
    assert_eq!((&program["verdict"], &program["states"]), (&"holds".into(), &5933.into()));
}

#[test]
fn the_condition_is_an_exit_status_and_not_another_result() {
    let home = Home::new();
    let condition = |arguments: &[&str]| {
        let all = [&["schedules", "--fail-on", "violated"], arguments].concat();
        let output = home.tollgate(all).assert().code(1).get_output().clone();
        assert!(!output.stdout.is_empty());
        one_line(&output.stderr)
    };
    assert_eq!(condition(&["lamport-no-fence"]), "lamport-no-fence: two hold the lock at once");
    assert_eq!(condition(&["lamport", "--max-states", "10"]), "lamport: not decided, out of states");
    let several = condition(&["lamport", "lamport-no-fence", "lamport-no-x-fence"]);
    assert_eq!(several, "lamport-no-fence: two hold the lock at once, and 1 other does not hold");
    home.output(["schedules", "--fail-on", "violated", "lamport", "lamport-up"]);
    // Without the option a verdict is a result like any other.
    home.output(["schedules", "lamport-no-fence"]);
}

#[test]
fn what_there_is_not_is_refused() {
    let home = Home::new();
    let unknown = |name, what| format!("\"{name}\" is neither a program nor a file; {what}");
    let meant = unknown("lamprot", "did you mean lamport?");
    assert_eq!(home.refusal(["schedules", "lamprot"]), meant);
    for name in ["entirely-unlike", ""] {
        let listed = unknown(name, "`tollgate schedules` lists the programs");
        assert_eq!(home.refusal(["schedules", "lamport", name]), listed);
    }
    let refusal = |option: &str| home.refusal(["schedules", "lamport", option]);
    for (option, what, number) in [
        ("--processes=5", "processes", 5),
        ("--processes=0", "processes", 0),
        ("--rounds=0", "rounds", 0),
        ("--processors=0", "processors", 0),
        ("--rounds=5", "rounds", 5),
    ] {
        assert_eq!(refusal(option), format!("lamport runs with 1 to 4 {what}, not with {number}"));
    }
    for wrong in ["0", "-1", "many", "99999999999"] {
        let invalid = format!("invalid value '{wrong}' for '--max-states <N>'");
        let line = format!("{invalid}: it is not a number of states, from 1 to 4294967294");
        assert_eq!(refusal(&format!("--max-states={wrong}")), line);
    }
    let line = "invalid value '256' for '--processes <N>': 256 is not in 0..=255";
    assert_eq!(refusal("--processes=256"), line);
}

#[test]
fn what_cannot_be_preempted_is_refused() {
    let home = Home::new();
    let refusal = |preempt: &str| home.refusal(["schedules", "lamport", &format!("--preempt={preempt}")]);
    let played = "lamport has no single process to preempt: its steps are checked in every order, not played";
    for preempt in ["0", "all"] {
        assert_eq!(refusal(preempt), played);
    }
    for wrong in ["-1", "first", "1.5", ""] {
        let invalid = format!("invalid value '{wrong}' for '--preempt <N|all>'");
        let line = format!("{invalid}: it is not the number of an instruction, such as 3, or `all`");
        assert_eq!(refusal(wrong), line);
    }
    let line = home.refusal(["schedules", "--preempt", "1"]);
    assert_eq!(line, "the following required arguments were not provided: <PROGRAM>...");
    let line = home.refusal(["schedules", "lamport", "--preempt=1", "--rounds=2"]);
    assert_eq!(line, "the argument '--preempt <N|all>' cannot be used with '--rounds <N>'");
}

#[test]
fn a_file_that_is_no_program_is_refused_with_the_reason() {
    let home = Home::new();
    let large = home.file("large.s", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&large)
        .and_then(|file| file.set_len(1 << 40))
        .expect("sparse");
    let directory = home.path().display().to_string();
    for (file, reason) in [
        (home.file("bytes.s", b"one\ntwo \xff\n"), "line 2: it is not UTF-8 text"),
        (home.path().join("absent.s").display().to_string(), "does not exist"),
        ("absent.s".to_owned(), "does not exist"),
        (directory, "is a directory; a program is a file"),
        (large, "is larger than 1 MiB, the limit for a program"),
        ("/dev/zero".to_owned(), "is larger than 1 MiB, the limit for a program"),
    ] {
        assert_eq!(home.refusal(["schedules", &file]), format!("{file}: {reason}"));
    }
    // A name without a dot means a file if there is one.
    let file = home.file("diary", "my diary");
    assert!(home.refusal(["schedules", &file]).starts_with(&file));
    assert!(home.refusal(["schedules", "diary"]).starts_with("diary"));
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
    let text = home.output(["schedules", "figure-10"]);
    let said = "Its schedule: A is preempted before instruction 6.";
    assert_eq!(paragraph(&text, "Its schedule"), said);
    let of_the_kernel: Vec<&str> = text.lines().filter(|line| line.contains("  kernel: ")).collect();
    let steps = [
        " 8  kernel: timer interrupt in A, EPC = tst+0x18",
        " 9  kernel: B goes on",
        "24  kernel: A goes on at tst+0x18 → k1 = 0x00200000",
        "26  kernel: SEGV: write to 0x00200000, EPC = tst+0x18",
        "27  kernel: handler: A goes on at tst → k1 = 0x00200000",
    ];
    assert_eq!(of_the_kernel, steps);
    let text = home.output(["schedules", "figure-6"]);
    assert_eq!(paragraph(&text, "Its schedule"), "Its schedule: A takes the lock alone.");
}

#[test]
fn a_printed_listing_gives_the_built_in_verdict_and_its_corrections() {
    let home = Home::new();
    let printed = "図2\n\tlw\tv0,(a0)\n\tli\tt0,1\t// taken\n\tbnez\tv0,1f\n\tsw\tt0,(a0)\n1:\tj\tra\n";
    let file = home.file("figure2.txt", printed);
    let document = home.json(["schedules", &file, "figure-2", "--format", "json"]);
    let (own, built_in) = (program(&document, "figure2.txt"), program(&document, "figure-2"));
    for field in ["verdict", "harm", "states", "listing"] {
        assert_eq!(own[field], built_in[field], "{field}");
    }
    let lines: Vec<u64> = own["corrections"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["line"].as_u64())
        .collect();
    assert_eq!(lines, [1, 4, 6, 6]);
    assert_eq!(built_in["corrections"], Value::Array(vec![]));
    let said = "Read differently than written: line 1: `図2` is a caption and is left out line 4: a `nop` is put into the \
                delay slot of `bnez v0,1f`: `sw t0,(a0)` is for one path only line 6: `j ra` is read as `jr ra` \
                line 6: a `nop` is put into the delay slot of `jr ra`: the listing ends with it";
    assert_eq!(paragraph(&home.output(["schedules", &file]), "Read differently"), said);
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
    let file = home.file("bad.s", ".machine x86\nlock: xchg [x]\ncritical section\n");
    let line = home.refusal(["schedules", &file]);
    assert_eq!(line, format!("{file}: line 2: `xchg` is written `xchg [x],eax`; this has 1 operand"));
}

#[test]
fn litmus_tests_are_answered() {
    let home = Home::new();
    let test = |question: &str| {
        let text = format!(
            "X86 SB\n{{ x=0; y=0; }}\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\n{question}\n"
        );
        home.file("sb.litmus", text)
    };
    let file = test("exists (0:EAX=0 /\\ 1:EAX=0)");
    let document = home.json(["schedules", &file, "--fail-on", "violated", "--format", "json"]);
    let sb = program(&document, "sb.litmus");
    assert_eq!((&sb["verdict"], &sb["harm"]), (&"allowed".into(), &Value::Null));
    assert_eq!(sb["condition"], "exists (0:EAX=0 /\\ 1:EAX=0)");
    let holds: Vec<bool> = sb["final_states"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|state| state["holds"].as_bool())
        .collect();
    assert_eq!(holds, [true, false, false, false]);
    let text = home.output(["schedules", &file]);
    insta::assert_snapshot!(with_any_time(&text));
    let one = home.output(["schedules", &file, "--processors", "1"]);
    let said = "forbidden: in 25 states, every interleaving of 2 processes, 1 round each, on 1 processor, none is as \
                asked for";
    assert_eq!(paragraph(&one, "forbidden"), said);
    let said = "3 final states (* the condition holds); observation: Never 0:EAX=0; 1:EAX=1; 0:EAX=1; 1:EAX=0; 0:EAX=1; \
                1:EAX=1;";
    assert_eq!(paragraph(&one, "3 final"), said);
    let few = home.output(["schedules", &file, "--max-states", "3"]);
    let said = "not decided: no violation in 3 states of 2 processes, 1 round each, on 2 processors, and the limit of states is reached (--max-states)";
    assert_eq!(paragraph(&few, "not decided"), said);
    assert_eq!(paragraph(&few, "0 final"), "0 final states (* the condition holds); not complete");
    let file = test("~exists (0:EAX=0 /\\ 1:EAX=0)");
    let output =
        home.tollgate(["schedules", &file, "--fail-on", "violated"]).assert().code(1).get_output().clone();
    assert_eq!(one_line(&output.stderr), "sb.litmus: a final state contradicts the condition");
    let arm = home.file("mp.litmus", "AArch64 MP\n{}\nP0 ;\nNOP ;\nexists (x=0)\n");
    let said = "this test is for AArch64; the model has the store buffers of x86, for tests that begin with X86 or X86_64";
    assert_eq!(home.refusal(["schedules", &arm]), format!("{arm}: line 1: {said}"));
}

#[test]
fn what_is_wrong_with_a_program_is_said_with_its_line() {
    let home = Home::new();
    let cases = [
        (
            "lw v0,(a0)\nlq t0,1\njr ra\nnop\n",
            "line 2: `lq` is not an instruction of the model; did you mean lw or ll or li?",
        ),
        (
            "start: lw v0,(a0)\nsw t0,start\njr ra\nnop\n",
            "line 2: `start` is in the page of tst(), which can be executed and not written",
        ),
        (
            "b 5f\nnop\njr ra\nnop\n",
            "line 1: there is no label `5f` further on; backwards it would be written with b",
        ),
        (
            "lw v0,(a0)\nsw t0,(a0)\n",
            "line 2: the program can run on past this instruction; end it with `jr ra` and `nop`",
        ),
        (
            ".processes 99\njr ra\nnop\n",
            "line 1: `.processes` is written `.processes 2 (1 to 4)`, not with `99`",
        ),
    ];
    for (text, said) in cases {
        let file = home.file("bad.s", text);
        assert_eq!(home.refusal(["schedules", &file]), format!("{file}: {said}"));
    }
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
