//! The token as the value of a System V semaphore (lmbench, lat_sem).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::{Means, Side, follow};
use crate::locks::Semaphore;
use crate::prelude::*;

timed_loop! {
    /// Adds one to the partner's semaphore and waits until it can take one from its own. Words: 0: the ID of the partner's set;
    /// 1: of its own; 2 and 3: the struct sembuf of each; 4: the results, combined by OR.
    give_and_take: called
        "mov rdi, [r13]", "lea rsi, [r13 + 16]", "mov edx, 1", "mov eax, 65",
        "syscall",
        "or [r13 + 32], rax",
        "mov rdi, [r13 + 8]", "lea rsi, [r13 + 24]", "mov edx, 1", "mov eax, 65",
        "syscall",
        "or [r13 + 32], rax";
    aarch64
        "ldr x0, [x20]", "add x1, x20, #16", "mov x2, 1", "mov x8, 193",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]",
        "ldr x0, [x20, #8]", "add x1, x20, #24", "mov x2, 1", "mov x8, 193",
        "svc 0",
        "ldr x9, [x20, #32]", "orr x9, x9, x0", "str x9, [x20, #32]"
}

timed_loop! {
    /// The partner's loop: takes from its own semaphore and gives to the other's. If a call fails, as on a removed set, or the
    /// flag is set, this is the last iteration. Words: 0 to 3: as above; 4: the address of the flag, 32 bits.
    take_and_give: called
        "mov rdi, [r13 + 8]", "lea rsi, [r13 + 24]", "mov edx, 1", "mov eax, 65",
        "syscall",
        "mov rcx, [r13 + 32]", "or eax, [rcx]", "jnz 7f",
        "mov rdi, [r13]", "lea rsi, [r13 + 16]", "mov edx, 1", "mov eax, 65",
        "syscall",
        "test eax, eax", "jz 8f",
        "7:", "mov r12d, 1", "8:";
    aarch64
        "ldr x0, [x20, #8]", "add x1, x20, #24", "mov x2, 1", "mov x8, 193",
        "svc 0",
        "ldr x9, [x20, #32]", "ldar w9, [x9]", "orr w9, w9, w0", "cbnz w9, 7f",
        "ldr x0, [x20]", "add x1, x20, #16", "mov x2, 1", "mov x8, 193",
        "svc 0",
        "cbz w0, 8f",
        "7:", "mov x19, 1", "8:"
}

pub(super) const LOOP: TimedLoop = TimedLoop::Long(give_and_take);

/// struct sembuf in the low six bytes of a word: the semaphore's index, the operation, no flags (semop(2)).
const GIVE: u64 = 1 << 16;
const TAKE: u64 = (-1_i16 as u16 as u64) << 16;

const RESULTS: usize = 4;

struct Pair {
    there: Semaphore,
    back: Semaphore,
    over: AtomicU32,
}

impl Pair {
    fn new() -> Result<Self> {
        let empty = || -> Result<Semaphore> {
            let semaphore = Semaphore::new()?;
            // SAFETY: the set is this one's own, and SETVAL takes a number.
            let set = checked(unsafe { libc::semctl(semaphore.number(), 0, libc::SETVAL, 0) });
            set.or_refused("semctl(2) is refused")?;
            Ok(semaphore)
        };
        Ok(Self { there: empty()?, back: empty()?, over: AtomicU32::new(0) })
    }
}

fn operate(semaphore: &Semaphore, operation: u64) -> i64 {
    // SAFETY: the kernel reads six bytes of the operation.
    unsafe { call(libc::SYS_semop, [semaphore.number() as u64, &raw const operation as u64, 1, 0]) }
}

pub(super) fn semaphores() -> Result<Means> {
    let pair = Arc::new(Pair::new()?);
    let shared = Arc::clone(&pair);
    let partner = move || {
        let number = |semaphore: &Semaphore| semaphore.number() as u64;
        let (own, other) = (number(&shared.there), number(&shared.back));
        // SAFETY: the flag lives until the end of this thread.
        unsafe { follow(take_and_give, [other, own, GIVE, TAKE, shared.over.as_ptr() as u64, 0, 0]) };
        drop(shared);
    };
    Ok(Means { code: LOOP, side: Box::new(Semaphores(pair)), partner: Box::new(partner) })
}

struct Semaphores(Arc<Pair>);

impl Side for Semaphores {
    fn words(&self) -> [u64; 7] {
        [self.0.there.number() as u64, self.0.back.number() as u64, GIVE, TAKE, 0, 0, 0]
    }

    fn begin(&mut self, context: &mut LoopContext) {
        context.words[RESULTS] = 0;
    }

    fn check(&self, context: &LoopContext, trips: u64) -> Result<()> {
        // A token too many or too few shows in a value (GETVAL).
        let value = |semaphore: &Semaphore| {
            // SAFETY: GETVAL takes nothing.
            unsafe { libc::semctl(semaphore.number(), 0, libc::GETVAL) }
        };
        match (context.words[RESULTS], value(&self.0.there), value(&self.0.back)) {
            (0, 0, 0) => Ok(()),
            (0, there, back) => Err(fail!("after {trips} trips {there} and {back} tokens are left")),
            _ => Err(fail!("semop(2) failed in one of {trips} trips")),
        }
    }

    fn part(&mut self) {
        self.0.over.store(1, SeqCst);
        operate(&self.0.there, GIVE);
    }
}
