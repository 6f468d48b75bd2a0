//! `tollgate lab --program`: the documented examples, built with the documented commands, and refusals.

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use super::common::{Home, one_line, program};
use super::has_qemu;

fn page() -> String {
    std::fs::read_to_string(docs().join("lab.md")).expect("the page")
}

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// A home with the examples, built by the command lines of the page. `None` if a compiler is missing.
fn built() -> Option<Home> {
    let home = Home::new();
    for name in ["tollgate.h", "entries.c", "counter.rs", "pages.s"] {
        home.file(name, std::fs::read(docs().join("lab").join(name)).expect("an example"));
    }
    let page = page();
    let lines: Vec<&str> =
        page.lines().filter(|line| line.starts_with("cc ") || line.starts_with("rustc ")).collect();
    assert_eq!(lines.len(), 2, "one for C and one for Rust");
    for line in lines {
        let compiler = line.split(' ').next().expect("a word");
        if let Err(why) = Command::new(compiler).arg("--version").output() {
            println!("skipped: {compiler}: {why}");
            return None;
        }
        let output =
            Command::new("sh").args(["-c", line]).current_dir(home.path()).output().expect("a shell");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Some(home)
}

/// Why a text was not assembled, if the tool for it is missing.
fn no_assembler(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code() == Some(2) && said.contains("not in PATH")).then_some(said)
}

fn run(home: &Home, arguments: &[&str]) -> Output {
    let all = ["lab", "--on", "interpreter"].into_iter().chain(arguments.iter().copied());
    home.tollgate(all).output().expect("started")
}

