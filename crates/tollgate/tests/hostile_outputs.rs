//! Outputs in directories of another user: with any files and links of that user there, no file elsewhere changes, and no new
//! file belongs to that user. Each verb that writes meets each preparation, as root and as a third user.
//!
//! These tests need root: only root can make what another user owns.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags};

/// The owner of the directory, and the third user that runs the program.
const OWNER: u32 = 54_321;
const THIRD: u32 = 54_323;
/// The content of a file that only root may change.
const SECRET: &str = "only root writes this";

/// The verbs that write; `{}` stands for the output.
const WRITERS: [(&str, &[&str]); 13] = [
    (LAB, &["lab", "int", "--on", "interpreter", "--out", "{}"]),
    ("lab --image", &["lab", "--image", "{}"]),
    (DUMP, &["lab", "--dump", "--on", "interpreter", "--out", "{}"]),
    (SLOW, &["run", "entry/call", "--processes", "1", "--quiet", "--out", "{}"]),
    ("trace --out", &["trace", "--quiet", "--out", "{}", "--", "true"]),
    ("trace --timeline", &["trace", "--quiet", "--timeline", "{}", "--", "true"]),
    (EXPORT, &["export", "{run}", "--format", "csv", "--out", "{}"]),
    ("report", &["report", "{run}", "--out", "{}"]),
    (CAPTURE, &["inspect", "--capture", "{}"]),
    ("trace --stacks", &["trace", "--quiet", "--stacks", "{}", "--", "true"]),
    ("versus --export-json", &["versus", "true", "--runs", "4", "--quiet", "--export-json", "{}"]),
    ("versus --out", &["versus", "true", "--runs", "4", "--quiet", "--out", "{}"]),
    (MAN, &["man", "{}"]),
];

const LAB: &str = "lab --out";
const DUMP: &str = "lab --dump --out";
const EXPORT: &str = "export";
/// Makes a directory with several files.
const MAN: &str = "man";
/// Makes a directory, and accepts nothing that exists.
const CAPTURE: &str = "inspect --capture";
/// A run is slow, so it is tried with only one mode of the directory.
const SLOW: &str = "run --out";

/// How the owner prepares the directory; returns the path below it that the program gets.
type Preparation = (&'static str, fn(&Stage) -> PathBuf);

const SET_USER_ID: &str = "a file with set-user-ID and every other bit";

const PREPARATIONS: [Preparation; 10] = [
    ("a link to a file of root's", |stage| stage.link("out", &stage.precious().join("file"))),
    ("a link to a new file", |stage| stage.link("out", &stage.precious().join("new"))),
    ("a link to a directory of root's on the way", |stage| {
        stage.link("way", &stage.precious());
        stage.theirs().join("way/new")
    }),
    ("a link out of the tree by ..", |stage| {
        stage.link("up", Path::new("../precious"));
        stage.theirs().join("up/new")
    }),
    ("a link of root's in the owner's directory", |stage| {
        symlink(stage.precious(), stage.theirs().join("roots")).expect("linked");
        stage.theirs().join("roots/new")
    }),
    ("a chain of links", |stage| {
        let end = stage.link("end", &stage.precious().join("file"));
        stage.link("out", &end)
    }),
    (SET_USER_ID, |stage| {
        let file = stage.theirs().join("out");
        fs::write(&file, "theirs").expect("written");
        chown(&file, Some(OWNER), Some(OWNER)).expect("given away");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o6777)).expect("set");
        file
    }),
    ("a second name of a file of root's", |stage| {
        let file = stage.theirs().join("out");
        fs::hard_link(stage.precious().join("file"), &file).expect("linked");
        file
    }),
    ("a FIFO", |stage| {
        let fifo = stage.theirs().join("out");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("made");
        chown(&fifo, Some(OWNER), Some(OWNER)).expect("given away");
        fifo
    }),
    ("nothing", |stage| stage.theirs().join("out")),
];

