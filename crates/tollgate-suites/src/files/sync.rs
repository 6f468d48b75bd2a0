//! fsync(2) and fdatasync(2) after a write.

use std::os::fd::{AsRawFd, OwnedFd};
use std::{io, rc::Rc};

use super::data::{self, Contents, Offsets, put};
use super::refusal::{FILE, done};
use super::single::{FINE, Operation, Verdict, instance};
use super::{block::SMALL, data_dir::DataDir};
use crate::prelude::*;

pub(super) static FSYNC: Benchmark = Benchmark {
    name: "files/fsync",
    operation: "One fsync of a file after an overwrite of 4 KiB: data, metadata and the device's cache.",
    avoid: "Group writes under one fsync (a journal, group commit); fdatasync where the size does not change.",
    source: "fsync(2)",
    crosses: &[FileSystem, BlockWrite, DeviceFlush, KernelCode, ContextSwitch, WakeUp, IdleExit],
    timed: |_| Timed::Whole("fsync(2)"),
    headlines: &[Headline { section: Section::Files, name: "fsync", params: &[] }],
    kind: Kind::Instance(|_, _, context| sync(&DataDir::of(context)?, false)),
    ..FILE
};

pub(super) static FDATASYNC: Benchmark = Benchmark {
    name: "files/fdatasync",
    operation: "One fdatasync of a file after an overwrite of 4 KiB: as fsync, without metadata that reads do not need.",
    avoid: "Group writes, and allocate the file beforehand so that its size does not change (fallocate).",
    source: "fdatasync(2); fallocate(2)",
    timed: |_| Timed::Whole("fdatasync(2)"),
    kind: Kind::Instance(|_, _, context| sync(&DataDir::of(context)?, true)),
    headlines: &[],
    ..FSYNC
};

/// The file's length: a few blocks, synced before the first overwrite.
const LENGTH: u64 = 16 * SMALL as u64;

fn sync(dir: &Rc<DataDir>, data_only: bool) -> Result<Instance> {
    dir.allows(LENGTH)?;
    let name = if data_only { c"fdatasync" } else { c"fsync" };
    let made = data::file(dir, name, LENGTH, LENGTH, Contents(4))?;
    let sync =
        Sync { file: made.file, data_only, offsets: Offsets::new(LENGTH, SMALL as u64), block: [0; SMALL] };
    let notes = ["includes other writers of this file system".to_owned()];
    Ok(instance(sync).spent_once(made.took).with_notes(notes.into_iter().chain(dir.kind().note())))
}

struct Sync {
    file: OwnedFd,
    data_only: bool,
    offsets: Offsets,
    block: [u8; SMALL],
}

impl Operation for Sync {
    fn warms_up(&self) -> bool {
        false
    }

    fn before(&mut self) -> Result<()> {
        let byte = self.block[0].wrapping_add(1);
        self.block.fill(byte);
        put(&self.file, &self.block, self.offsets.next())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let descriptor = self.file.as_raw_fd();
        if self.data_only {
            // SAFETY: an open descriptor.
            checked(unsafe { libc::fdatasync(descriptor) })
        } else {
            // SAFETY: as above.
            checked(unsafe { libc::fsync(descriptor) })
        }
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        done(if self.data_only { "fdatasync(2)" } else { "fsync(2)" }, outcome)?;
        Ok(FINE)
    }
}
