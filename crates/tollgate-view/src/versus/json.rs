//! Compared commands as JSON. Times are in seconds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tollgate_engine::session::FunctionCount;
use tollgate_model::traced::Backend;
use tollgate_model::traced::blame::Part;
use tollgate_model::versus::{Command, FAULTS, INSTRUCTIONS, MEMORY, REAL, SYS, USER};
use tollgate_model::{Case, Label, RunId, Traced, own, stats};
use tollgate_output::json::Record;

use super::beside;
use super::cells::{self, Cell};
use super::counted::{self, CountRecord};
use super::record::SplitRecord;
use super::said::real;
use super::split::{Middle, Split};
use crate::compare::columns::{self, Compared, Sides};
use crate::comparison::Comparison;
use crate::session::Session;
use crate::summary::Figures;

/// The document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedCommands"))]
pub struct VersusDocument<'a> {
    /// The id of the session.
    session: &'a RunId,
    /// The user's name for it, or None.
    label: Option<&'a Label>,
    /// Each command in each environment.
    commands: Vec<Executed<'a>>,
    /// Each other one compared with the first.
    comparison: Rows<'a>,
    /// With --counts, the same commands counted in a guest; otherwise None.
    counts: Option<CountsBeside>,
}

/// The counts of commands that were timed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CountsBeside {
    /// The fields of `counted` for each command, in the order of `commands`.
    commands: Vec<Option<BTreeMap<String, CountRecord>>>,
    /// The functions of each that the instructions of one execution are in.
    functions: Vec<Vec<counted::FunctionRecord>>,
    /// For each other command, what its counts and its time mean together.
    sentences: Vec<String>,
}

/// A command in an environment.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedCommand"))]
struct Executed<'a> {
    /// Its name in tables and sentences: `A`; with several environments `A in host`.
    letter: String,
    /// The command line.
    command: &'a str,
    /// The user's name for it, or None.
    name: Option<&'a str>,
    /// The values of its parameters by name.
    parameters: &'a BTreeMap<String, String>,
    /// The shell that executed it; absent without one.
    shell: Option<&'a str>,
    /// Environment of its execution.
    environment: &'a str,
    /// The id of its run.
    run: &'a RunId,
    /// The file in which that is kept, or None.
    file: Option<&'a Path>,
    /// Timed executions, or those whose [instructions were counted](exact-commands.md) after the first.
    executions: usize,
    /// Median real time; times are None if instructions were counted.
    median_s: Option<f64>,
    /// Lower end of its interval.
    ci_low_s: Option<f64>,
    /// Upper end.
    ci_high_s: Option<f64>,
    /// The smallest.
    min_s: Option<f64>,
    /// The largest.
    max_s: Option<f64>,
    /// The median time in user mode; None if it is not known.
    user_s: Option<f64>,
    /// The median time in the kernel; None if it is not known.
    sys_s: Option<f64>,
    /// The median of the largest resident set; None if it is not known.
    memory_bytes: Option<f64>,
    /// The median number of page faults; None if it is not known.
    faults: Option<f64>,
    /// Medians of the executions that were traced; absent without any.
    traced: Option<OfTrace>,
    /// Why there are none.
    why_not_traced: Option<&'a str>,
    /// The median time of an empty command of the same shell, or of a process that ends at once.
    start_s: Option<f64>,
    /// Whether that is subtracted from all times.
    is_corrected: bool,
    /// Timed executions that did not exit with status 0.
    failed: &'a [tollgate_model::versus::Failed],
    /// If the page cache was dropped before each execution, what was left of it; otherwise None.
    cold: Option<&'a tollgate_model::versus::Cold>,
    /// Sentences.
    notes: Vec<&'a str>,
    /// The time of each execution, in their order.
    times_s: Vec<f64>,
    /// For a command whose [instructions were counted](exact-commands.md): `instructions`, `user_instructions`,
    /// `kernel_instructions`, `rep_iterations`, `first_instructions`, `calls`, `faults` and `ticks`; otherwise None.
    counted: Option<BTreeMap<String, CountRecord>>,
    /// The functions that the instructions of the second execution are in, the largest first, with `--by function`; otherwise
    /// None.
    functions: Option<Vec<counted::FunctionRecord>>,
}

/// The real time of the traced executions, by part.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TracedExecutions"))]
struct OfTrace {
    /// Number of them.
    executions: usize,
    /// Their tracer.
    backend: Backend,
    /// Real time.
    real_s: Option<f64>,
    #[serde(flatten)]
    parts: PartsOfReal,
    /// The number of system calls.
    calls: Option<f64>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rows<'a> {
    /// The first command.
    reference: Option<&'a str>,
    /// One object for each other command.
    rows: Vec<Row<'a>>,
}

/// A command compared with the first.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RowOfCommands"))]
struct Row<'a> {
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "columns::schema::FiguresOfCommands"))]
    compared: Record,
    /// The other command.
    command: &'a str,
    /// Environment of its execution.
    environment: &'a str,
    /// Likewise user and sys time, memory and page faults, each with its case and in its unit, without the two sides.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<columns::schema::OtherFigures>"))]
    others: Vec<Record>,
    /// The parts of `adds_s`, or None.
    split: Option<SplitRecord>,
}

