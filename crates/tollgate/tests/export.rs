//! `tollgate export`: its formats, its files and its refusals.

use crate::common;
use common::text::refusals;
use common::{Home, document};
use serde_json::Value;

fn home() -> Home {
    let home = Home::new();
    home.keep(&document("20261121-015427-0001", Some("native"), 1.0));
    home.keep(&document("20261121-015428-0002", Some("vm"), 1.5));
    home
}

#[test]
fn each_format_has_the_estimates() {
    let home = home();
    let export = |format: &str| home.output(["export", "native", "--format", format]);

    let metrics = export("openmetrics");
    let estimate = metrics
        .lines()
        .find(|line| line.starts_with("tollgate_latency_seconds{") && line.contains("entry/syscall"));
    let value: f64 = estimate.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect("a median");
    assert!((80e-9..81e-9).contains(&value), "{value}");
    assert!(
        !metrics.contains("run=\"20261121-015427-0001\",suite"),
        "series keep their names from run to run"
    );
    assert!(
        metrics.contains(
            "tollgate_cases{status=\"skipped\",environment=\"vm\",label=\"native\",machine=\"\"} 1\n"
        ),
        "{metrics}"
    );

    let bmf: Value = serde_json::from_str(&export("bmf")).expect("JSON");
    let latency = &bmf["entry/syscall"]["latency"];
    let figure = |name: &str| latency[name].as_f64().expect("a number");
    assert!(figure("lower_value") <= figure("value") && figure("value") <= figure("upper_value"));
    assert!(bmf.get("entry/int80").is_none(), "a skipped case has no value");

    let csv = home.output(["export", "native", "vm", "--format", "csv"]);
    assert_eq!(csv.matches("\r\n").count(), 1 + 2 * 5);
    assert!(
        csv.contains(
            "20261121-015428-0002,vm,,vm,2026-11-21T01:54:27Z,6.1.1.5,,entry,entry/int80,,latency,skipped,"
        ),
        "{csv}"
    );

    let rows: Vec<Value> =
        export("ndjson").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 5);
    assert_eq!((&rows[1]["benchmark"], &rows[1]["count"]), (&"entry/syscall".into(), &480.into()));
    assert_eq!((&rows[4]["status"], &rows[4]["why"]), (&"failed".into(), &"it hung".into()));
}

#[test]
fn several_runs_have_different_labels() {
    let home = home();
    let metrics = home.output(["export", "native", "vm", "--format", "openmetrics"]);
    let is_estimate =
        |line: &&str| line.starts_with("tollgate_latency_seconds{") && line.contains("entry/syscall\"");
    let of = |run: &str| metrics.lines().filter(is_estimate).filter(|line| line.contains(run)).count();
    assert_eq!((of("run=\"20261121-015427-0001\""), of("run=\"20261121-015428-0002\"")), (1, 1));
    let refusal = home.refusal(["export", "native", "vm", "--format", "bmf"]);
    assert_eq!(
        refusal,
        "--format bmf: the Bencher Metric Format has one value per benchmark, so it takes one run; export each by itself"
    );
}

#[test]
fn a_file_is_replaced_whole_or_left_alone() {
    let home = home();
    let file = home.file("out/tollgate.prom", "old");
    home.tollgate(["export", "native", "--format", "openmetrics", "-o", &file]).assert().success().stdout("");
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(text.starts_with("# TYPE ") && text.ends_with("# EOF\n"));
    assert_eq!(home.files().iter().filter(|name| name.starts_with("out/")).count(), 1, "nothing beside it");
    let refusal = home.refusal(["export", "unheard-of", "--format", "csv", "-o", &file]);
    assert_eq!(
        refusal,
        "no kept run has the label or id \"unheard-of\", and there is no such file; `tollgate runs` shows what is kept"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("read"), text);
    for path in ["/proc/nowhere/out.csv", "out"] {
        let refusal = home.refusal(["export", "native", "--format", "csv", "--out", path]);
        assert!(refusal.starts_with(&format!("--out {path}: ")), "{refusal}");
    }
    insta::assert_snapshot!("no-format", refusals(&home, ["export native --format xml", "export native"]));
}

#[test]
fn a_full_disk_is_reported() {
    let home = home();
    if !std::path::Path::new("/dev/full").exists() {
        println!("skipped: no /dev/full");
        return;
    }
    let refusal = home.refusal(["export", "native", "--format", "ndjson", "-o", "/dev/full"]);
    assert_eq!(refusal, "--out /dev/full: No space left on device");
}
