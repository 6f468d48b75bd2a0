//! Compared commands as JSON. Times are in seconds.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tollgate_model::traced::Backend;
use tollgate_model::traced::blame::Account;
use tollgate_model::versus::{Command, FAULTS, INSTRUCTIONS, MEMORY, REAL, SYS, USER};
use tollgate_model::{Case, Label, RunId, Traced, own, stats};
use tollgate_output::json::Record;

use super::cells::{self, Cell};
use super::counted;
use super::said::real;
use super::split::{Line, Split};
use crate::compare::columns::{self, Compared, Sides};
use crate::comparison::Comparison;
use crate::session::Session;
use crate::summary::Figures;
use crate::trace::blame::field;

/// The document.
#[derive(Serialize)]
pub struct Document<'a> {
    session: &'a RunId,
    label: Option<&'a Label>,
    commands: Vec<Executed<'a>>,
    comparison: Rows<'a>,
}

/// A command in an environment.
#[derive(Serialize)]
struct Executed<'a> {
    /// Of tables and sentences: `A`, or `A in host`.
    letter: String,
    command: &'a str,
    name: Option<&'a str>,
    parameters: &'a std::collections::BTreeMap<String, String>,
    shell: Option<&'a str>,
    environment: &'a str,
    run: &'a RunId,
    file: Option<&'a Path>,
    executions: usize,
    median_s: Option<f64>,
    ci_low_s: Option<f64>,
    ci_high_s: Option<f64>,
    min_s: Option<f64>,
    max_s: Option<f64>,
    user_s: Option<f64>,
    sys_s: Option<f64>,
    memory_bytes: Option<f64>,
    faults: Option<f64>,
    /// Medians of the executions that were traced.
    traced: Option<OfTrace>,
    why_not_traced: Option<&'a str>,
    /// The median time of what surrounds the command, where it was measured.
    start_s: Option<f64>,
    /// Whether that was subtracted.
    is_corrected: bool,
    failed: &'a [tollgate_model::versus::Failed],
    cold: Option<&'a tollgate_model::versus::Cold>,
    notes: Vec<&'a str>,
    times_s: Vec<f64>,
    /// Counts of instructions and what is counted with them, where the command is counted and not timed.
    counted: Option<Value>,
}

/// Where the real time of the traced executions went.
#[derive(Serialize)]
struct OfTrace {
    executions: usize,
    backend: Backend,
    real_s: Option<f64>,
    #[serde(flatten)]
    parts: Map<String, Value>,
    calls: Option<f64>,
}

#[derive(Serialize)]
struct Rows<'a> {
    reference: Option<&'a str>,
    rows: Vec<Row<'a>>,
}

/// A command compared with the first.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    compared: Record,
    command: &'a str,
    environment: &'a str,
    /// The same of its other figures, each in its unit.
    others: Vec<Record>,
    split: Option<Value>,
}

impl<'s> Document<'s> {
    /// The document, with the files in which the runs are kept, in the order of the session; fewer where they are not kept.
    pub fn of(session: &'s Session<'s>, kept: &'s [PathBuf]) -> Self {
        let cells = cells::all(session);
        let files = kept.iter().map(|file| Some(file.as_path())).chain(std::iter::repeat(None));
        let others = cells.iter().skip(1).zip(&session.comparisons);
        let rows = others.filter_map(|(cell, comparison)| Some(Row::of(cells.first()?, cell, comparison)));
        Self {
            session: session.id,
            label: session.members.first().and_then(|member| member.summary.run.label.as_ref()),
            comparison: Rows {
                reference: cells
                    .first()
                    .map(|cell| cell.member.part.command.as_deref().map_or("", Command::shown)),
                rows: rows.collect(),
            },
            commands: cells.iter().zip(files).map(|(cell, file)| Executed::of(cell, file)).collect(),
        }
    }
}

impl<'s> Executed<'s> {
    fn of(cell: &Cell<'s, 's>, file: Option<&'s Path>) -> Self {
        let figures = |case: &str| cell.figures(case);
        let (command, run) = (cell.command, cell.member.summary.run);
        let real = figures(REAL);
        let interval = real.and_then(|real| real.estimate.interval);
        let median = |case: &str| figures(case).map(|figures| figures.estimate.median);
        let start = run.measurement(&Case::plain(own::START)).and_then(|start| start.outcome.measured());
        let traced = cell.traced();
        Self {
            letter: cell.label.clone(),
            command: &command.line,
            name: command.name.as_deref(),
            parameters: &command.parameters,
            shell: command.shell.as_deref(),
            environment: &cell.member.part.environment,
            run: &run.id,
            file,
            executions: cell.executions(),
            median_s: seconds(median(REAL)),
            ci_low_s: seconds(interval.map(|interval| interval.low)),
            ci_high_s: seconds(interval.map(|interval| interval.high)),
            min_s: seconds(real.map(|real| real.estimate.min)),
            max_s: seconds(real.map(|real| real.estimate.max)),
            user_s: seconds(median(USER)),
            sys_s: seconds(median(SYS)),
            memory_bytes: median(MEMORY),
            faults: median(FAULTS),
            traced: OfTrace::of(traced),
            why_not_traced: cell.why_untraced(),
            start_s: seconds(start.and_then(|start| stats::median(&start.samples))),
            is_corrected: command.is_corrected,
            failed: &command.failed,
            cold: command.cold.as_ref(),
            notes: real.or_else(|| figures(INSTRUCTIONS)).map_or(Vec::new(), notes),
            times_s: real
                .map_or(Vec::new(), |real| real.measured.samples.iter().map(|ns| ns / 1e9).collect()),
            counted: counted::record(cell),
        }
    }
}

