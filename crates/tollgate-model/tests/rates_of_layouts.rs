//! How often a comparison across layouts is wrong, and how often it finds a change. Seeded simulations.

use crate::support::Random;
use tollgate_model::stats::{Layouts, Verdict, across_layouts};

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
    let found = Layouts::compare(base, other, each, MARGIN).unwrap();
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

/// Executions of eight layouts a side, looked at as the program does, until they are decided or there are as many as it has time for.
/// The machine changes between two paces, at each execution by chance, if `noise` says so.
fn looked_at(kind: &Kind, random: &mut Random, ratio: f64, noise: Noise) -> Verdict {
    const MOST: usize = 240;
    let layouts = [1.0, ratio].map(|time| side(kind, random, time, 8));
    let (mut figures, mut looked) = ([Vec::new(), Vec::new()], 0);
    let (mut found, mut is_slow) = (Verdict::Inconclusive, false);
    for round in 0..MOST {
        let first = usize::from(random.chance(0.5));
        for side in [first, 1 - first] {
            is_slow ^= random.chance(noise.changes);
            let pace = if is_slow { 1.6 } else { 1.0 };
            figures[side].push(pace * layouts[side][round % 8] * random.factor(noise.each));
        }
        let pairs = round + 1;
        if pairs < 16 || pairs < looked + looked / 20 {
            continue;
        }
        looked = pairs;
        let [base, other] = &figures;
        found = across_layouts(base, other, 8, 1, MARGIN, false).unwrap().verdict;
        if found != Verdict::Inconclusive {
            break;
        }
    }
    found
}

#[derive(Clone, Copy)]
struct Noise {
    /// The spread of each execution.
    each: f64,
    /// The chance that the pace changes before an execution.
    changes: f64,
}

const NOISES: [Noise; 5] = [
    Noise { each: 0.001, changes: 0.0 },
    Noise { each: 0.01, changes: 0.0 },
    Noise { each: 0.03, changes: 0.0 },
    Noise { each: 0.01, changes: 0.05 },
    Noise { each: 0.03, changes: 0.3 },
];

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn looks_at_noisy_executions_seldom_call_equal_sources_different() {
    for kind in [&KINDS[0], &KINDS[3]] {
        for noise in NOISES {
            let wrong = share(600, 1, |random| is_different(looked_at(kind, random, 1.0, noise)));
            assert!(wrong <= 0.5, "{}, noise {}, {}: {wrong} %", kind.name, noise.each, noise.changes);
        }
    }
    for noise in &NOISES[..4] {
        let found = share(200, 9001, |random| is_slower(looked_at(&KINDS[0], random, 1.03, *noise)));
        assert!(found > 80.0, "noise {}, {}: {found} %", noise.each, noise.changes);
    }
}

#[test]
#[ignore = "prints a table of rates"]
fn table() {
    println!(
        "| layouts | equal, one a side: different | equal, looked at, of five noises | +3 % found, of five noises | equal, 6, 8, 12 and 8 to 24 a side | +1 % found | +3 % found |"
    );
    println!("|---|---|---|---|---|---|---|");
    for kind in &KINDS {
        let wrong = |numbers: &[usize]| {
            format!(
                "{:.2}",
                share(20_000, 100_001, |random| is_different(with_more(kind, random, 1.0, numbers)))
            )
        };
        let looked = |ratio: f64, noise: Noise| {
            let number = if ratio == 1.0 { 5000 } else { 500 };
            let found = share(number, 100_001, |random| is_different(looked_at(kind, random, ratio, noise)));
            format!("{found:.2}")
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
            "| {} | {:.0} | {} | {} | {} | {} | {} |",
            kind.name,
            share(20_000, 100_001, |random| by_one(kind, random)),
            NOISES.map(|noise| looked(1.0, noise)).join(", "),
            NOISES.map(|noise| looked(1.03, noise)).join(", "),
            [wrong(&[6]), wrong(&[8]), wrong(&[12]), wrong(&ADDED)].join(", "),
            found(1.01),
            found(1.03)
        );
    }
}
