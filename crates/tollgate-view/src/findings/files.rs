//! The page cache compared with storage, and fsync's share of a small file.

use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use super::finding::{Finding, case, find, of_pairs, times};
use crate::summary::Summary;

pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    [page_cache_against_storage(summary), direct_against_first(summary), fsync_of_small_file(summary)]
        .into_iter()
        .flatten()
        .collect()
}

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

/// Why a direct read is faster than the first one through the page cache, if it is: the work of the page cache in addition to the
/// device.
fn direct_against_first(summary: &Summary) -> Option<Finding> {
    let direct = case("files/direct-read", &[("buffer", "aligned".into()), ("block", "4k".into())]);
    let [first, cached] = ["uncached", "cached"]
        .map(|state| case("files/read", &[("state", state.into()), ("block", "4k".into())]));
    let slower = times(summary, &first, &direct).filter(|times| *times > 1.0)?;
    let median = |case: &Case| find(summary, case).map(|figures| figures.estimate.median);
    let (more, copy) = (median(&first)? - median(&direct)?, median(&cached)?);
    let time = |value| figures::estimate(value, Unit::Nanoseconds);
    // A copy that takes longer than the whole difference explains nothing.
    (copy < more).then(|| Finding {
        sentence: format!(
            "The first read of 4 KiB of a file is {} through the page cache than with O_DIRECT, {} more: {} for the lookup and the copy, as a \
             cached read has them, and {} for pages that are allocated and put into the page cache; nothing is read ahead.",
            figures::compared(slower, ["slower", "faster"]),
            time(more),
            time(copy),
            time(more - copy)
        ),
        from: vec![first, direct, cached],
    })
}

fn fsync_of_small_file(summary: &Summary) -> Option<Finding> {
    let [fsync, all] = ["fsync", "all"].map(|call| case("files/small-file", &[("call", call.into())]));
    let share = find(summary, &fsync)?.estimate.median / find(summary, &all)?.estimate.median;
    (0.0..=1.0).contains(&share).then(|| Finding {
        sentence: format!("fsync is {} of the latency of one small file's life.", figures::percent(share)),
        from: vec![fsync, all],
    })
}
