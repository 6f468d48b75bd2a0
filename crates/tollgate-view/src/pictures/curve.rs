//! The latency curve: a load's latency by the size of its buffer, both on logarithmic scales, with the sizes of the caches.

use tollgate_model::Facts;
use tollgate_output::figures;
use tollgate_output::table::heading;

use crate::facts;
use crate::summary::Summary;

pub const BENCHMARK: &str = "memory/latency";
const HEIGHT: usize = 14;
/// Columns before the axis: figures such as `1.41`.
const MARGIN: usize = 7;
/// A wider picture shows no more.
pub(super) const WIDEST: usize = 100;

pub struct Point {
    pub kib: f64,
    pub ns: f64,
    /// Belongs to the second curve: in pages of 2 MiB, or shared.
    pub is_second: bool,
}

pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let points = points(summary);
    let picture = draw(&points, &caches(&summary.run.facts), width.min(WIDEST))?;
    let title = "memory/latency: ns per dependent load, by memory size";
    let legend = "● pages of 4 KiB   ○ pages of 2 MiB   ◉ both   ┊ the size of a cache, as the kernel says\n";
    let legend =
        if width >= legend.chars().count() { legend } else { "● 4 KiB pages  ○ 2 MiB pages  ◉ both\n" };
    Some(format!("{}{legend}{picture}", heading(title, width)))
}

pub fn points(summary: &Summary) -> Vec<Point> {
    summary
        .of_benchmark(BENCHMARK)
        .filter_map(|(case, figures)| {
            let kib = case.number("kib").filter(|&kib| kib > 0)? as f64;
            let ns = Some(figures.estimate.median).filter(|&ns| ns > 0.0)?;
            Some(Point { kib, ns, is_second: case.word("page") == Some("2m") })
        })
        .collect()
}

pub fn caches(facts: &Facts) -> Vec<(String, f64)> {
    let named = |(fact, name): (&str, &str)| {
        let bytes = facts::number(facts, fact)?;
        Some((format!("{name} {}", kib_in_words(bytes / 1024.0)), bytes / 1024.0))
    };
    [("cache.l1d", "L1d"), ("cache.l2", "L2"), ("cache.l3", "L3"), ("cache.l4", "L4")]
        .into_iter()
        .filter_map(named)
        .collect()
}

/// `48K`, `1.25M`.
pub fn kib_in_words(kib: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match kib {
        kib if kib >= 1024.0 * 1024.0 => format!("{}G", short(kib / 1024.0 / 1024.0)),
        kib if kib >= 1024.0 => format!("{}M", short(kib / 1024.0)),
        kib => format!("{}K", short(kib)),
    }
}

pub(super) fn draw(points: &[Point], caches: &[(String, f64)], width: usize) -> Option<String> {
    let across = Scale::new(points.iter().map(|point| point.kib), width.checked_sub(MARGIN + 3)?)?;
    let up = Scale::new(points.iter().map(|point| point.ns), HEIGHT)?;
    let mut canvas = vec![vec![' '; across.steps]; HEIGHT];
    for (_, kib) in caches {
        if let Some(column) = across.position(*kib) {
            canvas.iter_mut().for_each(|line| line[column] = '┊');
        }
    }
    for point in points {
        if let (Some(column), Some(row)) = (across.position(point.kib), up.position(point.ns)) {
            let cell = &mut canvas[row][column];
            *cell = match (*cell, point.is_second) {
                ('○' | '◉', false) | ('●' | '◉', true) => '◉',
                (_, false) => '●',
                (_, true) => '○',
            };
        }
    }
    let mut picture = String::new();
    for (row, line) in canvas.iter().enumerate().rev() {
        let label = up.label(row).map(|ns| figures::significant(ns, 3)).unwrap_or_default();
        let tick = if label.is_empty() { '│' } else { '┤' };
        let line: String = line.iter().collect();
        picture.push_str(&format!("{label:>MARGIN$} {tick}{}\n", line.trim_end()));
    }
    picture.push_str(&format!("{:MARGIN$} └{}\n", "", "─".repeat(across.steps)));
    let ends = [across.least, across.most].map(|kib| (kib_in_words(kib), kib));
    picture.push_str(&labels(&ends, &across));
    picture.push_str(&labels(caches, &across));
    Some(picture)
}

