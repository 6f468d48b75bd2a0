//! Whether the kernel's division of processor time into user and sys can be believed.
//!
//! Most kernels measure the sum of both and divide it by what their clock tick met (`cputime_adjust`, kernel/sched/cputime.c). A command of few
//! ticks has an arbitrary one.

use tollgate_model::Traced;
use tollgate_model::traced::Backend;

use super::words;

/// Who met so much has met ten ticks of the slowest clock, CONFIG_HZ=100.
const TICKS_ENOUGH_NS: u64 = 100_000_000;

/// Where user or sys contradicts what is known, a sentence that says so.
pub fn doubt(traced: &Traced) -> Option<String> {
    is_chance(traced).then(|| {
        let known = match in_calls(traced) {
            0 => String::new(),
            ns => format!("; the calls that were followed were on a processor for {}", words::time(ns)),
        };
        format!(
            "user and sys are divided by what the kernel's clock tick met, which is chance for a command this short{known}"
        )
    })
}

/// Nobody computes without a single instruction of his own, nor makes calls without the kernel.
pub fn is_chance(traced: &Traced) -> bool {
    let both = traced.user_ns.saturating_add(traced.sys_ns);
    let in_calls = in_calls(traced);
    let contradicts =
        traced.user_ns == 0 || traced.sys_ns == 0 || (traced.sys_ns < in_calls && in_calls <= both);
    both > 0 && both < TICKS_ENOUGH_NS && contradicts
}

/// Time on a processor in calls, all of which is sys; 0 where nobody measured it.
fn in_calls(traced: &Traced) -> u64 {
    match traced.backend {
        Backend::Bpf => traced.calls.iter().map(|call| call.parts.on_cpu_ns).fold(0, u64::saturating_add),
        Backend::Ptrace | Backend::Rusage => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::examples;

    #[test]
    fn a_division_that_cannot_be_is_doubted() {
        let divided = |user_ns, sys_ns| Traced { user_ns, sys_ns, ..examples::checkout() };
        // Its calls were on a processor for 185 ms: what is above the bound is believed.
        assert_eq!(doubt(&divided(3_590_000_000, 1_550_000_000)), None);
        assert_eq!(doubt(&divided(200_000_000, 0)), None);
        let short = |user_ns, sys_ns| {
            let mut traced = divided(user_ns, sys_ns);
            traced.calls.truncate(1);
            doubt(&traced)
        };
        // They were for 3 ms.
        assert_eq!(short(5_000_000, 4_000_000), None);
        for (user_ns, sys_ns) in [(5_000_000, 2_000_000), (5_000_000, 0), (0, 5_000_000)] {
            let told = short(user_ns, sys_ns).expect("a doubt");
            assert!(told.contains("followed were on a processor for 3.00 ms"), "{told}");
        }
        assert_eq!(short(0, 0), None, "nothing is divided");
        let nobody = Traced { backend: Backend::Rusage, ..divided(5_000_000, 0) };
        assert!(doubt(&nobody).is_some_and(|told| told.ends_with("a command this short")));
    }
}
