//! The table of a suite's estimates, each with its evidence.

use tollgate_model::measurement::pairs;
use tollgate_model::{Case, Provenance};
use tollgate_output::column::Columns;
use tollgate_output::figures;

use super::About;
use super::subject::Subject;
use super::suites::{TRACE, VERSUS, suite_of};
use crate::compare::columns::{self, Compared};
use crate::comparison::{self, Comparison};
use crate::page::{Cell, EstimateRow, Estimates, Group, Text};
use crate::show::columns::{self as cases, RowKind, Shown};
use crate::show::text::own_in_words;
use crate::summary::{CaseRow, Figures, Noise, Note, State};
use crate::{counts, facts, versus};

/// The command that measures a row again. The page's script writes the command of each row out.
const AGAIN: &str =
    "tollgate run 'benchmark{row}' measures a row again, tollgate run benchmark all rows of a benchmark.";

pub fn estimates<'c>(
    subjects: &[Subject],
    suite: &str,
    cases: &[&Case],
    comparisons: &'c [Comparison<'c>],
    other: About,
) -> Estimates {
    let rows = cases.iter().filter_map(|case| subjects.first()?.summary.row(case));
    let kind = RowKind::from_rows(rows.collect::<Vec<_>>());
    let mut groups: Vec<Group> = Vec::new();
    for of_benchmark in cases.chunk_by(|a, b| a.benchmark == b.benchmark) {
        let Some(first) = of_benchmark.first() else { continue };
        let benchmark = tollgate_suites::find(&first.benchmark);
        let operation = benchmark
            .map(|benchmark| benchmark.operation)
            .or_else(|| of_no_benchmark(suite, &first.benchmark))
            .or_else(|| other(&first.benchmark));
        let rows = of_benchmark.iter().filter_map(|case| match subjects {
            [subject] => alone(subject, case, kind),
            subjects => Some(compared(subjects, case, comparisons)),
        });
        let mut rows: Vec<EstimateRow> = rows.collect();
        groups.push(Group {
            benchmark: Text::new(&first.benchmark),
            operation: operation.unwrap_or("Not a benchmark of this program.").into(),
            can_be_run: benchmark.is_some(),
            notes: taken_together(&mut rows),
            rows,
        });
    }
    let caption = match cases.len() {
        1 => format!("The figures of {suite}, with their evidence"),
        number => format!("All {number} cases of {suite}, with their evidence"),
    };
    let executed = subjects.iter().map(|subject| Text::new(&executed(subject, suite)));
    let again = groups.iter().any(|group| group.can_be_run).then(|| Text::from(AGAIN));
    let notes = executed.chain(again).collect();
    Estimates { caption: caption.into(), notes, head: head(subjects, kind), groups }
}

fn of_no_benchmark(suite: &str, name: &str) -> Option<&'static str> {
    match suite {
        TRACE => Some("The real time of a traced command."),
        VERSUS => versus::about(name),
        _ => None,
    }
}

fn taken_together(rows: &mut [EstimateRow]) -> Vec<Text> {
    let [first, others @ ..] = &*rows else { return Vec::new() };
    let of_all = |text: &&Text| !others.is_empty() && others.iter().all(|row| row.evidence.contains(text));
    let common: Vec<Text> = first.evidence.iter().filter(of_all).cloned().collect();
    for row in rows {
        row.evidence.retain(|text| !common.contains(text));
    }
    common
}

fn executed(subject: &Subject, suite: &str) -> String {
    let prefix = subject.prefix(": ");
    let (mut by, mut groups): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (_, figures) in subject.summary.measured().filter(|(case, _)| suite_of(case) == suite) {
        by.push(provenance(figures.measured.provenance));
        groups.push(&figures.measured.group);
    }
    by.dedup();
    groups.dedup();
    let own: Vec<String> = groups.iter().flat_map(|group| own_in_words(&subject.summary, group)).collect();
    let by = if by.len() > 4 { "several, see each" } else { &by.join(" and ") };
    let timed = if counts::is_counted(&subject.summary) { String::new() } else { timed_by(subject) };
    format!("{prefix}executed by {by}{timed}; {}.", own.join("; "))
}

/// The engine's clock; a run of only traced commands has none.
fn timed_by(subject: &Subject) -> String {
    let clock = facts::text(&subject.summary.run.facts, facts::CLOCK);
    clock.map_or(String::new(), |clock| format!(", timed by {clock}"))
}

const EVIDENCE: [&str; 4] = ["samples", "ops_per_sample", "spread", "discarded"];

/// The ratio stands beside the figure, so that it is visible on a narrow screen, whose tables scroll.
fn of_one<'a>(kind: RowKind) -> Columns<Shown<'a>> {
    let mut keys = [kind.keys(), &EVIDENCE].concat();
    keys.sort_by_key(|key| match *key {
        "median" | "count" => 0,
        "multiple" => 1,
        _ => 2,
    });
    cases::columns().arranged(&keys)
}

fn head(subjects: &[Subject], kind: RowKind) -> Vec<Text> {
    let first = Text::from("benchmark");
    match subjects {
        [_] => {
            std::iter::once(first).chain(of_one(kind).iter().map(|column| (*column.head).into())).collect()
        }
        subjects => {
            std::iter::once(first).chain(subjects.iter().map(|subject| Text::label(&subject.name))).collect()
        }
    }
}