fn notes<'s>(real: &'s Figures<'_>) -> Vec<&'s str> {
    real.measured.notes.iter().map(String::as_str).collect()
}

impl OfTrace {
    fn of(traced: &[Traced]) -> Option<Self> {
        let accounts: Vec<Account> = traced.iter().map(Account::of).collect();
        let middle =
            |values: Vec<u64>| stats::median(&values.iter().map(|ns| *ns as f64).collect::<Vec<_>>());
        let has_idle = traced.iter().all(|traced| traced.idle.is_some());
        let parts = accounts.first()?.parts().into_iter().enumerate().map(|(at, (part, _))| {
            let name = field(part);
            let is_known = has_idle || !["disk", "runqueue", "sleep"].contains(&name);
            let median = seconds(middle(accounts.iter().map(|account| account.parts()[at].1).collect()));
            (format!("{name}_s"), json!(median.filter(|_| is_known)))
        });
        Some(Self {
            executions: traced.len(),
            backend: traced.first()?.backend,
            real_s: seconds(middle(accounts.iter().map(|account| account.real).collect())),
            parts: parts.collect(),
            calls: middle(traced.iter().map(Traced::count).collect()),
        })
    }
}

impl<'s> Row<'s> {
    /// The real time is the case of the row, in seconds as all of the document; instructions, where those are counted.
    fn of(base: &Cell<'s, 's>, cell: &Cell<'s, 's>, comparison: &'s Comparison<'s>) -> Self {
        let sides = Sides::named(comparison, [base, cell].map(|cell| cell.label.clone().into()));
        let compared = |row| Compared::of(comparison, row).between(&sides);
        let of_real = columns::columns().without(&["case", "unit"]);
        let of_others = columns::columns().without(&columns::SIDES);
        let is_other =
            |row: &&crate::comparison::Row| ![REAL, INSTRUCTIONS].contains(&row.case().benchmark.as_str());
        let others = comparison.rows.iter().filter(is_other);
        let in_instructions = counted::row(comparison);
        Self {
            compared: match in_instructions {
                Some(row) => Record::of(&of_real, &compared(Some(row))),
                None => Record::in_seconds(&of_real, &compared(real(comparison))),
            },
            command: cell.command.shown(),
            environment: &cell.member.part.environment,
            others: others.map(|row| Record::of(&of_others, &compared(Some(row)))).collect(),
            split: Split::of(comparison).as_ref().map(split),
        }
    }
}

/// What a difference consists of. The differences of the parts and their rest sum to `difference_s`, and so do those of the calls, of what
/// is beside them and of their rest.
pub(crate) fn split(split: &Split) -> Value {
    let line = |line: &Line| {
        let [base, other, difference] =
            [line.sides[0], line.sides[1], line.difference].map(|ns| ns as f64 / 1e9);
        json!({ "base_s": base, "other_s": other, "difference_s": difference })
    };
    let with = |name: &str, value: Value, of: &Line| {
        let mut object = line(of);
        object[name] = value;
        object
    };
    let parts = split.parts.iter().map(|(part, of)| with("part", json!(field(*part)), of));
    let calls = split.calls.iter().map(|call| {
        let mut object = with("name", json!(call.name), &call.line);
        object["base_count"] = json!(call.counts[0]);
        object["other_count"] = json!(call.counts[1]);
        object
    });
    json!({
        "difference_s": split.timed.difference as f64 / 1e9,
        "pairs": split.pairs,
        "backends": split.backends,
        "exact": split.is_exact,
        "traced": line(&split.traced),
        "parts": parts.collect::<Vec<Value>>(),
        "rest_of_parts_s": split.rest_of_parts() as f64 / 1e9,
        "calls": calls.collect::<Vec<Value>>(),
        "outside": line(&split.outside),
        "runqueue": line(&split.runqueue),
        "unaccounted": line(&split.unaccounted),
        "rest_of_calls_s": split.rest_of_calls() as f64 / 1e9,
    })
}

fn seconds(ns: Option<f64>) -> Option<f64> {
    ns.map(|ns| ns / 1e9)
}
