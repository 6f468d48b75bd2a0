//! Latencies as marks on one axis: the ruler, and the pictures of suites.

use std::collections::BTreeMap;

use super::axis::Axis;
use super::svg::{Anchor, Svg, WIDE, look, short, wide};
use super::text::Text;

/// Marks on one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Dots {
    /// Of times.
    pub axis: Axis,
    /// Named rows, one below the other.
    pub rows: Vec<Row>,
    /// Below them, many marks in one line each.
    pub strips: Vec<Strip>,
    /// Looks are environments, and not kinds of one environment.
    pub is_by_environment: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub name: Text,
    /// The latency as text, where there is only one.
    pub value: Text,
    /// One for each environment or kind.
    pub marks: Vec<Mark>,
}

/// Many marks in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// Its name.
    pub name: Text,
    /// The section, from 1, whose table has them.
    pub section: usize,
    /// The look of their environment.
    pub look: usize,
    pub marks: Vec<Mark>,
}

/// A latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// By colour and sign: the environment, or the kind.
    pub look: usize,
    pub at: f64,
    /// Where its samples support one.
    pub interval: Option<(f64, f64)>,
    /// The smallest sample, where it is above zero.
    pub min: Option<f64>,
    /// Its tooltip; empty where the text is beside it.
    pub title: Text,
}

/// Ends nearer to the mark than this, in percent of the width, are not drawn.
const SEEN: f64 = 0.15;
/// Between two rows.
const PITCH: f64 = 30.0;
/// Between two strips.
const STRIP_PITCH: f64 = 36.0;
/// The height of a mark in a strip.
const STRIP: f64 = 16.0;
/// The first line, above which the axis is named.
const TOP: f64 = 20.0;

impl Dots {
    pub(super) fn draw(&self, id: &str, title: &Text) -> String {
        let rows_end = TOP + 10.0 + self.rows.len() as f64 * PITCH;
        let bottom = rows_end + self.strips.len() as f64 * STRIP_PITCH;
        let mut svg = Svg::image("dots", bottom + 20.0, id, title);
        self.draw_axis(&mut svg, bottom);
        if !self.rows.is_empty() {
            self.draw_ranges(&mut svg, bottom);
        }
        for (row, middle) in self.rows.iter().zip(middles()) {
            self.draw_row(&mut svg, row, middle);
        }
        for (at, strip) in self.strips.iter().enumerate() {
            self.draw_strip(&mut svg, strip, rows_end + at as f64 * STRIP_PITCH);
        }
        svg.finish()
    }

    fn draw_axis(&self, svg: &mut Svg, bottom: f64) {
        let last = self.axis.ticks.len().saturating_sub(1);
        for (at, tick) in self.axis.ticks.iter().enumerate() {
            let Some(x) = self.axis.percent(tick.at) else { continue };
            svg.line(if tick.is_main { "g m" } else { "g" }, [x, x], [TOP - 4.0, bottom]);
            let anchor = match at {
                0 => Anchor::Start,
                at if at == last => Anchor::End,
                _ => Anchor::Middle,
            };
            // On narrow screens each third decade is named, or all of a few.
            let class = if tick.is_main || last < 5 { "a" } else { "a w" };
            svg.text(class, x, TOP - 8.0, anchor, 0.0, tick.name.as_str());
            svg.text(class, x, bottom + 14.0, anchor, 0.0, tick.name.as_str());
        }
    }

