//! Estimates by a growing amount: memory that is read, memory that was written, threads.

use std::collections::BTreeSet;

use tollgate_model::stats::median;
use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use super::panels::panels;
use super::subject::{Subject, is_drawn};
use crate::page::{
    Axis, Curve, Curves, Drawing, Figure, Key, MAX_ENVIRONMENTS, Panel, Plateau, Point, Sign, Table, Text,
    Tick,
};
use crate::pictures::{curve, sharing};
use crate::rules::{SharingCurves, sharing_curves};
use crate::summary::Figures;

fn ns(value: f64) -> String {
    figures::estimate(value, Unit::Nanoseconds)
}

fn key(look: usize, name: &str) -> Key {
    Key { sign: Sign::Look(look), name: Text::label(name) }
}

struct Estimate {
    look: usize,
    x: f64,
    y: f64,
}

type Around<'a> = dyn Fn(&Subject, &[Estimate]) -> (Vec<Tick>, Vec<Plateau>) + 'a;

struct Family<'a> {
    title: &'a str,
    description: &'a str,
    names: &'a [&'a str],
    across: Axis,
    up: Axis,
    in_words: (&'a dyn Fn(f64) -> String, &'a dyn Fn(f64) -> String),
    around: &'a Around<'a>,
    table: [&'a str; 2],
}

impl Family<'_> {
    fn figure(&self, subjects: &[Subject], found: &[Vec<Estimate>]) -> Figure {
        let (x, y) = self.in_words;
        let draw = |subject: &Subject| {
            let estimates = found.get(subject.look).filter(|estimates| !estimates.is_empty())?;
            let curve = |(look, name): (usize, &&str)| Curve {
                look,
                points: (estimates.iter().filter(|estimate| estimate.look == look))
                    .map(|it| Point {
                        x: it.x,
                        y: it.y,
                        title: format!("{name}, {}: {}", x(it.x), y(it.y)).into(),
                    })
                    .collect(),
            };
            let curves = self.names.iter().enumerate().map(curve).filter(|curve| !curve.points.is_empty());
            let (marked, plateaus) = (self.around)(subject, estimates);
            Some(Drawing::Curves(Curves {
                marked,
                plateaus,
                ..Curves::new(&self.across, &self.up, curves.collect())
            }))
        };
        Figure {
            title: self.title.into(),
            description: self.description.into(),
            keys: self.names.iter().enumerate().map(|(look, name)| key(look, name)).collect(),
            panels: panels(subjects, draw),
            numbers: Some(self.numbers(subjects, found)),
            ..Figure::default()
        }
    }

    /// A row for each position, a column for each curve that some environment has.
    fn numbers(&self, subjects: &[Subject], found: &[Vec<Estimate>]) -> Table {
        let [caption, first] = self.table;
        let (x, y) = self.in_words;
        let looks = 0..self.names.len();
        let columns: Vec<(&Subject, usize)> = (subjects.iter())
            .flat_map(|subject| looks.clone().map(move |look| (subject, look)))
            .filter(|(subject, look)| found[subject.look].iter().any(|estimate| estimate.look == *look))
            .collect();
        let named = |(subject, look): &(&Subject, usize)| {
            Text::new(&format!("{}{}", subject.prefix(", "), self.names[*look]))
        };
        let mut positions: Vec<f64> = found.iter().flatten().map(|estimate| estimate.x).collect();
        positions.sort_unstable_by(f64::total_cmp);
        positions.dedup();
        let cell = |at: f64, (subject, look): &(&Subject, usize)| {
            let found = found[subject.look].iter().find(|it| it.look == *look && it.x == at);
            Text::from(found.map_or("–".to_owned(), |estimate| y(estimate.y)))
        };
        let row = |at: f64| {
            let cells = columns.iter().map(|column| cell(at, column));
            std::iter::once(Text::from(x(at))).chain(cells).collect()
        };
        let rows = positions.into_iter().map(row).collect();
        let head = std::iter::once(Text::from(first)).chain(columns.iter().map(named));
        Table { rows, ..Table::new(caption, head) }
    }
}

fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().min_by(f64::total_cmp)?, values.max_by(f64::total_cmp)?))
}

fn caches(subject: &Subject) -> Vec<Tick> {
    let caches = curve::caches(&subject.summary.run.facts).into_iter();
    caches.map(|(name, kib)| Tick { at: kib, name: name.into(), is_main: true }).collect()
}

