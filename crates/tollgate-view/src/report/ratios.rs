//! All ratios of a comparison around 1: those with a verdict first, the largest on top.

use tollgate_model::Case;
use tollgate_model::compare::Verdict;
use tollgate_output::figures;

use super::panels::keys;
use super::subject::Subject;
use crate::compare::columns;
use crate::comparison::{self, Comparison};
use crate::page::{Axis, Drawing, Figure, Mark, PictureRow, Rows, Table, Text, Tick};
use crate::together::together;

const MOST: usize = 60;
const MOST_UNDECIDED: usize = 12;

struct Compared<'a, 'b> {
    case: &'b Case,
    rows: Vec<(usize, &'b comparison::ComparedRow<'a>)>,
}

impl Compared<'_, '_> {
    /// The row whose verdict is drawn: the largest difference, or else the first.
    fn first(&self) -> Option<&comparison::ComparedRow<'_>> {
        let of = |row: &comparison::ComparedRow| (row.result.verdict.is_difference(), row.size());
        let rows = self.rows.iter().map(|(_, row)| *row);
        rows.max_by(|a, b| of(a).0.cmp(&of(b).0).then(of(a).1.total_cmp(&of(b).1)))
    }
}

fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Slower | Verdict::SomewhatSlower => 0,
        Verdict::Faster | Verdict::SomewhatFaster => 1,
        Verdict::Inconclusive => 2,
        Verdict::Same => 3,
    }
}

pub fn figure(subjects: &[Subject], comparisons: &[Comparison]) -> Option<Figure> {
    let rows =
        comparisons.iter().enumerate().flat_map(|(at, it)| it.rows.iter().map(move |row| (at + 1, row)));
    let rows = rows.filter(|(_, row)| row.ratio().is_some_and(|ratio| ratio > 0.0));
    let by_case = together(rows.map(|(look, row)| (row.case(), (look, row))));
    let mut all: Vec<Compared> = by_case.into_iter().map(|(case, rows)| Compared { case, rows }).collect();
    let key = |compared: &Compared| {
        compared.first().map_or((9, 0.0), |row| (rank(row.result.verdict), -row.size()))
    };
    all.sort_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
    let is_difference =
        |compared: &Compared| compared.first().is_some_and(|row| row.result.verdict.is_difference());
    let number = all.len();
    let decided = all.iter().filter(|compared| is_difference(compared)).count();
    all.truncate(decided.min(MOST).max((decided + MOST_UNDECIDED).min(MOST)));
    let rows: Vec<PictureRow> = all.iter().map(|compared| drawn(compared, subjects.len() == 2)).collect();
    let axis = axis(rows.iter().flat_map(|row| &row.marks).flat_map(Mark::reach))?;
    let left_out = number - rows.len();
    let more = match left_out {
        0 => String::new(),
        more => format!(" {more} more without a difference are not drawn."),
    };
    let band = if comparisons.iter().all(Comparison::is_counted) {
        "counts have no CI".to_owned()
    } else {
        let level = comparisons.first().map_or("CI", |comparison| &comparison.interval_name);
        format!("a band is the {level}")
    };
    Some(Figure {
        is_folded: false,
        title: "Ratio to the base".into(),
        description: format!(
            "Times of the base, on a logarithmic axis with 1 as the line; {band}. Slower cases first, \
             then faster ones, the largest ratio on top.{more}"
        )
        .into(),
        keys: if subjects.len() > 2 { keys(subjects).into_iter().skip(1).collect() } else { Vec::new() },
        panels: vec![Drawing::Rows(Rows { axis, rows, level: Some(1.0), is_by_environment: true }).into()],
        numbers: None::<Table>,
    })
}

fn drawn(compared: &Compared, is_only: bool) -> PictureRow {
    let first = compared.first();
    let verdict = first.map(|row| row.result.verdict);
    let times = first.and_then(columns::times).unwrap_or_default();
    let decided = verdict.filter(|verdict| is_only && verdict.is_difference());
    let word = decided.map(|verdict| format!(" {verdict}")).unwrap_or_default();
    let mark = |(look, row): &(usize, &comparison::ComparedRow)| {
        let at = row.ratio()?;
        let interval = row.result.interval;
        Some(Mark {
            look: if is_only { 0 } else { *look },
            at,
            interval: interval.map(|interval| (interval.low, interval.high)),
            min: None,
            is_noisy: row.result.verdict == Verdict::Inconclusive,
            title: Text::default(),
        })
    };
    PictureRow {
        name: Text::label(&compared.case.to_string()),
        value: format!("{times}{word}").into(),
        verdict,
        marks: compared.rows.iter().filter_map(mark).collect(),
    }
}

const STEPS: [&[f64]; 4] =
    [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 1.1, 1.2, 1.4, 1.6, 1.8]];
/// Fewer do not show a scale.
const LEAST_TICKS: usize = 3;

/// A logarithmic axis that holds 1 and all of these ratios, with ticks at 1, 2 and 5 of each decade, or closer if these are few.
pub(super) fn axis(ratios: impl Iterator<Item = f64>) -> Option<Axis> {
    let drawn = ratios.filter(|ratio| (1e-9..1e9).contains(ratio));
    let (least, most) =
        drawn.fold((0.9_f64, 1.1_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    // Ticks are the same on either side of 1.
    let of = |steps: &[f64]| {
        let above = (0..9).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
        let mut ticks: Vec<f64> =
            above.flat_map(|at| [1.0 / at, at]).filter(|at| (least..=most).contains(at)).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        ticks
    };
    let farthest = usize::from(most / least < 400.0);
    let mut all = STEPS[farthest..].iter().map(|steps| of(steps));
    let ticks = all.find(|ticks| ticks.len() >= LEAST_TICKS).unwrap_or_else(|| of(STEPS[STEPS.len() - 1]));
    let tick = |at: f64| Tick { at, name: figures::multiple_in_short(at).into(), is_main: at == 1.0 };
    Axis::logarithmic(least / 1.02, most * 1.02, ticks.into_iter().map(tick).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_axis_clips_no_interval(ends in prop::collection::vec(1e-8_f64..1e8, 1..20)) {
            let axis = axis(ends.iter().copied()).expect("an axis");
            prop_assert!(ends.iter().chain([&1.0]).all(|end| axis.percent(*end).is_some()), "{axis:?}");
        }
    }

    #[test]
    fn the_axis_of_ratios_holds_one_and_both_sides_of_it() {
        let names = |ratios: &[f64]| -> Vec<String> {
            let axis = axis(ratios.iter().copied()).expect("an axis");
            axis.ticks.iter().map(|tick| tick.name.to_string()).collect()
        };
        assert_eq!(names(&[0.45, 3.0]), ["×0.5", "×1", "×2"]);
        assert_eq!(names(&[1.3]), ["×0.91", "×1", "×1.1", "×1.2"]);
        assert_eq!(names(&[0.8, 2.4]), ["×1", "×1.5", "×2"]);
        assert_eq!(names(&[1e-4, 2e3]), ["×0.0001", "×0.001", "×0.01", "×0.1", "×1", "×10", "×100", "×1000"]);
    }
}
