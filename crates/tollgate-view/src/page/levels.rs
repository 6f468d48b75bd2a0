//! Distributions of bimodal cases.

use super::axis::Axis;
use super::svg::{Anchor, Svg, WIDE, short, wide};
use tollgate_output::markup::Text;

/// Distributions of one case, of one environment each, over one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    axis: Axis,
    rows: Vec<Row>,
}

/// The samples of one environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen<'a> {
    /// The environment's look.
    pub look: usize,
    pub samples: &'a [f64],
    /// The medians of its processes.
    pub processes: &'a [f64],
    /// The modes, with their text.
    pub levels: Vec<(f64, Text)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    look: usize,
    /// Samples in each bin, as shares of the most in one bin.
    bins: Vec<f64>,
    processes: Vec<f64>,
    levels: Vec<(f64, Text)>,
}

const BINS: usize = 44;
const PITCH: f64 = 86.0;
const HIGH: f64 = 40.0;
/// The share of the samples that is left out on either side, so that outliers do not set the axis.
const TAIL: f64 = 0.01;

impl Levels {
    /// The distributions of these samples; None where they do not vary.
    pub fn of(seen: &[Seen]) -> Option<Self> {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for one in seen {
            let mut sorted: Vec<f64> = one.samples.iter().copied().filter(|sample| *sample > 0.0).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let cut = (sorted.len() as f64 * TAIL) as usize;
            least = least.min(*sorted.get(cut)?);
            most = most.max(*sorted.get(sorted.len() - 1 - cut)?);
            for (level, _) in &one.levels {
                (least, most) = (least.min(*level), most.max(*level));
            }
        }
        // A margin, so that no mark is on the edge.
        let axis = Axis::logarithmic(least / 1.02, most * 1.02, Vec::new())?;
        let rows = seen.iter().map(|one| Row {
            look: one.look,
            bins: binned(one.samples, &axis),
            processes: one.processes.to_vec(),
            levels: one.levels.clone(),
        });
        Some(Self { rows: rows.collect(), axis })
    }

    pub(super) fn draw(&self, id: &str, title: &Text) -> String {
        let height = self.rows.len() as f64 * PITCH + 4.0;
        let mut svg = Svg::image("dots", height, id, title);
        for (at, row) in self.rows.iter().enumerate() {
            let top = at as f64 * PITCH + 28.0;
            let bottom = top + HIGH;
            svg.group(super::svg::look(row.look, true), None);
            for (at, (level, words)) in row.levels.iter().enumerate() {
                let x = self.axis.clamped(*level);
                // The names take a line each: two modes may be close together.
                let y = top - 16.0 + 12.0 * at as f64;
                svg.line("k", [x, x], [y + 2.0, bottom]);
                let (anchor, dx) = if x > 50.0 { (Anchor::End, -3.0) } else { (Anchor::Start, 3.0) };
                svg.text("v", x, y, anchor, dx, words.as_str());
            }
            svg.stretched(top, HIGH, [WIDE, HIGH]);
            svg.path("e", &outline(&row.bins));
            svg.end_stretched();
            svg.line("g m", [0.0, 100.0], [bottom; 2]);
            let strokes: String = row
                .processes
                .iter()
                .map(|process| format!("M{} 0v8", wide(self.axis.clamped(*process))))
                .collect();
            svg.stretched(bottom + 3.0, 8.0, [WIDE, 8.0]);
            svg.path("r", &strokes);
            svg.end_stretched();
            svg.end_group();
        }
        svg.finish()
    }
}

fn binned(samples: &[f64], axis: &Axis) -> Vec<f64> {
    let mut bins = vec![0_u64; BINS];
    for sample in samples {
        if let Some(share) = axis.share(*sample) {
            bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
    }
    let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    bins.into_iter().map(|bin| bin as f64 / most).collect()
}

/// Steps from left to right, closed at the bottom.
fn outline(bins: &[f64]) -> String {
    let width = WIDE / bins.len().max(1) as f64;
    let mut path = format!("M0 {HIGH}");
    let mut before = f64::NAN;
    for (at, bin) in bins.iter().enumerate() {
        if *bin != before {
            path.push_str(&format!("H{}V{}", short(at as f64 * width, 0), short(HIGH * (1.0 - bin), 0)));
            before = *bin;
        }
    }
    path.push_str(&format!("H{WIDE}V{HIGH}z"));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_modes_are_two_hills() {
        let samples: Vec<f64> =
            (0..200).map(|n| if n < 100 { 100.0 } else { 200.0 } + f64::from(n % 3)).collect();
        let levels = vec![(101.0, Text::from("101 ns")), (201.0, Text::from("201 ns"))];
        let seen = Seen { look: 0, samples: &samples, processes: &[101.0, 201.0], levels };
        let levels = Levels::of(&[seen]).expect("levels");
        let bins = &levels.rows[0].bins;
        assert!(
            bins[..BINS / 4].iter().any(|bin| *bin > 0.4)
                && bins[3 * BINS / 4..].iter().any(|bin| *bin > 0.4)
        );
        assert!(bins[BINS / 3..2 * BINS / 3].iter().all(|bin| *bin == 0.0));
        let drawn = levels.draw("f-0", &"t".into());
        assert!(drawn.contains("<path class=\"r\" d=\"M"), "{drawn}");
        assert!(drawn.contains(">101 ns</text>") && drawn.contains(">201 ns</text>"), "{drawn}");
    }

    #[test]
    fn constant_samples_are_not_drawn() {
        let seen = |samples| Seen { look: 0, samples, processes: &[], levels: Vec::new() };
        assert!(Levels::of(&[seen(&[])]).is_none());
        assert!(Levels::of(&[seen(&[-1.0, 0.0])]).is_none());
        assert!(Levels::of(&[seen(&[f64::MAX; 4])]).is_none());
    }
}
