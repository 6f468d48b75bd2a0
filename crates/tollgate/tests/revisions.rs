//! Revisions as sides: they are built once, at one path; equal files are not measured; and the repository stays as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common;
use common::{Home, wait_for};
use serde_json::Value;

/// A repository of a program that `--build` links or copies, and its builds.
struct Repository {
    home: Home,
    at: tempfile::TempDir,
}

/// Its sources are programs of this machine, so no compiler is needed: a file names the one to copy.
const BUILD: &str = "mkdir bin && cp \"$(cat program)\" bin/tool && echo built >> \"$BUILDS\"";

impl Repository {
    /// `None` without git(1).
    fn new() -> Option<Self> {
        let repository = Self { home: Home::new(), at: tempfile::tempdir().expect("a directory") };
        if Command::new("git").arg("--version").output().is_err() {
            println!("skipped: no git");
            return None;
        }
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.write(".gitignore", "ignored\n");
        repository.write("program", &path_of("true"));
        repository.commit("first");
        Some(repository)
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.at.path()).args(["-c", "user.name=n", "-c", "user.email=e@example.org"]);
        let output = git.args(words).env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at.path().join(name), text).expect("written");
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(common::program());
        command.arg("versus").args(words).current_dir(self.at.path());
        command
            .env("XDG_CACHE_HOME", self.home.path().join("cache"))
            .env("BUILDS", self.home.path().join("built"));
        command.env("XDG_DATA_HOME", self.home.path()).env("XDG_CONFIG_HOME", self.home.path());
        command.env("GIT_CEILING_DIRECTORIES", self.at.path().parent().expect("a parent"));
        command
    }

    fn versus(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("started")
    }

    fn refusal(&self, words: &[&str]) -> String {
        let output = self.versus(words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    }

    fn builds(&self) -> usize {
        fs::read_to_string(self.home.path().join("built")).unwrap_or_default().lines().count()
    }

    /// All files of the builds' directory itself.
    fn kept(&self) -> Vec<PathBuf> {
        common::entries(&self.home.path().join("cache/tollgate/builds"))
    }

    /// Every file of the repository, with git's own, and its bytes.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut left = vec![self.at.path().to_owned()];
        while let Some(next) = left.pop() {
            for path in common::entries(&next) {
                if path.is_dir() {
                    left.push(path)
                } else {
                    drop(all.insert(path.clone(), fs::read(path).expect("read")))
                }
            }
        }
        all
    }
}

fn path_of(program: &str) -> String {
    let paths = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(program));
    let found = paths.iter().find(|path| path.is_file()).expect("a program of every machine");
    format!("{}\n", found.display())
}

/// A directory for PATH that has no QEMU.
fn no_guest() -> tempfile::TempDir {
    let programs = tempfile::tempdir().expect("a directory");
    for name in ["git", "sh", "cp", "cat", "mkdir"] {
        std::os::unix::fs::symlink(path_of(name).trim(), programs.path().join(name)).expect("linked");
    }
    programs
}

/// The document of equal files.
pub fn same_file() -> Vec<Value> {
    let Some(repository) = Repository::new() else { return Vec::new() };
    repository.write("README", "a word\n");
    let output = repository.versus(&["--rev", "main", "--build", BUILD, "--format", "json", TOOL]);
    vec![serde_json::from_slice(&output.stdout).expect("JSON")]
}

/// The document of a search among two commits.
pub fn bisected() -> Vec<Value> {
    let Some(repository) = Repository::new() else { return Vec::new() };
    for (number, program) in ["true", "sleep"].iter().enumerate() {
        repository.write("number", &number.to_string());
        repository.write("program", &path_of(program));
        repository.commit(program);
    }
    let programs = no_guest();
    let words = [
        "--bisect",
        "main~2",
        "main",
        "--build",
        BUILD,
        "--time",
        "2s",
        "-w0",
        "--no-trace",
        "-N",
        "--format",
        "json",
    ];
    let mut command = repository.command(&[&words[..], &["{dir}/bin/tool 0.2"]].concat());
    let output = command.env("PATH", programs.path()).output().expect("started");
    vec![serde_json::from_slice(&output.stdout).expect("JSON")]
}

