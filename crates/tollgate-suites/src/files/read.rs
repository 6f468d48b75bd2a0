//! Reads with verified cache state: cached, or uncached.

use std::os::fd::OwnedFd;
use std::{io, rc::Rc};

use super::data::{self, Contents, Offsets};
use super::refusal::{FILE, pread, refused, whole};
use super::residency::{Residency, Trial, advise, drop_pages};
use super::single::{Operation, Verdict, in_batches, timed_as};
use super::{aligned::Aligned, data_dir::DataDir};
use super::{block, data::Made};
use crate::prelude::*;
use tollgate_os::rusage::Usage;

// A cached read reads a page that was read just before, so its lines are in the processor's caches. It takes about 0.6 × as long
// as a read of a random page of a 28 MiB file, which is what fio's random reads measure.
pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/read",
    operation: "One pread of a block of a file: cached, alone or in a batch of them, or after its pages were dropped from the page cache.",
    avoid: "Read ahead (posix_fadvise, readahead), keep hot files in the page cache, and keep several reads in flight by io_uring.",
    source: "pread(2); posix_fadvise(2); io_uring_enter(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, PageCache, ReadAhead, BlockRead, IdleExit],
    crossed_in: |params, boundary| match boundary {
        KernelEntry | SystemCall => word(params, "state") == "cached",
        ReadAhead | BlockRead | IdleExit => word(params, "state") == "uncached",
        _ => true,
    },
    timed: |_| Timed::Whole("pread(2)"),
    counts: Some("reads with verified cache state"),
    cases: |_| {
        let states = State::WORDS.iter().copied();
        let blocks = |state: &'static str| {
            ["4k", "128k", "1m"].map(|block| params(&[("state", state.into()), ("block", block.into())]))
        };
        let single = states.flat_map(blocks);
        let short = params(&[("state", "cached".into()), ("block", "4k".into())]);
        single.chain([in_batches(short)]).collect()
    },
    bytes: block::moved,
    headlines: &[
        Headline::of(
            Section::Files,
            "pread 4 KiB, cached",
            &[("block", "4k"), ("state", "cached"), ("timed", "batches")],
        ),
        Headline::of(Section::Files, "pread 4 KiB, not cached", &[("block", "4k"), ("state", "uncached")]),
    ],
    kind: Kind::Instance(|_, params, context| read(&DataDir::of(context)?, params)),
    ..FILE
};

words! {
    enum State("state") { Cached = "cached", Uncached = "uncached" }
}

