//! The output of the verbs: text, JSON, and terminals of every width.

use crate::common;
use common::{Home, document, measured};
use serde_json::Value;

const MEASUREMENT: [&str; 33] = [
    "exact",
    "counters",
    "events",
    "traced",
    "p99",
    "max",
    "bytes_per_op",
    "bytes_per_second",
    "counted",
    "benchmark",
    "params",
    "status",
    "unit",
    "median",
    "median_cycles",
    "ci_low",
    "ci_high",
    "min",
    "samples",
    "discarded",
    "detection_limit",
    "multiple_of_syscall",
    "modes",
    "processes",
    "spread",
    "baseline",
    "noisy",
    "why",
    "error",
    "notes",
    "provenance",
    "ops_per_sample",
    "group",
];
const ROW: [&str; 33] = [
    "cpu_base",
    "cpu_other",
    "cpu_ratio",
    "cpu_ratio_high",
    "cpu_ratio_low",
    "cpu_verdict",
    "cpu_why",
    "base_run",
    "base_name",
    "other_run",
    "other_name",
    "benchmark",
    "params",
    "unit",
    "base",
    "other",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "threshold",
    "why",
    "causes",
    "more_time",
    "adds",
    "adds_low",
    "adds_high",
    "correlation",
    "pairs",
    "turns",
    "total_ratio",
    "total_low",
    "total_high",
];

fn kept() -> Home {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", Some("native"), 1.0));
    home.keep(&document("20261121-015428-0002", Some("vm"), 1.5));
    home
}

fn steady() -> Home {
    let home = kept();
    home.keep_others_like(&document("20261121-015427-0001", Some("native"), 1.0));
    home
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn sorted(names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn measurement<'a>(document: &'a Value, benchmark: &str) -> &'a Value {
    let all = document["measurements"].as_array().expect("measurements");
    all.iter()
        .find(|measurement| measurement["benchmark"] == benchmark)
        .expect("a measurement of the benchmark")
}

#[test]
fn a_run_measures_keeps_and_can_be_shown_again() {
    let home = Home::new();
    let patterns = ["entry/call", "entry/user-dispatch"];
    let ran = home.json(["run", patterns[0], patterns[1], "--processes=8", "--label=mine", "--format=json"]);
    let names: Vec<&Value> =
        ran["measurements"].as_array().expect("rows").iter().map(|row| &row["benchmark"]).collect();
    assert_eq!(names, ["entry/call", "entry/syscall", "entry/user-dispatch"]);
    for measurement in
        ran["measurements"].as_array().expect("rows").iter().chain(ran["bench"].as_array().expect("own"))
    {
        assert_eq!(keys(measurement), sorted(&MEASUREMENT));
    }
    let syscall = measurement(&ran, "entry/syscall");
    let figure = |name: &str| syscall[name].as_f64().unwrap_or_else(|| panic!("{name} of {syscall}"));
    assert!(figure("ci_low") <= figure("median") && figure("median") <= figure("ci_high"));
    assert!(figure("min") > 0.0 && figure("min") <= figure("median"));
    assert!(figure("samples") >= 8.0 && figure("ops_per_sample") >= 1.0);
    assert_eq!(syscall["multiple_of_syscall"], 1.0);
    assert_eq!(syscall["unit"], "ns");
    assert_eq!(ran["label"], "mine");
    assert_eq!(home.files(), [format!("tollgate/runs/{}.json", ran["id"].as_str().expect("an id"))]);
    assert_eq!(ran["kept"], home.path().join(&home.files()[0]).display().to_string());

    let mut shown = home.json(["show", "mine", "--format=json"]);
    shown["kept"] = ran["kept"].clone();
    assert_eq!(shown, ran);
    let verdicts = home.json(["compare", "mine", "last", "--format=json"]);
    for row in verdicts["rows"].as_array().expect("rows") {
        assert!(["same", "inconclusive"].contains(&row["verdict"].as_str().expect("a verdict")), "{row}");
    }
}

#[test]
fn out_writes_the_document_and_keeps_nothing_else() {
    let home = Home::new();
    let file = home.file("mine.json", "an older one");
    let arguments = ["run", "entry/call", "--processes=1", "--out", &file, "--quiet"];
    let output = home.tollgate(arguments).assert().success();
    assert!(!String::from_utf8_lossy(&output.get_output().stdout).is_empty());
    assert_eq!(home.files(), ["mine.json"]);
    let document: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("JSON");
    let names =
        ["schema", "tool", "id", "label", "environment", "started", "finished", "facts", "measurements"];
    assert_eq!(keys(&document), sorted(&names));
    assert_eq!(home.json(["show", &file, "--format=json"])["id"], document["id"]);
}

