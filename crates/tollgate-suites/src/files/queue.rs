//! Direct I/O with a queue that stays full: `depth` reads or writes are in flight, and each is replaced as it completes. The time
//! for one operation is the reciprocal of the operations per second that fio reports; the latency is fio's completion latency.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::{io, rc::Rc};

use super::block::SMALL;
use super::data::{self, Contents, Offsets};
use super::data_dir::DataDir;
use super::refusal::{FILE, refused};
use super::single::time;
use super::{aligned::Aligned, alignment, direct_read};
use crate::prelude::*;
use crate::uring::{self, Request, Ring, What};

/// Depth, order, read or write, and how writes are made durable.
type Queue = (u64, &'static str, &'static str, &'static str);

const USUAL: [Queue; 6] = [
    (1, "random", "read", ""),
    (16, "random", "read", ""),
    (64, "random", "read", ""),
    (16, "sequential", "read", ""),
    (16, "random", "write", ""),
    (1, "random", "write", "dsync"),
];

const DEPTHS: [u64; 4] = [1, 4, 16, 64];

words! {
    /// The figures of a queue, in the order of the experiment's answers: the time for one operation, whose reciprocal is operations
    /// per second, and the time from the submission of one operation to its completion.
    enum Figure("figure") { Operation = "operation", Latency = "latency" }
}

words! {
    enum Pattern("order") { Random = "random", Sequential = "sequential" }
}

words! {
    enum Direction("rw") { Read = "read", Write = "write", Mixed = "mixed" }
}

words! {
    /// How writes are made durable. With an fsync, that is part of the operation.
    enum Sync("sync") { None = "", Data = "dsync", Fsync = "fsync" }
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/queue",
    operation: "4 KiB with O_DIRECT in a queue of this depth that stays full (io_uring): the time for one operation (figure=operation, the reciprocal of operations a second), or from one operation's submission until its completion (figure=latency).",
    avoid: "Raise the depth while operations per second still rise. Beyond that only the latency rises. Group writes under one flush.",
    source: "io_uring_enter(2); open(2), O_DIRECT; pwritev2(2), RWF_DSYNC; fio(1), iodepth",
    crosses: &[IoUring, KernelCode, BlockRead, BlockWrite, DeviceFlush, IdleExit],
    crossed_in: |params, boundary| match boundary {
        BlockRead => word(params, "rw") != "write",
        BlockWrite => word(params, "rw") != "read",
        DeviceFlush => params.contains_key("sync"),
        IdleExit => number(params, "depth") == 1,
        _ => true,
    },
    timed: |_| Timed::Whole("io_uring_enter(2)"),
    cases: |_| rows(&USUAL),
    thorough_cases: |_| {
        let mut queues = Vec::new();
        for rw in ["read", "write", "mixed"] {
            for order in ["random", "sequential"] {
                queues.extend(DEPTHS.map(|depth| (depth, order, rw, "")));
            }
        }
        for sync in ["dsync", "fsync"] {
            queues.extend([1, 16].map(|depth| (depth, "random", "write", sync)));
        }
        queues.retain(|queue| !USUAL.contains(queue));
        rows(&queues)
    },
    bytes: |params| (word(params, "figure") == "operation").then_some(SMALL as u64),
    headlines: &[Headline::of(
        Section::Files,
        "4 KiB read, 16 in flight",
        &[("depth", "16"), ("order", "random"), ("rw", "read"), ("figure", "operation")],
    )],
    kind: Kind::Instance(|_, params, context| {
        let figure = Figure::try_from(params)?;
        let mut queue = params.clone();
        queue.remove("figure");
        let words: Vec<String> = queue.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let dir = DataDir::of(context)?;
        let experiment =
            Shared::once(context, &format!("queue {}", words.join(" ")), |_| Full::new(&dir, &queue))?;
        let instance = experiment.question(figure as usize).with_most(1).with_notes(dir.kind().note());
        Ok(if figure == Figure::Operation {
            instance.with_ops(operations(number(params, "depth")))
        } else {
            instance
        })
    }),
    ..FILE
};

fn rows(queues: &[Queue]) -> Vec<Params> {
    let of = |&(depth, order, rw, sync): &Queue| {
        Figure::WORDS.iter().map(move |&figure| {
            let mut case = params(&[
                ("depth", depth.into()),
                ("order", order.into()),
                ("rw", rw.into()),
                ("figure", figure.into()),
            ]);
            if !sync.is_empty() {
                case.insert("sync".to_owned(), sync.into());
            }
            case
        })
    };
    queues.iter().flat_map(of).collect()
}

/// Operations of a batch: every operation in the queue is replaced a few times.
fn operations(depth: u64) -> u64 {
    (4 * depth).max(32)
}

/// A queue, its buffers and its files. Idle between batches.
struct Full {
    ring: Ring,
    /// `None` once the kernel may write to the buffers at any time.
    buffers: Option<Aligned>,
    slots: Vec<Slot>,
    reads: Option<Side>,
    writes: Option<Side>,
    is_random: bool,
    sync: Sync,
    in_flight: u32,
    writes_next: bool,
    _dir: Rc<DataDir>,
}

struct Side {
    file: OwnedFd,
    offsets: Offsets,
    /// `None` if the file is written.
    contents: Option<Contents>,
}

/// An operation in flight, indexed by its buffer.
#[derive(Debug, Clone, Copy)]
struct Slot {
    what: What,
    offset: u64,
}

/// A tag contains the number of the buffer and these bits.
const IS_WRITE_OF_PAIR: u64 = 1 << 32;
const IS_WATCHED: u64 = 1 << 33;

impl Full {
    fn new(dir: &Rc<DataDir>, params: &Params) -> Result<Self> {
        let depth = number(params, "depth").max(1);
        let (direction, sync) = (Direction::try_from(params)?, Sync::try_from(params)?);
        let is_random = Pattern::try_from(params)? == Pattern::Random;
        let reads = if direction == Direction::Write {
            None
        } else {
            let (made, contents) = data::uncached(dir)?;
            let file = direct_read::open(dir, c"uncached", libc::O_RDONLY)?;
            alignment::note(&file)?;
            Some(Side { file, offsets: Offsets::new(made.length, SMALL as u64), contents: Some(contents) })
        };
        let writes = if direction == Direction::Read {
            None
        } else {
            let made = data::rewritten(dir, c"queue")?;
            let file = direct_read::open(dir, c"queue", libc::O_RDWR)?;
            Some(Side { file, offsets: Offsets::new(made.length, SMALL as u64), contents: None })
        };
        // A write and its fsync take two entries.
        let entries = (2 * depth).next_power_of_two();
        let mut full = Self {
            ring: Ring::new(entries as u32).map_err(|error| uring::refused(&error))?,
            buffers: Some(Aligned::filled(SMALL * depth as usize, SMALL, 0xa5)?),
            slots: vec![Slot { what: What::Read, offset: 0 }; depth as usize],
            reads,
            writes,
            is_random,
            sync,
            in_flight: 0,
            writes_next: false,
            _dir: Rc::clone(dir),
        };
        // Runs each operation once, so that anything that this kernel or file system lacks is reported before timing begins.
        full.fill()?;
        full.drain()?;
        Ok(full)
    }

    /// Queues the next operation, with buffer `index`. Returns the number of entries.
    fn put(&mut self, index: usize, mark: u64) -> Result<u32> {
        let writes = match (&self.reads, &self.writes) {
            (Some(_), Some(_)) => {
                self.writes_next = !self.writes_next;
                !self.writes_next
            }
            (None, _) => true,
            _ => false,
        };
        let (is_random, sync) = (self.is_random, self.sync);
        let side = if writes { &mut self.writes } else { &mut self.reads };
        let (Some(side), Some(buffers), Some(slot)) = (side, &mut self.buffers, self.slots.get_mut(index))
        else {
            return Err(fail!("the queue has no such operation"));
        };
        let Some(buffer) = buffers.bytes_mut().chunks_exact_mut(SMALL).nth(index) else {
            return Err(fail!("the queue has no such buffer"));
        };
        let offset = if is_random { side.offsets.any() } else { side.offsets.next() };
        *slot = Slot { what: if writes { What::Write } else { What::Read }, offset };
        let file: RawFd = side.file.as_raw_fd();
        let tag = index as u64 | mark;
        let is_pair = writes && sync == Sync::Fsync;
        let request = Request {
            what: slot.what,
            file,
            offset,
            buffer: buffer.as_mut_ptr(),
            length: SMALL as u32,
            flags: if writes && sync == Sync::Data { libc::RWF_DSYNC as u32 } else { 0 },
            tag: if is_pair { tag | IS_WRITE_OF_PAIR } else { tag },
            is_linked: is_pair,
        };
        // SAFETY: the buffer stays until its completion is consumed, or is never freed (`give_up`). Nothing reads it before that.
        unsafe { self.ring.put(&request) };
        if !is_pair {
            return Ok(1);
        }
        let sync = Request {
            what: What::Fsync,
            offset: 0,
            buffer: std::ptr::null_mut(),
            length: 0,
            flags: 0,
            tag,
            is_linked: false,
            ..request
        };
        // SAFETY: an fsync has no buffer.
        unsafe { self.ring.put(&sync) };
        Ok(2)
    }

    fn fill(&mut self) -> Result<()> {
        let mut put = 0;
        for index in 0..self.slots.len() {
            put += self.put(index, 0)?;
        }
        self.submit(put, 0)
    }

    fn submit(&mut self, put: u32, wait: u32) -> Result<()> {
        let submitted = self.ring.enter(put, wait).map_err(|error| refused("io_uring_enter(2)", &error));
        let submitted = match submitted {
            Ok(submitted) => submitted,
            Err(refusal) => return Err(self.give_up(refusal)),
        };
        self.in_flight += submitted;
        if submitted == put {
            return Ok(());
        }
        Err(self.give_up(fail!("io_uring_enter(2) took {submitted} of {put} operations")))
    }

    /// Completes at least this number of operations, since several complete at a time, and replaces each. Returns how many
    /// completed. Returns early if the watched operation completes, and does not replace the ones that completed with it.
    fn exchange(&mut self, operations: u64) -> Result<u64> {
        let (mut completed, mut put, mut done) = (0, 0, Vec::with_capacity(self.slots.len()));
        while completed < operations {
            self.submit(put, 1)?;
            put = 0;
            self.completed(&mut done)?;
            completed += done.len() as u64;
            if done.iter().any(|&(_, is_watched)| is_watched) {
                // The watched operation's time ends here. A submission takes longer than a system call if it causes a VM exit.
                return Ok(completed);
            }
            for &(index, _) in &done {
                put += self.put(index, 0)?;
            }
        }
        self.submit(put, 0)?;
        Ok(completed)
    }

    /// Collects completed operations in `done`, after checking each: the buffer, and whether it is the watched one.
    fn completed(&mut self, done: &mut Vec<(usize, bool)>) -> Result<()> {
        let (mut wrong, mut taken) = (None, 0);
        done.clear();
        self.ring.take_completions(|tag, result| {
            taken += 1;
            let (index, is_write_of_pair) =
                ((tag & u64::from(u32::MAX)) as usize, tag & IS_WRITE_OF_PAIR != 0);
            let expected = match self.sync {
                Sync::Fsync if !is_write_of_pair => 0,
                _ => SMALL as i32,
            };
            if result != expected {
                wrong = Some(result);
            }
            if !is_write_of_pair {
                done.push((index, tag & IS_WATCHED != 0));
            }
        });
        self.in_flight = self.in_flight.saturating_sub(taken);
        match wrong {
            Some(error @ ..=-1) => {
                let error = io::Error::from_raw_os_error(-error);
                return Err(self.give_up(refused("an operation by io_uring", &error)));
            }
            Some(moved) => return Err(self.give_up(fail!("an operation moved {moved} of {SMALL} bytes"))),
            None => {}
        }
        if done.iter().all(|&(index, _)| self.is_whole(index)) {
            Ok(())
        } else {
            Err(self.give_up(fail!("the data read differs from the file's contents")))
        }
    }

    fn is_whole(&self, index: usize) -> bool {
        let (Some(slot), Some(buffers)) = (self.slots.get(index), &self.buffers) else { return false };
        let contents = self.reads.as_ref().and_then(|side| side.contents);
        let (What::Read, Some(contents)) = (slot.what, contents) else { return true };
        let buffer = buffers.bytes().chunks_exact(SMALL).nth(index);
        buffer.is_some_and(|buffer| contents.begin(buffer, slot.offset))
    }

    fn drain(&mut self) -> Result<()> {
        let mut done = Vec::new();
        while self.in_flight > 0 {
            self.submit(0, 1)?;
            self.completed(&mut done)?;
        }
        Ok(())
    }

    /// Leaks the buffers, since the kernel may still write to those of operations in flight. The queue cannot be used after that.
    fn give_up(&mut self, refusal: Refusal) -> Refusal {
        if let Some(buffers) = self.buffers.take() {
            std::mem::forget(buffers);
        }
        refusal
    }

    fn watch(&mut self, clock: Clock) -> Result<Batch> {
        // Makes room for the watched operation: another one completes and is not replaced.
        let (mut free, mut put, mut done) = (None, 0, Vec::with_capacity(self.slots.len()));
        while free.is_none() {
            self.submit(put, 1)?;
            put = 0;
            self.completed(&mut done)?;
            for &(index, _) in &done {
                match free {
                    None => free = Some(index),
                    Some(_) => put += self.put(index, 0)?,
                }
            }
        }
        self.submit(put, 0)?;
        let index = free.unwrap_or(0);
        let (outcome, batch, _) = time(clock, || {
            let put = self.put(index, IS_WATCHED)?;
            self.submit(put, 0)?;
            self.exchange(u64::MAX)
        });
        outcome.unwrap_or_else(|| Err(fail!("the operation did not run")))?;
        Ok(batch)
    }
}

impl Experiment for Full {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        let operations = operations(self.slots.len() as u64) * order.all();
        if self.buffers.is_none() {
            return Err(fail!("operations of an earlier batch are still in flight"));
        }
        self.fill()?;
        // The device's thread and the processor were idle: see `direct_read`.
        self.exchange(operations / 2)?;
        let (outcome, throughput, _) = time(clock, || self.exchange(operations));
        let completed = outcome.unwrap_or_else(|| Err(fail!("the operations did not run")))?;
        // The queue is full at the beginning and at the end, so the time is that of the operations that completed.
        let throughput = throughput.scaled(completed, operations);
        let latency = self.watch(clock)?;
        self.drain()?;
        Ok(vec![throughput, latency])
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        if self.in_flight > 0 && self.drain().is_err() {
            self.give_up(fail!(""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;
    use crate::testing::ready;

    #[test]
    fn each_kind_of_queue_runs_repeatedly_and_is_empty_between_batches() {
        let own = Own::with_limit(16 << 20);
        let sync = |queue: &Params| queue.contains_key("sync");
        let all = BENCHMARK.cases_in(Extent::Thorough, &Topology::default());
        // Every depth of one kind, and every kind at one depth.
        let chosen = all.iter().filter(|case| {
            word(case, "figure") == "latency"
                && (sync(case) || number(case, "depth") == 4 || word(case, "rw") == "mixed")
        });
        for case in chosen {
            let Some(mut full) = ready(case, Full::new(&own.dir, case)) else { return };
            for _ in 0..2 {
                let batches = full.run(Clock::Kernel, Order::new(1)).expect("batches");
                assert_eq!((batches.len(), full.in_flight), (2, 0), "{case:?}");
                assert!(batches.iter().all(|batch| batch.work > 0), "{case:?}");
            }
        }
    }

    #[test]
    fn each_operation_that_completes_is_counted_and_replaced() {
        let own = Own::with_limit(16 << 20);
        let all = BENCHMARK.cases_in(Extent::Usual, &Topology::default());
        let is_asked = |case: &&Params| number(case, "depth") == 16 && word(case, "order") == "sequential";
        let case = all.iter().find(is_asked).expect("a deep queue");
        let Some(mut full) = ready(case, Full::new(&own.dir, case)) else { return };
        full.fill().expect("a full queue");
        for asked in [1, 3, 64] {
            let begun = |full: &Full| full.slots.iter().map(|slot| slot.offset / SMALL as u64).max();
            let before = begun(&full).expect("slots");
            let completed = full.exchange(asked).expect("operations");
            assert!((asked..asked + 16).contains(&completed), "{completed} of {asked}");
            assert_eq!(begun(&full), Some(before + completed));
            assert_eq!(full.in_flight, 16);
        }
        full.drain().expect("no more");
    }

    #[test]
    fn a_wrong_answer_is_no_operation() {
        let own = Own::with_limit(16 << 20);
        let case = &BENCHMARK.cases_in(Extent::Usual, &Topology::default())[0];
        let Some(mut full) = ready(case, Full::new(&own.dir, case)) else { return };
        // The same file, with other expected contents.
        full.reads.as_mut().expect("reads").contents = Some(Contents(77));
        let Err(Refusal::Fail(why)) = full.run(Clock::Kernel, Order::new(1)) else { panic!("a failure") };
        assert_eq!(why, "the data read differs from the file's contents");
        assert!(full.run(Clock::Kernel, Order::new(1)).is_err());
    }
}
