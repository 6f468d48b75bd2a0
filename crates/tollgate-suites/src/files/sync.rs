//! fsync(2) and fdatasync(2) after a write: right after another sync, and after a pause.
//!
//! A sync takes longer the longer ago the last one was, no matter what ran in between. In a nested virtual machine (EPYC, virtio)
//! a sync right after another took 73 µs, after 1 ms of a loop or of sleep 96 µs, after 20 ms of a loop 234 µs and of sleep 304
//! µs: the journal's thread, its processor and a device's thread in the host go idle. In a round, with other cases in between,
//! those times would show. One sync of written data before it brings back 70 to 83 µs; a sync of nothing does not.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::{io, rc::Rc, time::Duration};

use super::data::{self, Contents, Offsets, put};
use super::refusal::{FILE, done};
use super::single::{FINE, Operation, Verdict, instance};
use super::{block::SMALL, data_dir::DataDir};
use crate::prelude::*;

pub(super) static FSYNC: Benchmark = Benchmark {
    name: "files/fsync",
    operation: "One fsync of a file after an overwrite of 4 KiB: data, metadata and the device's cache; right after another one, or after 1 ms of sleep (gap=idle).",
    avoid: "Group writes under one fsync (a journal, group commit); fdatasync where the size does not change.",
    source: "fsync(2)",
    crosses: &[FileSystem, BlockWrite, DeviceFlush, KernelCode, ContextSwitch, WakeUp, IdleExit],
    timed: |_| Timed::Whole("fsync(2)"),
    headlines: &[Headline::of(Section::Files, "fsync", &[])],
    cases: |_| vec![Params::new(), params(&[("gap", "idle".into())])],
    in_everything: |params, _| params.is_empty(),
    kind: Kind::Instance(|_, params, context| sync(&DataDir::of(context)?, c"fsync", params)),
    ..FILE
};

pub(super) static FDATASYNC: Benchmark = Benchmark {
    name: "files/fdatasync",
    operation: "One fdatasync of a file after an overwrite of 4 KiB: as fsync, without metadata that reads do not need; right after another one.",
    avoid: "Group writes, and allocate the file beforehand so that its size does not change (fallocate).",
    source: "fdatasync(2); fallocate(2)",
    timed: |_| Timed::Whole("fdatasync(2)"),
    cases: |_| vec![Params::new()],
    kind: Kind::Instance(|_, params, context| sync(&DataDir::of(context)?, c"fdatasync", params)),
    headlines: &[],
    ..FSYNC
};

/// A few blocks, synced before the first overwrite.
const LENGTH: u64 = 16 * SMALL as u64;

/// Sleep before a sync, in which the processor of the journal's thread goes idle.
const IDLE: Duration = Duration::from_millis(1);

words! {
    enum Gap("gap") { None = "", Idle = "idle" }
}

fn sync(dir: &Rc<DataDir>, name: &CStr, params: &Params) -> Result<Instance> {
    dir.allows(LENGTH)?;
    let is_idle = Gap::try_from(params)? == Gap::Idle;
    // Instances of one process must not share a file.
    let file = if is_idle { c"fsync-idle" } else { name };
    let made = data::file(dir, file, LENGTH, LENGTH, Contents(4))?;
    let sync = Sync {
        file: made.file,
        data_only: name == c"fdatasync",
        is_idle,
        offsets: Offsets::new(LENGTH, SMALL as u64),
        block: [0; SMALL],
    };
    let notes = ["includes other writers of this file system".to_owned()];
    Ok(instance(sync).spent_once(made.took).with_notes(notes.into_iter().chain(dir.kind().note())))
}

struct Sync {
    file: OwnedFd,
    data_only: bool,
    is_idle: bool,
    offsets: Offsets,
    block: [u8; SMALL],
}

impl Operation for Sync {
    /// The warm-up is the earlier sync; a sync after a pause has none.
    fn warms_up(&self) -> bool {
        !self.is_idle
    }

    fn before(&mut self) -> Result<()> {
        if self.is_idle {
            std::thread::sleep(IDLE);
        }
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