#[test]
fn every_measurement_has_the_same_fields() {
    let shown = kept().json(["show", "native", "--format=json"]);
    for measurement in shown["measurements"].as_array().expect("rows") {
        assert_eq!(keys(measurement), sorted(&MEASUREMENT));
    }
    let (skipped, failed) = (measurement(&shown, "entry/int80"), measurement(&shown, "entry/seccomp"));
    assert_eq!((&skipped["status"], &skipped["why"]), (&"skipped".into(), &"no IA-32 emulation".into()));
    assert_eq!((&failed["status"], &failed["error"]), (&"failed".into(), &"it hung".into()));
    assert_eq!(skipped["median"], Value::Null);
    let syscall = measurement(&shown, "entry/syscall");
    assert_eq!((syscall["samples"].as_u64(), syscall["discarded"].as_u64()), (Some(480), Some(8)));
    let (median, cycles) = (syscall["median"].as_f64().expect("a figure"), &syscall["median_cycles"]);
    assert!((median / 80.2 - 1.0).abs() < 0.01, "{median}");
    assert!(
        (cycles.as_f64().expect("a figure") / median - 2.0).abs() < 1e-9,
        "2 GHz: two cycles a nanosecond"
    );
    let baseline = &measurement(&shown, "entry/user-dispatch")["baseline"];
    assert_eq!(baseline["benchmark"], "entry/syscall");
    assert_eq!(baseline["verdict"], "slower");
    assert!((baseline["ratio"].as_f64().expect("a figure") - 1.25).abs() < 0.01, "{baseline}");
}

#[test]
fn without_the_tsc_there_are_no_cycles() {
    let home = Home::new();
    let mut document = document("20261121-015427-0001", None, 1.0);
    document["facts"]["run.clock"]["value"] = "CLOCK_MONOTONIC_RAW".into();
    home.keep(&document);
    let shown = home.json(["show", "last", "--format=json"]);
    assert_eq!(measurement(&shown, "entry/syscall")["median_cycles"], Value::Null);
}

#[test]
fn a_table_has_a_row_for_every_case_and_a_reason_for_every_gap() {
    insta::assert_snapshot!("notes", kept().output(["show", "native", "--all"]));
}

/// The tables of three runs and of a comparison as snapshots, so that a change of their words shows in review.
#[test]
fn the_tables_are_as_reviewed() {
    let home = kept();
    let text = |arguments: &[&str]| {
        let mut command = home.tollgate(arguments.iter().copied());
        let output = command.env("COLUMNS", "100").assert().success().get_output().stdout.clone();
        String::from_utf8(output).expect("text")
    };
    insta::assert_snapshot!("entry", text(&["show", "native", "--all"]));
    home.keep_others_like(&document("20261121-015427-0001", Some("native"), 1.0));
    insta::assert_snapshot!("compare", text(&["compare", "native", "vm"]));
    home.keep(&processes());
    insta::assert_snapshot!("processes", text(&["show", "20261121-015427-0001", "--all"]));
    home.keep(&memory_and_files());
    insta::assert_snapshot!("memory-and-files", text(&["show", "storage", "--all"]));
}

#[test]
fn a_noisy_row_is_marked_with_the_reason() {
    let home = Home::new();
    let mut document = document("20261121-015427-0001", None, 1.0);
    let syscall = &mut document["measurements"][1];
    syscall["processes"] = serde_json::json!(vec![
        serde_json::json!({"rounds": 70, "discarded": (60..70).collect::<Vec<_>>()});
        8
    ]);
    syscall["discarded"] = 80.into();
    home.keep(&document);
    let table = home.output(["show", "last", "--all", "--width=120"]);
    let marked: Vec<&str> = table.lines().filter(|line| line.starts_with('~')).collect();
    assert_eq!(
        marked,
        [
            "~ entry/syscall                   80.2 ns  80.2–80.3  80.0 ns      ×1.00  noisy: 14 % of samples discarded (preempted)"
        ]
    );
    assert_eq!(measurement(&home.json(["show", "last", "--format=json"]), "entry/syscall")["noisy"], true);
}

