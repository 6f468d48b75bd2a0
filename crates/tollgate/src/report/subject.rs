//! A run as it is shown beside others.

use std::collections::HashMap;

use tollgate_model::{Case, Run, Unit};
use tollgate_report::page::Mark;

use crate::observations::Observation;
use crate::prices::{Figures, Prices, Row};
use crate::{compare, figures, observations};

/// A run, looked at.
pub struct Subject<'a> {
    /// Its place among the others, by which it is drawn.
    pub look: usize,
    /// What it is called.
    pub name: String,
    /// It.
    pub run: &'a Run,
    /// What its samples say.
    pub prices: Prices<'a>,
    /// What its rows say together.
    pub observations: Vec<Observation>,
    by_case: HashMap<&'a Case, usize>,
}

impl<'a> Subject<'a> {
    /// Looks at runs.
    pub fn all(runs: &'a [Run]) -> Vec<Self> {
        let mut subjects: Vec<Self> =
            runs.iter().enumerate().map(|(look, run)| Self::of(look, run)).collect();
        // Two of one name are told apart by their ids.
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
        let prices = Prices::of(run);
        let observations = observations::of(run, &prices);
        let by_case = prices.rows.iter().enumerate().map(|(at, row)| (row.case, at)).collect();
        Self { look, name: compare::name(run), run, observations, by_case, prices }
    }

    /// What became of a case here.
    pub fn row(&self, case: &Case) -> Option<&Row<'a>> {
        self.prices.rows.get(*self.by_case.get(case)?)
    }

    /// What was measured of a case here.
    pub fn figures(&self, case: &Case) -> Option<&Figures<'a>> {
        self.row(case)?.figures()
    }

    /// The mark of a case, where it has a price in time that can be told from nothing.
    pub fn mark(&self, case: &Case, is_comparison: bool) -> Option<Mark> {
        let figures = self.figures(case).filter(|figures| is_drawn(figures))?;
        let place = if is_comparison { format!("{}, ", self.name) } else { String::new() };
        Some(mark(self.look, figures, &format!("{place}{case}")))
    }
}

/// Whether a price can be drawn on an axis of times.
pub fn is_drawn(figures: &Figures) -> bool {
    let is_time = matches!(figures.measured.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine);
    is_time && figures.is_price() && figures.below.is_none() && figures.price.median > 0.0
}

/// The mark of a price.
pub fn mark(look: usize, figures: &Figures, name: &str) -> Mark {
    let (price, unit) = (&figures.price, figures.measured.unit);
    let title = format!(
        "{name}: {} ({})",
        figures::price(price.median, unit),
        figures::range(price.interval.low, price.interval.high, price.median, unit)
    );
    Mark {
        look,
        at: price.median,
        interval: (price.interval.low, price.interval.high),
        floor: Some(price.min).filter(|floor| *floor > 0.0),
        title: title.into(),
    }
}
