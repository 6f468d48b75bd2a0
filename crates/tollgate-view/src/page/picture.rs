//! A figure of rows as a file of its own: SVG with its letters and colors, for a README, a slide or an issue.
//!
//! On the page names and values are text beside the picture, and a picture fills any width. Here all of it is one picture of fixed width,
//! since a viewer scales it: at 600 pixels its letters are as high as those of a terminal.

use std::fmt::{self, Write};

use tollgate_output::markup::{escaped, escaped_between_tags};
use tollgate_output::table::wrap;

use super::policy::COLORS;
use super::svg::{COLOURS, SIGN_PATHS, SIGNS, short};
use super::{Drawing, Figure, Key, Mark, PictureRow, Rows, Sign, Verdict};

const WIDTH: f64 = 640.0;
const MARGIN: f64 = 10.0;
/// The axis, between the names and the values.
const LEFT: f64 = 216.0;
const RIGHT: f64 = 496.0;
/// Characters of a name and of a value that have room; longer ones are cut.
const NAME: usize = 33;
const VALUE: usize = 24;
/// Characters of a line of sentences, and the pixels that one takes in a legend.
const LINE: usize = 104;
const CHARACTER: f64 = 5.9;
/// Between the middles of two names of an axis.
const ROOM: f64 = 42.0;
/// The height of a row with one mark, and what each further one adds.
const ROW: f64 = 18.0;
const STEP: f64 = 7.0;

/// The letters and lines. Colors are those of the page.
const STYLE: &str = "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;fill:var(--ink)}\
.t{font-size:15px;font-weight:600}.d{font-size:11px;fill:var(--dim)}.e{text-anchor:end}.m{text-anchor:middle}\
.g{stroke:var(--rule)}.l{stroke:var(--line)}.i{opacity:.35}.h{fill:var(--bg);stroke:currentColor;stroke-width:1.5}.f,.i,.n{fill:currentColor}";

/// Draws the rows of a figure beneath its title and a line about what was measured; None where the figure has no rows.
pub(crate) fn picture(figure: &Figure, about: &[String]) -> Option<String> {
    let rows = figure.panels.iter().find_map(|panel| match &panel.drawing {
        Drawing::Rows(rows) => Some(rows),
        _ => None,
    })?;
    let mut picture = Picture { body: String::new(), y: MARGIN };
    picture.head(figure, about);
    picture.legend(&figure.keys);
    picture.rows(rows);
    Some(picture.finish(figure))
}

/// What is drawn so far, and down to where.
struct Picture {
    body: String,
    y: f64,
}

impl Picture {
    fn head(&mut self, figure: &Figure, about: &[String]) {
        self.y += 14.0;
        self.text("t", MARGIN, self.y, figure.title.as_str());
        for line in about {
            self.y += 16.0;
            self.text("d", MARGIN, self.y, &cut(line, LINE));
        }
        for line in wrap(figure.description.as_str(), LINE) {
            self.y += 15.0;
            self.text("d", MARGIN, self.y, &line);
        }
        self.y += 8.0;
    }

    /// The signs and their meanings, in lines.
    fn legend(&mut self, keys: &[Key]) {
        let mut x = MARGIN;
        for key in keys {
            let name = cut(key.name.as_str(), LINE / 2);
            let width = 24.0 + CHARACTER * name.chars().count() as f64;
            if x == MARGIN {
                self.y += 16.0;
            } else if x + width > WIDTH - MARGIN {
                x = MARGIN;
                self.y += 16.0;
            }
            let y = self.y - 4.0;
            match key.sign {
                Sign::Look(look) => self.sign(look, "f", &color(look), [x + 6.0, y]),
                Sign::Median => self.sign(0, "f", &color(0), [x + 6.0, y]),
                Sign::Hollow => self.sign(0, "h", &color(0), [x + 6.0, y]),
                Sign::Interval => self.bar("i", &color(0), [x, x + 14.0], y - 3.5, 7.0),
                Sign::Min => self.bar("n", &color(0), [x + 5.0, x + 6.5], y - 4.0, 8.0),
                // No part of a bar is in a picture of rows.
                Sign::Fill(_) => continue,
            }
            self.text("d", x + 18.0, self.y, &name);
            x += width + 10.0;
        }
    }

