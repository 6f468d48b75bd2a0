//! The coverage of intervals, and how often one mode is taken for two. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::{Pace, Random};
use tollgate_model::stats::{Interval, median_interval, modes, series_interval, shift};

type Draw = fn(&mut Random) -> f64;

const DISTRIBUTIONS: [(&str, Draw, f64); 4] = [
    ("normal", |random| random.normal(), 0.0),
    ("log-normal", |random| random.factor(1.0), 1.0),
    ("exponential", |random| random.exponential(), std::f64::consts::LN_2),
    ("discrete", |random| (3.0 * random.uniform()).floor(), 1.0),
];

fn draws(random: &mut Random, count: usize, draw: impl Fn(&mut Random) -> f64) -> Vec<f64> {
    (0..count).map(|_| draw(random)).collect()
}

#[test]
fn intervals_of_the_median_cover_it() {
    let mut random = Random(1);
    for (name, draw, median) in DISTRIBUTIONS {
        for (n, confidence) in [(6, 0.95), (9, 0.95), (16, 0.95), (16, 0.99), (101, 0.95), (1002, 0.95)] {
            let trials = if n > 100 { 400 } else { 2000 };
            let covers = |_: &usize| {
                median_interval(&draws(&mut random, n, draw), confidence).unwrap().contains(median)
            };
            let share = (0..trials).filter(covers).count() as f64 / f64::from(trials as u32);
            let chance = 3.0 * (confidence * (1.0 - confidence) / f64::from(trials as u32)).sqrt();
            assert!(share >= confidence - chance, "{name}, {n}, {confidence}: {share}");
        }
    }
}

const PACES: [Pace; 4] = [
    Pace::Wanders { noise: 0.0 },
    Pace::Wanders { noise: 0.7 },
    Pace::Jumps { upper: 0.4 },
    Pace::Jumps { upper: 0.2 },
];

/// The share of intervals that contain the median, and their mean width.
fn coverage(
    of: fn(&[f64], f64) -> Option<Interval>,
    pace: Pace,
    time: f64,
    count: usize,
    trials: usize,
) -> (f64, f64) {
    let mut random = Random(5);
    let (mut covered, mut width) = (0, 0.0);
    for _ in 0..trials {
        let interval = of(&pace.series(&mut random, time, count), 0.95).unwrap();
        covered += usize::from(interval.contains(pace.median()));
        width += interval.high - interval.low;
    }
    (covered as f64 / trials as f64, width / trials as f64)
}

/// Processes whose pace lasts for 3 to 20 of them, in runs of 13 paces and more.
fn by_series(series: &[f64], confidence: f64) -> Option<Interval> {
    series_interval(series, f64::INFINITY, confidence)
}

#[test]
fn intervals_of_correlated_processes_cover_their_median() {
    for pace in PACES {
        for (time, count) in
            [(1.0, 20), (3.0, 40), (3.0, 130), (6.0, 130), (10.0, 130), (10.0, 400), (20.0, 400)]
        {
            let (share, _) = coverage(by_series, pace, time, count, 1000);
            // A pace of ten processes has 13 in 130: few, and those of two levels are the worst case.
            let least = if count as f64 / time <= 20.0 { 0.89 } else { 0.93 };
            assert!(share >= least, "{pace:?}, {time}, {count}: {share}");
        }
    }
    // The sign test takes processes as independent, and its interval is much too narrow.
    let (share, _) = coverage(median_interval, PACES[0], 10.0, 130, 1000);
    assert!(share < 0.65, "{share}");
}

#[test]
fn intervals_of_independent_processes_are_hardly_wider() {
    for count in [40, 130, 400] {
        let [(_, plain), (share, wide)] =
            [median_interval, by_series].map(|of| coverage(of, PACES[0], 1.0, count, 400));
        assert!(wide < 1.4 * plain && share > 0.93, "{count}: {wide} and {plain}, {share}");
    }
}

/// The best that is possible is the interval with the right autocorrelation time: 3.92 × √(π/2 × time / count).
#[test]
fn intervals_of_correlated_processes_are_not_much_wider_than_needed() {
    for (time, count) in [(3.0, 130), (6.0, 130), (10.0, 400)] {
        let (_, width) = coverage(by_series, PACES[0], time, count, 400);
        let best = 3.92 * (std::f64::consts::FRAC_PI_2 * time / count as f64).sqrt();
        assert!(width < 1.4 * best, "{time}, {count}: {width} and {best}");
    }
}

