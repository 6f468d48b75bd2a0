//! Latencies or ratios as rows over one axis: the name at the left, the value at the right, the marks between them.
//!
//! Names and values are text of the document, not of a picture: they have their own columns, are read aloud, and the page's
//! search finds them.

use std::fmt::Write;

use super::axis::Axis;
use super::svg::{Percent, look};
use super::{Verdict, class_of};
use tollgate_output::markup::{Text, escaped, escaped_between_tags};

#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub axis: Axis,
    pub rows: Vec<PictureRow>,
    /// A value that is marked from top to bottom, such as the ratio 1.
    pub level: Option<f64>,
    /// Looks are environments, not kinds of one environment.
    pub is_by_environment: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PictureRow {
    pub name: Text,
    pub value: Text,
    pub verdict: Option<Verdict>,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mark {
    pub look: usize,
    pub at: f64,
    /// The interval, if its samples support one.
    pub interval: Option<(f64, f64)>,
    pub min: Option<f64>,
    pub is_noisy: bool,
    /// Its tooltip; empty if the text is beside it.
    pub title: Text,
}

/// Ends closer to the mark than this, in percent of the width, are not drawn.
const SEEN: f64 = 0.15;
const HEIGHT: f64 = 16.0;
const STEP: f64 = 6.0;

impl Rows {
    /// Latencies of one or several environments, over decades; `None` if none of them has a mark.
    pub fn of_times(rows: Vec<PictureRow>) -> Option<Self> {
        let axis = Axis::of_times(rows.iter().flat_map(|row| &row.marks).flat_map(Mark::reach))?;
        Some(Self { axis, rows, level: None, is_by_environment: true })
    }

    pub(super) fn draw(&self, title: &Text) -> String {
        let mut html = String::from("<div class=\"rows\">");
        self.draw_axis(&mut html);
        let _ = write!(html, "<ol aria-label=\"{}\">", escaped(title.as_str()));
        let is_of_one = self.is_of_one();
        for row in &self.rows {
            self.draw_row(&mut html, row, is_of_one);
        }
        html.push_str("</ol></div>");
        html
    }

    pub(super) fn is_of_one(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.marks).all(|mark| mark.look == 0)
    }

    fn draw_axis(&self, html: &mut String) {
        html.push_str("<svg class=\"axis\" aria-hidden=\"true\">");
        let few = self.axis.ticks.len() < 6;
        for tick in &self.axis.ticks {
            let Some(x) = self.axis.percent(tick.at).map(Percent) else { continue };
            let class = if self.level == Some(tick.at) { "l" } else { "g" };
            let _ = write!(html, "<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"18\" y2=\"100%\"/>");
            // On narrow screens each third decade is named, or all if there are few.
            let narrow = if tick.is_main || few { "" } else { " w" };
            let anchor = match x.0 {
                left if left < 3.0 => "",
                right if right > 97.0 => " x",
                _ => " y",
            };
            let name = escaped_between_tags(tick.name.as_str());
            let _ = write!(html, "<text class=\"a{narrow}{anchor}\" x=\"{x}\" y=\"12\">{name}</text>");
        }
        html.push_str("</svg>");
    }

    fn draw_row(&self, html: &mut String, row: &PictureRow, is_of_one: bool) {
        let is_noisy = row.marks.iter().any(|mark| mark.is_noisy);
        let classes = [row.verdict.map(class_of), is_noisy.then_some("noisy")];
        let classes: Vec<&str> = classes.into_iter().flatten().collect();
        let class =
            if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
        let step = if self.is_by_environment { STEP } else { 0.0 };
        let height = HEIGHT + step * row.marks.len().saturating_sub(1) as f64;
        let _ = write!(
            html,
            "\n<li{class}><span>{}</span><svg{} aria-hidden=\"true\">",
            escaped_between_tags(row.name.as_str()),
            // The usual one is the style's.
            if height == HEIGHT { String::new() } else { format!(" height=\"{height}\"") }
        );
        for (at, mark) in row.marks.iter().enumerate() {
            self.draw_mark(html, mark, HEIGHT / 2.0 + step * at as f64, is_of_one);
        }
        let _ = write!(html, "</svg><b>{}</b></li>", escaped_between_tags(row.value.as_str()));
    }

    pub(super) fn draw_mark(&self, html: &mut String, mark: &Mark, y: f64, is_of_one: bool) {
        let colour =
            if is_of_one { String::new() } else { format!(" {}", look(mark.look, self.is_by_environment)) };
        let mut put = |text: std::fmt::Arguments<'_>| {
            let _ = html.write_fmt(text);
        };
        if let Some((low, high)) = mark.interval {
            let [from, to] = [low, high].map(|end| self.axis.clamped(end));
            if to - from > SEEN {
                put(format_args!(
                    "<rect class=\"i{colour}\" x=\"{}\" width=\"{}\" y=\"{}\"/>",
                    Percent(from),
                    Percent(to - from),
                    y - 3.5
                ));
            }
            // An end outside every axis of times, such as zero, is an arrow.
            let beyond = [(low, "less", 0.0), (high, "more", 100.0)];
            for (_, sign, x) in beyond.into_iter().filter(|(end, ..)| self.axis.percent(*end).is_none()) {
                put(format_args!(
                    "<use class=\"o{colour}\" href=\"#{sign}\" x=\"{}\" y=\"{y}\"/>",
                    Percent(x)
                ));
            }
        }
        let x = self.axis.clamped(mark.at);
        let min = mark.min.and_then(|min| self.axis.percent(min)).filter(|min| x - min > SEEN);
        if let Some(min) = min {
            put(format_args!("<rect class=\"m{colour}\" x=\"{}\" y=\"{}\"/>", Percent(min), y - 4.0));
        }
        let hollow = if mark.is_noisy { "h" } else { "f" };
        let sign = mark.look % super::svg::SIGNS;
        put(format_args!("<use class=\"{hollow}{colour}\" href=\"#m{sign}\" x=\"{}\" y=\"{y}\"", Percent(x)));
        if mark.title.is_empty() {
            put(format_args!("/>"))
        } else {
            put(format_args!("><title>{}</title></use>", escaped_between_tags(mark.title.as_str())))
        }
    }
}

