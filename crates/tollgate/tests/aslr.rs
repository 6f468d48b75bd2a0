//! `tollgate inspect aslr`: real programs, programs made byte by byte, and environments where tracing is refused.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common;
use common::text::{part, refusals, screen, words};
use common::{Home, one_line, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The promised distance from the true number of bits.
const CLOSE: f64 = 0.3;

fn region<'a>(document: &'a Value, name: &str) -> &'a Value {
    let regions = document["regions"].as_array().expect("a list");
    regions.iter().find(|region| region["name"] == name).expect(name)
}

/// `None` if tracing is not permitted.
fn traced(home: &Home, program: &str, runs: &str) -> Option<Value> {
    let output = home
        .tollgate(["inspect", "aslr", program, "--runs", runs, "--format", "json"])
        .output()
        .expect("run");
    if output.status.success() {
        return Some(serde_json::from_slice(&output.stdout).expect("JSON"));
    }
    let why = one_line(&output.stderr);
    assert!(why.contains("cannot be read"), "{why}");
    println!("skipped: {why}");
    None
}

/// An ELF file of UD2 instructions only: if one of them ran, the program would die before anything is observed.
fn program(is_32_bit: bool, kind: u16, is_pie: bool) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    let (header, entry_size, at) = if is_32_bit { (52u64, 32u64, 0x1000) } else { (64, 56, 0x1000) };
    let base = if kind == 2 { BASE } else { 0 };
    let mut bytes = vec![0x7f, b'E', b'L', b'F', if is_32_bit { 1 } else { 2 }, 1, 1];
    bytes.resize(16, 0);
    let word = |bytes: &mut Vec<u8>, value: u64| {
        if is_32_bit { bytes.extend((value as u32).to_le_bytes()) } else { bytes.extend(value.to_le_bytes()) }
    };
    bytes.extend(kind.to_le_bytes());
    bytes.extend(if is_32_bit { 3u16 } else { 62 }.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    word(&mut bytes, base + at);
    word(&mut bytes, header);
    word(&mut bytes, 0);
    bytes.extend(0u32.to_le_bytes());
    for half in [header as u16, entry_size as u16, 2, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // One segment with the whole file, and its dynamic section.
    for (segment, offset, size) in [(1u32, 0, 0x2000u64), (2, 0x800, 0x20)] {
        bytes.extend(segment.to_le_bytes());
        if !is_32_bit {
            bytes.extend(7u32.to_le_bytes());
        }
        for value in [offset, base + offset, base + offset, size, size] {
            word(&mut bytes, value);
        }
        if is_32_bit {
            bytes.extend(7u32.to_le_bytes());
        }
        word(&mut bytes, 0x1000);
    }
    bytes.resize(0x800, 0);
    for value in [0x6fff_fffb, if is_pie { 0x0800_0000 } else { 0 }, 0, 0] {
        word(&mut bytes, value);
    }
    bytes.resize(at as usize, 0);
    bytes.extend([0x0f, 0x0b].repeat(0x800));
    bytes
}

fn executable(home: &Home, name: &str, content: &[u8]) -> String {
    let path = home.file(name, content);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    path
}

/// Checks that every observed region has as many bits as allowed, or a reason.
fn expect_what_is_allowed(document: &Value) {
    for region in document["regions"].as_array().expect("a list") {
        let (Some(bits), Some(allowed)) = (region["bits"].as_f64(), region["allowed"].as_f64()) else {
            continue;
        };
        let explained = region["differs"].is_string();
        assert!(explained || (bits - allowed).abs() < CLOSE, "{region}");
    }
}

#[test]
fn a_program_moves_by_what_is_allowed() {
    let home = Home::new();
    let document = home.json(["inspect", "aslr", "--format", "json"]);
    assert_eq!(document["starts"], 1000);
    expect_what_is_allowed(&document);
    let text = screen(&home, ["inspect", "aslr", "--runs", "100"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let has = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    assert!(has("region ") && has("allowed by kernel.randomize_va_space "), "{text}");
    assert!(home.files().is_empty());
}

#[test]
fn without_randomization_it_says_so_and_why() {
    const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x004_0000;
    let home = Home::new();
    let run = |arguments: &[&str]| -> Output {
        let mut command = Command::new(common::program());
        command.args(["inspect", "aslr"]).args(arguments);
        // SAFETY: personality(2) is a system call and changes only the child, as setarch -R does.
        unsafe {
            command.pre_exec(|| match libc::personality(ADDR_NO_RANDOMIZE) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            })
        };
        command.output().expect("run")
    };
    let output = run(&["--runs", "200"]);
    if !output.status.success() {
        println!("skipped: {}", one_line(&output.stderr));
        return;
    }
    let text = String::from_utf8(output.stdout).expect("text");
    // A kernel that only emulates Linux may accept the value and do nothing.
    if home.json(["inspect", "kernel", "--format", "json"])["sandbox"].is_string() {
        println!("skipped: this kernel need not obey");
        return;
    }
    let document: Value =
        serde_json::from_slice(&run(&["--runs", "50", "--format", "json"]).stdout).expect("JSON");
    assert_eq!(document["randomised"], false);
    let why = "personality(2) has ADDR_NO_RANDOMIZE, as under setarch -R or a debugger";
    assert_eq!(document["switched_off_by"], why);
    let program = document["program"].as_str().expect("a path");
    let said =
        format!("not randomised: everything in {program} was at the same address in 200 starts; {why} ");
    assert!(words(&text).starts_with(&said), "{text}");
    for region in document["regions"].as_array().expect("a list") {
        assert!(region["absent"].is_string() || region["bits"] == 0.0, "{region}");
    }
}

#[test]
fn a_program_at_a_fixed_address_has_only_its_code_there() {
    let home = Home::new();
    let path = executable(&home, "fixed", &program(false, 2, false));
    let Some(document) = traced(&home, &path, "300") else { return };
    assert_eq!(document["elf"]["kind"], "fixed");
    let code = region(&document, "code");
    assert_eq!((code["bits"].as_f64(), code["lowest"].as_str()), (Some(0.0), Some("0x401000")));
    assert_eq!(region(&document, "loader")["absent"], "it has no dynamic loader");
    expect_what_is_allowed(&document);
}

#[test]
fn a_static_program_that_is_position_independent_moves() {
    let home = Home::new();
    let path = executable(&home, "static-pie", &program(false, 3, true));
    let Some(document) = traced(&home, &path, "300") else { return };
    assert_eq!(document["elf"]["kind"], "static_pie");
    expect_what_is_allowed(&document);
    let text = screen(&home, ["inspect", "aslr", &path, "--runs", "20"]);
    assert_eq!(
        words(part(&text, "static position", "\n\n")),
        "static position-independent program (static PIE), 64-bit; no loader; no RELRO; does not say whether its stack \
         may be executed; 20 starts."
    );
}

#[test]
fn a_32_bit_program_has_fewer_bits() {
    let home = Home::new();
    let path = executable(&home, "small", &program(true, 2, false));
    let Some(document) = traced(&home, &path, "400") else { return };
    assert_eq!(document["elf"]["bits"], 32);
    expect_what_is_allowed(&document);
    let mapping = region(&document, "mapping");
    assert!(mapping["bits"].as_f64().is_none_or(|bits| bits <= 17.0), "{mapping}");
}

#[test]
fn few_starts_are_inconclusive_and_say_so() {
    let home = Home::new();
    for (runs, said) in [("1", "inconclusive"), ("2", "too few"), ("5", "too few")] {
        let text = home.output(["inspect", "aslr", "--runs", runs]);
        assert!(words(&text).contains(said), "{runs}: {text}");
        assert!(!words(&text).contains("bits fewer"), "{runs}: {text}");
    }
}

#[test]
fn what_is_no_program_is_refused_in_one_line() {
    let home = Home::new();
    executable(&home, "script", b"#!/bin/sh -e\nexit 0\n");
    executable(&home, "text", b"hello\n");
    let mut aarch64 = program(false, 3, true);
    aarch64[18] = 183;
    executable(&home, "aarch64", &aarch64);
    let mut lying = program(false, 3, true);
    lying[32..40].copy_from_slice(&[0xff; 8]);
    executable(&home, "lying", &lying);
    let lines = [
        "inspect aslr /no/such/file",
        "inspect aslr no-such-program-anywhere",
        "inspect aslr /",
        "inspect aslr /dev/null",
        "inspect aslr ./script",
        "inspect aslr ./text",
        "inspect aslr ./aarch64",
        "inspect aslr ./lying",
        "inspect aslr --runs 0",
        "inspect aslr --runs -1",
        "inspect aslr --runs 100001",
        "inspect aslr --runs many",
    ];
    insta::assert_snapshot!("no-programs", refusals(&home, lines));
    // The entry point is nowhere: nothing can be learned from it, but it must not hang or panic.
    let mut nowhere = program(false, 2, false);
    nowhere[24..32].copy_from_slice(&0xdead_0000u64.to_le_bytes());
    let refused = |program: &str| home.refusal(["inspect", "aslr", program, "--runs", "3"]);
    assert!(refused(&executable(&home, "nowhere", &nowhere)).contains("\" cannot be read: "));
    let plain = home.file("plain", program(false, 3, true));
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).expect("not executable");
    assert!(refused(&plain).ends_with("Permission denied"));
}

/// Starts the program under a seccomp filter that refuses ptrace(2).
fn without_ptrace(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new(common::program());
    command.args(["inspect", "aslr", "--format", "json"]).args(arguments);
    let load = |offset| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: offset };
    let code = [
        load(0),
        libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_ptrace as u32 },
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::EPERM as u32 },
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    // SAFETY: system calls on memory that the closure owns; they change only the child.
    unsafe {
        command.pre_exec(move || {
            let filter = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
            let done = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0;
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
    command.output().inspect_err(|error| println!("skipped: no filter may be set here: {error}")).ok()
}

#[test]
fn where_tracing_is_refused_it_says_so() {
    let home = Home::new();
    let path = executable(&home, "fixed", &program(false, 2, false));
    let Some(output) = without_ptrace(&[&path]) else { return };
    assert_eq!(output.status.code(), Some(2));
    let refused = "tracing is refused here: ptrace(2): Operation not permitted";
    assert_eq!(one_line(&output.stderr), format!("\"{path}\" cannot be read: {refused}"));
}

#[test]
fn stopped_it_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let home = Home::new();
        let path = executable(&home, "left-behind", &program(false, 2, false));
        if traced(&home, &path, "2").is_none() {
            return;
        }
        let mut command = Command::new(common::program());
        command.args(["inspect", "aslr", &path, "--runs", "100000"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run: Child = command.spawn().expect("started");
        std::thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&run), signal).expect("our own child");
        assert_eq!(run.wait().expect("waited").signal(), Some(signal.as_raw()));
        wait_for("the end of all processes", || (!runs(&path)).then_some(()));
    }
}

/// Whether a process executes this file; a zombie does not.
fn runs(path: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    processes.into_iter().any(|process| {
        std::fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe.to_str() == Some(path))
    })
}
