use std::cell::Cell;
use std::io::{BufReader, Read};

use proptest::prelude::*;

use super::*;

fn log(text: &str) -> Result<Log, LogError> {
    read(text.as_bytes(), &[], 1000)
}

fn figures(traced: &Traced) -> Vec<(&str, u64, u64, u64, u64)> {
    let row = |call: &'_ tollgate_model::traced::Call| {
        (call.count, call.errors, call.unfinished, call.total_ns / 1000)
    };
    traced
        .calls
        .iter()
        .map(|call| {
            let (count, errors, unfinished, us) = row(call);
            (call.name.as_str(), count, errors, unfinished, us)
        })
        .collect()
}

const FORKED: &str = r#"
100 10:00:00.000000 execve("/usr/bin/sh", ["sh", "-c", "ls"], 0x1 /* 3 vars */) = 0 <0.000300>
100 10:00:00.001000 vfork( <unfinished ...>
101 10:00:00.001200 execve("/usr/bin/ls", ["ls"], 0x1 /* 3 vars */ <unfinished ...>
100 10:00:00.001500 <... vfork resumed>) = 101 <0.000500>
100 10:00:00.001600 wait4(-1,  <unfinished ...>
101 10:00:00.002000 <... execve resumed>) = 0 <0.000800>
101 10:00:00.002100 openat(AT_FDCWD, "/nope", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000020>
101 10:00:00.002200 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[102]}, 88) = 102 <0.000040>
102 10:00:00.002300 futex(0x1, FUTEX_WAIT, 1, NULL <unfinished ...>
101 10:00:00.002400 exit_group(2)      = ?
102 10:00:00.002450 <... futex resumed>) = ? <unavailable>
102 10:00:00.002460 +++ exited with 2 +++
101 10:00:00.002500 +++ exited with 2 +++
100 10:00:00.002600 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 2}], 0, NULL) = 101 <0.001000>
100 10:00:00.002700 --- SIGCHLD {si_signo=SIGCHLD, si_pid=101} ---
100 10:00:00.002800 exit_group(2)      = ?
100 10:00:00.002900 +++ exited with 2 +++
"#;

#[test]
fn a_log_is_the_trace_of_its_command() {
    let Log { traced, events } = log(FORKED).unwrap();
    assert_eq!(traced.command, ["sh", "-c", "ls"]);
    assert_eq!((traced.ended, traced.wall_ns), (Some(Ended::Exit(2)), 2_900_000));
    assert_eq!((traced.processes, traced.threads), (2, 3));
    assert_eq!(
        figures(&traced),
        [
            ("execve", 2, 0, 0, 1100),
            ("wait4", 1, 0, 0, 1000),
            ("vfork", 1, 0, 0, 500),
            ("clone3", 1, 0, 0, 40),
            ("openat", 1, 1, 0, 20),
            ("exit_group", 0, 0, 2, 0),
            ("futex", 0, 0, 1, 0),
        ]
    );
    assert_eq!(traced.calls[0].max_ns, 800_000);
    assert!(
        traced.calls.iter().all(|call| call.parts.unknown_ns == call.total_ns && call.parts.on_cpu_ns == 0)
    );
    let tree: Vec<(&str, u32, Option<u32>, u64, u32)> =
        traced.tree.iter().map(|it| (it.name.as_str(), it.pid, it.parent, it.threads, it.execs)).collect();
    assert_eq!(tree, [("sh", 100, None, 1, 1), ("ls", 101, Some(0), 2, 1)]);
    assert_eq!((traced.tree[1].began_ns, traced.tree[1].ended_ns), (1_200_000, Some(2_500_000)));
    let event = events.iter().find(|event| event.call == "openat").unwrap();
    assert_eq!((event.process, event.thread, event.began_ns, event.result), (1, 101, 2_100_000, -2));
    assert!(traced.notes.iter().any(|note| note.contains("SIGCHLD ×1")));
    assert_eq!(traced.times_from, tollgate_model::traced::TimesFrom::Unknown);
    assert_eq!(traced.validate(), Ok(()));
    let only = read(FORKED.as_bytes(), &["openat"], 10).unwrap();
    assert_eq!((only.traced.calls.len(), only.events.len()), (1, 1));
}

#[test]
fn distances_of_a_file_of_many_are_no_clock() {
    const CALLS: [&str; 4] = [
        "execve(\"/bin/sh\", [\"sh\"], 0x1) = 0 <0.001>",
        "wait4(-1, NULL, 0, NULL) = 77 <0.3>",
        "exit_group(0) = ?",
        "+++ exited with 0 +++",
    ];
    let relative = ["0.000000", "0.000012", "0.000039", "0.000100"];
    let of_day = ["11:43:16.000000", "11:43:16.002000", "11:43:16.302100", "11:43:16.302200"];
    let wall = |stamp: &dyn Fn(usize) -> String| {
        let lines: Vec<String> = (0..4).map(|at| format!("{} {}\n", stamp(at), CALLS[at])).collect();
        let traced = log(&lines.concat()).unwrap().traced;
        (traced.wall_ns, traced.notes.iter().any(|note| note.contains("at least the one above")))
    };
    // The stamps of -tt stand next to those of -r.
    assert_eq!(wall(&|at| format!("{} (+     {})", of_day[at], relative[at])), (302_200_000, false));
    // Without them the calls are one lower bound, and whole seconds another.
    assert_eq!(wall(&|at| format!("     {}", relative[at])), (301_100_000, true));
    let coarse = ["11:43:16", "11:43:16", "11:43:18", "11:43:18"];
    assert_eq!(wall(&|at| format!("{} (+     {})", coarse[at], relative[at])), (1_000_100_000, true));
    // In one file for one process they are a clock, to the microsecond.
    let exact = ["0.000000", "0.001010", "0.299999", "0.000100"];
    assert_eq!(wall(&|at| format!("     {}", exact[at])), (301_110_000, false));
    let whole = ["0", "1", "2", "0"];
    assert_eq!(wall(&|at| format!("     {}", whole[at])).0, 3_000_000_000);
}

