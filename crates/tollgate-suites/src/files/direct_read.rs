//! Reads with O_DIRECT, and attempts of one into an unaligned buffer.

use std::os::fd::OwnedFd;
use std::{io, rc::Rc};

use super::block::{self, SMALL};
use super::data::{self, Contents, Offsets};
use super::refusal::{FILE, named, pread, refused, whole};
use super::single::{FINE, Operation, Verdict, instance};
use super::{aligned::Aligned, alignment, data_dir::DataDir, residency::PAGE};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/direct-read",
    operation: "One pread of a block with O_DIRECT, into an aligned buffer or an unaligned one (a byte later), accepted or refused.",
    crosses: &[KernelEntry, SystemCall, KernelCode, BlockRead, IdleExit],
    timed: |_| Timed::Whole("pread(2)"),
    cases: || {
        ["aligned", "unaligned"]
            .map(|buffer| params(&[("buffer", buffer.into()), ("block", "4k".into())]))
            .to_vec()
    },
    // A refused read moves nothing, and whether it is refused depends on the file system.
    bytes: |params| (word(params, "buffer") == "aligned").then_some(block::bytes(params) as u64),
    kind: Kind::Instance(|_, params, context| read(&DataDir::of(context)?, params)),
    ..FILE
};

/// The file for uncached reads, opened for direct I/O.
pub(super) fn open(dir: &DataDir, name: &std::ffi::CStr, access: libc::c_int) -> Result<OwnedFd> {
    dir.open(name, access | libc::O_DIRECT).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            skip!("this file system has no direct I/O: openat(2) with O_DIRECT: {}", named(&error))
        }
        _ => refused("openat(2) with O_DIRECT", &error),
    })
}

fn read(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let (made, contents) = data::uncached(dir)?;
    let file = open(dir, c"uncached", libc::O_RDONLY)?;
    let mut notes = vec![alignment::note(&file)?];
    let mut read = Read {
        file,
        contents,
        offsets: Offsets::new(made.length, SMALL as u64),
        buffer: Aligned::new(2 * PAGE as usize, PAGE as usize)?,
        begin: usize::from(word(params, "buffer") == "unaligned"),
        offset: 0,
        expected: None,
    };
    // The result must be the same each time.
    let outcome = read.call();
    if read.begin == 0 {
        whole("pread(2) with O_DIRECT", outcome, SMALL)?;
    } else {
        match outcome {
            Ok(moved) => {
                whole("pread(2) with O_DIRECT", Ok(moved), SMALL)?;
                notes.push("an unaligned buffer (a byte later) is accepted".to_owned());
            }
            Err(error) => {
                notes.push(format!("an unaligned buffer (a byte later) is refused: {}", named(&error)));
                read.expected = Some(error.raw_os_error().unwrap_or(0));
            }
        }
    }
    notes.extend(dir.kind().note());
    Ok(instance(read).spent_once(made.took).with_notes(notes))
}

struct Read {
    file: OwnedFd,
    contents: Contents,
    offsets: Offsets,
    buffer: Aligned,
    /// The block's offset in the buffer: 0 or 1.
    begin: usize,
    offset: u64,
    /// The expected error, if reads are refused.
    expected: Option<i32>,
}

impl Operation for Read {
    fn warms_up(&self) -> bool {
        // A refused read never waits for storage.
        self.expected.is_some()
    }

    fn before(&mut self) -> Result<()> {
        self.offset = self.offsets.any();
        self.buffer.bytes_mut().fill(0);
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        pread(&self.file, &mut self.buffer.bytes_mut()[self.begin..self.begin + SMALL], self.offset)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        match (outcome, self.expected) {
            (Err(error), Some(expected)) if error.raw_os_error() == Some(expected) => return Ok(FINE),
            (Ok(_), Some(_)) => {
                return Err(fail!("an unaligned read was refused at first and accepted later"));
            }
            (outcome, _) => whole("pread(2) with O_DIRECT", outcome, SMALL)?,
        }
        match self.contents.begin(&self.buffer.bytes()[self.begin..self.begin + SMALL], self.offset) {
            true => Ok(FINE),
            false => Err(fail!("the data read differs from the file's contents")),
        }
    }
}
