//! The last of the kept runs, documents that are not kept runs, and runs that cannot be written.

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::common;
use common::{Home, document};

/// Sets the modification time of a kept run's file: this long ago.
fn written(home: &Home, id: &str, ago: Duration) {
    let file = File::options().append(true).open(home.runs().join(format!("{id}.json"))).expect("kept");
    // A whole second, so that a changed fraction is visible.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    file.set_modified(now - ago).expect("a time");
}

fn last(home: &Home) -> String {
    home.json(["show", "last", "--format", "json"])["id"].as_str().expect("an id").to_owned()
}

#[test]
fn the_last_run_is_the_one_that_was_kept_last() {
    const OLD: &str = "20201121-015427-00000001";
    const NEW: &str = "20261121-015427-00000002";
    const FUTURE: &str = "99991231-235959-00000003";
    let home = Home::new();
    for id in [OLD, NEW, FUTURE] {
        home.keep(&document(id, Some("label"), 1.0));
    }
    // The order of the files' times counts, not the time in an id.
    for (id, ago) in [(FUTURE, 30), (NEW, 20), (OLD, 10)] {
        written(&home, id, Duration::from_secs(ago));
    }
    assert_eq!(last(&home), OLD);
    let listed = home.json(["runs", "--format", "json"]);
    let ids: Vec<&str> =
        listed["runs"].as_array().expect("runs").iter().filter_map(|run| run["id"].as_str()).collect();
    assert_eq!(ids, [FUTURE, NEW, OLD]);
    assert_eq!(home.json(["show", "label", "--format", "json"])["id"], OLD, "the newest that has the label");
    // Files that were copied within a second are ordered by their ids.
    for (id, ago) in [(FUTURE, 100), (NEW, 200), (OLD, 0)] {
        written(&home, id, Duration::from_secs(10) - Duration::from_millis(ago));
    }
    written(&home, FUTURE, Duration::from_secs(30));
    assert_eq!(last(&home), NEW);
}

#[test]
fn a_document_is_the_run_that_its_file_says() {
    const ID: &str = "20261121-015427-00000001";
    const OTHER: &str = "20261121-015427-00000002";
    let home = Home::new();
    let text = document(OTHER, Some("a-label"), 1.0).to_string();
    home.file(&format!("tollgate/runs/{ID}.json"), &text);
    for meant in ["last", ID, "20261121", "a-label"] {
        let said = home.refusal(["show", meant]);
        assert!(said.contains(&format!("holds the run {OTHER}")), "{said}");
    }
    assert!(home.output(["runs"]).contains(OTHER));
    // A file that is named on the command line may have any name.
    let file = home.file("any-name.json", &text);
    home.tollgate(["show", &file]).assert().success();
    let store = format!("store/runs/{ID}.json");
    home.file(&store, &text);
    assert!(home.refusal(["show", "store:last"]).contains(&format!("holds the run {OTHER}")));
}

#[test]
fn a_document_that_ends_before_it_begins_is_refused() {
    let home = Home::new();
    let mut run = document("20261121-015427-00000001", None, 1.0);
    run["finished"] = "2026-11-21T01:54:26Z".into();
    let file = home.file("backwards.json", run.to_string());
    let said = home.refusal(["show", &file]);
    assert!(
        said.contains("finished at 2026-11-21T01:54:26Z, before it started at 2026-11-21T01:54:27Z"),
        "{said}"
    );
}

