//! How often a comparison of 6 to 60 pairs of executions is decided, and how often it is wrong. Seeded simulations.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use crate::support;
use support::executions::{Executions, Noise, OF_FEW_PAIRS};
use tollgate_model::compare::{Verdict, neighbours};

const NUMBERS: [usize; 6] = [6, 10, 14, 20, 30, 60];

/// The share of comparisons, in %, in which the other is called slower by any amount, and faster, by the number of pairs.
fn rates(kind: &Noise, ratio: f64, seeds: std::ops::Range<u64>) -> [[f64; 2]; NUMBERS.len()] {
    let mut called = [[0.0; 2]; NUMBERS.len()];
    let each = 100.0 / (seeds.end - seeds.start) as f64;
    for seed in seeds {
        let mut executions = Executions::new(kind, seed, ratio);
        for (number, called) in NUMBERS.iter().zip(&mut called) {
            executions.until(*number);
            let [base, other] = &executions.times;
            match neighbours(base, other, 1, 0.0, true).unwrap().verdict {
                Verdict::Slower | Verdict::SomewhatSlower => called[0] += each,
                Verdict::Faster | Verdict::SomewhatFaster => called[1] += each,
                _ => (),
            }
        }
    }
    called
}

/// Noise common to both sides does not make equal commands differ, and neither does a level that one side keeps, with fewer than
/// 14 pairs.
#[test]
fn equal_commands_are_seldom_called_different() {
    for (kind, most) in &OF_FEW_PAIRS {
        let found = rates(kind, 1.0, 1..401).map(|[slower, faster]| slower + faster);
        assert!(found.iter().all(|share| *share <= *most), "{}: {found:?}", kind.name);
        assert_eq!(found[..2], [0.0; 2], "{}", kind.name);
    }
}

/// With noise common to both sides, 20 pairs find a factor of ten on any machine, and none is called the other way.
#[test]
fn more_pairs_decide_more() {
    for (kind, _) in OF_FEW_PAIRS.iter().filter(|(_, most)| *most == 0.0) {
        for ratio in [1.05, 1.5, 3.0, 10.0] {
            let found = rates(kind, ratio, 1001..1201);
            assert!(found.iter().all(|[_, faster]| *faster == 0.0), "{}, {ratio}: {found:?}", kind.name);
            let slower = found.map(|[slower, _]| slower);
            // Three standard errors of a difference at the most, of 200.
            let grows = slower.windows(2).all(|two| two[1] >= two[0] - 5.0);
            assert!(grows, "{}, {ratio}: {slower:?}", kind.name);
            if ratio == 10.0 {
                assert!(
                    slower[2] > 75.0 && slower[3] > 90.0 && slower[4] > 98.0,
                    "{}: {slower:?}",
                    kind.name
                );
            }
        }
    }
}

#[test]
#[ignore = "prints the table of docs/statistics.md"]
fn table() {
    println!("| noise | equal: called different | 1.05 × found | 1.5 × | 3 × | 10 × |");
    println!("|---|---|---|---|---|---|");
    for (kind, _) in &OF_FEW_PAIRS {
        let of = |ratio: f64| {
            let found = rates(kind, ratio, 100_001..104_001);
            let share = |[slower, faster]: [f64; 2]| match ratio {
                1.0 => format!("{:.2}", slower + faster),
                _ => format!("{slower:.0}"),
            };
            found.map(share).join(", ")
        };
        let row = [1.0, 1.05, 1.5, 3.0, 10.0].map(of).join(" | ");
        println!("| {} | {row} |", kind.name);
    }
}