    /// Whether all marks have one look, as those of one environment; then they are plain dots without tooltips.
    fn is_of_one(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.marks).all(|mark| mark.look == 0 && mark.title.is_empty())
    }

    /// The heights of the marks of a row, so that none hides another of the same latency.
    fn heights(row: &Row, y: f64) -> impl Iterator<Item = (&Mark, f64)> {
        let number = row.marks.len();
        let step = if number > 1 { (14.0 / (number - 1) as f64).min(5.0) } else { 0.0 };
        let first = y - step * number.saturating_sub(1) as f64 / 2.0;
        row.marks.iter().enumerate().map(move |(at, mark)| (mark, first + at as f64 * step))
    }

    /// The intervals and minima of all rows, and the signs where they are plain dots: a path each for a look.
    fn draw_ranges(&self, svg: &mut Svg, height: f64) {
        let mut by_look: BTreeMap<usize, [String; 3]> = BTreeMap::new();
        let has_dots = self.is_of_one();
        for (row, middle) in self.rows.iter().zip(middles()) {
            for (mark, y) in Self::heights(row, middle) {
                let [bands, minima, dots] = by_look.entry(mark.look).or_default();
                let y = short(y, 1);
                let at = wide(self.axis.clamped(mark.at));
                if let Some((low, high)) = self.band(mark) {
                    bands.push_str(&format!("M{low} {y}H{high}"));
                }
                if let Some(min) = self.min(mark) {
                    // It ends with a stroke, or leaves the picture.
                    let end =
                        if self.axis.share(mark.min.unwrap_or(mark.at)).is_some() { "m0-5v10" } else { "" };
                    minima.push_str(&format!("M{at} {y}H{min}{end}"));
                }
                if has_dots {
                    dots.push_str(&format!("M{at} {y}h0"));
                }
            }
        }
        svg.stretched(0.0, height, [WIDE, height]);
        for (mark, [bands, minima, dots]) in by_look {
            let look = look(mark, self.is_by_environment);
            svg.path(format_args!("i {look}"), &bands);
            svg.path(&look, &minima);
            svg.path(format_args!("j {look}"), &dots);
        }
        svg.end_stretched();
    }

    /// The ends of a mark's interval, where it is wide enough to be drawn.
    fn band(&self, mark: &Mark) -> Option<(String, String)> {
        let (low, high) = mark.interval?;
        let [low, high] = [low, high].map(|end| self.axis.clamped(end));
        (high - low > SEEN).then(|| (wide(low), wide(high)))
    }

    /// The position of a mark's minimum, where it is far enough from the mark to be drawn.
    fn min(&self, mark: &Mark) -> Option<String> {
        let min = self.axis.clamped(mark.min?);
        ((min - self.axis.clamped(mark.at)).abs() > SEEN).then(|| wide(min))
    }

    fn draw_row(&self, svg: &mut Svg, row: &Row, y: f64) {
        let mut ends = (100.0_f64, 0.0_f64);
        let mut signs = (100.0_f64, 0.0_f64);
        for mark in &row.marks {
            let x = self.axis.clamped(mark.at);
            let (low, high) = mark.interval.unwrap_or((mark.at, mark.at));
            let low = low.min(mark.min.unwrap_or(mark.at));
            ends = (ends.0.min(self.axis.clamped(low)), ends.1.max(self.axis.clamped(high)));
            signs = (signs.0.min(x), signs.1.max(x));
        }
        if row.marks.len() > 1 {
            svg.line("s", [signs.0, signs.1], [y, y]);
        }
        for (mark, y) in Self::heights(row, y) {
            if self.is_of_one() {
                break;
            }
            let title = Some(&mark.title).filter(|title| !title.is_empty());
            let class = look(mark.look, self.is_by_environment);
            svg.sign(mark.look, &class, [self.axis.clamped(mark.at), y], title);
        }
        // Beside the marks, on the side that has more room; on narrow screens above them.
        let text = match row.value.is_empty() {
            true => row.name.as_str().to_owned(),
            false => format!("{}  {}", row.name, row.value),
        };
        let (x, anchor, dx) = match ends.0 > 100.0 - ends.1 {
            true => (ends.0, Anchor::End, -10.0),
            false => (ends.1, Anchor::Start, 10.0),
        };
        svg.text("w", x, y + 4.0, anchor, dx, &text);
        svg.text("n", 0.0, y - 7.0, Anchor::Start, 0.0, &text);
    }

    fn draw_strip(&self, svg: &mut Svg, strip: &Strip, y: f64) {
        svg.text("t", 0.0, y + 11.0, Anchor::Start, 0.0, strip.name.as_str());
        let mut path = String::new();
        for mark in &strip.marks {
            let Some(at) = self.axis.percent(mark.at) else { continue };
            // The median from top to bottom, its interval through the middle, and a short stroke at the minimum.
            path.push_str(&format!("M{} 0V16", wide(at)));
            if let Some((low, high)) = self.band(mark) {
                path.push_str(&format!("M{low} 8H{high}"));
            }
            if let Some(min) = self.min(mark) {
                path.push_str(&format!("M{min} 5v6"));
            }
        }
        svg.strip(y + 15.0, STRIP, strip.section, strip.look, self.axis.ends());
        svg.path(look(strip.look, true), &path);
        svg.end_stretched();
    }
}

/// The middles of the rows.
fn middles() -> impl Iterator<Item = f64> {
    (0_u32..).map(|at| TOP + 14.0 + (f64::from(at) + 0.5) * PITCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(at: f64) -> Mark {
        Mark { look: 0, at, interval: Some((at * 0.9, at * 1.1)), min: Some(at * 0.5), title: "a < b".into() }
    }

    fn dots(rows: Vec<Row>, strips: Vec<Strip>) -> Dots {
        let axis = Axis::of_times([1.0, 1e9].into_iter(), None).expect("an axis");
        Dots { axis, rows, strips, is_by_environment: true }
    }

    #[test]
    fn a_row_has_its_mark_interval_minimum_and_name() {
        let row = |title: &str| Row {
            name: "system call".into(),
            value: "1.00 µs".into(),
            marks: vec![Mark { title: title.into(), ..mark(1000.0) }],
        };
        let drawn = dots(vec![row("a < b")], Vec::new()).draw("f-0", &"t".into());
        assert!(
            drawn.contains("<use class=\"c0 p0\" href=\"#m0\" x=\"33.33%\" y=\"49\"><title>a &lt; b</title>"),
            "{drawn}"
        );
        assert!(drawn.contains("<path class=\"i c0 p0\" d=\"M656 49H676\"/>"), "{drawn}");
        assert!(drawn.contains("<path class=\"c0 p0\" d=\"M667 49H600m0-5v10\"/>"), "{drawn}");
        assert!(drawn.contains(">system call  1.00 µs</text>"), "{drawn}");
        let plain = dots(vec![row("")], Vec::new()).draw("f-0", &"t".into());
        assert!(
            plain.contains("<path class=\"j c0 p0\" d=\"M667 49h0\"/>") && !plain.contains("<use"),
            "{plain}"
        );
    }

    #[test]
    fn a_strip_is_one_path_without_marks_outside_the_axis() {
        let marks = vec![mark(10.0), mark(f64::MAX), mark(1e3)];
        let strip = Strip { name: "entry".into(), section: 1, look: 0, marks };
        let drawn = dots(Vec::new(), vec![strip]).draw("f-0", &"t".into());
        assert!(drawn.contains("d=\"M222 0V16M212 8H231M155 5v6M667 0V16M656 8H676M600 5v6\"/>"), "{drawn}");
    }
}
