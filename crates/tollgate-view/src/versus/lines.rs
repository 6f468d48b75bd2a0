//! The lines of what a difference of commands consists of. Each of their fields is declared here, once: `versus`, `compare`, Markdown and the page
//! have it from here.

use tollgate_model::traced::blame::Part;
use tollgate_output::column::{Column, Columns};
use tollgate_output::figures::count;
use tollgate_output::value::{Tone, Value};

use super::said;
use super::split::{Call, Line, Split};
use crate::blame::in_words_of_part;
use crate::comparison::Comparison;
use tollgate_trace::output::text as words;

/// The longest name of a call.
const LONGEST: usize = 32;

/// What the last lines but one are.
pub(crate) const REST: &str =
    "rest: tracing, what the timed ones are less for their start, and medians, which do not sum.";

/// A difference, and how its figures are written.
pub(crate) struct Lines {
    pub(crate) split: Split,
    /// Whether it has a verdict: shares of noise say nothing.
    pub(super) is_different: bool,
    scale: Scale,
}

/// A line: a part of the real time, a call, or what is beside them.
pub(crate) struct Shown<'a> {
    lines: &'a Lines,
    name: String,
    line: Line,
    calls: Option<String>,
    /// It is what the others leave of the timed executions.
    is_rest: bool,
}

impl Lines {
    /// None where either command was not traced, or not timed.
    pub(crate) fn of(comparison: &Comparison) -> Option<Self> {
        let split = Split::of(comparison)?;
        let is_different = said::real(comparison)?.result.verdict.is_difference();
        Some(Self { scale: Scale::from_split(&split), split, is_different })
    }

    /// The parts of the real time.
    pub(crate) fn parts(&self) -> Vec<Shown<'_>> {
        let parts = self.split.parts.iter().filter(|(_, line)| *line != Line::default());
        let parts =
            parts.map(|(part, line)| self.line(in_words_of_part(*part, self.split.has_ptrace()), *line));
        parts.chain(self.end(self.split.rest_of_parts())).collect()
    }

    /// At most so many calls, the others together, and what is beside them.
    pub(crate) fn calls(&self, most: usize) -> Vec<Shown<'_>> {
        let differ = self.split.calls.iter().take_while(|call| call.line.difference != 0).count();
        let (shown, others) = self.split.calls.split_at(most.min(differ));
        let call = |call: &Call| Shown {
            calls: Some(call.numbers()),
            ..self.line(&words::cut(&call.name, LONGEST), call.line)
        };
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

    /// Their columns. What the parts are of heads the first.
    pub(crate) fn of_parts<'a>(&self) -> Columns<Shown<'a>> {
        self.columns().without(&["calls"])
    }

    /// Those of calls.
    pub(crate) fn of_calls<'a>(&self) -> Columns<Shown<'a>> {
        self.columns().headed("name", "call")
    }

    fn columns<'a>(&self) -> Columns<Shown<'a>> {
        columns().without(if self.is_different { &[] } else { &["share"] })
    }

    /// A difference in the unit of all: `+0.600 ms`.
    pub(super) fn show(&self, ns: i64) -> String {
        self.scale.show(ns)
    }

    fn line(&self, name: &str, line: Line) -> Shown<'_> {
        Shown { lines: self, name: name.to_owned(), line, calls: None, is_rest: false }
    }

    /// What is left of the timed executions, and those.
    fn end(&self, rest: Line) -> [Shown<'_>; 2] {
        [Shown { is_rest: true, ..self.line("rest", rest) }, self.line("real, timed", self.split.timed)]
    }
}

type Field<'a> = Column<Shown<'a>>;

fn columns<'a>() -> Columns<Shown<'a>> {
    Columns::new([
        Field::new("name", "real time by", "the part or the call", |it| {
            Some(Value::text(it.name.as_str()).with_tone(if it.is_rest { Tone::Open } else { Tone::Plain }))
        })
        .of_words(),
        Field::new("base", "base", "its time in the base", |it| it.side(0)),
        Field::new("other", "other", "its time in the other", |it| it.side(1)),
        Field::new("difference", "difference", "the median of the differences of the pairs", |it| {
            Some(Value::of_words(it.lines.show(it.line.difference)))
        }),
        Field::new("share", "share", "its share of the timed difference", |it| {
            Some(Value::of_words(it.share()))
        }),
        Field::new("calls", "calls", "the number of calls in the base and in the other", |it| {
            Some(Value::of_words(it.calls.as_deref()?))
        }),
    ])
    .or_blank()
}

impl Shown<'_> {
    fn side(&self, at: usize) -> Option<Value> {
        let ns = self.line.sides[at];
        Some(Value::of_words(if ns == 0 { "0".to_owned() } else { words::signed(ns as f64) }))
    }

    /// Below 0 and above 100 % where other parts go the other way.
    fn share(&self) -> String {
        match self.line.difference as f64 / self.lines.split.timed.difference as f64 * 100.0 {
            none if none == 0.0 || !none.is_finite() => "0".to_owned(),
            small if small.abs() < 0.5 => "<1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        }
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
