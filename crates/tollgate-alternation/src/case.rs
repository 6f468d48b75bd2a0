//! A case on its sides: figures and the state of their comparisons.

use std::cmp::Reverse;
use std::time::Duration;

use tollgate_statistics::{Neighbours, Verdict, across_layouts, median, neighbours, settled_interval};

use crate::{Places, Plan, Trial};

/// With fewer pairs, an interval that looks narrow is not trusted.
pub const LEAST_PAIRS: usize = 16;
/// The confidence of the interval of a single side, at all looks together.
const CONFIDENCE: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// A verdict is inconclusive, or rests on too few executions.
    Undecided,
    /// An interval is too wide.
    Wide,
    /// Nothing more is needed.
    Narrow,
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub sides: Vec<Side>,
    /// The total time of its rounds, the longest of them, both by the trial's clock, and their number.
    pub taken: Duration,
    pub longest: Duration,
    pub executed: u32,
    pub state: Progress,
    /// The number of pairs at the last look.
    looked: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub number: usize,
    /// One for each timed round; NaN if it was discarded.
    pub figures: Vec<f64>,
    /// For each figure, whether its place executed the same thing before.
    pub is_after_itself: Vec<bool>,
    /// Whether it is no longer executed.
    pub is_left: bool,
}

impl Case {
    pub fn new(sides: &[usize]) -> Self {
        let side = |number: &usize| Side {
            number: *number,
            figures: Vec::new(),
            is_after_itself: Vec::new(),
            is_left: false,
        };
        Self {
            sides: sides.iter().map(side).collect(),
            taken: Duration::ZERO,
            longest: Duration::ZERO,
            executed: 0,
            state: Progress::Undecided,
            looked: 0,
        }
    }

    pub fn side(&mut self, number: usize) -> Option<&mut Side> {
        self.sides.iter_mut().find(|side| side.number == number)
    }

    pub fn open<'a>(&'a self, places: &'a Places) -> impl Iterator<Item = &'a Side> {
        self.sides.iter().filter(|side| !side.is_left && places.has(side.number))
    }

    /// The number of rounds for which every open side has a figure.
    pub fn pairs(&self, places: &Places) -> usize {
        self.open(places).map(|side| side.figures.len()).min().unwrap_or_default()
    }

    pub fn took(&mut self, round: Duration) {
        self.taken += round;
        self.longest = self.longest.max(round);
        self.executed += 1;
    }

    /// The mean time of its rounds.
    fn round(&self) -> Duration {
        self.taken / self.executed.max(1)
    }

    pub fn begin_anew(&mut self) {
        for side in &mut self.sides {
            side.figures.clear();
            side.is_after_itself.clear();
        }
        (self.state, self.looked) = (Progress::Undecided, 0);
    }

    /// Compares its sides if there are enough new figures, since a look takes long. Returns the last comparison with its side.
    pub fn look(
        &mut self,
        places: &Places,
        plan: &Plan,
        trial: &impl Trial,
        rows: Option<usize>,
    ) -> Option<(usize, Neighbours)> {
        let pairs = self.pairs(places);
        if pairs < LEAST_PAIRS || pairs < self.looked + self.looked / 20 {
            return None;
        }
        let figures = |side: &Side| -> Vec<f64> {
            let less = trial.less(side.number);
            side.figures[..pairs].iter().map(|figure| figure - less).collect()
        };
        let mut all: Vec<(usize, Vec<f64>)> =
            self.open(places).map(|side| (side.number, figures(side))).collect();
        let is_kept: Vec<bool> =
            (0..pairs).map(|round| all.iter().all(|(_, figures)| !figures[round].is_nan())).collect();
        for (_, figures) in &mut all {
            let mut is_kept = is_kept.iter();
            figures.retain(|_| is_kept.next() == Some(&true));
        }
        let ((_, base), others) = all.split_first()?;
        let mut state = Progress::Narrow;
        let mut last = None;
        for (side, figures) in others {
            let rows = rows.unwrap_or(others.len());
            let found = match plan.layouts {
                1 => neighbours(base, figures, rows, plan.asked, plan.is_whole),
                number => across_layouts(base, figures, number, rows, plan.asked, plan.is_whole),
            };
            last = found.map(|found| (*side, found)).or(last);
            state = state.min(found.map_or(Progress::Undecided, |found| state_of(&found, plan)));
        }
        if others.is_empty() && !is_narrow(base, plan.precision) {
            state = Progress::Wide;
        }
        (self.state, self.looked) = (state, pairs);
        last
    }
}

