//! The page cache compared with storage, and fsync's share of a small file.

use tollgate_output::figures;

use super::finding::{Finding, case, find, of_pairs, times};
use crate::summary::Summary;

pub(super) fn of(summary: &Summary) -> Vec<Finding> {
    [page_cache_against_storage(summary), fsync_of_small_file(summary)].into_iter().flatten().collect()
}

/// How many times as long an uncached read takes as a cached one.
fn page_cache_against_storage(summary: &Summary) -> Option<Finding> {
    let part = |block: &str| {
        let [cached, uncached] = ["cached", "uncached"]
            .map(|state| case("files/read", &[("state", state.into()), ("block", block.into())]));
        let times = figures::significant(times(summary, &uncached, &cached)?, 2);
        Some((format!("{times} × for {block}"), [cached, uncached]))
    };
    let parts = ["4k", "128k", "1m"].into_iter().filter_map(part);
    of_pairs("A read from storage takes longer than one from the page cache", parts)
}

/// The share of fsync in a small file's life.
fn fsync_of_small_file(summary: &Summary) -> Option<Finding> {
    let [fsync, all] = ["fsync", "all"].map(|call| case("files/small-file", &[("call", call.into())]));
    let share = find(summary, &fsync)?.estimate.median / find(summary, &all)?.estimate.median;
    (0.0..=1.0).contains(&share).then(|| Finding {
        sentence: format!("fsync is {} of the latency of one small file's life.", figures::percent(share)),
        from: vec![fsync, all],
    })
}
