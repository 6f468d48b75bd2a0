//! How much slower a store is while another core stores to the same lines, as the published experiment asked.

use tollgate_model::text::listed;
use tollgate_model::{Case, ParamValue};
use tollgate_output::figures;

use super::Finding;
use super::row::{Known, known};
use crate::pictures::curve::kib_in_words;
use crate::summary::Summary;
use crate::together::together;

pub(crate) const THRASH: &str = "memory/thrash";

/// One sentence for each pair, order and page.
pub(super) fn sharing(summary: &Summary) -> Vec<Finding> {
    let finding = |([pair, order, page], points): (Series, Vec<Sharing>)| {
        let each = points.iter().map(|point| format!("{} at {} KiB", point.words(), point.kib));
        let sentence = format!(
            "Storing to lines that another core stores to ({pair} pair, {order} order, {page} pages) is {}.",
            listed(&each.collect::<Vec<String>>())
        );
        Finding { sentence, from: points.iter().flat_map(Sharing::cases).collect() }
    };
    series(summary).into_iter().map(finding).collect()
}

/// Sharing as rows: pair, order and page, the size in KiB, how much slower, and the times alone and shared.
pub(crate) fn sharing_rows(summary: &Summary) -> Vec<[String; 7]> {
    let row = |[pair, order, page]: &Series, point: &Sharing| {
        let [alone, shared] = [point.alone, point.shared].map(|known| known.row.figures.in_words());
        [pair.clone(), order.clone(), page.clone(), point.kib.to_string(), point.words(), alone, shared]
    };
    let all = series(summary);
    all.iter().flat_map(|(key, points)| points.iter().map(move |point| row(key, point))).collect()
}

pub(crate) struct SharingCurves {
    pub(crate) name: String,
    pub(crate) points: Vec<(u64, [Case; 2])>,
    /// The size from which on sharing is not slower, in words.
    pub(crate) ends: String,
}

pub(crate) fn sharing_curves(summary: &Summary) -> Vec<SharingCurves> {
    let several = series(summary).into_iter().filter(|(_, points)| points.len() > 1);
    let curve = |([pair, order, page], mut points): (Series, Vec<Sharing>)| {
        points.sort_by_key(|point| point.kib);
        let slower = |point: &Sharing| point.ratio() > 1.0 && point.shared.is_apart(&point.alone);
        let size = |point: &Sharing| kib_in_words(point.kib as f64);
        let last = points.iter().rposition(slower);
        let ends = match last.map(|last| (&points[last], points.get(last + 1))) {
            None => "sharing is not slower at any size".to_owned(),
            Some((last, Some(next))) => {
                format!("sharing is slower up to {}, but not at {}", size(last), size(next))
            }
            Some((last, None)) => format!("sharing is slower up to {}, the largest", size(last)),
        };
        SharingCurves {
            name: format!("{pair} pair, {order} order, {page} pages"),
            points: points.iter().map(|point| (point.kib, point.cases())).collect(),
            ends,
        }
    };
    several.map(curve).collect()
}

/// Pair, order and page.
type Series = [String; 3];

fn series<'a>(summary: &'a Summary) -> Vec<(Series, Vec<Sharing<'a>>)> {
    let with = |case: &Case, shared: bool| {
        let mut case = case.clone();
        case.params.insert("shared".to_owned(), ParamValue::Flag(shared));
        known(summary, &case.to_string())
    };
    let point = |case: &Case| {
        let (alone, shared) = (with(case, false)?, with(case, true)?);
        let key = ["pair", "order", "page"].map(|name| case.word(name).unwrap_or_default().to_owned());
        Some((key, Sharing { kib: case.number("kib")?, shared, alone }))
    };
    let cases = summary.measured().map(|(case, _)| case).filter(|case| {
        case.benchmark == THRASH && case.params.get("shared") == Some(&ParamValue::Flag(true))
    });
    together(cases.filter_map(point))
}

struct Sharing<'a> {
    kib: u64,
    shared: Known<'a>,
    alone: Known<'a>,
}

impl Sharing<'_> {
    fn ratio(&self) -> f64 {
        self.shared.median() / self.alone.median()
    }

    /// `20.0 × slower`.
    fn words(&self) -> String {
        let is_apart = self.shared.is_apart(&self.alone);
        let doubt = if is_apart { "" } else { " (no significant difference)" };
        format!("{}{doubt}", figures::compared(self.ratio(), ["slower", "faster"]))
    }

    fn cases(&self) -> [Case; 2] {
        [self.alone, self.shared].map(|known| known.row.case.clone())
    }
}
