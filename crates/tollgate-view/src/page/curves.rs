//! Curves: a latency by a parameter, such as the working-set size.

use super::axis::{Axis, Tick};
use super::svg::{Anchor, Svg, WIDE, short};
use super::text::Text;

/// Curves over one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    pub across: Axis,
    pub up: Axis,
    /// The curves; those in the background come first.
    pub curves: Vec<Curve>,
    /// Positions across that are marked from bottom to top, such as the sizes of the caches.
    pub marked: Vec<Tick>,
    /// A height that is marked from side to side: the baseline.
    pub level: Option<f64>,
    /// Looks are environments, and not kinds of one environment.
    pub is_by_environment: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// By colour, line and sign; None for one in the background.
    pub look: Option<usize>,
    /// Across and up.
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub title: Text,
}

/// The height of a picture, without the names of the axes.
const HEIGHT: f64 = 220.0;
const SMALL_HEIGHT: f64 = 110.0;
const TOP: f64 = 16.0;

impl Curves {
    /// Curves that show kinds of one environment, without marks.
    pub(crate) fn new(across: &Axis, up: &Axis, curves: Vec<Curve>) -> Self {
        let (across, up) = (across.clone(), up.clone());
        Self { across, up, curves, marked: Vec::new(), level: None, is_by_environment: false }
    }

    /// `is_small` where the figure has many.
    pub(super) fn draw(&self, id: &str, title: &Text, is_small: bool) -> String {
        let height = if is_small { SMALL_HEIGHT } else { HEIGHT };
        // The names of marks take a line each, so that they do not overlap.
        let top = TOP + 13.0 * self.marked.len().saturating_sub(1) as f64;
        let bottom = top + height;
        let down = |share: f64| bottom - share * height;
        let mut svg = Svg::image(if is_small { "plot small" } else { "plot" }, bottom + 20.0, id, title);
        for tick in &self.up.ticks {
            let Some(share) = self.up.share(tick.at) else { continue };
            svg.line("g", [0.0, 100.0], [down(share); 2]);
            svg.text("a", 0.0, down(share) + 4.0, Anchor::End, -8.0, tick.name.as_str());
        }
        if let Some(share) = self.level.and_then(|level| self.up.share(level)) {
            svg.line("l", [0.0, 100.0], [down(share); 2]);
        }
        for tick in &self.across.ticks {
            let Some(x) = self.across.percent(tick.at) else { continue };
            if !is_small {
                svg.line("g m", [x, x], [bottom, bottom + 4.0]);
            }
            let class = if tick.is_main { "a" } else { "a w" };
            // At the right end there is no space beside the picture.
            let anchor = if x > 97.0 { Anchor::End } else { Anchor::Middle };
            svg.text(class, x, bottom + 16.0, anchor, 0.0, tick.name.as_str());
        }
        for (at, tick) in self.marked.iter().enumerate() {
            let Some(x) = self.across.percent(tick.at) else { continue };
            let y = 11.0 + 13.0 * at as f64;
            svg.line("k", [x, x], [y + 3.0, bottom]);
            let anchor = if x > 50.0 { Anchor::End } else { Anchor::Start };
            svg.text("t", x, y, anchor, if x > 50.0 { -3.0 } else { 3.0 }, tick.name.as_str());
        }
        svg.stretched(top, height, [WIDE, height]);
        // Those in the background are one path.
        let behind = self.curves.iter().filter(|curve| curve.look.is_none());
        let behind: String = behind.filter_map(|curve| self.path(curve, height)).collect();
        svg.path("o", &behind);
        let own = || self.curves.iter().filter_map(|curve| Some((curve, curve.look?)));
        for (curve, look) in own() {
            if let Some(path) = self.path(curve, height) {
                svg.path(format_args!("{} d{}", self.class(look), look % 4), &path);
            }
        }
        svg.end_stretched();
        for (curve, look) in own() {
            svg.group(self.class(look), None);
            // In small pictures only the ends have signs; the table has the points.
            let first = if is_small { curve.points.len().saturating_sub(1) } else { 0 };
            for point in curve.points.iter().skip(first) {
                let at = self.across.percent(point.x).zip(self.up.share(point.y));
                let Some((x, y)) = at else { continue };
                svg.sign(look, "", [x, down(y)], Some(&point.title).filter(|_| !is_small));
            }
            svg.end_group();
        }
        svg.finish()
    }

    fn class(&self, look: usize) -> String {
        super::svg::look(look, self.is_by_environment)
    }

    fn path(&self, curve: &Curve, height: f64) -> Option<String> {
        let points = curve.points.iter().filter_map(|point| {
            let (x, y) = self.across.share(point.x).zip(self.up.share(point.y))?;
            Some(format!("{} {}", short(x * WIDE, 0), short((1.0 - y) * height, 0)))
        });
        let points: Vec<String> = points.collect();
        (!points.is_empty()).then(|| format!("M{}", points.join("L")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_path_with_a_sign_at_each_point() {
        let across = Axis::logarithmic(4.0, 4096.0, Vec::new()).expect("an axis");
        let up = Axis::of_times([1.0, 90.0].into_iter(), None).expect("an axis");
        let point = |x: f64, y: f64| Point { x, y, title: "p".into() };
        let curve = Curve { look: Some(1), points: vec![point(4.0, 1.0), point(4096.0, 10.0)] };
        let marked = vec![Tick { at: 64.0, name: "L1d 64K".into(), is_main: true }];
        let curves = Curves { marked, ..Curves::new(&across, &up, vec![curve]) };
        let drawn = curves.draw("f-0", &"t".into(), false);
        assert!(drawn.contains("d=\"M0 220L2000 110\""), "{drawn}");
        assert_eq!(drawn.matches("<use href=\"#m1\"").count(), 2, "{drawn}");
        assert!(drawn.contains("<line class=\"k\" x1=\"40%\""), "{drawn}");
        assert!(drawn.contains(">L1d 64K</text>"), "{drawn}");
    }
}
