//! One large file, as in dd(1) of 1 GiB: written for the first time, overwritten, and read from beginning to end.
//!
//! All cases share one file, which lasts as long as the run. Each block begins with its number, so that a read can be checked.
//! Writes are flushed after the timed part, so that the next operation does not wait for them.

use std::os::fd::{AsRawFd, OwnedFd};
use std::{io, rc::Rc};

use super::data::put;
use super::refusal::{FILE, named, pread, refused, whole};
use super::residency::{Residency, Trial, advise, drop_pages};
use super::single::{FINE, Operation, Verdict, instance};
use super::{aligned::Aligned, data_dir::DataDir};
use crate::prelude::*;

pub(crate) const SIZE: &str = "size";
pub(crate) const PREFIX: &str = "files/large-";
/// The default size, from the published comparisons.
const USUAL: &str = "1g";
const NAME: &std::ffi::CStr = c"large";
const WRITE: u64 = 1 << 20;
/// Bytes of one read: the default read-ahead window (`VM_READAHEAD_PAGES` of linux/mm.h), so that none is read ahead.
const READ: u64 = 128 << 10;
const LONG: &str = "longer than a time slice: includes preemption";
/// Bytes that are flushed in one step, because a slow device must not look like a hang.
const FLUSH: u64 = 16 << 20;

pub(super) static WRITTEN: Benchmark = Benchmark {
    name: "files/large-write",
    operation: "One whole file of 1 GiB, written in blocks of 1 MiB: open, writes and close, without fsync; a new file, or the same truncated and written again.",
    avoid: "Allocate the blocks beforehand (fallocate) and overwrite in place; O_DIRECT where the page cache brings nothing.",
    source: "dd(1); pwrite(2); open(2), O_TRUNC and O_DIRECT",
    crosses: &[KernelCode, UserCopy, PageCache, FileSystem, BlockWrite, IdleExit],
    crossed_in: |params, boundary| match boundary {
        UserCopy | PageCache => word(params, "mode") == "buffered",
        BlockWrite | IdleExit => word(params, "mode") == "direct",
        _ => true,
    },
    timed: |_| Timed::Whole("openat(2), pwrite(2) of each MiB, and close(2)"),
    cases: no_case,
    thorough_cases: |_| {
        [("new", "buffered"), ("again", "buffered"), ("new", "direct")]
            .map(|(file, mode)| params(&[("file", file.into()), ("mode", mode.into()), (SIZE, USUAL.into())]))
            .to_vec()
    },
    bytes: |params| size_of(params),
    kind: Kind::Instance(|_, params, context| write(&DataDir::of(context)?, params)),
    ..FILE
};

pub(super) static READS: Benchmark = Benchmark {
    name: "files/large-read",
    operation: "One whole file of 1 GiB, read in order in blocks of 128 KiB: from the page cache, or uncached with and without read-ahead.",
    avoid: "Read in order and leave read-ahead on; POSIX_FADV_SEQUENTIAL doubles its window, POSIX_FADV_RANDOM ends it.",
    source: "dd(1); pread(2); posix_fadvise(2)",
    crosses: &[KernelCode, UserCopy, PageCache, ReadAhead, BlockRead, IdleExit],
    crossed_in: |params, boundary| match boundary {
        ReadAhead => word(params, "state") == "readahead",
        BlockRead | IdleExit => word(params, "state") != "cached",
        _ => true,
    },
    timed: |_| Timed::Whole("pread(2) of each 128 KiB"),
    cases: no_case,
    thorough_cases: |_| {
        let case = |state: &&str| params(&[("state", (*state).into()), (SIZE, USUAL.into())]);
        State::WORDS.iter().map(case).collect()
    },
    bytes: |params| size_of(params),
    kind: Kind::Instance(|_, params, context| {
        let dir = DataDir::of(context)?;
        // The page cache must hold the whole file.
        let bytes = size_of(params).unwrap_or_default();
        let is_cached = State::try_from(params)? == State::Cached;
        let taken = is_cached.then(|| context.quota.take_memory(bytes)).transpose()?;
        drop(taken);
        read(&dir, params)
    }),
    ..FILE
};