    fn rows(&mut self, rows: &Rows) {
        self.y += 20.0;
        let top = self.y;
        let height: f64 = rows.rows.iter().map(height).sum();
        for tick in &rows.axis.ticks {
            let Some(x) = rows.axis.share(tick.at).map(across) else { continue };
            let class = if rows.level == Some(tick.at) { "l" } else { "g" };
            self.put(format_args!(
                "<path class=\"{class}\" d=\"M{} {}v{}\"/>",
                short(x, 1),
                short(top + 4.0, 1),
                short(height, 1)
            ));
        }
        self.names(rows, top);
        self.y += 4.0;
        let is_of_one = rows.rows.iter().flat_map(|row| &row.marks).all(|mark| mark.look == 0);
        for row in &rows.rows {
            self.row(rows, row, is_of_one);
        }
    }

    /// The names of main ticks, and of others between them where there is room.
    fn names(&mut self, rows: &Rows, y: f64) {
        let mut named: Vec<f64> = Vec::new();
        for is_main in [true, false] {
            for tick in rows.axis.ticks.iter().filter(|tick| tick.is_main == is_main) {
                let Some(x) = rows.axis.share(tick.at).map(across) else { continue };
                if named.iter().all(|other| (other - x).abs() >= ROOM) {
                    self.text("d m", x, y, tick.name.as_str());
                    named.push(x);
                }
            }
        }
    }

    fn row(&mut self, rows: &Rows, row: &PictureRow, is_of_one: bool) {
        let height = height(row);
        let base = self.y + height / 2.0 + 4.0;
        self.text("", MARGIN, base, &cut(row.name.as_str(), NAME));
        self.text("e", WIDTH - MARGIN, base, &cut(row.value.as_str(), VALUE));
        for (at, mark) in row.marks.iter().enumerate() {
            let color = match (is_of_one, row.verdict) {
                (true, Some(verdict)) => of_verdict(verdict),
                _ => color(mark.look),
            };
            self.mark(rows, mark, &color, self.y + ROW / 2.0 + STEP * at as f64);
        }
        self.y += height;
    }

    fn mark(&mut self, rows: &Rows, mark: &Mark, color: &str, y: f64) {
        let at = |value: f64| across(rows.axis.clamped(value) / 100.0);
        if let Some((low, high)) = mark.interval {
            self.bar("i", color, [at(low), at(high)], y - 3.5, 7.0);
        }
        if let Some(min) = mark.min.filter(|min| rows.axis.share(*min).is_some()) {
            self.bar("n", color, [at(min), at(min) + 1.5], y - 4.0, 8.0);
        }
        self.sign(mark.look, if mark.is_noisy { "h" } else { "f" }, color, [at(mark.at), y]);
    }

