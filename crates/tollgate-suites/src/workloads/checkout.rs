use std::time::{Duration, SystemTime};
use std::{fs::File, path::PathBuf};

use super::command::{Command, on_files};
use super::digest::{Digest, files};
use super::fixture::{Program, Tree};
use super::source::Version;
use super::work::{Work, Workload};
use super::{COMMAND, history};
use crate::prelude::*;

pub(super) static WORKLOAD: Workload = Workload {
    benchmark: Benchmark {
        name: "workloads/checkout",
        operation: "One git checkout of the second tag of a history, from a clean tree at the first.",
        avoid: "Use a shallow or sparse checkout; keep the index in the page cache.",
        source: "git-checkout(1); git-sparse-checkout(1)",
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
        timed: |_| Timed::Whole("git checkout"),
        ..COMMAND
    },
    ready,
};

pub(super) const GIT: Program = Program { name: "git", package: "git", debian: "git" };

/// The modification time of the first version's files, long before the index (see [`Checkout::reset`]).
const WRITTEN: Duration = Duration::from_secs(history::BEGAN);

struct Checkout {
    second: Digest,
}

fn ready(fixture: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    fixture.needs(&GIT, context)?;
    let second = history::make(fixture, context)?;
    let work = Checkout { second };
    work.reset(fixture, context)?;
    let repository = history::repository(fixture);
    fixture.expect_tree("git checkout -q -f v1", &repository, fixture.truth.digest)?;
    Ok(Box::new(work))
}

impl Work for Checkout {
    /// Git reads each file that is as new as its index, since it may have changed unnoticed (racy-git in git's
    /// documentation). Their number would vary, so the files get an old modification time.
    fn reset(&self, fixture: &Tree, context: &mut RunContext) -> Step<()> {
        let repository = history::repository(fixture);
        let git = |words: &[&str]| Command::new(&repository, [&["git"], words].concat());
        fixture.home.run(&git(&["checkout", "-q", "-f", Version::First.tag()]), context)?;
        let old = SystemTime::UNIX_EPOCH + WRITTEN;
        for path in on_files("to list the tree", files(&repository, false))? {
            let made_old = File::open(repository.join(path)).and_then(|file| file.set_modified(old));
            on_files("utimensat(2)", made_old)?;
        }
        fixture.home.run(&git(&["update-index", "-q", "--refresh"]), context)
    }

    fn reads(&self, fixture: &Tree) -> Vec<PathBuf> {
        vec![history::repository(fixture)]
    }

    fn command(&self, fixture: &Tree) -> Command {
        Command::new(&history::repository(fixture), ["git", "checkout", "-q", Version::Second.tag()])
    }

    fn check(&self, fixture: &Tree, _: &mut RunContext) -> Step<String> {
        let repository = history::repository(fixture);
        fixture.expect_tree(&self.command(fixture).line(), &repository, self.second)
    }
}
