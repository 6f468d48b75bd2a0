//! Working directories that another user owns, exchanges or may write to: root reveals nothing to that user.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{program, readable_copy, wait_for};
use serde_json::Value;

/// A user that no system has.
const OTHER: u32 = 54_321;

/// Two runs at a time would be each other's noise.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_root() -> bool {
    let is_root = common::is_root();
    if !is_root {
        println!("skipped: needs root (to give a directory to another user)");
    }
    is_root
}

/// A directory of root's that all users may enter, with the files of a test.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(common::public_directory());
        fs::set_permissions(scene.0.path(), fs::Permissions::from_mode(0o755)).expect("our own");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn directory(&self, name: &str, owner: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).expect("a new directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own");
        chown(&path, Some(owner), Some(owner)).expect("root may");
        path
    }

    fn tollgate(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).arg("--quiet").env("XDG_DATA_HOME", self.path("data")).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A run of some cases in this many processes, with `--dir`, whose document it prints.
    fn run(&self, patterns: &[&str], processes: &str, within: &Path) -> Command {
        let within = within.to_str().expect("text");
        let options = ["--processes", processes, "--dir", within, "--out", "-"];
        self.tollgate(&program(), &[&["run"], patterns, &options].concat())
    }
}

fn output(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The outcome of each case of a successful run.
fn statuses(output: &Output) -> Vec<(String, String)> {
    assert!(output.status.success(), "{}", said(output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let rows = document["measurements"].as_array().expect("measurements");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.iter()
        .map(|row| (text(row, "benchmark"), text(row, "status") + &text(row, "why") + &text(row, "error")))
        .collect()
}

fn expect_measured(run: Command) {
    let statuses = statuses(&output(run));
    assert!(statuses.iter().all(|(_, status)| status == "measured"), "{statuses:?}");
}

/// The one line of the refusal; also checks that the exit status is that of wrong input.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", said(output));
    assert!(output.stdout.is_empty());
    let text = said(output);
    let line = text.strip_suffix('\n').expect("a line");
    assert!(!line.contains('\n'), "more than one line: {text}");
    line.to_owned()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Does `work` while `beside` is done in another thread, again and again.
fn while_running<T>(beside: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut beside = beside;
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Relaxed) {
                beside();
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Relaxed);
        outcome.unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// Root's message about another user's directory, after its path.
const THEIRS: &str = "belongs to uid 54321, who could replace the files in use there; name a directory of your own with --dir, or run \
                      tollgate as its owner (sudo -u '#54321' tollgate ...)";

#[test]
fn root_writes_nothing_in_another_users_directory() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    for mode in [0o755, 0o1777] {
        let theirs = scene.directory(&format!("theirs-{mode:o}"), OTHER, mode);
        let below = theirs.join("below");
        fs::create_dir(&below).expect("a new directory");
        // Only the owner may remove files that a killed run left.
        let left = theirs.join(".tollgate-4194304-0123456789abcdef");
        fs::create_dir(&left).expect("a new directory");
        fs::set_permissions(&left, fs::Permissions::from_mode(0o700)).expect("our own");
        let is_as_it_was = || {
            let mut there = names(&theirs);
            there.sort();
            assert_eq!(there, [".tollgate-4194304-0123456789abcdef", "below"]);
            assert_eq!((names(&below), names(&left)), (Vec::new(), Vec::new()));
        };
        for within in [&theirs, &below] {
            for pattern in ["files/stat", "workloads/unpack"] {
                let line = refusal(&output(scene.run(&[pattern], "1", within)));
                assert_eq!(line, format!("tollgate: --dir: {} {THEIRS}", theirs.display()));
            }
            is_as_it_was();
            // In the current directory, cases of files are skipped with a reason.
            let arguments = ["run", "files/stat", "entry/syscall", "--processes", "1", "--out", "-"];
            let mut run = scene.tollgate(&program(), &arguments);
            run.current_dir(within);
            let rows = statuses(&output(run));
            let status =
                |benchmark: &str| &rows.iter().find(|(name, _)| name == benchmark).expect("its row").1;
            assert_eq!(*status("files/stat"), format!("skipped{} {THEIRS}", theirs.display()));
            assert_eq!(status("entry/syscall"), "measured", "{rows:?}");
            is_as_it_was();
        }
    }
}

#[test]
fn what_root_does_in_a_sticky_directory_the_others_there_cannot_lead_elsewhere() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let precious = scene.directory("precious", 0, 0o755);
    fs::write(precious.join("file"), "x").expect("a new file");
    let sticky = scene.directory("sticky", 0, 0o1777);
    // Names that the cleanup removes; another user may have made them there.
    let (theirs, link) =
        (sticky.join(".tollgate-1-0123456789abcdef"), sticky.join(".tollgate-2-0123456789abcdef"));
    fs::create_dir(&theirs).expect("a new directory");
    symlink(&precious, theirs.join("link")).expect("a new link");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o700)).expect("our own");
    chown(&theirs, Some(OTHER), Some(OTHER)).expect("root may");
    symlink(&precious, &link).expect("a new link");
    lchown(&link, Some(OTHER), Some(OTHER)).expect("root may");
    expect_measured(scene.run(&["files/stat", "files/create"], "1", &sticky));
    let mut left = names(&sticky);
    left.sort();
    assert_eq!(left, [".tollgate-1-0123456789abcdef", ".tollgate-2-0123456789abcdef"]);
    assert_eq!((names(&theirs), names(&precious)), (vec!["link".to_owned()], vec!["file".to_owned()]));
}

