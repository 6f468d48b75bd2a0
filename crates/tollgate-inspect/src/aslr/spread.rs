//! Estimates the random bits of an address from a sample of it. Pure.
//!
//! An address that is placed uniformly at random takes each of `m` positions, an alignment apart, equally often. The range of a
//! sample, its largest position less its smallest, gives `m`. The distribution of the range is known exactly, so the estimate
//! has a confidence interval. It is used only if the sample passes the tests of `uniform`. Otherwise the bits are bounded from
//! both sides, by the number of coincidences and by the range.

use super::uniform;

/// With fewer starts, neither alignment nor bits are estimated. Each further start halves the chance of finding an alignment by
/// accident; from here on it is less than 1 in 1000.
pub const FEWEST: usize = 11;
/// The probability outside a confidence interval on each side: the interval is one of 95 %.
const TAIL: f64 = 0.025;
/// 1 / (1 - 0.95), for a one-sided bound of 95 %.
const ONE_IN: f64 = 20.0;

/// The statistics of a sample of an address.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The lowest value seen.
    pub low: u64,
    /// The highest value seen.
    pub high: u64,
    /// Values in the sample.
    pub samples: usize,
    /// Different values among them.
    pub distinct: usize,
    /// The largest power of two that divides all differences; `None` if there are none or too few.
    pub alignment: Option<u64>,
    /// How many bits are random.
    pub bits: Bits,
}

/// How many bits of an address are random, and how they were found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bits {
    /// Every value is the same. More bits than this would have shown, with 95 % confidence.
    Constant {
        /// log2(20) / (N - 1).
        at_most: f64,
    },
    /// The values differ, but are too few to estimate more ([`FEWEST`]).
    TooFew,
    /// The sample passes as uniform: estimated from the range.
    Uniform(Interval),
    /// Not uniform: at least the collision entropy, and at most the bits of the range that was seen.
    Between {
        /// Lower 95 % bound of the collision entropy.
        at_least: f64,
        /// log2 of the positions between lowest and highest.
        at_most: f64,
    },
}

/// An estimate and its 95 % CI, in bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub bits: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Bits {
    /// Returns a single number of bits, if there is one.
    pub fn figure(&self) -> Option<f64> {
        match *self {
            Self::Constant { .. } => Some(0.0),
            Self::Uniform(Interval { bits, .. }) => Some(bits),
            Self::TooFew | Self::Between { .. } => None,
        }
    }

    /// Returns whether enough equal values show that the address is not placed at random.
    pub fn stays(&self) -> bool {
        matches!(self, Self::Constant { at_most } if *at_most < 0.5)
    }
}