/// Texts below the axis, each as close to its position as the ones before it permit; none if all are outside.
fn labels(texts: &[(String, f64)], across: &Scale) -> String {
    let mut line = String::new();
    for (text, kib) in texts {
        let Some(column) = across.position(*kib) else { continue };
        let length = text.chars().count();
        let wanted = (MARGIN + 2 + column).saturating_sub(length / 2);
        let begin = wanted.min((MARGIN + 2 + across.steps).saturating_sub(length));
        let taken = line.chars().count();
        let begin = if taken == 0 { begin } else { begin.max(taken + 2) };
        if begin + length <= MARGIN + 2 + across.steps {
            line.push_str(&" ".repeat(begin - taken));
            line.push_str(text);
        }
    }
    if line.is_empty() { line } else { format!("{line}\n") }
}

struct Scale {
    least: f64,
    most: f64,
    steps: usize,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64> + Clone, steps: usize) -> Option<Self> {
        let least = values.clone().min_by(f64::total_cmp)?;
        let most = values.max_by(f64::total_cmp)?;
        (least > 0.0 && most > least && most.is_finite() && steps > 1).then_some(Self { least, most, steps })
    }

    fn position(&self, value: f64) -> Option<usize> {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        (0.0..=1.0).contains(&share).then(|| (share * (self.steps - 1) as f64).round() as usize)
    }

    /// The value that a step is labelled with: the ends, and 1, 2 or 5 times a power of ten if one falls on it.
    fn label(&self, step: usize) -> Option<f64> {
        if step == 0 {
            return Some(self.least);
        }
        if step + 1 == self.steps {
            return Some(self.most);
        }
        let decades = self.least.log10().floor() as i32..=self.most.log10().ceil() as i32;
        let round = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(decade)));
        round.into_iter().find(|&value| self.position(value) == Some(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(kib: f64, ns: f64, is_second: bool) -> Point {
        Point { kib, ns, is_second }
    }

    #[test]
    fn points_rise_and_caches_are_where_they_belong() {
        let points = [
            point(4.0, 1.4, false),
            point(4.0, 1.4, true),
            point(64.0, 4.0, true),
            point(1024.0, 16.0, false),
            point(65_536.0, 100.0, false),
            point(65_536.0, 80.0, true),
        ];
        let caches = [("L1d 48K".to_owned(), 48.0), ("L3 1G".to_owned(), 1024.0 * 1024.0)];
        let picture = draw(&points, &caches, 72).expect("a picture");
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 3, "{picture}");
        assert!(lines[0].starts_with("    100 ┤") && lines[0].ends_with('●'), "{picture}");
        assert!(lines[HEIGHT - 1].starts_with("   1.40 ┤◉"), "{picture}");
        let column = |line: &str, sign: char| line.chars().position(|c| c == sign);
        let cache = column(lines[2], '┊').expect("a cache");
        let beyond = lines.iter().find_map(|line| line.contains('○').then(|| column(line, '○'))).flatten();
        assert!(beyond > Some(cache), "{picture}");
        assert!(
            lines[HEIGHT + 1].trim().starts_with("4K") && lines[HEIGHT + 1].ends_with("64M"),
            "{picture}"
        );
        assert_eq!(lines[HEIGHT + 2].trim(), "L1d 48K", "the other one is outside: {picture}");
        assert!(lines.iter().all(|line| line.chars().count() <= 72), "{picture}");
    }

    #[test]
    fn what_is_no_curve_is_not_drawn() {
        assert!(draw(&[], &[], 80).is_none());
        assert!(draw(&[point(4.0, 1.0, false)], &[], 80).is_none());
        assert!(draw(&[point(4.0, 1.0, false), point(8.0, 1.0, false)], &[], 80).is_none());
        assert!(draw(&[point(4.0, 1.0, false), point(8.0, f64::INFINITY, false)], &[], 80).is_none());
        assert!(draw(&[point(4.0, 1.0, false), point(8.0, 2.0, false)], &[], 5).is_none());
    }

    #[test]
    fn labels_never_lie_on_each_other() {
        let points: Vec<Point> = (2..28).map(|n| point(f64::from(1 << n), f64::from(n), false)).collect();
        let caches: Vec<(String, f64)> = ["L1d 32K", "L2 64K", "L3 96K"]
            .iter()
            .zip([32.0, 64.0, 96.0])
            .map(|(t, k)| ((*t).into(), k))
            .collect();
        for width in 40..120 {
            let picture = draw(&points, &caches, width).expect("a picture");
            let last = picture.lines().last().unwrap_or_default();
            assert!(
                last.contains("L1d 32K  L2 64K  L3 96K") || last.contains("L1d 32K"),
                "{width}: {picture}"
            );
            assert!(picture.lines().all(|line| line.chars().count() <= width), "{width}: {picture}");
        }
    }
}
