//! Bytes a second by the size of the memory, beside the latency of a load.

use std::collections::BTreeSet;

use tollgate_output::figures;

use super::curves::of_sizes;
use super::panels::panels;
use super::subject::{Subject, is_drawn};
use crate::page::{Axis, Curve, Curves, Drawing, Figure, Key, Point, Sign, Table, Text, Tick};
use crate::pictures::curve;

/// The benchmark.
pub const BENCHMARK: &str = "memory/bandwidth";
/// The operations that have a curve.
const OPERATIONS: [&str; 3] = ["read", "write", "copy"];

/// A size and its throughput.
struct Rate {
    operation: usize,
    kib: f64,
    bytes: f64,
}

/// Bytes a second of one thread by the size of its working set, in pages of 4 KiB.
pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Vec<Rate>> = subjects.iter().map(rates).collect();
    let all = || found.iter().flatten();
    let ends = |of: fn(&Rate) -> f64| {
        let values = || all().map(of);
        Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
    };
    let ((least, most), (slowest, fastest)) = (ends(|rate| rate.kib)?, ends(|rate| rate.bytes)?);
    let across = of_sizes(least, most)?;
    let (low, high) = (slowest / 1.5, fastest * 1.5);
    let rate =
        |power: i32| Tick { at: 2_f64.powi(power), name: per_second(2_f64.powi(power)), is_main: true };
    let up = (low.log2().ceil() as i32..=high.log2().floor() as i32).map(rate);
    let up = Axis::logarithmic(low, high, up.collect())?;
    let draw = |subject: &Subject| {
        let rates = found.get(subject.look).filter(|rates| !rates.is_empty())?;
        let curve = |operation: usize| Curve {
            look: operation,
            points: (rates.iter().filter(|rate| rate.operation == operation))
                .map(|rate| Point {
                    x: rate.kib,
                    y: rate.bytes,
                    title: format!("{}: {}", curve::kib_in_words(rate.kib), per_second(rate.bytes).as_str())
                        .into(),
                })
                .collect(),
        };
        let caches = curve::caches(&subject.summary.run.facts);
        let marked = caches.into_iter().map(|(name, kib)| Tick { at: kib, name: name.into(), is_main: true });
        let curves = Curves::new(&across, &up, (0..OPERATIONS.len()).map(curve).collect());
        Some(Drawing::Curves(Curves { marked: marked.collect(), ..curves }))
    };
    let key = |(look, name): (usize, &&str)| Key { sign: Sign::Look(look), name: Text::label(name) };
    Some(Figure {
        title: "memory/bandwidth: bytes a second of one thread, by memory size".into(),
        description: "Bytes that are read, written or copied by 32-byte vectors in a second, by the size of the working set in pages of \
                      4 KiB; both axes are logarithmic. A copy counts what is copied, once."
            .into(),
        keys: OPERATIONS.iter().enumerate().map(key).collect(),
        panels: panels(subjects, draw),
        numbers: Some(numbers(subjects, &found)),
        ..Figure::default()
    })
}

fn rates(subject: &Subject) -> Vec<Rate> {
    let cases = subject.summary.of_benchmark(BENCHMARK).filter(|(case, figures)| {
        let is_curve = case.number("threads") == Some(1) && case.word("page") == Some("4k");
        is_curve && case.word("by") == Some("avx2") && is_drawn(figures)
    });
    let rate = |(case, figures): (&tollgate_model::Case, &crate::summary::Figures)| {
        let operation = OPERATIONS.iter().position(|name| case.word("op") == Some(name))?;
        let kib = case.number("kib").filter(|&kib| kib > 0)? as f64;
        Some(Rate { operation, kib, bytes: figures.bytes_per_second()? })
    };
    cases.filter_map(rate).collect()
}

fn per_second(bytes: f64) -> Text {
    format!("{}/s", figures::bytes(bytes)).into()
}

fn numbers(subjects: &[Subject], found: &[Vec<Rate>]) -> Table {
    let mut head = vec![Text::from("memory")];
    for subject in subjects {
        let prefix = subject.prefix(", ");
        head.extend(OPERATIONS.map(|operation| Text::new(&format!("{prefix}{operation}"))));
    }
    let sizes: BTreeSet<u64> = found.iter().flatten().map(|rate| rate.kib as u64).collect();
    let row = |kib: u64| {
        let cells = found.iter().flat_map(|rates| {
            (0..OPERATIONS.len()).map(move |operation| {
                let rate = rates.iter().find(|rate| rate.kib as u64 == kib && rate.operation == operation);
                rate.map_or("–".into(), |rate| per_second(rate.bytes))
            })
        });
        std::iter::once(Text::from(curve::kib_in_words(kib as f64))).chain(cells).collect()
    };
    Table { rows: sizes.into_iter().map(row).collect(), ..Table::new("The figures of the bandwidth", head) }
}
