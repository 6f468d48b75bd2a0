//! Running processes are counted from the start of the trace, not disturbed, and left as they are.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Report, eventually, puppet, send, state};

/// Calls that the puppet makes in each of two threads and a child, for each order.
const CALLS: u64 = 70;

/// A puppet that waits for orders. Dropping it kills it.
struct Subject {
    process: Child,
    orders: Option<ChildStdin>,
    done: ChildStdout,
}

impl Subject {
    fn start() -> Option<Self> {
        let mut process = Command::new(puppet()?)
            .args(["on-order", &CALLS.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (orders, done) = (process.stdin.take(), process.stdout.take().expect("a pipe"));
        let mut subject = Self { process, orders, done };
        // After this its second thread exists.
        subject.order();
        Some(subject)
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Gives an order, and waits until it is carried out.
    fn order(&mut self) {
        self.orders.as_mut().expect("it runs").write_all(b"x").expect("a pipe");
        self.done.read_exact(&mut [0]).expect("an answer");
    }

    /// Makes it end by itself.
    fn end(&mut self) {
        self.orders = None;
        assert!(self.process.wait().expect("its end").success());
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A trace of running processes.
struct Tracer {
    process: Child,
    lines: BufReader<ChildStdout>,
    directory: tempfile::TempDir,
    /// Calls that returned, and their time, in the intervals shown so far.
    intervals: Vec<BTreeMap<String, (u64, u64)>>,
}

impl Tracer {
    /// Starts it and waits until it traces; prints a note and returns `None` if it cannot.
    fn start(options: &[&str]) -> Option<Self> {
        Self::begin(Command::new(puppet()?.with_file_name("trace")), options)
    }

    /// Does the same with a limit on descriptors.
    fn with_descriptors(limit: u32, options: &[&str]) -> Option<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
        shell.arg(puppet()?.with_file_name("trace"));
        Self::begin(shell, options)
    }

    fn begin(mut tracer: Command, options: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = tracer
            .args(options)
            .args(["bpf", "every=0.03", &format!("out={}", directory.path().join("out").display())])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut tracer = Self { process, lines, directory, intervals: Vec::new() };
        if tracer.interval() {
            return Some(tracer);
        }
        let mut why = String::new();
        let _ = tracer.process.stderr.take().expect("a pipe").read_to_string(&mut why);
        assert!(!why.contains("refused the program"), "{why}");
        println!("skipped: {why}");
        None
    }

    /// Reads the next interval; returns whether there was one.
    fn interval(&mut self) -> bool {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).expect("a pipe");
        let calls = line.split_whitespace().filter_map(|word| {
            let (name, numbers) = word.split_once('=')?;
            let (count, total) = numbers.split_once(':')?;
            Some((name.to_owned(), (count.parse().ok()?, total.parse().ok()?)))
        });
        self.intervals.push(calls.collect());
        read > 0
    }

    /// Returns its report after it has ended by itself.
    fn end(&mut self) -> Report {
        while self.interval() {}
        assert!(self.process.wait().expect("its end").success());
        Report::read(&self.directory.path().join("out"))
    }
}

fn until(report: &Report) -> &str {
    report.lines.iter().find_map(|line| line.strip_prefix("until ")).expect("its end")
}

#[test]
fn calls_of_threads_and_later_children_are_counted_from_when_the_trace_begins() {
    let Some(mut subject) = Subject::start() else { return };
    let Some(mut tracer) = Tracer::start(&[&format!("pid={}", subject.pid()), "tree"]) else { return };
    (0..3).for_each(|_| subject.order());
    subject.end();
    let report = tracer.end();
    assert_eq!(until(&report), "Some(Exited)");
    assert_eq!(report.call("getppid", "count"), 3 * 3 * CALLS, "{report:?}");
    assert_eq!((report.number("processes"), report.number("threads")), (4, 5), "{report:?}");
    // Between orders it waits in read(2). The trace began in such a call, which counts.
    assert_eq!(report.call("read", "count"), 4, "{report:?}");
    let stopped: u64 = report.calls.values().map(|call| call["stopped"]).sum();
    assert_eq!(stopped, 0, "a call that began before the trace is none that a filter stopped: {report:?}");
    assert!(report.number("user") + report.number("sys") < 3 * report.number("wall"), "{report:?}");
    let first = report.lines.iter().find(|line| line.starts_with("process 0 ")).expect("the tree");
    assert!(first.contains(&format!("parent=None pid={}", subject.pid())), "{first}");
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, (count, total)) in tracer.intervals.iter().flatten() {
        let sum = sums.entry(name.clone()).or_default();
        *sum = (sum.0 + count, sum.1 + total);
    }
    for (name, call) in &report.calls {
        let sum = sums.get(name).copied().unwrap_or_default();
        assert_eq!(sum, (call["count"], call["total"]), "{name}: {:?}", tracer.intervals);
    }
}

#[test]
fn a_trace_ends_in_time_or_by_a_signal_and_what_was_traced_goes_on() {
    let Some(mut subject) = Subject::start() else { return };
    let pid = format!("pid={}", subject.pid());
    let Some(mut tracer) = Tracer::start(&[&pid, "for=0.1"]) else { return };
    let report = tracer.end();
    assert_eq!(until(&report), "Some(Time)");
    assert!(report.number("wall") >= 100_000_000, "{report:?}");
    let Some(mut tracer) = Tracer::start(&[&pid]) else { return };
    send(tracer.process.id().cast_signed(), libc::SIGINT);
    assert_eq!(until(&tracer.end()), "Some(Signal)");
    // It is neither stopped nor traced, and obeys orders.
    assert_ne!(state(subject.pid().cast_signed()), 'T');
    subject.order();
    subject.end();
}

#[test]
fn a_sleep_is_ended_by_the_thread_that_writes_or_by_a_timer() {
    let Some(mut subject) = Subject::start() else { return };
    let pid = format!("pid={}", subject.pid());
    let Some(mut tracer) = Tracer::start(&[&pid, "blocked", "stacks"]) else { return };
    for _ in 0..3 {
        let call = format!("/proc/{}/syscall", subject.pid());
        let reads = || {
            let call = std::fs::read_to_string(&call).map(|call| call.split(' ').next() == Some("0"));
            call.unwrap_or_else(|_| state(subject.pid().cast_signed()) == 'S')
        };
        eventually("its wait for the next one", reads);
        subject.order();
    }
    let writer = rustix::thread::gettid().as_raw_nonzero().get();
    subject.end();
    let report = tracer.end();
    let blocked: Vec<&String> = report.lines.iter().filter(|line| line.starts_with("blocked ")).collect();
    let has = |call: &str, by: &str| {
        blocked.iter().any(|line| line.starts_with(&format!("blocked {call} ")) && line.contains(by))
    };
    assert!(has("read", &format!("by=Thread thread={writer} ")), "{writer}: {blocked:#?}");
    assert!(has("clock_nanosleep", "by=Timer "), "{blocked:#?}");
    let last = |line: &str| line.rsplit([' ', '=']).next().and_then(|number| number.parse::<u64>().ok());
    let stacks: Vec<&String> = report.lines.iter().filter(|line| line.starts_with("stack ")).collect();
    let [of_stacks, of_sleeps] =
        [&stacks, &blocked].map(|lines| lines.iter().filter_map(|line| last(line)).sum::<u64>());
    assert!(of_sleeps > 0 && of_stacks == of_sleeps, "{stacks:#?} {blocked:#?}");
    assert!(stacks.iter().all(|line| line.starts_with("stack puppet")), "{stacks:#?}");
}

/// A puppet that needs no orders. Dropping it kills it.
struct Busy(Child);

impl Busy {
    fn start(arguments: [&str; 2]) -> Option<Self> {
        Some(Self(Command::new(puppet()?).args(arguments).spawn().expect("it starts")))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_call_counts_once_where_the_trace_ends() {
    const THREADS: u64 = 20;
    let Some(sleepers) = Busy::start(["sleepers", &THREADS.to_string()]) else { return };
    let threads = Path::new("/proc").join(sleepers.0.id().to_string()).join("task");
    let begun = || std::fs::read_dir(&threads).map_or(0, Iterator::count) as u64 > THREADS;
    eventually("its threads", begun);
    for _ in 0..3 {
        let Some(mut tracer) = Tracer::start(&[&format!("pid={}", sleepers.0.id()), "for=0.05"]) else {
            return;
        };
        let report = tracer.end();
        assert_eq!(report.number("threads"), THREADS + 1, "{report:?}");
        // Its first thread waits for the others in a call that does not return.
        let returned: u64 = report.calls.values().map(|call| call["total"]).sum();
        assert!(returned <= THREADS * report.number("wall"), "{report:?}");
    }
}

/// A control group of this test. Dropping it removes it.
struct Group(std::path::PathBuf);

impl Group {
    fn new(hierarchy: &Path) -> Option<Self> {
        // Several tests may run in one process.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = hierarchy.join(format!("tollgate-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).ok().map(|()| Self(path))
    }

    fn add(&self, pid: u32) -> std::io::Result<()> {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..1000 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

fn hierarchies() -> impl Iterator<Item = &'static Path> {
    let paths = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"].map(Path::new);
    paths.into_iter().filter(|path| path.join("cgroup.procs").exists())
}

#[test]
fn processes_of_a_control_group_may_end_while_they_are_taken() {
    let mut tried = false;
    for hierarchy in hierarchies() {
        let Some(group) = Group::new(hierarchy) else { continue };
        let Some(first) = Busy::start(["forking", "1000000"]) else { return };
        let Some(second) = Busy::start(["forking", "1000000"]) else { return };
        if [&first, &second].into_iter().any(|process| group.add(process.0.id()).is_err()) {
            continue;
        }
        tried = true;
        for _ in 0..5 {
            let options = [&format!("cgroup={}", group.0.display()), "tree", "for=0.03"];
            let Some(mut tracer) = Tracer::start(&options) else { return };
            let report = tracer.end();
            let stopped: u64 = report.calls.values().map(|call| call["stopped"]).sum();
            assert_eq!(stopped, 0, "{report:?}");
            let processes: Vec<&String> =
                report.lines.iter().filter(|line| line.starts_with("process ")).collect();
            let pid =
                |line: &str| line.split(' ').find_map(|word| word.strip_prefix("pid=").map(str::to_owned));
            let pids: BTreeSet<Option<String>> = processes.iter().map(|line| pid(line)).collect();
            // Each process appears exactly once, and none is from before the trace or after its end.
            assert!(pids.len() >= 2 && pids.len() == processes.len(), "{processes:#?}");
            assert_eq!(report.number("processes"), processes.len() as u64, "{processes:#?}");
            // A process may have ended before its thread was added.
            let threads = processes.iter().filter(|line| line.contains(" threads=1 ")).count();
            assert_eq!(report.number("threads"), threads as u64, "{processes:#?}");
        }
        // Their children end before the group is removed.
        drop((first, second));
    }
    if !tried {
        println!("skipped: no control group can be made here");
    }
}

#[test]
fn processes_for_which_there_is_no_descriptor_are_said_to_be_left_out() {
    const PROCESSES: u64 = 20;
    let mut tried = false;
    for hierarchy in hierarchies() {
        let Some(group) = Group::new(hierarchy) else { continue };
        let all: Option<Vec<Busy>> = (0..PROCESSES).map(|_| Busy::start(["sleepers", "1"])).collect();
        let Some(all) = all else { return };
        if all.iter().any(|process| group.add(process.0.id()).is_err()) {
            continue;
        }
        tried = true;
        let options = [&format!("cgroup={}", group.0.display()), "tree", "for=0.03"];
        let Some(mut tracer) = Tracer::with_descriptors(75, &options) else { return };
        let report = tracer.end();
        let note = report.lines.iter().find_map(|line| line.strip_prefix("note ")).expect("a note");
        let left_out = note.strip_suffix("(RLIMIT_NOFILE of getrlimit(2))").expect("its reason");
        let left_out: u64 =
            left_out.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
        assert!(left_out > 0 && report.number("processes") + left_out == PROCESSES, "{report:?}");
        drop(all);
    }
    if !tried {
        println!("skipped: no control group can be made here");
    }
}

#[test]
fn what_is_in_a_control_group_or_comes_into_it_is_traced() {
    let mut tried = false;
    for hierarchy in hierarchies() {
        let Some(group) = Group::new(hierarchy) else { continue };
        let (Some(mut first), Some(mut second)) = (Subject::start(), Subject::start()) else { return };
        if group.add(first.pid()).is_err() {
            continue;
        }
        tried = true;
        let Some(mut tracer) = Tracer::start(&[&format!("cgroup={}", group.0.display())]) else { return };
        group.add(second.pid()).expect("as the first");
        // The other threads of a process that enters are added a little later.
        (0..6).for_each(|_| assert!(tracer.interval()));
        first.order();
        second.order();
        first.end();
        second.end();
        let report = tracer.end();
        assert_eq!(until(&report), "Some(Exited)", "{report:?}");
        assert_eq!(report.call("getppid", "count"), 2 * 3 * CALLS, "{}: {report:?}", hierarchy.display());
        assert_eq!(report.number("processes"), 4, "{report:?}");
    }
    if !tried {
        println!("skipped: no control group can be made here");
    }
}
