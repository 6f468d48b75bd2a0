//! The published experiment in a real kernel: the module is built, loaded in a guest, and emulates an invalid opcode in both rings.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use common::Home;
use serde_json::{Value, json};

fn row<'a>(document: &'a Value, benchmark: &str, params: &Value) -> &'a Value {
    let rows = document["measurements"].as_array().expect("rows");
    let is_meant = |row: &&Value| row["benchmark"] == benchmark && row["params"] == *params;
    rows.iter().find(is_meant).unwrap_or_else(|| panic!("no row {benchmark} {params}"))
}

/// The instructions of an operation, if all batches agree.
fn count(row: &Value) -> f64 {
    assert_eq!(row["status"], "measured", "{row}");
    assert_eq!((&row["unit"], &row["provenance"]), (&json!("instructions"), &json!("qemu-icount")), "{row}");
    let samples: Vec<f64> =
        row["samples"].as_array().expect("samples").iter().filter_map(Value::as_f64).collect();
    assert!(!samples.is_empty() && samples.iter().all(|sample| *sample == samples[0]), "{samples:?}");
    samples[0]
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_module_emulates_an_invalid_opcode_in_both_rings() {
    let home = Home::new();
    if let Some(why) = home.no_guest() {
        return println!("skipped: {why}");
    }
    let mut counts = Vec::new();
    for _ in 0..2 {
        let kept = home.path().join("run.json");
        let path = kept.to_str().expect("a path");
        home.output([
            "run",
            "traps/invalid-opcode",
            "traps/imul",
            "--in",
            "vm:exact",
            "--quiet",
            "--out",
            path,
        ]);
        let document: Value = serde_json::from_slice(&std::fs::read(&kept).expect("a run")).expect("JSON");
        std::fs::remove_file(&kept).expect("it is there");
        let of = |by: &str| row(&document, "traps/invalid-opcode", &json!({"by": by, "opcode": "ud1"}));
        let why = of("module-ring3")["why"].as_str().unwrap_or_default();
        if why.starts_with("there is no module: ") && why.contains("(package ") {
            return println!("skipped: {why}");
        }
        let signal = row(&document, "traps/invalid-opcode", &json!({"opcode": "ud1"}));
        let [imul, signal, program, kernel] =
            [row(&document, "traps/imul", &json!({})), signal, of("module-ring3"), of("module-ring0")]
                .map(count);
        // Two instructions for the operands, and the instruction itself.
        assert_eq!(imul, 3.0);
        // A signal is delivered, handled and returned from; the module emulates within the trap. A trap in ring 0 changes no
        // stack.
        assert!(
            kernel > 10.0 * imul && kernel < program && 2.0 * program < signal,
            "{kernel} {program} {signal}"
        );
        for by in ["module-ring3", "module-ring0"] {
            let counted = &of(by)["counted"];
            assert_eq!(
                (&counted["what"], &counted["events"]),
                (&json!("traps"), &counted["operations"]),
                "{by}"
            );
            // Translators execute the published opcode as a mov; processors refuse it.
            let published = row(&document, "traps/invalid-opcode", &json!({"by": by}));
            match published["status"].as_str() {
                Some("measured") => assert_eq!(count(published), count(of(by))),
                _ => {
                    let why = published["why"].as_str().unwrap_or_default();
                    assert!(
                        why.starts_with("f0 89 c8 does not trap here: it ran as a plain mov"),
                        "{published}"
                    );
                }
            }
        }
        counts.push([imul, program, kernel]);
    }
    assert_eq!(counts[0], counts[1], "another boot has the same counts");
}

#[test]
fn outside_a_guest_there_is_no_module() {
    let home = Home::new();
    let document = home.json(["run", "traps/invalid-opcode", "--processes", "1", "--quiet", "--format=json"]);
    for by in ["module-ring3", "module-ring0"] {
        let row = row(&document, "traps/invalid-opcode", &json!({"by": by}));
        assert_eq!(row["status"], "skipped");
        assert_eq!(row["why"], "the module is for a guest of tollgate's own: --in vm");
    }
}
