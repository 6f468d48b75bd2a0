//! Distributions of the bimodal cases.

use tollgate_model::Case;
use tollgate_model::sorting::Ordered as _;
use tollgate_output::figures;

use super::panels::keys;
use super::subject::{Subject, is_drawn};
use crate::page::{Drawing, Figure, Levels, Panel, Seen, Text};

/// The most that are drawn: those whose modes differ most.
const MOST: usize = 4;

/// The distributions of the bimodal cases, of every environment where one of them is bimodal.
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
    found.order_by(|(_, a), (_, b)| b.total_cmp(a));
    let all = found.len();
    let panels: Vec<Panel> = found.iter().take(MOST).filter_map(|(case, _)| panel(subjects, case)).collect();
    let drawn = panels.len();
    (drawn > 0).then(|| Figure {
        title: "Bimodal cases".into(),
        is_folded: true,
        description: Text::new(&format!(
            "Distributions of samples on a logarithmic axis, with the two modes named; each stroke below is the median \
             of a process. {}",
            match drawn == all {
                true => "These are all bimodal cases.".to_owned(),
                false => format!("Of {all} bimodal cases these {drawn} have the largest distance; the table names all."),
            }
        )),
        keys: keys(subjects),
        panels,
        ..Figure::default()
    })
}

fn panel(subjects: &[Subject], case: &Case) -> Option<Panel> {
    let seen: Vec<Seen> = subjects
        .iter()
        .filter_map(|subject| {
            let figures = subject.summary.figures(case).filter(|figures| is_drawn(figures))?;
            let (estimate, unit) = (&figures.estimate, figures.measured.unit);
            let levels = estimate.modes.iter().filter(|_| estimate.modes.len() > 1);
            let words = |at: f64, share: f64| {
                format!("{} ({})", figures::estimate(at, unit), figures::percent(share))
            };
            Some(Seen {
                look: subject.look,
                samples: &figures.measured.samples,
                processes: &estimate.process_medians,
                levels: levels.map(|mode| (mode.at, words(mode.at, mode.share).into())).collect(),
            })
        })
        .collect();
    let drawing = Drawing::Levels(Levels::of(&seen)?);
    Some(Panel { name: Some(Text::label(&case.to_string())), environment: None, drawing })
}
