use serde::{Deserialize, Serialize};

use crate::{Interval, median, percent, ratio_of_totals};

/// The confidence of the interval of a total. It shows equality, which may be wrong once in twenty (Schuirmann, "A Comparison of
/// the Two One-Sided Tests Procedure and the Power Approach for Assessing the Equivalence of Average Bioavailability", 1987).
pub const CONFIDENCE_OF_TOTAL: f64 = 0.95;

/// The ratio of the total times of two commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// other / base.
    pub ratio: f64,
    /// The interval of the ratio, at [`CONFIDENCE_OF_TOTAL`] and all looks together, asymptotically, if there are enough executions.
    pub interval: Option<Interval>,
    /// How the executions are shared among modes, if the two differ in that: a clause.
    pub modes: Option<String>,
}

impl Total {
    /// Compares executions; those with the same index were neighbours. `None` without times above zero.
    pub fn new(base: &[f64], other: &[f64]) -> Option<Self> {
        let (ratio, interval) = ratio_of_totals(base, other, CONFIDENCE_OF_TOTAL)?;
        Some(Self { ratio, interval, modes: modes(base, other) })
    }

    /// Returns why executions are not the same although their medians are.
    pub fn doubt(&self, margin: f64) -> Option<String> {
        let Some(Interval { low, high }) = self.interval else {
            return Some("too few independent executions for the ratio of their totals".to_owned());
        };
        if low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin {
            return None;
        }
        let modes = self.modes.as_ref().map(|modes| format!("; {modes}")).unwrap_or_default();
        let within = percent(margin);
        Some(format!(
            "the medians are the same within {within}, but the totals may differ: {:.3} [{low:.3}, {high:.3}]{modes}",
            self.ratio
        ))
    }
}

/// `near 2.72 × the base's median are 0 % of the base's executions and 20 % of the other's`, unless the modes are equal.
fn modes(base: &[f64], other: &[f64]) -> Option<String> {
    /// Smaller differences of shares are chance.
    const APART: f64 = 0.1;
    let middle = median(base)?;
    let upper = |times: &[f64]| match crate::modes(times).as_slice() {
        [_, upper] => Some((upper.at / middle, upper.share)),
        _ => None,
    };
    let near = |times: &[f64], at: f64| {
        let number = times.iter().filter(|time| (*time / middle / at - 1.0).abs() < 0.05).count();
        number as f64 / times.len().max(1) as f64
    };
    let (at, _) = upper(other).or_else(|| upper(base))?;
    let [of_base, of_other] = [base, other].map(|times| near(times, at));
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    ((of_base - of_other).abs() >= APART).then(|| {
        format!(
            "near {at:.2} × the base's median are {} of the base's executions and {} of the other's",
            share(of_base),
            share(of_other)
        )
    })
}
