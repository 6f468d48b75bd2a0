//! The processor matrix: the latency of a cache-line transfer between each pair, as a heat map.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_output::figures;
use tollgate_output::table::{heading, paragraph};

use crate::summary::Summary;

pub const BENCHMARK: &str = "memory/pingpong";

const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// ns by processors, the smaller number first.
pub type Matrix = BTreeMap<(u64, u64), f64>;

pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let by_protocol = by_protocol(summary);
    let pictures: Vec<String> = by_protocol
        .iter()
        .filter_map(|(protocol, matrix)| {
            let title =
                format!("memory/pingpong: ns per cache-line transfer between processors, by {protocol}");
            Some(format!("{}{}", heading(&title, width), draw(matrix, width)?))
        })
        .collect();
    (!pictures.is_empty()).then(|| pictures.join("\n"))
}

pub fn by_protocol<'a>(summary: &Summary<'a>) -> BTreeMap<&'a str, Matrix> {
    let mut by_protocol: BTreeMap<&str, Matrix> = BTreeMap::new();
    for (case, figures) in summary.of_benchmark(BENCHMARK) {
        let (Some(from), Some(to)) = (case.number("from"), case.number("to")) else { continue };
        let matrix = by_protocol.entry(case.word("protocol").unwrap_or("")).or_default();
        matrix.insert((from.min(to), from.max(to)), figures.estimate.median);
    }
    by_protocol
}

fn draw(matrix: &Matrix, width: usize) -> Option<String> {
    let processors: BTreeSet<u64> = matrix.keys().flat_map(|&(a, b)| [a, b]).collect();
    let least = matrix.values().copied().min_by(f64::total_cmp)?;
    let most = matrix.values().copied().max_by(f64::total_cmp)?;
    let shades = Shades { least, most };
    let text = |ns: f64| figures::significant(ns, if ns < 99.95 { 2 } else { 3 });
    let margin = processors.iter().map(|cpu| cpu.to_string().len()).max()?.max(3);
    let cell = matrix.values().map(|&ns| text(ns).chars().count() + 2).max()?.max(margin + 1);
    let fits = |cell: usize| margin + processors.len() * cell <= width;
    let with_figures = fits(cell);
    let cell = if with_figures { cell } else { margin + 1 };
    if !fits(cell) {
        return None;
    }
    let mut picture = format!("{:margin$}", "");
    for to in &processors {
        picture.push_str(&format!("{to:>cell$}"));
    }
    picture.push('\n');
    for from in &processors {
        picture.push_str(&format!("{from:>margin$}"));
        for to in &processors {
            let shown = match matrix.get(&(*from.min(to), *from.max(to))) {
                _ if from == to => "·".to_owned(),
                None => String::new(),
                Some(&ns) if with_figures => format!("{}{}", shades.shade(ns), text(ns)),
                Some(&ns) => shades.shade(ns).to_string().repeat(2),
            };
            picture.push_str(&format!("{shown:>cell$}"));
        }
        picture.push('\n');
    }
    picture.push_str(&paragraph(&shades.legend(), width, ""));
    Some(picture)
}

/// Equal parts, on a logarithmic scale, of the range between the fastest and the slowest pair.
struct Shades {
    least: f64,
    most: f64,
}

impl Shades {
    /// Pairs that differ by less are not shaded differently.
    const ALIKE: f64 = 1.1;

    fn alike(&self) -> bool {
        self.least <= 0.0 || !self.most.is_finite() || self.most / self.least < Self::ALIKE
    }

    fn shade(&self, ns: f64) -> char {
        if self.alike() {
            return SHADES[0];
        }
        let share = (ns / self.least).ln() / (self.most / self.least).ln();
        SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    }

    fn legend(&self) -> String {
        if self.alike() {
            return String::new();
        }
        let bound = |step: usize| {
            let share = step as f64 / SHADES.len() as f64;
            figures::significant(self.least * (self.most / self.least).powf(share), 2)
        };
        let parts =
            SHADES.iter().enumerate().map(|(at, shade)| format!("{shade} {}–{}", bound(at), bound(at + 1)));
        format!("{} ns", parts.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(processors: u64) -> Matrix {
        let pairs = (0..processors).flat_map(|a| (a + 1..processors).map(move |b| (a, b)));
        pairs.map(|(a, b)| ((a, b), if a / 4 == b / 4 { 25.0 } else { 130.0 })).collect()
    }

    #[test]
    fn close_pairs_are_lighter_than_distant_ones_and_the_matrix_is_symmetric() {
        let picture = draw(&matrix(8), 80).expect("a picture");
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines.len(), 10, "{picture}");
        assert!(lines[1].contains("░25") && lines[1].contains("█130"), "{picture}");
        assert!(
            lines[8].contains("░25") && lines[8].contains("█130") && lines[8].ends_with('·'),
            "{picture}"
        );
        assert!(lines[9].contains("░ 25–") && lines[9].contains("█ "), "{picture}");
    }

    #[test]
    fn many_processors_are_shades_and_too_many_are_nothing() {
        let picture = draw(&matrix(18), 80).expect("a picture");
        assert!(picture.contains("░░") && picture.contains("██") && !picture.contains("█130"), "{picture}");
        assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
        assert!(draw(&matrix(64), 80).is_none());
    }

    #[test]
    fn equal_latencies_have_one_shade_and_no_legend() {
        let picture = draw(&Matrix::from([((0, 1), 57.3)]), 80).expect("a picture");
        assert_eq!(picture, "      0   1\n  0   · ░57\n  1 ░57   ·\n");
        assert!(draw(&Matrix::new(), 80).is_none());
    }
}
