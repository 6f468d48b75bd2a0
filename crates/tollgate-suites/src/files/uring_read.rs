use std::os::fd::{AsRawFd, OwnedFd};
use std::{io, rc::Rc};

use super::data::{self, Contents, Offsets};
use super::single::{FINE, Operation, Verdict, instance};
use super::{aligned::Aligned, block::SMALL, data_dir::DataDir, refusal::FILE};
use super::{alignment, direct_read, refusal};
use crate::prelude::*;
use crate::uring::{Ring, refused};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/uring-read",
    operation: "One random read of 4 KiB with O_DIRECT; one io_uring_enter submits as many as the depth and waits for all.",
    avoid: "Raise the depth until the device is busy.",
    source: "io_uring_enter(2); io_uring_setup(2)",
    crosses: &[IoUring, KernelCode, BlockRead, IdleExit],
    timed: |_| Timed::Whole("io_uring_enter(2)"),
    cases: |_| each("depth", &[1, 32]),
    bytes: |_| Some(SMALL as u64),
    kind: Kind::Instance(|_, params, context| read(&DataDir::of(context)?, params)),
    ..FILE
};

fn read(dir: &Rc<DataDir>, params: &Params) -> Result<Instance> {
    let depth = number(params, "depth").max(1);
    let (made, contents) = data::uncached(dir)?;
    let file = direct_read::open(dir, c"uncached", libc::O_RDONLY)?;
    let mut notes = vec![alignment::note(&file)?];
    notes.extend(dir.kind().note());
    let ring = Ring::new(depth as u32).map_err(|error| refused(&error))?;
    let reads = Reads {
        ring,
        file,
        contents,
        offsets: Offsets::new(made.length, SMALL as u64),
        buffer: Some(Aligned::new(SMALL * depth as usize, SMALL)?),
        at: vec![0; depth as usize],
    };
    Ok(instance(reads).with_ops(depth).spent_once(made.took).with_notes(notes))
}

struct Reads {
    ring: Ring,
    file: OwnedFd,
    contents: Contents,
    offsets: Offsets,
    /// `None` once the kernel may write to the buffer at any time.
    buffer: Option<Aligned>,
    at: Vec<u64>,
}

impl Operation for Reads {
    fn warms_up(&self) -> bool {
        false
    }

    fn before(&mut self) -> Result<()> {
        let Some(buffer) = &mut self.buffer else {
            return Err(fail!("reads of an earlier batch are still in flight"));
        };
        buffer.bytes_mut().fill(0);
        let blocks = buffer.bytes_mut().chunks_exact_mut(SMALL);
        for (index, (block, at)) in blocks.zip(&mut self.at).enumerate() {
            *at = self.offsets.any();
            // SAFETY: the buffer stays until all completions are consumed, or is never freed.
            let set = unsafe {
                self.ring.set_read(index as u32, self.file.as_raw_fd(), *at, block.as_mut_ptr(), SMALL as u32)
            };
            if !set {
                return Err(fail!("the ring has fewer entries than requested"));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        self.ring.submit_and_wait(self.at.len() as u32).map(|submitted| submitted as usize)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        let depth = self.at.len();
        let mut wrong = None;
        let completed = self.ring.take_completions(|_, result| match result {
            whole if whole == SMALL as i32 => {}
            other => wrong = Some(other),
        });
        // The kernel may still write to the buffer.
        if completed as usize != depth
            && let Some(buffer) = self.buffer.take()
        {
            std::mem::forget(buffer);
        }
        let submitted = outcome.map_err(|error| refusal::refused("io_uring_enter(2)", &error))?;
        match wrong {
            Some(error) if error == -libc::EINVAL => {
                return Err(skip!(
                    "io_uring cannot read here: Invalid argument (EINVAL); IORING_OP_READ needs Linux 5.6"
                ));
            }
            Some(error @ ..=-1) => {
                let error = io::Error::from_raw_os_error(-error);
                return Err(refusal::refused("a read by io_uring", &error));
            }
            Some(moved) => return Err(fail!("a read moved {moved} of {SMALL} bytes")),
            None => {}
        }
        let (Some(buffer), true) = (&self.buffer, submitted == depth) else {
            return Err(fail!("{completed} of {depth} reads completed"));
        };
        let mut blocks = buffer.bytes().chunks_exact(SMALL).zip(&self.at);
        if blocks.all(|(block, &at)| self.contents.begin(block, at)) {
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
    use crate::testing::ready;

    #[test]
    fn batches_run_repeatedly() {
        let own = Own::with_limit(8 << 20);
        for depth in [1, 32] {
            let Some(mut instance) = ready(depth, read(&own.dir, &params(&[("depth", depth.into())]))) else {
                return;
            };
            assert_eq!(instance.limits(), (depth, 1));
            for _ in 0..5 {
                instance.batch(Clock::Kernel, Order::new(1)).expect("a batch");
            }
        }
    }
}