fn named<T: Copy>(rows: &[(&str, T)], name: &str) -> T {
    rows.iter().find(|row| row.0 == name).expect("a row").1
}

/// A directory of the owner's, and one of root's that must not change.
struct Stage {
    temporary: tempfile::TempDir,
}

impl Stage {
    fn new(mode: u32) -> Self {
        let stage = Self { temporary: tempfile::tempdir().expect("a directory") };
        fs::set_permissions(stage.temporary.path(), fs::Permissions::from_mode(0o755)).expect("set");
        fs::create_dir(stage.precious()).expect("made");
        fs::write(stage.precious().join("file"), SECRET).expect("written");
        fs::create_dir(stage.theirs()).expect("made");
        chown(stage.theirs(), Some(OWNER), Some(OWNER)).expect("given away");
        fs::set_permissions(stage.theirs(), fs::Permissions::from_mode(mode)).expect("set");
        stage
    }

    fn theirs(&self) -> PathBuf {
        self.temporary.path().join("theirs")
    }

    fn precious(&self) -> PathBuf {
        self.temporary.path().join("precious")
    }

    fn link(&self, name: &str, target: &Path) -> PathBuf {
        let link = self.theirs().join(name);
        symlink(target, &link).expect("linked");
        lchown(&link, Some(OWNER), Some(OWNER)).expect("given away");
        link
    }

    /// Checks that no file of root's has changed, and that no file in the owner's directory has rights of other users.
    fn expect_safe(&self, what: &str) {
        let names: Vec<_> = fs::read_dir(self.precious())
            .expect("read")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["file"], "{what}: a file appeared in root's directory");
        let file = self.precious().join("file");
        assert_eq!(fs::read_to_string(&file).expect("read"), SECRET, "{what}: root's file was changed");
        let stat = fs::metadata(&file).expect("there");
        assert_eq!((stat.uid(), stat.mode() & 0o7777), (0, 0o644), "{what}: root's file has other rights");
        let mut directories = vec![self.theirs()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).expect("read") {
                let path = entry.expect("an entry").path();
                let stat = fs::symlink_metadata(&path).expect("there");
                if stat.is_dir() {
                    directories.push(path.clone());
                }
                let gives = stat.is_file() && stat.uid() != OWNER && stat.mode() & 0o7111 != 0;
                assert!(
                    !gives,
                    "{what}: {} of uid {} has mode {:o}",
                    path.display(),
                    stat.uid(),
                    stat.mode()
                );
            }
        }
    }
}

/// A copy of the program that every user may execute.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let temporary = common::public_directory();
        let path = common::readable_copy(temporary.path());
        (temporary, path)
    });
    path
}

/// A run to export and to report, which every user may read.
fn run_to_show() -> &'static Path {
    static RUN: OnceLock<tempfile::NamedTempFile> = OnceLock::new();
    RUN.get_or_init(|| {
        let file = tempfile::Builder::new().suffix(".json").tempfile().expect("a file");
        let document = common::document("20261121-015427-3f2a91c4", None, 1.0);
        fs::write(file.path(), document.to_string()).expect("written");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).expect("set");
        file
    })
    .path()
}

fn skipped() -> bool {
    let skipped = !common::is_root();
    if skipped {
        println!("skipped: needs root (to make what another user owns)");
    }
    skipped
}

fn tried(arguments: &[&str], out: &Path, user: u32) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    chown(home.path(), Some(user), Some(user)).expect("given away");
    let path = |path: &Path| path.to_str().expect("text").to_owned();
    let arguments = arguments
        .iter()
        .map(|argument| argument.replace("{run}", &path(run_to_show())).replace("{}", &path(out)));
    let mut command = Command::new(program());
    command.args(arguments).current_dir("/").env("HOME", home.path());
    // The widest rights that a new file can have.
    // SAFETY: umask(2) is async-signal-safe and touches no memory.
    unsafe {
        command.pre_exec(|| {
            rustix::process::umask(Mode::empty());
            Ok(())
        })
    };
    if user != 0 {
        command.uid(user).gid(user);
    }
    command.stdin(Stdio::null()).output().expect("started")
}