#[test]
fn intervals_of_the_shift_cover_it() {
    let mut random = Random(2);
    for (name, draw, _) in DISTRIBUTIONS {
        for (m, n, confidence) in [(7, 7, 0.95), (7, 16, 0.99), (16, 16, 0.998)] {
            let covers = |_: &i32| {
                let a = draws(&mut random, m, draw);
                let b = draws(&mut random, n, |random| draw(random) + 2.0);
                shift(&a, &b, confidence).unwrap().interval.unwrap().contains(2.0)
            };
            let share = (0..1000).filter(covers).count() as f64 / 1000.0;
            assert!(
                share >= confidence - 3.0 * (confidence * (1.0 - confidence) / 1000.0).sqrt(),
                "{name}: {share}"
            );
        }
    }
}

/// Distributions with one mode: with little and much scatter, tails, spikes, and the steps of a coarse clock.
const ONE_MODE: [(&str, Draw); 12] = [
    ("normal", |random| 164.0 + 3.0 * random.normal()),
    ("about zero", |random| random.normal()),
    ("log-normal", |random| 164.0 * random.factor(0.1)),
    ("broad log-normal", |random| random.factor(1.0)),
    ("exponential", |random| 164.0 + 30.0 * random.exponential()),
    ("exponential below", |random| 164.0 - 30.0 * random.exponential()),
    ("uniform", |random| random.uniform()),
    ("heavy tail", |random| random.uniform().powf(-1.0)),
    ("spikes", |random| {
        164.0 * random.factor(0.02) + if random.chance(0.05) { 500.0 * random.exponential() } else { 0.0 }
    }),
    ("tail of a tenth", |random| {
        164.0 * random.factor(0.01) + if random.chance(0.1) { 50.0 * random.exponential() } else { 0.0 }
    }),
    ("two steps of a clock", |random| (164.0 + random.uniform()).round()),
    ("several steps of a clock", |random| (164.0 + 1.5 * random.normal()).round() / 3.0),
];

#[test]
fn one_mode_is_not_taken_for_two() {
    let mut random = Random(3);
    for (name, draw) in ONE_MODE {
        for (n, trials) in [(40, 1000), (100, 500), (1000, 60), (16_000, 4)] {
            let two = (0..trials).filter(|_| modes(&draws(&mut random, n, draw)).len() > 1).count();
            assert!(two * 200 <= trials, "{name}, {n}: {two} of {trials}");
        }
    }
}

#[test]
fn two_modes_are_found_with_their_shares() {
    let mut random = Random(4);
    for upper in [0.1, 0.2, 0.5, 0.8, 0.9] {
        for n in [250, 1000, 16_000] {
            for (kind, tail) in [("plain", 0.0), ("with spikes", 300.0)] {
                let trials = if n > 10_000 { 3 } else { 40 };
                let found = |_: &i32| {
                    let samples = draws(&mut random, n, |random| {
                        let level = if random.chance(upper) { 215.0 } else { 164.0 };
                        let spike = if random.chance(0.03) { tail * random.exponential() } else { 0.0 };
                        level * random.factor(0.02) + spike
                    });
                    let modes = modes(&samples);
                    modes.len() == 2
                        && (modes[0].at - 164.0).abs() < 3.0
                        && (modes[1].at - 215.0).abs() < 6.0
                        && (modes[1].share - upper).abs() < 0.08
                };
                let share = (0..trials).filter(found).count() as f64 / f64::from(trials);
                assert!(share >= 0.9, "{upper}, {n}, {kind}: {share}");
            }
        }
    }
}

#[test]
fn degenerate_samples_have_one_mode_or_none() {
    assert_eq!(modes(&[]).len(), 0);
    assert_eq!(modes(&[0.0; 100]).len(), 1);
    assert_eq!(modes(&[f64::NAN; 100]).len(), 1);
    let mut halves = vec![f64::MAX; 50];
    halves.extend([-f64::MAX; 50]);
    assert_eq!(modes(&halves).len(), 1);
    assert_eq!(modes(&[5e-324; 100]).len(), 1);
}
