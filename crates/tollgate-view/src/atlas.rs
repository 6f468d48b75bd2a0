//! Kernels side by side: one row per case, one column per kernel, each count compared with the previous kernel's.

use std::collections::BTreeSet;

use tollgate_model::compare::Verdict;
use tollgate_model::versus::{INSTRUCTIONS, least_difference};
use tollgate_model::{Case, Unit};

use crate::comparison::Comparison;
use crate::summary::Summary;
use crate::{counts, facts};

pub(crate) struct Atlas<'a> {
    pub(crate) kernels: Vec<&'a str>,
    pub(crate) rows: Vec<KernelsRow<'a>>,
}

pub(crate) struct KernelsRow<'a> {
    pub(crate) case: &'a Case,
    pub(crate) cells: Vec<Cell>,
}

#[derive(Clone, Copy)]
pub(crate) struct Cell {
    /// The count and its unit; `None` if the case was not counted.
    pub(crate) count: Option<(f64, Unit)>,
    /// Compared with the previous kernel; `None` for the first one, and if either counted nothing.
    pub(crate) step: Option<Step>,
}

#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) verdict: Verdict,
    pub(crate) ratio: f64,
}

impl<'a> Atlas<'a> {
    /// The largest relative difference that does not count: a change that leaves the kernel's code alone still moves its objects
    /// in memory.
    pub(crate) fn least() -> f64 {
        least_difference(&Case::plain(INSTRUCTIONS))
    }

    /// The kernels of a session whose environments are guests that count instructions; `None` for other sessions.
    pub(crate) fn of(summaries: &[&Summary<'a>]) -> Option<Self> {
        let kernels: Vec<&'a str> = summaries.iter().map(|summary| kernel(summary)).collect::<Option<_>>()?;
        if kernels.len() < 2 || !summaries.iter().any(|summary| counts::is_counted(summary)) {
            return None;
        }
        Some(Self::beside(summaries, kernels, Self::least()))
    }

    /// The kernels under which one command was counted; `None` for others, and for two, which all columns of a comparison show.
    pub(crate) fn of_command(summaries: &[&Summary<'a>]) -> Option<Self> {
        let kernels: Vec<&'a str> =
            summaries.iter().map(|summary| release(summary)).collect::<Option<_>>()?;
        let is_one = |summary: &&Summary| {
            let part = summary.run.session.as_ref();
            part.is_some_and(|part| part.command.is_some())
                && summary.figures(&Case::plain(INSTRUCTIONS)).is_some()
        };
        let different: BTreeSet<&str> = kernels.iter().copied().collect();
        let is_asked = kernels.len() > 2 && different.len() == kernels.len() && summaries.iter().all(is_one);
        is_asked.then(|| Self::beside(summaries, kernels, 0.0))
    }

    fn beside(summaries: &[&Summary<'a>], kernels: Vec<&'a str>, asked: f64) -> Self {
        let pairs = summaries.windows(2);
        let steps: Vec<Comparison> =
            pairs.map(|pair| Comparison::above(pair[0].run, pair[1].run, asked)).collect();
        let mut cases: Vec<&'a Case> = Vec::new();
        for case in summaries.iter().flat_map(|summary| summary.measured().map(|(case, _)| case)) {
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
        let cell = |case: &Case, at: usize| {
            let figures = summaries[at].figures(case);
            let count = figures.map(|figures| (figures.estimate.median, figures.measured.unit));
            let row = at.checked_sub(1).and_then(|before| steps[before].row(case));
            let step = row.map(|row| Step { verdict: row.result.verdict, ratio: row.result.ratio });
            Cell { count, step }
        };
        let row = |case| KernelsRow { case, cells: (0..kernels.len()).map(|at| cell(case, at)).collect() };
        let rows = cases.into_iter().map(row).collect();
        Self { kernels, rows }
    }

    /// The releases without their common ending, such as `-cloud-amd64`.
    pub(crate) fn short_names(&self) -> Vec<String> {
        let split = |kernel: &&'a str| kernel.split('-').collect::<Vec<_>>();
        let mut parts: Vec<Vec<&str>> = self.kernels.iter().map(split).collect();
        let is_common = |parts: &Vec<Vec<&str>>| {
            let last = parts.first().and_then(|parts| parts.last().copied());
            parts.iter().all(|parts| parts.len() > 1 && parts.last().copied() == last)
        };
        while is_common(&parts) {
            parts.iter_mut().for_each(|parts| parts.truncate(parts.len() - 1));
        }
        parts.iter().map(|parts| parts.join("-")).collect()
    }

    pub(crate) fn changed(&self) -> Vec<&KernelsRow<'a>> {
        let mut rows: Vec<(f64, &KernelsRow)> =
            self.rows.iter().filter_map(|row| Some((row.largest()?.1.size(), row))).collect();
        rows.sort_by(|one, another| another.0.total_cmp(&one.0));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// How many cases no kernel changes, and how many some kernel may change but none certainly does.
    pub(crate) fn unchanged(&self) -> [usize; 2] {
        let rows = self.rows.iter().filter(|row| row.largest().is_none());
        let (open, same): (Vec<_>, Vec<_>) = rows.partition(|row| row.is_open());
        [same.len(), open.len()]
    }

    /// How many cases a kernel counted, in how many it has more, and in how many fewer, than the previous one.
    pub(crate) fn tally(&self, at: usize) -> [usize; 3] {
        let cells = || self.rows.iter().map(|row| row.cells[at]);
        let with = |sign| cells().filter(|cell| cell.sign() == Some(sign)).count();
        [cells().filter(|cell| cell.count.is_some()).count(), with('+'), with('-')]
    }
}

impl KernelsRow<'_> {
    /// Its name in a table of this kind.
    pub(crate) fn name(&self) -> String {
        counts::of_command(self.case).map_or_else(|| self.case.to_string(), str::to_owned)
    }

    fn is_open(&self) -> bool {
        self.cells.iter().any(|cell| cell.step.is_some_and(|step| step.verdict == Verdict::Inconclusive))
    }

    pub(crate) fn largest(&self) -> Option<(usize, Step)> {
        let steps = self.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.step?)));
        let changes = steps.filter(|(_, step)| step.verdict.is_difference());
        changes.max_by(|one, another| one.1.size().total_cmp(&another.1.size()))
    }

