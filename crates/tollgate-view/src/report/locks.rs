//! Items per second that each lock lets through, as multiples of the system call: one row per lock.

use std::collections::BTreeMap;

use tollgate_output::figures;

use super::panels::panels;
use super::subject::Subject;
use crate::page::{Drawing, Figure, Key, Mark, PictureRow, Rows, Sign, Table, Text};
use crate::pictures::trade;

const PROCESSORS: [(&str, &str); 2] = [("one", "one processor"), ("all", "all processors")];

type Gains<'a> = BTreeMap<&'a str, BTreeMap<(usize, u64), f64>>;

pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<Gains> = subjects.iter().map(gains).collect();
    let all = || found.iter().flat_map(BTreeMap::values).flatten();
    all().next()?;
    let axis = super::ratios::axis(all().map(|(_, gain)| *gain))?;
    let draw = |subject: &Subject| {
        let gains = found.get(subject.look).filter(|gains| !gains.is_empty())?;
        let mut rows: Vec<PictureRow> = gains.iter().map(|(lock, gains)| row(lock, gains)).collect();
        let best = |row: &PictureRow| row.marks.iter().map(|mark| mark.at).fold(0.0, f64::max);
        rows.sort_by(|a, b| best(b).total_cmp(&best(a)));
        Some(Drawing::Rows(Rows { axis: axis.clone(), rows, level: Some(1.0), is_by_environment: false }))
    };
    let kinds = PROCESSORS
        .iter()
        .flat_map(|(_, name)| [format!("{name}, fewest threads"), format!("{name}, most threads")]);
    let keys = kinds.enumerate().map(|(look, name)| Key { sign: Sign::Look(look), name: name.into() });
    Some(Figure {
        is_folded: true,
        title: format!("{}: throughput by lock", trade::BENCHMARK).into(),
        description: format!(
            "Items that producers hand to consumers in a second, as multiples of the system call {}, which is the line at \
             ×1; the axis is logarithmic.",
            trade::BASE
        )
        .into(),
        keys: keys.collect(),
        panels: panels(subjects, draw),
        numbers: Some(numbers(subjects, &found)),
    })
}

fn gains<'a>(subject: &Subject<'a>) -> Gains<'a> {
    let mut gains: Gains = BTreeMap::new();
    for (at, (cpus, _)) in PROCESSORS.into_iter().enumerate() {
        let times = trade::times(&subject.summary, cpus, |figures| Some(figures.estimate.median));
        let Some((_, base)) = times.iter().find(|(lock, _)| *lock == trade::BASE) else { continue };
        for (lock, times) in times.iter().filter(|(lock, _)| *lock != trade::BASE) {
            let known =
                times.iter().filter_map(|(threads, time)| Some((*threads, base.get(threads)? / time)));
            gains.entry(lock).or_default().extend(known.map(|(threads, gain)| ((at, threads), gain)));
        }
    }
    gains
}

fn row(lock: &str, gains: &BTreeMap<(usize, u64), f64>) -> PictureRow {
    let mut marks = Vec::new();
    for (at, (_, name)) in PROCESSORS.iter().enumerate() {
        let of: Vec<_> = gains.iter().filter(|((processors, _), _)| *processors == at).collect();
        let ends =
            of.first().into_iter().map(|end| (0, end)).chain(of.last().into_iter().map(|end| (1, end)));
        marks.extend(ends.map(|(last, ((_, threads), gain))| Mark {
            look: at * 2 + last,
            at: **gain,
            title: format!("{name}, {threads} threads: {}", figures::multiple(**gain)).into(),
            ..Mark::default()
        }));
    }
    let ends = marks.iter().map(|mark| mark.at);
    let value = ends.clone().reduce(f64::min).zip(ends.reduce(f64::max)).map(|(least, most)| {
        format!("×{}–{}", figures::significant(least, 2), figures::significant(most, 2))
    });
    PictureRow { name: Text::label(lock), value: value.unwrap_or_default().into(), verdict: None, marks }
}

fn numbers(subjects: &[Subject], found: &[Gains]) -> Table {
    let mut columns: Vec<(usize, u64)> =
        found.iter().flat_map(BTreeMap::values).flat_map(BTreeMap::keys).copied().collect();
    columns.sort_unstable();
    columns.dedup();
    let is_comparison = subjects.len() > 1;
    let head = std::iter::once("lock".to_owned())
        .chain(is_comparison.then(|| "environment".to_owned()))
        .chain(columns.iter().map(|(at, threads)| format!("{}, {threads} threads", PROCESSORS[*at].1)));
    let mut table = Table::new("The figures of the locks", head);
    for (subject, gains) in subjects.iter().zip(found) {
        table.rows.extend(gains.iter().map(|(lock, gains)| {
            let cells = columns.iter().map(|column| {
                Text::from(gains.get(column).map_or("–".to_owned(), |gain| figures::multiple(*gain)))
            });
            let environment = is_comparison.then(|| Text::new(&subject.name));
            std::iter::once(Text::new(lock)).chain(environment).chain(cells).collect()
        }));
    }
    table
}
