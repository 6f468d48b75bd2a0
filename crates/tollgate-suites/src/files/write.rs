//! Overwrites of a file's blocks: buffered, direct and uncached. Unlike fsync(2), they do not flush the device's cache.

use std::os::fd::{AsRawFd, OwnedFd};
use std::{io, rc::Rc};

use super::data::{self, Offsets};
use super::refusal::{FILE, named, whole};
use super::single::{FINE, Operation, Verdict, instance};
use super::{aligned::Aligned, data_dir::DataDir};
use super::{alignment, block, direct_read};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/write",
    operation: "One overwrite of the next block of a file of up to 8 MiB, in order: into the page cache, with O_DIRECT, or with RWF_DONTCACHE; without fsync.",
    avoid: "Write larger blocks; let the page cache gather small ones.",
    source: "pwrite(2); open(2), O_DIRECT",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, PageCache, FileSystem, BlockWrite, IdleExit],
    crossed_in: |params, boundary| match boundary {
        KernelEntry | SystemCall => word(params, "mode") == "buffered",
        UserCopy | PageCache => word(params, "mode") != "direct",
        BlockWrite => word(params, "mode") != "buffered",
        IdleExit => word(params, "mode") == "direct",
        _ => true,
    },
    timed: |params| {
        Timed::Whole(if word(params, "mode") == "dontcache" { "pwritev2(2)" } else { "pwrite(2)" })
    },
    cases: |_| {
        let modes = Mode::WORDS.iter().copied();
        let blocks = |mode: &'static str| {
            ["4k", "1m"].map(|block| params(&[("mode", mode.into()), ("block", block.into())]))
        };
        modes.flat_map(blocks).collect()
    },
    bytes: block::moved,
    kind: Kind::Instance(|_, params, context| write(&DataDir::of(context)?, params)),
    ..FILE
};

words! {
    /// The file, the flags of the call, and what the time excludes.
    enum Mode("mode"): (&'static std::ffi::CStr, i32, &'static str) {
        Buffered = "buffered" => (c"buffered", 0, "excludes the later writeback"),
        Direct = "direct" => (c"direct", 0, "excludes a flush of the device's cache"),
        DontCache = "dontcache" => (c"dontcache", libc::RWF_DONTCACHE, "excludes the later writeback and drop from the page cache"),
    }
}

fn write(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let bytes = block::bytes(params)?;
    let (name, flags, how) = Mode::try_from(params)?.value();
    let made = data::rewritten(dir, name)?;
    let mut notes = vec![format!("overwrites {} MiB in a cycle; {how}", made.length >> 20)];
    let file = if name == c"direct" {
        let file = direct_read::open(dir, name, libc::O_RDWR)?;
        notes.push(alignment::note(&file)?);
        file
    } else {
        made.file
    };
    let mut write = Write {
        is_large: name == c"buffered" && bytes >= LARGE,
        file,
        flags,
        offsets: Offsets::new(made.length, bytes as u64),
        buffer: Aligned::filled(bytes, block::SMALL, 0xa5)?,
        offset: 0,
    };
    match write.call() {
        Err(error) if flags != 0 && error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            return Err(skip!(
                "this kernel or file system has no uncached buffered writes (RWF_DONTCACHE, Linux 6.14): {}",
                named(&error)
            ));
        }
        outcome => whole(write.what(), outcome, bytes)?,
    }
    notes.extend(dir.kind().note());
    Ok(instance(write).spent_once(made.took).with_notes(notes))
}

struct Write {
    /// True if other instances evict its blocks: the next block is then in memory, not in the third-level cache.
    is_large: bool,
    file: OwnedFd,
    flags: libc::c_int,
    offsets: Offsets,
    buffer: Aligned,
    offset: u64,
}

impl Write {
    fn what(&self) -> &'static str {
        if self.flags == 0 { "pwrite(2)" } else { "pwritev2(2) with RWF_DONTCACHE" }
    }
}

/// More bytes than most second-level caches hold.
const LARGE: usize = 1 << 20;

impl Operation for Write {
    /// The first write after a journal commit does more work than the second, and other instances cause commits.
    fn before(&mut self) -> Result<()> {
        // Each write changes the data, because a file system may compare it.
        let byte = self.buffer.bytes()[0].wrapping_add(1);
        self.buffer.bytes_mut().fill(byte);
        self.offset = self.offsets.next();
        if self.is_large {
            whole(self.what(), self.call(), self.buffer.bytes().len())?;
        }
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let (descriptor, offset) = (self.file.as_raw_fd(), self.offset as libc::off_t);
        let bytes = self.buffer.bytes();
        if self.flags == 0 {
            // SAFETY: the buffer is valid for reading its own length.
            return checked(
                unsafe { libc::pwrite(descriptor, bytes.as_ptr().cast(), bytes.len(), offset) } as i64
            );
        }
        let vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: one vector over the buffer, which the call only reads.
        checked(unsafe { libc::pwritev2(descriptor, &vector, 1, offset, self.flags) } as i64)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        whole(self.what(), outcome, self.buffer.bytes().len())?;
        Ok(FINE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;
    use crate::testing::ready;

    #[test]
    fn writes_keep_the_files_length() {
        let own = Own::with_limit(8 << 20);
        for case in (BENCHMARK.cases)(&Topology::default()) {
            let Some(mut instance) = ready(&case, write(&own.dir, &case)) else { continue };
            for _ in 0..3 {
                instance.batch(Clock::Kernel, Order::new(1)).expect("a batch");
            }
        }
        // The files keep their length.
        for name in [c"buffered", c"direct", c"dontcache"] {
            assert_eq!(data::rewritten(&own.dir, name).expect("there").took, std::time::Duration::ZERO);
        }
    }
}