fn json(home: &Home, on: &str, arguments: &[&str]) -> Value {
    let all = ["lab", "--on", on, "--format", "json"].into_iter().chain(arguments.iter().copied());
    let output = home.tollgate(all).output().expect("started");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_examples_do_the_same_on_both_engines() {
    let Some(home) = built() else { return };
    let entries = json(&home, "interpreter", &["--program", "entries"]);
    let output = entries["programs"][0]["output"].as_str().expect("text");
    let rows: Vec<(&str, u64)> = output.lines().skip(1).map(row).collect();
    assert_eq!(
        rows.iter().map(|row| row.0).collect::<Vec<_>>(),
        ["syscall", "sysenter", "int 80h", "call gate"]
    );
    assert!(rows.iter().all(|row| (20..1000).contains(&row.1)), "{output}");

    let counter = json(&home, "interpreter", &["--program", "counter", "--timer", "3"]);
    let output = counter["programs"][0]["output"].as_str().expect("text");
    let lost: Vec<u64> = output.lines().map(|line| row(line).1).collect();
    assert!(lost[0] > 0 && lost[1] == 0, "{output}");
    let pages = json(&home, "interpreter", &["--program", "pages.s"]);
    assert_eq!(pages["programs"][0]["fault"]["exception"], "#PF(4)");
    assert_eq!(pages["programs"][0]["fault"]["cr2"], "0x50001000");

    if !has_qemu() {
        return;
    }
    for (arguments, own) in [
        (["--program", "entries"].as_slice(), &entries),
        (&["--program", "counter", "--timer", "3"], &counter),
        (&["--program", "pages.s"], &pages),
    ] {
        let theirs = json(&home, "qemu", arguments);
        // It includes every number: instructions, system calls, turns, registers.
        assert_eq!(theirs["programs"], own["programs"], "{arguments:?}");
        assert_eq!(theirs["cut_short"], Value::Null);
    }
    let all = [
        "--program",
        "entries",
        "--program",
        "counter",
        "--program",
        "pages.s",
        "--copies",
        "2",
        "--timer",
        "5",
    ];
    assert_eq!(json(&home, "qemu", &all)["programs"], json(&home, "interpreter", &all)["programs"]);
}

#[test]
fn an_invalid_lock_is_refused_by_the_interpreter_and_the_engine_that_executes_it_is_named() {
    let home = Home::new();
    let text = ".globl _start\n_start: mov $3, %eax\nmov $3, %ecx\n.byte 0xf0, 0x89, 0xc8\nxor %edi, %edi\nxor %eax, %eax\nsyscall\n";
    home.file("lock.s", text);
    let own = run(&home, &["--program", "lock.s"]);
    if let Some(why) = no_assembler(&own) {
        return println!("skipped: {why}");
    }
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(own.status.code(), Some(128 + 4), "#UD: {}", said(&own));
    assert!(!said(&own).contains("is wrong"), "{}", said(&own));
    if !has_qemu() {
        return;
    }
    let theirs = home.tollgate(["lab", "--on", "qemu", "--program", "lock.s"]).output().expect("started");
    let wrong = "tollgate: lock.s has instructions that a LOCK prefix makes invalid: #UD is right, as in the interpreter; QEMU's translator is wrong when it executes them without the prefix: 4000100a lock mov eax,ecx \
                 [f0 89 c8]";
    assert_eq!(said(&theirs).lines().next(), Some(wrong));
}

#[test]
fn kvm_runs_programs_or_says_why_not() {
    let home = Home::new();
    home.file("exits", EXITS);
    let output = home.tollgate(["lab", "--program", "exits", "--argument", "3", "--on", "kvm"]).output();
    let output = output.expect("started");
    if output.status.code() == Some(2) {
        let why = one_line(&output.stderr);
        assert!(why.starts_with("KVM cannot be used: "), "{why}");
        return println!("skipped: {why}");
    }
    assert_eq!(output.status.code(), Some(3));
}

fn row(line: &str) -> (&str, u64) {
    let (words, number) = line.rsplit_once(' ').expect("a number");
    (words.trim(), number.parse().expect("a number"))
}

#[test]
fn output_is_the_programs_and_the_rest_stands_beside_it() {
    let home = Home::new();
    home.file("pages.s", std::fs::read(docs().join("lab/pages.s")).expect("the example"));
    let output = run(&home, &["--program", "pages.s"]);
    if let Some(why) = no_assembler(&output) {
        return println!("skipped: {why}");
    }
    assert_eq!(output.status.code(), Some(128 + 11));
    let [said, beside] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert_eq!(said.lines().count(), 4, "{said}");
    // The sample of the page, with instruction counts that are the same on every machine.
    let page = page();
    let sample =
        page.split_once("$ tollgate lab --program pages.s --on interpreter\n").expect("the sample").1;
    let sample = sample.split_once("```").expect("its end").0;
    for line in sample.lines().filter(|line| !line.is_empty() && *line != "…") {
        assert!(format!("{said}{beside}").lines().any(|own| own == line), "{line} is not in\n{beside}");
    }
    assert!(beside.lines().all(|line| line.chars().count() <= 80), "{beside}");
    let quiet = run(&home, &["--program", "pages.s", "--quiet"]);
    assert_eq!((String::from_utf8_lossy(&quiet.stdout), quiet.stderr.len()), (said.into(), 0));
    assert_eq!(home.files(), ["pages.s"], "nothing is kept");
}

#[test]
fn the_test_and_set_of_the_page_is_for_programs_too() {
    let home = Home::new();
    home.file("spin.s", std::fs::read(docs().join("lab/spin.s")).expect("the example"));
    for (guard, says) in [(&["--test-and-set"][..], "no addition is lost"), (&[], "additions are lost")] {
        let all = [&["--program", "spin.s", "--timer", "2", "--quiet"], guard].concat();
        let output = run(&home, &all);
        if let Some(why) = no_assembler(&output) {
            return println!("skipped: {why}");
        }
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), says, "{guard:?}");
        let command = ["$ tollgate lab", &all[..4].join(" "), "--on interpreter"].join(" ");
        let command = guard.iter().fold(command, |command, option| format!("{command} {option}"));
        let sample = format!("{command}\n{says}\n");
        assert!(page().contains(&sample), "{sample}");
    }
}

/// Flat binaries: exit with the status in RDI, which is the argument; and one that has no end.
const EXITS: &[u8] = &[0x31, 0xc0, 0x0f, 0x05];
const ENDLESS: &[u8] = &[0xeb, 0xfe];

#[test]
fn a_program_without_an_end_is_stopped() {
    let home = Home::new();
    for (name, bytes) in [("exits", EXITS), ("endless", ENDLESS)] {
        home.file(name, bytes);
    }
    let stopped = run(&home, &["--program", "exits", "--program", "endless", "--time", "1s"]);
    assert_eq!(stopped.status.code(), Some(124));
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned();
    let stopped = "    stopped after 1 s, at 40000000 in 64-bit mode, ring 3";
    assert!(said.lines().any(|line| line == stopped), "{said}");
}

/// Two threads of control. The first spawns the second, at the offset in byte 6, with the end of the page as its stack (`mov eax,4;
/// mov edi,…; xor esi,esi; mov r8d,40001000h; syscall`). Then one of them exits with 0 and the other one has no end.
fn two_threads(second: u8, ends: &[&[u8]]) -> Vec<u8> {
    let spawn = [
        &[0xb8, 4, 0, 0, 0, 0xbf, second, 0, 0, 0x40][..],
        &[0x31, 0xf6, 0x41, 0xb8, 0, 0x10, 0, 0x40, 0x0f, 0x05],
    ];
    [&spawn[..], ends].concat().concat()
}