impl Mark {
    /// The values that its axis must hold: its median and the ends of its interval. A min near zero, from which the empty loop
    /// was subtracted, would add empty decades, so it may leave the picture.
    pub fn reach(&self) -> impl Iterator<Item = f64> {
        let (low, high) = self.interval.unwrap_or((self.at, self.at));
        [self.at, low, high].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mark(at: f64) -> Mark {
        Mark { at, interval: Some((at * 0.9, at * 1.1)), min: Some(at * 0.5), ..Mark::default() }
    }

    fn rows(marks: Vec<Mark>) -> Rows {
        let axis = Axis::of_times(marks.iter().flat_map(Mark::reach)).expect("an axis");
        let row = PictureRow { name: "a < b".into(), value: "1.00 µs".into(), verdict: None, marks };
        Rows { axis, rows: vec![row], level: None, is_by_environment: true }
    }

    #[test]
    fn a_row_has_its_name_value_mark_interval_and_min() {
        let drawn = rows(vec![mark(1000.0)]).draw(&"t".into());
        for part in [
            "<li><span>a &lt; b</span>",
            "<b>1.00 µs</b>",
            "<rect class=\"i\" x=\"47.71%\" width=\"4.36%\" y=\"4.5\"/>",
            "<rect class=\"m\" x=\"34.95%\" y=\"4\"/>",
            "<use class=\"f\" href=\"#m0\" x=\"50%\" y=\"8\"/>",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
    }

    #[test]
    fn a_noisy_mark_is_hollow_and_without_an_interval_there_is_no_band() {
        let noisy = Mark { is_noisy: true, interval: None, ..mark(1000.0) };
        let drawn = rows(vec![noisy]).draw(&"t".into());
        assert!(drawn.contains("<li class=\"noisy\">") && drawn.contains("<use class=\"h\""), "{drawn}");
        assert!(!drawn.contains("<rect class=\"i"), "{drawn}");
        assert!(!rows(vec![mark(10.0)]).draw(&"t".into()).contains("noisy"));
    }

    #[test]
    fn several_looks_have_colours_and_heights_of_their_own() {
        let drawn = rows(vec![mark(10.0), Mark { look: 1, ..mark(10.0) }]).draw(&"t".into());
        assert!(drawn.contains("<use class=\"f c0 p0\" href=\"#m0\" x=\"50%\" y=\"8\"/>"), "{drawn}");
        assert!(drawn.contains("<use class=\"f c1 p1\" href=\"#m1\" x=\"50%\" y=\"14\"/>"), "{drawn}");
    }

    #[test]
    fn an_interval_that_reaches_zero_ends_in_an_arrow() {
        let open = Mark { interval: Some((-1.0, 1100.0)), ..mark(1000.0) };
        assert!(rows(vec![open]).draw(&"t".into()).contains("href=\"#less\" x=\"0%\""));
        assert!(!rows(vec![mark(1000.0)]).draw(&"t".into()).contains("#less"));
    }

    proptest! {
        /// The band of every interval on the page is as long as the interval.
        #[test]
        fn no_axis_clips_an_interval(
            medians in prop::collection::vec((1e-3_f64..1e10, 1.0_f64..1e3, 1.0_f64..1e3), 1..20),
        ) {
            let marks: Vec<Mark> = medians
                .iter()
                .map(|&(at, below, above)| {
                    let interval = (at / below, at * above);
                    Mark { at, interval: Some(interval), min: Some(at / below / 1e3), ..Mark::default() }
                })
                .collect();
            let axis = Axis::of_times(marks.iter().flat_map(Mark::reach)).expect("an axis");
            for mark in &marks {
                let (low, high) = mark.interval.expect("one");
                for end in [low, high, mark.at] {
                    prop_assert!(axis.percent(end).is_some(), "{end} of {mark:?}");
                }
            }
            let drawn = rows(marks).draw(&"t".into());
            prop_assert!(!drawn.contains("#less") && !drawn.contains("#more"));
        }
    }
}