impl Spread {
    /// Evaluates these values; `None` if there are none.
    pub fn of(values: &[u64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let (&low, &high) = (sorted.first()?, sorted.last()?);
        let samples = sorted.len();
        let distinct = 1 + sorted.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let spread = |alignment, bits| Some(Self { low, high, samples, distinct, alignment, bits });
        if low == high {
            return spread(None, Bits::Constant { at_most: most_of_a_constant(samples) });
        }
        if samples < FEWEST {
            return spread(None, Bits::TooFew);
        }
        let shift = sorted.iter().fold(0, |bits, value| bits | (value - low)).trailing_zeros();
        let positions: Vec<u64> = sorted.iter().map(|value| (value - low) >> shift).collect();
        spread(Some(1 << shift), bits_of(&positions, low >> shift))
    }

    /// Evaluates the differences between two addresses, start by start.
    pub fn between(one: &[u64], other: &[u64]) -> Option<Self> {
        // Either address may be the higher one, so the middle of the number range stands for a difference of 0.
        const MIDDLE: u64 = 1 << 63;
        let differences: Vec<u64> =
            one.iter().zip(other).map(|(one, other)| one.wrapping_sub(*other).wrapping_add(MIDDLE)).collect();
        Self::of(&differences)
    }
}

/// N values of b random bits are all the same with a chance of 2^(-b (N - 1)).
fn most_of_a_constant(samples: usize) -> f64 {
    match samples {
        0 | 1 => f64::INFINITY,
        samples => ONE_IN.log2() / (samples as f64 - 1.0),
    }
}

/// `positions` count from the lowest and ascend. They are not all equal, and their differences have no common factor of two.
fn bits_of(positions: &[u64], first: u64) -> Bits {
    let range = positions.last().copied().unwrap_or_default();
    let interval = range_interval(range as f64, positions.len() as f64);
    if uniform::is_uniform(positions, first, interval.low.exp2()) {
        Bits::Uniform(interval)
    } else {
        between(positions, range)
    }
}

fn range_interval(range: f64, samples: f64) -> Interval {
    let estimate = range * (samples + 1.0) / (samples - 1.0) + 1.0;
    // With more positions, a range as small as this one is rarer; the upper end is where it gets too rare. With fewer, one as
    // large is rarer; the lower end is found in the same way.
    let high = crossing(range, |positions| at_most(range, positions, samples) >= TAIL);
    let low = crossing(range, |positions| 1.0 - at_most(range - 1.0, positions, samples) < TAIL);
    let bits = estimate.log2();
    Interval { bits, low: low.log2().min(bits), high: high.log2().max(bits) }
}

/// Finds the largest number of positions, at least those that the range needs, up to which `holds` is true.
fn crossing(range: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (range + 1.0, (range + 1.0) * 2.0);
    while holds(high) && high < 1e30 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..80 {
        let middle = low / 2.0 + high / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The chance that the range of N values, uniform over m positions, is at most r: ((m - r) (r + 1)^N - (m - r - 1) r^N) / m^N.
fn at_most(r: f64, m: f64, n: f64) -> f64 {
    if r >= m - 1.0 {
        return 1.0;
    }
    if r < 0.0 {
        return 0.0;
    }
    if r == 0.0 {
        return m.powf(1.0 - n);
    }
    // Arranged so that two large and nearly equal terms are not subtracted.
    let smaller = (n * (r / m).ln()).exp();
    smaller * ((m - r) * (n * r.recip().ln_1p()).exp_m1() + 1.0)
}

fn between(positions: &[u64], range: u64) -> Bits {
    let samples = positions.len() as f64;
    let pairs = samples * (samples - 1.0) / 2.0;
    let met = uniform::coincidences(positions);
    // Upper 95 % bound of a Poisson mean given its count; 3.0 if the count is 0.
    let met_at_most = met + 1.645 * (met + 0.7).sqrt() + 1.62;
    let at_most = (range as f64 + 1.0).log2();
    Bits::Between { at_least: (pairs / met_at_most).log2().clamp(0.0, at_most), at_most }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::simulated::Source;
    use super::*;

    fn uniform(seed: u64, samples: usize, positions: u64, alignment: u64) -> Vec<u64> {
        let mut source = Source::new(seed);
        (0..samples).map(|_| 0x5555_0000_0000 + source.below(positions) * alignment).collect()
    }

    #[test]
    fn a_constant_does_not_move() {
        let spread = Spread::of(&[0x40_1000; 1000]).unwrap();
        assert!(spread.bits.stays() && spread.bits.figure() == Some(0.0) && spread.alignment.is_none());
        assert!(!Spread::of(&[0x40_1000]).unwrap().bits.stays(), "one start shows nothing");
        assert!(!Spread::of(&[0x40_1000; 2]).unwrap().bits.stays(), "nor do two");
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn few_starts_give_no_figure() {
        let spread = Spread::of(&uniform(1, FEWEST - 1, 1 << 28, 4096)).unwrap();
        assert_eq!((spread.bits, spread.alignment), (Bits::TooFew, None));
    }

    #[test]
    fn the_distribution_of_a_range_is_that_of_all_samples() {
        // Three values over four positions: all 64 samples.
        for range in 0..4u32 {
            let samples = (0..64u32).map(|n| [n & 3, n >> 2 & 3, n >> 4]);
            let within = samples.filter(|s| s.iter().max().unwrap() - s.iter().min().unwrap() <= range);
            let chance = at_most(f64::from(range), 4.0, 3.0);
            assert!((chance - within.count() as f64 / 64.0).abs() < 1e-12, "{range}: {chance}");
        }
        // Many positions: the distribution of the range of a continuous sample.
        let w: f64 = 0.99;
        let exact = 100.0 * w.powi(99) - 99.0 * w.powi(100);
        let chance = at_most(w * 1e12, 1e12, 100.0);
        assert!((chance - exact).abs() < 1e-6, "{chance} {exact}");
    }

    #[test]
    fn intervals_hold_what_they_should() {
        for positions in [2, 16, 256, 5000, 1 << 22] {
            for samples in [20, 100, 1000] {
                let holds = |seed| {
                    let values = uniform(seed, samples, positions, 4096);
                    let range = (values.iter().max().unwrap() - values.iter().min().unwrap()) / 4096;
                    let Interval { bits, low, high } = range_interval(range as f64, samples as f64);
                    assert!(low <= bits && bits <= high);
                    let truth = (positions as f64).log2();
                    low - 1e-9 <= truth && truth <= high + 1e-9
                };
                let held = (0..400).filter(|&seed| holds(seed)).count();
                assert!(held >= 364, "{positions} positions, {samples} samples: {held} of 400");
            }
        }
    }

    #[test]
    fn honest_samples_are_called_uniform() {
        let mut missed = 0;
        for seed in 0..3000 {
            let bits = 8 + seed % 23;
            let spread = Spread::of(&uniform(seed, 300, 1 << bits, 4096)).unwrap();
            missed += usize::from(!matches!(spread.bits, Bits::Uniform(_)));
        }
        // Less than one in a thousand is promised: at most 3 are expected, and 12 cannot happen.
        assert!(missed < 9, "{missed} of 3000");
    }

    #[test]
    fn the_sum_of_two_is_not_called_uniform_and_is_not_overcounted() {
        let mut source = Source::new(5);
        let values: Vec<u64> =
            (0..1000).map(|_| (source.below(1 << 20) + source.below(1 << 20)) * 4096).collect();
        let Bits::Between { at_least, at_most } = Spread::of(&values).unwrap().bits else {
            panic!("it is a triangle")
        };
        // The entropy of a triangle over 2 w: log2(w) + log2(e) / 2.
        let truth = 20.0 + std::f64::consts::LOG2_E / 2.0;
        assert!((at_least..=at_most).contains(&truth), "{at_least} {at_most}");
    }

    #[test]
    fn two_positions_are_one_bit_and_a_biased_pair_is_less() {
        let mut source = Source::new(6);
        let even: Vec<u64> = (0..1000).map(|_| source.below(2) * 4096).collect();
        let figure = Spread::of(&even).unwrap().bits.figure().unwrap();
        assert!((figure - 1.0).abs() < 0.05, "{figure}");
        let biased: Vec<u64> = (0..1000).map(|_| u64::from(source.below(10) == 0) * 4096).collect();
        let Bits::Between { at_least, at_most } = Spread::of(&biased).unwrap().bits else {
            panic!("not uniform")
        };
        // The entropy of one in ten.
        assert!((at_least..=at_most).contains(&0.469), "{at_least} {at_most}");
    }

    #[test]
    fn lumps_are_not_overcounted() {
        // Sixteen positions a gigabyte apart, 13 bits within each: 17 bits, not the 31 that lie between the ends.
        let mut source = Source::new(7);
        let values: Vec<u64> =
            (0..1000).map(|_| (source.below(16) << 34) + source.below(1 << 13) * 4096).collect();
        let Bits::Between { at_least, at_most } = Spread::of(&values).unwrap().bits else {
            panic!("lumps were not seen")
        };
        assert!(at_least <= 17.0 && at_least > 14.0 && at_most >= 17.0, "{at_least} {at_most}");
    }

    proptest! {
        /// The promised accuracy: within 0.3 bit from 8 to 30 bits, at every alignment.
        #[test]
        fn within_a_third_of_a_bit(
            seed in any::<u64>(),
            bits in 8.0f64..30.0,
            samples in 50usize..1000,
            shift in prop::sample::select(vec![4u32, 12, 21]),
        ) {
            let positions = bits.exp2() as u64;
            let spread = Spread::of(&uniform(seed, samples, positions, 1 << shift)).unwrap();
            prop_assert_eq!(spread.alignment, Some(1 << shift));
            if let Bits::Uniform(interval) = spread.bits {
                prop_assert!((interval.bits - (positions as f64).log2()).abs() < 0.3, "{:?}", interval);
            } else {
                // One in a thousand is called uneven, and is still close.
                prop_assert!(spread.bits.figure().is_none_or(|f| (f - bits).abs() < 0.5), "{:?}", spread.bits);
            }
        }

        #[test]
        fn any_values_are_taken(values in prop::collection::vec(any::<u64>(), 0..60), few in prop::collection::vec(0u64..4, 0..60)) {
            for values in [values, few] {
                if let Some(spread) = Spread::of(&values) {
                    prop_assert!(spread.bits.figure().is_none_or(|bits| (0.0..=65.0).contains(&bits)), "{:?}", spread);
                }
                let _ = Spread::between(&values, &values[values.len() / 2..]);
            }
        }
    }
}
