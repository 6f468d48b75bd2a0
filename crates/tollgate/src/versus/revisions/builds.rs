//! Builds of trees in the cache directory (XDG Base Directory Specification), which are kept by what was built, how, and with which tools.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tollgate_engine::interrupt;
use tollgate_engine::versus::NotCompared;
use tollgate_model::text::{first_line, plainly};
use tollgate_os::paths::{Directory, read_regular};
use tollgate_os::private::TrustedDirectory;
use tollgate_os::tool::attend;

use super::git::{Repository, Tree};
use super::layouts::{self, SEED};
use crate::args::versus::VersusArgs;
use crate::failure::Failure;
use crate::say;
use crate::versus::counted;
use crate::versus::executed::failed;

/// Builds that are kept; a comparison keeps its own in any case.
const MOST_KEPT: usize = 8;
/// Every tree is built in this directory, then renamed.
const SOURCE: &str = "source";
const LOG: &str = "log";
/// Cargo's messages about a build of benches, in the build.
const MESSAGES: &str = ".tollgate-messages";
const MOST_MESSAGES: u64 = 64 << 20;
/// The program of benches that `go test -c` makes, in the build.
const GO_BENCHES: &str = "bench.test";
const LIMIT: Duration = Duration::from_secs(24 * 3600);
const SHORT: Duration = Duration::from_secs(60);
/// The last bytes of a failed build's output that are shown, in whole lines.
const SHOWN: usize = 2000;
/// Tools whose version a build depends on, and what prints it.
const TOOLS: [&str; 4] = ["rustc -vV", "cargo -V", "go version", "cc --version"];
/// Beginnings of variables that a build depends on.
const VARIABLES: [&str; 14] = [
    "RUST",
    "CARGO",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "LD",
    "CC",
    "CXX",
    "AR",
    "GO",
    "MAKE",
    "PKG_CONFIG",
    "PATH",
];
/// More of a configuration file of Cargo is not read.
const MOST_CONFIGURATION: u64 = 1 << 20;

/// How a tree is built.
pub struct Recipe {
    line: String,
    /// Its standard output is Cargo's messages.
    has_messages: bool,
    /// How its programs get several layouts.
    pub layouts: Layouts,
}

/// How the programs of a build get several layouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layouts {
    /// They have one.
    One,
    /// Cargo links each program at least and at most this many times.
    Linked([usize; 2]),
    /// The build command takes a seed.
    Seeded,
}

impl Recipe {
    fn of(args: &VersusArgs, source: &Path) -> Result<Self, Failure> {
        let has = |name: &str| source.join(name).is_file();
        let is_bench = args.bench.bench;
        let line = match args.revisions.build.as_deref() {
            Some(line) => line.to_owned(),
            None if has("Cargo.toml") && is_bench => "cargo bench --no-run".to_owned(),
            None if has("Cargo.toml") => "cargo build --release".to_owned(),
            None if has("go.mod") => {
                // A build id differs with the sources even if nothing else does.
                let seed = if asked(args) > 1 { format!(" -randlayout={SEED}") } else { String::new() };
                let flags = format!("-ldflags='-buildid={seed}'");
                if is_bench {
                    format!("go test -c {flags} -o {GO_BENCHES} .")
                } else {
                    format!("mkdir -p bin && go build {flags} -o bin/ ./...")
                }
            }
            None => {
                return Err(Failure::input(
                    "it has neither Cargo.toml nor go.mod; --build says how to build it, such as --build make",
                ));
            }
        };
        let is_cargo = line.starts_with("cargo ");
        let layouts = match asked(args) {
            _ if line.contains(SEED) => Layouts::Seeded,
            1 => Layouts::One,
            _ if is_cargo && has_wrapper(source) => {
                say::say(
                    "one layout of each: the configuration has a wrapper of rustc for packages of the workspace",
                );
                Layouts::One
            }
            number if is_cargo && args.revisions.layouts.is_some() => Layouts::Linked([number; 2]),
            number if is_cargo => Layouts::Linked([number, layouts::MOST]),
            number if args.revisions.layouts.is_some() => {
                return Err(Failure::input(format!(
                    "--layouts {number}: --build must have {SEED} where its linker takes a seed, such as \
                     LDFLAGS=-fuse-ld=lld -Wl,--shuffle-sections=.text*={SEED}"
                )));
            }
            _ => Layouts::One,
        };
        let messages = " --message-format=json-render-diagnostics";
        let has_messages = is_bench && is_cargo;
        Ok(Self { line: if has_messages { line + messages } else { line }, has_messages, layouts })
    }

