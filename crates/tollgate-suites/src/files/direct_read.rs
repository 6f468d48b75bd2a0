//! Reads that pass the page cache by, and the attempt to have one into a buffer that is not aligned.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use tollgate_model::Boundary::{BlockRead, IdleExit, KernelCode, KernelEntry, SystemCall};
use tollgate_model::Params;

use tollgate_engine::benchmark::{Benchmark, PLAIN, params, word};
use tollgate_engine::{Instance, Refusal, Timed};

use super::aligned::Aligned;
use super::alignment;
use super::block::{self, SMALL};
use super::certificate::PAGE;
use super::data::{self, Contents, Offsets};
use super::place::Place;
use super::refusal::{absence, checked, named, refused, whole};
use super::single::{FINE, Operation, Verdict, instance};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/direct-read",
    operation: "One pread of a block past the page cache (O_DIRECT), into a buffer that is aligned or one that begins a \
                byte later: that attempt has its price, whatever it gives.",
    crosses: &[KernelEntry, SystemCall, KernelCode, BlockRead, IdleExit],
    timed: |_| Timed::Whole("pread(2)"),
    cases: || {
        ["aligned", "unaligned"]
            .map(|buffer| params(&[("buffer", buffer.into()), ("block", "4k".into())]))
            .to_vec()
    },
    // An attempt that is refused moves nothing; whether it is nobody knows before.
    bytes: |params| (word(params, "buffer") == "aligned").then_some(block::bytes(params) as u64),
    instance: |_, params| read(&Place::here()?, params),
    absence,
    ..PLAIN
};

/// The file whose reads come from storage, opened for direct I/O.
///
/// # Errors
/// [`Refusal::Skip`] where the file system has no direct I/O.
pub(super) fn open(place: &Place, name: &std::ffi::CStr, access: libc::c_int) -> Result<OwnedFd, Refusal> {
    place.open(name, access | libc::O_DIRECT).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => Refusal::Skip(format!(
            "this file system has no direct I/O: openat(2) with O_DIRECT: {}",
            named(&error)
        )),
        _ => refused("openat(2) with O_DIRECT", &error),
    })
}

fn read(place: &Rc<Place>, params: &Params) -> Result<Instance, Refusal> {
    let (made, contents) = data::uncached(place)?;
    let file = open(place, c"uncached", libc::O_RDONLY)?;
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
    // It must be the same each time.
    let outcome = read.call();
    if read.begin == 0 {
        whole("pread(2) with O_DIRECT", outcome, SMALL)?;
    } else {
        match outcome {
            Ok(moved) => {
                whole("pread(2) with O_DIRECT", Ok(moved), SMALL)?;
                notes.push("a buffer that begins a byte later is accepted".to_owned());
            }
            Err(error) => {
                notes.push(format!("a buffer that begins a byte later is refused: {}", named(&error)));
                read.expected = Some(error.raw_os_error().unwrap_or(0));
            }
        }
    }
    notes.extend(place.kind().note());
    Ok(instance(read).spent_once(made.took).with_notes(notes))
}

struct Read {
    file: OwnedFd,
    contents: Contents,
    offsets: Offsets,
    buffer: Aligned,
    /// Where in it the block begins: 0, or a byte later.
    begin: usize,
    offset: u64,
    /// The error that the attempt ends in.
    expected: Option<i32>,
}

impl Operation for Read {
    fn warms_up(&self) -> bool {
        // What is refused never waits for storage.
        self.expected.is_some()
    }

    fn before(&mut self) -> Result<(), Refusal> {
        self.offset = self.offsets.any();
        self.buffer.bytes_mut().fill(0);
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let (descriptor, offset) = (self.file.as_raw_fd(), self.offset as libc::off_t);
        let block = &mut self.buffer.bytes_mut()[self.begin..self.begin + SMALL];
        // SAFETY: the block is valid for writing its own length.
        checked(unsafe { libc::pread(descriptor, block.as_mut_ptr().cast(), block.len(), offset) } as i64)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        match (outcome, self.expected) {
            (Err(error), Some(expected)) if error.raw_os_error() == Some(expected) => return Ok(FINE),
            (Ok(_), Some(_)) => {
                return Err(Refusal::Fail("what was refused at first was accepted later".to_owned()));
            }
            (outcome, _) => whole("pread(2) with O_DIRECT", outcome, SMALL)?,
        }
        match self.contents.begin(&self.buffer.bytes()[self.begin..self.begin + SMALL], self.offset) {
            true => Ok(FINE),
            false => Err(Refusal::Fail("what was read is not what the file holds".to_owned())),
        }
    }
}
