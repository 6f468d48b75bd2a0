//! Operations of a few microseconds. With the feature `planted` two of them make more steps, and nothing else differs: no function has another
//! length, so that none lies elsewhere.

use std::collections::HashMap;
use std::hint::black_box;

/// Steps of the two, and how many more are planted: 3 % and 1 %. All are multiples of what a compiler unrolls.
const STEPS: u64 = 3200;
const MORE: [u64; 2] = if cfg!(feature = "planted") { [96, 32] } else { [0, 0] };

/// Steps that wait for each other.
#[inline(never)]
fn steps(number: u64) -> u64 {
    (0..number).fold(1, |sum: u64, step| sum.wrapping_mul(31) ^ step)
}

/// With 3 % more where that is planted.
pub fn three() -> u64 {
    steps(black_box(STEPS + MORE[0]))
}

/// With 1 % more where that is planted.
pub fn one() -> u64 {
    steps(black_box(STEPS + MORE[1]))
}

/// Numbers without an order, the same in each process.
pub fn numbers() -> Vec<u64> {
    let next = |number: &u64| Some(number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    std::iter::successors(Some(1), next).take(1000).map(|number| number >> 33).collect()
}

/// The sum of numbers.
pub fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().sum()
}

/// The median of some of the numbers, which are copied and sorted.
pub fn sort(numbers: &[u64]) -> u64 {
    let mut sorted = numbers[..200].to_vec();
    sorted.sort_unstable();
    sorted[100]
}

/// A map whose hashes are others in each process.
pub fn map(numbers: &[u64]) -> HashMap<u64, u64> {
    numbers.iter().copied().zip(0..).collect()
}

/// Finds some of the numbers in the map.
pub fn find(map: &HashMap<u64, u64>, numbers: &[u64]) -> u64 {
    numbers[..200].iter().filter_map(|number| map.get(number)).sum()
}