#[test]
fn a_log_without_times_has_the_counts_or_its_own_table() {
    const LOG: &str = "4711  14:50:52 execve(\"/usr/bin/x\", [\"x\"], 0x7ffd /* 9 vars */) = 0\n\
        4711  14:50:52 openat(AT_FDCWD, \"/a\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
        4711  14:50:53 read(3, \"x\", 1) = 1\n\
        4711  14:50:53 read(3, \"x\", 1) = 1\n\
        4711  14:50:54 exit_group(0) = ?\n\
        4711  14:50:54 +++ exited with 0 +++\n";
    const TABLE: &str = "% time     seconds  usecs/call     calls    errors syscall\n\
        ------ ----------- ----------- --------- --------- ----------------\n \
        60.00    0.000030          15         2           read\n \
        40.00    0.000020          20         1           execve\n\
        ------ ----------- ----------- --------- --------- ----------------\n\
        100.00    0.000050          25         3           total\n";
    let Log { traced, events } = log(LOG).unwrap();
    assert_eq!(
        figures(&traced),
        [("read", 2, 0, 0, 0), ("execve", 1, 0, 0, 0), ("openat", 1, 1, 0, 0), ("exit_group", 0, 0, 1, 0)]
    );
    assert!(traced.is_untimed && events.is_empty() && traced.missed.is_empty());
    assert_eq!((traced.wall_ns, traced.tree.len()), (2_000_000_000, 1));
    let traced = log(&format!("{LOG}{TABLE}")).unwrap().traced;
    assert_eq!(figures(&traced), [("read", 2, 0, 0, 30), ("execve", 1, 0, 0, 20)]);
    assert!(!traced.is_untimed && traced.tree.is_empty());
    assert_eq!((traced.ended, traced.wall_ns), (Some(Ended::Exit(0)), 2_000_000_000));
    assert_eq!(traced.command, ["x"]);
}

#[test]
fn what_is_no_log_says_what_would_be_one() {
    for text in ["", "hello\n", "{\"a\": 1}\n", "f(x)\n"] {
        assert!(matches!(log(text), Err(LogError::NotALog)), "{text}");
    }
    let long = format!("12 write(1, \"{}\", 1) = 1 <0.1>\n12 close(3) = 0 <0.1>\n", "x".repeat(LONGEST_LINE));
    let traced = log(&long).unwrap().traced;
    assert_eq!(figures(&traced), [("close", 1, 0, 0, 100_000), ("write", 0, 0, 1, 0)]);
}

proptest! {
    #[test]
    fn any_log_is_taken(lines in prop::collection::vec(
        "[1-4] (execve\\(\"/a\", \\[\"a\"\\]|clone\\(flags=(CLONE_THREAD)?|read\\(0|<... (clone|read) resumed>)(\\) = [1-4] <0.1>| <unfinished ...>)|[1-4] \\+\\+\\+ (exited with 1|superseded by execve in pid [1-4]) \\+\\+\\+|\\PC{0,30}", 0..40)) {
        if let Ok(log) = log(&lines.join("\n")) {
            prop_assert_eq!(log.traced.validate(), Ok(()));
            prop_assert!(log.events.iter().all(|event| (event.process as usize) < log.traced.tree.len()));
        }
    }
}

/// An endless repetition of bytes, and how many were read.
struct Endless<'a> {
    bytes: &'a [u8],
    taken: &'a Cell<u64>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let from = (self.taken.get() % self.bytes.len() as u64) as usize;
        let read = (&self.bytes[from..]).read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

#[test]
fn an_endless_text_that_is_no_log_ends() {
    let (nothing, line) = ([0; 1 << 16], [&[b'x'; 1 << 16][..], b"\n"].concat());
    let logged = b"12 close(3) = 0 <0.1>\n";
    for (before, bytes) in [(&b""[..], &nothing[..]), (&logged[..], &nothing[..]), (&logged[..], &line[..])] {
        let taken = Cell::new(0);
        let endless = BufReader::with_capacity(1 << 16, Endless { bytes, taken: &taken });
        let outcome = read(before.chain(endless), &[], 0);
        assert!(matches!(outcome, Err(LogError::Foreign)), "{outcome:?}");
        assert!(taken.get() <= MOST_FOREIGN + (1 << 17), "{}", taken.get());
    }
}

#[test]
fn a_log_that_is_longer_than_what_may_be_foreign_is_read_whole() {
    let foreign = [&[b'x'; 1 << 20][..], b"\n"].concat().repeat(40);
    let logged = &b"12 close(3) = 0 <0.1>\n"[..];
    let input = logged.chain(&foreign[..]).chain(logged).chain(&foreign[..]).chain(logged);
    assert!(2 * foreign.len() as u64 > MOST_FOREIGN);
    assert_eq!(read(input, &[], 0).unwrap().traced.calls[0].count, 3);
}