/// Runs the program in a shell, which can start it with closed descriptors.
fn by_shell(home: &Home, command: &str) -> Output {
    let output = Command::new("sh")
        .args(["-c", command])
        .env("TOLLGATE", common::program())
        .env("XDG_DATA_HOME", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output();
    output.expect("a shell")
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn no_run_is_lost_to_a_closed_output() {
    let home = Home::new();
    let kept = |home: &Home| std::fs::read_dir(home.runs()).map_or(0, Iterator::count);
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    for (number, verb) in [(1, "lab --on interpreter"), (2, "run entry/call --processes 1 --quiet")] {
        let closed = by_shell(&home, &format!("\"$TOLLGATE\" {verb} >&-"));
        assert!(closed.status.success(), "{}", said(&closed));
        assert_eq!(kept(&home), number, "{verb}");
        assert!(
            said(&closed).contains("standard output is closed; the run is kept in "),
            "{}",
            said(&closed)
        );
    }
    // A descriptor that is open only for reading loses output as well.
    let reading = by_shell(&home, "\"$TOLLGATE\" lab --on interpreter 1</dev/null");
    assert!(said(&reading).contains("standard output is closed; the run is kept in "), "{}", said(&reading));
    assert_eq!(kept(&home), 3);

    let refused = by_shell(&home, "\"$TOLLGATE\" lab --on interpreter --out - >&-");
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("--out -: standard output is closed"), "{}", said(&refused));
    assert_eq!(kept(&home), 3);

    // The reader closes before the run ends: the run is kept as usual, and the message names its file.
    let broken = by_shell(&home, "{ \"$TOLLGATE\" lab --on interpreter --out -; echo $? >status; } | true");
    assert!(said(&broken).contains("; the run is kept in "), "{}", said(&broken));
    assert_eq!(std::fs::read_to_string(home.path().join("status")).expect("a status"), "2\n");
    assert_eq!(kept(&home), 4);
    let full = by_shell(&home, "\"$TOLLGATE\" lab --on interpreter --out - >/dev/full");
    assert_eq!(full.status.code(), Some(2));
    assert!(said(&full).contains("No space left on device; the run is kept in "), "{}", said(&full));
    assert_eq!(kept(&home), 5);

    // Nothing is closed, so there is no message.
    let open = by_shell(&home, "\"$TOLLGATE\" lab --on interpreter >/dev/null");
    assert!(open.status.success() && !said(&open).contains("closed"), "{}", said(&open));
    // The exit status reports the condition even without a reader.
    let home = Home::new();
    home.keep(&document("20261121-015427-00000001", Some("base"), 1.0));
    home.keep(&document("20261121-015427-00000002", Some("slow"), 3.0));
    let compared = by_shell(&home, "\"$TOLLGATE\" compare base slow --fail-on slower >&-");
    assert_eq!(compared.status.code(), Some(1), "{}", said(&compared));
}

#[test]
fn a_document_does_not_command_a_terminal() {
    let home = Home::new();
    let (mut ours, mut theirs) = (0, 0);
    // SAFETY: both descriptors are written to, and name, settings and size may be null (openpty(3)).
    let made = unsafe {
        libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), std::ptr::null())
    };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty(3) has just opened them, and nothing else owns them.
    let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    let csi = "\u{9b}31m\u{202e}";
    let mut traced = Command::new(common::program())
        .args(["trace", "--quiet", "--out", "-", "--", "sh", "-c", ":", csi])
        .env("XDG_DATA_HOME", home.path())
        .stdin(Stdio::null())
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    // A terminal has no end of file: reading fails once its last writer has closed it.
    let mut shown = Vec::new();
    let _ = std::io::Read::read_to_end(&mut File::from(ours), &mut shown);
    traced.wait().expect("ended");
    let shown = String::from_utf8(shown).expect("text");
    assert!(shown.contains("\\u009b31m\\u202e"), "{shown}");
    assert!(!shown.chars().any(|c| c.is_control() && !"\r\n".contains(c)), "{shown:?}");
    let document: serde_json::Value = serde_json::from_str(&shown.replace("\r\n", "\n")).expect("JSON");
    let command = &document["measurements"][0]["traced"][0]["command"];
    assert_eq!(command[3], csi);

    // A program that reads it gets the bytes unchanged.
    let piped = Command::new(common::program())
        .args(["trace", "--quiet", "--out", "-", "--", "sh", "-c", ":", csi])
        .env("XDG_DATA_HOME", home.path())
        .output()
        .expect("started");
    assert!(String::from_utf8_lossy(&piped.stdout).contains(csi));
}
