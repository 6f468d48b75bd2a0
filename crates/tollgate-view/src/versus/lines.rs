//! The lines of what a difference of commands consists of, each field declared here once: `versus`, `compare`, Markdown and the
//! page take them from here.

use tollgate_model::traced::blame::Part;
use tollgate_output::column::{Column, Columns};
use tollgate_output::figures::count;
use tollgate_output::value::{Tone, Value};

use super::said;
use super::split::{Call, Line, Split};
use crate::comparison::Comparison;
use tollgate_trace::output::text as words;

const LONGEST: usize = 32;

/// The meaning of the line `rest`, the last but one of each table.
pub(crate) const REST: &str =
    "rest: tracing, the start that timed executions exclude, and medians, which do not sum.";

pub(crate) struct Lines {
    pub(crate) split: Split,
    /// Whether it has a verdict: shares of noise say nothing.
    pub(super) is_different: bool,
    scale: Scale,
}

/// A line: a part of the real time, a call, or what is beside them.
#[derive(Default)]
pub(crate) struct Shown {
    name: String,
    sides: [String; 2],
    difference: String,
    share: String,
    calls: Option<String>,
    of_which: Option<String>,
    /// Whether it is the rest of the others, or leaves others out.
    is_rest: bool,
}

impl Lines {
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let split = Split::of(comparison)?;
        let is_different = said::real(comparison)?.result.verdict.is_difference();
        Some(Self { scale: Scale::from_split(&split), split, is_different })
    }

    pub(crate) fn parts(&self) -> Vec<Shown> {
        let parts = self.split.parts.iter().filter(|(_, line)| *line != Line::default());
        let parts =
            parts.map(|(part, line)| self.line(in_words_of_part(*part, self.split.has_ptrace()), *line));
        parts.chain(self.end(self.split.rest_of_parts())).collect()
    }

    /// At most this many calls, the sum of the others, and the times that belong to no call.
    pub(crate) fn calls(&self, most: usize) -> Vec<Shown> {
        let differ = self.split.calls.iter().take_while(|call| call.line.difference != 0).count();
        let (shown, others) = self.split.calls.split_at(most.min(differ));
        let call =
            |call: &Call| self.line(&words::cut(&call.name, LONGEST), call.line).of_call(call.counts, None);
        let sum =
            |of: &dyn Fn(&Line) -> i64| others.iter().map(|call| of(&call.line)).fold(0, i64::saturating_add);
        let others = Some((
            count(others.len(), "other", "others"),
            Line {
                sides: [sum(&|line| line.sides[0]), sum(&|line| line.sides[1])],
                difference: sum(&|line| line.difference),
            },
        ));
        let others = others.filter(|(_, line)| *line != Line::default());
        let beside = [(Part::Runqueue, self.split.runqueue), (Part::Unaccounted, self.split.unaccounted)];
        let beside = beside.into_iter().filter(|(_, line)| *line != Line::default());
        let calls = shown.iter().map(call);
        calls
            .chain(others.map(|(name, line)| self.line(&name, line)))
            .chain([self.line("outside of calls", self.split.outside)])
            .chain(beside.map(|(part, line)| self.line(in_words_of_part(part, false), line)))
            .chain(self.end(self.split.rest_of_calls()))
            .collect()
    }

    pub(crate) fn of_parts(&self) -> Columns<Shown> {
        self.columns().without(&["calls"])
    }

    pub(crate) fn of_calls(&self) -> Columns<Shown> {
        self.columns().headed("name", "call")
    }

    fn columns(&self) -> Columns<Shown> {
        let all = columns().without(&["of_which"]);
        if self.is_different { all } else { all.without(&["share"]) }
    }

    /// A difference in the unit of all: `+0.600 ms`.
    pub(super) fn show(&self, ns: i64) -> String {
        self.scale.show(ns)
    }

    fn line(&self, name: &str, line: Line) -> Shown {
        Shown::new(name, line, self.split.timed.difference, |ns| self.show(ns))
    }

    /// The rest, and the timed executions, to which all lines sum.
    fn end(&self, rest: Line) -> [Shown; 2] {
        [self.line("rest", rest).of_rest(), self.line("real, timed", self.split.timed)]
    }
}