pub fn latency(subjects: &[Subject]) -> Option<Figure> {
    let estimate = |point: curve::Point| Estimate { look: point.is_second.into(), x: point.kib, y: point.ns };
    let found = subjects.iter().map(|subject| curve::points(&subject.summary));
    let found: Vec<Vec<Estimate>> = found.map(|points| points.into_iter().map(estimate).collect()).collect();
    let all = || found.iter().flatten();
    let (least, most) = ends(all().map(|estimate| estimate.x))?;
    let family = Family {
        title: "memory/latency: a dependent load, by memory size",
        description: "Time of one load by the size of the memory that is read; both axes are logarithmic. Vertical lines \
                      are the cache sizes that the kernel reports.",
        names: &["pages of 4 KiB", "pages of 2 MiB"],
        across: of_sizes(least, most)?,
        up: Axis::around_times(all().map(|estimate| estimate.y))?,
        in_words: (&curve::kib_in_words, &ns),
        around: &|subject, estimates| {
            (caches(subject), plateaus(estimates, &curve::caches(&subject.summary.run.facts)))
        },
        table: ["The figures of the latency", "memory"],
    };
    Some(family.figure(subjects, &found))
}

pub const BANDWIDTH: &str = "memory/bandwidth";
const OPERATIONS: [&str; 3] = ["read", "write", "copy"];

/// Bytes per second of one thread by the size of its working set, in pages of 4 KiB.
pub fn bandwidth(subjects: &[Subject]) -> Option<Figure> {
    let rate = |case: &Case, figures: &Figures| {
        let is_curve = case.number("threads") == Some(1) && case.word("page") == Some("4k");
        if !is_curve || case.word("by") != Some("avx2") || !is_drawn(figures) {
            return None;
        }
        let look = OPERATIONS.iter().position(|name| case.word("op") == Some(name))?;
        let kib = case.number("kib").filter(|&kib| kib > 0)? as f64;
        Some(Estimate { look, x: kib, y: figures.bytes_per_second()? })
    };
    let rates = |subject: &Subject| {
        let cases = subject.summary.of_benchmark(BANDWIDTH);
        cases.filter_map(|(case, figures)| rate(case, figures)).collect()
    };
    let found: Vec<Vec<Estimate>> = subjects.iter().map(rates).collect();
    let all = || found.iter().flatten();
    let (least, most) = ends(all().map(|rate| rate.x))?;
    let (slowest, fastest) = ends(all().map(|rate| rate.y))?;
    let (low, high) = (slowest / 1.5, fastest * 1.5);
    let per_second = |bytes: f64| format!("{}/s", figures::bytes(bytes));
    let tick = |power: i32| {
        let at = 2_f64.powi(power);
        Tick { at, name: per_second(at).into(), is_main: true }
    };
    let up = (low.log2().ceil() as i32..=high.log2().floor() as i32).map(tick);
    let family = Family {
        title: "memory/bandwidth: bytes a second of one thread, by memory size",
        description: "Bytes that are read, written or copied by 32-byte vectors in a second, by the size of the working set in pages of \
                      4 KiB; both axes are logarithmic. A copy counts the copied bytes once.",
        names: &OPERATIONS,
        across: of_sizes(least, most)?,
        up: Axis::logarithmic(low, high, up.collect())?,
        in_words: (&curve::kib_in_words, &per_second),
        around: &|subject, _| (caches(subject), Vec::new()),
        table: ["The figures of the bandwidth", "memory"],
    };
    Some(family.figure(subjects, &found))
}

fn of_sizes(least: f64, most: f64) -> Option<Axis> {
    let doublings = (least.log2().ceil() as i32..=most.log2().floor() as i32).filter(|power| power % 2 == 0);
    let ticks = doublings.map(|power| {
        let kib = 2_f64.powi(power);
        Tick { at: kib, name: curve::kib_in_words(kib).into(), is_main: power % 4 == 0 }
    });
    Axis::logarithmic(least, most, ticks.collect())
}

const MOST_PANELS: usize = 12;

