//! Lets tests slow a benchmark down to check the verdict; never part of an optimized build, such as a release.
//!
//! The bench process reads the order from its own environment, so that a session can slow one of its environments.

use crate::cases::benchmark::Benchmark;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlowDown {
    /// Iterations beyond the counted ones.
    pub extra: u64,
    /// The factor for the part that whole iterations cannot add: 1 % of ten iterations is less than one iteration.
    pub stretch: f64,
}

impl SlowDown {
    /// Reads `TOLLGATE_TEST_SLOW=benchmark=factor[,benchmark=factor]`. `*` is every benchmark; the A/A control follows its baseline.
    #[cfg(debug_assertions)]
    pub fn new(benchmark: &Benchmark, iterations: u64) -> Self {
        let orders = std::env::var("TOLLGATE_TEST_SLOW").unwrap_or_default();
        let slowed = if benchmark.is_own() { benchmark.comparison() } else { benchmark.name };
        let mut factors = orders.split(',').filter_map(|order| order.split_once('='));
        let factor = factors.find(|(name, _)| *name == slowed || *name == "*");
        let factor: f64 = factor.and_then(|(_, factor)| factor.parse().ok()).unwrap_or(1.0);
        let whole = iterations.max(1) as f64 * factor.max(1.0);
        let extra = (whole as u64).saturating_sub(iterations.max(1));
        Self { extra, stretch: whole / (iterations.max(1) + extra) as f64 }
    }

    #[cfg(not(debug_assertions))]
    pub fn new(_benchmark: &Benchmark, _iterations: u64) -> Self {
        Self { extra: 0, stretch: 1.0 }
    }

    pub fn net(self, net: i64) -> i64 {
        if self.stretch == 1.0 { net } else { (net as f64 * self.stretch).round() as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::benchmark::PLAIN;

    #[test]
    fn without_an_order_nothing_is_slowed() {
        assert_eq!(SlowDown::new(&PLAIN, 10), SlowDown { extra: 0, stretch: 1.0 });
        assert_eq!(SlowDown::new(&PLAIN, 10).net(-7), -7);
    }
}
