//! The fields of a compared row, each declared here once: `compare`, sessions, `versus`, `report` and `explain` take them from
//! here, in this order, with this name and precision. A document has all of them; a table for people has those whose keys it
//! chooses, below.

use std::borrow::Cow;

use tollgate_model::compare::{ComparedCase, Verdict};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, RunId};
use tollgate_output::column::{Column, Columns, ValueKind};
use tollgate_output::figures;
use tollgate_output::value::{Tone, Value};

use super::need::{self, Need};
use crate::comparison::{self, ComparedRow, Comparison};
use crate::counts;

/// The run, its baseline, and their names in the output.
#[derive(Debug, Clone)]
pub struct Sides<'a> {
    runs: [&'a RunId; 2],
    names: [Cow<'a, str>; 2],
}

impl<'a> Sides<'a> {
    /// By their labels or ids; in a session by their environments or commands.
    pub fn of(comparison: &Comparison<'a>) -> Self {
        Self::named(comparison, [comparison.base, comparison.other].map(|run| comparison::name(run).into()))
    }

    /// By the names that the base and the other have among others.
    pub fn named(comparison: &Comparison<'a>, names: [Cow<'a, str>; 2]) -> Self {
        Self { runs: [comparison.base, comparison.other].map(|run| &run.id), names }
    }
}

/// A row with its context.
pub struct Compared<'a> {
    comparison: &'a Comparison<'a>,
    row: Option<&'a ComparedRow<'a>>,
    sides: Option<&'a Sides<'a>>,
    numbers: Option<String>,
    name: Option<&'static str>,
}

impl<'a> Compared<'a> {
    /// A row of a comparison, or what is known where it has no such row.
    pub fn new(comparison: &'a Comparison<'a>, row: impl Into<Option<&'a ComparedRow<'a>>>) -> Self {
        Self { comparison, row: row.into(), sides: None, numbers: None, name: None }
    }

    /// With its sides.
    pub fn between(self, sides: &'a Sides<'a>) -> Self {
        Self { sides: Some(sides), ..self }
    }

