//! Lines: how a value goes from one environment to the next, a small one a row.
//!
//! Each has a height of its own from its least to its largest value: what changes is where, and the figures stand beside it.

use std::fmt::Write;

use super::class_of;
use super::svg::{WIDE, short};
use super::{Text, Verdict};
use tollgate_output::markup::{escaped, escaped_between_tags};

/// Small lines, one a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    pub rows: Vec<Line>,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub name: Text,
    /// Its first and last value.
    pub value: Text,
    /// What the last is against the first.
    pub verdict: Verdict,
    /// A value for each environment that has one, at equal distances.
    pub points: Vec<Option<f64>>,
}

const HEIGHT: f64 = 18.0;
/// What is free above and below.
const MARGIN: f64 = 2.0;

impl Lines {
    pub(super) fn draw(&self, title: &Text) -> String {
        let mut html = format!("<div class=\"rows\"><ol aria-label=\"{}\">", escaped(title.as_str()));
        for row in &self.rows {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "\n<li class=\"{}\"><span>{}</span><svg height=\"{HEIGHT}\" aria-hidden=\"true\"><svg width=\"100%\" height=\"{HEIGHT}\" \
                 viewBox=\"0 0 {WIDE} {HEIGHT}\" preserveAspectRatio=\"none\"><path d=\"{}\"/></svg></svg><b>{}</b></li>",
                class_of(row.verdict),
                escaped_between_tags(row.name.as_str()),
                path(&row.points),
                escaped_between_tags(row.value.as_str())
            );
        }
        html.push_str("</ol></div>");
        html
    }
}

/// Steps: a value holds from one environment to the next. Where there is none the line is broken.
fn path(points: &[Option<f64>]) -> String {
    let known = || points.iter().flatten().copied().filter(|point| point.is_finite());
    let (least, most) = known()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), point| (least.min(point), most.max(point)));
    let down = |point: f64| match most > least {
        true => HEIGHT - MARGIN - (point - least) / (most - least) * (HEIGHT - 2.0 * MARGIN),
        false => HEIGHT / 2.0,
    };
    let width = WIDE / points.len().max(1) as f64;
    let mut path = String::new();
    let mut before = false;
    for (at, point) in points.iter().enumerate() {
        let Some(point) = point.filter(|point| point.is_finite()) else {
            before = false;
            continue;
        };
        let (x, y) = (short(at as f64 * width, 0), short(down(point), 1));
        let begin = if before { format!("V{y}") } else { format!("M{x} {y}") };
        path.push_str(&begin);
        path.push_str(&format!("H{}", short((at + 1) as f64 * width, 0)));
        before = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_step_for_each_environment_and_a_gap_where_there_is_no_value() {
        assert_eq!(path(&[Some(10.0), Some(20.0), None, Some(10.0)]), "M0 16H500V2H1000M1500 16H2000");
        assert_eq!(path(&[Some(3.0), Some(3.0)]), "M0 9H1000V9H2000");
        assert_eq!(path(&[]), "");
        assert_eq!(path(&[Some(f64::NAN), Some(1.0)]), "M1000 9H2000");
    }

    #[test]
    fn a_row_has_its_name_its_line_and_its_values() {
        let points = vec![Some(266.0), Some(281.0)];
        let line =
            Line { name: "a < b".into(), value: "266 → 281".into(), verdict: Verdict::Slower, points };
        let drawn = Lines { rows: vec![line] }.draw(&"t".into());
        assert!(drawn.contains("<li class=\"vs\"><span>a &lt; b</span>"), "{drawn}");
        assert!(
            drawn.contains("<path d=\"M0 16H1000V2H2000\"/>") && drawn.contains("<b>266 → 281</b>"),
            "{drawn}"
        );
    }
}
