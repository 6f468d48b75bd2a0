//! The first screen: what a user sees after `run` and `show`.

use crate::common;
use common::machines::MACHINES;
use common::{Home, document, measured};
use serde_json::{Value, json};
use tollgate_suites::SUITES;

const ID: &str = "20261121-015427-0001";

fn fact(value: impl Into<Value>) -> Value {
    json!({"status": "known", "value": value.into(), "source": "a test"})
}

/// A row of a case; `noise` is the distance between its processes.
fn row(benchmark: &str, params: &Value, at: f64, noise: f64) -> Value {
    let mut row = measured(benchmark, at, &[]);
    row["params"] = params.clone();
    row["group"] = benchmark.split('/').next().into();
    for (n, sample) in row["samples"].as_array_mut().expect("samples").iter_mut().enumerate() {
        // Processes have 60 samples; their order must not be a trend.
        let process = (n / 60 * 5 % 8) as f64 / 7.0 - 0.5;
        *sample = (sample.as_f64().expect("a number") * (1.0 + process * noise)).into();
    }
    row
}

/// A made-up latency of a benchmark's case, in nanoseconds.
fn latency(benchmark: &str, params: &Value) -> f64 {
    match benchmark {
        "entry/call" => 1.6,
        "entry/syscall" => 112.0,
        "entry/vdso-clock" => 23.0,
        "entry/io-uring-nop" => 83.0,
        "entry/int80" => 5_970.0,
        "entry/vm-exit" => 5_110.0,
        "memory/latency" => 2.0,
        "memory/pingpong" => 60.0,
        "traps/minor-fault" => 3_490.0,
        "traps/fresh-page" if params["by"] == "huge" => 280.0,
        "traps/fresh-page" => 1_700.0,
        "processes/fork" => 156_000.0 + 37_000.0 * params["dirty_mib"].as_f64().unwrap_or(0.0),
        "processes/fork-exec" => 240_000.0 + 37_000.0 * params["dirty_mib"].as_f64().unwrap_or(0.0),
        "processes/posix-spawn" => 140_000.0,
        "processes/switch" if params["placement"] == "other-cpu" => 23_200.0,
        "files/read" if params["state"] == "uncached" => 117_000.0,
        _ => 2_000.0,
    }
}

/// A run of every case that `is_chosen` of a machine of two processors, in an environment of two hypervisors.
fn run(is_chosen: impl Fn(&str, &Value) -> bool, noise: f64) -> Value {
    let (mut run, machine) = (document(ID, None, 1.0), MACHINES[0].topology());
    let rows = SUITES
        .iter()
        .flat_map(|suite| suite.benchmarks)
        .flat_map(|of| (of.cases)(&machine).into_iter().map(move |params| (of.name, json!(params))));
    let rows = rows.filter(|(name, params)| is_chosen(name, params));
    let rows: Vec<Value> =
        rows.map(|(name, params)| row(name, &params, latency(name, &params), noise)).collect();
    run["measurements"] = rows.into();
    let facts = run["facts"].as_object_mut().expect("facts");
    for (name, value) in [
        ("cpu.model", json!("AMD EPYC 9R14 96-Core Processor")),
        ("cpu.online", json!(2)),
        ("run.cpu", json!(1)),
        ("cache.l1d", json!(32 << 10)),
        ("cache.l2", json!(1 << 20)),
        ("hypervisor.present", json!(true)),
        ("hypervisor.layers", json!(["KVM", "Firecracker", "an outer hypervisor"])),
        ("hypervisor.nesting", json!(["nested_pvm on the kernel command line"])),
        ("mitigation.pti", json!(false)),
        ("mitigation.spectre_v2", json!("Mitigation: Retpolines; IBPB: conditional")),
        ("files.fs", json!("ext4")),
        ("files.device", json!("vda")),
    ] {
        facts.insert(name.to_owned(), fact(value));
    }
    run
}

fn is_headline(benchmark: &str, params: &Value) -> bool {
    let found = tollgate_suites::find(benchmark).expect("registered");
    let params = serde_json::from_value(params.clone()).expect("parameters");
    found.headlines.iter().any(|headline| headline.names(&params))
}