/// A run with the rows of suites whose cases have several parameters.
fn processes() -> Value {
    let mut document = document("20261121-015427-0001", None, 1.0);
    let rows = document["measurements"].as_array_mut().expect("rows");
    let mut add = |benchmark: &str, params: Value, at: f64| {
        let mut row = measured(benchmark, at, &[]);
        row["params"] = params;
        row["group"] = "processes".into();
        rows.push(row);
    };
    let small = |mib: u64| match mib {
        0 => serde_json::json!({"dirty_mib": 0, "until": "exited"}),
        mib => serde_json::json!({"dirty_mib": mib, "page": "4k", "until": "exited"}),
    };
    for (mib, fork, fork_exec) in [(0, 100e3, 200e3), (64, 12e6, 12.1e6), (256, 48e6, 48.1e6)] {
        add("processes/fork", small(mib), fork);
        let mut image = small(mib);
        image["image"] = "bare".into();
        add("processes/fork-exec", image.clone(), fork_exec);
        add("processes/posix-spawn", image, 300e3);
    }
    add("processes/fork", serde_json::json!({"mapped_mib": 256, "until": "exited"}), 100e3);
    add("traps/imul", serde_json::json!({}), 0.4);
    add("traps/invalid-opcode", serde_json::json!({}), 800.0);
    let counted = serde_json::json!({"what": "signals", "events": 480_000, "operations": 480_000});
    let trap = rows.last_mut().expect("the trap");
    trap["counted"] = counted;
    document
}