fn expect_sane(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    let status = output.status.code();
    assert!(matches!(status, Some(0 | 2 | 4)), "{what}: {status:?}: {said}");
    assert!(!said.contains("panicked") && !said.contains("os error"), "{what}: {said}");
    // A timeline that could not be written does not change the exit status of a traced command.
    if status != Some(0) {
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
    }
}

fn matrix(user: u32) {
    for (verb, arguments) in WRITERS {
        for (prepared, prepare) in PREPARATIONS {
            for mode in [0o755, 0o777, 0o1777] {
                if verb == SLOW && mode != 0o1777 {
                    continue;
                }
                let what = format!("{verb} as {user}, {prepared}, mode {mode:o}");
                let stage = Stage::new(mode);
                let out = prepare(&stage);
                let output = tried(arguments, &out, user);
                stage.expect_safe(&what);
                expect_sane(&what, &output);
                if prepared.contains("link") && !prepared.contains("second") {
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(
                        said.contains("symbolic link") || said.contains("Permission denied"),
                        "{what}: {said}"
                    );
                }
                if prepared == "nothing" && (user == 0 || mode & 0o002 != 0) {
                    assert!(output.status.success(), "{what}: a plain file is written");
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(out.exists() || said.contains("only BPF reports"), "{what}: {said}");
                }
            }
        }
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn outputs_of_root_lead_nowhere() {
    if !skipped() {
        matrix(0);
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn outputs_of_a_third_user_lead_nowhere() {
    if !skipped() {
        matrix(THIRD);
    }
}

#[test]
fn a_file_that_another_user_prepared_gives_no_right_to_its_successor() {
    if skipped() {
        return;
    }
    let stage = Stage::new(0o755);
    let out = named(&PREPARATIONS, SET_USER_ID)(&stage);
    assert!(tried(named(&WRITERS, LAB), &out, 0).status.success());
    let stat = fs::metadata(&out).expect("there");
    assert_eq!((stat.uid(), stat.mode() & 0o7777), (0, 0o666), "{:o}", stat.mode());
}

#[test]
fn a_directory_that_is_exchanged_all_the_time_leads_nowhere() {
    if skipped() {
        return;
    }
    for verb in [LAB, DUMP, EXPORT, CAPTURE, MAN] {
        let arguments = named(&WRITERS, verb);
        let stage = Stage::new(0o755);
        let way = stage.theirs().join("way");
        fs::create_dir(&way).expect("made");
        chown(&way, Some(OWNER), Some(OWNER)).expect("given away");
        stage.link("bait", &stage.precious());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (way, bait) = (way.clone(), stage.theirs().join("bait"));
                    let exchanged = rustix::fs::renameat_with(CWD, way, CWD, bait, RenameFlags::EXCHANGE);
                    exchanged.expect("exchanged");
                }
            });
            for round in 0..12 {
                let output = tried(arguments, &way.join(format!("out-{round}")), 0);
                expect_sane(verb, &output);
            }
            stop.store(true, Ordering::Relaxed);
        });
        stage.expect_safe(verb);
    }
}

