//! Directories of stored runs: the files of `run --store`, finding runs, and the verbs of `store`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use crate::common;
use common::{Home, document};
use serde_json::{Value, json};

const ID: &str = "20261121-015427-00000001";

/// A home with a directory of three stored runs, two of them on one day.
fn stored() -> Home {
    let home = Home::new();
    let mut runs = Vec::new();
    for (number, (day, label)) in [("20", "first"), ("21", "second"), ("21", "third")].into_iter().enumerate()
    {
        let mut run =
            document(&format!("202611{day}-015427-0000000{number}"), Some(label), 1.0 + number as f64 / 10.0);
        run["started"] = format!("2026-11-{day}T01:54:27Z").into();
        run["facts"]["run.machine"] =
            serde_json::json!({"status": "known", "value": "node-7", "source": "--machine"});
        runs.push(home.file(&format!("made/{label}.json"), run.to_string()));
    }
    let arguments = ["store", "add", "fleet"].into_iter().chain(runs.iter().map(String::as_str));
    home.tollgate(arguments).assert().success().stdout("3 runs are stored in fleet.\n");
    home
}

#[test]
fn a_run_is_stored_in_the_layout_and_found_again() {
    let home = Home::new();
    let run = [
        "run",
        "entry/syscall",
        "entry/call",
        "--processes",
        "1",
        "--quiet",
        "--store",
        "fleet",
        "--machine",
        "node-7",
    ];
    let shown = home.json(run.into_iter().chain(["--format", "json", "--label", "mine"]));
    let id = shown["id"].as_str().expect("an id");
    let day = &shown["started"].as_str().expect("a moment")[..10];
    assert_eq!(shown["kept"], format!("fleet/runs/{id}.json"));
    let rows = format!("fleet/schema=2/date={day}/{id}.ndjson");
    assert!(home.files().contains(&rows), "{:?}", home.files());
    assert!(home.files().iter().all(|file| file.starts_with("fleet/")), "it is kept there and nowhere else");
    let listed = home.json(["store", "list", "fleet", "--format", "json"]);
    let row = &listed["runs"][0];
    assert_eq!(
        (&row["machine"], &row["label"], &row["document"]),
        (&"node-7".into(), &"mine".into(), &true.into())
    );
    assert_eq!(row["kernel"], shown["facts"]["kernel.release"]["value"]);
    assert_eq!(row["fault"], Value::Null);
    assert!(home.path().join(format!("fleet/env/{}.json", row["env_id"].as_str().expect("a name"))).exists());
    for meant in [
        "fleet",
        "./fleet",
        "fleet:last",
        "fleet:mine",
        &format!("fleet:{id}"),
        &format!("./fleet:{}", &id[..15]),
    ] {
        assert_eq!(home.json(["show", meant, "--format", "json"])["id"], id, "{meant}");
    }
    let compared = home.json(["compare", "fleet:mine", "fleet", "--format", "json"]);
    assert_eq!(compared["base"]["id"], id);
}

#[test]
fn a_run_is_not_begun_where_it_cannot_be_stored() {
    let home = Home::new();
    let refusal = home.refusal(["run", "entry/call", "--time", "1", "--store", "/proc/fleet"]);
    assert!(refusal.starts_with("runs cannot be stored in /proc/fleet: "), "{refusal}");
    let refusal = home.refusal(["run", "--store", "fleet", "--out", "file.json"]);
    assert_eq!(refusal, "the argument '--store <DIR>' cannot be used with '--out <FILE>'");
    let refusal = home.refusal(["run", "--machine", "a b"]);
    assert_eq!(
        refusal,
        "invalid value 'a b' for '--machine <NAME>': a machine's name has 1 to 253 of A-Z a-z 0-9 . _ : - and begins with a \
         letter or digit"
    );
}

#[test]
fn nothing_is_left_of_a_run_that_could_not_be_stored() {
    let home = Home::new();
    let run = home.file("run.json", document(ID, None, 1.0).to_string());
    home.file("fleet/schema=2/date=2026-11-21", "a file where a directory is wanted");
    let refusal = home.refusal(["store", "add", "fleet", &run]);
    assert!(refusal.starts_with("the run was not kept: fleet: schema=2/date=2026-11-21/"), "{refusal}");
    assert!(home.files().iter().all(|file| !file.contains(ID)), "{:?}", home.files());
    let mut timeless = document(ID, None, 1.0);
    timeless["started"] = "../../elsewhere".into();
    let timeless = home.file("timeless.json", timeless.to_string());
    let refusal = home.refusal(["store", "add", "elsewhere", &timeless]);
    assert_eq!(
        refusal,
        "the run was not kept: elsewhere: the run started at \"../../elsewhere\", which is not a time such as 2026-11-21T01:54:27Z"
    );
}

#[test]
fn a_stored_run_is_stored_once() {
    let home = stored();
    let before = home.files();
    let refusal = home.refusal(["store", "add", "fleet", "fleet:second"]);
    assert!(refusal.ends_with("already exists"), "{refusal}");
    assert_eq!(home.files(), before);
}

#[test]
fn writers_do_not_disturb_each_other() {
    let home = Home::new();
    let runs: Vec<String> = (0..8)
        .map(|number| {
            let run = document(&format!("20261121-015427-0000000{number}"), None, 1.0);
            home.file(&format!("made/{number}.json"), run.to_string())
        })
        .collect();
    std::thread::scope(|scope| {
        for run in &runs {
            scope.spawn(|| home.tollgate(["store", "add", "fleet", run]).assert().success());
        }
    });
    let listed = home.json(["store", "list", "fleet", "--format", "json"]);
    let runs = listed["runs"].as_array().expect("a list");
    assert!(runs.len() == 8 && runs.iter().all(|run| run["fault"].is_null()), "{listed}");
    assert_eq!(listed["fact_sets"], 1, "equal machines share their facts");
    assert!(home.files().iter().all(|file| !file.ends_with(".tmp")), "{:?}", home.files());
}

