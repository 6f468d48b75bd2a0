//! Estimates by something that grows: the memory that is read, the memory that was written, the number of threads.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_model::stats::median;
use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use super::panels::panels;
use super::subject::{Subject, is_drawn};
use crate::findings::{SharingCurves, sharing_curves};
use crate::page::{
    Axis, Curve, Curves, Drawing, Figure, Key, MAX_ENVIRONMENTS, Panel, Plateau, Point, Sign, Table, Text,
    Tick,
};
use crate::pictures::{curve, sharing};

fn ns(value: f64) -> String {
    figures::estimate(value, Unit::Nanoseconds)
}

fn key(look: usize, name: &str) -> Key {
    Key { sign: Sign::Look(look), name: Text::label(name) }
}

/// The latency of a load by the size of the memory.
pub fn latency(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Vec<curve::Point>> =
        subjects.iter().map(|subject| curve::points(&subject.summary)).collect();
    let all = || found.iter().flatten();
    let up = Axis::around_times(all().map(|point| point.ns))?;
    let least = all().map(|point| point.kib).min_by(f64::total_cmp)?;
    let most = all().map(|point| point.kib).max_by(f64::total_cmp)?;
    let across = of_sizes(least, most)?;
    let draw = |subject: &Subject| {
        let points = found.get(subject.look).filter(|points| !points.is_empty())?;
        let of = |look: usize, is_second: bool| Curve {
            look,
            points: points
                .iter()
                .filter(|point| point.is_second == is_second)
                .map(|point| Point {
                    x: point.kib,
                    y: point.ns,
                    title: format!("{}: {}", curve::kib_in_words(point.kib), ns(point.ns)).into(),
                })
                .collect(),
        };
        let caches = curve::caches(&subject.summary.run.facts);
        let plateaus = plateaus(points, &caches);
        let marked = caches.into_iter().map(|(name, kib)| Tick { at: kib, name: name.into(), is_main: true });
        let curves = Curves::new(&across, &up, vec![of(0, false), of(1, true)]);
        Some(Drawing::Curves(Curves { marked: marked.collect(), plateaus, ..curves }))
    };
    Some(Figure {
        is_folded: false,
        title: "memory/latency: a dependent load, by memory size".into(),
        description: "Time of one load by the size of the memory that is read; both axes are logarithmic. Vertical lines \
                      are the cache sizes that the kernel reports."
            .into(),
        keys: vec![key(0, "pages of 4 KiB"), key(1, "pages of 2 MiB")],
        panels: panels(subjects, draw),
        numbers: Some(latency_numbers(subjects, &found)),
    })
}

/// An axis of sizes. Each fourth doubling is named, counted from 1 KiB.
pub fn of_sizes(least: f64, most: f64) -> Option<Axis> {
    let doublings = (least.log2().ceil() as i32..=most.log2().floor() as i32).filter(|power| power % 2 == 0);
    let ticks = doublings.map(|power| {
        let kib = 2_f64.powi(power);
        Tick { at: kib, name: curve::kib_in_words(kib).into(), is_main: power % 4 == 0 }
    });
    Axis::logarithmic(least, most, ticks.collect())
}

/// More pictures of sharing are not drawn.
const MOST_PANELS: usize = 12;

