//! `tollgate run environments`: the cost of environments themselves, as ordinary runs of a session.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use common::Home;
use serde_json::Value;

/// A session of environments, as JSON.
fn session(home: &Home, words: &[&str]) -> Value {
    let words = ["run", "--format=json", "--quiet"].into_iter().chain(words.iter().copied());
    home.json(words)
}

fn row<'r>(run: &'r Value, benchmark: &str, of: Option<&str>) -> &'r Value {
    let rows = run["measurements"].as_array().expect("measurements");
    let is_meant = |row: &&Value| row["benchmark"] == benchmark && row["params"]["of"].as_str() == of;
    rows.iter().find(is_meant).unwrap_or_else(|| panic!("{benchmark} {of:?} in {run}"))
}

fn median(run: &Value, benchmark: &str, of: Option<&str>) -> f64 {
    let row = row(run, benchmark, of);
    row["median"].as_f64().unwrap_or_else(|| panic!("{row}"))
}

#[test]
fn each_environment_has_a_run_and_starts_are_paired_by_round() {
    let home = Home::new();
    let words = ["environments", "--in", "host", "--in", "host:nice=5", "--processes", "12"];
    let shown = session(&home, &words);
    let runs = shown["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    for run in runs {
        let started = row(run, "environments/start", None);
        assert!(started["samples"].as_u64().is_some_and(|samples| samples >= 10), "{started}");
        assert_eq!(
            (started["unit"].as_str(), started["provenance"].as_str()),
            (Some("ns"), Some("hardware"))
        );
        // A process of this machine has no kernel of its own, so it has no phases.
        for (benchmark, of) in [("environments/memory", "inside"), ("environments/phase", "kernel")] {
            let row = row(run, benchmark, Some(of));
            assert_eq!(row["status"], "skipped", "{row}");
            assert!(row["why"].as_str().is_some_and(|why| why.contains("kernel")), "{row}");
        }
        assert!(median(run, "environments/memory", Some("processes")) > 1e5);
        let touch = median(run, "environments/first-touch", None);
        assert!(touch > 0.0 && touch < median(run, "environments/start", None));
        assert!(median(run, "environments/stop", None) > 0.0);
    }
    assert_eq!(row(&runs[0], "environments/start-to-shell", None)["status"], "measured");
    let other = row(&runs[1], "environments/start-to-shell", None);
    assert!(other["why"].as_str().is_some_and(|why| why.contains("settings")), "{other}");
    let compared = shown["comparison"]["rows"].as_array().expect("rows");
    let start = compared.iter().find(|row| row["benchmark"] == "environments/start").expect("a row");
    assert!(start["pairs"].as_u64().is_some_and(|pairs| pairs >= 10), "{start}");
    assert!(start["ratio_low"].as_f64() < start["ratio_high"].as_f64(), "{start}");
    let text = home.output(["show", "last"]);
    assert!(text.contains("Start, stop and memory of an environment") && text.contains("to shell"), "{text}");
    assert!(home.output(["explain", "environments/stop"]).contains("pidfd_open(2)"));
    assert!(home.output(["report", "last", "--out", "-"]).contains("environments/start"));
    assert!(home.output(["export", "last", "--format=csv"]).contains("environments/start"));
}

#[test]
fn starts_are_measured_on_the_host_and_in_a_container_and_one_environment_is_a_run() {
    let known = Home::new().json(["environments", "--format=json"]);
    let all = known["environments"].as_array().expect("environments");
    let container = all.iter().find(|one| {
        one["works"] == true && one["environment"].as_str().is_some_and(|name| name.starts_with("container"))
    });
    let Some(container) = container.and_then(|one| one["environment"].as_str()) else {
        return println!("skipped: no runtime of containers works here");
    };
    let home = Home::new();
    let shown =
        session(&home, &["environments/start*", "--in", "host", "--in", container, "--processes", "6"]);
    let runs = shown["runs"].as_array().expect("runs");
    for benchmark in ["environments/start", "environments/start-to-shell"] {
        assert!(runs.iter().all(|run| median(run, benchmark, None) > 0.0), "{benchmark}: {shown}");
    }
    assert_eq!(runs.len(), 2);
    assert!(
        runs[0]["measurements"].as_array().is_some_and(|rows| rows.len() == 2),
        "only what was asked for"
    );
    let alone = session(&home, &["environments/stop", "--in", container, "--processes", "1"]);
    assert!(median(&alone, "environments/stop", None) > 0.0);
    assert!(alone["session"].is_null());
}

#[test]
fn a_usual_run_leaves_environments_out_and_says_how_to_measure_them() {
    let home = Home::new();
    let listed = home.output(["list", "environments"]);
    let listed = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in ["start", "start-to-shell", "stop", "memory", "first-touch", "phase"] {
        assert!(listed.contains(&format!("environments/{name}")), "{listed}");
    }
    assert!(listed.contains("tollgate run environments"), "{listed}");
    let run = session(&home, &["entry/syscall", "environments/start", "--processes", "1"]);
    let start = row(&run, "environments/start", None);
    assert_eq!(start["status"], "not measured");
    assert_eq!(
        start["why"],
        "it belongs to environments: `tollgate run environments` measures it, in those that --in names or in all that work here"
    );
}

#[test]
fn environments_says_what_a_start_takes_and_what_was_installed() {
    let home = Home::new();
    let plain = home.json(["environments", "--format", "json"]);
    let of = |document: &Value| document["environments"].as_array().expect("environments").clone();
    assert!(of(&plain).iter().all(|one| one["cost"].is_null()), "{plain}");
    let timed = home.json(["environments", "--time", "--format", "json"]);
    for one in of(&timed) {
        let (name, cost) = (one["environment"].as_str().expect("a name"), &one["cost"]);
        if one["works"] == false || name.ends_with("HOST") || name.ends_with("PREFIX") {
            assert!(cost.is_null(), "{one}");
            continue;
        }
        let time = |of: &str| cost[of].as_f64();
        assert!(time("start_ns").is_some_and(|ns| ns > 1e5), "{one}");
        // A guest has no shell, which is reported.
        assert_eq!(time("shell_ns").is_some(), cost["why"].is_null(), "{one}");
        let installed = cost["installed"].as_array().expect("parts");
        assert_eq!(installed.is_empty(), name == "host", "{one}");
        assert!(
            installed.iter().all(|part| part["bytes"].as_u64().is_some_and(|bytes| bytes > 10_000)),
            "{one}"
        );
    }
}
