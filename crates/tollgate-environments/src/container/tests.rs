//! Each runtime that works here starts this test program, in which `inside` answers.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::cleanup::Cleanup;
use crate::kinds::gvisor;
use crate::prepared::Undo;
use crate::undo;

mod chosen;

/// Runs in the container and reports what it sees.
#[test]
fn inside() {
    if std::env::args_os().next().is_none_or(|name| name != PROGRAM) {
        // Not in a container: `outside` starts this test in one.
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of_status = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.trim_start_matches(':').trim().to_owned()
    };
    let devices = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let devices = devices.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).count();
    let files =
        [WORK, "/tmp"].iter().filter(|at| std::fs::write(Path::new(at).join("file"), "x").is_ok()).count();
    let entries = std::fs::read_dir("/").map_or(0, Iterator::count);
    let cpus = of_status("Cpus_allowed_list");
    // With one thread, libtest has already printed the test's name on this line.
    let said = format!(
        "\nready seccomp={} devices={devices} files={files} entries={} cpus={cpus} pid={}\n",
        of_status("Seccomp"),
        if entries < 18 { "few" } else { "many" },
        std::process::id(),
    );
    let mut out = std::io::stdout();
    out.write_all(said.as_bytes()).and_then(|()| out.flush()).unwrap();
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    std::process::exit(0);
}

/// Environments in which this program is started: the runtimes, and gVisor.
fn all() -> Vec<&'static str> {
    Runtime::ALL.iter().map(|runtime| runtime.name()).chain(["gvisor"]).collect()
}

/// Prepares an environment with a process that answers. The returned identifier is in its command line.
fn prepared(name: &str, private: &Path, seccomp: &Seccomp) -> Result<(Prepared, String), EnvironmentError> {
    let agent = Agent::with(&[]).unwrap();
    let marker = private.file_name().unwrap().to_string_lossy().trim_start_matches('.').to_owned();
    let arguments =
        ["--exact", "container::tests::inside", "--nocapture", "--skip", &marker].map(OsString::from);
    let paths = Paths { private, work: None };
    let order = Order::new(agent.program(), &arguments, paths, name, seccomp);
    let runtime = Runtime::ALL.into_iter().find(|runtime| runtime.name() == name);
    let prepared = match runtime {
        Some(runtime) => runtime.prepare(&order),
        None => gvisor::of_order(&gvisor::Gvisor::default(), &order),
    };
    Ok((prepared?, marker))
}

/// Returns whether it can be tried here; prints the reason if not.
fn works(name: &str, private: &Path, cleanup: &Cleanup) -> bool {
    let agent = Agent::with(&[]).unwrap();
    let paths = Paths { private, work: None };
    let tried = match Runtime::ALL.into_iter().find(|runtime| runtime.name() == name) {
        Some(runtime) => try_out(runtime, &agent, paths, cleanup, &|| false),
        None => gvisor::try_out(&gvisor::Gvisor::default(), &agent, paths, cleanup, &|| false),
    };
    if let Err(why) = &tried {
        println!("skipped: {name}: {why}");
    }
    tried.is_ok()
}

/// Lists what exists of an environment: processes, mounts, cgroups and files.
fn left(marker: &str, private: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_own = entry.file_name().to_str() == Some(&std::process::id().to_string());
        if words.contains(marker) && !is_own {
            found.push(format!("process {}: {words}", entry.file_name().display()));
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(marker)).map(str::to_owned));
    let directories = ["/sys/fs/cgroup", "/run/systemd/nspawn", private.to_str().unwrap()];
    let mut directories: Vec<PathBuf> = directories.into_iter().map(PathBuf::from).collect();
    if private.exists() {
        found.push(private.display().to_string());
    }
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.path().to_string_lossy().contains(marker) {
                found.push(entry.path().display().to_string());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            }
        }
    }
    found
}

struct Started {
    child: std::process::Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    ready: String,
}

impl Started {
    fn start(prepared: &Prepared) -> Result<Self, String> {
        let mut command = Command::new(&prepared.command[0]);
        command.args(&prepared.command[1..]).envs(prepared.variables.iter().cloned()).process_group(0);
        let begun = Instant::now();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("ready") {
            line.clear();
            if from.read_line(&mut line).unwrap() == 0 {
                let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
                return Err(format!("{}: {said}", child.wait().unwrap()));
            }
        }
        println!("{} ms: {}", begun.elapsed().as_millis(), line.trim());
        Ok(Self { to: child.stdin.take(), child, from, ready: line })
    }

    /// Sends a line and returns the answer.
    fn echo(&mut self, line: &str) -> String {
        self.to.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut back = String::new();
        self.from.read_line(&mut back).unwrap();
        back.trim_end().to_owned()
    }

