//! A test-and-set in user mode compared with a system call.

use tollgate_output::figures;

use super::finding::{Finding, bounded_times, case, find};
use crate::summary::Summary;

/// The system call of the published comparison, and the successor of its restartable sequence.
const SYSTEM_CALL: &str = "futex-trylock-pi";
const RESTARTABLE: &str = "rseq";

pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    [uncontended(summary), three_calls(summary), trade(summary)].into_iter().flatten().collect()
}

fn uncontended(summary: &Summary) -> Option<Finding> {
    let [call, sequence] =
        [SYSTEM_CALL, RESTARTABLE].map(|by| case("locks/uncontended", &[("by", by.into())]));
    bounded_times(summary, call, sequence, 1.0, |how| {
        format!(
            "A free lock is taken by a system call (FUTEX_TRYLOCK_PI) and released by CMPXCHG {how} than by a restartable sequence."
        )
    })
}

fn three_calls(summary: &Summary) -> Option<Finding> {
    let calls = [
        ("sem_wait()", "sem-trywait"),
        ("pthread_mutex_trylock()", "pthread-trylock"),
        ("tst()", RESTARTABLE),
    ];
    let mut words = Vec::new();
    let mut from = Vec::new();
    for (published, by) in calls {
        let case = case("locks/uncontended", &[("by", by.into())]);
        let figures = find(summary, &case)?;
        words.push(format!("{published} {} (by {by})", figures.in_words()));
        from.push(case);
    }
    let sentence =
        format!("The three calls of the published comparison, each with its release: {}.", words.join(", "));
    Some(Finding { sentence, from })
}

fn trade(summary: &Summary) -> Option<Finding> {
    let mut least: Option<(f64, u64)> = None;
    let mut from = Vec::new();
    for threads in (1..=6).map(|power| 1_u64 << power) {
        let [call, sequence] = [SYSTEM_CALL, RESTARTABLE].map(|by| {
            case(
                "locks/producer-consumer",
                &[("by", by.into()), ("threads", threads.into()), ("cpus", "one".into())],
            )
        });
        let (Some(slow), Some(fast)) = (find(summary, &call), find(summary, &sequence)) else {
            continue;
        };
        let gain = slow.estimate.median / fast.estimate.median;
        if least.is_none_or(|(known, _)| gain < known) {
            least = Some((gain, threads));
        }
        from.extend([call, sequence]);
    }
    let (gain, threads) = least?;
    let counts = from.len() / 2;
    (gain.is_finite() && gain > 0.0 && counts > 1).then(|| Finding {
        sentence: format!(
            "On one processor, producers and consumers hand over at least {} × as many items with a restartable sequence as with the system call; of {counts} numbers of threads, {threads} of each gave the least.",
            figures::significant(gain, 2)
        ),
        from,
    })
}
