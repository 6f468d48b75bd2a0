//! Reads with O_DIRECT into an aligned buffer, and an unaligned one if accepted; back to back, and after a pause.
//!
//! The latency of a read depends on the activity before it. In a nested virtual machine (EPYC, virtio) a read right after other
//! reads took 39 µs, as in fio, also with the buffer cleared before each read and two getrusage(2) around it. After 0.1 ms of
//! another program's work or of sleep it took 50 to 58 µs, after 1 ms of sleep 80 µs. In between, a device's thread in the host
//! and the processor go idle. So a read in a round, which follows other cases, differs from a read in a loop.

use std::os::fd::OwnedFd;
use std::{io, rc::Rc, time::Duration};

use super::block::SMALL;
use super::data::{self, Contents, Offsets};
use super::refusal::{FILE, named, pread, refused, whole};
use super::single::{FINE, Operation, Verdict, instance};
use super::{aligned::Aligned, alignment, data_dir::DataDir};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/direct-read",
    operation: "One pread of a block with O_DIRECT, into an aligned buffer or an unaligned one (a byte later): after other cases, right after eight such reads (gap=none), or after 1 ms of sleep (gap=idle).",
    avoid: "Keep several reads in flight, so that neither the device nor the processor goes idle. Align buffers to the block size that statx reports (STATX_DIOALIGN), or read through the page cache.",
    source: "open(2), O_DIRECT; statx(2), STATX_DIOALIGN",
    crosses: &[KernelEntry, SystemCall, KernelCode, BlockRead, IdleExit],
    timed: |_| Timed::Whole("pread(2)"),
    cases: |_| {
        let of = |buffer: &str| params(&[("buffer", buffer.into()), ("block", "4k".into())]);
        let mut cases = vec![of("aligned"), of("unaligned")];
        for gap in &Gap::WORDS[1..] {
            let mut case = of("aligned");
            case.insert("gap".to_owned(), (*gap).into());
            cases.push(case);
        }
        cases
    },
    bytes: |_| Some(SMALL as u64),
    kind: Kind::Instance(|_, params, context| read(&DataDir::of(context)?, params)),
    ..FILE
};

/// Reads right before the timed one. After this many, one more changes nothing.
const READS_BEFORE: usize = 8;
/// Sleep before a read, long enough for a processor to go idle and a device's thread in the host to sleep.
const IDLE: Duration = Duration::from_millis(1);

words! {
    /// The access before a read; for `Any` it is that of whichever case the round ran before.
    enum Gap("gap") { Any = "", None = "none", Idle = "idle" }
}

words! {
    enum Alignment("buffer") { Aligned = "aligned", Unaligned = "unaligned" }
}

words! {
    enum Block("block") { Small = "4k" }
}

pub(super) fn open(dir: &DataDir, name: &std::ffi::CStr, access: libc::c_int) -> Result<OwnedFd> {
    dir.open(name, access | libc::O_DIRECT).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            skip!("this file system has no direct I/O: openat(2) with O_DIRECT: {}", named(&error))
        }
        _ => refused("openat(2) with O_DIRECT", &error),
    })
}

fn read(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let (begin, gap) = (Alignment::try_from(params)? as usize, Gap::try_from(params)?);
    Block::try_from(params)?;
    let (made, contents) = data::uncached(dir)?;
    let file = open(dir, c"uncached", libc::O_RDONLY)?;
    let mut notes = vec![alignment::note(&file)?];
    let mut read = Read {
        file,
        contents,
        offsets: Offsets::new(made.length, SMALL as u64),
        buffer: Aligned::new(2 * page_size(), page_size())?,
        begin,
        offset: 0,
        gap,
    };
    let first = read.call();
    if read.begin > 0 {
        accepted(&first, &notes[0])?;
        notes.push("an unaligned buffer (a byte later) is accepted".to_owned());
    }
    whole(CALL, first, SMALL)?;
    notes.extend(dir.kind().note());
    Ok(instance(read).spent_once(made.took).with_notes(notes))
}

const CALL: &str = "pread(2) with O_DIRECT";