    pub(crate) fn ends(&self) -> String {
        let mut all = self.cells.iter().filter_map(Cell::words);
        let (first, last) = (all.next(), all.next_back());
        [first, last].into_iter().flatten().collect::<Vec<_>>().join(" → ")
    }
}

impl Step {
    fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }
}

impl Cell {
    pub(crate) fn words(&self) -> Option<String> {
        self.count.map(|(count, unit)| counts::count(count, unit))
    }

    /// `+` for more than the previous kernel, `-` for fewer, `=` for the same, `~` if undecided.
    pub(crate) fn sign(&self) -> Option<char> {
        self.step.map(|step| match step.verdict {
            Verdict::Slower | Verdict::SomewhatSlower => '+',
            Verdict::Faster | Verdict::SomewhatFaster => '-',
            Verdict::Same => '=',
            Verdict::Inconclusive => '~',
        })
    }

    /// The count with its sign: `281 +`; a dash without a count.
    pub(crate) fn signed(&self) -> String {
        match (self.words(), self.sign()) {
            (Some(count), Some(sign)) => format!("{count} {sign}"),
            (Some(count), None) => format!("{count}  "),
            (None, _) => "–  ".to_owned(),
        }
    }
}

fn kernel<'a>(summary: &Summary<'a>) -> Option<&'a str> {
    let part = summary.run.session.as_ref()?;
    let is_counting = summary.measured().all(|(_, figures)| figures.is_count());
    release(summary).filter(|_| part.command.is_none() && is_counting)
}

/// The release of its kernel, if its environment is called so.
fn release<'a>(summary: &Summary<'a>) -> Option<&'a str> {
    let part = summary.run.session.as_ref()?;
    facts::text(&summary.run.facts, "kernel.release").filter(|release| part.environment == *release)
}
