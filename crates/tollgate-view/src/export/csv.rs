//! Comma-separated values (RFC 4180): one record per metric, several runs in one file.

use tollgate_model::Run;
use tollgate_model::estimate::Estimate;
use tollgate_output::spreadsheet::{Cell, Terminator, table};

use super::environment::{KeyFacts, machine};
use super::metric::{Metric, metrics};
use super::session::{COLUMNS, InSession};
use super::{short, word};
use crate::summary::{Figures, Summary};

/// The first record.
pub const HEADER: [&str; 24] = [
    "run",
    "label",
    "machine",
    "environment",
    "started",
    "kernel",
    "cpu",
    "suite",
    "benchmark",
    "params",
    "metric",
    "status",
    "unit",
    "median",
    "ci_low",
    "ci_high",
    "min",
    "p99",
    "max",
    "detection_limit",
    "count",
    "discarded",
    "provenance",
    "why",
];

/// All runs, with the header. Where one of them is part of a session, the columns of [`session`](super::session) follow the others.
pub fn csv(runs: &[Run]) -> String {
    let summaries: Vec<Summary> = runs.iter().map(Summary::of).collect();
    let records = summaries.iter().flat_map(records);
    if runs.iter().all(|run| run.session.is_none()) {
        return table(HEADER, records, Terminator::CRLF);
    }
    let parts = summaries.iter().flat_map(|summary| {
        let part = cells(InSession::of(summary.run).as_ref());
        std::iter::repeat_n(part, metrics(summary).len())
    });
    let mut header = [""; HEADER.len() + COLUMNS.len()];
    header[..HEADER.len()].copy_from_slice(&HEADER);
    header[HEADER.len()..].copy_from_slice(&COLUMNS);
    let whole = records.zip(parts).map(|(record, part)| {
        let mut cells = record.into_iter().chain(part);
        std::array::from_fn::<Cell, { HEADER.len() + COLUMNS.len() }, _>(|_| {
            cells.next().unwrap_or("".into())
        })
    });
    table(header, whole, Terminator::CRLF)
}

fn cells(part: Option<&InSession>) -> [Cell; COLUMNS.len()] {
    let Some(part) = part else { return COLUMNS.map(|_| "".into()) };
    [
        part.session.as_str().into(),
        part.session_environment.as_str().into(),
        u64::from(part.session_place).into(),
        if part.session_paired { "true" } else { "false" }.into(),
        part.session_knob.as_deref().unwrap_or_default().into(),
        part.session_command.as_deref().unwrap_or_default().into(),
    ]
}

fn records(summary: &Summary) -> Vec<[Cell; HEADER.len()]> {
    let run = summary.run;
    let (key_facts, machine) = (KeyFacts::of(&run.facts), machine(&run.facts));
    let text = |text: Option<&str>| Cell::from(short(text.unwrap_or_default()).as_str());
    let record = |metric: &Metric| {
        let figures = metric.figures;
        let number =
            |of: fn(&Estimate) -> Option<f64>| Cell::from(figures.and_then(|figures| of(&figures.estimate)));
        [
            text(Some(run.id.as_ref())),
            text(run.label.as_ref().map(AsRef::as_ref)),
            text(machine.as_deref()),
            text(Some(&word(&run.environment))),
            text(Some(&run.started)),
            text(key_facts.kernel.as_deref()),
            text(key_facts.cpu.as_deref()),
            text(Some(metric.case.suite())),
            text(Some(&metric.case.benchmark)),
            text(Some(&metric.params)),
            metric.name.into(),
            metric.status().into(),
            text(figures.map(|figures| figures.measured.unit.to_string()).as_deref()),
            number(|estimate| Some(estimate.median)),
            number(|estimate| Some(estimate.interval?.low)),
            number(|estimate| Some(estimate.interval?.high)),
            figures.and_then(Figures::min).into(),
            number(|estimate| estimate.p99),
            number(|estimate| Some(estimate.max)),
            figures.and_then(|figures| figures.below).into(),
            figures.map_or(0, |figures| figures.estimate.samples as u64).into(),
            figures.map_or(0, |figures| figures.measured.discarded).into(),
            text(figures.map(|figures| word(&figures.measured.provenance)).as_deref()),
            text(metric.why()),
        ]
    };
    metrics(summary).iter().map(record).collect()
}