/// Checks that a read into an unaligned buffer was not refused, because the latency of a refusal is not that of a read.
///
/// # Errors
/// [`Refusal::Refuse`] with the call, its error and the alignment that the file needs.
fn accepted(first: &io::Result<usize>, alignment: &str) -> Result<()> {
    match first {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Err(Refusal::Refuse(format!(
            "{CALL} into an unaligned buffer (a byte later) is refused: {}; {alignment}",
            named(error)
        ))),
        _ => Ok(()),
    }
}

struct Read {
    file: OwnedFd,
    contents: Contents,
    offsets: Offsets,
    buffer: Aligned,
    /// The block's offset in the buffer: 0 or 1.
    begin: usize,
    offset: u64,
    gap: Gap,
}

impl Operation for Read {
    fn warms_up(&self) -> bool {
        false
    }

    fn before(&mut self) -> Result<()> {
        match self.gap {
            Gap::Any => {}
            Gap::None => {
                for _ in 0..READS_BEFORE {
                    self.offset = self.offsets.any();
                    whole(CALL, self.call(), SMALL)?;
                }
            }
            Gap::Idle => std::thread::sleep(IDLE),
        }
        self.offset = self.offsets.any();
        // This takes 0.1 µs in the L1 cache, too short to count as a gap.
        self.buffer.bytes_mut().fill(0);
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        pread(&self.file, &mut self.buffer.bytes_mut()[self.begin..self.begin + SMALL], self.offset)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        whole(CALL, outcome, SMALL)?;
        if self.contents.begin(&self.buffer.bytes()[self.begin..self.begin + SMALL], self.offset) {
            Ok(FINE)
        } else {
            Err(fail!("the data read differs from the file's contents"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;

    #[test]
    fn a_refused_read_is_refused_and_not_measured() {
        let own = Own::with_limit(8 << 20);
        let (made, _) = data::uncached(&own.dir).expect("a file");
        let direct = match open(&own.dir, c"uncached", libc::O_RDONLY) {
            Ok(direct) => direct,
            Err(refusal) => return println!("skipped: {}", refusal.why()),
        };
        drop(made);
        let mut buffer = Aligned::new(2 * page_size(), page_size()).expect("memory");
        let odd = pread(&direct, &mut buffer.bytes_mut()[1..=SMALL], 0);
        let case = |buffer: &str| params(&[("buffer", buffer.into()), ("block", "4k".into())]);
        assert!(read(&own.dir, &case("aligned")).is_ok());
        match (odd, read(&own.dir, &case("unaligned"))) {
            (Ok(_), measured) => assert!(measured.is_ok(), "{:?}", measured.err()),
            (Err(error), Err(Refusal::Refuse(why))) => {
                assert!(why.contains(CALL) && why.contains(&named(&error)), "{why}");
                assert!(why.contains("alignment in bytes"), "{why}");
            }
            (Err(error), other) => panic!("{error}: {:?}", other.err()),
        }
    }

    #[test]
    fn reads_of_every_gap_have_the_files_contents() {
        let own = Own::with_limit(8 << 20);
        for case in (BENCHMARK.cases)(&Topology::default()).iter().filter(|case| case.contains_key("gap")) {
            let Some(mut instance) = crate::testing::ready(case, read(&own.dir, case)) else { return };
            for _ in 0..3 {
                assert!(instance.batch(Clock::Kernel, Order::new(1)).expect("a batch").work > 0, "{case:?}");
            }
        }
    }

    #[test]
    fn only_a_wrong_argument_is_a_refusal_of_the_call() {
        let of = |number| accepted(&Err(io::Error::from_raw_os_error(number)), "alignment in bytes: 512");
        let Err(Refusal::Refuse(why)) = of(libc::EINVAL) else { panic!("a refusal") };
        assert!(why.ends_with("Invalid argument (EINVAL); alignment in bytes: 512"), "{why}");
        // The storage failed, or the file system cannot do it: `whole` reports which.
        assert_eq!(of(libc::EIO), Ok(()));
        assert_eq!(accepted(&Ok(SMALL), ""), Ok(()));
    }
}