fn screen(run: &Value, columns: &str) -> String {
    let home = Home::new();
    home.keep(run);
    let mut command = home.tollgate(["show", "last"]);
    let output = command.env("COLUMNS", columns).assert().success().get_output().clone();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing stands next to the prompt");
    String::from_utf8(output.stdout).expect("text")
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn findings(screen: &str) -> Vec<&str> {
    let lines = screen.lines().skip_while(|line| !line.starts_with("Expensive here"));
    lines.skip(1).take_while(|line| line.starts_with(' ')).collect()
}

/// Whether a usual run, without workloads, includes the case.
fn is_usual(name: &str, _: &Value) -> bool {
    !name.starts_with("workloads/") && !name.starts_with("environments/")
}

#[test]
fn every_kind_of_run_fits_the_screen() {
    let skipped = |mut run: Value| {
        for row in run["measurements"].as_array_mut().expect("rows") {
            *row = json!({"benchmark": row["benchmark"], "params": row["params"], "status": "skipped", "why": "none"});
        }
        run
    };
    let suite = |name: &'static str| run(move |benchmark, _| benchmark.starts_with(name), 0.02);
    for (kind, run) in [
        ("full", run(is_usual, 0.02)),
        ("noisy", run(|_, _| true, 0.7)),
        ("quick", run(is_headline, 0.02)),
        ("entry", suite("entry/")),
        ("locks", suite("locks/")),
        ("workloads", suite("workloads/")),
        ("empty", run(|_, _| false, 0.02)),
        ("skipped", skipped(run(|_, _| true, 0.02))),
    ] {
        for (columns, most) in [("80", 80), ("200", 80), ("60", 60), ("40", 40)] {
            let text = screen(&run, columns);
            let widest = text.lines().map(|line| line.chars().count()).max().expect("lines");
            assert!(widest <= most, "{kind} at {columns}: {widest}\n{text}");
            assert!(most < 80 || text.lines().count() <= 43, "{kind}: {}\n{text}", text.lines().count());
            for begin in ["Quality: ", "More: tollgate show"] {
                assert!(text.lines().any(|line| line.starts_with(begin)), "{kind}\n{text}");
            }
        }
    }
}

#[test]
fn the_screen_of_a_full_run_is_as_reviewed() {
    let usual = screen(&run(is_usual, 0.02), "80");
    // The screen shows only the number of cases of workloads and environments, in its first line.
    let all = screen(&run(|_, _| true, 0.02), "80");
    assert!(all.lines().skip(1).eq(usual.lines().skip(1)), "{all}");
    insta::assert_snapshot!(usual);
}

/// The steps stand beside the figure, and are not rows.
#[test]
fn explain_shows_what_a_step_takes_alone() {
    let home = Home::new();
    home.keep(&run(is_usual, 0.02));
    let text = home.output(["explain", "entry/int80"]);
    let beside = "Beside it    entry/vm-exit 5.12 µs, 86 % of it: an exit to the hypervisor, as a
             guest's read of its local APIC may be (int80_is_external())
             entry/syscall 112 ns, 1.9 % of it: the same call by SYSCALL
To avoid it ";
    assert!(text.contains(beside), "{text}");
    assert!(!words(&text).contains("case median"), "one case has no table: {text}");
}

#[test]
fn rows_of_some_suites_are_all_shown() {
    let run = run(|name, _| name.starts_with("entry/"), 0.02);
    let text = screen(&run, "80");
    let rows = text.lines().skip_while(|line| !line.starts_with("Kernel entry")).skip(1);
    let rows = rows.take_while(|line| line.starts_with("  ")).map(|row| row.trim_start());
    let names: Vec<&str> = rows.filter_map(|row| row.split("  ").next()).collect();
    assert_eq!(Some(names.len()), run["measurements"].as_array().map(Vec::len), "{text}");
    for name in ["int 0x80", "call", "seccomp{instructions=256}", "compat-fast"] {
        assert!(names.contains(&name), "{name:?} is not in\n{text}");
    }
}

#[test]
fn a_mark_stands_where_the_interval_is_wide() {
    let text = screen(&run(is_usual, 0.7), "80");
    let is_marked = |row: &str| text.lines().any(|line| line.starts_with(&format!("~ {row}")));
    assert!(is_marked("int 0x80") && is_marked("syscall"), "{text}");
    assert!(is_marked("mutex trylock"), "whether a sentence needs it or not\n{text}");
    let quality = "Quality: poor. Processes differ by 56 %  ~ CI wider than ±10 %";
    assert_eq!(text.lines().nth(3), Some(quality));
    let calm = screen(&run(is_usual, 0.02), "40");
    assert!(!calm.contains('~'), "{calm}");
    // An interval that is narrower than three digits takes no room from others.
    let narrow = screen(&run(is_usual, 0.0004), "80");
    let multiple = |line: &&str| line.starts_with("  syscall (unknown number) ") && line.ends_with(" 1.0");
    assert!(narrow.lines().any(|line| multiple(&line)), "{narrow}");
}

#[test]
fn no_finding_is_made_of_a_difference_within_the_noise() {
    let mut noisy = run(|name, _| ["entry/syscall", "entry/int80"].contains(&name), 0.02);
    noisy["measurements"] =
        json!([row("entry/syscall", &json!({}), 112.0, 1.0), row("entry/int80", &json!({}), 150.0, 1.0),]);
    let call = "  System call 100 ns, 200 cycles: not slow (entry/syscall)";
    assert_eq!(findings(&screen(&noisy, "80")), [call]);
    noisy["measurements"][1] = row("entry/int80", &json!({}), 150.0 * 10.0, 1.0);
    let interrupt = "  INT 80h 10 × a call: nested hypervisor; use SYSCALL (entry/int80)";
    assert_eq!(findings(&screen(&noisy, "80")), [call, interrupt]);
    for at in [0, 1] {
        noisy["measurements"][at]["processes"] =
            json!([{"rounds": 488, "discarded": (480..488).collect::<Vec<_>>()}]);
    }
    let text = screen(&noisy, "80");
    assert!(!text.contains("Expensive"), "{text}");
    assert_eq!(text.lines().nth(3), Some("Quality: poor. 2 of 2 rows lack a CI"));
}

#[test]
fn a_ratio_to_a_figure_below_its_limit_is_a_bound() {
    let mut files = run(|name, params| name == "files/read" && params["block"] == "4k", 0.02);
    let rows = files["measurements"].as_array_mut().expect("rows");
    let mut null = row("bench/empty-loop", &json!({"group": "files"}), 1_000.0, 0.02);
    null["group"] = "files".into();
    for (n, sample) in null["samples"].as_array_mut().expect("samples").iter_mut().enumerate() {
        *sample = (if n % 2 == 0 { 3_000.0 } else { -3_000.0 }).into();
    }
    for row in rows.iter_mut().chain(std::iter::once(&mut null)) {
        row["ops_per_sample"] = 1.into();
    }
    rows.push(null);
    let text = screen(&files, "80");
    let bound = [
        "  Uncached 4 KiB read 117 µs, at least 38 × a cached one: waits for vda,",
        "    nested hypervisor; read ahead, or many at once by io_uring (files/read)",
    ];
    assert_eq!(findings(&text), bound);
    assert!(text.lines().any(|line| line == "  pread 4 KiB, cached              < 3.00 µs"), "{text}");
}

#[test]
fn processes_that_something_else_slowed_are_left_out_counted_and_said() {
    let mut busy = run(|name, _| name == "entry/syscall", 0.0);
    let rows = busy["measurements"].as_array_mut().expect("rows");
    rows.push(row("bench/canary", &json!({"group": "entry"}), 112.0, 0.0));
    for row in rows.iter_mut() {
        row["group"] = "entry".into();
        for (n, sample) in row["samples"].as_array_mut().expect("samples").iter_mut().enumerate() {
            if [2, 5].contains(&(n / 60)) {
                *sample = (sample.as_f64().expect("a number") * 1.4).into();
            }
        }
    }
    let home = Home::new();
    home.keep(&busy);
    let json = home.json(["show", "last", "--format=json"]);
    assert_eq!(json["disturbed"], json!({"disturbed": 2, "of": 8}));
    let call = &json["measurements"][0];
    assert!(call["ci_high"].as_f64().is_some_and(|high| high < 114.0), "{call}");
    assert!(call["max"].as_f64().is_some_and(|max| max < 114.0), "{call}");
    assert_eq!(json["quality"]["reasons"], json!(["2 of 8 processes disturbed, left out"]));
}

#[test]
fn patterns_choose_rows_of_every_format() {
    let home = Home::new();
    home.keep(&run(is_usual, 0.02));
    let cases = home.json(["show", "last", "files", "--format=json"]);
    let cases = cases["measurements"].as_array().expect("rows");
    assert!(
        !cases.is_empty()
            && cases
                .iter()
                .all(|row| row["benchmark"].as_str().is_some_and(|name| name.starts_with("files/")))
    );
    // Without a run of that name the last one is used.
    let csv = home.output(["show", "files", "--format=csv"]);
    assert_eq!(csv.lines().count(), cases.len() + 1);
    let text = home.output(["show", "files"]);
    let lines = text.lines().filter(|line| line.starts_with("files/") && line.contains(" µs"));
    assert!(lines.count() >= cases.len(), "{text}");
    let line = format!("run {ID} has no row that matches nothing-such");
    assert_eq!(home.refusal(["show", "last", "nothing-such"]), line);
}

#[test]
fn rows_are_sorted_and_shown_in_cycles() {
    let home = Home::new();
    home.keep(&run(|name, _| name.starts_with("entry/"), 0.02));
    let text = home.output(["show", "entry", "--sort=latency", "--unit=cycles"]);
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names[1..3], ["entry/int80", "entry/vm-exit"], "{text}");
    let call = text.lines().find(|line| line.starts_with("entry/syscall ")).expect("a row");
    let figures = "entry/syscall 225 cycles 222–227 222 cycles ×1.00 1.6 % of samples discarded (preempted)";
    assert_eq!(words(call), figures);
    let by_name = home.output(["show", "--all", "--sort=name", "--width=80"]);
    assert!(
        by_name.lines().nth(1).is_some_and(|line| line.trim_start().starts_with("entry/call")),
        "{by_name}"
    );
    assert!(by_name.lines().all(|line| line.chars().count() <= 80), "{by_name}");
    let bench = home.output(["show", "entry", "--bench"]);
    let has_processes = |text: &str| text.lines().any(|line| line == "entry: 8 processes");
    assert!(has_processes(&bench) && !has_processes(&text), "{bench}");
}

