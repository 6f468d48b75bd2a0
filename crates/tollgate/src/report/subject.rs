//! A run and its figures, one of several on a page.

use std::collections::HashMap;

use tollgate_model::{Case, Run, Unit};
use tollgate_view::page::Mark;

use crate::estimates::{Estimates, Figures, Row};
use crate::findings::Finding;
use crate::{compare, figures, findings};

/// A run with its figures.
pub struct Subject<'a> {
    /// Its position among the others, which decides its look.
    pub look: usize,
    /// Its name.
    pub name: String,
    /// It.
    pub run: &'a Run,
    /// The estimates.
    pub estimates: Estimates<'a>,
    /// What its rows say together.
    pub findings: Vec<Finding>,
    by_case: HashMap<&'a Case, usize>,
}

impl<'a> Subject<'a> {
    /// The subjects of runs.
    pub fn all(runs: &'a [Run]) -> Vec<Self> {
        let mut subjects: Vec<Self> =
            runs.iter().enumerate().map(|(look, run)| Self::of(look, run)).collect();
        // Ids distinguish two of one name.
        let names: Vec<String> = subjects.iter().map(|subject| subject.name.clone()).collect();
        for subject in &mut subjects {
            if names.iter().filter(|name| **name == subject.name).count() > 1 {
                let id = subject.run.id.to_string();
                let id = if subject.name == id { String::new() } else { format!(" {id}") };
                subject.name = format!("{}{id} ({})", subject.name, subject.look + 1);
            }
        }
        subjects
    }

    fn of(look: usize, run: &'a Run) -> Self {
        let estimates = Estimates::of(run);
        let findings = findings::of(run, &estimates);
        let by_case = estimates.rows.iter().enumerate().map(|(at, row)| (row.case, at)).collect();
        Self { look, name: compare::name(run), run, findings, by_case, estimates }
    }

    /// The row of a case.
    pub fn row(&self, case: &Case) -> Option<&Row<'a>> {
        self.estimates.rows.get(*self.by_case.get(case)?)
    }

    /// The figures of a case.
    pub fn figures(&self, case: &Case) -> Option<&Figures<'a>> {
        self.row(case)?.figures()
    }

    /// The mark of a case, where it has a time above the detection limit.
    pub fn mark(&self, case: &Case, is_comparison: bool) -> Option<Mark> {
        let figures = self.figures(case).filter(|figures| is_drawn(figures))?;
        let prefix = if is_comparison { format!("{}, ", self.name) } else { String::new() };
        Some(mark(self.look, figures, &format!("{prefix}{case}")))
    }
}

/// Whether an estimate can be drawn on an axis of times.
pub fn is_drawn(figures: &Figures) -> bool {
    let is_time = matches!(figures.measured.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine);
    is_time && figures.is_estimate() && figures.below.is_none() && figures.estimate.median > 0.0
}

/// The mark of an estimate.
pub fn mark(look: usize, figures: &Figures, name: &str) -> Mark {
    let (estimate, unit) = (&figures.estimate, figures.measured.unit);
    let title = format!(
        "{name}: {} ({})",
        figures::estimate(estimate.median, unit),
        figures::range(estimate.interval.low, estimate.interval.high, estimate.median, unit)
    );
    Mark {
        look,
        at: estimate.median,
        interval: (estimate.interval.low, estimate.interval.high),
        min: Some(estimate.min).filter(|floor| *floor > 0.0),
        title: title.into(),
    }
}
