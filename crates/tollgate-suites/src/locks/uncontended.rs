use super::lock::{Lock, Reach};
use super::method::Method;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "locks/uncontended",
    operation: "One acquisition and release of an uncontended lock.",
    avoid: "Take a lock in user mode (futex-based mutexes do), and make fewer and longer critical sections of short ones.",
    source: "futex(7); Linux Documentation/userspace-api/rseq.rst",
    crosses: &[Atomic, UserCode, StoreForwarding, Call, KernelEntry, SystemCall, KernelCode, UserCopy],
    crossed_in: |params, boundary| Method::from_params(params).is_ok_and(|by| by.crosses(boundary)),
    timed: |params| match Method::from_params(params) {
        Ok(method) => {
            let (instruction, times) = method.instruction();
            Timed::Together { code: method.code().uncontended, instruction, times }
        }
        Err(_) => (PLAIN.timed)(params),
    },
    cases: |_| each_word("by", &Method::LOCKS.map(Method::name)),
    baseline: Baseline::Case(|case| Some(Method::by_system_call(case))),
    headlines: &[Headline::of(Section::Processes, "mutex trylock + unlock", &[("by", "pthread-trylock")])],
    kind: Kind::Instance(|timed, params, context| instance(timed, params, context)),
    ..PLAIN
};

fn instance(timed: Timed, params: &Params, context: &Context) -> Result<Instance> {
    let method = Method::from_params(params)?;
    let lock = Lock::new(method, Reach::new(method, context)?, 2)?;
    let mut handle = lock.join(1)?;
    handle.try_out()?;
    let words = handle.context();
    let check = |answers: u64| match answers {
        0 => Ok(()),
        _ => Err("an acquisition of the uncontended lock failed".to_owned()),
    };
    // SAFETY: the words point into lock and handle, which live as long as the instance; the loop is the lock's.
    let timed = unsafe { Loop::new(timed, words, Some(Box::new(handle)), check)? };
    Ok(timed.here())
}