    fn finish(self, figure: &Figure) -> String {
        let (width, height) = (short(WIDTH, 0), short(self.y + MARGIN, 0));
        let [title, description] =
            [&figure.title, &figure.description].map(|text| escaped_between_tags(text.as_str()));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"t d\"><title id=\"t\">{title}</title><desc id=\"d\">{description}</desc>\n\
             <style>{COLORS}{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"var(--bg)\"/>\n{}</svg>\n",
            self.body
        )
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.put(format_args!(
            "<text{class} x=\"{}\" y=\"{}\">{}</text>\n",
            short(x, 1),
            short(y, 1),
            escaped(text)
        ));
    }

    fn bar(&mut self, class: &str, color: &str, [from, to]: [f64; 2], y: f64, height: f64) {
        let [x, width, y, height] = [from, (to - from).max(0.0), y, height].map(|number| short(number, 1));
        self.put(format_args!(
            "<rect class=\"{class}\" color=\"{color}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    fn sign(&mut self, look: usize, class: &str, color: &str, [x, y]: [f64; 2]) {
        let path = SIGN_PATHS[look % SIGNS];
        let (x, y) = (short(x, 1), short(y, 1));
        self.put(format_args!(
            "<path class=\"{class}\" color=\"{color}\" transform=\"translate({x} {y}) scale(.85)\" d=\"{path}\"/>\n"
        ));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
    }
}

fn height(row: &PictureRow) -> f64 {
    ROW + STEP * row.marks.len().saturating_sub(1) as f64
}

/// A share of the axis in pixels.
fn across(share: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * share
}

fn color(look: usize) -> String {
    format!("var(--c{})", look % COLOURS)
}

/// As on the page.
fn of_verdict(verdict: Verdict) -> String {
    match super::class_of(verdict) {
        "vs" => color(1),
        "vf" => color(2),
        _ => "var(--dim)".to_owned(),
    }
}

/// At most so many characters, with an ellipsis where it was longer.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Text};
    use super::*;

    fn figure(names: &[&str], looks: usize) -> Figure {
        let mark = |look: usize| Mark {
            look,
            at: 100.0,
            interval: Some((90.0, 120.0)),
            min: Some(80.0),
            ..Mark::default()
        };
        let row = |name: &&str| PictureRow {
            name: Text::new(name),
            value: "100 ns".into(),
            verdict: Some(Verdict::Slower),
            marks: (0..looks).map(mark).collect(),
        };
        let rows: Vec<PictureRow> = names.iter().map(row).collect();
        let axis = Axis::of_times([90.0, 120.0].into_iter(), None).expect("an axis");
        Figure {
            title: "A < B".into(),
            description: "one & all".into(),
            keys: (0..looks).map(|look| Key { sign: Sign::Look(look), name: "host".into() }).collect(),
            panels: vec![Drawing::Rows(Rows { axis, rows, level: None, is_by_environment: true }).into()],
            ..Figure::default()
        }
    }

    #[test]
    fn it_stands_alone() {
        let drawn = picture(&figure(&["call"], 1), &["AMD".to_owned()]).expect("a picture");
        assert!(drawn.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\""), "{drawn}");
        for part in [
            "<title id=\"t\">A &lt; B</title>",
            "one &amp; all",
            ">AMD</text>",
            ">call</text>",
            ">100 ns</text>",
            "prefers-color-scheme:dark",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        // Nothing is fetched, and no sign of the page is needed.
        for part in ["href", "url(", "<script", "<use"] {
            assert!(!drawn.contains(part), "{part} in {drawn}");
        }
        assert!(drawn.contains("color=\"var(--c1)\""), "the verdict's color");
    }

    #[test]
    fn every_mark_is_within_the_axis_and_every_row_has_its_height() {
        let heights = [1, 3].map(|looks| {
            let drawn = picture(
                &figure(&["a", "b", "a name that is far too long for the column of names"], looks),
                &[],
            )
            .expect("a picture");
            assert_eq!(drawn.matches("class=\"f\"").count(), looks * 3 + looks, "marks and keys");
            assert!(drawn.contains('…'));
            for at in drawn.split("translate(").skip(1 + looks) {
                let x: f64 = at.split(' ').next().and_then(|x| x.parse().ok()).expect("a place");
                assert!((LEFT..=RIGHT).contains(&x), "{x}");
            }
            let height =
                drawn.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<f64>().ok());
            height.expect("a height")
        });
        assert!(heights[1] - heights[0] >= 3.0 * 2.0 * STEP, "{heights:?}");
    }

    #[test]
    fn a_figure_without_rows_has_none() {
        assert_eq!(picture(&Figure::default(), &[]), None);
    }
}