fn read(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let (cached, bytes) = (State::try_from(params)? == State::Cached, block::bytes(params)?);
    // The residency call is chosen on the uncached file, since the other one stays cached.
    let (discarded, dropped_contents) = data::uncached(dir)?;
    let trial = Trial::make(&discarded.file, dir.kind())?;
    let (Made { file, length, took }, contents) = if cached {
        let (made, contents) = data::cached(dir)?;
        (Made { took: made.took + discarded.took, ..made }, contents)
    } else {
        trial.must_drop(dir.kind())?;
        advise(&discarded.file, libc::POSIX_FADV_RANDOM)?;
        (discarded, dropped_contents)
    };
    let residency = Residency::by(trial.call, &file, length).map_err(|error| refused("mmap(2)", &error))?;
    let mut read = Read {
        residency,
        file,
        contents,
        offsets: Offsets::new(length, bytes as u64),
        buffer: Aligned::new(bytes, block::SMALL)?,
        offset: 0,
        certified: false,
        state: if cached { CacheState::Cached } else { CacheState::Uncached { counted: false } },
    };
    let storage = read.try_once()?;
    let call = trial.call.name();
    let mut notes = match read.state {
        CacheState::Cached => {
            vec![format!("all pages cached before each read ({call})")]
        }
        CacheState::Uncached { .. } => vec![
            format!("no page cached before each read ({call})"),
            "no read-ahead (POSIX_FADV_RANDOM); device or host caches may apply".to_owned(),
        ],
    };
    notes.push(storage);
    if !cached {
        notes.extend(dir.kind().note());
    }
    Ok(timed_as(params, read)?.spent_once(took).with_notes(notes))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheState {
    Cached,
    Uncached {
        /// Whether the kernel must count each read's bytes as read from storage.
        counted: bool,
    },
}

struct Read {
    residency: Residency,
    file: OwnedFd,
    contents: Contents,
    offsets: Offsets,
    buffer: Aligned,
    offset: u64,
    certified: bool,
    state: CacheState,
}

impl Read {
    /// Reads one block, untimed. Takes the kernel's count of bytes from storage, for a note and for the check of each read.
    fn try_once(&mut self) -> Result<String> {
        self.before()?;
        let bytes = self.buffer.bytes().len() as u64;
        if !self.certified {
            return Err(Refusal::Skip(match self.state {
                CacheState::Cached => "pages leave the page cache right after a read".to_owned(),
                CacheState::Uncached { .. } => {
                    "pages are back in the page cache right after they were dropped".to_owned()
                }
            }));
        }
        let (before, io_before) = (Usage::of_thread(), read_bytes());
        let outcome = self.call();
        let from_storage = 512 * (Usage::of_thread().inblock - before.inblock);
        let from_io = read_bytes().zip(io_before).map(|(after, before)| after.saturating_sub(before));
        whole("pread(2)", outcome, bytes as usize)?;
        let source = if from_io.is_some() { "/proc/self/io" } else { "getrusage(2)" };
        let seen = from_io.unwrap_or(from_storage);
        match &mut self.state {
            CacheState::Uncached { counted } if seen >= bytes => *counted = from_storage >= bytes,
            CacheState::Cached | CacheState::Uncached { .. } => {}
        }
        Ok(format!("{source} counted {seen} bytes from storage for one read of {bytes}"))
    }
}

fn read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}

impl Operation for Read {
    fn warms_up(&self) -> bool {
        self.state == CacheState::Cached
    }

    fn before(&mut self) -> Result<()> {
        /// A page in use cannot be dropped, and memory pressure may evict a page.
        const TRIES: usize = 3;
        let length = self.buffer.bytes().len();
        self.offset = self.offsets.any();
        for _ in 0..TRIES {
            if self.state == CacheState::Cached {
                // The buffer's contents must come from the timed read.
                let read = self.call();
                whole("pread(2)", read, length)?;
                self.buffer.bytes_mut().fill(0);
            } else {
                drop_pages(&self.file)?;
            }
            let resident = self.residency.resident(self.offset, length as u64);
            let resident = resident.map_err(|error| refused("the residency check", &error))?;
            let wanted =
                if self.state == CacheState::Cached { length.div_ceil(page_size()) as u64 } else { 0 };
            self.certified = resident == wanted;
            if self.certified {
                break;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        pread(&self.file, self.buffer.bytes_mut(), self.offset)
    }

    fn after(&mut self, outcome: io::Result<usize>, from_storage: u64) -> Result<Verdict> {
        let length = self.buffer.bytes().len();
        whole("pread(2)", outcome, length)?;
        if !self.contents.begin(self.buffer.bytes(), self.offset) {
            return Err(fail!("the data read differs from the file's contents"));
        }
        // Otherwise the page was evicted or cached between the check and the read.
        let kept = match self.state {
            CacheState::Cached => from_storage == 0,
            CacheState::Uncached { counted } => !counted || from_storage >= length as u64,
        };
        Ok(Verdict { counted: Some(u64::from(self.certified)), kept })
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;
    use crate::testing::ready;

    #[test]
    fn every_read_is_certified() {
        let own = Own::with_limit(8 << 20);
        for case in (BENCHMARK.cases)(&Topology::default()) {
            let Some(mut instance) = ready(&case, read(&own.dir, &case)) else { continue };
            for _ in 0..3 {
                let batch = instance.batch(Clock::Kernel, Order::new(1)).expect("a batch");
                assert_eq!(batch.counted, Some(1), "{case:?}");
            }
        }
    }
}
