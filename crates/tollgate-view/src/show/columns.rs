//! The fields of a case of a run, each declared here once: the first screen's rows, `show`, `explain`, the page, Markdown, JSON
//! and CSV take them from here, with this name and precision. JSON and CSV have all of them unless stated; a table for people has
//! those of its [`RowKind`].

use std::borrow::Cow;

use serde_json::Value as Raw;
use tollgate_model::compare::Paired;
use tollgate_model::estimate::Estimate;
use tollgate_model::measurement::Status;
use tollgate_model::{Measured, Run, Unit};
use tollgate_output::column::{self, Column, Columns};
use tollgate_output::figures;
use tollgate_output::value::{Tone, Value};

use crate::export::environment::{KeyFacts, machine};
use crate::export::metric::{Metric, name_of};
use crate::export::session::InSession;
use crate::export::{short, word};
use crate::facts;
use crate::summary::{CaseRow, Figures, State, Summary};
use crate::{compare, counts};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) factor: f64,
    pub(crate) unit: Unit,
}

pub(crate) struct Origin {
    machine: Option<String>,
    key_facts: KeyFacts,
    session: Option<InSession>,
}

impl Origin {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            machine: machine(&run.facts),
            key_facts: KeyFacts::of(&run.facts),
            session: InSession::of(run),
        }
    }
}

pub(crate) struct Shown<'a> {
    summary: &'a Summary<'a>,
    row: &'a CaseRow<'a>,
    metric: &'static str,
    figures: Option<&'a Figures<'a>>,
    name: Option<Cow<'a, str>>,
    scale: Option<Scale>,
    origin: Option<&'a Origin>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(summary: &'a Summary<'a>, row: &'a CaseRow<'a>) -> Self {
        let figures = row.figures();
        Self { summary, row, metric: name_of(figures), figures, name: None, scale: None, origin: None }
    }

    pub(crate) fn of_metric(summary: &'a Summary<'a>, metric: &Metric<'a>, origin: &'a Origin) -> Self {
        let Metric { row, name, figures, .. } = *metric;
        Self { metric: name, figures, origin: Some(origin), ..Self::new(summary, row) }
    }

    pub(crate) fn named(self, name: impl Into<Cow<'a, str>>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    pub(crate) fn on(self, scale: Scale) -> Self {
        Self { scale: Some(scale), ..self }
    }

    /// In cycles of the time-stamp counter, if that was the clock.
    pub(crate) fn in_cycles(self) -> Self {
        let hz =
            self.figures.filter(|figures| is_in_tsc(figures, self.summary)).map(|it| it.measured.clock_hz);
        match hz {
            Some(hz) => self.on(Scale { factor: hz as f64 / 1e9, unit: Unit::Cycles }),
            None => self,
        }
    }

    fn measured(&self) -> Option<&'a Measured> {
        self.figures.map(|figures| &*figures.measured)
    }

    fn estimate(&self) -> Option<&'a Estimate> {
        self.figures.map(|figures| &figures.estimate)
    }

    fn paired(&self) -> Option<&'a Paired> {
        self.figures?.paired.as_ref()
    }

    fn result(&self) -> Option<&'a Figures<'a>> {
        self.figures.filter(|figures| figures.is_estimate() && figures.below.is_none())
    }

    fn in_unit(&self, value: f64) -> String {
        let unit = self.measured().map_or(Unit::Nanoseconds, |measured| measured.unit);
        let Scale { factor, unit } = self.scale.unwrap_or(Scale { factor: 1.0, unit });
        figures::estimate(value * factor, unit)
    }

    /// The median for people: a bound if it is below the detection limit, the status if there is none.
    fn reading(&self, shown: impl Fn(f64) -> String) -> String {
        match self.figures {
            None => self.row.status().to_owned(),
            Some(figures) if !figures.is_estimate() => "emulated".to_owned(),
            Some(Figures { below: Some(limit), .. }) => format!("< {}", self.in_unit(*limit)),
            Some(figures) => shown(figures.estimate.median),
        }
    }

    fn figure(&self, of: impl Fn(&Figures) -> Option<f64>) -> Option<Value> {
        let value = of(self.figures?)?;
        let words = self.result().map(|_| self.in_unit(value));
        Some(Value::figure(value, |_| String::new()).in_words(Some(words.unwrap_or_default())))
    }

    /// Likewise for single operations: a sample that is the mean of several does not describe one.
    fn of_single(&self, of: impl Fn(&Estimate) -> Option<f64>) -> Option<Value> {
        let value = self.figure(|figures| of(&figures.estimate))?;
        let is_single = self.measured()?.ops_per_sample == 1;
        Some(if is_single { value } else { value.in_words(Some(String::new())) })
    }

    fn of_run(&self) -> Option<Value> {
        let (run, of) = (self.summary.run, self.origin?);
        let texts = [
            Some(run.id.to_string()),
            run.label.as_ref().map(ToString::to_string),
            of.machine.clone(),
            Some(word(&run.environment)),
            Some(run.started.clone()),
            of.key_facts.kernel.clone(),
            of.key_facts.cpu.clone(),
            Some(self.row.case.suite().to_owned()),
        ];
        Some(Value::new(texts.map(|text| text.as_deref().map(short).into()), run.id.to_string()))
    }

    fn of_session(&self) -> Option<Value> {
        let of = self.origin?.session.as_ref()?;
        let raw = [
            of.session.as_str().into(),
            of.session_environment.as_str().into(),
            of.session_place.into(),
            of.session_paired.into(),
            of.session_knob.clone().into(),
            of.session_command.clone().into(),
        ];
        Some(Value::new(raw, of.session.as_str()))
    }
}