words! {
    enum Mode("mode") { Buffered = "buffered", Direct = "direct" }
}

words! {
    /// Whether the file is there before it is written.
    enum Found("file") { New = "new", Again = "again" }
}

words! {
    enum State("state") { Cached = "cached", ReadAhead = "readahead", NoReadAhead = "no-readahead" }
}

/// Parses the size of a case in bytes, such as `256m` or `1g`; `None` if it is malformed.
pub(crate) fn size_of(params: &Params) -> Option<u64> {
    let text = word(params, SIZE);
    let (number, power) = match text.strip_suffix('g') {
        Some(number) => (number, 30),
        None => (text.strip_suffix('m')?, 20),
    };
    number.parse::<u64>().ok().filter(|number| *number > 0)?.checked_mul(1 << power)
}

/// Formats a size in bytes, a multiple of 1 MiB, as the parameter's value.
pub(crate) fn named_size(bytes: u64) -> String {
    match bytes >> 20 {
        mebibytes if mebibytes.is_multiple_of(1024) => format!("{}g", mebibytes >> 10),
        mebibytes => format!("{mebibytes}m"),
    }
}

fn expected(dir: &DataDir, params: &Params) -> Result<u64> {
    let bytes = size_of(params).ok_or_else(|| fail!("{} is not a size", word(params, SIZE)))?;
    dir.allows(bytes)?;
    Ok(bytes)
}

fn write(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let length = expected(dir, params)?;
    let direct = Mode::try_from(params)? == Mode::Direct;
    let again = Found::try_from(params)? == Found::Again;
    let mut write = Write {
        dir: Rc::clone(dir),
        length,
        direct,
        again,
        block: Aligned::filled(WRITE as usize, page_size(), 0xa5)?,
    };
    if direct {
        write.check_direct()?;
    }
    let mut notes = vec![
        LONG.to_owned(),
        "excludes the later writeback, which follows before the next operation".to_owned(),
    ];
    if again {
        notes.push(
            "the file is there with its whole length, and is truncated by open(2), as dd(1) does".to_owned(),
        );
    }
    notes.extend(dir.kind().note());
    Ok(instance(write).with_notes(notes))
}

struct Write {
    dir: Rc<DataDir>,
    length: u64,
    direct: bool,
    again: bool,
    block: Aligned,
}

impl Write {
    /// Checks that the file system has direct I/O: writes a block of a file, and removes the file.
    fn check_direct(&mut self) -> Result<()> {
        self.dir.remove(NAME)?;
        let outcome = self.fill(WRITE);
        self.dir.remove(NAME)?;
        match outcome {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Err(skip!("this file system has no direct I/O for a new file: {}", named(&error)))
            }
            outcome => outcome.map(|_| ()).map_err(|error| refused("a direct write", &error)),
        }
    }

    #[inline(always)]
    fn fill(&mut self, length: u64) -> io::Result<usize> {
        let flags =
            libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | if self.direct { libc::O_DIRECT } else { 0 };
        let file = self.dir.open(NAME, flags)?;
        fill(&file, &mut self.block, length, &self.dir.heartbeat)
    }
}

/// Writes numbered blocks from the beginning of the file.
#[inline(always)]
fn fill(file: &OwnedFd, block: &mut Aligned, length: u64, heartbeat: &Heartbeat) -> io::Result<usize> {
    let mut written = 0;
    while written < length {
        heartbeat.beat();
        stamp(block.bytes_mut(), written);
        let part = &block.bytes()[..(length - written).min(WRITE) as usize];
        // SAFETY: the buffer is valid for reading its own length.
        let moved = checked(unsafe {
            libc::pwrite(file.as_raw_fd(), part.as_ptr().cast(), part.len(), written as libc::off_t)
        } as i64)?;
        if moved != part.len() {
            return Ok(written as usize + moved);
        }
        written += moved as u64;
    }
    Ok(written as usize)
}

