//! `compare --fail-on`: exit status 1 if the condition is met, 3 if too little was decided to say, 0 only if it is not met.
//! The runs are made up.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use crate::common;
use common::{Home, document, measured, one_line};
use serde_json::{Value, json};

const EMPTY_LOOP: &str = "bench/empty-loop";
const RAW_LOOP: &str = "bench/empty-loop-raw";
const CONTROL: &str = "bench/control";

/// The run of `common`, with the engine's own rows: three cases of eight processes.
fn whole(id: &str, label: &str) -> Value {
    let mut run = document(id, Some(label), 1.0);
    let rows = run["measurements"].as_array_mut().expect("rows");
    for (name, at) in [(EMPTY_LOOP, 0.01), (RAW_LOOP, 1.2), (CONTROL, 1.0)] {
        rows.push(measured(name, at, &[]));
    }
    rows.last_mut().expect("the control")["baseline"] = json!({"benchmark": "entry/call", "params": {}});
    run
}

/// Likewise with every sample multiplied, the engine's own too.
fn times(run: &Value, factor: f64, id: &str, label: &str) -> Value {
    let mut run = run.clone();
    run["id"] = id.into();
    run["label"] = label.into();
    for row in run["measurements"].as_array_mut().expect("rows") {
        if let Some(samples) = row.get_mut("samples").and_then(Value::as_array_mut) {
            samples.iter_mut().for_each(|sample| *sample = (sample.as_f64().expect("ns") * factor).into());
        }
    }
    run
}

/// Likewise with the first processes only.
fn of_processes(run: &Value, number: usize) -> Value {
    let mut run = run.clone();
    for row in run["measurements"].as_array_mut().expect("rows") {
        let Some(processes) = row.get_mut("processes").and_then(Value::as_array_mut) else { continue };
        processes.truncate(number);
        let samples = row["samples"].as_array_mut().expect("samples");
        samples.truncate(60 * number);
        row["discarded"] = number.into();
    }
    run
}

/// Likewise with the processes of a case at these multiples of its level.
fn scattered(run: &Value, factors: &[f64]) -> Value {
    let mut run = run.clone();
    for row in run["measurements"].as_array_mut().expect("rows") {
        let Some(samples) = row.get_mut("samples").and_then(Value::as_array_mut) else { continue };
        for (at, sample) in samples.iter_mut().enumerate() {
            *sample = (sample.as_f64().expect("ns") * factors[at / 60]).into();
        }
    }
    run
}

/// The exit status of a comparison with a condition, and what was said. Other runs of the machine are kept, which do not differ.
fn status(home: &Home, base: &Value, other: &Value, more: &[&str]) -> (i32, String) {
    home.keep_others_like(base);
    status_alone(home, base, other, more)
}

/// Likewise if no other run is kept.
fn status_alone(home: &Home, base: &Value, other: &Value, more: &[&str]) -> (i32, String) {
    home.keep(base);
    home.keep(other);
    let names = [base, other].map(|run| run["id"].as_str().expect("an id").to_owned());
    let arguments = ["compare", &names[0], &names[1]].into_iter().chain(more.iter().copied());
    let output = home.tollgate(arguments).output().expect("started");
    let said = if output.stderr.is_empty() { String::new() } else { one_line(&output.stderr) };
    (output.status.code().expect("a status"), said)
}

const BASE: &str = "20261121-015427-00000001";
const OTHER: &str = "20261121-015428-00000002";
const SLOWER: &[&str] = &["--fail-on", "slower"];

