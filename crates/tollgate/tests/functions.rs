//! `tollgate explain BENCHMARK --in vm:exact`: the functions of a guest's kernel. It needs QEMU and a kernel with its modules, such as
//! Debian's package linux-image-cloud-amd64 unpacked into the directory that TOLLGATE_KERNELS names.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::process::Command;

use common::Home;
use common::text::refusals;

/// The functions of a table, each with its instructions.
fn rows(text: &str) -> Vec<(String, f64)> {
    let row = |line: &str| {
        let words: Vec<&str> = line.strip_suffix(" %")?.split_whitespace().collect();
        let (name, [instructions, _]) = words.split_last_chunk()?;
        Some((name.join(" "), instructions.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_functions_of_an_operation_add_up_to_its_count() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    for words in [
        &["explain", "entry/syscall", "--in", "vm:exact"][..],
        &["run", "--explain", "entry/int80", "--in", "vm:exact"],
        // Its instruction faults and is executed again.
        &["explain", "traps/minor-fault", "--in", "vm:exact"],
    ] {
        let text = home.output(words.iter().copied());
        let mut rows = rows(&text);
        let (last, sum) = rows.pop().expect("rows");
        let of_rows: f64 = rows.iter().map(|(_, instructions)| instructions).sum();
        // Means are rounded to two decimals.
        assert!(last == "sum" && (of_rows - sum).abs() < 0.01 * rows.len() as f64, "{text}");
        assert!(rows.len() > 5 && rows[0].0 == "user space" && rows[0].1 < 10.0, "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_sum = ["The sum is what a run counts", "not the same in each batch"];
        // A batch has more faults than are watched: pages that the kernel takes in advance for many of them are in its mean alone.
        let counted =
            flat.split_once("A run counts ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        let is_near =
            |counted: f64| sum <= counted && counted < 1.005 * sum && flat.contains("is not the sum");
        let has_sum = is_sum.iter().any(|sentence| flat.contains(sentence));
        assert!(has_sum || words.contains(&"traps/minor-fault") && counted.is_some_and(is_near), "{text}");
        let first = rows[1].0.as_str();
        assert!(first.contains("entry") || first.contains("asm_"), "the kernel is entered first: {text}");
    }
    assert!(home.files().is_empty(), "an explanation is kept: {:?}", home.files());
}

/// Two builds of a program; one has a loop of 200 more iterations, each of six instructions.
const PROGRAM: &str = "
    __attribute__((noinline)) static unsigned longer(unsigned n) { unsigned s = 0; for (unsigned i = 0; i < n; i++) s += i ^ s; return s; }
    __attribute__((noinline)) static unsigned equal(unsigned n) { unsigned s = 7; for (unsigned i = 0; i < n; i++) s ^= i + s; return s; }
    int main(void) { volatile unsigned sum = longer(1000 + MORE) + equal(1000); return sum - sum; }";

#[test]
#[ignore = "slow: .ci/run runs it"]
fn two_builds_differ_by_a_function_of_the_program() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let source = home.path().join("program.c");
    std::fs::write(&source, PROGRAM).expect("written");
    let build = |name: &str, more: &str| {
        let program = home.path().join(name);
        let built = Command::new("cc").args(["-O1", more, "-o"]).arg(&program).arg(&source).output();
        let is_built = built.is_ok_and(|built| built.status.success());
        is_built.then(|| program.display().to_string())
    };
    let (Some(old), Some(new)) = (build("old", "-DMORE=0"), build("new", "-DMORE=200")) else {
        return println!("skipped: there is no C compiler");
    };
    let words = [
        "versus",
        "--in",
        "vm:exact",
        "-N",
        "--by",
        "function",
        "--runs",
        "1",
        "--format",
        "json",
        "--stacks",
        "graphs.svg",
    ];
    let document = home.json([&words[..], &[&old, &new]].concat());
    let graphs = std::fs::read_to_string(home.path().join("graphs.svg")).expect("a picture");
    let [one, other] =
        [("A", &old), ("B", &new)].map(|(letter, of)| format!(">{letter}  {of} in vm:exact</text>"));
    assert!(graphs.starts_with("<svg ") && graphs.contains(&one) && graphs.contains(&other), "{graphs}");
    let instructions = |command: usize, function: &str| {
        let functions = document["commands"][command]["functions"].as_array().expect("functions");
        let of = functions.iter().find(|one| one["file"] == "program" && one["function"] == function);
        of.unwrap_or_else(|| panic!("no {function} among {} functions", functions.len()))["instructions"]
            .as_u64()
            .expect("a count")
    };
    // The compiler may make a loop of five instructions or of six.
    let more = instructions(1, "longer") - instructions(0, "longer");
    assert!(more % 200 == 0 && (600..=1600).contains(&more), "{more}");
    assert_eq!(instructions(0, "equal"), instructions(1, "equal"));
    // In the second graph the program's own instructions are as many more.
    assert!(graphs.replace(',', "").contains(&format!("(+{more}) of its own</title>")), "{more}: {graphs}");
    let counts =
        |command: usize| document["commands"][command]["counted"]["user_instructions"]["median"].as_f64();
    assert_eq!(counts(1).zip(counts(0)).map(|(new, old)| new - old), Some(more as f64), "{document}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_functions_of_several_programs_sum_to_the_counted_instructions() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let words = ["versus", "--in", "vm:exact", "--by", "function", "--runs", "1", "--format", "json"];
    let document = home.json([&words[..], &["ls / | wc -l; cat /etc/hostname"]].concat());
    let command = &document["commands"][0];
    let functions = command["functions"].as_array().expect("functions");
    for file in ["ls", "wc", "cat", "libc.so.6"] {
        assert!(functions.iter().any(|function| function["file"] == file), "{file}: {functions:?}");
    }
    let sum: u64 = functions
        .iter()
        .flat_map(|function| {
            ["instructions", "rep_iterations"].map(|of| function[of].as_u64().unwrap_or_default())
        })
        .sum();
    // The marks around it are some instructions before and after the readings of the counter.
    let total = command["counted"]["instructions"]["median"].as_f64().expect("a total") as u64;
    assert!(sum >= total && sum - total < 100, "{sum} {total}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn interrupts_and_the_idle_processor_are_apart_from_a_command_that_sleeps() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let words = ["versus", "--in", "vm:exact", "-N", "--by", "function", "--runs", "1", "--no-trace"];
    let document = home.json([&words[..], &["--format", "json", "sleep 0.02"]].concat());
    let functions = document["commands"][0]["functions"].as_array().expect("functions");
    let has = |file: Option<&str>, name: &str| {
        functions.iter().any(|one| one["file"].as_str() == file && one["function"] == name)
    };
    for (group, name) in [("[other threads]", "do_idle"), ("[interrupts]", "handle_irq_event")] {
        assert!(has(Some(group), name) && !has(None, name), "{name}: {functions:?}");
    }
    // It slept by a call of its own.
    assert!(has(None, "do_nanosleep") && !has(Some("[interrupts]"), "do_nanosleep"), "{functions:?}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_stacks_of_a_command_are_its_calls_and_sum_to_its_instructions() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let file = home.path().join("stacks");
    let file = file.to_str().expect("letters");
    let words = [
        "versus", "--in", "vm:exact", "-N", "--by", "function", "--runs", "1", "--format", "json",
        "--stacks", file,
    ];
    let document = home.json([&words[..], &["cat /etc/hostname"]].concat());
    let text = std::fs::read_to_string(file).expect("stacks");
    let stacks = text.lines().map(|line| {
        let (frames, instructions) = line.rsplit_once(' ').expect("a number");
        (frames.split(';').collect::<Vec<&str>>(), instructions.parse::<u64>().expect("a number"))
    });
    let stacks: Vec<_> = stacks.collect();
    assert!(
        stacks.iter().all(|(frames, _)| frames[..2] == ["cat /etc/hostname in vm:exact", "user space"]),
        "{text}"
    );
    // Each call of the program is below the kernel's entry, and the file is opened and read.
    let has =
        |wanted: &[&str]| stacks.iter().any(|(frames, _)| wanted.iter().all(|frame| frames.contains(frame)));
    assert!(has(&["entry_SYSCALL_64", "do_syscall_64", "vfs_read"]), "{text}");
    assert!(
        has(&["do_syscall_64", "do_sys_openat2"]) && has(&["asm_exc_page_fault", "handle_mm_fault"]),
        "{text}"
    );
    // The process that becomes the command is another one here, with more memory to unmap.
    let functions = document["commands"][0]["functions"].as_array().expect("functions");
    let counted: f64 = functions.iter().filter_map(|function| function["instructions"].as_f64()).sum();
    let summed: u64 = stacks.iter().map(|(_, instructions)| instructions).sum();
    assert!((summed as f64 / counted - 1.0).abs() < 0.3, "{summed} {counted}");
}

#[test]
fn only_a_guest_that_counts_divides_instructions_and_only_those_of_a_loop() {
    let home = Home::new();
    let lines = [
        "explain entry/syscall --in host",
        "explain entry/syscall --in nothing",
        "explain entry --in vm:exact",
        "versus --stacks file true",
        "versus --bench old new --in vm:exact --stacks file",
        "explain entry/syscall --in vm:exact --stacks file",
        "run --explain entry/syscall --in vm:exact --in host",
    ];
    insta::assert_snapshot!("not-divided", refusals(&home, lines));
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let of_operations = home.refusal(["explain", "processes/fork", "--in", "vm:exact"]);
    assert_eq!(
        of_operations,
        "vm:exact: processes/fork: it is not a loop of instructions but whole operations, which are not separated"
    );
}