#[test]
fn findings_are_sentences_of_several_rows() {
    let home = Home::new();
    home.keep(&processes());
    let shown = home.json(["show", "last", "--format=json"]);
    let said = sentences(&shown);
    let expected = [
        "An invalid opcode that a signal handler emulates is 2000 × slower than a multiplication.",
        "fork takes 188 µs more for each MiB that its caller has written in small pages; memory that is only mapped \
         adds no significant difference.",
        "To start a bare program, posix_spawn is faster than fork and exec here from less than 1 MiB of written memory on; with \
         256 MiB it is 160 × faster.",
    ];
    assert_eq!(said, expected);
    assert_eq!(shown["findings"][0]["from"], serde_json::json!(["traps/invalid-opcode", "traps/imul"]));
    let table = home.output(["show", "last", "--all"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.windows(3).any(|lines| lines == expected), "{table}");
    let trap = lines.iter().find(|line| line.starts_with("traps/invalid-opcode")).expect("a row");
    assert!(trap.ends_with("; signals counted: 1 per operation"), "{trap}");
    // Without the rows there are no findings.
    assert_eq!(kept().json(["show", "native", "--format=json"])["findings"], serde_json::json!([]));
}

fn sentences(shown: &Value) -> Vec<&str> {
    let findings = shown["findings"].as_array().expect("findings").iter();
    findings.map(|one| one["sentence"].as_str().expect("a sentence")).collect()
}

#[test]
fn counts_of_emulated_opcodes_are_compared_by_ring() {
    let mut document = document("20261121-015440-0009", Some("counted"), 1.0);
    let rows = document["measurements"].as_array_mut().expect("rows");
    rows.clear();
    let ud1 = |by: &str| serde_json::json!({"by": by, "opcode": "ud1"});
    for (benchmark, params, count) in [
        ("traps/imul", serde_json::json!({}), 3.0),
        ("traps/invalid-opcode", serde_json::json!({"opcode": "ud1"}), 2942.0),
        ("traps/invalid-opcode", ud1("module-ring3"), 596.0),
        ("traps/invalid-opcode", ud1("module-ring0"), 444.0),
    ] {
        let mut row = measured(benchmark, count, &[]);
        row["params"] = params;
        row["unit"] = "instructions".into();
        row["provenance"] = "qemu-icount".into();
        row["samples"] = vec![count; 20].into();
        row["processes"] = serde_json::json!([{"rounds": 20, "discarded": []}]);
        row["discarded"] = 0.into();
        rows.push(row);
    }
    let home = Home::new();
    home.keep(&document);
    let shown = home.json(["show", "last", "--format=json"]);
    assert_eq!(
        sentences(&shown),
        [
            "An invalid opcode takes 2,942 instructions where a signal handler emulates it, 596 where a kernel module does, and \
             a multiplication 3, each with its operands loaded.",
            "Emulated by a kernel module, a trap taken in ring 0 still executes 444 of the 596 instructions of one taken in \
             ring 3 (74 %): both save and restore all registers, call the notifiers, and read and emulate the opcode. Ring 0 avoids the change of stack and the checks around user memory and the return to it, 152 instructions; delivery through the gate and IRET, one step of the processor each, remain.",
        ]
    );
}

fn memory_and_files() -> Value {
    let mut document = document("20261121-015440-0008", Some("storage"), 1.0);
    let fact = |value: Value| serde_json::json!({"status": "known", "value": value, "source": "a test"});
    let facts = document["facts"].as_object_mut().expect("facts");
    facts.insert("cache.l1d".into(), fact((48 << 10).into()));
    facts.insert("cache.l2".into(), fact((1280 << 10).into()));
    facts.insert("files.fs".into(), fact("ext4".into()));
    facts.insert("files.device".into(), fact("loop0".into()));
    facts.insert("ram.device".into(), fact("loop over tmpfs, direct I/O".into()));
    facts.insert("ram.taken.before".into(), fact((4 << 20).into()));
    facts.insert("ram.taken.after".into(), fact((6 << 20).into()));
    let rows = document["measurements"].as_array_mut().expect("rows");
    rows.clear();
    let mut add = |benchmark: &str, params: Value, more: Value, at: f64| {
        let mut row = measured(benchmark, at, &[]);
        row["params"] = params;
        row["group"] = benchmark.split('/').next().into();
        let fields = more.as_object().expect("fields").clone();
        row.as_object_mut().expect("fields").extend(fields);
        rows.push(row);
    };
    for (kib, ns) in [(4, 1.4), (32, 1.4), (64, 4.2), (1024, 4.2), (2048, 20.0)] {
        add("memory/latency", serde_json::json!({"kib": kib, "page": "2m"}), serde_json::json!({}), ns);
    }
    for (shared, ns, taken) in [(false, 0.9, 0), (true, 18.0, 450)] {
        let case =
            serde_json::json!({"kib": 8, "shared": shared, "pair": "llc", "order": "random", "page": "2m"});
        let counted = serde_json::json!({"what": "lines looked at came from the other processor", "events": taken,
            "operations": 500, "is_share": true});
        add("memory/thrash", case, serde_json::json!({"unit": "ns/line", "counted": counted}), ns);
    }
    for (to, ns) in [(1, 25.0), (2, 130.0)] {
        add(
            "memory/pingpong",
            serde_json::json!({"from": 0, "to": to, "protocol": "cas"}),
            serde_json::json!({}),
            ns,
        );
    }
    let single = |bytes: Option<u64>| match bytes {
        Some(bytes) => serde_json::json!({"ops_per_sample": 1, "bytes_per_op": bytes}),
        None => serde_json::json!({"ops_per_sample": 1}),
    };
    add("files/read", serde_json::json!({"state": "cached", "block": "4k"}), single(Some(4096)), 500.0);
    add("files/read", serde_json::json!({"state": "uncached", "block": "4k"}), single(Some(4096)), 50_000.0);
    for (call, ns) in [("create", 20_000.0), ("fsync", 180_000.0), ("all", 200_000.0)] {
        add("files/small-file", serde_json::json!({"call": call}), single(None), ns);
    }
    document
}

#[test]
fn memory_and_files_have_their_pictures_and_findings() {
    let home = Home::new();
    home.keep(&memory_and_files());
    let table = home.output(["show", "storage", "--all"]);
    // The rest of the screen is in the snapshot of the tables, whose columns have no room for notes.
    let last_notes = |benchmark: &str| {
        let rows = table.lines().filter(|line| line.starts_with(benchmark));
        rows.filter_map(|row| row.rsplit("  ").next()).collect::<Vec<_>>()
    };
    assert_eq!(
        last_notes("memory/thrash{"),
        [
            "1.6 % of samples discarded (preempted); none of 500 lines looked at came from the other processor",
            "1.6 % of samples discarded (preempted); 90 % of 500 lines looked at came from the other processor",
        ]
    );
    assert_eq!(
        last_notes("files/read{"),
        [
            "7.61 GiB/s; 1.6 % of samples discarded (preempted)",
            "77.9 MiB/s; 1.6 % of samples discarded (preempted)"
        ]
    );
    let shown = home.json(["show", "storage", "--format=json"]);
    let expected = [
        "Storing to lines that another core stores to (llc pair, random order, 2m pages) is 20.0 × slower at 8 KiB.",
        "Beyond L1d (48.0 KiB as the kernel reports it) a load is 3.00 × slower: from 1.40 ns at 32 KiB to \
         4.21 ns at 64 KiB (2 MiB pages).",
        "Beyond L2 (1280 KiB as the kernel reports it) a load is 4.76 × slower: from 4.21 ns at 1024 KiB to 20.1 ns at 2048 KiB \
         (2 MiB pages).",
        "A read from storage takes longer than one from the page cache: 100 × for 4k.",
        "fsync is 90 % of the latency of one small file's life.",
    ];
    assert_eq!(sentences(&shown), expected);
    let row = |at: usize| &shown["measurements"][at];
    assert_eq!((&row(9)["benchmark"], &row(9)["bytes_per_op"]), (&"files/read".into(), &4096.into()));
    assert!(row(9)["bytes_per_second"].as_f64() > Some(8e9));
    assert_eq!(row(6)["counted"]["is_share"], true);
    for width in [40, 60, 80, 100, 200] {
        let mut narrow = home.tollgate(["show", "storage", "--all"]);
        let output = narrow.env("COLUMNS", width.to_string()).assert().success().get_output().stdout.clone();
        let text = String::from_utf8(output).expect("text");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
    let csv = home.output(["show", "storage", "--format=csv"]);
    assert!(
        csv.lines().next().is_some_and(|header| header.ends_with(",p99,max,bytes_per_second,exact")),
        "{csv}"
    );
}

#[test]
fn rows_of_long_names_stand_beneath_their_benchmark() {
    let home = Home::new();
    home.keep(&processes());
    let table = home.output(["show", "last", "--all", "--width=80"]);
    let at = table.lines().position(|line| line.trim() == "processes/fork").expect("a heading");
    let beneath = table.lines().nth(at + 1).expect("a row");
    assert!(
        beneath.starts_with("    dirty_mib=0, until=exited ")
            || beneath.starts_with("  dirty_mib=0, until=exited ")
    );
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    // A reader of JSON and CSV finds the whole name.
    let csv = home.output(["show", "last", "--format=csv"]);
    let forks = csv.lines().filter_map(|line| line.strip_prefix("processes/fork,")?.split(',').next());
    assert_eq!(
        forks.collect::<Vec<_>>(),
        [
            "dirty_mib=0 until=exited",
            "dirty_mib=64 page=4k until=exited",
            "dirty_mib=256 page=4k until=exited",
            "mapped_mib=256 until=exited"
        ]
    );
}

#[test]
fn an_emulators_time_is_not_shown_as_a_latency() {
    let home = Home::new();
    let mut document = document("20261121-015427-0001", None, 1.0);
    document["measurements"][1]["provenance"] = "qemu-tcg".into();
    home.keep(&document);
    let rows = |words: &[&'static str]| {
        let table = home.output(words.iter().copied());
        let mut lines = table.lines().skip_while(|line| !line.starts_with("entry/syscall "));
        [lines.next(), lines.next()]
            .map(|line| line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(rows(&["show", "last", "--all"])[0], "entry/syscall emulated times are an emulator's");
    // Nor in a comparison.
    let compared = rows(&["compare", "last", "last", "--all"]);
    assert_eq!(compared, ["entry/syscall – – – – inconclusive", "times are an emulator's"]);
    let comparison = home.json(["compare", "last", "last", "--format=json"]);
    let row = &comparison["rows"][1];
    assert_eq!(
        (&row["base"], &row["ratio"], &row["verdict"]),
        (&Value::Null, &Value::Null, &"inconclusive".into())
    );
}

#[test]
fn a_row_of_few_processes_is_noisy() {
    let home = Home::new();
    let mut document = document("20261121-015427-0001", None, 1.0);
    document["measurements"][1]["processes"] =
        serde_json::json!([{"rounds": 488, "discarded": (480..488).collect::<Vec<_>>()}]);
    home.keep(&document);
    let table = home.output(["show", "last", "--all"]);
    let syscall = table.lines().find(|line| line.trim_start_matches("~ ").starts_with("entry/syscall "));
    let note = syscall.and_then(|row| row.rsplit("  ").next());
    assert_eq!(note, Some("noisy: 1 process only; 1.6 % of samples discarded (preempted)"), "{table}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let home = kept();
    for width in [54_usize, 60, 80, 120] {
        for arguments in [
            vec!["show", "native"],
            vec!["show", "native", "--all"],
            vec!["compare", "native", "vm"],
            vec!["list"],
            vec!["runs"],
        ] {
            let mut command = home.tollgate(arguments.clone());
            let output =
                command.env("COLUMNS", width.to_string()).assert().success().get_output().stdout.clone();
            for line in String::from_utf8(output).expect("text").lines() {
                assert!(line.chars().count() <= width, "{arguments:?} at {width}: {line}");
            }
        }
    }
}

#[test]
fn a_document_cannot_command_the_terminal() {
    let home = Home::new();
    let mut document = document("20261121-015427-0001", None, 1.0);
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\r\n\u{202e}x";
    document["measurements"][1]["notes"] = serde_json::json!([evil]);
    document["measurements"][3]["why"] = evil.into();
    document["facts"]["kernel.release"]["value"] = evil.into();
    home.keep(&document);
    home.keep(&common::document("20261121-015428-0002", None, 1.0));
    for arguments in [
        vec!["show", "20261121-015427-0001"],
        vec!["show", "20261121-015427-0001", "--all"],
        vec!["show", "20261121-015427-0001", "--format=json"],
        vec!["show", "20261121-015427-0001", "--format=csv"],
        vec!["compare", "20261121-015427-0001", "last"],
        vec!["compare", "20261121-015427-0001", "last", "--format=json"],
    ] {
        let text = home.output(arguments.clone());
        let command = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(command), "{arguments:?}: {text:?}");
    }
}

#[test]
fn csv_has_one_line_per_case() {
    let csv = kept().output(["show", "native", "--format=csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 5);
    assert!(lines[0].starts_with("benchmark,params,status,unit,median,"));
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()), "{csv}");
    assert!(lines[5].starts_with("entry/seccomp,instructions=32,failed,"), "{csv}");
}

#[test]
fn a_comparison_has_ratios_verdicts_and_what_differs() {
    let home = steady();
    let comparison = home.json(["compare", "native", "vm", "--format=json"]);
    let rows = comparison["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(keys(row), sorted(&ROW));
        let verdict = if row["benchmark"] == "entry/call" { "same" } else { "slower" };
        assert_eq!(row["verdict"], verdict, "{row}");
    }
    let ratio = rows[1]["ratio"].as_f64().expect("a figure");
    assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
    // Its screen is in the snapshot of the tables.
    let names: Vec<&Value> =
        comparison["facts"].as_array().expect("facts").iter().map(|fact| &fact["name"]).collect();
    assert_eq!(names, ["kernel.release"]);
}

#[test]
fn rows_of_one_side_are_named_with_the_reason() {
    let home = kept();
    let mut document = document("20261121-015429-0003", Some("less"), 1.0);
    document["measurements"][1] = serde_json::json!(
        {"benchmark": "entry/syscall", "params": {}, "status": "failed", "error": "killed by SIGSYS"});
    home.keep(&document);
    let comparison = home.json(["compare", "native", "less", "--format=json"]);
    let [only] = &comparison["only_base"].as_array().expect("a list")[..] else { panic!("{comparison}") };
    assert_eq!(
        (&only["benchmark"], &only["why"]),
        (&"entry/syscall".into(), &"failed: killed by SIGSYS".into())
    );
    let table = home.output(["compare", "native", "less"]);
    let named: Vec<&str> = table.lines().filter(|line| line.starts_with("  entry/")).collect();
    assert_eq!(named, ["  entry/syscall: measured in the base only; failed: killed by SIGSYS"]);
}

#[test]
fn several_others_are_compared_each() {
    let home = steady();
    let comparison = home.json(["compare", "native", "native", "vm", "--format=json"]);
    let rows = comparison["rows"].as_array().expect("rows");
    let of_run = |id: &str| rows.iter().filter(|row| row["other_run"] == id).count();
    assert_eq!((of_run("20261121-015427-0001"), of_run("20261121-015428-0002")), (3, 3));
    assert_eq!(rows.len(), 6);
    assert_eq!(comparison["others"][1]["label"], "vm");
    assert!(comparison.get("comparisons").is_none());
}

#[test]
fn a_condition_decides_the_exit_status() {
    let home_of = |base: &str, label: &str, scale: f64| {
        let home = kept();
        home.keep_others_like(&document(base, Some(label), scale));
        home
    };
    let homes = [home_of("20261121-015427-0001", "native", 1.0), home_of("20261121-015428-0002", "vm", 1.5)];
    let status = |base: &str, other: &str, condition: &str| {
        let home = &homes[usize::from(base == "vm")];
        let arguments = ["compare", base, other, "--fail-on", condition];
        home.tollgate(arguments).assert().get_output().status.code()
    };
    assert_eq!(status("native", "vm", "slower"), Some(1));
    assert_eq!(status("native", "vm", "different"), Some(1));
    assert_eq!(status("native", "vm", "faster"), Some(0));
    assert_eq!(status("vm", "native", "faster"), Some(1));
    assert_eq!(status("vm", "native", "slower"), Some(0));
    assert_eq!(status("native", "native", "different"), Some(0));
}

#[test]
fn a_run_is_found_by_file_label_id_beginning_and_last() {
    let home = kept();
    let id =
        |meant: &str| home.json(["show", meant, "--format=json"])["id"].as_str().expect("an id").to_owned();
    let file = home.runs().join("20261121-015427-0001.json").display().to_string();
    for meant in ["native", "20261121-015427-0001", "20261121-015427", &file] {
        assert_eq!(id(meant), "20261121-015427-0001", "{meant}");
    }
    assert_eq!(id("last"), "20261121-015428-0002");
    // The newest run with a label counts; a file that was being written when the program was killed is not a run.
    home.keep(&document("20261121-015429-0003", Some("native"), 1.0));
    home.file("tollgate/runs/.20261121-015430-0004.json.00c0ffee.tmp", "{");
    assert_eq!(id("native"), "20261121-015429-0003");
    assert_eq!(id("last"), "20261121-015429-0003");
    // A label may look like a file's name.
    home.keep(&document("20261121-015430-0005", Some("x.json"), 1.0));
    assert_eq!(id("x.json"), "20261121-015430-0005");
}

#[test]
fn the_list_is_made_from_the_registry() {
    let home = kept();
    let listed = home.json(["list", "--format=json"]);
    let listed = listed["benchmarks"].as_array().expect("benchmarks");
    let registered: Vec<_> = tollgate_suites::SUITES.iter().flat_map(|suite| suite.benchmarks).collect();
    assert_eq!(listed.len(), registered.len());
    let table: String = home.output(["list"]).split_whitespace().collect();
    let machine = tollgate_engine::Topology::here();
    for (listed, benchmark) in listed.iter().zip(registered) {
        let fields = [
            "baseline",
            "counters",
            "counts",
            "crosses",
            "instruction",
            "interface",
            "name",
            "operation",
            "over",
            "params",
            "share",
            "suite",
            "thorough_params",
            "unit",
        ];
        assert_eq!(keys(listed), fields);
        assert_ne!(listed["instruction"].is_null(), listed["interface"].is_null(), "{listed}");
        assert_eq!(listed["name"], benchmark.name);
        assert_eq!(listed["operation"], benchmark.operation);
        let crossed: Vec<&str> = benchmark.crosses.iter().map(|boundary| boundary.name()).collect();
        assert_eq!(listed["crosses"], serde_json::json!(crossed));
        assert_eq!(listed["params"], serde_json::json!((benchmark.cases)(&machine)));
        let sentence: String = benchmark.operation.split_whitespace().collect();
        assert!(table.contains(&sentence), "{} is not listed with its operation", benchmark.name);
    }
    let one = home.json(["list", "entry/int80*", "--format=json"]);
    assert_eq!(one["benchmarks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn kept_runs_are_listed() {
    let home = kept();
    home.file("tollgate/runs/20261121-015430-0004.json", "{");
    let mut newer = document("20261121-015431-0005", None, 1.0);
    newer["schema"] = 3.into();
    home.keep(&newer);
    let runs = home.json(["runs", "--format=json"]);
    let runs = runs["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    assert_eq!((&runs[0]["label"], &runs[0]["rows"]), (&"native".into(), &5.into()));
    assert!(runs[2]["fault"].is_string(), "a broken one is named, not hidden");
    assert_eq!(runs[3]["fault"], "has schema 3, but this tollgate reads schema 2: use a newer tollgate");
    insta::assert_snapshot!("runs", home.output(["runs"]));
}

#[test]
fn completions_and_manual_pages_know_every_verb() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.output(["completions", shell]).contains("tollgate"), "{shell}");
    }
    assert!(home.output(["man"]).lines().any(|line| line == ".TH tollgate 1  \"tollgate 0.2.0\" "));
    let pages = home.path().join("pages");
    std::fs::create_dir(&pages).expect("made");
    home.output(["man", pages.to_str().expect("text")]);
    let run = std::fs::read_to_string(pages.join("tollgate-run.1")).expect("a page per verb");
    let sections: Vec<&str> = run.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    assert_eq!(sections, ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENTS", "EXAMPLES"]);
    assert!(run.lines().any(|line| line == "\\fB\\-\\-thorough\\fR"), "{run}");
    // One page for the program and one for each verb in the help.
    assert_eq!(std::fs::read_dir(&pages).expect("a directory").count(), 23);
    assert!(!pages.join("tollgate-agent.1").exists());
}

#[test]
fn the_version_is_printed() {
    assert_eq!(Home::new().output(["--version"]), "tollgate 0.2.0\n");
}

#[test]
fn the_doctor_judges_every_check_and_says_what_would_help() {
    let home = Home::new();
    let diagnosis = home.json(["doctor", "--format=json"]);
    let checks = diagnosis["checks"].as_array().expect("checks");
    let states = ["good", "fair", "poor", "absent", "refused", "unreadable"];
    for check in checks {
        assert_eq!(keys(check), ["fix", "found", "given", "name", "remedy", "root", "state"]);
        assert!(states.contains(&check["state"].as_str().expect("a state")), "{check}");
        assert!(!check["found"].as_str().expect("words").is_empty(), "{check}");
        assert!(check["state"] != "poor" || check["remedy"].is_string(), "no remedy: {check}");
    }
    let poor = checks.iter().filter(|check| check["state"] == "poor").count();
    assert_eq!(diagnosis["fit"], poor == 0);
    for fix in checks.iter().map(|check| &check["fix"]).filter(|fix| !fix.is_null()) {
        assert!(
            fix["command"].is_string() && fix["undo"].is_string() && fix["command"] != fix["undo"],
            "{fix}"
        );
    }
    let failed = home.tollgate(["doctor", "--fail-on", "poor"]).output().expect("started");
    let is_fit =
        String::from_utf8_lossy(&failed.stdout).lines().any(|line| line.starts_with("Fit for measuring"));
    assert_eq!(failed.status.code(), Some(i32::from(!is_fit)), "{failed:?}");
    let state = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        check["state"].as_str().expect("a state")
    };
    for name in ["load", "pressure", "governor", "turbo", "smt", "steal", "isolation", "hypervisor"] {
        // A fact that is not recorded is a defect of the program.
        let check = checks.iter().find(|check| check["name"] == name).expect(name);
        assert!(!check["found"].as_str().expect("words").contains("not recorded"), "{check}");
    }
    assert_ne!(state("clock"), "absent");
    assert!(home.files().is_empty(), "the doctor keeps nothing");
}

#[test]
fn the_document_itself_goes_to_standard_output_where_it_is_asked_for() {
    let home = Home::new();
    let document = home.json(["run", "entry/call", "--processes", "1", "--out", "-", "--quiet"]);
    assert!(document["measurements"][0]["samples"].is_array(), "{document}");
    assert!(home.files().is_empty(), "{:?}", home.files());
}

/// Rows with the longest names of suites that move bytes and of suites with several threads.
fn rates() -> Value {
    let mut document = document("20261121-015427-0001", Some("rates"), 1.0);
    let rows = document["measurements"].as_array_mut().expect("measurements");
    let mut add = |benchmark: &str, params: Value, more: Value, ns: f64| {
        let mut row = measured(benchmark, ns, &[]);
        row["params"] = params;
        more.as_object().expect("fields").iter().for_each(|(name, value)| row[name] = value.clone());
        rows.push(row);
    };
    for (by, op, ns) in [("avx2", "write-nt", 2e6), ("rep", "copy", 4e6)] {
        let case = serde_json::json!({"by": by, "kib": 1_966_080, "op": op, "page": "4k", "threads": 1});
        add("memory/bandwidth", case, serde_json::json!({"bytes_per_op": 8 << 20}), ns);
    }
    add("memory/latency", serde_json::json!({"kib": 4, "page": "4k"}), serde_json::json!({}), 1.2);
    // The channel comes from an older program: a kept run is shown with any words.
    for (by, cpus, ns) in [("socketpair-seqpacket", "same", 6e3), ("pipe", "llc", 6e4)] {
        let case = serde_json::json!({"between": "processes", "by": by, "bytes": 65_536, "cpus": cpus});
        add("ipc/round-trip", case, serde_json::json!({"bytes_per_op": 131_072}), ns);
    }
    let tasks = |tasks: u64| serde_json::json!({"file": "shared", "kind": "processes", "tasks": tasks});
    add("scaling/open", tasks(1), serde_json::json!({}), 500.0);
    let alone = serde_json::json!({"baseline": {"benchmark": "scaling/open", "params": tasks(1)}});
    add("scaling/open", tasks(2), alone, 1000.0);
    document
}

#[test]
fn rates_have_a_column_where_names_are_long() {
    let home = Home::new();
    home.keep(&rates());
    let table = home.output(["show", "rates", "--all", "--width=80"]);
    // Values alone where the names do not fit, below the names.
    insta::assert_snapshot!("rates", table);
    insta::assert_snapshot!("explained-rates", home.output(["explain", "ipc/round-trip", "rates"]));
    // A program finds whole names, and the rate in its column alone.
    let whole = home.output(["show", "rates", "--all"]);
    let row = whole.lines().find(|line| line.contains("op=write-nt")).expect("a row");
    assert!(
        row.starts_with("memory/bandwidth{by=avx2, kib=1966080, op=write-nt, page=4k, threads=1} "),
        "{row}"
    );
    assert_eq!(row.matches("GiB").count(), 1, "{row}");
    for width in [30, 40, 60, 100] {
        let narrow = home.output(["show", "rates", "--all", &format!("--width={width}")]);
        assert!(narrow.lines().all(|line| line.chars().count() <= width), "{width}:\n{narrow}");
    }
}
