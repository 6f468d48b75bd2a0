//! `tollgate trace --keys`: a command on a terminal of its own, and its delay for each key.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common;
use common::{Home, program};
use serde_json::Value;

/// Echoes each key 5 ms after reading it, and writes how long that took by its own clock to standard error. `q` ends the
/// program with status 3.
const SLOW: &str = r#"
#include <stdio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int main(int count, char **arguments) {
    FILE *times = fopen(arguments[1], "w");
    struct termios raw;
    tcgetattr(0, &raw);
    raw.c_lflag &= ~(ICANON | ECHO);
    tcsetattr(0, TCSANOW, &raw);
    write(1, "> ", 2);
    for (char key; read(0, &key, 1) == 1 && key != 'q';) {
        long long began = now();
        struct timespec delay = {0, 5000000};
        nanosleep(&delay, 0);
        fprintf(times, "%lld\n", now() - began);
        write(1, &key, 1);
    }
    fclose(times);
    return 3;
}
"#;

fn slow(home: &Home) -> Option<String> {
    let (source, file) = (home.file("slow.c", SLOW), home.path().join("slow"));
    let built = Command::new("cc").args(["-O1", "-w", "-o"]).arg(&file).arg(source).status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: there is no C compiler");
        return None;
    }
    file.to_str().map(str::to_owned)
}

fn delays<'a>(document: &'a Value, of: &'a str) -> impl Iterator<Item = u64> + 'a {
    document["keys"].as_array().expect("keys").iter().filter_map(move |key| key[of].as_u64())
}

#[test]
fn a_delay_is_what_the_program_itself_takes() {
    let home = Home::new();
    let Some(slow) = slow(&home) else { return };
    let (keys, times) = (home.file("keys", "abcdefghij\u{1b}[Aq"), home.path().join("times"));
    let times = times.to_str().expect("a path");
    for backend in ["auto", "ptrace"] {
        let words = ["trace", "--backend", backend, "--pace", "200ms", "--format", "json", "--keys", &keys];
        let ended = home.tollgate(words.into_iter().chain([slow.as_str(), times])).assert().code(3);
        let document: Value = serde_json::from_slice(&ended.get_output().stdout).expect("JSON");
        if document["backend"] == "rusage" {
            return println!("skipped: nothing traces here: {}", document["notes"]);
        }
        let own = fs::read_to_string(times).expect("times");
        let own: Vec<u64> = own.lines().map(|line| line.parse().expect("nanoseconds")).collect();
        // The three bytes of an arrow are one key with three answers, of which the first counts; `q` has none. The other
        // answers arrive before the next key if that comes late enough.
        assert_eq!((own.len(), document["keys"].as_array().expect("keys").len()), (13, 12), "{document}");
        let found: Vec<u64> = delays(&document, "command_ns").collect();
        assert_eq!(found.len(), 11, "{backend}: {document}");
        for (found, own) in found.iter().zip(&own) {
            assert!(found >= own && *own >= 5_000_000, "{backend}: {found} is less than {own}: {document}");
        }
        let key = |at: usize| {
            (document["keys"][at]["command_ns"].as_u64(), document["keys"][at]["screen_ns"].as_u64())
        };
        // It is no longer than until the answer was on the screen.
        assert!((0..11).all(|at| key(at).1 > key(at).0), "{document}");
        assert_eq!((key(11), &document["keys"][10]["key"]), ((None, None), &"\\u{1b}[A".into()));
    }
}

fn editor(words: &[&str], keys: &str, written: &str) {
    let Some(found) = words.first().filter(|name| tollgate_os::programs::named(name.as_ref()).is_some())
    else {
        return println!("skipped: there is no {words:?}");
    };
    let home = Home::new();
    let (keys, text) = (home.file("keys", keys), home.path().join("text"));
    let text = text.to_str().expect("a path");
    let options = ["trace", "--pace", "200ms", "--format", "json", "--keys", &keys];
    let all = options.into_iter().chain(words.iter().copied()).chain([text]);
    let ended = home.tollgate(all).assert().success();
    let document: Value = serde_json::from_slice(&ended.get_output().stdout).expect("JSON");
    assert_eq!(fs::read_to_string(text).expect("the file"), written, "{found}: {document}");
    assert_eq!((&document["left"], &document["is_ended_here"]), (&0.into(), &false.into()));
    let answered = delays(&document, "screen_ns").count();
    assert!(answered >= 5, "{found}: {answered} answers: {document}");
    if document["backend"] != "rusage" {
        assert!(delays(&document, "command_ns").count() >= 5, "{found}: {document}");
    }
}

#[test]
fn vi_writes_what_was_typed() {
    editor(&["vi", "-u", "NONE"], "ihello\u{1b}:wq\n", "hello\n");
}

#[test]
fn nano_writes_what_was_typed() {
    // Control-X, yes, and Enter for the name.
    editor(&["nano", "-I"], "hello\u{18}y\n", "hello\n");
}

/// Processes with this word on their command lines.
fn with_word(word: &str) -> usize {
    let of = |path: &Path| fs::read(path.join("cmdline")).unwrap_or_default();
    let entries = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| of(&entry.path()));
    entries.filter(|line| line.split(|byte| *byte == 0).any(|one| one == word.as_bytes())).count()
}

#[test]
fn a_signal_ends_the_command_and_leaves_nothing() {
    for (signal, word) in [(libc::SIGTERM, "86399.5"), (libc::SIGKILL, "86399.25")] {
        let home = Home::new();
        let keys = home.file("keys", "a".repeat(1000));
        let mut tollgate = Command::new(program());
        tollgate.args(["trace", "--pace", "10s", "--keys", &keys, "sleep", word]).stderr(Stdio::null());
        let mut tollgate = tollgate.process_group(0).spawn().expect("it starts");
        common::wait_for("the command", || (with_word(word) >= 2).then_some(()));
        let number = libc::pid_t::try_from(tollgate.id()).expect("a number");
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(number, signal) };
        assert_eq!(tollgate.wait().expect("it ends").signal(), Some(signal));
        // When the program ends, the kernel hangs up the terminal of a remaining process.
        common::wait_for("the end of all processes", || (with_word(word) == 0).then_some(()));
    }
}

#[test]
fn a_command_that_does_not_end_is_ended_and_wrong_files_are_named() {
    let home = Home::new();
    let keys = home.file("keys", "ab");
    let words = ["trace", "--pace", "1ms", "--keys", &keys, "sleep", "86398"];
    let ended = home.tollgate(words).assert().failure();
    let said = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
    let why = "  the command had not ended 5 s after the last key, and was ended: the last keys\n  should quit it\n";
    assert!(said.contains(why), "{said}");
    assert_eq!(ended.get_output().status.signal(), Some(libc::SIGHUP));
    let empty = home.file("empty", "");
    let refused = |keys: &str| home.refusal(["trace", "--keys", keys, "true"]);
    assert_eq!(
        refused(&empty),
        format!("--keys {empty}: it has no keys; a file that quits vi has `:q!` and a newline")
    );
    assert_eq!(
        refused("/dev/null"),
        "--keys /dev/null: /dev/null is a device; a regular file would be right"
    );
    assert_eq!(refused("/nowhere"), "--keys /nowhere: No such file or directory");
}
