//! What the page cache saves, and what stands in the way of doing without it.

use tollgate_model::ParamValue;

use super::{Known, Observation, apart, case, find};
use crate::estimates::Estimates;
use crate::figures;

/// What there is to say of the suite.
pub(super) fn of(estimates: &Estimates) -> Vec<Observation> {
    [page_cache_against_storage(estimates), fsync_of_small_file(estimates)].into_iter().flatten().collect()
}

/// What a read costs that finds its pages in memory, against one that does not.
fn page_cache_against_storage(estimates: &Estimates) -> Option<Observation> {
    let read = |state: &str, block: &str| {
        case("files/read", &[("state", ParamValue::from(state)), ("block", block.into())])
    };
    let mut parts = Vec::new();
    let mut from = Vec::new();
    for block in ["4k", "128k", "1m"] {
        let (cached, uncached) = (read("cached", block), read("uncached", block));
        let (Some(near), Some(far)) = (find(estimates, &cached), find(estimates, &uncached)) else {
            continue;
        };
        let (near, far): (Known, Known) = (near.into(), far.into());
        if !apart(near.interval, far.interval) {
            continue;
        }
        parts.push(format!("{} times for {block}", figures::significant(far.estimate / near.estimate, 2)));
        from.extend([cached.to_string(), uncached.to_string()]);
    }
    (!parts.is_empty()).then(|| Observation {
        sentence: format!(
            "A read that goes to storage costs more than one from the page cache: {}.",
            parts.join(", ")
        ),
        from,
    })
}

/// What part of a small file's life is waiting until it is safe.
fn fsync_of_small_file(estimates: &Estimates) -> Option<Observation> {
    let call = |call: &str| case("files/small-file", &[("call", call.into())]);
    let (fsync, all) = (call("fsync"), call("all"));
    let share = find(estimates, &fsync)?.estimate.median / find(estimates, &all)?.estimate.median;
    (0.0..=1.0).contains(&share).then(|| Observation {
        sentence: format!("Of what one small file costs, fsync is {}.", figures::percent(share)),
        from: vec![fsync.to_string(), all.to_string()],
    })
}
