//! The token as a count in memory, with futex(2) to sleep and to wake.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::super::raw;
use super::{Means, Side, follow};
use crate::prelude::*;

timed_loop! {
    /// Adds one to the partner's word and wakes it (FUTEX_WAKE_PRIVATE, 129), then sleeps until its own word has increased
    /// (FUTEX_WAIT_PRIVATE, 128). Words: 0: the address of the partner's word; 1: of its own; 2: the last value of its own.
    ///
    /// If the partner was faster, the wait returns at once (EAGAIN). After a spurious wake-up the next wait returns at once.
    wake_and_wait: called
        "mov rdi, [r13]", "add dword ptr [rdi], 1",
        "mov esi, 129", "mov edx, 1", "mov eax, 202",
        "syscall",
        "mov rdi, [r13 + 8]", "mov esi, 128", "mov edx, [r13 + 16]", "xor r10d, r10d", "mov eax, 202",
        "syscall",
        "add dword ptr [r13 + 16], 1";
    aarch64
        "ldr x0, [x20]", "ldr w9, [x0]", "add w9, w9, 1", "stlr w9, [x0]",
        "mov x1, 129", "mov x2, 1", "mov x8, 98",
        "svc 0",
        "ldr x0, [x20, #8]", "mov x1, 128", "ldr w2, [x20, #16]", "mov x3, 0",
        "svc 0",
        "ldr w9, [x20, #16]", "add w9, w9, 1", "str w9, [x20, #16]"
}

timed_loop! {
    /// The partner's loop: sleeps while its word is unchanged, then adds one to the other's word and wakes it. After the flag was
    /// set, that is the last iteration. Words: as above; 3: the address of the flag, 32 bits.
    wait_and_wake: called
        "7:",
        "mov rdi, [r13 + 8]", "mov esi, 128", "mov edx, [r13 + 16]", "xor r10d, r10d", "mov eax, 202",
        "syscall",
        "mov rdi, [r13 + 8]", "mov edx, [r13 + 16]", "cmp [rdi], edx", "je 7b",
        "add dword ptr [r13 + 16], 1",
        "mov rcx, [r13 + 24]", "cmp dword ptr [rcx], 0", "je 8f", "mov r12d, 1",
        "8:",
        "mov rdi, [r13]", "lock add dword ptr [rdi], 1",
        "mov esi, 129", "mov edx, 1", "mov eax, 202",
        "syscall";
    aarch64
        "7:",
        "ldr x0, [x20, #8]", "mov x1, 128", "ldr w2, [x20, #16]", "mov x3, 0", "mov x8, 98",
        "svc 0",
        "ldr x0, [x20, #8]", "ldar w9, [x0]", "cmp w9, w2", "b.eq 7b",
        "add w2, w2, 1", "str w2, [x20, #16]",
        "ldr x9, [x20, #24]", "ldar w9, [x9]", "cbz w9, 8f", "mov x19, 1",
        "8:",
        "ldr x0, [x20]", "6:", "ldaxr w9, [x0]", "add w9, w9, 1", "stlxr w10, w9, [x0]", "cbnz w10, 6b",
        "mov x1, 129", "mov x2, 1", "mov x8, 98",
        "svc 0"
}

pub(super) const LOOP: TimedLoop = TimedLoop::Long(wake_and_wait);

/// The number of tokens that a thread got, in its own cache line.
#[repr(align(64))]
#[derive(Default)]
struct Given(AtomicU32);

#[derive(Default)]
struct Words {
    partners: Given,
    own: Given,
    over: AtomicU32,
}

struct Futex(Arc<Words>);

/// The most checks for the partner's last token, at least a millisecond apart.
const LOOKS: usize = 10_000;

pub(super) fn words() -> Means {
    let words = Arc::new(Words::default());
    let shared = Arc::clone(&words);
    let partner = move || {
        let address = |word: &AtomicU32| word.as_ptr() as u64;
        let [own, partners] = [&shared.own.0, &shared.partners.0].map(address);
        // SAFETY: the words live until the end of this thread.
        unsafe { follow(wait_and_wake, [own, partners, 0, address(&shared.over), 0, 0, 0]) };
        drop(shared);
    };
    Means { code: LOOP, side: Box::new(Futex(words)), partner: Box::new(partner) }
}

impl Side for Futex {
    fn words(&self) -> [u64; 7] {
        let address = |word: &Given| word.0.as_ptr() as u64;
        [address(&self.0.partners), address(&self.0.own), 0, 0, 0, 0, 0]
    }

    fn begin(&mut self, _: &mut LoopContext) {}

    fn check(&self, context: &LoopContext, _: u64) -> Result<()> {
        let (seen, given) = (context.words[2] as u32, || self.0.own.0.load(SeqCst));
        // The wake-up for a token that was taken without sleep ends the next wait, so this thread may be ahead of a partner that waits
        // for its processor. The partner gives a token for each that it gets.
        for _ in 0..LOOKS {
            if seen == given() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(fail!("futex returned {seen} times for {} tokens", given()))
    }

    fn part(&mut self) {
        self.0.over.store(1, SeqCst);
        self.0.partners.0.fetch_add(1, SeqCst);
        raw::futex_wake(&self.0.partners.0);
    }
}
