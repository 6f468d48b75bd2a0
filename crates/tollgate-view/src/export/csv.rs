//! Comma-separated values (RFC 4180): one record per metric, several runs in one file. The columns are those of `show --format
//! csv` with the run before them; if one of the runs is part of a session, its part follows them.

use tollgate_model::Run;
use tollgate_output::spreadsheet::{self, Reader};

use super::metric::{Metric, metrics};
use crate::show::columns::{Origin, Shown, of_runs};
use crate::summary::Summary;

/// All runs, with the header.
pub fn csv(runs: &[Run]) -> String {
    let summaries: Vec<(Summary, Origin)> =
        runs.iter().map(|run| (Summary::of(run), Origin::of(run))).collect();
    let all: Vec<Vec<Metric>> = summaries.iter().map(|(summary, _)| metrics(summary)).collect();
    let mut rows = Vec::new();
    for ((summary, origin), metrics) in summaries.iter().zip(&all) {
        rows.extend(metrics.iter().map(|metric| Shown::of_metric(summary, metric, origin)));
    }
    let has_session = runs.iter().any(|run| run.session.is_some());
    spreadsheet::from_rows(&of_runs(has_session), rows, Reader::System)
}
