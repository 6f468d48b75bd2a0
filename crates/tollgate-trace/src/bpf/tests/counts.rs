//! Compares counts with those of strace(1), which stops a thread twice at each call and so misses none.

use std::{collections::BTreeMap, ffi::OsString, path::Path, process::Command};

use super::harness::{Outcome, alone, run_traced};
use crate::request::Request;

type Counts = BTreeMap<String, (u64, u64)>;

fn by_strace(command: &[OsString]) -> Option<Counts> {
    let _alone = alone();
    let file = tempfile::NamedTempFile::new().unwrap();
    let null = || std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    let status = Command::new("strace")
        .args(["-f", "-c", "-U", "calls,errors,name", "-o"])
        .arg(file.path())
        .args(command)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C")])
        .stdin(null())
        .stdout(null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: strace(1) does not work here");
        return None;
    }
    let text = std::fs::read_to_string(file.path()).unwrap();
    let mut counts = Counts::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match words[..] {
            [calls, errors, name] => (calls.parse(), errors.parse(), name),
            [calls, name] => (calls.parse(), Ok(0), name),
            _ => continue,
        };
        if let (Ok(calls), Ok(errors)) = (calls, errors)
            && name != "total"
        {
            counts.insert(name.to_owned(), (calls, errors));
        }
    }
    Some(counts)
}

fn by_us(outcome: &Outcome) -> Counts {
    let calls = outcome.collected.calls.iter().filter(|call| call.count > 0);
    calls.map(|call| (call.name.clone(), (call.count, call.errors))).collect()
}

fn same(command: &[&str]) {
    same_but(command, &[]);
}

/// Compares several times, since a command's random calls differ between runs. The counts of the calls in `by_chance` depend
/// on when a signal arrives.
pub fn same_but(command: &[&str], by_chance: &[&str]) {
    let command: Vec<OsString> = command.iter().map(Into::into).collect();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let Some(outcome) = run_traced(Request::new(command.clone())) else { return };
        let Some(truth) = by_strace(&command) else { return };
        assert_eq!(outcome.collected.missed, []);
        let (mut ours, mut truth) = (by_us(&outcome), truth);
        for call in by_chance {
            ours.remove(*call);
            truth.remove(*call);
        }
        if ours == truth {
            return;
        }
        seen.push((ours, truth));
    }
    for (ours, truth) in seen {
        let names: std::collections::BTreeSet<_> = ours.keys().chain(truth.keys()).collect();
        let differ = names.into_iter().filter(|name| ours.get(*name) != truth.get(*name));
        let differ: Vec<_> = differ.map(|name| (name, ours.get(name), truth.get(name))).collect();
        println!("ours and strace's: {differ:?}");
    }
    panic!("{command:?}: four times not the same");
}

#[test]
fn counts_of_one_process_are_those_of_strace() {
    same(&["/bin/ls", "-l", "/usr/bin"]);
    same(&["/bin/cat", "/etc/passwd", "/no/such/file"].as_slice()[..2]);
}

#[test]
fn counts_of_shells_with_pipes_are_those_of_strace() {
    let script =
        "echo a | cat | cat; (cat /etc/passwd; exit 3); for i in 1 2 3 4 5; do /bin/true; done; exit 0";
    // The shell's handler of SIGCHLD runs twice if two children end apart, and once if they end together.
    same_but(&["/bin/sh", "-c", script], &["rt_sigreturn", "wait4"]);
}

/// Threads that wait in futex(2) and read(2) while another one ends the process, and a thread that calls exec.
const THREADS: &str = r#"
#include <pthread.h>
#include <unistd.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], ready[2];
static void *waits(void *n) {
    char c;
    write(ready[1], "x", 1);
    if ((long)n % 2) pthread_mutex_lock(&lock); else read(ends[0], &c, 1);
    return 0;
}
static void *execs(void *n) {
    usleep(100000);
    execl("/bin/echo", "echo", "done", (char *)0);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t t;
    char c;
    pipe(ends); pipe(ready);
    pthread_mutex_lock(&lock);
    for (long n = 0; n < 8; n++) { pthread_create(&t, 0, waits, (void *)n); read(ready[0], &c, 1); }
    if (argc > 1) { pthread_create(&t, 0, execs, 0); pause(); }
    usleep(100000);
    _exit(0);
}
"#;

/// Compiles a C program; prints a note and returns `None` if there is no compiler.
pub fn compiled(directory: &Path, source: &str) -> Option<String> {
    let (from, to) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&from, source).unwrap();
    let made = Command::new("cc").args(["-w", "-O1", "-pthread", "-o"]).arg(&to).arg(&from).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: there is no C compiler");
        return None;
    }
    Some(to.to_str().unwrap().to_owned())
}

#[test]
fn counts_of_threads_that_are_killed_in_calls_are_those_of_strace() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path(), THREADS) else { return };
    same(&[&program]);
}

#[test]
fn counts_of_threads_around_an_exec_are_those_of_strace() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path(), THREADS) else { return };
    same(&[&program, "exec"]);
}
