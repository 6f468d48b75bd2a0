//! The page cache compared with storage, and fsync's share of a small file.

use tollgate_model::ParamValue;

use super::finding::{Finding, Known, apart, case, find};
use crate::figures;
use crate::summary::Summary;

/// The findings of the suite.
pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    [page_cache_against_storage(summary), fsync_of_small_file(summary)].into_iter().flatten().collect()
}

/// How many times as long an uncached read takes as a cached one.
fn page_cache_against_storage(summary: &Summary) -> Option<Finding> {
    let read = |state: &str, block: &str| {
        case("files/read", &[("state", ParamValue::from(state)), ("block", block.into())])
    };
    let mut parts = Vec::new();
    let mut from = Vec::new();
    for block in ["4k", "128k", "1m"] {
        let (cached, uncached) = (read("cached", block), read("uncached", block));
        let (Some(fast), Some(slow)) = (find(summary, &cached), find(summary, &uncached)) else {
            continue;
        };
        let (fast, slow): (Known, Known) = (fast.into(), slow.into());
        if !apart(fast.interval, slow.interval) {
            continue;
        }
        parts.push(format!("{} × for {block}", figures::significant(slow.estimate / fast.estimate, 2)));
        from.extend([cached, uncached]);
    }
    (!parts.is_empty()).then(|| Finding {
        sentence: format!(
            "A read from storage takes longer than one from the page cache: {}.",
            parts.join(", ")
        ),
        from,
    })
}

/// The share of fsync in a small file's life.
fn fsync_of_small_file(summary: &Summary) -> Option<Finding> {
    let call = |call: &str| case("files/small-file", &[("call", call.into())]);
    let (fsync, all) = (call("fsync"), call("all"));
    let share = find(summary, &fsync)?.estimate.median / find(summary, &all)?.estimate.median;
    (0.0..=1.0).contains(&share).then(|| Finding {
        sentence: format!("fsync is {} of the latency of one small file's life.", figures::percent(share)),
        from: vec![fsync, all],
    })
}
