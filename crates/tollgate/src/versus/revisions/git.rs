//! Trees of a repository by git(1). It gets an index and a directory of objects of its own, so that the user's index, objects, branches
//! and files stay as they are (git(1), "Environment Variables": GIT_INDEX_FILE, GIT_OBJECT_DIRECTORY).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tollgate_engine::interrupt;
use tollgate_model::text::{excerpt, first_line, plainly};
use tollgate_os::private::PrivateDirectory;
use tollgate_os::tool::attend;

use crate::failure::Failure;

const LIMIT: Duration = Duration::from_secs(3600);

/// The name of a tree object: equal for equal files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(String);

impl Tree {
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its whole name.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// The beginning of its name.
    pub fn short(&self) -> &str {
        self.id.get(..10).unwrap_or(&self.id)
    }

    fn of(line: &str) -> Option<Self> {
        let (id, subject) = line.split_once(' ')?;
        Some(Self { id: id.to_owned(), subject: subject.to_owned() })
    }
}

pub struct Repository {
    top: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    own: PrivateDirectory,
    is_shallow: bool,
}

impl Repository {
    /// Finds the repository of the working directory.
    ///
    /// # Errors
    /// No git(1), and no repository with a working tree.
    pub fn open() -> Result<Self, Failure> {
        let own = PrivateDirectory::temporary()
            .map_err(|why| Failure::input(format!("--rev needs a private directory: {}", plainly(&why))))?;
        let ask = |words: &[&str]| {
            let mut command = Command::new("git");
            command.arg("rev-parse").args(words).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
            run(&mut command)
        };
        let line = |words: &[&str]| {
            ask(words)?.map_err(|said| {
                Failure::input(format!(
                    "--rev needs a git repository with a working tree here: {}",
                    first_line(&said)
                ))
            })
        };
        let top = PathBuf::from(line(&["--show-toplevel"])?);
        let path = |name: &str| line(&["--path-format=absolute", "--git-path", name]).map(PathBuf::from);
        let (objects, index) = (path("objects")?, path("index")?);
        let is_shallow = line(&["--is-shallow-repository"])? == "true";
        let found = Self { top, objects, index, own, is_shallow };
        fs::create_dir(found.own.path().join("objects"))
            .map_err(|why| Failure::input(plainly(&why).to_string()))?;
        Ok(found)
    }

