//! `tollgate schedules`: verdicts, schedules and the documents that say the same.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Home, one_line};
use serde_json::Value;

fn program<'a>(document: &'a Value, name: &str) -> &'a Value {
    let programs = document["programs"].as_array().expect("a list");
    programs.iter().find(|program| program["name"] == name).expect(name)
}

/// The document without the times, the only thing in it that differs from run to run.
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
        assert!(row.contains(&program["states"].to_string()), "{row}");
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
fn what_holds_says_over_what() {
    let home = Home::new();
    let text = home.output(["schedules", "lamport"]);
    let said = "holds: 5933 states, every interleaving of 2 processes, 2 rounds each, on 2";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("\n     2          x = i\n     3          mfence\n"), "{text}");
    // No verdict is expected in a setting of one's own.
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
    assert!(text.contains("violated: two hold the lock at once, after 10 steps (48078 states"), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let header = lines.iter().position(|line| line.trim_start().starts_with("A  ")).expect("columns");
    let b = lines[header].find('B').expect("a column of its own");
    assert!(lines[header + 1].starts_with(" 1  lock:1 b[1] = 1 into the store buffer"), "{text}");
    let of_b = lines.iter().find(|line| line.contains("b[2] = 1 into")).expect("B's first step");
    assert_eq!(of_b.find("lock:1"), Some(b), "{text}");
    let never =
        "Never: a process is killed; the lock is taken and has no holder; a process can\nnever finish.\n";
    assert!(text.ends_with(&format!("fence after\n`y = i` is missing.\n{never}")), "{text}");

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
    assert!(text.contains("not decided: no violation in 5932 states"), "{text}");
    assert!(!text.contains("holds"), "{text}");
    let document = home.json(["schedules", "lamport", "--max-states", "5932", "--format", "json"]);
    let program = &document["programs"][0];
    assert_eq!((&program["verdict"], &program["lacking"]), (&"not-decided".into(), &"states".into()));
    assert_eq!((&program["complete"], &program["states"]), (&false.into(), &5932.into()));
    let text = home.output(["schedules", "lamport", "--max-states", "5933"]);
    assert!(text.contains("holds: 5933 states"), "{text}");
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
    // Without it a verdict is a result like any other.
    home.output(["schedules", "lamport-no-fence"]);
}

#[test]
fn what_there_is_not_is_refused() {
    let home = Home::new();
    let line = home.refusal(["schedules", "lamprot"]);
    assert!(line.contains("\"lamprot\"") && line.contains("did you mean lamport"), "{line}");
    let line = home.refusal(["schedules", "lamport", "entirely-unlike"]);
    assert!(line.contains("`tollgate schedules` lists"), "{line}");
    let line = home.refusal(["schedules", "lamport", "--processes", "5"]);
    assert!(line.contains("runs with 1 to 4 processes, not with 5"), "{line}");
    for wrong in ["--processes=0", "--rounds=0", "--processors=0", "--rounds=5"] {
        assert!(home.refusal(["schedules", "lamport", wrong]).contains("not with"), "{wrong}");
    }
    for wrong in [
        "--max-states=0",
        "--max-states=-1",
        "--max-states=many",
        "--max-states=99999999999",
        "--processes=256",
    ] {
        let line = home.refusal(["schedules", "lamport", wrong]);
        assert!(line.contains(wrong.split('=').next().expect("its name")), "{line}");
    }
    let line = home.refusal(["schedules", ""]);
    assert!(line.contains("no program is called \"\""), "{line}");
}

