//! Everything that is said about a run, computed once from its samples: tables, JSON, CSV, the page and every export are written
//! from it. No other module computes a median of a run.

mod figures;
mod note;

use std::collections::HashMap;

use tollgate_engine::limits::lack_of_memory;
use tollgate_model::compare::{Paired, paired_rows};
use tollgate_model::disturbance::Disturbance;
use tollgate_model::estimate::detection_limit;
use tollgate_model::measurement::Status;
use tollgate_model::{Case, Outcome, Run, Unit, own};

pub use figures::{Figures, Noise, PARTS, Part, is_estimate};
pub(crate) use note::Note;

/// The benchmark whose median the others are multiples of.
pub const BASELINE: &str = "entry/syscall";

/// A run and its figures.
pub struct Summary<'a> {
    /// The run.
    pub run: &'a Run,
    /// Every requested case, in the document's order.
    pub rows: Vec<CaseRow<'a>>,
    /// The engine's own measurements.
    pub own: Vec<CaseRow<'a>>,
    /// Its processes that something else slowed. The figures exclude them.
    pub disturbance: Disturbance<'a>,
    by_case: HashMap<&'a Case, usize>,
}

/// A case and its outcome.
pub struct CaseRow<'a> {
    /// The requested case.
    pub case: &'a Case,
    /// Its outcome.
    pub state: State<'a>,
}

/// The outcome of a case.
pub enum State<'a> {
    /// It has a median, or is below the detection limit.
    Measured(Box<Figures<'a>>),
    /// It has no figures, for this reason.
    Without(Status, &'a str),
}

impl<'a> Summary<'a> {
    /// Summarizes the samples of a run.
    pub fn of(run: &'a Run) -> Self {
        let disturbance = Disturbance::of(run);
        let mut paired: HashMap<Case, Paired> = paired_rows(&disturbance.left_out(run)).into_iter().collect();
        let baseline = level(run, BASELINE, &disturbance);
        let rows = run.measurements.iter().map(|measurement| {
            let case = &measurement.case;
            let state = match &measurement.outcome {
                Outcome::Measured(measured) => match Figures::new(measured, run, &disturbance) {
                    None => State::Without(Status::Failed, "it has no samples"),
                    Some(mut figures) => {
                        figures.paired = paired.remove(case);
                        figures.multiple = baseline.and_then(|baseline| figures.multiple_of(baseline));
                        State::Measured(Box::new(figures))
                    }
                },
                outcome => State::Without(outcome.status(), outcome.why().unwrap_or_default()),
            };
            CaseRow { case, state }
        });
        let (own, rows): (Vec<CaseRow>, Vec<CaseRow>) =
            rows.partition(|row| own::is_own(&row.case.benchmark));
        let by_case = rows.iter().enumerate().map(|(at, row)| (row.case, at)).collect();
        Self { run, rows, own, disturbance, by_case }
    }

    /// Keeps only the rows of these cases.
    pub fn retain(&mut self, is_chosen: impl Fn(&Case) -> bool) {
        self.rows.retain(|row| is_chosen(row.case));
        self.by_case = self.rows.iter().enumerate().map(|(at, row)| (row.case, at)).collect();
    }

    /// The measured rows.
    pub fn measured(&self) -> impl Iterator<Item = (&'a Case, &Figures<'a>)> {
        self.rows.iter().filter_map(|row| Some((row.case, row.figures()?)))
    }

    /// The row of a case.
    pub fn row(&self, case: &Case) -> Option<&CaseRow<'a>> {
        self.rows.get(*self.by_case.get(case)?)
    }

    /// The figures of a case.
    pub fn figures(&self, case: &Case) -> Option<&Figures<'a>> {
        self.row(case)?.figures()
    }

    /// The engine's own measurement `benchmark` in `group`.
    pub fn own(&self, benchmark: &str, group: &str) -> Option<&Figures<'a>> {
        let of_group = |figures: &&Figures| figures.measured.group == group;
        self.own
            .iter()
            .filter(|row| row.case.benchmark == benchmark)
            .filter_map(CaseRow::figures)
            .find(of_group)
    }

    /// The groups whose rounds were run, in order.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for (_, figures) in self.measured() {
            if !groups.contains(&figures.measured.group.as_str()) {
                groups.push(&figures.measured.group);
            }
        }
        groups
    }

    /// The times of one benchmark above the detection limit that hardware executed, in the order of the run.
    pub fn of_benchmark(&self, benchmark: &str) -> impl Iterator<Item = (&'a Case, &Figures<'a>)> {
        let is_usable =
            |figures: &Figures| figures.is_estimate() && !figures.is_count() && figures.below.is_none();
        self.measured().filter(move |(case, figures)| case.benchmark == benchmark && is_usable(figures))
    }

    /// The measured rows of a group.
    pub fn of_group(&self, group: &str) -> impl Iterator<Item = &Figures<'a>> {
        self.measured().map(|(_, figures)| figures).filter(move |figures| figures.measured.group == group)
    }

    /// The detection limits of a group's rows: the smallest and the largest.
    pub fn detection_limits(&self, group: &str) -> Option<(f64, f64)> {
        let null = &self.own(own::EMPTY_LOOP, group).filter(|null| !null.is_count())?.measured;
        let limits = self.of_group(group).map(|figures| detection_limit(self.run, null, &figures.measured));
        let limits: Vec<f64> = limits.collect();
        let smallest = limits.iter().copied().min_by(f64::total_cmp)?;
        Some((smallest, limits.into_iter().max_by(f64::total_cmp)?))
    }

    /// How many cases were left out because they need more memory than a run may take, and how much that would have been.
    pub fn without_memory(&self) -> Option<String> {
        let lacking: Vec<(u64, &str)> =
            self.rows.iter().filter_map(|row| lack_of_memory(row.why()?)).collect();
        let (need, limit) = lacking.iter().max_by_key(|(need, _)| *need)?;
        let up_to = if lacking.len() == 1 { "" } else { "up to " };
        let cases = match lacking.len() {
            1 => "1 case that needs".to_owned(),
            cases => format!("{cases} cases that need"),
        };
        Some(format!("Left out: {cases} {up_to}{need} MiB of memory, more than {limit}"))
    }
}