/// Stores to lines that another core stores to as well, beside stores to other lines, by the size of the buffer.
pub fn sharing(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Vec<SharingCurves>> =
        subjects.iter().map(|subject| sharing_curves(&subject.summary)).collect();
    let all =
        || subjects.iter().zip(&found).flat_map(|(subject, all)| all.iter().map(move |one| (subject, one)));
    let points = all().flat_map(|(subject, curves)| sharing::points(&subject.summary, curves));
    let points: Vec<curve::Point> = points.collect();
    let up = Axis::around_times(points.iter().map(|point| point.ns))?;
    let sizes = || points.iter().map(|point| point.kib);
    let across = of_sizes(sizes().min_by(f64::total_cmp)?, sizes().max_by(f64::total_cmp)?)?;
    let panel = |(subject, curves): (&Subject, &SharingCurves)| {
        let size = |kib: u64| curve::kib_in_words(kib as f64);
        let medians = |look: usize| Curve {
            look,
            points: (curves.points.iter())
                .filter_map(|(kib, cases)| {
                    let figures =
                        subject.summary.figures(&cases[look]).filter(|figures| is_drawn(figures))?;
                    let title = format!("{}: {}", size(*kib), figures.in_words()).into();
                    Some(Point { x: *kib as f64, y: figures.estimate.median, title })
                })
                .collect(),
        };
        // A curve of one point is a sign without a line.
        let modes = curves.points.iter().flat_map(|(kib, cases)| {
            cases.iter().enumerate().flat_map(move |(look, case)| {
                let modes = subject.summary.figures(case).map_or(&[][..], |figures| &figures.estimate.modes);
                let modes = modes.iter().filter(|mode| modes.len() > 1 && mode.at > 0.0);
                modes.map(move |mode| {
                    let share = figures::percent(mode.share);
                    let title = format!("{}: {} in {share} of the samples", size(*kib), ns(mode.at)).into();
                    Curve { look, points: vec![Point { x: *kib as f64, y: mode.at, title }] }
                })
            })
        });
        let caches = curve::caches(&subject.summary.run.facts);
        let marked = caches.into_iter().map(|(name, kib)| Tick { at: kib, name: name.into(), is_main: true });
        let drawn = [medians(0), medians(1)].into_iter().chain(modes).collect();
        let drawing = Curves { marked: marked.collect(), ..Curves::new(&across, &up, drawn) };
        Panel {
            name: Some(Text::new(&format!("{}{}: {}", subject.prefix(", "), curves.name, curves.ends))),
            environment: subject.is_one_of_several.then_some(subject.look.min(MAX_ENVIRONMENTS)),
            drawing: Drawing::Curves(drawing),
        }
    };
    Some(Figure {
        is_folded: true,
        title: "memory/thrash: a store where another core stores to the same lines".into(),
        description: "Nanoseconds a line by the size of the buffer; both axes are logarithmic. The distance of the two curves is the \
                      latency of sharing. A case with two modes has a sign for each, beside its median on the line. The table of this \
                      suite has the figures."
            .into(),
        keys: vec![key(0, "other lines"), key(1, "the same lines")],
        panels: all().take(MOST_PANELS).map(panel).collect(),
        ..Figure::default()
    })
}

/// The latency of each cache and of memory: the median of the loads whose memory is well inside it. The pages of 4 KiB are
/// the curve of most programs; huge ones, where they were measured, have no misses of the TLB in it.
fn plateaus(points: &[curve::Point], caches: &[(String, f64)]) -> Vec<Plateau> {
    let is_huge = points.iter().any(|point| point.is_second);
    let most = points.iter().map(|point| point.kib).fold(0.0, f64::max);
    let mut from = 0.0;
    let mut plateaus = Vec::new();
    let ends = caches.iter().map(|(name, kib)| (name.split(' ').next().unwrap_or(name), *kib));
    for (name, end) in ends.chain([("memory", f64::INFINITY)]) {
        // Near an end a part of the memory is in the next cache.
        let inside = |kib: f64| kib >= from * 1.5 && kib <= end * 0.75;
        let loads = points.iter().filter(|point| point.is_second == is_huge && inside(point.kib));
        let (sizes, times): (Vec<f64>, Vec<f64>) = loads.map(|point| (point.kib, point.ns)).unzip();
        if let (Some(at), Some(least)) = (median(&times), sizes.iter().copied().reduce(f64::min)) {
            let largest = sizes.into_iter().fold(least, f64::max).min(most);
            plateaus.push(Plateau { ends: (least, largest), at, name: format!("{name} {}", ns(at)).into() });
        }
        from = end;
    }
    plateaus
}

fn latency_numbers(subjects: &[Subject], found: &[Vec<curve::Point>]) -> Table {
    let kinds = [(false, "4 KiB pages"), (true, "2 MiB pages")];
    let mut head = vec![Text::from("memory")];
    for subject in subjects {
        let prefix = subject.prefix(", ");
        head.extend(kinds.map(|(_, pages)| Text::new(&format!("{prefix}{pages}"))));
    }
    let sizes: BTreeSet<u64> = found.iter().flatten().map(|point| point.kib as u64).collect();
    let row = |kib: u64| {
        let cells = found.iter().flat_map(|points| {
            kinds.map(|(is_huge, _)| {
                let point = points.iter().find(|point| point.kib as u64 == kib && point.is_second == is_huge);
                Text::from(point.map_or("–".to_owned(), |point| ns(point.ns)))
            })
        });
        std::iter::once(Text::from(curve::kib_in_words(kib as f64))).chain(cells).collect()
    };
    Table { rows: sizes.into_iter().map(row).collect(), ..Table::new("The figures of the latency", head) }
}