#[test]
fn the_files_of_a_killed_run_are_removed_by_the_next() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let sticky = scene.directory("sticky", 0, 0o1777);
    let precious = scene.directory("precious", 0, 0o755);
    fs::write(precious.join("file"), "x").expect("a new file");
    let mut killed = scene.run(&["files/create"], "2000", &sticky).spawn().expect("it starts");
    let own = |name: &String| name.starts_with(&format!(".tollgate-{}-", killed.id()));
    let left = wait_for("a file of a measuring process", || {
        let left = names(&sticky).into_iter().find(own).map(|name| sticky.join(name));
        left.filter(|left| fs::read_dir(left).is_ok_and(|mut files| files.next().is_some()))
    });
    killed.kill().expect("our child");
    killed.wait().expect("our child");
    assert!(left.exists());
    wait_for("the end of the measuring process with its parent", || (!is_used(&left)).then_some(()));
    symlink(&precious, left.join("link")).expect("a new link");
    expect_measured(scene.run(&["files/stat"], "1", &sticky));
    assert_eq!((names(&sticky), names(&precious)), (Vec::new(), vec!["file".to_owned()]));
}

/// Whether a process holds a directory open.
fn is_used(directory: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let descriptors = processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok());
    descriptors
        .flat_map(|descriptors| descriptors.flatten())
        .any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|target| target.starts_with(directory)))
}

const OPEN: &str = "may be written by others (mode 0777), who could replace the files in use there; remove that right \
                    (chmod o-w), set the sticky bit (chmod +t), or name another directory";

#[test]
fn a_parent_that_all_may_write_needs_the_sticky_bit() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let open = scene.directory("open", 0, 0o777);
    let below = open.join("below");
    fs::create_dir(&below).expect("a new directory");
    for within in [&open, &below] {
        let line = refusal(&output(scene.run(&["files/stat"], "1", within)));
        assert_eq!(line, format!("tollgate: --dir: {} {OPEN}", open.display()));
    }
    // The current directory is not only for files: its cases are skipped with a reason.
    let arguments = ["run", "files/stat", "entry/syscall", "--processes", "1", "--out", "-"];
    let mut run = scene.tollgate(&program(), &arguments);
    run.current_dir(&below);
    let rows = statuses(&output(run));
    let status = |benchmark: &str| &rows.iter().find(|(name, _)| name == benchmark).expect("its row").1;
    assert_eq!(*status("files/stat"), format!("skipped{} {OPEN}", open.display()));
    assert_eq!(status("entry/syscall"), "measured", "{rows:?}");
    assert_eq!((names(&open), names(&below)), (vec!["below".to_owned()], Vec::new()));
    let sticky = scene.directory("sticky", 0, 0o1777);
    expect_measured(scene.run(&["files/stat"], "1", &sticky));
    assert_eq!(names(&sticky), [""; 0]);
}

#[test]
fn a_user_is_refused_in_another_users_directory() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let program = readable_copy(&scene.path(""));
    let theirs = scene.directory("theirs", OTHER + 1, 0o1777);
    let within = theirs.to_str().expect("text");
    let mut run =
        scene.tollgate(&program, &["run", "files/stat", "--processes", "1", "--dir", within, "--out", "-"]);
    run.uid(OTHER).gid(OTHER);
    let line = refusal(&output(run));
    let who = "belongs to uid 54322, who could replace the files in use there; name a directory of your own with --dir";
    assert_eq!(line, format!("tollgate: --dir: {within} {who}"));
    assert_eq!(names(&theirs), [""; 0]);
    let own = scene.directory("own", OTHER, 0o755);
    let within = own.to_str().expect("text");
    let options = ["run", "files/stat", "--processes", "1", "--dir", within, "--out", "-"];
    let mut run = scene.tollgate(&program, &options);
    run.uid(OTHER).gid(OTHER);
    expect_measured(run);
    assert_eq!(names(&own), [""; 0]);
}