    /// The program of benches in a build.
    pub fn bench_of(directory: &Path) -> Result<PathBuf, String> {
        let messages = read_regular(&directory.join(MESSAGES), MOST_MESSAGES).unwrap_or_default();
        let mut programs = benches(&String::from_utf8_lossy(&messages));
        if directory.join(GO_BENCHES).is_file() {
            programs.push((GO_BENCHES.to_owned(), GO_BENCHES.into()));
        }
        match programs.as_slice() {
            [(_, program)] => Ok(directory.join(program)),
            [] => Err(format!(
                "its build made no benches; with --bench, --build is a command of Cargo, or makes {GO_BENCHES} by `go test -c`"
            )),
            [(first, _), ..] => {
                let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
                Err(format!(
                    "it has the benches {}; choose one: --build 'cargo bench --no-run --bench {first}'",
                    tollgate_model::text::listed(&names)
                ))
            }
        }
    }
}

/// The names of bench targets in Cargo's messages, and the paths of their programs in the build (The Cargo Book, "External tools").
fn benches(messages: &str) -> Vec<(String, PathBuf)> {
    let bench = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_bench = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench");
        let program = Path::new(message["executable"].as_str()?);
        let mut parts = program.components();
        parts.by_ref().find(|part| part.as_os_str() == SOURCE)?;
        let name = message["target"]["name"].as_str().filter(|_| is_bench)?;
        Some((name.to_owned(), parts.as_path().to_owned()))
    };
    messages.lines().filter_map(bench).collect()
}

/// How many layouts each side has at first.
///
/// A guest that counts instructions counts the same in each.
pub fn asked(args: &VersusArgs) -> usize {
    /// With fewer executions, some layouts have one alone.
    const FEWEST: u32 = 2 * layouts::USUAL as u32;
    let has_few = args.length.runs.or(args.length.max_runs).is_some_and(|runs| runs < FEWEST);
    let is_counted = counted::is_asked(&args.environments).unwrap_or_default();
    args.revisions.layouts.unwrap_or(if has_few || is_counted { 1 } else { layouts::USUAL })
}

/// The directory of builds, which one comparison uses at a time.
pub struct Builder {
    place: TrustedDirectory,
    /// Builds of this comparison.
    own: Vec<PathBuf>,
    /// Locked with flock(2).
    _lock: OwnedFd,
}