#[test]
fn what_cannot_be_preempted_is_refused() {
    let home = Home::new();
    for preempt in ["0", "all"] {
        let line = home.refusal(["schedules", "lamport", "--preempt", preempt]);
        assert!(line.starts_with("lamport has no single process to preempt"), "{line}");
    }
    for wrong in ["-1", "first", "1.5", ""] {
        let line = home.refusal(["schedules", "lamport", &format!("--preempt={wrong}")]);
        assert!(line.contains("--preempt"), "{line}");
    }
    assert!(home.refusal(["schedules", "--preempt", "1"]).contains("<PROGRAM>"));
    let line = home.refusal(["schedules", "lamport", "--preempt=1", "--rounds=2"]);
    assert!(line.contains("cannot be used with"), "{line}");
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
        (home.file("bytes.s", b"one\ntwo \xff\n"), "line 2"),
        (home.path().join("absent.s").display().to_string(), "does not exist"),
        ("absent.s".to_owned(), "does not exist"),
        (directory, "is a directory"),
        (large, "larger than 1 MiB"),
        ("/dev/zero".to_owned(), "larger than 1 MiB"),
    ] {
        let line = home.refusal(["schedules", &file]);
        assert!(line.contains(reason) && line.starts_with(&file), "{line}");
    }
    // A name without a point is a file's where there is one.
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
    assert_eq!(directives.len(), 9, "{directives:?}");
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
    // The directives are those that hold without any.
    assert_eq!(states(program_text), states(&format!("{all}{program_text}")));
    let published = home.json(["schedules", "figure-11", "--format", "json"]);
    assert_eq!(states(program_text), program(&published, "figure-11")["states"].as_u64());
    // And what it depends on is missed.
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
    let text = home.output(["schedules", "figure-10"]);
    assert!(
        text.contains("holds: 1127 states")
            && text.contains("\nIts schedule: A is preempted before instruction 6.\n"),
        "{text}"
    );
    assert!(text.contains("kernel: SEGV: write to 0x00200000, EPC = tst+0x18\n"), "{text}");
    assert!(home.output(["schedules", "figure-6"]).contains("A takes the lock alone"));
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
    let text = home.output(["schedules", &file]);
    assert!(text.contains("\nRead otherwise than written:\n  line 1: `図2` is a caption"), "{text}");
    assert!(text.contains("  line 6: `j ra` is read as `jr ra`\n"), "{text}");
}

#[test]
fn programs_for_x86_are_files_too() {
    let home = Home::new();
    let listing =
        home.json(["schedules", "lamport-no-fence", "--format", "json"])["programs"][0]["listing"].clone();
    let file = home.file("lamport.txt", listing.as_str().expect("a text"));
    let text = home.output(["schedules", &file]);
    assert!(text.contains("violated: two hold the lock at once, after 10 steps (48078 states"), "{text}");
    let on_one = home.output(["schedules", &file, "--processors", "1"]);
    assert!(on_one.contains("holds: 8276 states"), "{on_one}");
    let line =
        home.refusal(["schedules", &home.file("bad.s", ".machine x86\nlock: xchg [x]\ncritical section\n")]);
    assert!(line.contains("line 2: `xchg` is written `xchg [x],eax`"), "{line}");
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
    assert!(text.contains("\n  * 0:EAX=0; 1:EAX=0;\n    0:EAX=0; 1:EAX=1;\n"), "{text}");
    assert!(!text.contains("Never:"), "{text}");
    let one = home.output(["schedules", &file, "--processors", "1"]);
    assert!(one.contains("forbidden: in ") && one.contains("observation: Never"), "{one}");
    let few = home.output(["schedules", &file, "--max-states", "3"]);
    assert!(few.contains("not decided") && !few.contains("observation"), "{few}");
    let file = test("~exists (0:EAX=0 /\\ 1:EAX=0)");
    let output =
        home.tollgate(["schedules", &file, "--fail-on", "violated"]).assert().code(1).get_output().clone();
    assert_eq!(one_line(&output.stderr), "sb.litmus: a final state contradicts the condition");
    let arm = home.file("mp.litmus", "AArch64 MP\n{}\nP0 ;\nNOP ;\nexists (x=0)\n");
    assert!(home.refusal(["schedules", &arm]).contains("line 1: this test is for AArch64"), "{arm}");
}

#[test]
fn what_is_wrong_with_a_program_is_said_with_its_line() {
    let home = Home::new();
    let cases = [
        ("lw v0,(a0)\nlq t0,1\njr ra\nnop\n", "line 2: `lq` is no instruction"),
        ("start: lw v0,(a0)\nsw t0,start\njr ra\nnop\n", "line 2: `start` is in the page of tst()"),
        ("b 5f\nnop\njr ra\nnop\n", "line 1: "),
        ("lw v0,(a0)\nsw t0,(a0)\n", "line 2: "),
        (".processes 99\njr ra\nnop\n", "line 1: "),
    ];
    for (text, said) in cases {
        let line = home.refusal(["schedules", &home.file("bad.s", text)]);
        assert!(line.contains(said), "{line}");
    }
}
