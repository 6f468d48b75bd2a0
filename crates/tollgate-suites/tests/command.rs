//! Commands that end well, badly, late and not at all. They need their own program: leftovers of one are looked for among its
//! children.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_engine::versus::{Cooled, End, Execution, Executor, How, Input, Order, Output};
use tollgate_model::traced::Ended;
use tollgate_os::process;
use tollgate_os::signals::Disposition;
use tollgate_suites::command::Here;

/// Children and signals belong to the whole process: one command at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Directory(PathBuf);

impl Directory {
    #[expect(clippy::disallowed_methods, reason = "a test's own, which no other program gets")]
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tollgate-command-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn order<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Order {
    Order {
        words: words.into_iter().map(Into::into).collect(),
        input: Input::Null,
        output: Output::Null,
        processors: Vec::new(),
        cgroup: None,
        variables: Vec::new(),
        how: How::Timed,
        within: Some(Duration::from_secs(120)),
        keeps: false,
        is_alone: false,
        most_output: None,
    }
}

fn shell(line: &str) -> Order {
    order(["/bin/sh", "-c", line])
}

fn run(order: &Order) -> Execution {
    let _alone = alone();
    Here::new().execute(order, &mut || {}).expect("executed")
}

fn ended(line: &str) -> End {
    run(&shell(line)).end
}

const EXIT: fn(i32) -> End = |status| End::Ended(Ended::Exit(status));

#[test]
fn a_command_ends_as_it_does_alone() {
    assert_eq!(ended("exit 0"), EXIT(0));
    assert_eq!(ended("exit 7"), EXIT(7));
    assert_eq!(ended("kill -SEGV $$"), End::Ended(Ended::Signal(libc::SIGSEGV)));
    assert_eq!(ended("kill -PIPE $$"), End::Ended(Ended::Signal(libc::SIGPIPE)));
    assert_eq!(run(&order(["true"])).end, EXIT(0));
    assert_eq!(run(&order::<&str>([])).end, EXIT(0));
}

#[test]
fn a_command_that_is_not_there_is_not_started() {
    for (words, why) in
        [(["/no/such"], "/no/such"), (["no-such-program"], "no-such-program"), (["/etc"], "/etc")]
    {
        let End::NotStarted(said) = run(&order(words)).end else { unreachable!("{words:?}") };
        assert!(said.contains(why), "{said}");
    }
    let order = Order { input: Input::File("/no/such".into()), ..shell("true") };
    let End::NotStarted(said) = run(&order).end else { unreachable!("no input") };
    assert_eq!(said, "its standard input /no/such: No such file or directory");
    let order = Order { output: Output::File("/no/such/file".into()), ..shell("true") };
    let End::NotStarted(said) = run(&order).end else { unreachable!("no output") };
    assert_eq!(said, "its standard output /no/such/file: No such file or directory");
    let order = Order { cgroup: Some("/no/such".into()), ..shell("true") };
    assert!(matches!(run(&order).end, End::NotStarted(_)));
    let order = Order { processors: vec![60_000], ..shell("true") };
    assert!(matches!(run(&order).end, End::NotStarted(_)));
}

#[test]
fn its_time_is_real_and_on_a_processor() {
    let slept = run(&order(["sleep", "0.05"]));
    assert!((50_000_000..30_000_000_000).contains(&slept.wall_ns), "{slept:?}");
    assert!(slept.user_ns + slept.sys_ns < 45_000_000, "{slept:?}");
    let busy = run(&shell("i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"));
    let used = busy.user_ns + busy.sys_ns;
    assert!(used * 100 <= busy.wall_ns * 105 && used > 20_000_000, "{busy:?}");
}

#[test]
fn its_memory_and_faults_are_its_own() {
    // A shell copies the text when it reads it.
    let line = "x=$(head -c 50000000 /dev/zero | tr '\\0' a); echo ${#x}";
    let large = run(&shell(line));
    assert_eq!(large.end, EXIT(0));
    assert!(large.memory.is_some_and(|bytes| bytes >= 50_000_000), "{large:?}");
    assert!(large.faults > 50_000_000 / 4096, "{large:?}");
    let nothing = run(&order::<&str>([]));
    assert_eq!((nothing.memory, nothing.said.as_str()), (None, ""));
    assert!(nothing.faults < 100, "{nothing:?}");
    let small = run(&shell("exit"));
    assert!(small.memory.is_none_or(|bytes| bytes < 40_000_000), "{small:?}");
    assert!(small.faults < 2000, "{small:?}");
}

#[test]
fn it_reads_and_writes_what_it_is_told() {
    let own = Directory::new("streams");
    let (input, output) = (own.0.join("in"), own.0.join("out"));
    std::fs::write(&input, "some words").expect("written");
    std::fs::write(&output, "longer than what replaces it").expect("written");
    let (from, to) = (Input::File(input), Output::File(output.clone()));
    let both = Order { input: from, output: to, ..shell("cat; echo error >&2") };
    let execution = run(&both);
    assert_eq!((execution.end, execution.said.as_str()), (EXIT(0), "error\n"));
    assert_eq!(std::fs::read(&output).expect("read"), b"some words");
    // There is no input to read and no terminal to ask on.
    assert_eq!(ended("cat"), EXIT(0));
    assert_ne!(ended("exec < /dev/tty"), EXIT(0));
    let pipe = Order { output: Output::Pipe, ..shell("echo one; echo two >&2; exit 3") };
    let execution = run(&pipe);
    assert_eq!((execution.end, execution.said.as_str()), (EXIT(3), "one\ntwo\n"));
    let variables = vec![("TOLLGATE_TRIAL".to_owned(), "5".to_owned())];
    assert_eq!(run(&Order { variables, ..shell("exit $TOLLGATE_TRIAL") }).end, EXIT(5));
}

#[test]
fn what_it_says_does_not_hold_it_up() {
    let began = Instant::now();
    let much = "head -c 1000000000 /dev/zero | tr '\\0' x";
    for line in [much.to_owned(), format!("{{ {much}; }} >&2; echo; echo the end >&2")] {
        let execution = run(&Order { output: Output::Pipe, ..shell(&line) });
        assert_eq!(execution.end, EXIT(0));
        assert!(execution.said.len() <= 16 << 10 && execution.said.len() > 8000, "{}", execution.said.len());
        assert!(execution.said.starts_with('x'));
    }
    println!("2 GB took {:?}", began.elapsed());
}

#[test]
fn it_is_ended_when_its_time_is_over() {
    let within = Some(Duration::from_millis(300));
    let sleep = long(0);
    for line in [
        sleep.clone(),
        format!("trap '' TERM INT HUP; while :; do {sleep}; done"),
        "kill -STOP $$".to_owned(),
        format!("{sleep} & wait"),
    ] {
        let began = Instant::now();
        let execution = run(&Order { within, ..shell(&line) });
        assert_eq!(execution.end, End::OutOfTime, "{line}");
        assert!(execution.wall_ns >= 300_000_000 && began.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(running(&sleep), 0);
}

#[test]
fn what_it_leaves_is_ended() {
    let own = Directory::new("left");
    let marks = |name: &str| own.0.join(name);
    let sleep = long(2);
    let lines = [
        ("SLEEP & echo $! > MARK", true),
        ("setsid SLEEP & echo $! > MARK", true),
        (
            "setsid sh -c 'SLEEP & echo $! > MARK; exec SLEEP' & while ! [ -s MARK ]; do sleep 0.01; done",
            true,
        ),
        // It holds the pipe of standard error open.
        (
            "setsid sh -c 'trap \"\" HUP TERM; SLEEP >&2' & while ! pgrep -s $! > MARK; do sleep 0.01; done",
            true,
        ),
        ("true & wait", false),
    ];
    for (at, (line, leaves)) in lines.into_iter().enumerate() {
        let mark = marks(&at.to_string());
        let line = line.replace("SLEEP", &sleep).replace("MARK", &format!("\"{}\"", mark.display()));
        let execution = run(&shell(&line));
        assert_eq!(execution.end, EXIT(0), "{line}: {}", execution.said);
        assert_eq!(execution.left > 0, leaves, "{line}: {}", execution.left);
        for pid in std::fs::read_to_string(&mark).unwrap_or_default().split_whitespace() {
            assert!(process::is_gone(pid.parse().expect("a number")), "{line}");
        }
    }
    assert_eq!(running(&sleep), 0);
}

#[test]
fn what_is_to_stay_stays_until_the_end() {
    let _alone = alone();
    let own = Directory::new("stays");
    let mark = own.0.join("pid");
    let sleep = long(3);
    for line in ["SLEEP & echo $! > MARK", "setsid SLEEP & echo $! > MARK"] {
        let mut here = Here::new();
        let line = line.replace("SLEEP", &sleep).replace("MARK", &format!("\"{}\"", mark.display()));
        let stays = Order { keeps: true, ..shell(&line) };
        let execution = here.execute(&stays, &mut || {}).expect("executed");
        assert_eq!((&execution.end, execution.left), (&EXIT(0), 0), "{line}");
        let pid = std::fs::read_to_string(&mark).expect("read").trim().parse().expect("a number");
        let another = here.execute(&shell("exit 2"), &mut || {}).expect("executed");
        assert_eq!((another.end, another.left), (EXIT(2), 0));
        assert!(!process::is_gone(pid), "{line}");
        drop(here);
        assert!(process::is_gone(pid), "{line}");
    }
    let mut here = Here::new();
    let line = format!("{sleep} & {sleep}");
    let late = Order { within: Some(Duration::from_millis(200)), keeps: true, ..shell(&line) };
    assert_eq!(here.execute(&late, &mut || {}).expect("executed").end, End::OutOfTime);
    assert_eq!(running(&sleep), 0);
}

#[test]
fn a_command_that_ends_its_group_ends_alone() {
    assert_eq!(ended("kill -9 0"), End::KilledGroup(libc::SIGKILL));
    assert_eq!(ended(&format!("kill -9 $PPID; {}", long(4))), End::KilledGroup(libc::SIGKILL));
    // As Ctrl-C on a terminal does.
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        if Disposition::of(signal).is_ignored() {
            println!("skipped: signal {signal} is ignored here, as under nohup");
            continue;
        }
        let end = ended(&format!("kill -{signal} 0; {}", long(4)));
        assert!(
            matches!(end, End::Ended(Ended::Signal(by)) | End::KilledGroup(by) if by == signal),
            "{end:?}"
        );
    }
    assert_eq!(running(&long(4)), 0);
}

#[test]
fn it_stays_on_its_processors() {
    let allowed = tollgate_os::affinity::allowed(0).expect("a mask");
    let last = *allowed.last().expect("a processor");
    let on_last =
        Order { output: Output::Pipe, processors: vec![last], ..order(["cat", "/proc/self/status"]) };
    let said = run(&on_last).said;
    assert!(said.contains(&format!("Cpus_allowed_list:\t{last}\n")), "{said}");
    assert_eq!(tollgate_os::affinity::allowed(0).expect("a mask"), allowed);
}

#[test]
fn its_calls_are_traced_on_request() {
    let own = Directory::new("traced");
    let file = own.0.join("file");
    std::fs::write(&file, "text").expect("written");
    let words = ["cat".to_owned(), file.display().to_string()];
    let traced = Order { how: How::Traced { files: true }, ..order(words) };
    let execution = run(&traced);
    let Execution { end, traced: Some(traced), .. } = execution else { unreachable!("{execution:?}") };
    assert_eq!(end, EXIT(0));
    if traced.backend == tollgate_model::traced::Backend::Rusage {
        return println!("skipped: {:?}", traced.notes);
    }
    assert!(traced.calls.iter().any(|call| call.name == "execve"), "{:?}", traced.calls);
    let names = |path: &Path| traced.files.iter().any(|of| Path::new(&of.path) == path);
    assert!(names(&file), "{:?}", traced.files);
}

#[test]
fn files_leave_the_page_cache() {
    let _alone = alone();
    let own = Directory::new("cold");
    let file = own.0.join("file");
    std::fs::write(&file, vec![1; 1 << 20]).expect("written");
    std::fs::write(own.0.join("empty"), "").expect("written");
    let name = |path: PathBuf| path.display().to_string();
    let skipped =
        ["/no/such".to_owned(), "/dev/null".to_owned(), name(own.0.clone()), name(own.0.join("empty"))];
    let mut here = Here::new();
    assert_eq!(here.cool(&skipped).expect("cooled"), Cooled::default());
    let small = own.0.join("small");
    std::fs::write(&small, "x").expect("written");
    let files = [vec![name(small.clone()), name(file.clone())], skipped.to_vec()].concat();
    for _ in 0..2 {
        std::fs::read(&file).expect("read");
        std::fs::read(&small).expect("read");
        let cooled = here.cool(&files).expect("cooled");
        assert_eq!(cooled.files, 2);
        match &cooled.certified_by {
            None => return println!("skipped: no call says which pages are cached"),
            Some(_) if !cooled.stayed.is_empty() => return println!("skipped: pages stay: {cooled:?}"),
            Some(call) => assert!(call == "cachestat(2)" || call == "mincore(2)", "{call}"),
        }
    }
    // This program is mapped by this process.
    let itself = name(std::env::current_exe().expect("a path"));
    let cooled = here.cool(std::slice::from_ref(&itself)).expect("cooled");
    if cooled.certified_by.is_none() {
        return println!("skipped: Linux says nothing of the pages of another user's file");
    }
    assert_eq!((cooled.files, cooled.stayed), (1, vec![itself]));
}

/// A command that takes long, and that no other process on the machine runs.
fn long(test: u32) -> String {
    format!("sleep 6{test}{}", std::process::id())
}

/// Counts the processes with this command line.
fn running(line: &str) -> usize {
    let line = format!("{}\0", line.replace(' ', "\0"));
    let entries = std::fs::read_dir("/proc").expect("read").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|found| found == line.as_bytes()).count()
}