fn row(case: &Case) -> EstimateRow {
    let name = if case.params.is_empty() { case.benchmark.clone() } else { pairs(&case.params) };
    EstimateRow { name: Text::new(&name), is_noisy: false, cells: Vec::new(), evidence: Vec::new() }
}

fn alone(subject: &Subject, case: &Case, kind: RowKind) -> Option<EstimateRow> {
    let found = subject.summary.row(case)?;
    let mut row = row(case);
    row.is_noisy = found.is_noisy();
    let values = of_one(kind).values(&Shown::new(&subject.summary, found));
    // Without figures it has only its status.
    let shown = if found.figures().is_some() { values.len() } else { 1 };
    row.cells = values.iter().take(shown).map(|value| Cell::from(value.words().to_owned())).collect();
    // The range across processes, the CI and discarded batches have their own columns.
    let is_elsewhere = |note: &Note| match note {
        Note::Noisy(noise) => !matches!(noise, Noise::FewProcesses(_)),
        note => matches!(note, Note::Range { .. } | Note::Discarded(_) | Note::BelowLimit),
    };
    let notes = found.notes().into_iter().filter(|note| !is_elsewhere(note));
    row.evidence = notes.map(|note| Text::new(&note.to_string())).collect();
    Some(row)
}

/// `4479 samples of 324 operations by 10 processes, 1 discarded; hardware, tsc`.
fn samples(subject: &Subject, figures: &Figures) -> String {
    let measured = &figures.measured;
    let timed = if figures.is_count() { String::new() } else { timed_by(subject) };
    format!(
        "{} of {} by {}, {} discarded; executed by {}{timed}",
        figures::count(measured.samples.len(), "sample", "samples"),
        figures::count(
            usize::try_from(measured.ops_per_sample).unwrap_or(usize::MAX),
            "operation",
            "operations"
        ),
        figures::count(measured.processes.len(), "process", "processes"),
        measured.discarded,
        provenance(measured.provenance),
    )
}

fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Hardware => "hardware",
        Provenance::Kvm => "hardware (kvm)",
        Provenance::KvmEmulated => "KVM's emulator",
        Provenance::QemuTcg => "QEMU's translator",
        Provenance::QemuIcount => "QEMU's translator, which counted its instructions",
        Provenance::Interpreter => "an interpreter",
    }
}

fn compared<'c>(subjects: &[Subject], case: &Case, comparisons: &'c [Comparison<'c>]) -> EstimateRow {
    let mut row = row(case);
    for subject in subjects {
        let comparison = subject.look.checked_sub(1).and_then(|at| comparisons.get(at));
        let (cell, evidence) = match subject.summary.row(case) {
            None => ("–".to_owned().into(), None),
            Some(found) => shown(subject, found, comparison),
        };
        row.cells.push(cell);
        row.evidence.extend(evidence.map(|text| Text::new(&format!("{}: {text}", subject.name))));
        row.is_noisy |= subject.summary.row(case).is_some_and(CaseRow::is_noisy);
    }
    row
}

fn shown<'c>(
    subject: &Subject,
    found: &CaseRow,
    comparison: Option<&'c Comparison<'c>>,
) -> (Cell, Option<String>) {
    let State::Measured(figures) = &found.state else {
        return (found.status().to_owned().into(), found.why().map(str::to_owned));
    };
    let unit = figures.measured.unit;
    let estimate = match figures.below {
        _ if !figures.is_estimate() => "no estimate".to_owned(),
        Some(_) => format!("{} (detection limit)", figures.in_words()),
        None => figures.in_words(),
    };
    let level = match counts::batches(figures) {
        Some(batches) => batches,
        None => {
            let interval = figures.interval_in_words().map(|interval| format!("95 % CI {interval}"));
            let min = figures.min().map(|min| format!("min {}", figures::estimate(min, unit)));
            interval.into_iter().chain(min).collect::<Vec<_>>().join(", ")
        }
    };
    let mut evidence = format!("{level}; {}", samples(subject, figures));
    let row = |comparison: &'c Comparison<'c>| Some((comparison, comparison.row(found.case)?));
    let Some((comparison, row)) = comparison.and_then(row) else {
        return (estimate.into(), Some(evidence));
    };
    let result = &row.result;
    let words = |key: &str| Compared::new(comparison, row).words(key);
    if let Some(interval) = words("ratio_ci") {
        let (ratio, threshold) = (words("ratio").unwrap_or_default(), words("threshold").unwrap_or_default());
        evidence.push_str(&format!(
            "; {ratio} × the base, {} {interval}, noise threshold {threshold}",
            comparison.interval_name
        ));
    }
    evidence.extend(result.why.iter().map(|why| format!("; {why}")));
    let times = columns::times(row).filter(|_| result.verdict.is_difference());
    let times = times.map(|times| format!(" {times}"));
    let text = Text::new(&format!(
        "{estimate}{} {}",
        times.unwrap_or_default(),
        comparison::verdict_word(result.verdict, row.is_count())
    ));
    (Cell { text, verdict: Some(result.verdict) }, Some(evidence))
}