#[test]
fn ten_times_the_latencies_never_pass() {
    let home = Home::new();
    let base = whole(BASE, "base");
    let slow = times(&base, 10.0, OTHER, "slow");
    for processes in 1..=8 {
        let (base, slow) = (of_processes(&base, processes), of_processes(&slow, processes));
        let (found, said) = status_alone(&Home::new(), &base, &slow, SLOWER);
        println!("{processes}: {found} {said}");
        // With three rows of five processes each, the intervals just exist; with fewer processes there are none.
        match processes {
            6.. => assert_eq!((found, said.as_str()), (1, "entry/call and 2 more are slower")),
            5 => assert_ne!(found, 0, "{said}"),
            _ => {
                assert_eq!(found, 3, "{said}");
                let few = format!("{processes} and {processes} processes are too few");
                assert_eq!(said, format!("undecided: entry/call is 10.0 × slower, inconclusive ({few})"));
            }
        }
        // If runs of as few processes are known not to differ, two processes are enough.
        assert_eq!(status(&home, &base, &slow, SLOWER).0, if processes == 1 { 3 } else { 1 }, "{processes}");
        // In the other direction it is ten times as fast, or undecided.
        let back = status(&home, &slow, &base, SLOWER).0;
        let faster = status(&home, &slow, &base, &["--fail-on", "faster"]).0;
        assert!([(0, 1), (3, 3)].contains(&(back, faster)), "{processes}: {back} {faster}");
    }
    // Without the engine's own rows, which then contradict the others.
    let mut others = slow.clone();
    for (at, row) in others["measurements"].as_array_mut().expect("rows").iter_mut().enumerate() {
        if row["benchmark"].as_str().expect("a name").starts_with("bench/") {
            *row = base["measurements"][at].clone();
        }
    }
    assert_eq!(status(&home, &base, &others, SLOWER).0, 1);
    // Noise that hides 40 % does not hide a factor of ten.
    let noise = [1.0, 1.4, 0.8, 1.2, 0.9, 1.3, 1.1, 0.7];
    let (found, said) = status(&home, &scattered(&base, &noise), &scattered(&slow, &noise), SLOWER);
    assert_eq!(found, 1, "{said}");
}

#[test]
fn one_row_that_looks_ten_times_as_slow_is_not_passed() {
    let home = Home::new();
    let base = whole(BASE, "base");
    let mut other = times(&base, 1.0, OTHER, "other");
    let few = of_processes(&times(&base, 10.0, OTHER, "other"), 1);
    other["measurements"][1] = few["measurements"][1].clone();
    let (found, said) = status(&home, &base, &other, SLOWER);
    assert_eq!(found, 3);
    assert_eq!(
        said,
        "undecided: entry/syscall is 10.0 × slower, inconclusive (8 and 1 processes are too few)"
    );
    // Without that row the others decide.
    other["measurements"][1] =
        json!({"benchmark": "entry/syscall", "params": {}, "status": "skipped", "why": "no"});
    other["measurements"][2] = base["measurements"][2].clone();
    assert_eq!(status(&home, &base, &other, SLOWER), (0, String::new()));
}

#[test]
fn equal_runs_pass_and_noisy_ones_are_undecided() {
    let home = Home::new();
    let base = whole(BASE, "base");
    let equal = times(&base, 1.0, OTHER, "equal");
    assert_eq!(status(&home, &base, &equal, SLOWER), (0, String::new()));
    assert_eq!(status(&home, &base, &equal, &["--fail-on", "undecided,different"]).0, 0);
    let noise = [1.0, 1.4, 0.8, 1.2, 0.9, 1.3, 1.1, 0.7];
    let (base, equal) = (scattered(&base, &noise), scattered(&equal, &noise));
    let (found, said) = status(&home, &base, &equal, SLOWER);
    assert_eq!(found, 3, "{said}");
    assert!(
        said.starts_with("undecided: 3 of 3 rows may be slower; in turns: tollgate run entry --in "),
        "{said}"
    );
    let (found, said) = status(&home, &base, &equal, &["--fail-on", "undecided"]);
    assert_eq!((found, said.as_str()), (1, "entry/call and 2 more are inconclusive"));
    // A difference that does not count need not be excluded.
    assert_eq!(status(&home, &base, &equal, &["--fail-on", "slower", "--threshold", "200%"]).0, 0);
}

#[test]
fn nothing_in_common_or_lost_rows_are_undecided() {
    let home = Home::new();
    let base = whole(BASE, "base");
    let mut other = times(&base, 1.0, OTHER, "other");
    for at in [0, 1, 2] {
        other["measurements"][at] = json!({
            "benchmark": base["measurements"][at]["benchmark"], "params": {}, "status": "failed", "error": "it hung",
        });
    }
    let (found, said) = status(&home, &base, &other, SLOWER);
    assert_eq!((found, said.as_str()), (3, "undecided: no case has a figure in both runs"));
    // As `git bisect run` has it.
    let skipped = [SLOWER, &["--exit-undecided", "125"]].concat();
    assert_eq!(status(&home, &base, &other, &skipped), (125, said));
    other["measurements"][0] = base["measurements"][0].clone();
    other["measurements"][2]["status"] = "not measured".into();
    other["measurements"][2]["why"] = "the time was over".into();
    let (found, said) = status(&home, &base, &other, SLOWER);
    assert_eq!(found, 3);
    assert!(said.starts_with("undecided: 2 of 3 rows may be slower"), "{said}");
    assert_eq!(status(&home, &base, &other, &[]).0, 0);
}

