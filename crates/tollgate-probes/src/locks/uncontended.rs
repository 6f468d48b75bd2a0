//! A lock that nobody else wants.

use tollgate_model::Params;

use super::lock::{Lock, Reach};
use super::method::Method;
use crate::bench::{Arm, Loop, Refusal, Timed, cpu};
use crate::probe::{PLAIN, Probe, each_word, params, word};

pub(super) static PROBE: Probe = Probe {
    name: "locks/uncontended",
    operation: "Taking a lock that nobody else wants, and giving it back.",
    timed: |params| match method(params) {
        Some(method) => {
            let (instruction, times) = method.instruction();
            Timed::Together { code: method.code().uncontended, instruction, times }
        }
        None => (PLAIN.timed)(params),
    },
    cases: || each_word("by", &Method::LOCKS.map(Method::name)),
    over: |_| Some(params(&[("by", Method::SYSTEM_CALL.name().into())])),
    arm: |probe, params| arm(probe, params),
    ..PLAIN
};

fn method(params: &Params) -> Option<Method> {
    Method::named(word(params, "by"))
}

fn arm(probe: &'static Probe, params: &Params) -> Result<Arm, Refusal> {
    let method = method(params).ok_or_else(|| Refusal::Fail("there is no such lock".to_owned()))?;
    let home = match cpu::allowed().as_slice() {
        [home] => *home,
        _ => {
            return Err(Refusal::Skip(
                "it cannot be kept on one processor here (sched_setaffinity)".to_owned(),
            ));
        }
    };
    let lock = Lock::new(method, Reach::On(home), 2)?;
    let mut handle = lock.join(1)?;
    handle.try_out()?;
    let words = handle.context();
    let check = |answers: u64| match answers {
        0 => Ok(()),
        _ => Err("a lock that nobody else wants could not be taken each time".to_owned()),
    };
    // SAFETY: the words point into the lock and the handle, which go with the arm; the loop is the lock's own.
    let timed = unsafe { Loop::new((probe.timed)(params), words, Some(Box::new(handle)), check)? };
    Ok(timed.here())
}