#[test]
fn a_store_is_a_run_for_who_needs_one() {
    let home = stored();
    let id =
        |meant: &str| home.json(["show", meant, "--format", "json"])["label"].as_str().map(str::to_owned);
    assert_eq!(id("fleet").as_deref(), Some("third"));
    assert_eq!(id("fleet:first").as_deref(), Some("first"));
    assert_eq!(id("fleet:20261120").as_deref(), Some("first"));
    assert_eq!(id("fleet/runs/20261121-015427-00000001.json").as_deref(), Some("second"));
    home.keep_others_like(&document("20261120-015427-00000000", None, 1.0));
    let compared = home.json(["compare", "fleet:first", "fleet", "--format", "json"]);
    let row =
        compared["rows"].as_array().expect("rows").iter().find(|row| row["benchmark"] == "entry/syscall");
    assert_eq!(row.expect("a row")["verdict"], "slower");
    let rows = home.output(["export", "fleet", "fleet:first", "--format", "csv"]);
    let whose = |row: &str| row.split(',').take(3).skip(1).map(str::to_owned).collect::<Vec<_>>();
    let mut whose: Vec<_> = rows.lines().map(whose).collect();
    whose.dedup();
    assert_eq!(whose, [["label", "machine"], ["third", "node-7"], ["first", "node-7"]]);
    // A label is a label even if a directory has its name.
    home.keep(&document("20261121-015440-0001", Some("fleet"), 1.0));
    assert_eq!(id("fleet").as_deref(), Some("fleet"));
    assert_eq!(id("./fleet").as_deref(), Some("third"));

    let rows = "fleet/schema=2/date=2026-11-20/20261120-015427-00000000.ndjson";
    let refused =
        ["fleet:unheard-of", "fleet:2026112", "./made", rows].map(|meant| home.refusal(["show", meant]));
    insta::assert_snapshot!("no-run", refused.join("\n"));
    fs::remove_dir_all(home.path().join("fleet/runs")).expect("removed");
    assert_eq!(
        home.refusal(["compare", "./fleet", "./fleet"]),
        "./fleet has no run documents in runs/; without their samples nothing can be shown or compared"
    );
}

#[test]
fn the_list_is_by_day_and_says_what_cannot_be_read() {
    let home = stored();
    home.file("fleet/schema=2/date=2026-11-22/20261122-000000-00000009.ndjson", "{\"schema\":2}\n");
    // A file whose name the layout does not have is ignored, and no link is followed.
    home.file("fleet/schema=2/date=2026-11-22/.20261122-000000-0000000d.ndjson.00c0ffee.tmp", "{");
    home.file("fleet/schema=2/date=2026-11-22/notes.txt", "mine");
    home.file("fleet/schema=3/date=2026-11-21/x.ndjson", "{}");
    home.file("fleet/README", "may be there");
    let facts = home.path().join("fleet/env/0123456789abcdef0123456789abcdef.json");
    symlink("/etc/passwd", facts).expect("linked");
    symlink(
        home.path().join("fleet/schema=2/date=2026-11-22"),
        home.path().join("fleet/schema=2/date=2026-11-23"),
    )
    .expect("linked");
    let tables = [60, 80, 120].map(|columns| {
        let mut list = home.tollgate(["store", "list", "fleet"]);
        let output = list.env("COLUMNS", columns.to_string()).assert().success().get_output().stdout.clone();
        let table = String::from_utf8(output).expect("text");
        assert!(table.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{table}");
        // The size of all files comes last; it depends on this build.
        table.rsplit_once(", ").expect("a size").0.to_owned()
    });
    insta::assert_snapshot!("list", tables.join("\n\n"));
    let empty = Home::new();
    fs::create_dir_all(empty.path().join("fleet/runs")).expect("made");
    empty.tollgate(["store", "list", "fleet"]).assert().success().stdout("");
    let refused = [["list", "."], ["list", "nowhere"]].map(|[verb, dir]| empty.refusal(["store", verb, dir]));
    assert_eq!(
        refused,
        [
            ". is not a directory of stored runs; `tollgate run --store DIR` makes one",
            "nowhere cannot be read: No such file or directory"
        ]
    );
}

#[test]
fn the_page_has_the_columns_that_there_are() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet.md")).expect("the page");
    let home = Home::new();
    let mut run = document(ID, None, 1.0);
    let knob = json!({"path": "/proc/sys/vm/swappiness", "was": "60", "value": "1"});
    run["session"] = json!({
        "id": "20261121-015427-00000000", "environment": "host", "place": 0, "of": 2, "paired": true, "knob": knob,
        "command": {"line": "true"},
    });
    home.keep(&run);
    let line =
        home.output(["export", "last", "--format", "ndjson"]).lines().next().expect("a line").to_owned();
    let row: Value = serde_json::from_str(&line).expect("JSON");
    let columns: BTreeSet<&str> = row.as_object().expect("an object").keys().map(String::as_str).collect();

    let section = page
        .split("\n## The lines\n")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the section");
    let first_cells =
        section.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let described: BTreeSet<&str> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(described, columns);

    let block = |info: &str| {
        page.split(&format!("```sql {info}\n"))
            .nth(1)
            .and_then(|rest| rest.split("\n```").next())
            .expect("a block")
    };
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_owned).collect()
    };
    for engine in ["duckdb", "spark"] {
        let names = words(block(engine).split(';').next().expect("the first view"));
        let missing: Vec<&&str> = columns.iter().filter(|column| !names.contains(**column)).collect();
        assert!(missing.is_empty(), "{engine}: {missing:?}");
    }
}