fn is_in_tsc(figures: &Figures, summary: &Summary) -> bool {
    figures.measured.unit == Unit::Nanoseconds && facts::clock_is_tsc(&summary.run.facts)
}

fn flag(flag: bool) -> Value {
    Value::new([flag.into()], if flag { "yes" } else { "no" })
}

type Field<'a> = Column<Shown<'a>>;

/// All columns. Unknown values are blank for people.
pub(crate) fn columns<'a>() -> Columns<Shown<'a>> {
    Columns::new([
        Field::new("run", "run", "the run, where it was made, and the suite", Shown::of_run)
            .of_words()
            .with_fields(OF_RUN),
        Field::new(
            "case",
            "benchmark",
            "the case: its benchmark, such as `entry/seccomp`, and its parameters, such \
             as `{\"instructions\": 32}`",
            |it| {
                let case = compare::columns::case(it.row.case);
                let words = it.name.as_deref().map(str::to_owned);
                let case = if words.is_some() { case.in_words(words) } else { case };
                Some(if it.row.is_noisy() { case.with_tone(Tone::Flagged) } else { case })
            },
        )
        .of_words()
        .always()
        .with_kinds(&[column::ValueKind::Text, column::ValueKind::Params])
        .with_fields(&["benchmark", "params"]),
        Field::new("metric", "metric", "the quantity, or the part of the time of a traced command", |it| {
            Some(Value::text(it.metric))
        })
        .of_words(),
        Field::new(
            "status",
            "status",
            "`measured`, `skipped` (it cannot exist in this environment), `refused` (the \
             kernel refuses the call with these arguments), `not measured` (any figure \
             would be wrong) or `failed`",
            |it| Some(Value::text(it.row.status())),
        )
        .of_words()
        .always(),
        Field::new(
            "unit",
            "unit",
            "the unit of all figures: `ns`, `cycles`, `bytes`, `instructions`, `ns/line`",
            |it| Some(Value::text(it.measured()?.unit.to_string())),
        )
        .of_words(),
        Field::new(
            "count",
            "instructions",
            "the median of a count, whose unit stands above the table",
            |it| {
                let unit = it.measured().map_or(Unit::Instructions, |measured| measured.unit);
                Some(Value::of_words(it.reading(|median| counts::count(median, unit))))
            },
        )
        .with_fields(&[]),
        Field::new("batches", "batches", "whether every batch has the same count, or their range", |it| {
            Some(Value::of_words(counts::batches(it.result()?)?))
        })
        .with_fields(&[]),
        Field::new(
            "median",
            "median",
            "the median of the processes' medians; with fewer than six processes the \
             median of all samples",
            |it| {
                let words = it.reading(|median| it.in_unit(median));
                let median = it.estimate().map(|estimate| Raw::from(estimate.median));
                Some(Value::new(median, words))
            },
        )
        .in_unit(),
        Field::new(
            "median_cycles",
            "cycles",
            "the same in TSC cycles; null unless the clock was the TSC and the unit is `ns`",
            |it| {
                let figures = it.figures.filter(|figures| is_in_tsc(figures, it.summary))?;
                let cycles = figures.estimate.median * figures.measured.clock_hz as f64 / 1e9;
                Some(Value::figure(cycles, |cycles| figures::estimate(cycles, Unit::Cycles)))
            },
        ),
        Field::new("ci", "95 % CI", "the 95 % CI of the median", |it| {
            let Estimate { median, interval, .. } = it.estimate()?;
            let ends = interval.map(|interval| [interval.low, interval.high])?;
            let unit = it.measured()?.unit;
            let Scale { factor, unit } = it.scale.unwrap_or(Scale { factor: 1.0, unit });
            let words =
                |[low, high]: [f64; 2]| figures::range(low * factor, high * factor, median * factor, unit);
            let words = it.result().map(|_| words(ends)).unwrap_or_default();
            Some(Value::ends(ends, |_| words))
        })
        .in_unit()
        .with_fields(&["ci_low", "ci_high"]),
        Field::new(
            "tasks",
            "× 1 task",
            "the latency with several threads or processes over that of one alone",
            |it| {
                let paired = it.result()?.paired.as_ref()?;
                let is_scaled = it.row.case.params.contains_key("tasks")
                    && paired.baseline.benchmark == it.row.case.benchmark;
                Some(Value::of_words(is_scaled.then(|| figures::multiple(paired.ratio))?))
            },
        )
        .with_fields(&[]),
        Field::new(
            "min",
            "min",
            "the smallest sample; null if a difference of two times is not above zero, \
             since it is the error of both",
            |it| it.figure(|figures| figures.min()),
        )
        .in_unit(),
        Field::new("samples", "samples", "the number of kept samples", |it| {
            Some(Value::number(it.estimate().map_or(0, |estimate| estimate.samples as u64)))
        })
        .always()
        .with_kinds(&[column::ValueKind::Whole]),
        Field::new(
            "discarded",
            "discarded",
            "batches that were timed and discarded because the thread was preempted or \
             migrated; for blocking calls, because other tasks ran on the processor",
            |it| Some(Value::number(it.measured().map_or(0, |measured| measured.discarded))),
        )
        .always()
        .with_kinds(&[column::ValueKind::Whole]),
        Field::new(
            "detection_limit",
            "detection limit",
            "the upper bound of a value below the detection limit, else null; if it is \
             not null, `median`, `ci_low`, `ci_high` and `min` are not significant",
            |it| Some(Value::figure(it.figures?.below?, |limit| it.in_unit(limit))),
        )
        .in_unit(),
        Field::new(
            "multiple",
            "× syscall",
            "`median` over that of `entry/syscall` in this run; null if either has no result",
            |it| {
                let multiple = it.figures?.multiple?;
                let words = it.result().map(|_| figures::multiple(multiple)).unwrap_or_default();
                Some(Value::figure(multiple, |_| words))
            },
        )
        .with_fields(&["multiple_of_syscall"]),
        Field::new(
            "spread",
            "range across processes",
            "range across processes: (largest - smallest of `processes`) / median; null \
             if the median is 0",
            |it| {
                let spread = it.estimate()?.spread;
                (spread < f64::MAX).then_some(())?;
                // One process has nothing to differ from.
                let is_range = it.measured()?.processes.len() > 1 && !it.figures?.is_count();
                let words = if is_range { figures::percent(spread) } else { String::new() };
                Some(Value::figure(spread, |_| words))
            },
        ),
        Field::new("baseline", "baseline", "the benchmark that it is compared with", |it| {
            Some(Value::text(it.paired()?.baseline.benchmark.as_str()))
        })
        .of_words(),
        Field::new("ratio", "ratio", "it over the baseline", |it| {
            Some(Value::figure(it.paired()?.ratio, figures::ratio))
        }),
        Field::new("adds", "adds", "it less the baseline", |it| {
            let unit = it.measured()?.unit;
            Some(Value::figure(it.paired()?.adds, |adds| figures::difference(adds, unit)))
        })
        .in_unit(),
        Field::new("verdict", "verdict", "compared with the baseline", |it| {
            Some(Value::text(it.paired()?.verdict.to_string()))
        })
        .of_words(),
        Field::new(
            "noisy",
            "noisy",
            "whether it is noisy (a table marks it with `~` if a sentence rests on it): \
             more than 5 % discarded, an interval wider than ±10 %, or fewer than six \
             processes; a count of instructions never is",
            |it| Some(flag(it.row.is_noisy())),
        )
        .always()
        .with_kinds(&[column::ValueKind::Flag]),
        Field::new("why", "why", "why there are no figures", |it| Some(Value::text(short(it.row.why()?))))
            .of_words(),
        Field::new("skipped", "why", "why it was skipped", |it| {
            Some(Value::text(it.row.why().filter(|_| !is_failed(it.row))?))
        })
        .of_words()
        .with_fields(&["why"]),
        Field::new("error", "error", "why it failed", |it| {
            Some(Value::text(it.row.why().filter(|_| is_failed(it.row))?))
        })
        .of_words(),
        Field::new("notes", "notes", "further notes on the figures", |it| {
            let notes = it.measured().map_or(&[][..], |measured| measured.notes.as_slice());
            Some(Value::names(notes.iter().map(String::as_str)))
        })
        .of_words()
        .always()
        .with_kinds(&[column::ValueKind::Texts]),
        Field::new("counted", "counted", "events counted in the kept batches", |it| {
            let counted = it.measured()?.counted.as_ref()?;
            Some(Value::text(format!("{} {}", counted.events, counted.what)))
        })
        .of_words(),
        Field::new(
            "provenance",
            "provenance",
            "what executed the code: `hardware`, `kvm`, `kvm-emulated`, `qemu-tcg`, \
             `qemu-icount` (its clock advances one tick per instruction), `interpreter`; \
             times of the last four are not results, counts of instructions are",
            |it| Some(Value::text(word(&it.measured()?.provenance))),
        )
        .of_words(),
        Field::new(
            "ops_per_sample",
            "operations in each",
            "operations in a batch, whose mean is a sample",
            |it| Some(Value::number(it.measured()?.ops_per_sample)),
        )
        .with_kinds(&[column::ValueKind::Whole]),
        Field::new("bytes_per_op", "bytes", "bytes that one operation moves; null if it moves none", |it| {
            Some(Value::number(it.measured()?.bytes_per_op?))
        })
        .with_kinds(&[column::ValueKind::Whole]),
        Field::new("group", "group", "cases of one group shared their rounds", |it| {
            Some(Value::text(it.measured()?.group.as_str()))
        })
        .of_words(),
        Field::new(
            "p99",
            "p99",
            "99 % of the samples are at or below it; a percentile of single operations if \
             `ops_per_sample` is 1",
            |it| it.of_single(|estimate| estimate.p99),
        )
        .in_unit(),
        Field::new("max", "max", "the largest sample; of single operations if `ops_per_sample` is 1", |it| {
            it.of_single(|estimate| Some(estimate.max))
        })
        .in_unit(),
        Field::new("bytes_per_second", "bytes/s", "the throughput at the median", |it| {
            let rate = it.figures?.bytes_per_second()?;
            let words = it.result().map(|_| figures::bytes(rate)).unwrap_or_default();
            Some(Value::figure(rate, |_| words))
        }),
        Field::new(
            "exact",
            "exact",
            "for a count of instructions, or a size beside such counts, whether every \
             kept batch has it; null for times",
            |it| Some(flag(it.figures.filter(|figures| figures.is_count())?.is_exact())),
        )
        .with_kinds(&[column::ValueKind::Flag]),
        Field::new("session", "session", "the part of the run in a session", Shown::of_session)
            .with_kinds(&[
                column::ValueKind::Text,
                column::ValueKind::Text,
                column::ValueKind::Whole,
                column::ValueKind::Flag,
                column::ValueKind::Text,
                column::ValueKind::Text,
            ])
            .with_fields(OF_SESSION),
    ])
    .or_blank()
}

