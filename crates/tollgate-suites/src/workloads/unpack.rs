use std::path::PathBuf;

use super::command::{Command, on_files, removed};
use super::fixture::{Program, Tree};
use super::work::{Work, Workload};
use super::{COMMAND, archive};
use crate::prelude::*;

pub(super) static WORKLOAD: Workload = Workload {
    benchmark: Benchmark {
        name: "workloads/unpack",
        operation: "One tar -x of an uncompressed archive of the source tree into an empty directory.",
        avoid: "Unpack to memory (tmpfs) where the files are not kept.",
        source: "tar(1); tmpfs(5)",
        crosses: &[
            KernelEntry,
            SystemCall,
            KernelCode,
            UserCopy,
            PathLookup,
            PageCache,
            FileSystem,
            BlockRead,
            ReadAhead,
            IdleExit,
        ],
        timed: |_| Timed::Whole("tar -x"),
        ..COMMAND
    },
    ready,
};

const TAR: Program = Program { name: "tar", package: "GNU tar", debian: "tar" };

struct Unpack;

fn ready(fixture: &mut Tree, _: &Params, context: &mut RunContext) -> Step<Box<dyn Work>> {
    fixture.needs(&TAR, context)?;
    archive::make(fixture, context)?;
    Ok(Box::new(Unpack))
}

fn unpacked(fixture: &Tree) -> PathBuf {
    fixture.path_of("unpacked")
}

impl Work for Unpack {
    fn reset(&self, fixture: &Tree, _: &mut RunContext) -> Step<()> {
        let directory = unpacked(fixture);
        removed("unlinkat(2)", std::fs::remove_dir_all(&directory))?;
        on_files("mkdir(2)", std::fs::create_dir(directory))
    }

    fn reads(&self, fixture: &Tree) -> Vec<PathBuf> {
        vec![archive::path(fixture)]
    }

    fn command(&self, fixture: &Tree) -> Command {
        Command::new(&unpacked(fixture), ["tar", "-xf", "../ferry.tar"])
    }

    fn check(&self, fixture: &Tree, _: &mut RunContext) -> Step<String> {
        fixture.expect_tree(&self.command(fixture).line(), &unpacked(fixture), fixture.truth.digest)
    }
}