/// Ways to create a process or a thread, each by the memory that its creator has written.
pub const CREATIONS: [&str; 6] = [
    "processes/fork",
    "processes/vfork",
    "processes/clone3",
    "processes/posix-spawn",
    "processes/fork-exec",
    "processes/thread",
];

/// The latency of a way by MiB that were written.
type Creation = BTreeMap<u64, f64>;

/// The latency of creation by the memory that the creator has written.
pub fn creation(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Vec<(&str, Creation)>> = subjects
        .iter()
        .map(|subject| CREATIONS.iter().map(|benchmark| (*benchmark, written(subject, benchmark))).collect())
        .collect();
    let all = || found.iter().flatten();
    let amounts: BTreeSet<u64> = all().flat_map(|(_, estimates)| estimates.keys().copied()).collect();
    if amounts.len() < 2 {
        return None;
    }
    let up = Axis::around_times(all().flat_map(|(_, estimates)| estimates.values().copied()))?;
    let across = Axis::of_steps(amounts.iter().map(|mib| Text::from(amount(*mib))));
    let step = |mib: u64| amounts.iter().position(|amount| *amount == mib).unwrap_or_default() as f64;
    let draw = |subject: &Subject| {
        let ways = found.get(subject.look)?;
        let curves = ways.iter().enumerate().filter(|(_, (_, estimates))| !estimates.is_empty());
        let curves: Vec<Curve> = curves
            .map(|(look, (benchmark, estimates))| Curve {
                look,
                points: estimates
                    .iter()
                    .map(|(mib, estimate)| Point {
                        x: step(*mib),
                        y: *estimate,
                        title: format!("{}, {}: {}", short(benchmark), amount(*mib), ns(*estimate)).into(),
                    })
                    .collect(),
            })
            .collect();
        (!curves.is_empty()).then(|| Drawing::Curves(Curves::new(&across, &up, curves)))
    };
    let mut head = vec![Text::from("written")];
    let mut columns: Vec<&Creation> = Vec::new();
    for (subject, ways) in subjects.iter().zip(&found) {
        let prefix = subject.prefix(", ");
        for (benchmark, estimates) in ways.iter().filter(|(_, estimates)| !estimates.is_empty()) {
            head.push(Text::new(&format!("{prefix}{}", short(benchmark))));
            columns.push(estimates);
        }
    }
    let row = |mib: &u64| {
        let cells = columns
            .iter()
            .map(|estimates| estimates.get(mib).map_or("–".to_owned(), |estimate| ns(*estimate)).into());
        std::iter::once(Text::from(amount(*mib))).chain(cells).collect()
    };
    Some(Figure {
        is_folded: false,
        title: "processes: latency of creation by the memory that the creator has written".into(),
        description: "Time until the new process or thread has exited, by the memory that its creator had written, in pages of 4 KiB; the \
                      vertical axis is logarithmic. Programs are minimal."
            .into(),
        keys: CREATIONS.iter().enumerate().map(|(look, benchmark)| key(look, short(benchmark))).collect(),
        panels: panels(subjects, draw),
        numbers: Some(Table {
            rows: amounts.iter().map(row).collect(),
            ..Table::new("The figures of creation", head)
        }),
    })
}

fn amount(mib: u64) -> String {
    if mib == 0 { "none".to_owned() } else { format!("{mib} MiB") }
}

/// `fork` for `processes/fork`.
fn short(benchmark: &str) -> &str {
    benchmark.rsplit('/').next().unwrap_or(benchmark)
}

fn written(subject: &Subject, benchmark: &str) -> Creation {
    let is_plain = |case: &Case| {
        case.word("until") == Some("exited")
            && case.word("page").is_none_or(|page| page == "4k")
            && case.word("image").is_none_or(|image| image == "bare")
    };
    subject
        .summary
        .of_benchmark(benchmark)
        .filter(|(case, figures)| is_plain(case) && is_drawn(figures))
        .filter_map(|(case, figures)| Some((case.number("dirty_mib")?, figures.estimate.median)))
        .collect()
}