impl Builder {
    /// # Errors
    /// No directory that only this user can write, and another comparison of revisions.
    pub fn open() -> Result<Self, Failure> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        let path = cache
            .ok_or_else(|| Failure::input("--rev keeps builds in $XDG_CACHE_HOME or ~/.cache; set HOME"))?;
        let path = path.join("tollgate/builds");
        let wrong = |why: String| Failure::input(format!("{}: {why}", path.display()));
        let is_plain = |c: char| c.is_alphanumeric() || "/._+-@".contains(c);
        if !path.to_str().is_some_and(|path| path.chars().all(is_plain)) {
            return Err(wrong(
                "builds need a path that a shell takes as one word; set XDG_CACHE_HOME to one without spaces"
                    .to_owned(),
            ));
        }
        let directory = Directory::create(&path, Mode::RWXU).map_err(|why| wrong(why.to_string()))?;
        let place =
            TrustedDirectory::open(directory.path()).map_err(|why| Failure::input(why.to_string()))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(&place, ".", flags, Mode::empty())
            .map_err(|why| wrong(plainly(&why.into()).to_string()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::input(format!(
                "{}: another comparison of revisions uses the builds there; wait for its end, or set XDG_CACHE_HOME",
                path.display()
            )));
        }
        Ok(Self { place, own: Vec::new(), _lock: lock })
    }

    /// Builds a tree, or finds its build. The first tree decides on the recipe.
    ///
    /// # Errors
    /// Those of git(1); a build that fails, after the end of its output; a signal.
    pub fn build(
        &mut self,
        repository: &Repository,
        tree: &Tree,
        seed: usize,
        recipe: &mut Option<Recipe>,
        args: &VersusArgs,
        progress: &dyn Fn(&str),
    ) -> Result<PathBuf, Failure> {
        let source = Source::new(self.place.path().join(SOURCE))?;
        repository.check_out(tree, &source.0)?;
        if source.0.join(".gitmodules").is_file() {
            progress("submodules are not checked out; their directories are empty");
        }
        let recipe = match recipe {
            Some(known) => known,
            None => recipe.insert(Recipe::of(args, &source.0)?),
        };
        let line = recipe.line.replace(SEED, &seed.to_string());
        let name = repository.digest(&identity(tree, recipe, &line, &source.0)?)?;
        let kept = self.place.path().join(name);
        if kept.is_dir() {
            progress("built before");
            let _ = File::open(&kept).and_then(|directory| directory.set_modified(SystemTime::now()));
        } else {
            progress(&line);
            self.execute(recipe, &line, args.bench.bench, &source.0)?;
            fs::rename(&source.0, &kept)
                .map_err(|why| Failure::input(format!("{}: {}", kept.display(), plainly(&why))))?;
        }
        self.own.push(kept.clone());
        Ok(kept)
    }

    fn execute(&self, recipe: &Recipe, line: &str, is_bench: bool, source: &Path) -> Result<(), Failure> {
        let log = self.place.path().join(LOG);
        let messages = if recipe.has_messages { source.join(MESSAGES) } else { log.clone() };
        // The output goes to files: it may have any length, and `attend` keeps only its beginning.
        let mut command = shell("exec >>\"$1\" 2>>\"$0\"; exec sh -c \"$2\"");
        command.arg(&log).arg(messages).arg(line).current_dir(source);
        if let Layouts::Linked(numbers) = recipe.layouts {
            layouts::link(&mut command, source, numbers, is_bench)
                .map_err(|why| Failure::input(format!("{}: {}", source.display(), plainly(&why))))?;
        }
        command
            .env("CARGO_TARGET_DIR", source.join("target"))
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE");
        let _ = fs::remove_file(&log);
        let ended = attend(&mut command, LIMIT, &|| interrupt::requested().is_some());
        let said = end_of_file(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        interrupt::requested().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))?;
        let ended = ended.map_err(|why| Failure::input(format!("`{line}`: {}", plainly(&why))))?;
        match ended.status {
            Some(status) if status.success() => Ok(()),
            status => {
                let how =
                    status.map_or("took more than a day".to_owned(), |status| format!("failed ({status})"));
                let sentence = format!("`{line}` {how}");
                Err(failed(NotCompared::Failed { sentence, said: end_of(&said) }))
            }
        }
    }

    /// The directory in which every tree is built.
    pub fn source(&self) -> PathBuf {
        self.place.path().join(SOURCE)
    }

    /// Removes the builds that were used longest ago.
    pub fn forget_old(&self) {
        let entries = fs::read_dir(self.place.path()).into_iter().flatten().flatten();
        // Only names that `build` gives.
        let is_build = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            path.is_dir() && name.len() >= 40 && name.iter().all(u8::is_ascii_hexdigit)
        };
        let others =
            entries.map(|entry| entry.path()).filter(|path| is_build(path) && !self.own.contains(path));
        let used = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
        let mut others: Vec<_> = others.map(|path| (used(&path), path)).collect();
        others.sort_unstable();
        let most = MOST_KEPT.saturating_sub(self.own.len());
        let old = others.len().saturating_sub(most);
        others[..old].iter().for_each(|(_, path)| drop(fs::remove_dir_all(path)));
    }
}

/// The directory in which a tree is built. Dropping this removes what is left of it.
struct Source(PathBuf);

