//! The slow-down by sharing, and the cache sizes at which the latency rises.

use tollgate_model::text::listed;
use tollgate_model::{Case, ParamValue, Unit};
use tollgate_output::figures;

use super::finding::{Finding, Known, apart, case, find};
use crate::facts;
use crate::pictures::curve::kib_in_words;
use crate::summary::Summary;
use crate::together::together;

pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    sharing(summary).into_iter().chain(false_sharing(summary)).chain(levels(summary)).collect()
}

pub(crate) const THRASH: &str = "memory/thrash";

/// How many times as long a store takes while another core stores to the same lines, as the published experiment asked. One
/// sentence for each pair, order and page.
fn sharing(summary: &Summary) -> Vec<Finding> {
    series(summary).into_iter().map(|(key, points)| sentence(&key, &points)).collect()
}

/// Sharing as rows: pair, order and page, the size in KiB, how much slower, and the times alone and shared.
pub(crate) fn sharing_rows(summary: &Summary) -> Vec<[String; 7]> {
    let ns = |known: &Known| figures::estimate(known.estimate, Unit::Nanoseconds);
    let row = |key: &Series, point: &Sharing| {
        let [pair, order, page] = ["pair", "order", "page"].map(|name| value(key, name).to_owned());
        [pair, order, page, point.kib.to_string(), point.words(), ns(&point.alone), ns(&point.shared)]
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
    let curves = several.map(|(key, mut points)| {
        points.sort_by_key(|point| point.kib);
        let name = ["pair", "order", "page"].map(|name| value(&key, name));
        let slower = |point: &Sharing| {
            point.shared.estimate > point.alone.estimate && apart(point.shared.interval, point.alone.interval)
        };
        let size = |point: &Sharing| kib_in_words(point.kib as f64);
        let ends = match points.iter().rposition(slower) {
            None => "sharing is not slower at any size".to_owned(),
            Some(last) => match points.get(last + 1) {
                Some(next) => {
                    format!("sharing is slower up to {}, but not at {}", size(&points[last]), size(next))
                }
                None => format!("sharing is slower up to {}, the largest", size(&points[last])),
            },
        };
        let name = format!("{} pair, {} order, {} pages", name[0], name[1], name[2]);
        SharingCurves {
            name,
            points: points.into_iter().map(|point| (point.kib, point.cases)).collect(),
            ends,
        }
    });
    curves.collect()
}

fn series(summary: &Summary) -> Vec<(Series, Vec<Sharing>)> {
    let with = |case: &Case, shared: bool| {
        let mut other = case.clone();
        other.params.insert("shared".to_owned(), ParamValue::Flag(shared));
        other
    };
    let shared = summary.measured().map(|(case, _)| case).filter(|case| {
        case.benchmark == THRASH && case.params.get("shared") == Some(&ParamValue::Flag(true))
    });
    // Cases that differ only in size share a sentence.
    let series = shared.filter_map(|case| {
        let alone = with(case, false);
        let known = |case| Known::of(find(summary, case)?);
        let (kib, shared, unshared) = (case.number("kib")?, known(case)?, known(&alone)?);
        let but_size = case.params.iter().filter(|(name, _)| !["kib", "shared"].contains(&name.as_str()));
        let key: Series = but_size.map(|(name, value)| (name.clone(), value.to_string())).collect();
        let sharing = Sharing { kib, shared, alone: unshared, cases: [alone, case.clone()] };
        Some((key, sharing))
    });
    together(series)
}

type Series = Vec<(String, String)>;

struct Sharing {
    kib: u64,
    shared: Known,
    alone: Known,
    cases: [Case; 2],
}

impl Sharing {
    /// `20.0 × slower`.
    fn words(&self) -> String {
        let how = figures::compared(self.shared.estimate / self.alone.estimate, ["slower", "faster"]);
        let doubt = if apart(self.shared.interval, self.alone.interval) {
            ""
        } else {
            " (no significant difference)"
        };
        format!("{how}{doubt}")
    }
}

fn value<'k>(key: &'k [(String, String)], name: &str) -> &'k str {
    key.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value.as_str())
}

fn sentence(key: &[(String, String)], points: &[Sharing]) -> Finding {
    let what = format!(
        "Storing to lines that another core stores to ({} pair, {} order, {} pages)",
        value(key, "pair"),
        value(key, "order"),
        value(key, "page")
    );
    let each: Vec<String> =
        points.iter().map(|point| format!("{} at {} KiB", point.words(), point.kib)).collect();
    let from = points.iter().flat_map(|point| point.cases.iter().cloned()).collect();
    Finding { sentence: format!("{what} is {}.", listed(&each)), from }
}

