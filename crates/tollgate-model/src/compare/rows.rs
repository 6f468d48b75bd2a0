//! What a comparison of two runs finds.

use serde::{Deserialize, Serialize};

use super::facts::FactDifference;
use super::halves::Halves;
use super::spread::Basis;
use super::{Verdict, margin};
use crate::measurement::{Case, Unit};
use crate::stats::{Interval, QUANTITY, Total, percent};

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
    /// The loop overhead in the base and in the other, in ns. It shows the processor's speed, whose difference is part of
    /// every threshold. None where either did not measure it.
    pub pace: Option<(f64, f64)>,
    /// The facts that differ between the environments, without volatile ones such as the load.
    pub facts: Vec<FactDifference>,
    /// Whether the two were measured in alternation, and the rows compare turn with turn.
    pub is_alternated: bool,
    /// The confidence of each row's interval.
    pub confidence: f64,
    /// By what runs that were not alternated may differ though nothing changed; None where turns alternated.
    pub spread: Option<Basis>,
    /// The base compared with itself, where turns alternated.
    pub halves: Option<Halves>,
}

impl Comparison {
    /// The name of the intervals: `99.9 % CI`.
    pub fn interval_name(&self) -> String {
        interval_name(self.confidence)
    }

    /// How the two were compared, where no relative difference of up to `asked` counts: sentences.
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
                format!(
                    "Alternated, paired: {QUANTITY}; {level}s at all looks together, corrected for the number of rows.{somewhat}"
                )
            }
        }
    }
}

/// The level that an interval has, without what would be rounded up: `99.9 % CI`, `99.97 % CI`.
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
    /// Its estimate in the base, as [`crate::estimate::Estimate::median`]; None below the detection limit.
    pub base: Option<f64>,
    /// Its estimate in the other, likewise.
    pub other: Option<f64>,
    /// other / base: of turns that alternated the median of the pairs' ratios, see [`QUANTITY`]; else, where other runs of the machine
    /// have the case, of the pseudomedians of the processes' medians, each less what its canary explains; else the
    /// Hodges-Lehmann estimate over the logarithms of the processes' medians. It need not be the ratio of the two estimates to the last
    /// digit. 1 where there is no ratio: a value is below the
    /// detection limit or not above zero, or the two are not comparable; `interval` is None then. Of counts it is the ratio of the
    /// estimates.
    pub ratio: f64,
    /// Of the ratio, at [`Comparison::confidence`]. None: too few processes, or no ratio, or counts.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// The noise threshold of this row, a relative difference.
    pub threshold: f64,
    /// Why it is inconclusive, or why counts that differ are the same; None otherwise.
    pub why: Option<String>,
    /// What the turns showed, where the two environments were measured in alternation.
    pub alternation: Option<Alternation>,
    /// The totals of the executions, where two commands were compared.
    pub total: Option<Total>,
    /// The same of the processor time of alternated commands, where that is known.
    pub processor: Option<Box<ComparedCase>>,
}

impl ComparedCase {
    /// The same case where it has no ratio.
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
            total: None,
            processor: None,
        }
    }

    /// The smallest ratio above 1 that half of such comparisons would call a difference. None without an interval.
    pub fn detectable(&self) -> Option<f64> {
        let Interval { low, high } = self.interval?;
        let half = (high / self.ratio).max(self.ratio / low);
        Some(half * (1.0 + self.threshold)).filter(|ratio| ratio.is_finite())
    }
}

/// What the turns of two environments showed of a case. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternation {
    /// The median of the pairs' differences other - base, in the unit of the samples.
    pub adds: f64,
    /// Of the differences; corrected as the ratio's. None where there are too few pairs of processes, and where what one side may keep is
    /// in the interval of the ratio.
    pub adds_interval: Option<Interval>,
    /// Pairs of processes.
    pub pairs: usize,
    /// Pairs of turns in them.
    pub turns: usize,
    /// The correlation of neighbouring turns of the two environments, from -1 to 1. None where a side does not vary, or has too few
    /// turns.
    pub correlation: Option<f64>,
}