/// xor edi,edi; exit
const EXITS_WITH_0: &[u8] = &[0x31, 0xff, 0x31, 0xc0, 0x0f, 0x05];

#[test]
fn a_program_with_a_thread_that_has_no_end_was_stopped() {
    let home = Home::new();
    home.file("first-goes-on", two_threads(22, &[ENDLESS, EXITS_WITH_0]));
    home.file("second-goes-on", two_threads(26, &[EXITS_WITH_0, ENDLESS]));
    for (name, outcome, ended) in [("first-goes-on", "stopped", 1), ("second-goes-on", "exit", 0)] {
        let all = ["--format", "json", "--timer", "10", "--time", "1s", "--program", name];
        let output = run(&home, &all);
        assert_eq!(output.status.code(), Some(124), "{name}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let program = &document["programs"][0];
        assert_eq!(program["outcome"], outcome, "{program}");
        let numbers: Vec<_> = program["threads"].as_array().expect("a list").iter().collect();
        assert_eq!(numbers.len(), 1, "{program}");
        assert_eq!(numbers[0]["number"], ended, "{program}");
        let said = document["remarks"][0].as_str().expect("a sentence");
        let stopped = "The programs were stopped before all of them had ended: stopped after 1 s, at ";
        assert!(said.starts_with(stopped), "{said}");
    }
}

#[test]
fn a_program_that_would_be_relocated_is_refused() {
    let home = Home::new();
    // As a whole it may exceed the limit of input.
    let own = std::fs::read(super::common::program()).expect("the program");
    home.file("own", &own[..own.len().min(1 << 20)]);
    let line = "--program: own is position independent (PIE or a library), and nothing relocates it here; link it with -static \
                -no-pie -Wl,-Ttext-segment=0x40000000";
    assert_eq!(home.refusal(["lab", "--on", "interpreter", "--program", "own"]), line);
}

#[test]
fn a_refused_text_comes_with_its_command_and_messages() {
    let home = Home::new();
    home.file("wrong.s", "nop\nno such instruction\n");
    let output = run(&home, &["--program", "wrong.s"]);
    assert_eq!(output.status.code(), Some(2));
    if let Some(why) = no_assembler(&output) {
        return println!("skipped: {why}");
    }
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("wrong.s:2: Error: no such instruction"), "{said}");
    assert!(said.contains("-Ttext-segment=0x40000000 -o "), "{said}");
}

#[test]
fn nothing_of_an_assembler_outlives_a_killed_program() {
    let home = Home::new();
    let text = home.file("x.s", "nop\n");
    let fifo = home.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("mknod(2)");
    // Like cc(1) it has a child that works: the child holds the FIFO until it ends.
    let cc = home.file("cc", "#!/bin/sh\n{ echo; exec sleep 600; } > \"$FIFO\" &\nwait\n");
    std::fs::set_permissions(&cc, Permissions::from_mode(0o755)).expect("our own file");
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut lab = Command::new(program());
    lab.args(["--no-config", "lab", "--program", &text]).env("PATH", path).env("FIFO", &fifo);
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    // Opening waits for the child, whose line follows.
    let mut held = File::open(&fifo).expect("a FIFO");
    held.read_exact(&mut [0]).expect("a line");
    lab.kill().expect("our child");
    lab.wait().expect("our child");
    let long = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&held, PollFlags::IN)], Some(&long)), Ok(1), "the child is left");
    assert_eq!(held.read(&mut [0]).expect("a FIFO"), 0);
}

#[test]
fn children_are_known_to_end_where_their_signal_was_ignored() {
    let home = Home::new();
    let text = home.file("x.s", "nop\n");
    let cc = home.file("cc", "#!/bin/sh\nexit 3\n");
    std::fs::set_permissions(&cc, Permissions::from_mode(0o755)).expect("our own file");
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap_or_default());
    let line = "trap '' CHLD; exec \"$0\" --no-config lab --program \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).arg(program()).arg(&text).env("PATH", path);
    let output = shell.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.ends_with("(exit status: 3)\n"), "{said}");
}

#[test]
fn an_assembler_has_bounds() {
    let home = Home::new();
    let text = home.file("x.s", "nop\n");
    let cc = home.file("cc", "#!/bin/sh\necho \"$(ulimit -c) $(ulimit -v) $(ulimit -f)\"; exit 1\n");
    std::fs::set_permissions(&cc, Permissions::from_mode(0o755)).expect("our own file");
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap_or_default());
    let output = home.tollgate(["lab", "--program", &text]).env("PATH", path).output().expect("started");
    let said = String::from_utf8_lossy(&output.stderr);
    // KiB, and blocks of 512 bytes.
    assert!(said.contains("0 2097152 131072\n"), "{said}");
}
