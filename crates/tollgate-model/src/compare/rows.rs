use serde::{Deserialize, Serialize};

use super::facts::FactDifference;
use super::halves::Halves;
use super::spread::Basis;
use super::{Verdict, margin};
use crate::measurement::{Case, Unit};
use crate::stats::{Interval, Layouts, QUANTITY, Total, percent};

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The cases that both measured, in the order of the base, without the engine's own `bench/` cases.
    pub rows: Vec<ComparedCase>,
    /// The cases that only the base measured, and why the other has none: `not measured`, `skipped: …`, `failed: …`.
    pub only_base: Vec<(Case, String)>,
    /// The cases that only the other measured, and why the base has none.
    pub only_other: Vec<(Case, String)>,
    /// The cases that one side counted and the other timed, in the order of the base.
    pub not_compared: Vec<NotCompared>,
    /// Loop overhead in the base and in the other, in ns. It shows the processor's speed, whose difference is part of every
    /// threshold. `None` if either did not measure it.
    pub pace: Option<(f64, f64)>,
    /// The facts that differ between the environments, without volatile ones such as the load.
    pub facts: Vec<FactDifference>,
    /// Whether the two alternated, so that the rows compare turn with turn.
    pub is_alternated: bool,
    /// The confidence of each row's interval.
    pub confidence: f64,
    /// How much runs that did not alternate may differ although nothing changed; `None` if turns alternated.
    pub spread: Option<Basis>,
    /// The base compared with itself, if turns alternated.
    pub halves: Option<Halves>,
}

impl Comparison {
    /// The name of the intervals: `99.9 % CI`.
    pub fn interval_name(&self) -> String {
        interval_name(self.confidence)
    }

    /// Describes in sentences how the two were compared, given that relative differences up to `asked` do not count.
    pub fn method(&self, asked: f64) -> String {
        let level = self.interval_name();
        match &self.spread {
            Some(basis) => format!(
                "Not alternated, unpaired: medians of processes; {level}s, corrected for the number of rows; {basis}."
            ),
            None => {
                let is_open =
                    |row: &ComparedCase| row.verdict.is_difference() && !row.verdict.is_beyond_margin();
                let somewhat = if self.rows.iter().any(is_open) {
                    format!(" Somewhat: perhaps by less than {}.", percent(margin(asked)))
                } else {
                    String::new()
                };
                let quantity = match self.rows.iter().find_map(|row| row.layouts) {
                    Some(Layouts { number, .. }) => {
                        &format!("the mean over {number} layouts of each (Welch's t)")
                    }
                    None => QUANTITY,
                };
                format!(
                    "Alternated, paired: {quantity}; {level}s at all looks together, corrected for the number of rows.{somewhat}"
                )
            }
        }
    }
}

/// The level of an interval, never rounded up: `99.9 % CI`, `99.97 % CI`.
pub fn interval_name(confidence: f64) -> String {
    let hundredths = (confidence * 1e4 + 1e-6).floor() / 100.0;
    format!("{hundredths} % CI")
}

/// A case that is counted on one side and timed on the other: the two have no ratio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotCompared {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// The unit of the base.
    pub base_unit: Unit,
    /// The unit of the other.
    pub other_unit: Unit,
}

/// One case measured in two runs. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedCase {
    /// The case.
    pub case: Case,
    /// Estimate in the base, as [`crate::estimate::Estimate::median`]; `None` below the detection limit.
    pub base: Option<f64>,
    /// Estimate in the other, likewise.
    pub other: Option<f64>,
    /// other / base. For turns that alternated it is the median of the pairs' ratios, see [`QUANTITY`]; for counts the ratio of
    /// the estimates. Otherwise, if other runs of the machine have the case, it is the ratio of the pseudomedians of the
    /// processes' medians, each less what its canary explains; if not, the Hodges-Lehmann estimate over their logarithms. It is
    /// 1, and `interval` is `None`, if there is no ratio: a value is below the detection limit or not above zero, or the two
    /// are not comparable.
    pub ratio: f64,
    /// Interval of the ratio, at [`Comparison::confidence`]. `None` for too few processes, without a ratio, and for counts.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// Noise threshold of this row, a relative difference.
    pub threshold: f64,
    /// Why it is inconclusive, or why differing counts are the same; `None` otherwise.
    pub why: Option<String>,
    /// Results of the turns, if the two environments alternated.
    pub alternation: Option<Alternation>,
    /// How the layouts of the two sides lie, if each has several. The ratio and its interval are theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<Layouts>,
    /// Totals of the executions, if two commands were compared.
    pub total: Option<Total>,
    /// The comparison by processor time of alternated commands, if that is known.
    pub processor: Option<Box<ComparedCase>>,
}

impl ComparedCase {
    /// Makes the row of this case without a ratio.
    pub fn without(&self, why: String) -> Self {
        Self {
            case: self.case.clone(),
            base: None,
            other: None,
            ratio: 1.0,
            interval: None,
            verdict: Verdict::Inconclusive,
            threshold: self.threshold,
            why: Some(why),
            alternation: None,
            layouts: None,
            total: None,
            processor: None,
        }
    }

    /// The smallest ratio above 1 that half of such comparisons would call a difference. `None` without an interval.
    pub fn detectable(&self) -> Option<f64> {
        let Interval { low, high } = self.interval?;
        let half = (high / self.ratio).max(self.ratio / low);
        Some(half * (1.0 + self.threshold)).filter(|ratio| ratio.is_finite())
    }
}

/// Results of the turns of two environments for a case. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternation {
    /// The median of the pairs' differences other - base, in the unit of the samples.
    pub adds: f64,
    /// Interval of the differences, corrected like the ratio's. `None` if there are too few pairs of processes, or if the
    /// interval of the ratio was widened by what one side may keep.
    pub adds_interval: Option<Interval>,
    /// Pairs of processes.
    pub pairs: usize,
    /// Pairs of turns in these processes.
    pub turns: usize,
    /// Correlation of neighbouring turns of the two environments, from -1 to 1. `None` if a side does not vary, or has too few
    /// turns.
    pub correlation: Option<f64>,
}