    fn end(mut self) {
        self.to.take();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Makes a directory like an environment's, with the action that removes it.
fn private() -> (PathBuf, Undo) {
    let made = tempfile::Builder::new().prefix(".tollgate-").tempdir().unwrap().keep();
    let stat = rustix::fs::stat(&made).unwrap();
    let undo = Undo::Directory { path: made.clone(), device: stat.st_dev, inode: stat.st_ino };
    (made, undo)
}

#[test]
fn each_speaks_with_what_it_starts_and_leaves_nothing() {
    let cleanup = Cleanup::begin().unwrap();
    for name in all() {
        let (path, removed) = private();
        let directory = cleanup.promise(&[removed]).unwrap();
        if !works(name, &path, &cleanup) {
            continue;
        }
        for (seccomp, mode) in [(Seccomp::Default, "2"), (Seccomp::None, "0")] {
            let (prepared, marker) = prepared(name, &path, &seccomp).unwrap();
            let undone = cleanup.promise(&prepared.undo).unwrap();
            let mut started = Started::start(&prepared).unwrap();
            println!("{name}");
            let mode = if name == "gvisor" { "0" } else { mode };
            let expected = format!("seccomp={mode} devices=0 files=2 entries=few");
            assert!(started.ready.contains(&expected), "{name}: {}", started.ready);
            assert_eq!(started.echo("hello"), "hello");
            assert!(left(&marker, &path).iter().any(|one| one.starts_with("process")));
            started.end();
            drop(undone);
        }
        let marker = prepared(name, &path, &Seccomp::Default).unwrap().1;
        drop(directory);
        assert_eq!(left(&marker, &path), [""; 0], "{name}");
    }
}

#[test]
fn whichever_process_is_killed_nothing_is_left() {
    let cleanup = Cleanup::begin().unwrap();
    for name in all() {
        for victim in ["the runtime", "the agent"] {
            let (path, removed) = private();
            let directory = cleanup.promise(&[removed]).unwrap();
            if !works(name, &path, &cleanup) {
                break;
            }
            let (prepared, marker) = prepared(name, &path, &Seccomp::Default).unwrap();
            let undone = cleanup.promise(&prepared.undo).unwrap();
            let mut started = Started::start(&prepared).unwrap();
            match victim {
                "the runtime" => started.child.kill().unwrap(),
                _ => kill_agent(&marker),
            }
            started.child.wait().unwrap();
            drop((undone, directory));
            // The kernel kills what is in the container by PR_SET_PDEATHSIG or with its PID namespace, after the victim has ended.
            let began = Instant::now();
            while !left(&marker, &path).is_empty() && began.elapsed() < Duration::from_secs(120) {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(left(&marker, &path), [""; 0], "{name}, {victim}");
        }
    }
}

/// Kills the process that runs `inside`; with gVisor, the sandbox around it.
fn kill_agent(marker: &str) {
    let of_agent = |line: &String| {
        line.split_once(": ")
            .is_some_and(|(_, words)| words.starts_with(PROGRAM) || words.starts_with("runsc-sandbox"))
    };
    let processes = left(marker, Path::new("/nonexistent"));
    let agents: Vec<&String> =
        processes.iter().filter(|line| line.starts_with("process") && of_agent(line)).collect();
    assert!(!agents.is_empty(), "{processes:?}");
    for agent in agents {
        let pid = agent.split([' ', ':']).nth(1).unwrap().parse().unwrap();
        tollgate_os::process::kill(pid, libc::SIGKILL).unwrap();
    }
}

/// Names the runtime, in a test process that plays the command.
const COMMAND: &str = "TOLLGATE_TEST_COMMAND";

/// Plays a command that starts an environment and waits to be killed.
#[test]
fn commander() {
    let Ok(name) = std::env::var(COMMAND) else {
        // `the_command_is_killed` starts this test as the command.
        return;
    };
    let cleanup = Cleanup::begin().unwrap();
    let (path, removed) = private();
    let _directory = cleanup.promise(&[removed]).unwrap();
    let (prepared, marker) = prepared(&name, &path, &Seccomp::Default).unwrap();
    let _undone = cleanup.promise(&prepared.undo).unwrap();
    let started = Started::start(&prepared).unwrap();
    let pid = started.child.id().cast_signed();
    let _ended = cleanup.promise(&[Undo::Group { pid, started: undo::started(pid) }]).unwrap();
    println!("commander {marker} {}", path.display());
    loop {
        std::thread::park();
    }
}

#[test]
fn when_the_command_is_killed_nothing_is_left() {
    let cleanup = Cleanup::begin().unwrap();
    for name in all() {
        let (path, removed) = private();
        let _directory = cleanup.promise(&[removed]).unwrap();
        if !works(name, &path, &cleanup) {
            continue;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "container::tests::commander", "--nocapture"]).env(COMMAND, name);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map_while(Result::ok).find(|line| line.starts_with("commander ")).unwrap();
        let [_, marker, path] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // The cleanup process allows 30 s for each program that it runs.
        let begun = Instant::now();
        while begun.elapsed().as_secs() < 60 && !left(marker, Path::new(path)).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(left(marker, Path::new(path)), [""; 0], "{name}");
        println!("{name}: {} ms", begun.elapsed().as_millis());
    }
}
