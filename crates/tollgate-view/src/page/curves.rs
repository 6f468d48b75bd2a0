//! Curves: a latency by a parameter, such as the working-set size.

use super::axis::{Axis, Tick};
use super::svg::{Anchor, COLOURS, Svg, WIDE, short};
use tollgate_output::markup::Text;

#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    pub across: Axis,
    pub up: Axis,
    pub curves: Vec<Curve>,
    /// Positions across that are marked from bottom to top, such as the sizes of the caches.
    pub marked: Vec<Tick>,
    /// Stretches of one height, such as the latency of a cache.
    pub plateaus: Vec<Plateau>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plateau {
    pub ends: (f64, f64),
    pub at: f64,
    pub name: Text,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// By colour, line and sign.
    pub look: usize,
    pub points: Vec<Point>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub title: Text,
}

const HEIGHT: f64 = 220.0;
const TOP: f64 = 16.0;

impl Curves {
    pub(crate) fn new(across: &Axis, up: &Axis, curves: Vec<Curve>) -> Self {
        let (across, up) = (across.clone(), up.clone());
        Self { across, up, curves, marked: Vec::new(), plateaus: Vec::new() }
    }

    /// The names of marks take a line each, so that they do not overlap.
    fn top(&self) -> f64 {
        TOP + 13.0 * self.marked.len().saturating_sub(1) as f64
    }

    pub(super) fn height(&self) -> f64 {
        self.top() + HEIGHT + 20.0
    }

    pub(super) fn draw(&self, id: &str, title: &Text) -> String {
        let top = self.top();
        let bottom = top + HEIGHT;
        let down = |share: f64| bottom - share * HEIGHT;
        let mut svg = Svg::image("plot", self.height(), id, title);
        for tick in &self.up.ticks {
            let Some(share) = self.up.share(tick.at) else { continue };
            svg.line("g", [0.0, 100.0], [down(share); 2]);
            svg.text("a", 0.0, down(share) + 4.0, Anchor::End, -8.0, tick.name.as_str());
        }
        for tick in &self.across.ticks {
            let Some(x) = self.across.percent(tick.at) else { continue };
            svg.line("g m", [x, x], [bottom, bottom + 4.0]);
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
        for plateau in &self.plateaus {
            let Some(share) = self.up.share(plateau.at) else { continue };
            let [from, to] = [plateau.ends.0, plateau.ends.1].map(|end| self.across.clamped(end));
            svg.line("l", [from, to], [down(share) + 10.0; 2]);
            svg.text("b", (from + to) / 2.0, down(share) + 24.0, Anchor::Middle, 0.0, plateau.name.as_str());
        }
        svg.stretched(top, HEIGHT, [WIDE, HEIGHT]);
        for curve in &self.curves {
            if let Some(path) = self.path(curve) {
                svg.path(format_args!("c{} d{}", curve.look % COLOURS, curve.look % 4), &path);
            }
        }
        svg.end_stretched();
        for curve in &self.curves {
            svg.group(format_args!("c{}", curve.look % COLOURS));
            for point in &curve.points {
                let at = self.across.percent(point.x).zip(self.up.share(point.y));
                let Some((x, y)) = at else { continue };
                svg.sign(curve.look, [x, down(y)], &point.title);
            }
            svg.end_group();
        }
        svg.finish()
    }

    fn path(&self, curve: &Curve) -> Option<String> {
        let points = curve.points.iter().filter_map(|point| {
            let (x, y) = self.across.share(point.x).zip(self.up.share(point.y))?;
            Some(format!("{} {}", short(x * WIDE, 0), short((1.0 - y) * HEIGHT, 0)))
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
        let up = Axis::of_times([1.0, 90.0].into_iter()).expect("an axis");
        let point = |x: f64, y: f64| Point { x, y, title: "p".into() };
        let curve = Curve { look: 1, points: vec![point(4.0, 1.0), point(4096.0, 10.0)] };
        let marked = vec![Tick { at: 64.0, name: "L1d 64K".into(), is_main: true }];
        let plateaus = vec![Plateau { ends: (4.0, 64.0), at: 1.0, name: "L1d 1.00 ns".into() }];
        let curves = Curves { marked, plateaus, ..Curves::new(&across, &up, vec![curve]) };
        let drawn = curves.draw("f-0", &"t".into());
        assert!(drawn.contains("d=\"M0 220L2000 110\""), "{drawn}");
        assert_eq!(drawn.matches("<use href=\"#m1\"").count(), 2, "{drawn}");
        assert!(drawn.contains("<line class=\"k\" x1=\"40%\""), "{drawn}");
        assert!(drawn.contains(">L1d 64K</text>"), "{drawn}");
        assert!(drawn.contains("<line class=\"l\" x1=\"0%\" x2=\"40%\""), "{drawn}");
        assert!(drawn.contains("x=\"20%\"") && drawn.contains(">L1d 1.00 ns</text>"), "{drawn}");
    }
}
