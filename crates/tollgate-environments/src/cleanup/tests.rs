use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tollgate_os::process::fork_bound;

use super::*;

fn say(word: &str, file: &Path) -> Undo {
    let script = format!("echo {word} >> {}", file.display());
    Undo::Program(["sh", "-c", script.as_str()].map(Into::into).to_vec())
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn said(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn a_promise_is_undone_once_when_it_is_dropped() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("said");
    let cleanup = Cleanup::begin().unwrap();
    let pid = cleanup.pid();
    let first = cleanup.promise(&[say("first", &file)]).unwrap();
    let second = cleanup.promise(&[say("second", &file)]).unwrap();
    drop(cleanup);
    assert_eq!(said(&file), "");
    second.keep().unwrap();
    assert_eq!(said(&file), "second\n");
    drop(first);
    assert_eq!(said(&file), "second\nfirst\n");
    assert!(process::is_gone(pid), "it ends with the last promise");
    assert_eq!(said(&file), "second\nfirst\n");
}

#[test]
fn it_is_a_process_of_its_own_that_no_asking_signal_ends() {
    let cleanup = Cleanup::begin().unwrap();
    let pid = cleanup.pid();
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    wait_for("its name", || read("comm").trim() == NAME);
    wait_for("its descriptors", || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() == 4);
    for signal in IGNORED {
        process::kill(pid, signal).unwrap();
    }
    let stat = read("stat");
    let session: i32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert_eq!(session, pid);
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("said");
    drop(cleanup.promise(&[say("own", &file)]).unwrap());
    assert!(!process::is_gone(pid));
    drop(cleanup);
    assert!(process::is_gone(pid));
    assert_eq!(said(&file), "own\n");
}

#[test]
fn it_undoes_what_a_killed_process_promised_in_reverse_order() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("said");
    let ready = place.path().join("ready");
    let mut command = fork_bound(|| {
        let Ok(cleanup) = Cleanup::begin() else { return 1 };
        let promises: Vec<Promise> = ["a", "b", "c", "d"]
            .iter()
            .filter_map(|word| cleanup.promise(&[say(word, &file)]).ok())
            .collect();
        let Some(kept) = promises.into_iter().reduce(|kept, next| {
            // This process undoes only the first itself.
            if kept.number == 0 {
                drop(kept)
            } else {
                mem::forget(kept)
            }
            next
        }) else {
            return 1;
        };
        let _ = fs::write(&ready, "");
        loop {
            std::thread::park();
            let _ = &kept;
        }
    })
    .unwrap();
    wait_for("the promises", || ready.exists());
    command.end().unwrap();
    wait_for("the undoing", || said(&file).lines().count() >= 4);
    assert_eq!(said(&file), "a\nd\nc\nb\n");
}

#[test]
fn where_it_is_killed_the_process_undoes_all() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("said");
    let cleanup = Cleanup::begin().unwrap();
    let before = cleanup.promise(&[say("before", &file)]).unwrap();
    process::kill(cleanup.pid(), libc::SIGKILL).unwrap();
    wait_for("its end", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", cleanup.pid())).unwrap();
        stat.contains(") Z ")
    });
    let after = cleanup.promise(&[say("after", &file)]).unwrap();
    drop((after, before, cleanup));
    assert_eq!(said(&file), "after\nbefore\n");
}
