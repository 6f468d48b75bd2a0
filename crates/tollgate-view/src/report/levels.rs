//! Both modes of the bimodal cases.

use tollgate_model::Case;
use tollgate_output::figures;

use super::panels::keys;
use super::subject::{Subject, is_drawn};
use crate::page::{Drawing, Figure, Mark, PictureRow, Rows, Text};

/// The most that are drawn: those whose modes differ most.
const MOST: usize = 12;

pub fn figure(subjects: &[Subject], cases: &[&Case]) -> Option<Figure> {
    let distance = |case: &Case| {
        let ratios = subjects.iter().filter_map(|subject| {
            match subject.summary.figures(case)?.estimate.modes.as_slice() {
                [low, high] if low.at > 0.0 && is_drawn(subject.summary.figures(case)?) => {
                    Some(high.at / low.at)
                }
                _ => None,
            }
        });
        ratios.max_by(f64::total_cmp)
    };
    let mut found: Vec<(&Case, f64)> =
        cases.iter().filter_map(|case| Some((*case, distance(case)?))).collect();
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let rows = Rows::of_times(found.iter().take(MOST).map(|(case, _)| row(subjects, case)).collect())?;
    let more = match found.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" {more} more, whose modes are nearer to each other, are in the table."),
    };
    let description = format!(
        "Each has a sign at either mode, on a logarithmic axis; the table has the share of the samples in each.{more}"
    );
    Some(Figure {
        title: "Bimodal cases".into(),
        is_folded: true,
        description: description.into(),
        keys: keys(subjects),
        panels: vec![Drawing::Rows(rows).into()],
        ..Figure::default()
    })
}

fn row(subjects: &[Subject], case: &Case) -> PictureRow {
    let mut row = PictureRow { name: Text::label(&case.to_string()), ..PictureRow::default() };
    for subject in subjects {
        let Some(figures) = subject.summary.figures(case).filter(|figures| is_drawn(figures)) else {
            continue;
        };
        let [low, high] = figures.estimate.modes.as_slice() else { continue };
        let [low, high] = [low, high].map(|mode| {
            let title = format!("{} of the samples", figures::percent(mode.share)).into();
            row.marks.push(Mark { look: subject.look, at: mode.at, title, ..Mark::default() });
            figures::estimate(mode.at, figures.measured.unit)
        });
        if row.value.is_empty() {
            row.value = format!("{low}, {high}").into();
        }
    }
    row
}