#[test]
fn a_threshold_is_the_least_difference_that_counts() {
    let home = Home::new();
    let base = whole(BASE, "base");
    let mut slower = times(&base, 1.0, OTHER, "slower");
    slower["measurements"][1] = times(&base, 1.08, OTHER, "slower")["measurements"][1].clone();
    for (threshold, verdict, found) in [("5%", "slower", 1), ("12%", "same", 0), ("0%", "slower", 1)] {
        let asked = ["--fail-on", "slower", "--threshold", threshold];
        assert_eq!(status(&home, &base, &slower, &asked).0, found, "{threshold}");
        let rows =
            home.json(["compare", BASE, OTHER, "--threshold", threshold, "--format=json"])["rows"].clone();
        assert_eq!(rows[1]["verdict"], verdict, "{threshold}");
    }
    let said = home.refusal(["compare", BASE, OTHER, "--threshold", "5"]);
    assert_eq!(
        said,
        "invalid value '5' for '--threshold <PERCENT>': it is not a difference in percent from 0% to 1000%, such as 5%"
    );
}

#[test]
fn more_time_is_what_the_threshold_needs() {
    let home = Home::new();
    let noise = [1.0, 1.02, 0.99, 1.01, 0.98, 1.016, 1.004, 0.984];
    let base = whole(BASE, "base");
    let other = scattered(&times(&base, 1.0, OTHER, "other"), &noise);
    for (place, (mut run, environment)) in [(base, "host"), (other, "container")].into_iter().enumerate() {
        run["session"] = json!({
            "id": "20261121-015427-00000000", "environment": environment, "place": place, "of": 2, "paired": true,
        });
        home.keep(&run);
    }
    let commands = ["1%", "20%", "50%"].map(|threshold| {
        let rows =
            home.json(["compare", BASE, OTHER, "--threshold", threshold, "--format=json"])["rows"].clone();
        rows[1]["more_time"].as_str().expect("a command").to_owned()
    });
    let expected = ["1h", "30m", "5m"];
    let expected = expected.map(|time| format!("tollgate run entry --in host --in container --time {time}"));
    assert_eq!(commands, expected);
}

fn fact(value: &str) -> Value {
    json!({"status": "known", "value": value, "source": "a test"})
}

/// The facts of two runs that differ in one fact, and of which one knows three hundred more.
#[test]
fn only_changes_are_shown_with_what_can_cause_them() {
    let home = Home::new();
    let mut base = whole(BASE, "base");
    let mut other = times(&base, 1.0, OTHER, "other");
    for (at, factor) in [(1, 1.5), (2, 3.0)] {
        other["measurements"][at] = times(&base, factor, OTHER, "other")["measurements"][at].clone();
    }
    for (run, pti) in [(&mut base, "off"), (&mut other, "on")] {
        let facts = run["facts"].as_object_mut().expect("facts");
        facts.insert("mitigation.pti".to_owned(), fact(pti));
        facts.insert("files.device".to_owned(), fact(if pti == "on" { "vda" } else { "vdb" }));
    }
    for number in 0..300 {
        other["facts"][format!("new.fact-{number}")] = fact("x");
    }
    home.keep_others_like(&base);
    home.keep(&base);
    home.keep(&other);
    let text = home.output(["compare", "base", "other"]);
    insta::assert_snapshot!("changes", text);
    let all = home.output(["compare", "base", "other", "--all"]);
    let starting = |prefix: &str| all.split_whitespace().filter(|word| word.starts_with(prefix)).count();
    assert_eq!((starting("entry/call"), starting("new.fact-")), (1, 300), "{all}");
    let rows = home.json(["compare", "base", "other", "--format=json"])["rows"].clone();
    assert_eq!((&rows[0]["causes"], &rows[1]["causes"]), (&json!([]), &json!(["mitigation.pti"])));
    insta::assert_snapshot!("no-changes", home.output(["compare", "base", "base"]));
}