/// Two words of one line, of two adjacent lines, and of lines that are far apart.
fn false_sharing(summary: &Summary) -> Option<Finding> {
    let at = |distance: u64| case("memory/neighbour", &[("distance", distance.into())]);
    let [same, adjacent, away] = [8, 64, 128].map(at);
    let [same_estimate, adjacent_estimate, away_estimate] =
        [&same, &adjacent, &away].map(|case| Known::of(find(summary, case)?));
    let (same_estimate, away_estimate) = (same_estimate?, away_estimate?);
    if !apart(same_estimate.interval, away_estimate.interval) {
        return None;
    }
    let how = |near: Known| figures::compared(near.estimate / away_estimate.estimate, ["slower", "faster"]);
    let mut sentence = format!(
        "LOCK ADD by two threads to two words of one line is {} than 128 bytes apart (false sharing)",
        how(same_estimate)
    );
    let mut from = vec![same, away];
    if let Some(adjacent_estimate) = adjacent_estimate {
        let words = if apart(adjacent_estimate.interval, away_estimate.interval) {
            format!("; in adjacent lines {}", how(adjacent_estimate))
        } else {
            "; in adjacent lines as fast".to_owned()
        };
        sentence.push_str(&words);
        from.push(adjacent);
    }
    sentence.push('.');
    Some(Finding { sentence, from })
}

fn levels(summary: &Summary) -> Vec<Finding> {
    let curve = Curve::of(summary);
    let caches = [("cache.l1d", "L1d"), ("cache.l2", "L2"), ("cache.l3", "L3")];
    let level = |(fact, name): (&str, &str)| {
        let kib = facts::number(&summary.run.facts, fact)? / 1024.0;
        curve.around(name, kib)
    };
    caches.into_iter().filter_map(level).collect()
}

struct Curve {
    page: &'static str,
    points: Vec<(f64, Known, Case)>,
}

impl Curve {
    /// With huge pages if there are any, since TLB misses on small pages add to the latency.
    fn of(summary: &Summary) -> Self {
        let of = |page: &str| -> Vec<(f64, Known, Case)> {
            let rows = summary.measured().filter(|(case, figures)| {
                let is_page = case.word("page") == Some(page);
                case.benchmark == "memory/latency" && is_page && figures.is_estimate()
            });
            let mut points: Vec<(f64, Known, Case)> = rows
                .filter_map(|(case, figures)| {
                    Some((case.number("kib")? as f64, Known::of(figures)?, case.clone()))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        let huge = of("2m");
        if huge.is_empty() {
            Self { page: "4 KiB", points: of("4k") }
        } else {
            Self { page: "2 MiB", points: huge }
        }
    }

    /// The latencies on both sides of a cache's size, at some distance from it: a buffer that is nearly as large lies partly
    /// beyond. `None` if one side was not measured.
    fn around(&self, name: &str, end: f64) -> Option<Finding> {
        let within = self.points.iter().rfind(|(kib, ..)| *kib <= end * 0.8)?;
        let beyond = self.points.iter().find(|(kib, ..)| *kib >= end * 1.3)?;
        let ns = |known: &Known| figures::estimate(known.estimate, Unit::Nanoseconds);
        let rises = within.1.estimate < beyond.1.estimate && apart(within.1.interval, beyond.1.interval);
        let how = figures::compared(beyond.1.estimate / within.1.estimate, ["slower", "faster"]);
        let what = if rises {
            format!("a load is {how}")
        } else {
            "the latency shows no significant rise".to_owned()
        };
        let sentence = format!(
            "Beyond {name} ({} KiB as the kernel reports it) {what}: from {} at {} KiB to {} at {} KiB ({} pages).",
            figures::significant(end, 3),
            ns(&within.1),
            within.0,
            ns(&beyond.1),
            beyond.0,
            self.page
        );
        Some(Finding { sentence, from: vec![within.2.clone(), beyond.2.clone()] })
    }
}

#[cfg(test)]
mod tests {
    use tollgate_model::stats::Interval;

    use super::*;

    fn known(estimate: f64) -> Known {
        Known { estimate, interval: Interval { low: estimate * 0.98, high: estimate * 1.02 } }
    }

    #[test]
    fn a_level_ends_where_the_latency_rises() {
        let point = |kib: f64, ns: f64| (kib, known(ns), Case::plain("memory/latency"));
        let points = vec![point(16.0, 1.4), point(32.0, 1.4), point(64.0, 4.2), point(128.0, 4.2)];
        let curve = Curve { page: "2 MiB", points };
        let l1 = curve.around("L1d", 48.0).expect("both sides").sentence;
        assert!(
            l1.contains("Beyond L1d (48.0 KiB as the kernel reports it) a load is 3.00 × slower: from 1.40 ns at 32 KiB to 4.20 ns at 64"),
            "{l1}"
        );
        let doubtful = curve.around("L2", 82.0).expect("both sides").sentence;
        assert!(doubtful.contains("no significant rise"), "{doubtful}");
        assert!(curve.around("L3", 4096.0).is_none());
    }

    #[test]
    fn sharing_is_described_by_size() {
        let point = |kib, shared, alone| Sharing {
            kib,
            shared: known(shared),
            alone: known(alone),
            cases: [Case::plain("a"), Case::plain("b")],
        };
        let key = [("order", "random"), ("page", "2m"), ("pair", "llc")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let finding = sentence(&key, &[point(8, 13.2, 0.66), point(16_384, 9.0, 9.1)]);
        assert_eq!(
            finding.sentence,
            "Storing to lines that another core stores to (llc pair, random order, 2m pages) is 20.0 × slower at \
             8 KiB and 1.1 % faster (no significant difference) at 16384 KiB."
        );
    }
}