impl Shown {
    pub(crate) fn new(name: &str, line: Line, whole: i64, show: impl Fn(i64) -> String) -> Self {
        let side = |ns: i64| if ns == 0 { "0".to_owned() } else { words::signed(ns as f64) };
        Self {
            name: name.to_owned(),
            sides: line.sides.map(side),
            difference: show(line.difference),
            share: share(line.difference, whole),
            ..Self::default()
        }
    }

    pub(crate) fn of_call(self, counts: [u64; 2], of_which: Option<String>) -> Self {
        Self { calls: Some(numbers(counts)), of_which, ..self }
    }

    pub(crate) fn of_rest(self) -> Self {
        Self { is_rest: true, ..self }
    }
}

type Field = Column<Shown>;

pub(crate) fn columns() -> Columns<Shown> {
    Columns::new([
        Field::new("name", "real time by", "the part or the call", |it| {
            Some(Value::text(it.name.as_str()).with_tone(if it.is_rest { Tone::Open } else { Tone::Plain }))
        })
        .of_words(),
        Field::new("base", "base", "its time in the base", |it| shown(&it.sides[0])),
        Field::new("other", "other", "its time in the other", |it| shown(&it.sides[1])),
        Field::new("difference", "difference", "the median of the differences of the pairs", |it| {
            shown(&it.difference)
        }),
        Field::new("share", "share", "its share of the whole difference", |it| shown(&it.share)),
        Field::new("calls", "calls", "the number of calls in the base and in the other", |it| {
            shown(it.calls.as_deref()?)
        }),
        Field::new("of_which", "of which", "the two largest parts of the difference of a call", |it| {
            shown(it.of_which.as_deref()?)
        })
        .of_words(),
    ])
    .or_blank()
}

fn shown(words: &str) -> Option<Value> {
    Some(Value::of_words(words))
}

/// A share of a difference: below 0 and above 100 % if other parts go the other way.
fn share(part: i64, whole: i64) -> String {
    let percent = part as f64 / whole as f64 * 100.0;
    match (part, whole) {
        (_, 0) => String::new(),
        (0, _) => "0".to_owned(),
        _ if percent.abs() < 0.5 => "<1 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

/// The numbers of a call on both sides: `61,204`, `2 → 61,204`.
pub(super) fn numbers(counts: [u64; 2]) -> String {
    let [from, to] = counts.map(words::grouped);
    if from == to { from } else { format!("{from} → {to}") }
}

/// A part of the real time in words, for commands that ptrace(2) stopped or did not.
pub(crate) fn in_words_of_part(part: Part, has_ptrace: bool) -> &'static str {
    match part {
        Part::User => "user",
        Part::Sys => "kernel",
        Part::Disk => "waiting for a disk",
        Part::Runqueue => "waiting for a processor",
        Part::Sleep => "waiting asleep",
        Part::Unaccounted if has_ptrace => "waiting, or stopped by ptrace(2)",
        Part::Unaccounted => "unaccounted",
    }
}

pub(crate) fn field(part: Part) -> &'static str {
    match part {
        Part::User => "user",
        Part::Sys => "sys",
        Part::Disk => "disk",
        Part::Runqueue => "runqueue",
        Part::Sleep => "sleep",
        Part::Unaccounted => "unaccounted",
    }
}

/// How differences are written: in one unit, with the same decimals, so that a reader can add them.
struct Scale {
    divisor: f64,
    unit: &'static str,
    decimals: usize,
}

impl Scale {
    /// Four digits of the largest.
    fn from_split(split: &Split) -> Self {
        const DIGITS: usize = 4;
        let parts = split.parts.iter().map(|(_, line)| line.difference);
        let calls = split.calls.iter().map(|call| call.line.difference);
        let all = parts.chain(calls).chain([
            split.timed.difference,
            split.outside.difference,
            split.rest_of_calls().difference,
        ]);
        let largest = all.map(i64::unsigned_abs).max().unwrap_or(0).max(1) as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
        let unit = units.into_iter().find(|(divisor, _)| largest >= *divisor);
        let Some((divisor, unit)) = unit else { return Self { divisor: 1.0, unit: "ns", decimals: 0 } };
        let whole = 1 + (largest / divisor).log10().max(0.0) as usize;
        Self { divisor, unit, decimals: DIGITS.saturating_sub(whole) }
    }

    fn show(&self, ns: i64) -> String {
        let decimals = self.decimals;
        match ns {
            0 => "0".to_owned(),
            ns => format!("{:+.decimals$} {}", ns as f64 / self.divisor, self.unit),
        }
    }
}