#[test]
fn runs_that_took_no_turns_are_decided_by_turns() {
    let home = Home::new();
    let base = whole(BASE, "base");
    home.keep(&base);
    home.keep(&times(&base, 1.5, OTHER, "other"));
    let without_others = home.output(["compare", "base", "other"]);
    let row = home.json(["compare", "base", "other", "--format=json"])["rows"][1].clone();
    assert_eq!(row["more_time"], Value::Null);
    // Other runs of the machine show that its runs do not differ.
    home.keep_others_like(&base);
    let with_others = home.output(["compare", "base", "other"]);
    insta::assert_snapshot!("turns", [without_others, with_others].join("\n"));
    // A run is the same as itself.
    let rows = home.json(["compare", "base", "base", "--format=json"])["rows"].take();
    let verdicts = rows.as_array().expect("rows").iter().map(|row| &row["verdict"]);
    assert_eq!(verdicts.collect::<Vec<_>>(), ["same"; 3]);
}

/// A command of a comparison: each execution has a processor for this many milliseconds, but some take thirty times as long.
fn command(id: &str, place: u32, cpu_ms: f64, is_crowded: bool) -> Value {
    let mut run = document(id, None, 1.0);
    let number = 40_u32;
    let noise = |at: u32| 1.0 + f64::from((at * 7919 + 31 * place) % 211) / 1e5;
    // Only the sum of user and sys counts, not the division.
    let of = |case: &str, at: u32| {
        let cpu = (cpu_ms * noise(at) * 1e3).round() * 1e3;
        let share = if (at * 5 % 7 < 4) == (place == 0) { 0.99 } else { 0.01 };
        let user = (cpu / 1e3 * share).round() * 1e3;
        match case {
            "versus/user" => user,
            "versus/sys" => cpu - user,
            _ if is_crowded && at * 7 % 5 < 3 => cpu * 30.0,
            _ => cpu * 1.01,
        }
    };
    let row = |case: &str| {
        let mut row = measured(case, 1.0, &[]);
        row["group"] = "versus".into();
        row["ops_per_sample"] = 1.into();
        row["discarded"] = 0.into();
        row["samples"] = (0..number).map(|at| of(case, at)).collect();
        row["processes"] = (0..number).map(|_| json!({"rounds": 1, "discarded": []})).collect();
        row
    };
    run["measurements"] = ["versus/real", "versus/user", "versus/sys"].into_iter().map(row).collect();
    run["session"] = json!({
        "id": "20261121-015427-0000000f", "environment": "host", "place": place, "of": 2, "paired": true,
        "command": {"line": format!("command {place}"), "shell": "sh -c"},
    });
    run
}

#[test]
fn by_cpu_goes_by_processor_time() {
    let home = Home::new();
    let base = command(BASE, 0, 5.0, true);
    let slow = command(OTHER, 1, 50.0, false);
    let (found, said) = status_alone(&home, &base, &slow, SLOWER);
    assert_eq!(found, 3, "{said}");
    assert!(said.ends_with("; processor time decides it: --by cpu"), "{said}");
    let by_cpu = |other: &Value, verdict: &str| {
        status_alone(&home, &base, other, &["--fail-on", verdict, "--by", "cpu"])
    };
    assert_eq!(by_cpu(&slow, "slower"), (1, "by processor time versus/real is slower".to_owned()));
    assert_eq!(by_cpu(&slow, "faster").0, 0);
    assert_eq!(by_cpu(&command(OTHER, 1, 5.0, false), "different"), (0, String::new()));
    // In the other direction: if a clock of 10 ms ticks for a command, only real time decides.
    let mut ticks = [command(BASE, 0, 5.0, false), command(OTHER, 1, 50.0, false)];
    for row in ticks.iter_mut().flat_map(|run| run["measurements"].as_array_mut().expect("rows")) {
        let of = |at: usize| if row["benchmark"] == "versus/user" { 1e7 * (1 + at % 2) as f64 } else { 0.0 };
        if row["benchmark"] != "versus/real" {
            row["samples"] = (0..40).map(of).collect();
        }
    }
    let [base, slow] = ticks;
    let (found, said) = status_alone(&Home::new(), &base, &slow, &["--fail-on", "slower", "--by", "cpu"]);
    assert_eq!(found, 3, "{said}");
    assert!(said.ends_with("; real time decides it: --by real"), "{said}");
}