    /// git(1) in the top directory. No monitor of files and no hook is started.
    fn git(&self, words: &[&str]) -> Command {
        let mut command = self.own.command("git");
        command.arg("-C").arg(&self.top).args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ]);
        // A split index would have its larger part in the repository.
        command.args(["-c", "core.splitIndex=false"]).args(words);
        command.env("GIT_INDEX_FILE", self.own.path().join("index"));
        command.env("GIT_OBJECT_DIRECTORY", self.own.path().join("objects"));
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects));
        command.env("GIT_TERMINAL_PROMPT", "0").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        command
    }

    fn said(&self, words: &[&str]) -> Result<Result<String, String>, Failure> {
        run(&mut self.git(words))
    }

    fn expect(&self, words: &[&str]) -> Result<String, Failure> {
        let failed = |said: String| Failure::input(format!("git {}: {}", words[0], first_line(&said)));
        self.said(words)?.map_err(failed)
    }

    /// The files of a revision.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn tree(&self, revision: &str) -> Result<Tree, Failure> {
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{tree}}")];
        match self.said(&words)? {
            Ok(said) if said.bytes().all(|byte| byte.is_ascii_hexdigit()) && said.len() >= 40 => {
                Ok(Tree(said))
            }
            _ => Err(Failure::input(self.unknown(revision))),
        }
    }

    /// The commit of a revision.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn commit(&self, revision: &str) -> Result<Commit, Failure> {
        let words =
            ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")];
        match self.said(&words)? {
            Ok(id) => {
                let line = self.expect(&["show", "--no-patch", "--format=%H %s", &id])?;
                Commit::of(&line).ok_or_else(|| Failure::input(self.unknown(revision)))
            }
            Err(_) => Err(Failure::input(self.unknown(revision))),
        }
    }

    /// # Errors
    /// Those of git(1).
    pub fn is_ancestor(&self, one: &Commit, other: &Commit) -> Result<bool, Failure> {
        Ok(self.said(&["merge-base", "--is-ancestor", &one.id, &other.id])?.is_ok())
    }

    /// # Errors
    /// Those of git(1).
    pub fn parents(&self, commit: &Commit) -> Result<Vec<Commit>, Failure> {
        let names = self.expect(&["rev-parse", &format!("{}^@", commit.id)])?;
        names.lines().map(|name| self.commit(name)).collect()
    }

    /// The commits that may be the first bad one beside `bad` itself: those that divide the others best come first (git-rev-list(1),
    /// `--bisect-all`).
    ///
    /// # Errors
    /// Those of git(1).
    pub fn candidates(&self, bad: &Commit, goods: &[Commit]) -> Result<Vec<Commit>, Failure> {
        let goods = goods.iter().map(|good| good.id.as_str());
        let words: Vec<&str> =
            ["rev-list", "--bisect-all", &bad.id, "--not"].into_iter().chain(goods).collect();
        let said = self.expect(&words)?;
        let ids = said.lines().filter_map(|line| line.split(' ').next()).filter(|id| *id != bad.id);
        ids.map(|id| self.commit(id)).collect()
    }

    fn unknown(&self, revision: &str) -> String {
        let shown = excerpt(revision);
        if self.is_shallow {
            return format!(
                "--rev {shown}: this shallow clone has no such revision; `git fetch --deepen 100` fetches older ones"
            );
        }
        let names = self.said(&["for-each-ref", "--count=2000", "--format=%(refname:short)"]);
        let names = names.ok().and_then(Result::ok).unwrap_or_default();
        let near = names
            .lines()
            .chain(["HEAD"])
            .map(|name| (strsim::osa_distance(name, &revision.chars().take(64).collect::<String>()), name));
        match near.min() {
            Some((distance, name)) if distance <= 1 + revision.len() / 4 => {
                format!("--rev {shown}: there is no such revision (did you mean {}?)", excerpt(name))
            }
            _ => format!("--rev {shown}: there is no such revision; `git log --oneline --all` lists them"),
        }
    }

    /// The files of the working tree as they are: changed ones and new ones too, but none that is ignored.
    ///
    /// # Errors
    /// Those of git(1).
    pub fn working_tree(&self) -> Result<Tree, Failure> {
        // With the user's index git(1) reads only files that changed. A file that was written in the same moment as the index is known by
        // the index's time (gitformat-index(5); Documentation/technical/racy-git.txt).
        let own = self.own.path().join("index");
        let copied = fs::copy(&self.index, &own).and_then(|_| {
            let written = fs::metadata(&self.index)?.modified()?;
            fs::File::options().append(true).open(&own)?.set_modified(written)
        });
        if let Err(why) = copied
            && why.kind() != std::io::ErrorKind::NotFound
        {
            return Err(Failure::input(format!("{}: {}", self.index.display(), plainly(&why))));
        }
        // git-status(1), "Porcelain Format Version 2": `S.M.` is a submodule with changed files, which no commit has.
        let status = self.expect(&["status", "--porcelain=2", "--untracked-files=no"])?;
        let is_dirty =
            |line: &&str| line.split(' ').nth(2).is_some_and(|of| of.starts_with('S') && of.contains('M'));
        if let Some(line) = status.lines().find(is_dirty) {
            let path = line.splitn(9, ' ').nth(8).unwrap_or_default();
            return Err(Failure::input(format!(
                "the submodule {} has changes that are in no commit; a build has no files of submodules, so name two revisions without them",
                excerpt(path)
            )));
        }
        self.expect(&["add", "--all"])?;
        Ok(Tree(self.expect(&["write-tree"])?))
    }

    /// Writes the files of a tree to a new directory.
    ///
    /// # Errors
    /// Those of git(1), such as a full disk.
    pub fn check_out(&self, tree: &Tree, directory: &Path) -> Result<(), Failure> {
        self.expect(&["read-tree", tree.name()])?;
        let prefix = format!("--prefix={}/", directory.display());
        self.expect(&["checkout-index", "--all", "--force", &prefix]).map(drop)
    }

    /// A name for a text that is not stored anywhere: that of a blob.
    pub fn digest(&self, text: &str) -> Result<String, Failure> {
        let file = self.own.path().join("text");
        fs::write(&file, text).map_err(|why| Failure::input(plainly(&why).to_string()))?;
        self.expect(&["hash-object", "--no-filters", "--", &file.display().to_string()])
    }
}

/// A path in a list whose separator it may have (git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES): quoted like a string of C.
fn quoted(path: &Path) -> String {
    let byte = |byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", *byte as char),
        b' '..=b'~' => (*byte as char).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", path.as_os_str().as_encoded_bytes().iter().map(byte).collect::<String>())
}

/// Its output without the newline at its end, as an error if it failed.
fn run(command: &mut Command) -> Result<Result<String, String>, Failure> {
    let ended =
        attend(command, LIMIT, &|| interrupt::requested().is_some()).map_err(|why| match why.kind() {
            std::io::ErrorKind::NotFound => Failure::input("--rev needs git(1), which was not found in PATH"),
            _ => Failure::input(format!("git: {}", plainly(&why))),
        })?;
    interrupt::requested().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))?;
    let said = ended.said.trim_end_matches('\n').to_owned();
    Ok(if ended.status.is_some_and(|status| status.success()) { Ok(said) } else { Err(said) })
}
