//! From an archive to a tree.

use std::path::PathBuf;

use tollgate_model::Boundary::{
    BlockRead, FileSystem, IdleExit, KernelCode, KernelEntry, PageCache, PathLookup, ReadAhead, SystemCall,
    UserCopy,
};
use tollgate_model::Params;

use crate::bench::{Errand, Timed};
use crate::probe::{PLAIN, Probe};

use super::command::{Command, Step, on_files};
use super::ground::Ground;
use super::work::{Program, Work};
use super::{archive, cases, crossed_in};

pub(super) static PROBE: Probe = Probe {
    name: "workloads/unpack",
    operation: "One tar -x of an archive of the source tree, not compressed, into an empty directory.",
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
    crossed_in,
    timed: |_| Timed::Whole("tar -x"),
    cases: || cases(&[Params::new()]),
    ..PLAIN
};

const TAR: Program = Program { name: "tar", package: "GNU tar", debian: "tar" };

struct Unpack;

pub(super) fn ready(ground: &mut Ground, _: &Params, errand: &mut Errand) -> Step<Box<dyn Work>> {
    ground.needs(&TAR, errand)?;
    archive::make(ground, errand)?;
    Ok(Box::new(Unpack))
}

fn unpacked(ground: &Ground) -> PathBuf {
    ground.beside("unpacked")
}

impl Work for Unpack {
    fn reset(&self, ground: &Ground, _: &mut Errand) -> Step<()> {
        let directory = unpacked(ground);
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return on_files("unlinkat(2)", Err(error));
            }
            _ => {}
        }
        on_files("mkdir(2)", std::fs::create_dir(directory))
    }

    fn reads(&self, ground: &Ground) -> Vec<PathBuf> {
        vec![archive::path(ground)]
    }

    fn command(&self, ground: &Ground) -> Command {
        Command::new(&unpacked(ground), ["tar", "-xf", "../ferry.tar"])
    }

    fn check(&self, ground: &Ground, _: &mut Errand) -> Step<String> {
        ground.expect_tree(&self.command(ground).line(), &unpacked(ground), ground.truth.digest)
    }
}
