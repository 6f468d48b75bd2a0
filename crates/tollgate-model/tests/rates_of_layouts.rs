//! How often a comparison across layouts is wrong, and how often it finds a change. Seeded simulations.

use crate::support::Random;
use tollgate_model::stats::{Layouts, Verdict};

/// The changes of a time by layouts alone.
struct Kind {
    name: &'static str,
    /// Returns the factor of a layout.
    draw: fn(&mut Random) -> f64,
}

const KINDS: [Kind; 6] = [
    Kind { name: "0.3 % apart", draw: |random| random.factor(0.003) },
    Kind { name: "1 % apart", draw: |random| random.factor(0.01) },
    Kind { name: "2 % apart", draw: |random| random.factor(0.02) },
    // The bench whose eight layouts took 966 to 1,127 ns.
    Kind {
        name: "three levels, 16.6 %",
        draw: |random| [1.0, 1.08, 1.166][(random.uniform() * 3.0) as usize],
    },
    Kind { name: "10 % more, in one of eight", draw: |random| if random.chance(0.125) { 1.1 } else { 1.0 } },
    Kind { name: "10 % more, in half", draw: |random| if random.chance(0.5) { 1.1 } else { 1.0 } },
];

/// The spread that stays in the median of one layout's executions.
const MEASURED: f64 = 0.001;
/// All looks at one comparison together.
const CONFIDENCE: f64 = 0.999;
const MARGIN: f64 = 0.01;

fn side(kind: &Kind, random: &mut Random, time: f64, number: usize) -> Vec<f64> {
    (0..number).map(|_| time * (kind.draw)(random) * random.factor(MEASURED)).collect()
}

fn verdict(base: &[f64], other: &[f64], looks: usize) -> Verdict {
    let each = 1.0 - (1.0 - CONFIDENCE) / looks as f64;
    let found = Layouts::compare(base, other, each).unwrap();
    Verdict::by_margin(found.interval, MARGIN, 0.0)
}

fn is_slower(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Slower | Verdict::SomewhatSlower)
}

fn is_different(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Same | Verdict::Inconclusive)
}

/// The share of comparisons, in %, for which `is_so` holds.
fn share(replicas: u64, first: u64, is_so: impl Fn(&mut Random) -> bool) -> f64 {
    let found = (first..first + replicas).filter(|seed| is_so(&mut Random(*seed)));
    100.0 * found.count() as f64 / replicas as f64
}

/// Sides of `numbers` layouts, one number after the other until there is a verdict: what `--layouts` does if it may add some.
fn with_more(kind: &Kind, random: &mut Random, ratio: f64, numbers: &[usize]) -> Verdict {
    let (mut base, mut other) = (Vec::new(), Vec::new());
    let mut found = Verdict::Inconclusive;
    for number in numbers {
        let more = number - base.len();
        base.extend(side(kind, random, 1.0, more));
        other.extend(side(kind, random, ratio, more));
        found = verdict(&base, &other, numbers.len());
        if found != Verdict::Inconclusive {
            break;
        }
    }
    found
}

const ADDED: [usize; 4] = [8, 12, 16, 24];

/// One layout a side, measured as well as one likes: any difference beyond the margin is called.
fn by_one(kind: &Kind, random: &mut Random) -> bool {
    let [base, other] = [(); 2].map(|()| side(kind, random, 1.0, 1)[0]);
    (other / base).ln().abs() > MARGIN
}

#[test]
fn equal_sources_are_seldom_called_different_by_their_layouts() {
    for kind in &KINDS {
        for numbers in [&[6][..], &[8], &[12], &ADDED] {
            let wrong = share(2000, 1, |random| is_different(with_more(kind, random, 1.0, numbers)));
            assert!(wrong <= 0.4, "{}, {numbers:?}: {wrong} %", kind.name);
        }
    }
    // With one layout a side the same sources differ; otherwise nothing here would be tested.
    assert!(share(2000, 1, |random| by_one(&KINDS[1], random)) > 20.0);
}

#[test]
fn more_layouts_find_a_change_and_never_the_other_way() {
    for kind in &KINDS {
        let found =
            |number: usize| share(500, 9001, |random| is_slower(with_more(kind, random, 1.03, &[number])));
        // A rare level has a mean of its own, which few layouts miss together.
        let [six, twelve, many] = [6, 12, 48].map(found);
        assert!(six <= twelve + 12.0 && twelve <= many, "{}: {six} {twelve} {many}", kind.name);
        let faster = |random: &mut Random| {
            let verdict = with_more(kind, random, 1.03, &ADDED);
            matches!(verdict, Verdict::Faster | Verdict::SomewhatFaster)
        };
        assert!(share(500, 9001, faster) <= 0.2, "{}", kind.name);
    }
    let found = |kind: &Kind| share(500, 9001, |random| is_slower(with_more(kind, random, 1.03, &[8])));
    assert!(found(&KINDS[0]) == 100.0 && found(&KINDS[1]) > 80.0);
}

#[test]
#[ignore = "prints a table of rates"]
fn table() {
    println!(
        "| layouts | equal, one a side: different | equal, 6, 8, 12 and 8 to 24 a side | +1 % found | +3 % found |"
    );
    println!("|---|---|---|---|---|");
    for kind in &KINDS {
        let wrong = |numbers: &[usize]| {
            format!(
                "{:.2}",
                share(20_000, 100_001, |random| is_different(with_more(kind, random, 1.0, numbers)))
            )
        };
        let found = |ratio: f64| {
            let of = |numbers: &[usize]| {
                format!(
                    "{:.0}",
                    share(2000, 200_001, |random| is_slower(with_more(kind, random, ratio, numbers)))
                )
            };
            [of(&[6]), of(&[8]), of(&[12]), of(&ADDED)].join(", ")
        };
        println!(
            "| {} | {:.0} | {} | {} | {} |",
            kind.name,
            share(20_000, 100_001, |random| by_one(kind, random)),
            [wrong(&[6]), wrong(&[8]), wrong(&[12]), wrong(&ADDED)].join(", "),
            found(1.01),
            found(1.03)
        );
    }
}
