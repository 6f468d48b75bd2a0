//! The token as bytes in a pipe, or as a count in an eventfd(2).

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::super::raw::{self, TOKEN};
use super::{Means, Side, follow};
use crate::descriptor::eventfd;
use crate::prelude::*;

timed_loop! {
    /// Writes the token to one descriptor and reads it back from another. Words: 0, 1: these; 2: the token; 3: bytes moved.
    write_and_read: called
        "mov edi, [r13]", "lea rsi, [r13 + 16]", "mov edx, 8", "mov eax, 1",
        "syscall",
        "add [r13 + 24], rax",
        "mov edi, [r13 + 8]", "lea rsi, [r13 + 16]", "mov edx, 8", "xor eax, eax",
        "syscall",
        "add [r13 + 24], rax";
    aarch64
        "ldr x0, [x20]", "add x1, x20, #16", "mov x2, 8", "mov x8, 64",
        "svc 0",
        "ldr x9, [x20, #24]", "add x9, x9, x0", "str x9, [x20, #24]",
        "ldr x0, [x20, #8]", "add x1, x20, #16", "mov x2, 8", "mov x8, 63",
        "svc 0",
        "ldr x9, [x20, #24]", "add x9, x9, x0", "str x9, [x20, #24]"
}

timed_loop! {
    /// The partner's loop: reads the token and writes it back. If a call returns anything but the token's size, or the flag is
    /// set, this is the last iteration. Words: 0 to 2: as above; 3: the address of the flag, 32 bits.
    read_and_write: called
        "mov edi, [r13 + 8]", "lea rsi, [r13 + 16]", "mov edx, 8", "xor eax, eax",
        "syscall",
        "mov rcx, [r13 + 24]", "cmp dword ptr [rcx], 0", "jne 7f",
        "cmp rax, 8", "jne 7f",
        "mov edi, [r13]", "lea rsi, [r13 + 16]", "mov edx, 8", "mov eax, 1",
        "syscall",
        "cmp rax, 8", "je 8f",
        "7:", "mov r12d, 1", "8:";
    aarch64
        "ldr x0, [x20, #8]", "add x1, x20, #16", "mov x2, 8", "mov x8, 63",
        "svc 0",
        "ldr x9, [x20, #24]", "ldar w9, [x9]", "cbnz w9, 7f",
        "cmp x0, 8", "b.ne 7f",
        "ldr x0, [x20]", "add x1, x20, #16", "mov x2, 8", "mov x8, 64",
        "svc 0",
        "cmp x0, 8", "b.eq 8f",
        "7:", "mov x19, 1", "8:"
}

pub(super) const LOOP: TimedLoop = TimedLoop::Long(write_and_read);

/// perf bench sched pipe: one pipe for each direction.
pub(super) fn pipes() -> Result<Means> {
    let pipe = || raw::pipe().or_refused("pipe2 is refused");
    let ((there_out, there), (back, back_in)) = (pipe()?, pipe()?);
    Ok(means(
        Ends { give: there.into(), take: back.into() },
        Ends { give: back_in.into(), take: there_out.into() },
    ))
}

pub(super) fn counters() -> Result<Means> {
    let counter = || eventfd(0, 0).map(Arc::new).or_refused("eventfd2 is refused");
    let (there, back) = (counter()?, counter()?);
    Ok(means(Ends { give: Arc::clone(&there), take: Arc::clone(&back) }, Ends { give: back, take: there }))
}

struct Ends {
    give: Arc<OwnedFd>,
    take: Arc<OwnedFd>,
}

impl Ends {
    fn words(&self) -> [u64; 2] {
        [&self.give, &self.take].map(|end| end.as_raw_fd() as u64)
    }
}

struct Files {
    ends: Ends,
    over: Arc<AtomicU32>,
}

fn means(own: Ends, partners: Ends) -> Means {
    let over = Arc::new(AtomicU32::new(0));
    let stop = Arc::clone(&over);
    let partner = move || {
        // The ends close with the thread, so the other thread reads end-of-file.
        let [give, take] = partners.words();
        // SAFETY: the flag lives until the end of this thread.
        unsafe { follow(read_and_write, [give, take, 0, stop.as_ptr() as u64, 0, 0, 0]) };
        drop((partners, stop));
    };
    Means { code: LOOP, side: Box::new(Files { ends: own, over }), partner: Box::new(partner) }
}

impl Side for Files {
    fn words(&self) -> [u64; 7] {
        let [give, take] = self.ends.words();
        [give, take, 1, 0, 0, 0, 0]
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

    fn part(&mut self) {
        self.over.store(1, SeqCst);
        // A copy of this end in another process may keep the pipe open, so a flag ends the partner.
        raw::write(self.ends.give.as_raw_fd(), &1);
    }
}
