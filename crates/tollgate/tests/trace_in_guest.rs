//! `tollgate trace` on other kernels: in guests, which need QEMU and a kernel with its modules, such as Debian's package
//! linux-image-cloud-amd64 unpacked into the directory that TOLLGATE_KERNELS names. Guests have one processor, and threads of
//! the kernel are preempted.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::path::Path;

use common::{Home, guest, program};
use serde_json::Value;

/// Preemption anywhere in the kernel, and a time stamp counter that counts instructions.
const ENVIRONMENT: &str = "vm:exact,append=preempt=full";

/// The output of the first process of such a guest, a program of tests/vm, after marks. `None`, with a message, if there is no
/// guest.
fn lines<const N: usize>(source: &str, marks: [&str; N], more: &[(&str, &Path)]) -> Option<[String; N]> {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        println!("skipped: {why}");
        return None;
    }
    let init = guest::compiled("cc", home.path(), source)?;
    let said = verbose(&home, ENVIRONMENT);
    let files = [&[("init", &*init)], more].concat();
    Some(guest::says(home.path(), &said, &files, marks))
}

/// Returns the messages of a run in a guest, QEMU's command among them.
fn verbose(home: &Home, environment: &str) -> String {
    let words = ["run", "entry/syscall", "--processes", "1", "--verbose", "--in", environment];
    let output = home.tollgate(words).assert().get_output().clone();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() || guest::lacks_arm64(&said), "{said}");
    said
}

fn counts(calls: &Value, name: &str) -> [u64; 3] {
    let all = calls.as_array().expect("calls");
    let of =
        |call: &Value| ["count", "errors", "unfinished"].map(|field| call[field].as_u64().expect("a number"));
    all.iter().find(|call| call["name"] == name).map(of).unwrap_or_default()
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Instructions that tracing adds to a call of the command, and to one of another process.
fn costs(trace: &Value) -> [f64; 2] {
    ["per_call_ns", "others_per_call_ns"].map(|name| trace["cost"][name].as_f64().expect("a number"))
}

/// The numbers are those of tests/vm/traced.c.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn each_call_is_counted_where_the_kernel_may_be_preempted_anywhere() {
    let Some(said) = lines("traced.c", TRACED, &[("tollgate", &program())]) else { return };
    let [all, only, files, followed] = said.map(|line| parsed(&line));
    expect_known_calls(&all, &only, &files, &followed);
    for (name, expected) in [("getppid (32-bit)", [7, 0, 0]), ("pause", [0, 0, 1])] {
        assert_eq!(counts(&all["calls"], name), expected, "{name}: {all}");
    }
    // The timed call is not the requested one, and costs the same.
    let ([traced, others], [of_only, beside]) = (costs(&all), costs(&only));
    println!(
        "{traced} instructions to a call, {others} to one of another process; with --only {of_only} and {beside}"
    );
    assert!(0.0 < others && others < traced && beside < of_only && of_only < 1.2 * traced, "{all} {only}");
    assert!(traced < 1.2 * of_only, "{all} {only}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn each_call_is_counted_on_arm64() {
    let home = Home::new();
    let kernels = std::env::var_os("TOLLGATE_KERNELS").unwrap_or_default();
    let traced = Path::new(&kernels).join("tollgate-aarch64");
    if !traced.exists() {
        return println!("skipped: no tollgate-aarch64 beside the kernels");
    }
    let Some(init) = guest::compiled("aarch64-linux-gnu-gcc", home.path(), "traced.c") else { return };
    let said = verbose(&home, "vm:exact,arch=arm64");
    if guest::lacks_arm64(&said) {
        return println!("skipped: no guest of arm64 can be started: {said}");
    }
    let files = [("init", &*init), ("tollgate", &*traced)];
    let said = guest::says(home.path(), &said, &files, TRACED);
    let [all, only, files, followed] = said.map(|line| parsed(&line));
    expect_known_calls(&all, &only, &files, &followed);
    // pause(3) waits for no file.
    assert_eq!(counts(&all["calls"], "ppoll"), [0, 0, 1], "{all}");
}

/// The marks of tests/vm/traced.c.
const TRACED: [&str; 4] = ["traced: ", "only: ", "files: ", "followed: "];

/// Checks the numbers of tests/vm/traced.c that all architectures have.
fn expect_known_calls(all: &Value, only: &Value, files: &Value, followed: &Value) {
    assert_eq!((&all["backend"], &all["ended"]["exit"]), (&"bpf".into(), &0.into()), "{all}");
    assert_eq!((&all["processes"], &all["threads"]), (&8.into(), &12.into()), "{all}");
    for (name, expected) in [
        ("getppid", [304_000, 0, 0]),
        ("call 1000", [5, 5, 0]),
        // -1 is the largest number.
        ("call 1023 and above", [4, 4, 0]),
        ("execve", [4, 0, 0]),
        ("exit", [0, 0, 4]),
        ("exit_group", [0, 0, 7]),
    ] {
        assert_eq!(counts(&all["calls"], name), expected, "{name}: {all}");
    }
    for trace in [all, only] {
        assert_eq!(trace["missed"], Value::Array(Vec::new()), "{trace}");
    }
    let names: Vec<_> =
        only["calls"].as_array().expect("calls").iter().filter_map(|call| call["name"].as_str()).collect();
    assert_eq!((names, counts(&only["calls"], "execve")), (vec!["execve"], [4, 0, 0]), "{only}");
    // Before Linux 6.16 a program that reads an empty string gets 0, not 1.
    let own = files["files"].as_array().and_then(|files| files.iter().find(|file| file["path"] == "/init"));
    let mut operations = own.and_then(|file| file["operations"].as_array()).into_iter().flatten();
    let stat = operations.find(|operation| operation["operation"] == "stat");
    let stat = stat.unwrap_or_else(|| panic!("no fstat(2) of /init: {files}"));
    assert_eq!((&stat["count"], &stat["errors"]), (&6.into(), &0.into()), "{files}");
    let by_ptrace = (&followed["backend"], counts(&followed["calls"], "newfstatat"));
    assert_eq!(by_ptrace, (&"ptrace".into(), [6, 0, 0]), "{followed}");
}

/// The limits on functions that crates/tollgate-trace/src/bpf/programs.rs states. If this test fails the kernel has improved,
/// and they should be reviewed.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn functions_of_the_kernel_are_no_place_for_programs() {
    let Some([line]) = lines("points.c", ["points: "], &[]) else { return };
    println!("{line}");
    let figure = |name: &str| -> i64 {
        let words = line.split_whitespace().filter_map(|word| word.split_once('='));
        let found = words.filter(|(word, _)| *word == name).find_map(|(_, figure)| figure.parse().ok());
        found.unwrap_or_else(|| panic!("no {name}: {line}"))
    };
    assert!(figure("alone") < figure("tracepoints"), "{line}");
    assert!(
        figure("tracepoints") < figure("functions"),
        "a traced call takes no longer by functions: {line}"
    );
    assert_eq!(figure("missed"), 0, "{line}");
    assert!(figure("missed-functions") > 0, "functions miss no call: {line}");
    assert!(figure("left") != 0, "nothing is left of a function that a process did not leave: {line}");
}