fn stamp(block: &mut [u8], offset: u64) {
    for (number, piece) in block.chunks_exact_mut(READ as usize).enumerate() {
        let at = offset + number as u64 * READ;
        piece[..8].copy_from_slice(&at.to_le_bytes());
    }
}

fn flush(file: &OwnedFd, length: u64, heartbeat: &Heartbeat) -> Result<()> {
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    for offset in (0..length).step_by(FLUSH as usize) {
        heartbeat.beat();
        // SAFETY: an open descriptor and numbers. If the file system does not support the call, fdatasync(2) writes everything.
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset as i64, FLUSH as i64, all) };
    }
    heartbeat.beat();
    super::data::write_out(file)
}

/// Returns the file at its full length, clean; makes it if it does not exist. Only the last write gives it its full length.
fn made(dir: &Rc<DataDir>, length: u64) -> Result<OwnedFd> {
    if let Ok(file) = dir.open(NAME, libc::O_RDWR) {
        // SAFETY: an open descriptor.
        let found = checked(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) });
        if found.is_ok_and(|found| found as u64 == length) {
            return Ok(file);
        }
    }
    let file = dir.create(NAME)?;
    let mut block = Aligned::filled(WRITE as usize, page_size(), 0xa5)?;
    for offset in (0..length).step_by(WRITE as usize) {
        dir.heartbeat.beat();
        stamp(block.bytes_mut(), offset);
        put(&file, &block.bytes()[..(length - offset).min(WRITE) as usize], offset)?;
    }
    flush(&file, length, &dir.heartbeat)?;
    Ok(file)
}

impl Operation for Write {
    fn is_long(&self) -> bool {
        true
    }

    fn before(&mut self) -> Result<()> {
        if self.again { made(&self.dir, self.length).map(drop) } else { self.dir.remove(NAME) }
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        self.fill(self.length)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        whole("pwrite(2)", outcome, self.length as usize)?;
        let file = self.dir.open(NAME, libc::O_RDWR).map_err(|error| refused("openat(2)", &error))?;
        flush(&file, self.length, &self.dir.heartbeat)?;
        Ok(FINE)
    }
}

fn read(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let length = expected(dir, params)?;
    let file = made(dir, length)?;
    let trial = Trial::make(&file, dir.kind())?;
    let state = State::try_from(params)?;
    let cached = state == State::Cached;
    if !cached {
        trial.must_drop(dir.kind())?;
    }
    let advice = if state == State::NoReadAhead { libc::POSIX_FADV_RANDOM } else { libc::POSIX_FADV_NORMAL };
    let mut notes = if cached {
        vec![format!("all pages cached before ({})", trial.call.name())]
    } else {
        vec![
            format!("no page cached before ({})", trial.call.name()),
            format!(
                "{}; device or host caches may apply",
                if advice == libc::POSIX_FADV_RANDOM {
                    "no read-ahead (POSIX_FADV_RANDOM)"
                } else {
                    "usual read-ahead"
                }
            ),
        ]
    };
    notes.push(LONG.to_owned());
    notes.extend(dir.kind().note());
    let read = Read {
        dir: Rc::clone(dir),
        length,
        cached,
        advice,
        trial,
        file,
        block: Aligned::new(READ as usize, page_size())?,
        ready: false,
    };
    Ok(instance(read).with_notes(notes))
}

struct Read {
    dir: Rc<DataDir>,
    length: u64,
    cached: bool,
    advice: libc::c_int,
    trial: Trial,
    file: OwnedFd,
    block: Aligned,
    ready: bool,
}

impl Operation for Read {
    fn is_long(&self) -> bool {
        true
    }

