//! The difference of two readings of the totals.

use std::collections::HashMap;

use tollgate_model::Traced;
use tollgate_model::traced::{Call, Idle, Parts, bucket_low};

use crate::outcome::Collected;

/// A part of a trace, in time.
#[derive(Debug)]
pub struct Interval {
    /// Its number, from 1.
    pub number: u64,
    /// Its start, in nanoseconds since the trace began.
    pub from_ns: u64,
    /// Its end, in nanoseconds since the trace began.
    pub to_ns: u64,
    /// Calls that returned in it, and the time that passed in it.
    pub traced: Traced,
}

/// Subtracts earlier totals from later ones. The intervals of a trace sum to the whole. If no call of a kind was longer than
/// one before, its `max_ns` is the upper bound of its bucket, which is less than an eighth above it.
pub(super) fn difference(later: &Collected, earlier: &Collected) -> Collected {
    let before: HashMap<&str, &Call> = earlier.calls.iter().map(|call| (call.name.as_str(), call)).collect();
    let mut calls: Vec<Call> = later
        .calls
        .iter()
        .map(|call| before.get(call.name.as_str()).map_or_else(|| call.clone(), |before| less(call, before)))
        .filter(|call| call.count + call.unfinished > 0)
        .collect();
    crate::outcome::slowest_first(&mut calls);
    let outside =
        later.outside.map(|outside| earlier.outside.map_or(outside, |before| parts(outside, before)));
    let busy = later.busy_ns.map(|busy| busy.saturating_sub(earlier.busy_ns.unwrap_or(0)));
    let idle = later.idle.map(|idle| less_idle(idle, earlier.idle.unwrap_or_default()));
    Collected {
        stopped_ns: later.stopped_ns,
        idle,
        busy_ns: busy,
        processes: later.processes,
        threads: later.threads,
        calls,
        outside,
        ..Collected::default()
    }
}

fn less(call: &Call, before: &Call) -> Call {
    let earlier: HashMap<u32, u64> = before.histogram.iter().copied().collect();
    let left = |&(bucket, calls): &(u32, u64)| {
        (bucket, calls.saturating_sub(earlier.get(&bucket).copied().unwrap_or(0)))
    };
    let histogram: Vec<(u32, u64)> =
        call.histogram.iter().map(left).filter(|(_, calls)| *calls > 0).collect();
    let slowest = histogram.last().map_or(0, |(bucket, _)| bucket_low(bucket + 1).saturating_sub(1));
    Call {
        name: call.name.clone(),
        count: call.count.saturating_sub(before.count),
        errors: call.errors.saturating_sub(before.errors),
        unfinished: call.unfinished.saturating_sub(before.unfinished),
        stopped: call.stopped.saturating_sub(before.stopped),
        total_ns: call.total_ns.saturating_sub(before.total_ns),
        max_ns: if call.max_ns > before.max_ns { call.max_ns } else { slowest.min(call.max_ns) },
        parts: parts(call.parts, before.parts),
        histogram,
    }
}

fn parts(later: Parts, earlier: Parts) -> Parts {
    Parts {
        on_cpu_ns: later.on_cpu_ns.saturating_sub(earlier.on_cpu_ns),
        sleep_ns: later.sleep_ns.saturating_sub(earlier.sleep_ns),
        disk_ns: later.disk_ns.saturating_sub(earlier.disk_ns),
        runqueue_ns: later.runqueue_ns.saturating_sub(earlier.runqueue_ns),
        unknown_ns: later.unknown_ns.saturating_sub(earlier.unknown_ns),
    }
}

fn less_idle(later: Idle, earlier: Idle) -> Idle {
    Idle {
        runqueue_ns: later.runqueue_ns.saturating_sub(earlier.runqueue_ns),
        disk_ns: later.disk_ns.saturating_sub(earlier.disk_ns),
        sleep_ns: later.sleep_ns.saturating_sub(earlier.sleep_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_model::traced::bucket;

    fn call(name: &str, count: u64, each: u64) -> Call {
        let total_ns = count * each;
        let parts = Parts { on_cpu_ns: total_ns, ..Parts::default() };
        let histogram = vec![(bucket(each), count)];
        Call {
            name: name.to_owned(),
            count,
            errors: 0,
            unfinished: 0,
            stopped: 0,
            total_ns,
            max_ns: each,
            parts,
            histogram,
        }
    }

    #[test]
    fn an_interval_has_what_was_added() {
        let earlier =
            Collected { calls: vec![call("read", 5, 100), call("old", 3, 7)], ..Collected::default() };
        let later = Collected {
            calls: vec![call("read", 9, 100), call("old", 3, 7), call("new", 1, 50)],
            ..Collected::default()
        };
        let between = difference(&later, &earlier);
        let counts: Vec<_> =
            between.calls.iter().map(|call| (call.name.as_str(), call.count, call.total_ns)).collect();
        assert_eq!(counts, [("read", 4, 400), ("new", 1, 50)]);
        assert_eq!(between.calls[0].histogram, [(bucket(100), 4)]);
        assert!(between.calls[0].max_ns >= 96 && between.calls[0].max_ns <= 112, "{between:?}");
    }
}