    /// With the numbers of its causes.
    pub fn numbered(self, numbers: String) -> Self {
        Self { numbers: Some(numbers), ..self }
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// A field in words, for a sentence. `None` if it is unknown or does not apply.
    pub fn words(&self, key: &str) -> Option<String> {
        columns().value(key, self).known()
    }

    fn is_counted(&self) -> bool {
        self.row.is_some_and(ComparedRow::is_count) && self.comparison.is_counted()
    }

    fn side(&self, at: usize) -> Option<Value> {
        let sides = self.sides?;
        let (run, name) = (sides.runs[at], &*sides.names[at]);
        Some(Value::new([run.as_ref().into(), name.into()], name))
    }

    fn estimate(&self, of: fn(&ComparedRow) -> Option<f64>) -> Option<Value> {
        let row = self.row?;
        let unit = row.base.unit;
        Some(Value::figure(of(row)?, |value| {
            if self.is_counted() { counts::count(value, unit) } else { figures::estimate(value, unit) }
        }))
    }

    fn cpu(&self, of: impl Fn(&ComparedRow, &ComparedCase) -> Option<Value>) -> Option<Value> {
        let row = self.row?;
        of(row, row.result.processor.as_deref()?)
    }

    fn adds(&self) -> Option<Value> {
        let row = self.row?;
        let adds = Value::figure(row.adds()?, |adds| figures::difference(adds, row.base.unit));
        Some(if self.is_counted() { adds.in_words(counts::adds(row)) } else { adds })
    }
}

/// A case by its name; a long name has only the values of its parameters: `entry/seccomp{256}`.
pub(crate) fn case(case: &Case) -> Value {
    let params = serde_json::to_value(&case.params).unwrap_or_default();
    let value = Value::new([case.benchmark.as_str().into(), params], case.to_string());
    let values: Vec<String> = case.params.values().map(ToString::to_string).collect();
    if values.is_empty() {
        value
    } else {
        value.or_short(format!("{}{{{}}}", case.benchmark, values.join(",")))
    }
}

fn verdict(row: &ComparedRow) -> Value {
    let verdict = row.result.verdict;
    let value = Value::new([verdict.to_string().into()], comparison::verdict_word(verdict, row.is_count()));
    let value = match verdict {
        Verdict::SomewhatSlower => value.or_short("slower?"),
        Verdict::SomewhatFaster => value.or_short("faster?"),
        _ => value,
    };
    value.with_tone(match verdict {
        Verdict::Same => Tone::Plain,
        Verdict::Inconclusive => Tone::Open,
        _ => Tone::Changed,
    })
}

pub(crate) fn cpu_ratio(cpu: &ComparedCase) -> Option<f64> {
    cpu.base.and(cpu.other).map(|_| cpu.ratio)
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

/// The ratio of a row beside a figure: `×1.560`; for a count the change.
pub(crate) fn times(row: &ComparedRow) -> Option<String> {
    if row.is_count() {
        counts::change(row)
    } else {
        row.ratio().map(|ratio| format!("×{}", figures::ratio(ratio)))
    }
}

type Field<'a> = Column<Compared<'a>>;

/// All columns.
pub fn columns<'a>() -> Columns<Compared<'a>> {
    Columns::new([
        Field::new(
            "base_side",
            "compared with",
            "the id of the base, and its name: the label or the id; in a session the environment as requested, with a number if two have the same name; in `versus` the letter",
            |it| it.side(0),
        )
        .of_words()
        .always()
        .with_fields(&["base_run", "base_name"]),
        Field::new("other_side", "compared", "the same of the other run", |it| it.side(1))
            .of_words()
            .always()
            .with_fields(&["other_run", "other_name"]),
        Field::new("case", "benchmark", "the case: its benchmark, such as `entry/seccomp`, and its parameters, such as `{\"instructions\": 32}`", |it| {
            let case = case(it.row?.case());
            Some(match it.name {
                Some(name) => case.in_words(Some(name.to_owned())),
                None => case,
            })
        })
            .of_words()
            .with_kinds(&[ValueKind::Text, ValueKind::Params])
            .with_fields(&["benchmark", "params"]),
        Field::new("unit", "unit", "of `base`, `other` and `adds`; null if the sides differ", |it| {
            Some(Value::text(it.row?.unit()?.to_string()))
        })
        .of_words(),
        Field::new(
            "base",
            "base",
            "the estimate in the base; null below the detection limit, and for an emulator",
            |it| it.estimate(|row| row.result.base),
        )
        .in_unit(),
        Field::new("other", "other", "the same in the other", |it| it.estimate(|row| row.result.other))
            .in_unit(),
        Field::new("counts", "instructions", "both counts, or one if they are equal", |it| {
            Some(Value::of_words(counts::from_to(it.row?)))
        })
        .with_fields(&[]),
        Field::new(
            "ratio",
            "ratio",
            "`other` over `base`, estimated from the medians of their processes; null if there is no ratio",
            |it| Some(Value::figure(it.row?.ratio()?, figures::ratio)),
        ),
        Field::new("multiple", "multiple", "the ratio, with a mark if it is inconclusive", |it| {
            let row = it.row?;
            let ratio = figures::ratio(row.ratio()?);
            Some(Value::of_words(match row.result.verdict {
                Verdict::Inconclusive => format!("~{}", row.result.interval.map(|_| ratio)?),
                _ => ratio,
            }))
        })
        .with_fields(&[]),
        Field::new(
            "ratio_ci",
            "CI",
            "the interval of the ratio, corrected for the number of rows",
            |it| {
                let interval = it.row?.result.interval?;
                Some(Value::ends(ends(interval), |[low, high]| figures::ratio_span(low, high)))
            },
        )
        .with_fields(&["ratio_low", "ratio_high"]),
        Field::new(
            "total",
            "total",
            "the ratio of the total times of two commands, with its interval of 95 %; null for anything else",
            |it| {
                let total = it.row?.result.total.as_ref()?;
                let [low, high] = total.interval.map_or([None; 2], |interval| ends(interval).map(Some));
                let words = total.interval.map(|interval| figures::ratio_span(interval.low, interval.high));
                let shown = format!("{} [{}]", figures::ratio(total.ratio), words.unwrap_or_default());
                Some(Value::new([total.ratio.into(), low.into(), high.into()], shown))
            },
        )
        .with_fields(&["total_ratio", "total_low", "total_high"]),
        Field::new(
            "layouts",
            "layouts",
            "the layouts of each side; how far those of the base and of the other lie apart, as a share; and the least and the greatest \
             ratio that one layout of each would have shown; null where each side is one program",
            |it| {
                let layouts = it.row?.result.layouts?;
                let [base, other] = layouts.apart;
                let number = layouts.number as u64;
                let by_one = layouts.by_one;
                let fields = [
                    number.into(),
                    base.into(),
                    other.into(),
                    by_one.low.into(),
                    by_one.high.into(),
                ];
                Some(Value::new(fields, number.to_string()))
            },
        )
        .with_fields(&["layouts", "layouts_apart_base", "layouts_apart_other", "by_one_layout_low", "by_one_layout_high"])
        .with_kinds(&[ValueKind::Whole, ValueKind::Number, ValueKind::Number, ValueKind::Number, ValueKind::Number]),
        Field::new(
            "adds",
            "adds",
            "what `other` adds to `base`: in runs of one session the median of the differences of neighbouring turns; in others the difference of the estimates",
            Compared::adds,
        )
        .in_unit(),
        Field::new(
            "adds_ci",
            "95 % CI of adds",
            "its interval, in runs of one session",
            |it| {
                let row = it.row?;
                let interval = row.result.alternation.as_ref()?.adds_interval?;
                let words =
                    |ends: [f64; 2]| ends.map(|end| figures::difference(end, row.base.unit)).join(" to ");
                Some(Value::ends(ends(interval), words))
            },
        )
        .in_unit()
        .with_fields(&["adds_low", "adds_high"]),
        Field::new("change", "change", "what a count adds, in percent of the base", |it| {
            Some(Value::of_words(counts::change(it.row?)?))
        })
        .with_fields(&[]),
        Field::new(
            "verdict",
            "verdict",
            "`faster`, `slower`, `somewhat faster`, `somewhat slower` (perhaps by less than the margin), `same` or `inconclusive`",
            |it| Some(it.row.map_or(Value::default().with_tone(Tone::Open), verdict)),
        )
        .of_words(),
        Field::new(
            "threshold",
            "threshold",
            "the noise threshold or margin, a relative difference; at least that of `--threshold`, and exactly that if instructions are counted",
            |it| Some(Value::figure(it.row?.result.threshold, figures::percent)),
        ),
        Field::new(
            "correlation",
            "correl.",
            "of neighbouring turns, from -1 to 1; null without a session",
            |it| {
                let found = it.row?.result.alternation.as_ref()?;
                Some(Value::figure(found.correlation?, |correlation| format!("{correlation:.2}")))
            },
        ),
        Field::new("pairs", "pairs", "pairs of processes; for commands, pairs of executions", |it| {
            Some(Value::number(it.row?.result.alternation.as_ref()?.pairs as u64))
        })
        .with_kinds(&[ValueKind::Whole]),
        Field::new("turns", "turns", "pairs of turns in them", |it| {
            Some(Value::number(it.row?.result.alternation.as_ref()?.turns as u64))
        })
        .with_kinds(&[ValueKind::Whole]),
        Field::new("why", "why", "why it is inconclusive, or why differing counts are the same", |it| {
            Some(Value::text(it.row?.result.why.as_deref()?))
        })
        .of_words(),
        Field::new(
            "cpu_base",
            "CPU, base",
            "the processor time of an execution in the base, for alternated commands; null if it is not compared",
            |it| it.cpu(|row, cpu| Some(Value::figure(cpu.base?, |ns| figures::estimate(ns, row.base.unit)))),
        )
        .in_unit(),
        Field::new("cpu_other", "CPU, other", "the same in the other", |it| {
            it.cpu(|row, cpu| Some(Value::figure(cpu.other?, |ns| figures::estimate(ns, row.base.unit))))
        })
        .in_unit(),
        Field::new("cpu_ratio", "CPU ratio", "the ratio of the processor times, as `ratio` is that of the real times", |it| {
            it.cpu(|_, cpu| Some(Value::figure(cpu_ratio(cpu)?, figures::ratio)))
        }),
        Field::new("cpu_ratio_ci", "CI", "its interval", |it| {
            it.cpu(|_, cpu| {
                Some(Value::ends(ends(cpu.interval?), |[low, high]| figures::ratio_span(low, high)))
            })
        })
        .with_fields(&["cpu_ratio_low", "cpu_ratio_high"]),
        Field::new("cpu_multiple", "CPU", "the ratio of the processor times, with a mark if it is inconclusive", |it| {
            it.cpu(|_, cpu| {
                let mark = if cpu.verdict == Verdict::Inconclusive { "~" } else { "" };
                Some(Value::of_words(format!("{mark}{}", figures::ratio(cpu_ratio(cpu)?))))
            })
        })
        .with_fields(&[]),
        Field::new("cpu_verdict", "CPU verdict", "as `verdict`, by processor time", |it| {
            it.cpu(|_, cpu| Some(Value::text(cpu.verdict.to_string())))
        })
        .of_words(),
        Field::new("cpu_why", "CPU, why", "why that is inconclusive", |it| {
            it.cpu(|_, cpu| Some(Value::text(cpu.why.as_deref()?)))
        })
        .of_words(),
        Field::new(
            "causes",
            "causes",
            "for a row that is slower or faster: names of the facts that changed and can be its causes; if only one setting was changed, the facts that show it, or the setting",
            |it| Some(Value::names(it.comparison.cause_names(it.row?))),
        )
        .of_words()
        .with_kinds(&[ValueKind::Texts]),
        Field::new("numbers", "cause", "the numbers of its causes in the list below the rows", |it| {
            Some(Value::of_words(it.numbers.as_deref()?))
        })
        .of_words()
        .with_fields(&[]),
        Field::new(
            "more_time",
            "more time",
            "for an inconclusive row: the command that gives it more time, or null if time would not decide it",
            |it| {
                let need = Need::of(it.comparison, it.row?)?;
                Some(Value::text(need::command(it.comparison, [&need].into_iter())?))
            },
        )
        .of_words(),
    ])
}

pub(crate) const SIDES: [&str; 2] = ["base_side", "other_side"];

/// The row of the commands' real time has the sides and the processor time, so these columns leave them out.
pub(crate) fn of_others<'a>() -> Columns<Compared<'a>> {
    let all = columns();
    let rest = all.iter().filter(|column| !SIDES.contains(&column.key) && !column.key.starts_with("cpu_"));
    all.pick(&rest.map(|column| column.key).collect::<Vec<_>>())
}

#[cfg(feature = "schema")]
pub(crate) mod schema {
    use tollgate_output::described;
    use tollgate_output::json::{schema, schema_in_seconds};

    described!(
        /// A compared row.
        ComparedRow,
        schema(&super::columns())
    );
    described!(
        /// Its two sides.
        Sides,
        schema(&super::columns().pick(&super::SIDES))
    );
    described!(
        /// A figure of two commands.
        OtherFigures,
        schema(&super::of_others())
    );
    described!(
        /// The real time of two commands, or their instructions, where these were counted: then no name says that it is in seconds.
        FiguresOfCommands,
        schema_in_seconds(&super::columns().without(&["case", "unit"]))
    );
}

const UNPAIRED: &[&str] = &["case", "base", "other", "ratio", "ratio_ci", "verdict"];
const OF_TURNS: &[&str] = &["case", "base", "other", "ratio", "ratio_ci", "adds", "verdict", "correlation"];
const OF_COUNTS: &[&str] = &["case", "base", "other", "adds", "change", "verdict"];
const OF_SCREEN: &[&str] = &["case", "base", "ratio", "ratio_ci", "adds", "verdict"];
const COUNTS_OF_SCREEN: &[&str] = &["case", "counts", "adds", "change", "verdict"];
const OF_PROCESSOR: &[&str] = &["cpu_ratio", "cpu_ratio_ci", "cpu_verdict"];
const NUMBERS: &[&str] = &["numbers"];
const QUALITY: &[&str] = &["correlation", "turns"];
const OF_COMMANDS: &[&str] = &["other_side", "ratio", "ratio_ci", "adds", "verdict", "cpu_multiple"];

fn of_level<'a>(comparison: &Comparison) -> Columns<Compared<'a>> {
    columns().headed("ratio_ci", comparison.interval_name.clone())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Both estimates, with the correlation of turns.
    Both,
    /// The base and what the other adds: a screen of a session has no room for more.
    Base,
}

pub(crate) fn of_table<'a>(comparison: &Comparison, choice: Choice) -> Columns<Compared<'a>> {
    of_level(comparison).pick(chosen(comparison, choice))
}

pub(crate) fn of_numbered<'a>(comparison: &Comparison, choice: Choice) -> Columns<Compared<'a>> {
    of_level(comparison).pick(&[chosen(comparison, choice), NUMBERS].concat())
}

/// Like [`of_table`] for all rows: for times also the quality of the turns.
pub(crate) fn of_whole<'a>(comparison: &Comparison, choice: Choice) -> Columns<Compared<'a>> {
    let quality = if comparison.is_counted() || choice == Choice::Both { &[] } else { QUALITY };
    of_level(comparison).pick(&[chosen(comparison, choice), quality].concat())
}

/// The columns of a table that may be wide: with the processor times, if any row has one.
pub(crate) fn of_wide_table<'a>(comparison: &Comparison) -> Columns<Compared<'a>> {
    let has_processor = comparison.rows.iter().any(|row| row.result.processor.is_some());
    let more = if has_processor { OF_PROCESSOR } else { &[] };
    of_level(comparison).pick(&[chosen(comparison, Choice::Both), more].concat())
}

fn chosen(comparison: &Comparison, choice: Choice) -> &'static [&'static str] {
    match (choice, comparison.is_counted()) {
        (Choice::Both, true) => OF_COUNTS,
        (Choice::Both, false) if comparison.is_alternated => OF_TURNS,
        (Choice::Both, false) => UNPAIRED,
        (Choice::Base, true) => COUNTS_OF_SCREEN,
        (Choice::Base, false) => OF_SCREEN,
    }
}

/// How many of the last columns a narrow terminal can omit: the quality of the turns, and the numbers of causes, since a list
/// below says how many rows each reaches.
pub(crate) fn dispensable(columns: &Columns<Compared>) -> usize {
    let keys: Vec<&str> = columns.iter().map(|column| column.key).collect();
    keys.iter().rev().take_while(|key| [QUALITY, NUMBERS].concat().contains(key)).count()
}

/// Like [`of_table`] for a page, where the ratio comes first, so that it is visible on a narrow screen, whose tables scroll. With
/// the causes, unless they are proven.
pub(crate) fn of_page<'a>(comparison: &Comparison) -> Columns<Compared<'a>> {
    let has_causes = comparison.proven.is_none()
        && comparison.changed().iter().any(|row| comparison.causes(row).next().is_some());
    let wide = of_wide_table(comparison);
    let keys = wide.iter().map(|column| column.key).chain(has_causes.then_some("causes"));
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_by_key(|key| match *key {
        "case" => 0,
        "ratio" | "change" => 1,
        _ => 2,
    });
    of_level(comparison).arranged(&keys)
}

pub(crate) fn of_commands<'a>(comparison: &Comparison) -> Columns<Compared<'a>> {
    of_level(comparison).pick(OF_COMMANDS).headed("other_side", "command")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_that_is_chosen_is_that_of_one_column() {
        let columns = columns();
        let all: Vec<&str> = columns.iter().map(|column| column.key).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
        let fields: Vec<&str> = columns.iter().flat_map(|column| column.fields()).copied().collect();
        assert_eq!(fields.iter().collect::<HashSet<_>>().len(), fields.len(), "{fields:?}");
        let chosen = [
            UNPAIRED,
            OF_TURNS,
            OF_COUNTS,
            OF_SCREEN,
            COUNTS_OF_SCREEN,
            NUMBERS,
            QUALITY,
            OF_PROCESSOR,
            OF_COMMANDS,
            &SIDES,
        ];
        for key in chosen.concat() {
            assert!(all.contains(&key), "{key}");
        }
    }
}