impl<'a> CaseRow<'a> {
    /// Its figures, if it was measured.
    pub fn figures(&self) -> Option<&Figures<'a>> {
        match &self.state {
            State::Measured(figures) => Some(figures),
            State::Without(..) => None,
        }
    }

    /// The name of its status.
    pub fn status(&self) -> &'static str {
        match self.state {
            State::Measured(_) => Status::Measured.name(),
            State::Without(status, _) => status.name(),
        }
    }

    /// Why it has no figures.
    pub fn why(&self) -> Option<&'a str> {
        match self.state {
            State::Measured(_) => None,
            State::Without(_, why) => Some(why),
        }
    }

    /// Whether it was measured and is noisy.
    pub fn is_noisy(&self) -> bool {
        self.figures().is_some_and(|figures| !figures.noise().is_empty())
    }

    pub(crate) fn notes(&self) -> Vec<Note<'_>> {
        match &self.state {
            State::Without(_, why) => vec![Note::Said(why)],
            State::Measured(figures) => note::notes_of(self.case, figures),
        }
    }
}

/// The median of a benchmark's first case, in ns, if it is above the detection limit.
pub fn latency(run: &Run, benchmark: &str) -> Option<f64> {
    level(run, benchmark, &Disturbance::of(run))
        .filter(|(_, unit)| *unit == Unit::Nanoseconds)
        .map(|(latency, _)| latency)
}

fn level(run: &Run, benchmark: &str, disturbance: &Disturbance) -> Option<(f64, Unit)> {
    let measurement = run.measurements.iter().find(|measurement| measurement.case.benchmark == benchmark)?;
    let Outcome::Measured(measured) = &measurement.outcome else { return None };
    let figures = Figures::new(measured, run, disturbance).filter(|figures| figures.below.is_none())?;
    let is_level = figures.measured.unit == Unit::Nanoseconds || figures.is_count();
    let level = (figures.estimate.median, figures.measured.unit);
    Some(level).filter(|(median, _)| is_level && *median > 0.0)
}
