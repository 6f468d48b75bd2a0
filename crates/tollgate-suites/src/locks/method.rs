use super::code::{self, Code};
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Method {
    Plain,
    Xchg,
    Cmpxchg,
    Rseq,
    /// A restartable sequence that checks its processor.
    RseqCpu,
    /// With fences.
    Lamport,
    /// Without fences, for one processor.
    LamportUp,
    FutexTrylockPi,
    Eventfd,
    Semop,
    PthreadTrylock,
    SemTrywait,
}

use Method::*;

impl Method {
    /// The correct locks, in the order of tables; without [`Plain`].
    pub const LOCKS: [Self; 11] = [
        Xchg,
        Cmpxchg,
        Rseq,
        RseqCpu,
        Lamport,
        LamportUp,
        FutexTrylockPi,
        Eventfd,
        Semop,
        PthreadTrylock,
        SemTrywait,
    ];

    /// The published comparison's baseline, a system call.
    pub const SYSTEM_CALL: Self = FutexTrylockPi;

    pub const fn name(self) -> &'static str {
        self.row().0
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::LOCKS.into_iter().chain([Plain]).find(|method| method.name() == name)
    }

    pub fn by_system_call(case: &Params) -> Params {
        let mut base = case.clone();
        base.insert("by".to_owned(), Self::SYSTEM_CALL.name().into());
        base
    }

    /// The kernel's error of a failed acquisition, for methods that call the kernel.
    pub const fn errno(self, answer: u32) -> Option<i32> {
        match self {
            FutexTrylockPi | Semop => Some(answer.wrapping_neg().cast_signed()),
            // The result is the number of bytes minus eight.
            Eventfd => Some(answer.wrapping_add(8).wrapping_neg().cast_signed()),
            _ => None,
        }
    }

    pub fn from_params(params: &Params) -> Result<Self> {
        Self::named(word(params, "by")).ok_or_else(|| fail!("no such lock"))
    }

    pub fn code(self) -> Code {
        (self.row().1)()
    }

    const fn row(self) -> (&'static str, fn() -> Code) {
        match self {
            Plain => ("plain", code::plain::code),
            Xchg => ("xchg", code::xchg::code),
            Cmpxchg => ("cmpxchg", code::cmpxchg::code),
            Rseq => ("rseq", code::rseq::code),
            RseqCpu => ("rseq-cpu", code::rseq_cpu::code),
            Lamport => ("lamport", code::lamport::code),
            LamportUp => ("lamport-up", code::lamport_up::code),
            FutexTrylockPi => ("futex-trylock-pi", code::futex_trylock_pi::code),
            Eventfd => ("eventfd", code::eventfd::code),
            Semop => ("semop", code::semop::code),
            PthreadTrylock => ("pthread-trylock", code::pthread_trylock::code),
            SemTrywait => ("sem-trywait", code::sem_trywait::code),
        }
    }

    /// Its main instruction, and how often the loop contains it.
    pub const fn instruction(self) -> (&'static str, usize) {
        match self {
            Plain => ("mov/str", 2),
            Xchg => ("xchg/swpa", 1),
            Cmpxchg => ("lock cmpxchg/stxr", 1),
            // One begins the sequence, one takes the lock, one releases it.
            Rseq | RseqCpu => ("mov/str", 3),
            Lamport => ("mfence/dmb", 2),
            // b[i], x, y, the lock, y, b[i], and the lock again.
            LamportUp => ("mov/str", 7),
            FutexTrylockPi => ("syscall/svc", 1),
            Eventfd | Semop => ("syscall/svc", 2),
            PthreadTrylock | SemTrywait => ("call/blr", 2),
        }
    }

    /// Returns whether it crosses this boundary if the lock is free.
    pub fn crosses(self, boundary: Boundary) -> bool {
        let crossed: &[Boundary] = match self {
            Xchg | Cmpxchg => &[Atomic],
            Lamport => &[Atomic, StoreForwarding],
            PthreadTrylock | SemTrywait => &[Atomic, Call],
            Plain | Rseq | RseqCpu | LamportUp => &[UserCode, StoreForwarding],
            FutexTrylockPi => &[Atomic, KernelEntry, SystemCall, KernelCode],
            Eventfd | Semop => &[KernelEntry, SystemCall, KernelCode, UserCopy],
        };
        crossed.contains(&boundary)
    }

    /// Returns why threads on several processors must not use it; `None` if they may.
    pub const fn one_processor_only(self) -> Option<&'static str> {
        match self {
            Plain => Some("a load and a store do not give mutual exclusion"),
            Rseq => Some(
                "a preemption restarts a restartable sequence, and a thread on another processor does not preempt it",
            ),
            LamportUp => Some(
                "without fences another processor may read x or y before a store to the other has left the store buffer",
            ),
            _ => None,
        }
    }

    /// Returns why it works on one processor only, although threads may migrate; `None` if it works on any.
    pub const fn bound_to_its_processor(self) -> Option<&'static str> {
        match self {
            RseqCpu => Some("it can be acquired on its own processor only, and fails on any other"),
            _ => self.one_processor_only(),
        }
    }
}
