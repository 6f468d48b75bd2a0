//! A run and its figures, one of several on a page.

use tollgate_model::{Case, Run, Unit};
use tollgate_output::figures;

use crate::comparison::name;
use crate::page::{Mark, Text};
use crate::rules::{self, Finding};
use crate::session;
use crate::summary::{Figures, Summary};

pub struct Subject<'a> {
    pub look: usize,
    pub name: String,
    pub is_one_of_several: bool,
    pub summary: Summary<'a>,
    pub findings: Vec<Finding>,
}

impl<'a> Subject<'a> {
    /// Runs in their order; those of one session in the order of its environments.
    pub fn all(runs: &'a [Run]) -> Vec<Self> {
        let mut order: Vec<&Run> = runs.iter().collect();
        let names = if session::is_one(runs) {
            order.sort_by_key(|run| run.session.as_ref().map(|part| part.place));
            session::names(order.iter().copied())
        } else {
            names(runs)
        };
        let subject = |(look, (run, name)): (usize, (&'a Run, String))| {
            let summary = Summary::of(run);
            let is_one_of_several = runs.len() > 1;
            Self { look, name, is_one_of_several, findings: rules::findings(&summary), summary }
        };
        order.into_iter().zip(names).enumerate().map(subject).collect()
    }

    pub fn mark(&self, case: &Case) -> Option<Mark> {
        let figures = self.summary.figures(case).filter(|figures| is_drawn(figures))?;
        Some(mark(self.look, figures))
    }

    pub fn prefix(&self, separator: &str) -> String {
        if self.is_one_of_several { format!("{}{separator}", self.name) } else { String::new() }
    }
}

/// Ids distinguish two with the same name.
fn names(runs: &[Run]) -> Vec<String> {
    let is_alone = |run: &Run| runs.iter().filter(|other| name(other) == name(run)).count() == 1;
    let named = |(look, run): (usize, &Run)| match &run.label {
        _ if is_alone(run) => name(run),
        Some(label) => format!("{label} {} ({})", run.id, look + 1),
        None => format!("{} ({})", run.id, look + 1),
    };
    runs.iter().enumerate().map(named).collect()
}

pub fn is_drawn(figures: &Figures) -> bool {
    let is_time = matches!(figures.measured.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine);
    is_time && figures.is_estimate() && figures.below.is_none() && figures.estimate.median > 0.0
}

/// The figure of a case in each environment that has one: `80.2 → 120 ns`; of more than two, the first and the last.
pub fn figures_of_all(subjects: &[Subject], case: &Case) -> Text {
    let figures = subjects.iter().filter_map(|subject| subject.summary.figures(case).map(Figures::in_words));
    let figures: Vec<String> = figures.collect();
    Text::from(match figures.as_slice() {
        [one, .., other] => figures::from_to(one, other),
        figures => figures.concat(),
    })
}

pub fn mark(look: usize, figures: &Figures) -> Mark {
    let estimate = &figures.estimate;
    Mark {
        look,
        at: estimate.median,
        interval: estimate.interval.map(|interval| (interval.low, interval.high)),
        min: figures.min(),
        is_noisy: !figures.noise().is_empty(),
        title: Text::default(),
    }
}
