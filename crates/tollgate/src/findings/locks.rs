//! What a test-and-set at user level saves against a system call.

use tollgate_model::ParamValue;

use super::{Observation, case, find};
use crate::estimates::{Estimates, Figures};
use crate::figures;

/// The system call of the published comparison, and what took its restartable sequence's place.
const SYSTEM_CALL: &str = "futex-trylock-pi";
const RESTARTABLE: &str = "rseq";

/// What there is to say of the suite.
pub(super) fn of(estimates: &Estimates) -> Vec<Observation> {
    [uncontended(estimates), three_calls(estimates), trade(estimates)].into_iter().flatten().collect()
}

/// How much cheaper it is where nobody is in the way.
fn uncontended(estimates: &Estimates) -> Option<Observation> {
    let of = |by: &str| case("locks/uncontended", &[("by", by.into())]);
    let (call, sequence) = (of(SYSTEM_CALL), of(RESTARTABLE));
    let (dear, cheap) = (find(estimates, &call)?, find(estimates, &sequence)?);
    let times = dear.estimate.median / cheap.below.unwrap_or(cheap.estimate.median);
    let at_least = if cheap.below.is_some() { "at least " } else { "" };
    (times.is_finite() && times > 1.0).then(|| Observation {
        sentence: format!(
            "A restartable sequence takes a lock and gives it back {at_least}{} times as cheaply as the system call.",
            figures::significant(times, 3)
        ),
        from: vec![call.to_string(), sequence.to_string()],
    })
}

/// The calls of the published comparison, and what has taken their place.
fn three_calls(estimates: &Estimates) -> Option<Observation> {
    let calls = [
        ("sem_wait()", "sem-trywait"),
        ("pthread_mutex_trylock()", "pthread-trylock"),
        ("tst()", RESTARTABLE),
    ];
    let mut words = Vec::new();
    let mut from = Vec::new();
    for (published, by) in calls {
        let case = case("locks/uncontended", &[("by", by.into())]);
        let figures = find(estimates, &case)?;
        let estimate =
            figures::estimate(figures.below.unwrap_or(figures.estimate.median), figures.measured.unit);
        let below = if figures.below.is_some() { "less than " } else { "" };
        words.push(format!("{published} {below}{estimate} (by {by})"));
        from.push(case.to_string());
    }
    let sentence = format!(
        "The three calls of the published comparison, called again and again with their release: {}.",
        words.join(", ")
    );
    Some(Observation { sentence, from })
}

/// The least that it gains where producers and consumers share one processor.
fn trade(estimates: &Estimates) -> Option<Observation> {
    let mut least: Option<(f64, u64)> = None;
    let mut from = Vec::new();
    for threads in (1..=6).map(|power| 1_u64 << power) {
        let of = |by: &str| {
            let params: [(&str, ParamValue); 3] =
                [("by", by.into()), ("threads", threads.into()), ("cpus", "one".into())];
            case("locks/producer-consumer", &params)
        };
        let (call, sequence) = (of(SYSTEM_CALL), of(RESTARTABLE));
        let (Some(dear), Some(cheap)) = (find(estimates, &call), find(estimates, &sequence)) else {
            continue;
        };
        let gain = gain(dear, cheap);
        if least.is_none_or(|(known, _)| gain < known) {
            least = Some((gain, threads));
        }
        from.extend([call.to_string(), sequence.to_string()]);
    }
    let (gain, threads) = least?;
    let counts = from.len() / 2;
    (gain.is_finite() && gain > 0.0 && counts > 1).then(|| Observation {
        sentence: format!(
            "On one processor producers and consumers hand over at least {} times as many items with a restartable \
             sequence as with the system call, the least of {counts} numbers of threads with {threads} of each.",
            figures::significant(gain, 2)
        ),
        from,
    })
}

fn gain(dear: &Figures, cheap: &Figures) -> f64 {
    dear.estimate.median / cheap.estimate.median
}