fn is_failed(row: &CaseRow) -> bool {
    matches!(row.state, State::Without(Status::Failed, _))
}

const OF_RUN: &[&str] = &["run", "label", "machine", "environment", "started", "kernel", "cpu", "suite"];
const OF_SESSION: &[&str] =
    &["session", "session_environment", "session_place", "session_paired", "session_knob", "session_command"];

/// Columns that an object of JSON has in another form: the comparison with the baseline and the counted events are objects there.
const OF_TABLES: &[&str] = &["metric", "why", "baseline", "ratio", "adds", "verdict", "counted"];
const OF_OBJECTS: &[&str] = &["skipped", "error"];

pub(crate) fn of_object<'a>() -> Columns<Shown<'a>> {
    columns().without(&[OF_TABLES, &["run", "session"]].concat())
}

#[cfg(feature = "schema")]
pub(crate) mod schema {
    tollgate_output::described!(
        /// A case with its figures.
        CaseFigures,
        tollgate_output::json::schema(&super::of_object())
    );
}

pub(crate) fn of_run<'a>() -> Columns<Shown<'a>> {
    columns().without(&[OF_OBJECTS, &["run", "session", "metric"]].concat())
}

pub(crate) fn of_runs<'a>(has_session: bool) -> Columns<Shown<'a>> {
    columns().without(&[OF_OBJECTS, if has_session { &[] } else { &["session"] }].concat())
}

