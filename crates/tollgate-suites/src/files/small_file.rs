//! Latency of one small file's life, by call: create, write, sync, rename over the old file, read, unlink.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::{ffi::CStr, io, rc::Rc};

use super::block::SMALL;
use super::data_dir::{DataDir, Names};
use super::names::{close, written};
use super::refusal::{FILE, done, refused, whole};
use super::single::{time, together};
use super::{close_after_write, create, open, read, rename, sync, unlink, write};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/small-file",
    operation: "One call of a small file's life (4 KiB): create, write, fsync, close, rename over the old file; open, read, close; unlink. Or their sum.",
    avoid: "Put many small records into one file, with one fsync for all of them.",
    source: "fsync(2); rename(2)",
    crosses: &[
        KernelEntry,
        SystemCall,
        KernelCode,
        PathLookup,
        UserCopy,
        PageCache,
        FileSystem,
        KernelAllocation,
        BlockWrite,
        DeviceFlush,
        ContextSwitch,
        WakeUp,
        IdleExit,
    ],
    crossed_in: |case, boundary| {
        let of = |benchmark: &Benchmark| benchmark.crosses.contains(&boundary);
        let by = |benchmark: &Benchmark, case: Params| {
            benchmark.crosses_in(&case).any(|crossed| crossed == boundary)
        };
        match Call::try_from(case) {
            Ok(Call::Create) => of(&create::BENCHMARK),
            Ok(Call::Write) => by(&write::BENCHMARK, params(&[("mode", "buffered".into())])),
            Ok(Call::Fsync) => of(&sync::FSYNC),
            Ok(Call::Close) => of(&close_after_write::BENCHMARK),
            Ok(Call::Rename) => of(&rename::BENCHMARK),
            Ok(Call::Open) => of(&open::BENCHMARK),
            Ok(Call::Read) => by(&read::BENCHMARK, params(&[("state", "cached".into())])),
            Ok(Call::CloseRead) => matches!(boundary, KernelEntry | SystemCall | KernelCode),
            Ok(Call::Unlink) => of(&unlink::BENCHMARK),
            // fsync(2) makes up most of the sum.
            Ok(Call::All) | Err(_) => !matches!(boundary, KernelEntry | SystemCall),
        }
    },
    timed: |params| Call::try_from(params).map_or(NOT_TIMED, |call| Timed::Whole(call.value())),
    cases: |_| each_word("call", Call::WORDS),
    kind: Kind::Instance(|_, params, context| {
        let dir = DataDir::of(context)?;
        dir.allows(2 * SMALL as u64)?;
        let question = Call::try_from(params)? as usize;
        let shared = Shared::once(context, "files/small-file", |_| Life::new(&dir))?;
        Ok(shared.question(question).with_most(1))
    }),
    ..FILE
};

words! {
    /// The calls in order, then their sum.
    enum Call("call"): &'static str {
        Create = "create" => "openat(2)",
        Write = "write" => "pwrite(2)",
        Fsync = "fsync" => "fsync(2)",
        Close = "close" => "close(2)",
        Rename = "rename" => "renameat(2)",
        Open = "open" => "openat(2)",
        Read = "read" => "pread(2)",
        CloseRead = "close-read" => "close(2)",
        Unlink = "unlink" => "unlinkat(2)",
        All = "all" => "the nine system calls",
    }
}

const NAME: &CStr = c"small";
const NEW: &CStr = c"small.tmp";

struct Life {
    dir: Rc<DataDir>,
    buffer: [u8; SMALL],
    _names: Names,
}

impl Life {
    fn new(dir: &Rc<DataDir>) -> Result<Self> {
        let names = Names::free(dir, &[NAME, NEW])?;
        Ok(Self { dir: Rc::clone(dir), buffer: [0; SMALL], _names: names })
    }

    /// Times each call separately, in the order of [`Call`].
    fn once(&mut self, clock: Clock) -> Result<Vec<Batch>> {
        let byte = self.buffer[0].wrapping_add(1);
        self.buffer.fill(byte);
        drop(written(&self.dir, NAME)?);
        let directory = self.dir.descriptor();
        let mut life = Items { clock, batches: Vec::with_capacity(Call::ALL.len()) };

        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: an open directory and a C string.
        let file = life.add(|| checked(unsafe { libc::openat(directory, NEW.as_ptr(), flags, 0o600) }));
        let file = opened("openat(2) with O_CREAT", file)?;
        let (descriptor, buffer) = (file.as_raw_fd(), &mut self.buffer);
        // SAFETY: the buffer is valid for reading its own length.
        let moved = life
            .add(|| checked(unsafe { libc::pwrite(descriptor, buffer.as_ptr().cast(), SMALL, 0) } as i64));
        whole("pwrite(2)", moved, SMALL)?;
        // SAFETY: an open descriptor.
        done("fsync(2)", life.add(|| checked(unsafe { libc::fsync(descriptor) })))?;
        done("close(2)", life.add(|| close(Some(file))))?;
        done("renameat(2)", life.add(|| self.dir.rename(NEW, NAME)))?;

        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: an open directory and a C string.
        let file = life.add(|| checked(unsafe { libc::openat(directory, NAME.as_ptr(), flags) }));
        let file = opened("openat(2)", file)?;
        let descriptor = file.as_raw_fd();
        buffer.fill(0);
        // SAFETY: the buffer is valid for writing its own length.
        let moved = life
            .add(|| checked(unsafe { libc::pread(descriptor, buffer.as_mut_ptr().cast(), SMALL, 0) } as i64));
        whole("pread(2)", moved, SMALL)?;
        if buffer.iter().any(|&found| found != byte) {
            return Err(fail!("the data read differs from the data written"));
        }
        done("close(2)", life.add(|| close(Some(file))))?;
        // SAFETY: an open directory and a C string.
        done("unlinkat(2)", life.add(|| checked(unsafe { libc::unlinkat(directory, NAME.as_ptr(), 0) })))?;
        Ok(life.summed())
    }
}

impl Experiment for Life {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        let mut sums = self.once(clock)?;
        for _ in 1..order.all() {
            self.dir.heartbeat.beat();
            let next = self.once(clock)?;
            sums = sums.into_iter().zip(next).map(|(sum, next)| together(sum, next)).collect();
        }
        Ok(sums)
    }
}

struct Items {
    clock: Clock,
    batches: Vec<Batch>,
}

impl Items {
    fn add(&mut self, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        let (outcome, batch, _) = time(self.clock, call);
        self.batches.push(batch);
        outcome.unwrap_or_else(|| Err(io::Error::other("the call was not made")))
    }

    fn summed(mut self) -> Vec<Batch> {
        let nothing = Batch::new(0, 0, true);
        let sum = self.batches.iter().fold(nothing, |sum, &batch| together(sum, batch));
        self.batches.push(sum);
        self.batches
    }
}

fn opened(what: &str, outcome: io::Result<usize>) -> Result<OwnedFd> {
    let descriptor = outcome.map_err(|error| refused(what, &error))?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;

    #[test]
    fn the_calls_add_up_and_leave_no_file() {
        let own = Own::new();
        let mut life = Life::new(&own.dir).expect("names");
        let batches = life.run(Clock::Kernel, Order::new(2)).expect("batches");
        assert_eq!(batches.len(), Call::ALL.len());
        let (all, calls) = batches.split_last().expect("a sum");
        assert_eq!(all.work, calls.iter().map(|batch| batch.work).sum::<u64>());
        assert!(calls.iter().all(|batch| batch.work > 0));
        assert!(own.names().is_empty(), "{:?}", own.names());
    }
}
