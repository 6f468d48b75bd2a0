//! How counts of instructions are written: whole numbers, exact or with the range of their batches, and differences in percent.

use tollgate_model::versus::{
    CALLS, FAULTS, FIRST, INSTRUCTIONS, ITERATIONS, KERNEL_INSTRUCTIONS, TICKS, USER_INSTRUCTIONS,
};
use tollgate_model::{Case, Provenance, Unit};
use tollgate_output::figures;

use crate::comparison::{self, ComparedRow, Comparison};
use crate::summary::{Figures, Summary};

/// The sign of a count that is the same in every batch.
const EXACT: &str = "exact";

/// The counts of a command by their names in tables, in this order.
pub(crate) const OF_COMMANDS: [(&str, &str); 8] = [
    ("total", INSTRUCTIONS),
    ("user", USER_INSTRUCTIONS),
    ("kernel", KERNEL_INSTRUCTIONS),
    ("rep", ITERATIONS),
    ("first", FIRST),
    ("calls", CALLS),
    ("faults", FAULTS),
    ("ticks", TICKS),
];

/// The name of a command's count in tables.
pub(crate) fn of_command(case: &Case) -> Option<&'static str> {
    OF_COMMANDS.iter().find(|(_, of)| *of == case.benchmark).map(|(name, _)| *name)
}

/// Whether a run has rows, and all of them are counts.
pub fn is_counted(summary: &Summary) -> bool {
    summary.measured().next().is_some() && summary.measured().all(|(_, figures)| figures.is_count())
}

/// The counter of a run's instructions.
pub fn counter(summary: &Summary) -> &'static str {
    let (_, first) = summary.measured().next().unzip();
    match first.map(|first| first.measured.provenance) {
        Some(Provenance::QemuIcount | Provenance::QemuTcg) => {
            "QEMU's translator (-icount), whose clock advances one tick per instruction"
        }
        Some(Provenance::Interpreter) => "tollgate's interpreter",
        _ => "an emulator",
    }
}

/// `exact`, or the range of the batches: `19,950–20,100`. `None` for a time.
pub fn batches(figures: &Figures) -> Option<String> {
    let of = &figures.estimate;
    figures.is_count().then(|| {
        if figures.is_exact() {
            EXACT.to_owned()
        } else {
            figures::range(of.min, of.max, of.median, figures.measured.unit)
        }
    })
}

/// How many counts of a run are exact, if not all are: `in 8 of 9 rows; the others have the range of their batches`.
pub fn inexact(summary: &Summary) -> Option<String> {
    let counts = || summary.measured().map(|(_, figures)| figures).filter(|figures| figures.is_count());
    let (all, exact) = (counts().count(), counts().filter(|figures| figures.is_exact()).count());
    (exact < all).then(|| format!("in {exact} of {all} rows; the others have the range of their batches"))
}

/// How exact the counts of a run are.
pub fn exactness(summary: &Summary) -> String {
    match inexact(summary) {
        Some(which) => format!("{EXACT} {which}"),
        None => format!("{EXACT}: every batch has the same count"),
    }
}

/// `209` for instructions and other events; a size with its unit.
pub fn count(count: f64, unit: Unit) -> String {
    match unit {
        Unit::Instructions | Unit::Count => figures::instructions(count),
        unit => figures::estimate(count, unit),
    }
}

/// `209 → 187`; an equal count once.
pub fn from_to(row: &ComparedRow) -> String {
    let count = |of: Option<f64>| of.map_or("–".to_owned(), |of| count(of, row.base.unit));
    if row.result.base == row.result.other {
        count(row.result.base)
    } else {
        format!("{} → {}", count(row.result.base), count(row.result.other))
    }
}

/// The other's addition: `-22`, `+3`. `None` for equal counts.
pub fn adds(row: &ComparedRow) -> Option<String> {
    let adds = row.adds().filter(|adds| *adds != 0.0)?;
    let sign = if adds < 0.0 { "-" } else { "+" };
    Some(format!("{sign}{}", count(adds.abs(), row.base.unit)))
}

/// The difference in percent of the base: `-10.5 %`. `None` for equal counts, and if the base is zero.
pub fn change(row: &ComparedRow) -> Option<String> {
    percent(row.ratio()?)
}

/// A ratio in percent: `-10.5 %`. `None` for 1.
pub fn percent(ratio: f64) -> Option<String> {
    if ratio == 1.0 {
        return None;
    }
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "-" } else { "+" };
    let digits = if percent.abs() < 9.95 { 2 } else { 3 };
    let text = figures::thousands(&figures::significant(percent.abs(), digits));
    Some(format!("{sign}{text} %"))
}

/// `209 → 187 instructions, -10.5 %`
pub fn in_words(row: &ComparedRow) -> String {
    let change = change(row).map(|change| format!(", {change}")).unwrap_or_default();
    let unit = if row.base.unit == Unit::Instructions { " instructions" } else { "" };
    format!("{}{unit}{change}", from_to(row))
}

/// How two counted runs were compared. `None` if no row has instructions.
pub fn method(comparison: &Comparison) -> Option<String> {
    let counts =
        || comparison.rows.iter().filter(|row| row.base.unit == Unit::Instructions && row.is_count());
    let is_exact = |row: &&ComparedRow| [row.base, row.other].iter().all(|side| is_constant(&side.samples));
    let (all, exact) = (counts().count(), counts().filter(is_exact).count());
    let how = match exact {
        0 => "the median of executions that differ".to_owned(),
        exact if exact == all => format!("{EXACT}; no noise, no intervals"),
        exact => format!("{EXACT} in {exact} of {all} rows; no noise, no intervals"),
    };
    (all > 0).then(|| format!("Counted: instructions per operation, {how}."))
}

fn is_constant(samples: &[f64]) -> bool {
    samples.windows(2).all(|pair| pair[0] == pair[1])
}

/// Why cases that both measured have no row: `40 rows are not compared: nanoseconds in host, instructions in vm:exact.`
pub fn not_compared(comparison: &Comparison) -> Option<String> {
    let apart = &comparison.not_compared;
    let first = apart.first()?;
    let are = if apart.len() == 1 { "is" } else { "are" };
    let [base, other] = [comparison.base, comparison.other].map(comparison::name);
    Some(format!(
        "{} {are} not compared: {} in {base}, {} in {other}.",
        figures::count(apart.len(), "row", "rows"),
        plural(first.base_unit),
        plural(first.other_unit),
    ))
}

fn plural(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::NanosecondsPerLine => "nanoseconds per line",
        Unit::Cycles => "cycles",
        Unit::Bytes => "bytes",
        Unit::Count => "events",
        Unit::Instructions => "instructions",
    }
}
