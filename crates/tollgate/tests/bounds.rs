//! Bounds on the resources that a hostile document takes, and on the part of it that a message repeats.

mod common;

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::Home;
use tollgate_model::traced::Ended;
use tollgate_os::process::{Status, wait4};

const SIZE: usize = 8 << 20;
/// The program's own memory, with a margin for an unoptimized build.
const BASE: u64 = 64 << 20;

struct Cost {
    status: i32,
    stderr: String,
    memory: u64,
}

#[expect(clippy::zombie_processes, reason = "wait4(2) waits for it")]
fn cost(home: &Home, arguments: &[&str]) -> Cost {
    let mut child = Command::new(common::program())
        .env("XDG_DATA_HOME", home.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stderr = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    // No other code waits for the child.
    let ended = wait4(child.id() as i32, 0).expect("our own child").expect("its end");
    let Status::Ended(Ended::Exit(status)) = ended.status else { unreachable!("{:?}", ended.status) };
    Cost { status, stderr, memory: ended.usage.maxrss_kib * 1024 }
}

/// Writes a document piece by piece: what this process has in memory counts as its child's (execve(2) begins in it).
fn write(path: &Path, pieces: &mut dyn Iterator<Item = &str>) -> u64 {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    for piece in pieces {
        file.write_all(piece.as_bytes()).expect("written");
    }
    file.flush().expect("written");
    std::fs::metadata(path).expect("there").len()
}

const HEAD: &str = r#"{"schema": 2,"tool":{"name":"tollgate","version":"0.1.0"},"id":"20261121-015427-3f2a91c4","label":null,"environment":"vm","started":"2026-11-21T01:54:27Z","finished":"2026-11-21T01:55:27Z","facts":{"#;
const MEASURED: &str = r#"},"measurements":[{"benchmark":"trace/command","params":{},"status":"measured","unit":"ns","provenance":"hardware","ops_per_sample":500,"clock_hz":2000000000,"discarded":0,"group":"entry""#;
const ONE_SAMPLE: &str = r#","samples":[1.0],"processes":[{"rounds":1,"discarded":[]}]"#;
const END: &str = "}]}";
const TIMES: &str = r#""on_cpu_ns":0,"sleep_ns":0,"disk_ns":0,"runqueue_ns":0"#;
const TRACED: &str = r#","traced":[{"command":["a"],"backend":"bpf","ended":{"exit":0},"processors":1,"wall_ns":1,"user_ns":0,"sys_ns":0,"processes":1,"threads":1"#;

/// The text before the entries, an entry, the text after them, and the message of `show`, which is empty for a valid run.
struct Hostile {
    name: &'static str,
    before: String,
    entry: String,
    after: String,
    said: &'static str,
}

fn hostile() -> Vec<Hostile> {
    let document = |name, before: String, entry: &str, after: String, said| Hostile {
        name,
        before,
        entry: entry.to_owned(),
        after,
        said,
    };
    let of = |name, before: &str, entry: &str, after: &str, said| {
        document(name, format!("{HEAD}{MEASURED}{before}"), entry, format!("{after}{END}"), said)
    };
    let call = format!(
        r#"{{"name":"r","count":0,"errors":0,"total_ns":0,"max_ns":0,{TIMES},"histogram":[[1,1],[2,1]]}},"#
    );
    let file = format!(r#"{{"path":"a","operations":[{{"operation":"r","count":0,"errors":0,{TIMES}}}]}},"#);
    let last_call = call.trim_end_matches(',');
    let last_file = file.trim_end_matches(',');
    let samples = SIZE / "100.5,".len() + 1;
    vec![
        of(
            "samples",
            r#","samples":["#,
            "100.5,",
            &format!(r#"1.0],"processes":[{{"rounds":{samples},"discarded":[]}}]"#),
            "",
        ),
        of(
            "short samples",
            r#","samples":["#,
            "1,",
            r#"1],"processes":[{"rounds":1,"discarded":[]}]"#,
            "samples of less than 4 bytes",
        ),
        of(
            "calls",
            &format!("{ONE_SAMPLE}{TRACED},\"calls\":["),
            &call,
            &format!("{last_call}]}}]"),
            "more than 65536 entries",
        ),
        of(
            "files",
            &format!("{ONE_SAMPLE}{TRACED},\"calls\":[],\"files\":["),
            &file,
            &format!("{last_file}]}}]"),
            "more than 65536 entries",
        ),
        of("notes", &format!("{ONE_SAMPLE},\"notes\":["), "\"a\",", "\"a\"]", "more than 262144 texts"),
        of(
            "processes",
            r#","samples":[1.0],"processes":["#,
            r#"{"rounds":1,"ran":[0],"discarded":[0]},"#,
            r#"{"rounds":1,"discarded":[]}]"#,
            "do not add up",
        ),
        of("unknown numbers", &format!("{ONE_SAMPLE},\"x\":["), "1,", "1]", ""),
        of("unknown lists", &format!("{ONE_SAMPLE},\"x\":["), "[],", "[]]", ""),
        of("nesting that nothing reads", &format!("{ONE_SAMPLE},\"x\":"), "[", "", "expected value"),
        of("nesting", r#","samples":"#, "[", "", "invalid type: sequence"),
        of("digits", r#","samples":["#, "1", "]", "number out of range"),
        document(
            "facts",
            HEAD.to_owned(),
            r#""a":{"status":"unknown","why":"a"},"#,
            r#""b":{"status":"unknown","why":"a"}},"measurements":[]}"#.to_owned(),
            "more than 4096 facts",
        ),
        document(
            "a fact's list",
            format!(r#"{HEAD}"a":{{"status":"known","source":"a","value":["#),
            "\"\",",
            r#"""]}},"measurements":[]}"#.to_owned(),
            "more than 262144 texts",
        ),
        document(
            "a fact's unknown field",
            format!(r#"{HEAD}"a":{{"x":["#),
            "{},",
            r#"0],"status":"known","source":"a","value":1}},"measurements":[]}"#.to_owned(),
            "",
        ),
        document(
            "parameters",
            format!(r#"{HEAD}}},"measurements":[{{"benchmark":"a","params":{{"#),
            r#""a":1,"#,
            r#""b":1},"status":"skipped","why":"a"}]}"#.to_owned(),
            "more than 16 parameters",
        ),
        document(
            "measurements",
            format!(r#"{HEAD}}},"measurements":["#),
            r#"{"benchmark":"a","params":{},"status":"skipped","why":"a"},"#,
            r#"{"benchmark":"a","params":{},"status":"skipped","why":"a"}]}"#.to_owned(),
            "more than 4096 measurements",
        ),
        document(
            "a text",
            HEAD.split("vm").next().unwrap_or_default().to_owned(),
            "\u{7f}",
            r#"","measurements":[]}"#.to_owned(),
            "a text of more than 1024 KiB",
        ),
        document("nothing", String::new(), "          ", String::new(), "is cut off"),
    ]
}

/// Arguments that name a file to be read, and bytes that reading an endless one may take beyond [`BASE`]: a small multiple of its bound.
const READERS: [(&[&str], u64); 9] = [
    (&["show", "/dev/zero"], 8 << 20),
    (&["compare", "/dev/zero", "/dev/zero"], 8 << 20),
    (&["decode", "/dev/zero"], 96 << 20),
    (&["decode", "ffff", "/dev/zero", "/dev/zero"], 96 << 20),
    (&["trace", "--from", "/dev/zero"], 8 << 20),
    (&["inspect", "config", "/dev/zero"], 8 << 20),
    (&["schedules", "/dev/zero"], 8 << 20),
    (&["lab", "--read", "/dev/zero"], 48 << 20),
    (&["lab", "--program", "/dev/zero"], 192 << 20),
];

#[test]
fn an_endless_input_ends_in_one_line_and_within_its_memory() {
    let home = Home::new();
    for (arguments, most) in READERS {
        let Cost { status, stderr, memory } = cost(&home, arguments);
        assert_eq!((status, stderr.lines().count()), (2, 1), "{arguments:?}: {stderr}");
        assert!(memory < BASE + most, "{arguments:?}: {} MiB", memory >> 20);
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn a_document_takes_at_most_four_times_its_size() {
    let home = Home::new();
    let path = home.path().join("hostile.json");
    let name = path.to_str().expect("text");
    for Hostile { name: what, before, entry, after, said } in hostile() {
        // Calls and files are long, so the count must be high enough to exceed the limit.
        let entries = (SIZE / entry.len()).max(70_000);
        let mut pieces = [before.as_str()]
            .into_iter()
            .chain(std::iter::repeat_n(entry.as_str(), entries))
            .chain([after.as_str()]);
        let size = write(&path, &mut pieces);
        let ways = [&["show", name][..], &["show", "--format", "json", name]];
        // A refusal comes before the format matters.
        for arguments in &ways[..if said.is_empty() { 2 } else { 1 }] {
            let Cost { status, stderr, memory } = cost(&home, arguments);
            assert!(memory <= BASE + 4 * size && memory < 1 << 30, "{what}: {memory} bytes for {size}");
            if said.is_empty() {
                assert_eq!(status, 0, "{what}: {stderr}")
            } else {
                assert!(status == 2 && stderr.contains(said), "{what}: {status} {stderr}");
                assert!(stderr.len() < 1000, "{what}: {stderr}");
            }
        }
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn a_list_is_looked_at_within_the_same_bounds() {
    let home = Home::new();
    let id = "20261121-015427-3f2a91c4";
    let entry = r#"{"benchmark":"a","params":{},"status":"skipped","why":"a"},"#;
    let head = format!(r#"{HEAD}}},"measurements":["#);
    let end = r#"{"benchmark":"a","params":{},"status":"skipped","why":"a"}]}"#;
    let path = home.path().join("tollgate/runs").join(format!("{id}.json"));
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    let entries = std::iter::repeat_n(entry, SIZE / entry.len());
    write(&path, &mut [head.as_str()].into_iter().chain(entries).chain([end]));
    let Cost { status, memory, .. } = cost(&home, &["runs"]);
    assert_eq!(status, 0);
    assert!(memory <= BASE + 4 * SIZE as u64, "{memory}");
    assert!(home.output(["runs"]).contains("more than 4096 measurements"));
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn a_message_quotes_200_characters_of_a_document() {
    let home = Home::new();
    let long = "x".repeat(100_000);
    let escapes = "\\u001b[2J\\u009b".repeat(10_000);
    for (from, to) in [
        ("\"environment\":\"vm\"", format!("\"environment\":\"{long}\"")),
        ("\"environment\":\"vm\"", format!("\"environment\":\"{escapes}\"")),
        ("\"schema\":2", format!("\"schema\":\"{long}\"")),
        ("\"id\":\"2026", format!("\"id\":\"{long}")),
        ("\"measurements\":[", format!("\"measurements\":[\"{long}\",")),
    ] {
        let document = common::document("20261121-015427-3f2a91c4", None, 1.0).to_string().replace(from, &to);
        assert!(document.len() > 90_000, "{from}");
        let file = home.file("long.json", document);
        // One line without control characters, as every refusal is.
        let said = home.refusal(["show", &file]).replace(&file, "");
        assert!(said.chars().count() < 450, "{said}");
        assert!(!said.contains(&"x".repeat(201)), "{said}");
    }
}
