use crate::disturbance::Disturbance;
use crate::measurement::Measured;
use crate::stats;

/// If a process's canary exceeds that of the quiet ones by this factor, the host was in another state than with a busy sibling,
/// which accounts for up to 1.4: such a process's level does not describe the others'.
const ANOTHER_STATE: f64 = 1.5;

/// Nothing is slowed much more than the canary, see [`slope`].
const STEEPEST: f64 = 1.5;

pub(super) struct Processes(Vec<Process>);

struct Process {
    median: f64,
    /// Its canary over that of the quiet processes; 0 without one.
    canary: f64,
}

pub(super) struct Level {
    /// Logarithm of the pseudomedian of the processes' medians, each less what its canary explains.
    pub(super) log: f64,
    pub(super) error: f64,
    pub(super) processes: f64,
}

impl Processes {
    pub(super) fn new(measured: &Measured, disturbance: &Disturbance<'_>) -> Self {
        let canaries = disturbance.canaries(&measured.group);
        let has_canary = canaries.iter().any(Option::is_some);
        let process = |(at, samples): (usize, &[f64])| {
            let median = stats::median(samples).filter(|median| *median > 0.0)?.ln();
            let canary = if has_canary { canaries.get(at).copied().flatten()? } else { 1.0 };
            (canary <= ANOTHER_STATE).then(|| Process { median, canary: canary.max(1.0).ln() })
        };
        Self(measured.by_process().enumerate().filter_map(process).collect())
    }

    /// `None` for fewer than two, which show no spread.
    pub(super) fn level(&self, slope: f64) -> Option<Level> {
        let logs: Vec<f64> = self.0.iter().map(|process| process.median - slope * process.canary).collect();
        let error = variance(&logs)? / stats::independent_number(&logs);
        Some(Level { log: stats::pseudomedian(&logs)?, error, processes: logs.len() as f64 })
    }

    fn products(&self) -> [f64; 2] {
        let number = self.0.len().max(1) as f64;
        let mean = |of: fn(&Process) -> f64| self.0.iter().map(of).sum::<f64>() / number;
        let (canary, median) = (mean(|process| process.canary), mean(|process| process.median));
        let products = self.0.iter().map(|process| {
            let apart = process.canary - canary;
            [apart * apart, apart * (process.median - median)]
        });
        products.fold([0.0; 2], |sums, product| [sums[0] + product[0], sums[1] + product[1]])
    }
}

/// The growth of a case with the canary of its process, in logarithms: 0 if a busy sibling does not slow it, 1 if it is
/// slowed like a system call. As in an analysis of covariance it is the common slope within these runs (Fisher, *Statistical
/// Methods for Research Workers*, 4th edition, 1932), none of which is compared.
pub(super) fn slope(runs: &[Processes]) -> f64 {
    let sums = runs.iter().map(Processes::products);
    let [squares, products] =
        sums.fold([0.0; 2], |all, [square, product]| [all[0] + square, all[1] + product]);
    if squares > 0.0 { (products / squares).clamp(0.0, STEEPEST) } else { 0.0 }
}

pub(super) fn variance(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom)
}
