//! The token as bytes in a pipe, or as a count in an eventfd(2).

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::super::raw::{self, TOKEN};
use super::{Means, Side};
use crate::descriptor::eventfd;
use crate::prelude::*;

timed_loop! {
    /// Writes the token to one descriptor and reads it back from another. Word 0: the one; 1: the other; 2: the
    /// token; 3: the bytes that were written and read, added up.
    write_and_read: called
        "mov edi, [r13]", "lea rsi, [r13 + 16]", "mov edx, 8", "mov eax, 1",
        "syscall",
        "add [r13 + 24], rax",
        "mov edi, [r13 + 8]", "lea rsi, [r13 + 16]", "mov edx, 8", "xor eax, eax",
        "syscall",
        "add [r13 + 24], rax"
}

pub(super) const LOOP: TimedLoop = TimedLoop::Long(write_and_read);

/// perf bench sched pipe: one pipe there, one back.
pub(super) fn pipes() -> Result<Means> {
    let refused = |error| Refusal::of("pipe2 is refused", &error);
    let (there_out, there) = raw::pipe().map_err(refused)?;
    let (back, back_in) = raw::pipe().map_err(refused)?;
    Ok(means(
        Ends { give: there.into(), take: back.into() },
        Ends { give: back_in.into(), take: there_out.into() },
    ))
}

/// One counter there, one back.
pub(super) fn counters() -> Result<Means> {
    let refused = |error| Refusal::of("eventfd2 is refused", &error);
    let there = Arc::new(eventfd(0, 0).map_err(refused)?);
    let back = Arc::new(eventfd(0, 0).map_err(refused)?);
    Ok(means(Ends { give: Arc::clone(&there), take: Arc::clone(&back) }, Ends { give: back, take: there }))
}

/// One thread's descriptors to write and to read.
struct Ends {
    give: Arc<OwnedFd>,
    take: Arc<OwnedFd>,
}

struct Files {
    ends: Ends,
    over: Arc<AtomicBool>,
}

fn means(own: Ends, partners: Ends) -> Means {
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let partner = move || {
        // The ends close with the thread, so the other thread reads end-of-file.
        let (give, take) = (partners.give.as_raw_fd(), partners.take.as_raw_fd());
        let mut token = 0;
        while raw::read(take, &mut token) == TOKEN && !stop.load(SeqCst) {
            if raw::write(give, &token) != TOKEN {
                break;
            }
        }
        drop(partners);
    };
    Means { code: LOOP, side: Box::new(Files { ends: own, over }), partner: Box::new(partner) }
}

impl Side for Files {
    fn words(&self) -> [u64; 7] {
        [self.ends.give.as_raw_fd() as u64, self.ends.take.as_raw_fd() as u64, 1, 0, 0, 0, 0]
    }

    fn begin(&mut self, context: &mut LoopContext) {
        context.words[3] = 0;
    }

    fn check(&self, context: &LoopContext, trips: u64) -> Result<()> {
        let (bytes, whole) = (context.words[3] as i64, 2 * TOKEN * trips as i64);
        if bytes == whole {
            return Ok(());
        }
        Err(fail!("write and read returned {bytes} bytes together instead of {whole}"))
    }

    fn end(&mut self) {}

    fn part(&mut self) {
        self.over.store(true, SeqCst);
        // A copy of this end in another process may keep the pipe open, so a flag ends the partner.
        raw::write(self.ends.give.as_raw_fd(), &1);
    }
}
