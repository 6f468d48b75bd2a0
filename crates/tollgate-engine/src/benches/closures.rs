//! Closures of a Rust program, compared in alternation, with the verdicts that builds have.
//!
//! ```
//! use std::time::Duration;
//! use tollgate_engine::benches::closures::Session;
//!
//! let numbers: Vec<u64> = (0..1000).collect();
//! let report = Session::new()
//!     .side("by hand", || numbers.iter().fold(0, |sum, number| sum + number))
//!     .side("sum", || numbers.iter().sum::<u64>())
//!     .time(Duration::from_millis(50))
//!     .run();
//! println!("{report}");
//! assert_eq!(report.others.len(), 1);
//! ```

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tollgate_model::compare::{self, Neighbours, Verdict};
use tollgate_model::stats;

use crate::random::Random;
use crate::versus::rounds::LEAST_PAIRS;

/// How long a batch of iterations takes, in ns: on a busy machine many are disturbed by nothing.
const BATCH: f64 = 200e3;
/// Batches of a side in a round, of which the fastest counts.
const BATCHES: usize = 5;
/// Where an interval is as narrow as this, nothing more is asked for.
const PRECISION: f64 = 0.01;

/// Closures that are to be compared. The first side is the base.
pub struct Session<'a> {
    sides: Vec<Side<'a>>,
    time: Duration,
    asked: f64,
}

struct Side<'a> {
    name: String,
    /// Executes so many iterations.
    batch: Box<dyn FnMut(u64) + 'a>,
    /// In ns an iteration.
    figures: Vec<f64>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the base, and the median of its figures in ns.
    pub base: (String, f64),
    /// The others in their order.
    pub others: Vec<Other>,
    /// Pairs of executions.
    pub pairs: usize,
}

/// A side compared with the base.
#[derive(Debug, Clone)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// The median of its figures, in ns.
    pub ns: f64,
    /// The comparison; None without a time above zero.
    pub compared: Option<Neighbours>,
}

impl Default for Session<'_> {
    fn default() -> Self {
        Self { sides: Vec::new(), time: Duration::from_secs(5), asked: 0.0 }
    }
}

impl<'a> Session<'a> {
    /// One without sides, of at most five seconds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a side. What the closure returns is taken for used.
    #[must_use]
    pub fn side<T>(mut self, name: impl Into<String>, mut closure: impl FnMut() -> T + 'a) -> Self {
        let batch = move |iterations| {
            for _ in 0..iterations {
                black_box(closure());
            }
        };
        self.sides.push(Side { name: name.into(), batch: Box::new(batch), figures: Vec::new() });
        self
    }

    /// No round begins after this time.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// No relative difference of up to this counts: 0.02 for 2 %.
    #[must_use]
    pub fn threshold(mut self, asked: f64) -> Self {
        self.asked = asked;
        self
    }

    /// Executes the sides in rounds, in random order in one and its reverse in the next, until every comparison is decided and narrow, or the
    /// time is over.
    pub fn run(mut self) -> Report {
        let Some(base) = self.sides.first_mut() else {
            return Report { base: (String::new(), 0.0), others: Vec::new(), pairs: 0 };
        };
        let iterations = base.iterations();
        let mut random = Random::new(Random::seed());
        let mut order: Vec<usize> = (0..self.sides.len()).collect();
        let began = Instant::now();
        let mut rounds = 0;
        loop {
            match rounds % 2 {
                0 => random.shuffle(&mut order),
                _ => order.reverse(),
            }
            order.iter().for_each(|side| self.sides[*side].execute(iterations));
            // The first round finds caches as they were.
            if rounds == 0 {
                self.sides.iter_mut().for_each(|side| side.figures.clear());
            }
            rounds += 1;
            let is_look = rounds > LEAST_PAIRS && rounds % LEAST_PAIRS == 0;
            if began.elapsed() >= self.time || (is_look && self.is_narrow()) {
                return self.report();
            }
        }
    }

