//! Decides whether the kernel's division of processor time into user and sys is credible. Most kernels measure the sum of both
//! and divide it by samples of the clock tick (`cputime_adjust`, kernel/sched/cputime.c): arbitrary for a command of few ticks.

use tollgate_model::Traced;
use tollgate_model::traced::{Backend, TimesFrom};

use super::text;

/// Ten ticks of the slowest clock, CONFIG_HZ=100.
const TICKS_ENOUGH_NS: u64 = 100_000_000;

/// Returns a clause if user or sys contradicts the other figures.
pub fn doubt(traced: &Traced) -> Option<String> {
    is_chance(traced).then(|| {
        let known = match in_calls(traced) {
            0 => String::new(),
            ns => format!("; the traced calls were on a processor for {}", text::time(ns)),
        };
        format!(
            "the kernel divides user and sys by samples of its clock tick, too few for a command this short{known}"
        )
    })
}

/// Returns whether the division is arbitrary. A command needs some user time to run and some sys time to make calls.
pub fn is_chance(traced: &Traced) -> bool {
    if traced.times_from == TimesFrom::Trace {
        return false;
    }
    let both = traced.user_ns.saturating_add(traced.sys_ns);
    let in_calls = in_calls(traced);
    let contradicts =
        traced.user_ns == 0 || traced.sys_ns == 0 || (traced.sys_ns < in_calls && in_calls <= both);
    both > 0 && both < TICKS_ENOUGH_NS && contradicts
}

/// Returns the time on a processor in calls, all of which is sys; 0 if it was not measured.
fn in_calls(traced: &Traced) -> u64 {
    match traced.backend {
        Backend::Bpf => traced.calls.iter().map(|call| call.parts.on_cpu_ns).fold(0, u64::saturating_add),
        Backend::Ptrace | Backend::Rusage | Backend::Strace => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    #[test]
    fn a_division_that_cannot_be_is_doubted() {
        let divided = |user_ns, sys_ns| Traced { user_ns, sys_ns, ..examples::checkout() };
        // Its calls were on a processor for 185 ms: a time above the bound is credible.
        assert_eq!(doubt(&divided(3_590_000_000, 1_550_000_000)), None);
        assert_eq!(doubt(&divided(200_000_000, 0)), None);
        let short = |user_ns, sys_ns| {
            let mut traced = divided(user_ns, sys_ns);
            traced.calls.truncate(1);
            doubt(&traced)
        };
        // Its calls were on a processor for 3 ms.
        assert_eq!(short(5_000_000, 4_000_000), None);
        for (user_ns, sys_ns) in [(5_000_000, 2_000_000), (5_000_000, 0), (0, 5_000_000)] {
            let shown = short(user_ns, sys_ns).expect("a doubt");
            assert!(shown.contains("traced calls were on a processor for 3.00 ms"), "{shown}");
        }
        assert_eq!(short(0, 0), None, "nothing is divided");
        let exact = Traced { times_from: TimesFrom::Trace, ..divided(5_000_000, 0) };
        assert_eq!(doubt(&exact), None, "no tick divides what the trace measured");
        let untraced = Traced { backend: Backend::Rusage, ..divided(5_000_000, 0) };
        assert!(doubt(&untraced).is_some_and(|shown| shown.ends_with("a command this short")));
    }
}
