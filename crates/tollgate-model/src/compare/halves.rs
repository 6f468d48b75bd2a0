use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Verdict, margin};
use crate::measurement::{Case, Measured};
use crate::own;
use crate::run::Run;
use crate::stats::{self, Ends, Interval, Margins, confidence_of_each, exp, percent};

/// How the halves of a base's processes compare, case by case. Chance puts one of each two consecutive processes into either half:
/// this includes the noise of the machine, but not what one side keeps for a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Halves {
    /// Cases of the bases that are the same as themselves.
    pub same: usize,
    /// Cases that are undecided.
    pub open: usize,
    /// Cases that differ from themselves.
    pub different: Vec<Case>,
    /// Half of the interval's width as a share of the ratio, for each case with an interval: the precision of a half. Ascending.
    #[serde(skip)]
    pub half_widths: Vec<f64>,
}

impl Halves {
    /// Computes the halves of the base of a session.
    pub fn of_run(run: &Run) -> Self {
        Self::new(run.measured().filter(|(case, _)| !own::is_own(&case.benchmark)), run, 0.0)
    }

    pub(super) fn new<'a>(
        cases: impl Iterator<Item = (&'a Case, &'a Measured)>,
        base: &Run,
        asked: f64,
    ) -> Self {
        let timed: Vec<_> = cases.filter(|(_, measured)| !measured.is_count()).collect();
        let confidence = confidence_of_each(timed.len());
        let margins = Margins { margin: margin(asked), controls: 0.0 };
        let mut coin = Coin::of(base);
        let mut halves = Self::default();
        for (case, measured) in timed {
            let logs = coin.differences(measured);
            let interval = Ends::new(&logs, confidence).and_then(|ends| ends.interval(&logs)).map(exp);
            halves.half_widths.extend(interval.map(|Interval { low, high }| (high / low).sqrt() - 1.0));
            match margins.verdict(interval, logs.len(), None) {
                (Verdict::Same, _) => halves.same += 1,
                (verdict, _) if verdict.is_difference() => halves.different.push(case.clone()),
                _ => halves.open += 1,
            }
        }
        halves.half_widths.sort_unstable_by(f64::total_cmp);
        halves
    }

    /// Number of its cases.
    pub fn cases(&self) -> usize {
        self.same + self.open + self.different.len()
    }

    /// Adds the cases of `other`.
    pub fn add(&mut self, other: &Self) {
        self.same += other.same;
        self.open += other.open;
        self.different.extend(other.different.iter().cloned());
        self.half_widths.extend(&other.half_widths);
        self.half_widths.sort_unstable_by(f64::total_cmp);
    }

    /// The median precision of a half over the cases, as a share; `None` if most have no interval.
    pub fn precision(&self) -> Option<f64> {
        self.half_widths.get(self.cases() / 2).copied()
    }

    pub(super) fn is_failed(&self) -> bool {
        const SHARE: f64 = 0.05;
        self.different.len() > 1 && self.different.len() as f64 > SHARE * self.cases() as f64
    }
}

/// `A/A: 51 of 51 the same, none different`; `A/A: none of 51 different, 12 the same; half are known to ±2.4 % or better`.
impl fmt::Display for Halves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cases, same) = (self.cases(), self.same);
        let different = match self.different.len() {
            0 => "none".to_owned(),
            some => some.to_string(),
        };
        match self.precision() {
            _ if self.open == 0 => write!(f, "A/A: {same} of {cases} the same, {different} different"),
            Some(half) => write!(
                f,
                "A/A: {different} of {cases} different, {same} the same; half are known to ±{} or better",
                percent(half)
            ),
            None if self.half_widths.is_empty() => {
                write!(f, "A/A: the base has too few processes for two halves")
            }
            None => write!(
                f,
                "A/A: {different} of {} different, {same} the same; {} have too few processes for two halves",
                self.half_widths.len(),
                cases - self.half_widths.len()
            ),
        }
    }
}

/// SplitMix64 of the session's name, so that a session always has the same halves.
struct Coin(u64);

impl Coin {
    fn of(run: &Run) -> Self {
        let name = run.session.as_ref().map_or(run.id.as_ref(), |part| part.id.as_ref());
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn is_heads(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 == 0
    }

    fn differences(&mut self, measured: &Measured) -> Vec<f64> {
        let logs: Vec<f64> = measured
            .by_process()
            .filter_map(|samples| stats::median(samples).filter(|median| *median > 0.0))
            .map(f64::ln)
            .collect();
        logs.chunks_exact(2)
            .map(|pair| if self.is_heads() { pair[1] - pair[0] } else { pair[0] - pair[1] })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_said_with_the_precision_that_it_has() {
        let of = |half_widths: &[f64]| Halves {
            same: 1,
            open: 3,
            half_widths: half_widths.to_vec(),
            ..Halves::default()
        };
        let mut all = of(&[0.008, 0.02, 0.024, 0.3]);
        assert_eq!(
            all.to_string(),
            "A/A: none of 4 different, 1 the same; half are known to ±2.4 % or better"
        );
        assert_eq!(of(&[]).to_string(), "A/A: the base has too few processes for two halves");
        assert_eq!(
            of(&[0.008]).to_string(),
            "A/A: none of 1 different, 1 the same; 3 have too few processes for two halves"
        );
        all.add(&of(&[0.001; 4]));
        assert_eq!((all.cases(), all.precision()), (8, Some(0.008)));
    }

    #[test]
    fn the_halves_of_a_base_are_drawn() {
        let measured = |levels: [f64; 2]| {
            let times = (0..160).map(|at| levels[at % 2] * (1.0 + (at * 7919 % 211) as f64 / 1e6)).collect();
            Measured::of_executions("versus", crate::measurement::Unit::Nanoseconds, times)
        };
        let mut coin = Coin(7);
        let logs = coin.differences(&measured([1.0, 2.0]));
        assert_eq!(logs.len(), 80);
        let above = logs.iter().filter(|log| **log > 0.0).count();
        assert!((25..55).contains(&above), "{above}");
    }
}