#[test]
fn a_store_of_another_user_is_entered_without_its_links() {
    if skipped() {
        return;
    }
    let add = ["store", "add", "{}", "{run}"];
    // Every directory of the layout in turn is a link, then every file that a first run of `store` made.
    let sample = Stage::new(0o755);
    assert!(tried(&add, &sample.theirs(), 0).status.success(), "a store of another user is written");
    sample.expect_safe("store add");
    let mut layout = Vec::new();
    let mut directories = vec![sample.theirs()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path.clone());
            }
            layout.push(path.strip_prefix(sample.theirs()).expect("beneath").to_owned());
        }
    }
    assert!(layout.len() >= 6, "{layout:?}");
    for path in layout {
        for target in ["file", "new", ""] {
            let what = format!("{} leads to precious/{target}", path.display());
            let stage = Stage::new(0o755);
            let link = stage.theirs().join(&path);
            for directory in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                let directory = stage.theirs().join(directory);
                let _ = fs::create_dir(&directory);
                chown(&directory, Some(OWNER), Some(OWNER)).expect("given away");
            }
            symlink(stage.precious().join(target), &link).expect("linked");
            lchown(&link, Some(OWNER), Some(OWNER)).expect("given away");
            let output = tried(&add, &stage.theirs(), 0);
            stage.expect_safe(&what);
            expect_sane(&what, &output);
        }
    }
}

#[test]
fn root_keeps_nothing_under_another_users_home_and_follows_no_link_there() {
    if skipped() {
        return;
    }
    let run = |stage: &Stage, home: &Path| {
        let output = Command::new(program())
            .args(["lab", "int", "--on", "interpreter"])
            .current_dir("/")
            .env("HOME", home)
            .output()
            .expect("started");
        stage.expect_safe("lab");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let stage = Stage::new(0o755);
    let said = run(&stage, &stage.theirs());
    assert!(said.contains("will not be kept") && said.contains("54321"), "{said}");
    assert_eq!(
        fs::read_dir(stage.theirs()).expect("read").count(),
        0,
        "something was made in the other's home"
    );
    // A home of root's whose .local is a link that another user made.
    let stage = Stage::new(0o755);
    let home = stage.temporary.path().join("home");
    fs::create_dir(&home).expect("made");
    symlink(stage.precious(), home.join(".local")).expect("linked");
    lchown(home.join(".local"), Some(OWNER), Some(OWNER)).expect("given away");
    let said = run(&stage, &home);
    assert!(said.contains("will not be kept"), "{said}");
}

#[test]
fn kept_runs_are_their_owners_alone() {
    let home = common::Home::new();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).expect("set");
    fs::create_dir_all(home.runs()).expect("made");
    fs::set_permissions(home.runs(), fs::Permissions::from_mode(0o755)).expect("set");
    home.tollgate(["lab", "int", "--on", "interpreter"]).assert().success();
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o7777;
    assert_eq!(mode(&home.runs()), 0o700);
    let runs: Vec<PathBuf> =
        fs::read_dir(home.runs()).expect("read").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(runs.len(), 1);
    assert_eq!(mode(&runs[0]), 0o600);
}

#[test]
fn a_run_that_cannot_be_kept_says_where_and_why_and_has_a_status_of_its_own() {
    if skipped() {
        return;
    }
    // A file system with room for the trial before the run but, once it is filled, for nothing later. A run has a child while
    // it measures.
    let script = r#"mount -t tmpfs -o size=600k none "$1" || exit 99
        XDG_DATA_HOME=$1 "$2" run entry/call entry/syscall entry/int80 --processes 60 --quiet > "$1.out" 2> "$1.err" & program=$!
        until grep -q . /proc/$program/task/$program/children; do sleep 0.02; done
        dd if=/dev/zero of="$1/filler" bs=1k 2> /dev/null; wait $program"#;
    let mount = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(mount.path()).arg(program());
    let status = command.status().expect("started").code();
    let beside = |suffix| {
        let path = format!("{}.{suffix}", mount.path().display());
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(&path);
        text
    };
    let (out, said) = (beside("out"), beside("err"));
    if status == Some(99) {
        println!("skipped: no file system can be mounted here");
        return;
    }
    assert_eq!(status, Some(4), "{said}");
    assert!(
        said.contains("was not kept") && said.contains("/tollgate/runs/") && said.contains("No space"),
        "{said}"
    );
    // A mark stands before a row whose interval is wide.
    assert!(
        out.lines().any(|line| line.starts_with([' ', '~']) && line[1..].starts_with(" call ")),
        "the figures are shown all the same: {out}"
    );
}