    fn before(&mut self) -> Result<()> {
        const TRIES: usize = 3;
        // A write creates the file anew.
        self.file = made(&self.dir, self.length)?;
        advise(&self.file, libc::POSIX_FADV_NORMAL)?;
        let residency = Residency::by(self.trial.call, &self.file, self.length)
            .map_err(|error| refused("mmap(2)", &error))?;
        for _ in 0..TRIES {
            if self.cached {
                whole("pread(2)", self.call(), self.length as usize)?;
            } else {
                drop_pages(&self.file)?;
            }
            let resident = residency.resident(0, self.length);
            let resident = resident.map_err(|error| refused("the residency check", &error))?;
            self.ready = resident == if self.cached { self.length / page_size() as u64 } else { 0 };
            if self.ready {
                break;
            }
        }
        advise(&self.file, self.advice)
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let mut moved = 0;
        while moved < self.length {
            self.dir.heartbeat.beat();
            let got = pread(&self.file, self.block.bytes_mut(), moved)?;
            let number = self.block.bytes().first_chunk().map(|number| u64::from_le_bytes(*number));
            if got != READ as usize || number != Some(moved) {
                return Ok(moved as usize);
            }
            moved += got as u64;
        }
        Ok(moved as usize)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        whole("pread(2) of the file's contents", outcome, self.length as usize)?;
        Ok(Verdict { counted: None, kept: self.ready })
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;
    use crate::testing::ready;

    fn params_of(benchmark: &Benchmark) -> Vec<Params> {
        let sized = |mut params: Params| {
            params.insert(SIZE.to_owned(), "3m".into());
            params
        };
        (benchmark.thorough_cases)(&Topology::default()).into_iter().map(sized).collect()
    }

    #[test]
    fn a_whole_file_is_written_and_read_in_every_case() {
        let own = Own::with_limit(8 << 20);
        for case in params_of(&WRITTEN) {
            let Some(mut instance) = ready(&case, write(&own.dir, &case)) else { continue };
            let batch = instance.batch(Clock::Kernel, Order::new(1)).expect("a batch");
            assert!(batch.work > 0);
            let file = own.dir.open(NAME, libc::O_RDONLY).expect("it is there");
            let length = std::fs::File::from(file).metadata().expect("a file").len();
            assert_eq!(length, 3 << 20, "{case:?}");
        }
        for case in params_of(&READS) {
            let Some(mut instance) = ready(&case, read(&own.dir, &case)) else { continue };
            // Another program may evict or cache a page, but not every time.
            let kept =
                (0..20).any(|_| instance.batch(Clock::Kernel, Order::new(1)).expect("a batch").undisturbed);
            assert!(kept, "{case:?}");
        }
        assert_eq!(own.names(), ["large"]);
    }

    #[test]
    fn other_contents_are_not_taken_for_the_file() {
        let own = Own::with_limit(8 << 20);
        let file = own.dir.create(NAME).expect("a file");
        put(&file, &vec![7; 3 << 20], 0).expect("written");
        flush(&file, 3 << 20, &own.dir.heartbeat).expect("flushed");
        let case = params_of(&READS).remove(0);
        let Some(mut instance) = ready(&case, read(&own.dir, &case)) else { return };
        let Err(Refusal::Fail(why)) = instance.batch(Clock::Kernel, Order::new(1)) else {
            panic!("it was taken")
        };
        assert!(why.contains("0 of 3145728 bytes"), "{why}");
    }

    #[test]
    fn sizes_are_words_and_bytes() {
        for (bytes, name) in [(1 << 30, "1g"), (256 << 20, "256m"), (1536 << 20, "1536m"), (2 << 30, "2g")] {
            assert_eq!(named_size(bytes), name);
            assert_eq!(size_of(&params(&[(SIZE, name.into())])), Some(bytes));
        }
        for wrong in ["", "g", "0m", "-1g", "1k", "99999999999999g", "small"] {
            assert_eq!(size_of(&params(&[(SIZE, wrong.into())])), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_beyond_the_limit_is_skipped_with_the_reason() {
        let own = Own::with_limit(2 << 20);
        for refused in [write(&own.dir, &params_of(&WRITTEN)[0]), read(&own.dir, &params_of(&READS)[0])] {
            let Err(Refusal::Skip(why)) = refused else { panic!("it is refused") };
            assert_eq!(why, "3 MiB of files would be more than what the test allows");
        }
    }
}
