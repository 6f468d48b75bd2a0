//! Tests whether a sample passes as uniform. Pure.
//!
//! Each of three tests sees what the others miss: whether values crowd somewhere (Kolmogorov and Smirnov), whether a bit within
//! the range is one more often than zero, and whether two values coincide too often. A uniform sample fails any of them in fewer
//! than one case in a thousand.

/// 2 exp(-2 x²) of uniform samples exceed the statistic of Kolmogorov and Smirnov: here 4.5 in 10 000.
const CROWDED: f64 = 2.05;
/// 7 in a million exceed this many standard deviations; there are at most some thirty bits.
const UNEVEN: f64 = 4.5;

/// Tests whether positions are a uniform sample of a spread of `at_least` values. They ascend from 0 and are not all equal.
/// `first` is the position of the first one among all possible values.
pub(super) fn is_uniform(positions: &[u64], first: u64, at_least: f64) -> bool {
    !is_crowded(positions) && bits_are_even(positions, first) && they_meet_rarely(positions, at_least)
}

fn is_crowded(positions: &[u64]) -> bool {
    distance_from_uniform(positions) > CROWDED
}

/// The largest distance between the sample's distribution and the uniform one, times the square root of the sample's size
/// (Stephens 1970). Lowest and highest value are left out: those in between are uniform for any ends of the spread.
fn distance_from_uniform(positions: &[u64]) -> f64 {
    let inner = positions.get(1..positions.len().saturating_sub(1)).unwrap_or_default();
    let (Some(&range), false) = (positions.last(), inner.is_empty()) else { return 0.0 };
    let (samples, slots) = (inner.len() as f64, range as f64 + 1.0);
    let mut before = 0.0;
    let mut largest: f64 = 0.0;
    for same in inner.chunk_by(|a, b| a == b) {
        let Some(&position) = same.first() else { continue };
        let after = before + same.len() as f64 / samples;
        let (below, upto) = (position as f64 / slots, (position as f64 + 1.0) / slots);
        largest = largest.max((before - below).abs()).max((after - upto).abs());
        before = after;
    }
    largest * (samples.sqrt() + 0.12 + 0.11 / samples.sqrt())
}

/// Tests that each bit that is small compared with the range is one in half of all positions.
fn bits_are_even(positions: &[u64], first: u64) -> bool {
    let samples = positions.len() as f64;
    let range = positions.last().copied().unwrap_or_default();
    let small = (0..61u32).take_while(|bit| 8u64 << bit <= range);
    small.into_iter().all(|bit| {
        let ones =
            positions.iter().filter(|&position| first.wrapping_add(*position) >> bit & 1 == 1).count() as f64;
        // The range may not be a multiple of twice the bit: that alone shifts the share by at most this.
        let shifted = samples * (1u64 << bit) as f64 / range as f64;
        (ones - samples / 2.0).abs() <= UNEVEN * samples.sqrt() / 2.0 + shifted
    })
}

/// Tests that there are no more pairs of equal values than chance predicts for this many positions.
fn they_meet_rarely(positions: &[u64], at_least: f64) -> bool {
    let samples = positions.len() as f64;
    let expected = samples * (samples - 1.0) / 2.0 / at_least.max(1.0);
    coincidences(positions) <= expected + UNEVEN * expected.sqrt() + 6.0
}

pub(super) fn coincidences(positions: &[u64]) -> f64 {
    positions.chunk_by(|a, b| a == b).map(|same| same.len() as f64 * (same.len() as f64 - 1.0) / 2.0).sum()
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Source;
    use super::*;

    /// Whether a sample is crowded, has even bits, and rarely coincides.
    fn look(place: impl Fn(&mut Source) -> u64, at_least: f64) -> [bool; 3] {
        let mut source = Source::new(3);
        let mut values: Vec<u64> = (0..1000).map(|_| place(&mut source)).collect();
        values.sort_unstable();
        let positions: Vec<u64> = values.iter().map(|value| value - values[0]).collect();
        let [crowded, even, rare] = [
            is_crowded(&positions),
            bits_are_even(&positions, values[0]),
            they_meet_rarely(&positions, at_least),
        ];
        assert_eq!(is_uniform(&positions, values[0], at_least), !crowded && even && rare);
        [crowded, even, rare]
    }

    #[test]
    fn each_look_sees_what_the_others_miss() {
        assert_eq!(look(|source| source.below(1 << 24), f64::from(1 << 24)), [false, true, true]);
        let crowded = look(|source| source.below(1 << 24).min(source.below(1 << 24)), 1e7);
        assert_eq!(crowded, [true, true, true]);
        let gap = look(|source| source.below(1 << 24) & !(1 << 12), 1e7);
        assert_eq!(gap, [false, false, true]);
        // A thousand positions strewn over a large range.
        assert!(!look(|source| source.below(1000) * 0x9e37 + 1, 3e7)[2]);
    }

    #[test]
    fn coincidences_are_pairs() {
        assert_eq!(coincidences(&[1, 1, 1, 2, 3, 3]), 4.0);
        assert_eq!(coincidences(&[]), 0.0);
    }
}