/// Stores to lines that another core stores to as well, and stores to other lines, by the size of the buffer.
pub fn sharing(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Vec<SharingCurves>> =
        subjects.iter().map(|subject| sharing_curves(&subject.summary)).collect();
    let all =
        || subjects.iter().zip(&found).flat_map(|(subject, all)| all.iter().map(move |one| (subject, one)));
    let points = all().flat_map(|(subject, curves)| sharing::points(&subject.summary, curves));
    let points: Vec<curve::Point> = points.collect();
    let up = Axis::around_times(points.iter().map(|point| point.ns))?;
    let (least, most) = ends(points.iter().map(|point| point.kib))?;
    let across = of_sizes(least, most)?;
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
        let drawn = [medians(0), medians(1)].into_iter().chain(modes).collect();
        let drawing = Curves { marked: caches(subject), ..Curves::new(&across, &up, drawn) };
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

/// The latency of each cache and of memory: the median of the loads whose memory is well inside it. The curve of pages of 4 KiB
/// describes most programs; huge pages, if measured, have no TLB misses in it.
fn plateaus(points: &[Estimate], caches: &[(String, f64)]) -> Vec<Plateau> {
    let is_huge = points.iter().any(|point| point.look == 1);
    let most = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let mut from = 0.0;
    let mut plateaus = Vec::new();
    let ends = caches.iter().map(|(name, kib)| (name.split(' ').next().unwrap_or(name), *kib));
    for (name, end) in ends.chain([("memory", f64::INFINITY)]) {
        // Near an end a part of the memory is in the next cache.
        let inside = |kib: f64| kib >= from * 1.5 && kib <= end * 0.75;
        let loads = points.iter().filter(|point| (point.look == 1) == is_huge && inside(point.x));
        let (sizes, times): (Vec<f64>, Vec<f64>) = loads.map(|point| (point.x, point.y)).unzip();
        if let (Some(at), Some(least)) = (median(&times), sizes.iter().copied().reduce(f64::min)) {
            let largest = sizes.into_iter().fold(least, f64::max).min(most);
            plateaus.push(Plateau { ends: (least, largest), at, name: format!("{name} {}", ns(at)).into() });
        }
        from = end;
    }
    plateaus
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

pub fn creation(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Vec<(usize, u64, f64)>> = subjects.iter().map(written).collect();
    let amounts: BTreeSet<u64> = found.iter().flatten().map(|(_, mib, _)| *mib).collect();
    let amounts: Vec<u64> = amounts.into_iter().collect();
    if amounts.len() < 2 {
        return None;
    }
    // Amounts are steps, since zero has no position on a logarithmic axis.
    let step = |mib: u64| amounts.iter().position(|amount| *amount == mib).unwrap_or_default() as f64;
    let estimate = |(look, mib, y): &(usize, u64, f64)| Estimate { look: *look, x: step(*mib), y: *y };
    let found: Vec<Vec<Estimate>> =
        found.iter().map(|written| written.iter().map(estimate).collect()).collect();
    let family = Family {
        title: "processes: latency of creation by the memory that the creator has written",
        description: "Time until the new process or thread has exited, by the memory that its creator had written, in pages of 4 KiB; the \
                      vertical axis is logarithmic. Programs are minimal.",
        names: &CREATIONS.map(short),
        across: Axis::of_steps(amounts.iter().map(|mib| Text::from(amount(*mib)))),
        up: Axis::around_times(found.iter().flatten().map(|estimate| estimate.y))?,
        in_words: (&|step| amounts.get(step as usize).map_or_else(String::new, |mib| amount(*mib)), &ns),
        around: &|_, _| (Vec::new(), Vec::new()),
        table: ["The figures of creation", "written"],
    };
    Some(family.figure(subjects, &found))
}

fn amount(mib: u64) -> String {
    if mib == 0 { "none".to_owned() } else { format!("{mib} MiB") }
}

/// `fork` for `processes/fork`.
fn short(benchmark: &str) -> &str {
    benchmark.rsplit('/').next().unwrap_or(benchmark)
}

fn written(subject: &Subject) -> Vec<(usize, u64, f64)> {
    let is_plain = |case: &Case| {
        case.word("until") == Some("exited")
            && case.word("page").is_none_or(|page| page == "4k")
            && case.word("image").is_none_or(|image| image == "bare")
    };
    let of_way = |(look, benchmark): (usize, &'static str)| {
        let cases = subject.summary.of_benchmark(benchmark);
        cases.filter(move |(case, figures)| is_plain(case) && is_drawn(figures)).filter_map(
            move |(case, figures)| Some((look, case.number("dirty_mib")?, figures.estimate.median)),
        )
    };
    CREATIONS.into_iter().enumerate().flat_map(of_way).collect()
}