/// The fields that the rows of a table for people show beside their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The interval and the minimum.
    Level,
    /// Also the multiple of the plain call, if that was measured.
    Multiple,
    /// The distribution of single operations, for suites whose operations wait for storage.
    Distribution,
    /// Counts of instructions, and whether they are the same in every batch.
    Counts,
}

/// Whether its samples are single operations that move bytes.
fn is_single(figures: &Figures) -> bool {
    figures.measured.bytes_per_op.is_some() && figures.measured.ops_per_sample == 1
}

impl RowKind {
    pub(crate) fn from_rows<'a, 'b: 'a>(rows: impl IntoIterator<Item = &'a CaseRow<'b>> + Clone) -> Self {
        let measured = || rows.clone().into_iter().filter_map(CaseRow::figures);
        if measured().next().is_some() && measured().all(Figures::is_count) {
            Self::Counts
        } else if measured().any(is_single) {
            Self::Distribution
        } else if measured().any(|figures| figures.multiple.is_some()) {
            Self::Multiple
        } else {
            Self::Level
        }
    }

    /// The keys of its columns; a narrow table leaves out the last.
    pub(crate) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Level => &["median", "ci", "min"],
            Self::Multiple => &["median", "ci", "min", "multiple"],
            Self::Distribution => &["median", "ci", "p99", "max"],
            Self::Counts => &["count", "batches", "multiple"],
        }
    }

    pub(crate) fn columns<'a>(self) -> Columns<Shown<'a>> {
        columns().arranged(self.keys())
    }

    pub(crate) fn with_names<'a>(self) -> Columns<Shown<'a>> {
        columns().arranged(&[&["case"], self.keys()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_chosen_is_that_of_one_column() {
        let columns = columns();
        let all: Vec<&str> = columns.iter().map(|column| column.key).collect();
        let kinds =
            [RowKind::Level, RowKind::Multiple, RowKind::Distribution, RowKind::Counts].map(RowKind::keys);
        let chosen = kinds.into_iter().chain([OF_TABLES, OF_OBJECTS]).flatten();
        for key in chosen {
            assert_eq!(all.iter().filter(|known| *known == key).count(), 1, "{key}");
        }
    }
}
