//! From one tag of a history to the next.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tollgate_model::Boundary::{
    BlockRead, FileSystem, IdleExit, KernelCode, KernelEntry, PageCache, PageFault, PathLookup, ReadAhead,
    SystemCall, UserCopy,
};
use tollgate_model::Params;

use tollgate_engine::benchmark::{Benchmark, PLAIN};
use tollgate_engine::{RunContext, Timed};

use super::command::{Command, Step, on_files, open};
use super::digest::{Digest, files};
use super::fixture::Tree;
use super::source::Version;
use super::work::{Program, Work};
use super::{cases, crossed_in, history};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "workloads/checkout",
    operation: "One git checkout of the second tag of a history, from a clean tree at the first.",
    crosses: &[
        KernelEntry,
        SystemCall,
        KernelCode,
        UserCopy,
        PathLookup,
        PageCache,
        FileSystem,
        PageFault,
        BlockRead,
        ReadAhead,
        IdleExit,
    ],
    crossed_in,
    timed: |_| Timed::Whole("git checkout"),
    cases: || cases(&[Params::new()]),
    ..PLAIN
};

/// What has a history and its tree.
pub(super) const GIT: Program = Program { name: "git", package: "git", debian: "git" };

/// When the files of the first version say that they were written: long before the index is (see [`Checkout::reset`]).
const WRITTEN: Duration = Duration::from_secs(history::BEGAN);

struct Checkout {
    second: Digest,
}

pub(super) fn ready(ground: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    ground.needs(&GIT, context)?;
    let second = history::make(ground, context)?;
    let work = Checkout { second };
    work.reset(ground, context)?;
    let repository = history::repository(ground);
    ground.expect_tree("git checkout -q -f v1", &repository, ground.truth.digest)?;
    Ok(Box::new(work))
}

impl Work for Checkout {
    /// Git looks into each file that is as young as its index, since it may have changed unseen (racy-git in git's
    /// documentation): how many that are would depend on the moment. So the files are made to look old.
    fn reset(&self, ground: &Tree, context: &mut RunContext) -> Step<()> {
        let repository = history::repository(ground);
        let git = |words: &[&str]| Command::new(&repository, [&["git"], words].concat());
        ground.home.run(&git(&["checkout", "-q", "-f", Version::First.tag()]), context)?;
        let old = SystemTime::UNIX_EPOCH + WRITTEN;
        for path in on_files("to list the tree", files(&repository, false))? {
            let made_old = open(&repository.join(path)).and_then(|file| file.set_modified(old));
            on_files("utimensat(2)", made_old)?;
        }
        ground.home.run(&git(&["update-index", "-q", "--refresh"]), context)
    }

    fn reads(&self, ground: &Tree) -> Vec<PathBuf> {
        vec![history::repository(ground)]
    }

    fn command(&self, ground: &Tree) -> Command {
        Command::new(&history::repository(ground), ["git", "checkout", "-q", Version::Second.tag()])
    }

    fn check(&self, ground: &Tree, _: &mut RunContext) -> Step<String> {
        let repository = history::repository(ground);
        ground.expect_tree(&self.command(ground).line(), &repository, self.second)
    }
}