const TOOL: &str = "{dir}/bin/tool";

#[test]
fn revisions_of_one_file_are_not_measured_and_the_repository_stays_as_it_was() {
    let Some(repository) = Repository::new() else { return };
    repository.write("README", "a word\n");
    repository.commit("words");
    repository.write("README", "two words\n");
    repository.write("new", "");
    repository.write("ignored", "");
    let before = repository.files();
    let words = ["--rev", "main~1", "--rev", "main", "--build", BUILD, "--format", "json", TOOL];
    let output = repository.versus(&words);
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["verdict"], "same file");
    assert_eq!(said["files"], serde_json::json!(["bin/tool"]));
    assert_eq!(said["revisions"], serde_json::json!(["main~1", "main"]));
    assert_eq!((repository.builds(), repository.kept().len()), (2, 2));
    // With the working tree, of whose files only those count that git(1) would add.
    let output = repository.versus(&["--rev", "main", "--build", BUILD, TOOL, "--quiet"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "main and working tree: same file (bin/tool), equal to the byte; nothing was measured\n"
    );
    assert_eq!(repository.builds(), 3, "main was built before");
    assert!(repository.files() == before, "the repository changed");
    let working_tree =
        repository.kept().into_iter().filter(|build| build.join("new").exists()).collect::<Vec<_>>();
    assert!(working_tree.len() == 1 && !working_tree[0].join("ignored").exists(), "{working_tree:?}");
}

#[test]
fn other_files_are_measured_under_the_names_of_their_revisions() {
    let Some(repository) = Repository::new() else { return };
    repository.write("program", &path_of("sleep"));
    let words = ["--rev", "main", "--build", BUILD, "-r1", "-w0", "--no-trace", "--quiet", "-N"];
    let output = repository.versus(&[&words[..], &["--format", "json", "{dir}/bin/tool 0"]].concat());
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names: Vec<&Value> =
        said["commands"].as_array().expect("commands").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["main", "working tree"]);
    assert_eq!(said["commands"][1]["command"], "{dir}/bin/tool 0");
    assert_eq!(said["commands"][1]["parameters"], serde_json::json!({"rev": "working tree"}));
}

