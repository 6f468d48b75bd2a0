//! Files that another user may put where this program is started: a FIFO instead of a file, programs and a repository in the
//! working directory, and variables that other programs obey.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::common;
use common::{Home, program, wait_for};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Arguments that name a file to be read. FIFO stands for the file.
const READERS: [&[&str]; 13] = [
    &["show", "FIFO"],
    &["compare", "FIFO", "FIFO"],
    &["decode", "FIFO"],
    &["trace", "--from", "FIFO"],
    &["trace", "--keys", "FIFO", "true"],
    &["inspect", "--from", "FIFO"],
    &["inspect", "config", "FIFO"],
    &["inspect", "kernel", "--from", "FIFO"],
    &["schedules", "FIFO"],
    &["lab", "--read", "FIFO"],
    &["lab", "--program", "FIFO"],
    &["run", "entry/call", "--time", "1", "--in", "container:seccomp=FIFO"],
    &["run", "entry/call", "--time", "1", "--in", "vm:kernel=FIFO"],
];

/// The program ends by itself, or waits for a writer as cat(1) does and a signal ends it.
#[test]
fn a_fifo_without_a_writer_holds_nothing_past_sigterm() {
    let home = Home::new();
    let fifo = home.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("mknod(2)");
    for arguments in READERS {
        let named = |word: &&str| word.replace("FIFO", fifo.to_str().expect("text"));
        let mut child = Command::new(program())
            .args(arguments.iter().map(named))
            .env("XDG_DATA_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // A FIFO can be opened for writing without waiting only if a process has it open for reading or waits to.
        let writer = wait_for("an end, or a reader", || match child.try_wait().expect("our own child") {
            Some(_) => Some(None),
            None => writer(&fifo).map(Some),
        });
        let ended = if writer.is_some() { terminated(&mut child) } else { child.wait().expect("ended") };
        drop(writer);
        let is_refused = ended.code() == Some(2);
        assert!(is_refused || ended.signal() == Some(libc::SIGTERM), "{arguments:?}: {ended}");
    }
}

fn writer(fifo: &Path) -> Option<File> {
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(fifo).ok()
}

fn terminated(child: &mut Child) -> ExitStatus {
    // If this fails, it has ended meanwhile.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    wait_for("an end by SIGTERM", || child.try_wait().expect("our own child"))
}

/// A working directory made by another user. Programs that are executed in it, or because of it, leave a mark.
struct Trap {
    home: Home,
}

impl Trap {
    fn new() -> Self {
        let trap = Self { home: Home::new() };
        fs::create_dir(trap.at()).expect("made");
        for program in [
            "as",
            "bwrap",
            "cc",
            "crun",
            "ctags",
            "depmod",
            "docker",
            "gcc",
            "git",
            "grep",
            "ld",
            "make",
            "mkfs.ext4",
            "modprobe",
            "podman",
            "qemu-system-x86_64",
            "runc",
            "runsc",
            "setarch",
            "sh",
            "ssh",
            "systemd-nspawn",
            "tar",
            "trap",
        ] {
            trap.script(program);
        }
        trap
    }

    fn at(&self) -> PathBuf {
        self.home.path().join("trap")
    }

    fn mark(&self) -> PathBuf {
        self.home.path().join("mark")
    }

    fn script(&self, name: &str) {
        let script = self.at().join(name);
        fs::write(&script, format!("#!/bin/sh\necho \"$0\" >> {}\n", self.mark().display()))
            .expect("written");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("our own");
    }

    /// A repository around everything below it that executes something at every opportunity.
    fn repository(&self) -> bool {
        let git = |words: &[&str]| {
            Command::new("git")
                .args(words)
                .current_dir(self.at())
                .output()
                .is_ok_and(|output| output.status.success())
        };
        let trap = self.at().join("trap");
        let trap = trap.to_str().expect("text");
        let is_there = git(&["init", "-q"])
            && ["core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "filter.x.clean"]
                .iter()
                .all(|name| git(&["config", name, trap]));
        for hook in ["post-checkout", "post-commit", "pre-commit", "post-index-change"] {
            let _ = fs::copy(trap, self.at().join(".git/hooks").join(hook));
        }
        is_there
    }

    fn tollgate(&self, arguments: &[&str]) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [std::ffi::OsStr::new(":.:"), &path].join(std::ffi::OsStr::new(""));
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.at())
            .env("PATH", path)
            .env("XDG_DATA_HOME", self.home.path());
        command.stdin(Stdio::null());
        command
    }

    fn expect_untouched(&self, what: &str) {
        let executed = fs::read_to_string(self.mark()).unwrap_or_default();
        assert_eq!(executed, "", "{what}");
    }
}

#[test]
fn programs_of_the_working_directory_are_not_executed() {
    let trap = Trap::new();
    fs::write(trap.at().join("x.s"), "mov $1, %eax\n").expect("written");
    for arguments in [
        &["environments"][..],
        &["doctor", "--quick"],
        &["lab", "--program", "x.s", "--on", "qemu"],
        &["lab", "--program", "x.s"],
        &["run", "entry/call", "--time", "1", "--in", "container", "--quiet"],
    ] {
        let _ = trap.tollgate(arguments).output().expect("started");
        trap.expect_untouched(&format!("{arguments:?}"));
    }
}

/// Programs whose measured work must be the same with any variables and any repository around them.
#[test]
fn workloads_obey_neither_variables_nor_a_repository_around_them() {
    let trap = Trap::new();
    if !trap.repository() {
        println!("skipped: no git, which workloads run");
        return;
    }
    let at = |name: &str| trap.at().join(name).display().to_string();
    let mark = trap.mark().display().to_string();
    fs::write(trap.at().join("all.mk"), format!("$(shell echo MAKEFILES >> {mark})\n")).expect("written");
    let variables = [
        ("BASH_ENV", at("trap")),
        ("ENV", at("trap")),
        ("CC", at("cc")),
        ("GIT_DIR", at(".git")),
        ("GIT_EXEC_PATH", at("")),
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor".to_owned()),
        ("GIT_CONFIG_VALUE_0", at("trap")),
        ("GIT_EXTERNAL_DIFF", at("trap")),
        ("GREP_OPTIONS", "--no-such-option".to_owned()),
        ("LD_PRELOAD", at("trap")),
        ("MAKEFILES", at("all.mk")),
        ("MAKEFLAGS", "-n".to_owned()),
        ("TAR_OPTIONS", format!("--checkpoint=1 --checkpoint-action=exec={}", at("trap"))),
    ];
    let run = ["run", "workloads", "--processes", "1", "--dir", ".", "--quiet", "--out", "-"];
    let output = trap.tollgate(&run).envs(variables).output().expect("started");
    trap.expect_untouched("a workload");
    let text = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}"));
    let rows = document["measurements"].as_array().expect("measurements");
    let failed: Vec<_> = rows.iter().filter(|row| row["status"] == "failed").collect();
    assert!(failed.is_empty(), "{failed:?}");
    for name in ["workloads/checkout", "workloads/build", "workloads/unpack", "workloads/grep"] {
        assert!(rows.iter().any(|row| row["benchmark"] == name), "{name}: {rows:?}");
    }
}