#[test]
fn a_benchmark_is_explained_with_and_without_a_run() {
    let home = Home::new();
    let text = home.output(["explain", "entry/int80"]);
    // Facts of this machine follow.
    let (text, _) = text.split_once("Affects it on this machine\n").expect("facts");
    insta::assert_snapshot!("explain_without_a_run", text);
    home.keep(&run(|_, _| true, 0.02));
    insta::assert_snapshot!("explain", home.output(["explain", "entry/int80"]));
    let line =
        "explain takes one benchmark, and entry means 20; such as entry/call, entry/rdtsc, entry/vdso-clock";
    assert_eq!(home.refusal(["explain", "entry"]), line);
    let line = "no benchmark matches \"entry/int8\"; did you mean entry/int80?";
    assert_eq!(home.refusal(["explain", "entry/int8"]), line);
}

/// The newest run did not include it; an older one has the reason for a missing figure.
#[test]
fn a_benchmark_without_a_figure_is_explained_by_the_run_that_says_why() {
    let home = Home::new();
    let mut older = document("20261121-015427-00000001", None, 1.0);
    older["measurements"] = json!([
        {"benchmark": "entry/int80", "params": {}, "status": "skipped", "why": "this kernel has no 32-bit programs"},
    ]);
    home.keep(&older);
    let mut newest = document("20261121-015428-00000002", None, 1.0);
    newest["measurements"] = json!([measured("entry/call", 1.0, &[])]);
    home.keep(&newest);
    let text = home.output(["explain", "entry/int80"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("this kernel has no 32-bit programs"), "{text}");
}

/// A newer run has a figure of another row of the benchmark.
#[test]
fn a_row_is_explained_by_the_run_that_has_it() {
    let home = Home::new();
    let run = |id: &str, rows: serde_json::Value| {
        let mut run = document(id, None, 1.0);
        run["measurements"] = rows;
        home.keep(&run);
    };
    let row = |size: u64, more: serde_json::Value| {
        let mut row = serde_json::json!({"benchmark": "memory/latency", "params": {"kib": size}});
        row.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        row
    };
    let why = serde_json::json!({"status": "skipped", "why": "this group may have 1 MiB"});
    let measured = document("x", None, 1.0)["measurements"][0].clone();
    let figure = |size: u64| {
        let mut row = measured.clone();
        (row["benchmark"], row["params"]) = ("memory/latency".into(), serde_json::json!({"kib": size}));
        row
    };
    run("20261121-015427-00000001", serde_json::json!([row(65536, why)]));
    run("20261121-015428-00000002", serde_json::json!([figure(8)]));
    let text = home.output(["explain", "memory/latency{kib=65536}"]);
    assert!(
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("this group may have 1 MiB"),
        "{text}"
    );
    let text = home.output(["explain", "memory/latency{kib=8}"]);
    assert!(!text.contains("this group may have 1 MiB"), "{text}");
}

#[test]
fn a_pipe_has_no_pager() {
    let home = Home::new();
    home.keep(&run(|_, _| true, 0.02));
    let mut command = home.tollgate(["show", "--all"]);
    let output = command.env("PAGER", "false").assert().success().get_output().stdout.clone();
    assert!(String::from_utf8_lossy(&output).lines().count() > 200);
}
