//! Stores to lines that another core stores to, and stores to private lines, by the size of the buffer: both curves of each pair,
//! order and page.

use tollgate_model::Case;
use tollgate_output::table::{heading, paragraph};

use super::curve::{Point, WIDEST, caches, draw};
use crate::rules::{SharingCurves, THRASH, sharing_curves};
use crate::summary::Summary;

pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let caches = caches(&summary.run.facts);
    let one = |curves: SharingCurves| {
        let points: Vec<Point> = points(summary, &curves).collect();
        let picture = draw(&points, &caches, width.min(WIDEST))?;
        Some(paragraph(&format!("{}: {}", curves.name, curves.ends), width, "") + &picture)
    };
    let pictures: Vec<String> = sharing_curves(summary).into_iter().filter_map(one).collect();
    let title = format!("{THRASH}: ns per line that is stored to, by buffer size");
    let legend = "● own lines   ○ shared lines   ◉ both   two signs at one size: two modes\n";
    let legend =
        if width >= legend.chars().count() { legend } else { "● own lines  ○ shared lines  ◉ both\n" };
    (!pictures.is_empty()).then(|| heading(&title, width) + legend + &pictures.join("\n"))
}

/// The points of both curves; two for a case with two modes.
pub fn points<'s>(summary: &'s Summary, curves: &'s SharingCurves) -> impl Iterator<Item = Point> + 's {
    let of = move |kib: u64, case: &Case, is_second: bool| {
        let times =
            summary.figures(case).map_or(Vec::new(), |figures| match figures.estimate.modes.as_slice() {
                [low, high] => vec![low.at, high.at],
                _ => vec![figures.estimate.median],
            });
        let times = times.into_iter().filter(|ns| *ns > 0.0);
        times.map(move |ns| Point { kib: kib as f64, ns, is_second })
    };
    curves
        .points
        .iter()
        .flat_map(move |(kib, [alone, shared])| of(*kib, alone, false).chain(of(*kib, shared, true)))
}