    fn is_narrow(&self) -> bool {
        let is_narrow =
            |found: Neighbours| found.verdict != Verdict::Inconclusive && found.is_precise(PRECISION);
        self.sides[1..].iter().all(|side| self.compared(side).is_some_and(is_narrow))
    }

    fn compared(&self, side: &Side) -> Option<Neighbours> {
        let others = self.sides.len() - 1;
        compare::neighbours(&self.sides[0].figures, &side.figures, others, self.asked, false)
    }

    fn report(self) -> Report {
        let ns = |side: &Side| stats::median(&side.figures).unwrap_or_default();
        let other =
            |side: &Side| Other { name: side.name.clone(), ns: ns(side), compared: self.compared(side) };
        let base = &self.sides[0];
        Report {
            base: (base.name.clone(), ns(base)),
            others: self.sides[1..].iter().map(other).collect(),
            pairs: base.figures.len(),
        }
    }
}

impl Side<'_> {
    /// How many iterations a batch needs.
    fn iterations(&mut self) -> u64 {
        let mut iterations: u64 = 1;
        loop {
            let ns = self.timed(iterations);
            if ns >= BATCH / 2.0 || iterations >= 1 << 40 {
                return ((iterations as f64 * BATCH / ns.max(1.0)) as u64).max(1);
            }
            iterations *= 2;
        }
    }

    fn execute(&mut self, iterations: u64) {
        let batches = (0..BATCHES).map(|_| self.timed(iterations)).collect::<Vec<f64>>();
        let fastest = batches.into_iter().min_by(f64::total_cmp).unwrap_or_default();
        self.figures.push(fastest / iterations as f64);
    }

    fn timed(&mut self, iterations: u64) -> f64 {
        let began = Instant::now();
        (self.batch)(iterations);
        began.elapsed().as_nanos() as f64
    }
}

/// `new is slower than old: ratio 1.031 [1.028, 1.034], 1.03 ns for 1.00 ns, 112 pairs`, a line for each.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (base, base_ns) = &self.base;
        for (at, Other { name, ns, compared }) in self.others.iter().enumerate() {
            let line = if at > 0 { "\n" } else { "" };
            let pairs = self.pairs;
            match compared {
                None => write!(f, "{line}{name} is not compared with {base}: no time above zero")?,
                Some(Neighbours { ratio, interval, verdict, .. }) => {
                    let how = match verdict {
                        Verdict::Same => format!("{name} and {base} are the same"),
                        Verdict::Inconclusive => format!("{name} compared with {base}: inconclusive"),
                        different => format!("{name} is {different} than {base}"),
                    };
                    let ends = interval.map(|ends| format!(" [{:.3}, {:.3}]", ends.low, ends.high));
                    let ends = ends.unwrap_or_default();
                    write!(
                        f,
                        "{line}{how}: ratio {ratio:.3}{ends}, {ns:.4} ns for {base_ns:.4} ns, {pairs} pairs"
                    )?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(iterations: u64) -> impl FnMut() -> u64 {
        move || (0..iterations).fold(1_u64, |sum, next| black_box(sum.wrapping_mul(31)) ^ next)
    }

    #[test]
    fn a_side_that_does_more_is_slower_and_an_equal_one_is_not() {
        let sides = Session::new().side("old", work(200)).side("more", work(400)).side("equal", work(200));
        let report = sides.time(Duration::from_secs(20)).threshold(0.1).run();
        let verdict = |at: usize| report.others[at].compared.map(|found| found.verdict);
        assert_eq!(verdict(0), Some(Verdict::Slower), "{report}");
        assert!(verdict(1).is_some_and(|verdict| !verdict.is_beyond_margin()), "{report}");
        assert!(report.to_string().starts_with("more is slower than old: ratio "), "{report}");
    }

    #[test]
    fn nothing_and_one_side_have_no_comparison() {
        assert!(Session::new().run().others.is_empty());
        let alone = Session::new().side("alone", work(1)).time(Duration::ZERO).run();
        assert!(alone.others.is_empty() && alone.to_string().is_empty());
    }
}