#[test]
fn a_link_of_another_user_is_not_followed() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let treasure = scene.directory("treasure", 0, 0o755);
    let theirs = scene.directory("theirs", OTHER, 0o755);
    for (link, owner) in
        [(theirs.join("link"), OTHER), (theirs.join("roots"), 0), (scene.path("link"), OTHER)]
    {
        symlink(&treasure, &link).expect("a new link");
        lchown(&link, Some(owner), Some(owner)).expect("root may");
        let line = refusal(&output(scene.run(&["files/stat"], "1", &link)));
        let what = "is a symbolic link that uid 54321 controls and is not followed";
        let instead = "name the file itself, or remove the link";
        assert_eq!(line, format!("tollgate: --dir: {} {what}; {instead}", link.display()));
    }
    let link = scene.path("own");
    symlink(&treasure, &link).expect("a new link");
    expect_measured(scene.run(&["files/stat"], "1", &link));
    assert_eq!(names(&treasure), [""; 0]);
}

#[test]
fn a_device_in_memory_is_mounted_where_no_other_user_can_exchange_it() {
    /// The script's exit status if mounting is not permitted.
    const NOT_HERE: i32 = 77;
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    // The program is started by its descriptor, since its own path may be in /tmp.
    let script = r#"
        exec 9<"$1"; cd /
        mount -t tmpfs -o uid=54321,mode=755 none /run && mount -t tmpfs -o mode=777 none /tmp || exit 77
        mkdir -m 700 /run/.tollgate-ram-1-0123456789abcdef
        /proc/self/fd/9 run files/stat --on ram --processes 1 --quiet --out - || status=$?
        [ "$(echo /run/.tollgate-* /tmp/.tollgate-*)" = "/run/.tollgate-ram-1-0123456789abcdef /tmp/.tollgate-*" ] || exit 78
        exit $status"#;
    let mut hidden = Command::new("unshare");
    hidden
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(program())
        .env("XDG_DATA_HOME", scene.path("data"));
    let Ok(output) = hidden.stdin(Stdio::null()).output() else {
        return println!("skipped: needs unshare(1)");
    };
    let said = said(&output);
    let is_here = output.status.code() != Some(NOT_HERE) && !said.contains("unshare");
    if !is_here || said.contains("needs root") || said.contains("mkfs") {
        return println!("skipped: no file system can be mounted here: {said}");
    }
    let line = refusal(&output);
    assert_eq!(line, format!("tollgate: --on ram: /tmp {OPEN}"));
}

/// Renames what root makes in this directory, and puts a link to another one in its place.
fn lead_elsewhere(theirs: &Path, elsewhere: &Path) {
    for name in names(theirs) {
        let (path, aside) = (theirs.join(&name), theirs.join(format!("aside-{name}")));
        let is_new =
            !name.starts_with("aside-") && fs::symlink_metadata(&path).is_ok_and(|is| !is.is_symlink());
        if is_new && fs::rename(&path, aside).is_ok() {
            let to =
                if name.starts_with(".tollgate-") { elsewhere.to_owned() } else { elsewhere.join(&name) };
            let _ = symlink(to, path);
        }
    }
}

#[test]
fn an_assembler_that_root_runs_is_led_nowhere() {
    /// More than enough: without a private directory every run would be redirected.
    const RUNS: usize = 5;
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let text = scene.path("x.s");
    fs::write(&text, ".globl _start\n_start: hlt\n").expect("a new file");
    let theirs = scene.directory("theirs", OTHER, 0o755);
    let elsewhere = scene.directory("elsewhere", 0, 0o700);
    let run = || {
        let mut command = Command::new(program());
        command.args(["lab", "--on", "interpreter", "--program"]).arg(&text).env("TMPDIR", &theirs);
        output(command)
    };
    let ended = while_running(|| lead_elsewhere(&theirs, &elsewhere), || [(); RUNS].map(|()| run()));
    if ended.iter().any(|output| said(output).contains("to be assembled, which is not in PATH")) {
        return println!("skipped: there is no assembler");
    }
    for output in &ended {
        assert!(said(output).contains("x.s: #GP(0)"), "it was assembled and run: {}", said(output));
    }
    assert_eq!(names(&elsewhere), [""; 0]);
    assert_eq!(names(&theirs), [""; 0], "nothing is made there");
}
