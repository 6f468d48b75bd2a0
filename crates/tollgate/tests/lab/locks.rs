//! `tollgate lab locks`: the table of the test-and-set by the page-fault handler, and the orders of its programs.

use serde_json::Value;

use super::common::Home;
use super::has_qemu;

fn locks(home: &Home, on: &str) -> Value {
    home.json(["lab", "locks", "--on", on, "--format", "json"])
}

fn figure(document: &Value, name: &str, field: &str) -> u64 {
    let rows = document["locks"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["name"] == name).expect(name);
    row[field].as_f64().expect("a number") as u64
}

#[test]
fn the_table_has_the_rows_of_the_publication_and_what_a_restart_takes() {
    let home = Home::new();
    let document = locks(&home, "interpreter");
    assert_eq!((&document["unit"], &document["maker"]), (&"instructions".into(), &"GenuineIntel".into()));
    let rows = document["locks"].as_array().expect("a list");
    let names: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["group"].as_str().expect("text"), row["name"].as_str().expect("text")))
        .collect();
    let locks =
        ["restart", "restart-test", "cli", "lamport", "xchg", "call"].map(|name| format!("lock-{name}"));
    assert_eq!(names.iter().filter(|row| row.0 == "lock").map(|row| row.1).collect::<Vec<_>>(), locks);
    let restarts = ["restart-by-fault", "restart-by-test"];
    assert_eq!(names.iter().filter(|row| row.0 == "restart").map(|row| row.1).collect::<Vec<_>>(), restarts);
    for row in rows {
        assert_eq!(row["per_operation"].as_f64(), row["instructions"].as_f64(), "two counts: {row}");
        assert_eq!(row["why"], Value::Null);
    }
    let instructions = |name| figure(&document, name, "instructions");
    // xchg: mov, xchg, test, jz, and the release. The page: mov, call, its 6, test, jz, and the release.
    assert_eq!((instructions("lock-xchg"), instructions("lock-restart")), (5, 11));
    assert_eq!(
        figure(&document, "lock-restart", "writes"),
        3,
        "the return address, the lock, and its release"
    );
    // As published: at least 7 times as fast as the system call, and about as fast as without interrupts.
    assert!(instructions("lock-call") > 7 * instructions("lock-restart"));
    assert!(instructions("lock-restart") < 2 * instructions("lock-cli"));
    assert!(instructions("restart-by-fault") > instructions("restart-by-test"), "what figure 11 is for");
}

#[test]
fn qemu_and_the_interpreter_count_the_same_of_each_lock() {
    if !has_qemu() {
        return;
    }
    let home = Home::new();
    let (own, qemu) = (locks(&home, "interpreter"), locks(&home, "qemu"));
    assert_eq!((&qemu["provenance"], &qemu["unit"]), (&"qemu-tcg".into(), &"instructions".into()));
    assert_eq!(own["locks"], qemu["locks"]);
}

#[test]
fn locks_are_kept_as_a_run_and_shown_in_80_columns() {
    let home = Home::new();
    let text = home.output(["lab", "lock-x*", "restart-by-test", "--on", "interpreter", "--label", "locks"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let kept = home.json(["show", "locks", "--format", "json"]);
    let cases: Vec<String> = kept["measurements"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["benchmark"].as_str().or(it["case"].as_str()).expect("a name").to_owned())
        .collect();
    assert_eq!(cases, ["lab/lock-xchg", "lab/restart-by-test"]);
    assert_eq!(kept["measurements"][0]["unit"], "instructions");
}

#[test]
fn every_order_of_the_locks_holds_and_every_mutant_lets_a_violation_through() {
    let home = Home::new();
    let document = home.json(["lab", "locks", "--prove", "--format", "json"]);
    assert!(home.files().is_empty(), "a proof is not kept");
    let proofs = document["proofs"].as_array().expect("a list");
    let (mutants, locks): (Vec<&Value>, Vec<&Value>) =
        proofs.iter().partition(|proof| proof["mutant"] == true);
    assert_eq!(locks.len(), 6 * 2, "two programs, and three");
    for proof in &locks {
        assert_eq!((&proof["verdict"], &proof["complete"]), (&"holds".into(), &true.into()), "{proof}");
        assert_eq!(proof["counterexample"], Value::Null);
        assert!(proof["preemption_points"].as_u64().is_some_and(|points| points > 1000), "{proof}");
    }
    let two = locks.iter().filter(|proof| proof["programs"] == 2);
    assert!(two.clone().all(|proof| proof["most_preemptions"] == Value::Null) && two.count() == 6);
    assert!(mutants.len() >= 4);
    for proof in &mutants {
        assert_eq!((&proof["verdict"], &proof["as_expected"]), (&"violated".into(), &true.into()), "{proof}");
        let steps = proof["counterexample"]["steps"].as_array().expect("steps");
        let changes = steps.last().expect("a step")["changes"].to_string();
        let end = match proof["counterexample"]["harm"].as_str().expect("a harm") {
            "exclusion" => "inside = 2",
            "crash" => "a fault ends the program",
            "stuck" => "it is to be repeated",
            other => other,
        };
        assert!(changes.contains(end), "{end}: {changes}");
    }
}

#[test]
fn the_published_entry_loses_a_stack_and_the_mended_one_holds() {
    let home = Home::new();
    let document = home.json(["lab", "entries", "--prove", "--format", "json"]);
    let proofs = document["proofs"].as_array().expect("a list");
    let of =
        |name: &str| proofs.iter().find(|proof| proof["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(
        (&of("entry-frame")["verdict"], &of("entry-frame")["complete"]),
        (&"holds".into(), &true.into())
    );
    assert_eq!(of("entry-gs8")["verdict"], "violated");
    assert!(proofs.iter().all(|proof| proof["as_expected"] == true && proof["programs"] == 2), "{document}");
}

#[test]
fn an_entry_of_one_s_own_is_tried_at_every_interruption() {
    if tollgate_os::programs::find("cc").is_none() {
        return println!("skipped: there is no cc");
    }
    let home = Home::new();
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab");
    let of = |file: &str, format: &str| {
        let mut program = home.tollgate(["lab", "entries", "--prove", file, "--format", format]);
        program.current_dir(&docs).output().expect("the program starts")
    };
    let right = of("entry.s", "json");
    let document: Value = serde_json::from_slice(&right.stdout).expect("JSON");
    let proof = &document["proofs"][0];
    assert_eq!(
        (right.status.code(), &proof["verdict"], &proof["counterexample"]),
        (Some(0), &"holds".into(), &Value::Null)
    );
    let points = proof["points"].as_array().expect("points");
    assert!(points.iter().all(|point| point["nmi"] == serde_json::json!([])), "{proof}");
    assert!(points.iter().any(|point| point["interrupt"] == Value::Null), "interrupts are off somewhere");
    let wrong = of("entry-gs8.s", "table");
    let text = String::from_utf8(wrong.stdout).expect("text");
    assert_eq!(wrong.status.code(), Some(1), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in [
        "a stack is lost",
        "NMI: its frame is pushed on the caller's stack",
        "a stack that is not its own",
        "+2bh",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    home.file("other.s", "nop\n");
    for (arguments, says) in [
        (&["lab", "--prove", "other.s"][..], "--prove: other.s has no symbol syscall_entry"),
        (&["lab", "entry-frame", "other.s", "--prove"], "one after the other"),
        (&["lab", "entries", "no.s", "--prove"], "no.s cannot be read"),
    ] {
        let refusal = home.refusal(arguments.to_vec());
        assert!(refusal.contains(says), "{refusal}");
    }
}