fn state_of(found: &Neighbours, plan: &Plan) -> Progress {
    match found.verdict {
        Verdict::Inconclusive if plan.until_decided => Progress::Undecided,
        _ if found.is_precise(plan.precision) => Progress::Narrow,
        _ if found.is_precise(f64::INFINITY) => Progress::Wide,
        _ => Progress::Undecided,
    }
}

/// Whether the median of a single side is known to `precision`.
fn is_narrow(figures: &[f64], precision: f64) -> bool {
    let interval = settled_interval(figures, CONFIDENCE);
    let median = median(figures).filter(|median| *median > 0.0);
    interval.zip(median).is_some_and(|(interval, median)| interval.high - interval.low <= precision * median)
}

/// Chooses the cases of the next round for the time that is left. First come those that can get the pairs of an interval in that
/// time, since too few pairs of each would give no verdict at all. Then come undecided cases, then those with wide intervals.
pub(crate) fn chosen(cases: &[Case], places: &Places, mut left: Duration) -> Vec<usize> {
    let open = || {
        let open = cases.iter().enumerate().filter(|(_, case)| case.open(places).next().is_some());
        open.map(|(at, case)| (at, case, case.pairs(places)))
    };
    let mut lacking: Vec<(usize, &Case, usize)> = open().filter(|(.., pairs)| *pairs < LEAST_PAIRS).collect();
    lacking.sort_by_key(|(_, case, pairs)| (Reverse(*pairs), case.round()));
    let is_carried = |(_, case, pairs): &&(usize, &Case, usize)| {
        let rest = left.checked_sub(case.round() * (LEAST_PAIRS - pairs) as u32);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let carried: Vec<usize> = lacking.iter().take_while(is_carried).map(|(at, ..)| *at).collect();
    let has_pairs = || open().filter(|(.., pairs)| *pairs >= LEAST_PAIRS);
    let least = has_pairs().map(|(_, case, _)| case.state).min().filter(|state| *state != Progress::Narrow);
    match (carried.is_empty(), least) {
        (false, _) => carried,
        (true, Some(least)) => {
            has_pairs().filter(|(_, case, _)| case.state == least).map(|(at, ..)| at).collect()
        }
        // The time suffices for no other case.
        (true, None) => lacking.into_iter().map(|(at, ..)| at).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case with this number of pairs and a round of this many milliseconds.
    fn case(pairs: usize, ms: u64, state: Progress) -> Case {
        let mut case = Case { state, ..Case::new(&[0, 1]) };
        case.sides.iter_mut().for_each(|side| side.figures = vec![1.0; pairs]);
        case.took(Duration::from_millis(ms));
        case
    }

    #[test]
    fn cases_begin_that_the_time_brings_to_an_interval_and_the_decided_leave_theirs_to_others() {
        use Progress::{Narrow, Undecided, Wide};
        let places = Places::of_each(2);
        let chosen = |cases: &[Case], ms| chosen(cases, &places, Duration::from_millis(ms));
        let new = [300, 100, 200].map(|ms| case(0, ms, Undecided));
        // Sixteen pairs of each.
        assert_eq!(chosen(&new, 9600), [1, 2, 0]);
        assert_eq!(chosen(&new, 9599), [1, 2]);
        assert_eq!(chosen(&new, 4799), [1]);
        // The time suffices for none, so they share it.
        assert_eq!(chosen(&new, 1599), [1, 2, 0]);
        // A case that has begun comes first, although it is slow.
        let mut begun = [case(1, 300, Undecided), case(0, 100, Undecided), case(16, 100, Undecided)];
        assert_eq!(chosen(&begun, 6099), [0]);
        assert_eq!(chosen(&begun, 6100), [0, 1]);
        // The time suffices neither for this one nor for the new one.
        assert_eq!(chosen(&begun, 1599), [2]);
        begun[2].state = Wide;
        assert_eq!(chosen(&begun, 1599), [2]);
        begun[2].state = Narrow;
        assert_eq!(chosen(&begun, 1599), [0, 1]);
        let settled = [case(16, 100, Narrow), case(20, 100, Undecided), case(20, 100, Wide)];
        assert_eq!(chosen(&settled, 10_000), [1]);
        assert_eq!(chosen(&settled[..1], 10_000), [0_usize; 0]);
        let mut left = case(0, 100, Undecided);
        left.sides.iter_mut().for_each(|side| side.is_left = true);
        assert_eq!(chosen(&[left], 10_000), [0_usize; 0]);
    }
}