impl Source {
    fn new(path: PathBuf) -> Result<Self, Failure> {
        let wrong = |why: std::io::Error| Failure::input(format!("{}: {}", path.display(), plainly(&why)));
        // A program that was killed left it.
        match fs::remove_dir_all(&path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => return Err(wrong(why)),
            _ => fs::create_dir(&path).map_err(wrong)?,
        }
        Ok(Self(path))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All that a build depends on, as a text. Versions are asked for in the tree, where a file may choose the toolchain.
fn identity(tree: &Tree, recipe: &Recipe, line: &str, source: &Path) -> Result<String, Failure> {
    let mut text = format!("{}\n{line}\n{:?}\n", tree.name(), recipe.layouts);
    for tool in TOOLS {
        let ended = attend(shell(tool).current_dir(source), SHORT, &|| interrupt::requested().is_some());
        let said =
            ended.map(|ended| if tool.starts_with("rustc") { ended.said } else { first_line(&ended.said) });
        text += &format!("{tool}: {}\n", said.unwrap_or_default());
    }
    interrupt::requested().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))?;
    for file in configurations(source) {
        if let Ok(configuration) = read_regular(&file, MOST_CONFIGURATION) {
            text += &format!("{}\n{}\n", file.display(), String::from_utf8_lossy(&configuration));
        }
    }
    let mut variables: Vec<_> = std::env::vars_os().collect();
    variables.sort();
    for (name, value) in variables {
        if VARIABLES.iter().any(|beginning| name.as_encoded_bytes().starts_with(beginning.as_bytes())) {
            text += &format!("{name:?}={value:?}\n");
        }
    }
    Ok(text)
}

/// Files outside the source that configure Cargo (The Cargo Book, "Configuration"): those above it, and that of the user.
fn configurations(source: &Path) -> Vec<PathBuf> {
    let home = |name: &str, below: &str| Some(PathBuf::from(std::env::var_os(name)?).join(below));
    let of_user = home("CARGO_HOME", "").or_else(|| home("HOME", ".cargo"));
    let above = source.ancestors().skip(1).map(|directory| directory.join(".cargo"));
    let directories = above.chain(of_user);
    directories.flat_map(|directory| ["config.toml", "config"].map(|name| directory.join(name))).collect()
}

/// Whether a configuration gives Cargo a wrapper of rustc, which the one for layouts would replace.
fn has_wrapper(source: &Path) -> bool {
    let files = configurations(&source.join("x")).into_iter();
    let text = |file: PathBuf| read_regular(&file, MOST_CONFIGURATION).unwrap_or_default();
    files.map(text).any(|text| String::from_utf8_lossy(&text).contains("rustc-workspace-wrapper"))
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]);
    command
}

/// The last bytes of a file, more than are shown.
fn end_of_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(2 * SHOWN as u64)))?;
    let mut said = Vec::new();
    file.take(2 * SHOWN as u64).read_to_end(&mut said)?;
    Ok(said)
}

/// The last whole lines of a text.
fn end_of(said: &[u8]) -> String {
    let end = &said[said.len().saturating_sub(SHOWN)..];
    let end = String::from_utf8_lossy(end);
    match end.split_once('\n') {
        Some((_, lines)) if said.len() > SHOWN => lines.to_owned(),
        _ => end.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_by_cargo_s_messages() {
        let message = |kind: &str, name: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"kind":["{kind}"],"name":"{name}"}},"executable":{executable}}}"#
            )
        };
        let messages = [
            message("lib", "tool", "null"),
            message("bench", "sorts", r#""/cache/builds/source/target/release/deps/sorts-1f""#),
            message("bin", "tool", r#""/cache/builds/source/target/release/tool""#),
            message("bench", "elsewhere", r#""/target/release/deps/elsewhere-1f""#),
            "warning: no JSON".to_owned(),
        ];
        assert_eq!(
            benches(&messages.join("\n")),
            [("sorts".to_owned(), "target/release/deps/sorts-1f".into())]
        );
        assert_eq!(benches("{}\n[]\n7"), []);
    }

    #[test]
    fn whole_lines_of_the_end_are_shown() {
        assert_eq!(end_of(b"one\ntwo"), "one\ntwo");
        let long = "a line of some letters\n".repeat(1000);
        let end = end_of(long.as_bytes());
        assert!(end.len() <= SHOWN && end.lines().all(|line| line == "a line of some letters"), "{end}");
        assert_eq!(end_of(&[b'x'; 5000]).len(), SHOWN);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &long).unwrap();
        assert_eq!(end_of(&end_of_file(file.path()).unwrap()), end);
    }
}