#[test]
fn a_seed_in_the_build_makes_layouts_that_are_executed_in_turn() {
    let Some(repository) = Repository::new() else { return };
    repository.write("program", &path_of("sleep"));
    let build = format!("{BUILD} && echo {{layout}} > bin/layout");
    let ran = repository.home.path().join("ran");
    let command = format!("cat {{dir}}/bin/layout >> {}; {{dir}}/bin/tool 0", ran.display());
    let words = [
        "--rev",
        "main",
        "--build",
        &build,
        "--layouts",
        "6",
        "-r12",
        "-w0",
        "--no-trace",
        "--quiet",
        "--format",
        "json",
    ];
    let output = repository.versus(&[&words[..], &[&command]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(repository.builds(), 12);
    let mut ran: Vec<u32> =
        fs::read_to_string(&ran).expect("read").lines().map(|seed| seed.parse().expect("a seed")).collect();
    ran.sort_unstable();
    assert_eq!(ran, (1..=6).flat_map(|seed| [seed; 4]).collect::<Vec<_>>());
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["comparison"]["rows"][0]["layouts"], 6, "{said}");
    let plain = ["--rev", "main", "--build", BUILD, "--layouts", "6", TOOL];
    assert!(repository.refusal(&plain).contains("--build must have {layout}"));
    let wrong = repository.refusal(&["--rev", "main", "--layouts", "3", TOOL]);
    assert!(wrong.contains("neither 1 nor a number from 6 to 64"), "{wrong}");
}

/// Links with LLD where rustc has it.
#[test]
fn programs_of_cargo_are_linked_with_their_functions_in_other_orders() {
    let Some(repository) = Repository::new() else { return };
    repository.write(".gitignore", "target\n");
    repository.write(
        "Cargo.toml",
        "[package]\nname = \"tool\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    fs::create_dir(repository.at.path().join("src")).expect("a directory");
    let source = |word: &str| format!("fn main() {{ println!(\"{word}\"); }}\n");
    repository.write("src/main.rs", &source("one"));
    repository.commit("a package");
    repository.write("src/main.rs", &source("two"));
    let words = [
        "--rev",
        "main",
        "--layouts",
        "6",
        "-r6",
        "-w0",
        "--no-trace",
        "-N",
        "--format",
        "json",
        "{dir}/target/release/tool",
    ];
    let output = repository.versus(&words);
    let why = String::from_utf8_lossy(&output.stderr);
    if why.contains("--shuffle-sections") {
        return println!("skipped: {why}");
    }
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["comparison"]["rows"][0]["layouts"], 6, "{said}");
    let builds = repository.kept();
    let program = |build: &Path, layout: &str| {
        fs::read(build.join(layout).join("target/release/tool")).expect("a program")
    };
    // A copy of a program is one, and a script is none.
    let copied = |command: &str| {
        let build = "cargo build --release --quiet && mkdir -p bin && cp target/release/tool bin/ && printf '#!/bin/sh\\n' > bin/script && chmod +x bin/script";
        let words = [
            "--rev",
            "main",
            "--build",
            build,
            "-r16",
            "-w0",
            "--no-trace",
            "-N",
            "--format",
            "json",
            command,
        ];
        let output = repository.versus(&words);
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (
            said["comparison"]["rows"][0]["layouts"].clone(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(copied("{dir}/bin/tool").0, 8);
    let (layouts, said) = copied("{dir}/bin/script");
    assert!(layouts.is_null() && said.contains("names no program that Cargo linked"), "{said}");
    for build in &builds {
        let layouts: std::collections::BTreeSet<Vec<u8>> =
            (1..=6).map(|layout| program(build, &format!(".tollgate-layouts/{layout}"))).collect();
        assert_eq!(layouts.len(), 6, "{}", build.display());
        assert!(!layouts.contains(&program(build, "")));
        // All else is that of the build.
        let linked = build.join(".tollgate-layouts/3/src/main.rs");
        assert_eq!(fs::read(linked).expect("read"), fs::read(build.join("src/main.rs")).expect("read"));
    }
    assert_eq!(builds.len(), 2);
}

/// The fourth of seven commits, after a merge, executes another program; one before it cannot be built. All but the ends execute files
/// of an end, so no verdict is needed but that of 0.2 s against nothing.
#[test]
fn the_first_commit_that_changed_a_command_is_found_and_the_log_is_resumed() {
    let Some(repository) = Repository::new() else { return };
    repository.git(&["tag", "good"]);
    let commit = |name: &str, program: &str| {
        repository.write("program", program);
        repository.write("number", name);
        repository.commit(name);
    };
    commit("one", &path_of("true"));
    repository.git(&["checkout", "--quiet", "-b", "side", "good"]);
    repository.write("aside", "");
    repository.commit("aside");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.git(&["merge", "--quiet", "--no-edit", "side"]);
    commit("broken", "/no/such/program\n");
    commit("three", &path_of("true"));
    commit("four", &path_of("sleep"));
    repository.git(&["tag", "changed"]);
    for name in ["five", "six", "seven"] {
        commit(name, &path_of("sleep"));
    }
    let changed = repository.git(&["rev-parse", "changed"]);
    let programs = no_guest();
    let log = repository.home.path().join("log").display().to_string();
    let words = [
        "--bisect",
        "good",
        "main",
        "--build",
        BUILD,
        "--bisect-log",
        &log,
        "--time",
        "4s",
        "-w0",
        "--no-trace",
        "-N",
    ];
    let words = [&words[..], &["--format", "json", "{dir}/bin/tool 0.05"]].concat();
    let found = || {
        let output = repository.command(&words).env("PATH", programs.path()).output().expect("started");
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&said["first_bad"], &said["subject"]),
            (&Value::from(&*changed), &Value::from("four")),
            "{said}"
        );
        assert!(said["figure"].as_f64() > said["before"][0]["figure"].as_f64(), "{said}");
        said["steps"].as_array().expect("steps").len()
    };
    let steps = found();
    let text = fs::read_to_string(&log).expect("a log");
    assert!((2..=4).contains(&steps) && text.lines().count() == 2 + steps, "{text}");
    repository.git(&["bisect", "replay", &log]);
    repository.git(&["bisect", "reset"]);
    // The first judgement again, and what is left.
    let begin: Vec<&str> = text.lines().take(3).collect();
    fs::write(&log, begin.join("\n")).expect("written");
    assert_eq!(found(), steps);
    let refused = |words: &[&str]| repository.refusal(&[words, &["--build", BUILD, TOOL]].concat());
    let other = repository.home.path().join("other").display().to_string();
    let five = repository.git(&["rev-parse", "main~1"]);
    let contradicts = format!("git bisect good {five}\ngit bisect bad {changed}\n");
    for (text, said) in [
        (&*contradicts, "as good; name another file"),
        ("git bisect bad good\n", "as good; name another file"),
        ("git bisect start 'main' 'main~1'\n", "is of another search"),
        ("git bisect bad nothing\n", "is of another search"),
        ("git bisect 'bad\n", "is of another search"),
    ] {
        fs::write(&other, text).expect("written");
        let sentence =
            repository.refusal(&["--bisect", "good", "main", "--bisect-log", &other, "--build", BUILD, TOOL]);
        assert!(sentence.contains(said), "{text}: {sentence}");
    }
    for (words, said) in [
        (&["--bisect", "main", "good"][..], "give them in the other order"),
        (&["--bisect", "good", "nothing"], "there is no such revision"),
        (&["--bisect", "good", "changed~1", "--bisect-log", &log], "line 1 is of another search"),
        (&["--bisect", "good", "good"], "both ends are one commit"),
        (&["--bisect", "good", "main", "--rev", "main"], "cannot be used with"),
        (&["--bisect", "good", "changed~4"], "both ends execute equal files"),
    ] {
        let sentence = refused(words);
        assert!(sentence.contains(said), "{words:?}: {sentence}");
    }
}

#[test]
fn a_side_against_itself_and_what_is_no_revision_are_refused() {
    let Some(repository) = Repository::new() else { return };
    repository.git(&["branch", "feature"]);
    let refused = |words: &[&str]| repository.refusal(&[words, &["--build", BUILD, TOOL]].concat());
    for (words, said) in [
        (&["--rev", "main"][..], "the working tree has the files of main, and no change to compare"),
        (&["--rev", "main", "--rev", "feature"], "main and feature have the same files"),
        (&["--rev", "featur"], "--rev featur: there is no such revision (did you mean feature?)"),
        (&["--rev", "--help"], "--rev"),
        (&["--rev", "main:program"], "--rev main:program: there is no such revision"),
        (&["--rev", "main", "-L", "a", "1"], "cannot be used with"),
        (&["--rev", "main", "true"], "--rev compares one command in each revision; 2 are given"),
    ] {
        let sentence = refused(words);
        assert!(sentence.contains(said), "{words:?}: {sentence}");
    }
    let sentence = repository.refusal(&["--rev", "main", "true"]);
    assert!(sentence.contains("write {dir}"), "{sentence}");
    repository.write("program", &path_of("sleep"));
    let sentence = repository.refusal(&["--rev", "main", TOOL]);
    assert!(sentence.contains("neither Cargo.toml nor go.mod"), "{sentence}");
    assert_eq!((repository.builds(), repository.kept().len()), (0, 0));
    let spaced = repository
        .command(&["--rev", "main", TOOL])
        .env("XDG_CACHE_HOME", repository.home.path().join("a b"))
        .output();
    assert!(String::from_utf8_lossy(&spaced.expect("started").stderr).contains("without spaces"));
    let outside = repository
        .command(&["--rev", "main", TOOL])
        .current_dir(repository.home.path())
        .output()
        .expect("started");
    assert!(String::from_utf8_lossy(&outside.stderr).contains("git repository"), "{outside:?}");
    let shallow = tempfile::tempdir().expect("a directory");
    repository.commit("second");
    let from = format!("file://{}", repository.at.path().display());
    repository.git(&["clone", "--quiet", "--depth=1", &from, &shallow.path().display().to_string()]);
    let shallow =
        repository.command(&["--rev", "HEAD~1", TOOL]).current_dir(shallow.path()).output().expect("started");
    assert!(String::from_utf8_lossy(&shallow.stderr).contains("git fetch --deepen"), "{shallow:?}");
}

#[test]
fn a_submodule_with_changes_is_refused() {
    let Some(repository) = Repository::new() else { return };
    let inner = repository.at.path().join("inner");
    let inner = inner.to_str().expect("text");
    repository.git(&["init", "--quiet", inner]);
    repository.write("inner/file", "one\n");
    repository.git(&["-C", inner, "add", "file"]);
    repository.git(&["-C", inner, "commit", "--quiet", "-m", "one"]);
    repository.git(&["add", "inner"]);
    repository.git(&["commit", "--quiet", "-m", "a submodule"]);
    repository.write("program", &path_of("sleep"));
    repository.write("inner/file", "two\n");
    let said = repository.refusal(&["--rev", "main", "--build", BUILD, TOOL]);
    assert!(said.contains("the submodule inner has changes that are in no commit"), "{said}");
}

#[test]
fn a_build_that_fails_says_its_last_lines_and_leaves_nothing() {
    let Some(repository) = Repository::new() else { return };
    repository.write("program", "/no/such/program\n");
    let said = repository.refusal(&["--rev", "main", "--build", BUILD, TOOL]);
    assert!(said.contains("No such file") && said.contains("working tree: `mkdir bin"), "{said}");
    assert_eq!(repository.kept().len(), 1, "the base's build: {:?}", repository.kept());
}

#[test]
fn interrupted_while_it_builds_it_leaves_nothing_and_another_waits_for_it() {
    let Some(repository) = Repository::new() else { return };
    repository.write("program", &path_of("sleep"));
    let words = ["--rev", "main", "--build", "echo $$ > pid; exec sleep 600", TOOL];
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut first = repository.command(&words).spawn().expect("started");
        let pid = wait_for("the build", || {
            let text =
                fs::read_to_string(repository.home.path().join("cache/tollgate/builds/source/pid")).ok()?;
            text.trim().parse::<i32>().ok()
        });
        let second = repository.refusal(&words);
        assert!(second.contains("another comparison of revisions"), "{second}");
        tollgate_os::process::kill(first.id() as i32, signal).expect("our own child");
        first.wait().expect("waited");
        wait_for("the end of the build", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
        assert_eq!(repository.kept(), [""; 0].map(PathBuf::from));
    }
}

#[test]
fn equal_commands_are_said() {
    let home = Home::new();
    let copy = home.path().join("copy").display().to_string();
    fs::copy(path_of("true").trim(), &copy).expect("copied");
    let said = |commands: &[&str]| {
        let output =
            home.tollgate(["versus", "-r1", "-w0", "--no-trace"]).args(commands).output().expect("started");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).contains("A and B execute one file with equal arguments")
    };
    assert!(said(&["true a", &format!("{copy}  a")]));
    assert!(
        !said(&["true a", "true b"])
            && !said(&["true", "sleep 0"])
            && !said(&["true > /dev/null", "true > /dev/null"])
    );
}