/// The parts of the real time.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PartsOfReal {
    /// Time in user mode.
    user_s: Option<f64>,
    /// Time in the kernel.
    sys_s: Option<f64>,
    /// Waiting for a disk; null if the backend does not know it, like the next two.
    disk_s: Option<f64>,
    /// Ready to run, without a processor.
    runqueue_s: Option<f64>,
    /// All slept.
    sleep_s: Option<f64>,
    /// Before the first event and after the last.
    unaccounted_s: Option<f64>,
}

impl<'s> VersusDocument<'s> {
    /// The document, with the files in which the runs are kept, in the order of the session; fewer if they are not kept.
    pub fn new(session: &'s Session<'s>, kept: &'s [PathBuf]) -> Self {
        let cells = cells::all(session);
        let files = kept.iter().map(|file| Some(file.as_path())).chain(std::iter::repeat(None));
        let others = cells.iter().skip(1).zip(&session.comparisons);
        let rows = others.filter_map(|(cell, comparison)| Some(Row::new(cells.first()?, cell, comparison)));
        Self {
            session: session.id,
            label: session.members.first().and_then(|member| member.summary.run.label.as_ref()),
            comparison: Rows {
                reference: cells
                    .first()
                    .map(|cell| cell.member.part.command.as_deref().map_or("", Command::shown)),
                rows: rows.collect(),
            },
            counts: None,
            commands: cells.iter().zip(files).map(|(cell, file)| Executed::new(cell, file)).collect(),
        }
    }
}

impl VersusDocument<'_> {
    /// With the counts of the same commands, and the functions of each.
    pub fn with_counts(self, timed: &Session, counts: &Session, lists: &[Vec<FunctionCount>]) -> Self {
        let counts = CountsBeside {
            commands: cells::all(counts).iter().map(counted::record).collect(),
            functions: lists.iter().map(|list| counted::functions_record(list)).collect(),
            sentences: beside::sentences(timed, counts),
        };
        Self { counts: Some(counts), ..self }
    }

    /// With the functions of each command, if there is a list for each.
    pub fn with_functions(mut self, lists: &[Vec<FunctionCount>]) -> Self {
        if lists.len() == self.commands.len() {
            for (command, list) in self.commands.iter_mut().zip(lists) {
                command.functions = Some(counted::functions_record(list));
            }
        }
        self
    }
}

impl<'s> Executed<'s> {
    fn new(cell: &Cell<'s, 's>, file: Option<&'s Path>) -> Self {
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
            traced: OfTrace::from_traced(traced),
            why_not_traced: cell.why_untraced(),
            start_s: seconds(start.and_then(|start| stats::median(&start.samples))),
            is_corrected: command.is_corrected,
            failed: &command.failed,
            cold: command.cold.as_ref(),
            notes: real.or_else(|| figures(INSTRUCTIONS)).map_or(Vec::new(), notes),
            times_s: real
                .map_or(Vec::new(), |real| real.measured.samples.iter().map(|ns| ns / 1e9).collect()),
            counted: counted::record(cell),
            functions: None,
        }
    }
}

fn notes<'s>(real: &'s Figures<'_>) -> Vec<&'s str> {
    real.measured.notes.iter().map(String::as_str).collect()
}

impl OfTrace {
    fn from_traced(traced: &[Traced]) -> Option<Self> {
        let middle = Middle::of(traced)?;
        let part = |part: Part| seconds(middle.part(part));
        Some(Self {
            executions: traced.len(),
            backend: traced.first()?.backend,
            real_s: seconds(Some(middle.real)),
            parts: PartsOfReal {
                user_s: part(Part::User),
                sys_s: part(Part::Sys),
                disk_s: part(Part::Disk),
                runqueue_s: part(Part::Runqueue),
                sleep_s: part(Part::Sleep),
                unaccounted_s: part(Part::Unaccounted),
            },
            calls: Some(middle.calls),
        })
    }
}

impl<'s> Row<'s> {
    /// The real time is the case of the row, in seconds like everything in the document; instructions if those are counted.
    fn new(base: &Cell<'s, 's>, cell: &Cell<'s, 's>, comparison: &'s Comparison<'s>) -> Self {
        let sides = Sides::named(comparison, [base, cell].map(|cell| cell.label.clone().into()));
        let compared = |row| Compared::new(comparison, row).between(&sides);
        let of_real = columns::columns().without(&["case", "unit"]);
        let of_others = columns::of_others();
        let is_other = |row: &&crate::comparison::ComparedRow| {
            ![REAL, INSTRUCTIONS].contains(&row.case().benchmark.as_str())
        };
        let others = comparison.rows.iter().filter(is_other);
        let in_instructions = counted::row(comparison);
        Self {
            compared: match in_instructions {
                Some(row) => Record::from_row(&of_real, &compared(Some(row))),
                None => Record::in_seconds(&of_real, &compared(real(comparison))),
            },
            command: cell.command.shown(),
            environment: &cell.member.part.environment,
            others: others.map(|row| Record::from_row(&of_others, &compared(Some(row)))).collect(),
            split: Split::of(comparison).as_ref().map(SplitRecord::from_split),
        }
    }
}

fn seconds(ns: Option<f64>) -> Option<f64> {
    ns.map(|ns| ns / 1e9)
}
