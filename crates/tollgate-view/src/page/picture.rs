//! Figures as a separate file: SVG with its letters and colors, for a README, a slide or an issue.
//!
//! Its drawings are those of the page. There, names and values are text beside a drawing, which fills any width. Here everything
//! is one picture of fixed width, since a viewer scales it: at 600 pixels its letters are as high as those of a terminal.

use std::fmt::{self, Write};

use tollgate_output::markup::{escaped, escaped_between_tags};
use tollgate_output::table::wrap;

use super::policy::DRAWING;
use super::svg::{short, signs};
use super::{Curves, Drawing, Figure, Key, PictureRow, Rows, class_of, key_of};

const WIDTH: f64 = 640.0;
pub(super) const MARGIN: f64 = 10.0;
const LEFT: f64 = 216.0;
const RIGHT: f64 = 496.0;
const CURVES: [f64; 2] = [64.0, 614.0];
/// Characters of a name and of a value that fit; longer ones are cut.
const NAME: usize = 33;
const VALUE: usize = 24;
/// Characters of a line of sentences, and the pixels that one takes in a legend.
const LINE: usize = 104;
const CHARACTER: f64 = 5.9;
const ROOM: f64 = 42.0;
/// Height of a row with one mark, and what each further one adds.
const ROW: f64 = 18.0;
const STEP: f64 = 7.0;

const STYLE: &str = "svg{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;overflow:visible}\
.head{font-size:15px;font-weight:600}.d{font-size:11px;fill:var(--dim)}";

/// Draws the rows and curves of figures, each below its title, the first also below lines about the measurement; `None` without a
/// figure.
pub(crate) fn picture(figures: &[Figure], about: &[String]) -> Option<String> {
    let first = figures.first()?;
    let mut picture = Picture { body: String::new(), y: MARGIN };
    for (at, figure) in figures.iter().enumerate() {
        picture.head(figure, if at == 0 { about } else { &[] });
        picture.legend(&figure.keys);
        for panel in &figure.panels {
            if let Some(name) = &panel.name {
                picture.y += 22.0;
                picture.text("b", MARGIN, picture.y, &cut(name.as_str(), LINE));
            }
            match &panel.drawing {
                Drawing::Rows(rows) => picture.rows(rows),
                Drawing::Curves(curves) => picture.curves(curves, figure),
                Drawing::Heat(_) => {}
            }
        }
        picture.y += MARGIN;
    }
    Some(picture.finish(first))
}

struct Picture {
    body: String,
    y: f64,
}

impl Picture {
    fn head(&mut self, figure: &Figure, about: &[String]) {
        self.y += 14.0;
        self.text("head", MARGIN, self.y, figure.title.as_str());
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

    fn legend(&mut self, keys: &[Key]) {
        let mut x = MARGIN;
        for key in keys {
            let name = cut(key.name.as_str(), LINE / 2);
            let width = 34.0 + CHARACTER * name.chars().count() as f64;
            if x == MARGIN {
                self.y += 16.0;
            } else if x + width > WIDTH - MARGIN {
                x = MARGIN;
                self.y += 16.0;
            }
            self.within([x, x + 26.0], self.y - 10.0, 12.0, &key_of(key.sign));
            self.text("d", x + 31.0, self.y, &name);
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
            let [x, from, to] = [x, top + 4.0, top + 4.0 + height].map(|at| short(at, 1));
            self.put(format_args!(
                "<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"{from}\" y2=\"{to}\"/>"
            ));
        }
        self.names(rows, top);
        self.y += 4.0;
        let is_of_one = rows.is_of_one();
        for row in &rows.rows {
            self.row(rows, row, is_of_one);
        }
    }

    /// The names of main ticks, and of others between them if there is room.
    fn names(&mut self, rows: &Rows, y: f64) {
        let mut named: Vec<f64> = Vec::new();
        for is_main in [true, false] {
            for tick in rows.axis.ticks.iter().filter(|tick| tick.is_main == is_main) {
                let Some(x) = rows.axis.share(tick.at).map(across) else { continue };
                if named.iter().all(|other| (other - x).abs() >= ROOM) {
                    self.text("d y", x, y, tick.name.as_str());
                    named.push(x);
                }
            }
        }
    }

    fn row(&mut self, rows: &Rows, row: &PictureRow, is_of_one: bool) {
        let height = height(row);
        let base = self.y + height / 2.0 + 4.0;
        self.text("", MARGIN, base, &cut(row.name.as_str(), NAME));
        self.text("x", WIDTH - MARGIN, base, &cut(row.value.as_str(), VALUE));
        let mut marks = format!("<g class=\"{}\">", row.verdict.map_or("c0", class_of));
        for (at, mark) in row.marks.iter().enumerate() {
            rows.draw_mark(&mut marks, mark, ROW / 2.0 + STEP * at as f64, is_of_one);
        }
        marks.push_str("</g>");
        self.within([LEFT, RIGHT], self.y, height, &marks);
        self.y += height;
    }

    fn curves(&mut self, curves: &Curves, figure: &Figure) {
        self.y += MARGIN;
        let height = curves.height();
        self.within(CURVES, self.y, height, &curves.draw("", &figure.title));
        self.y += height;
    }

    fn finish(self, figure: &Figure) -> String {
        let about = [&figure.title, &figure.description].map(|text| text.as_str());
        alone([WIDTH, self.y], about, "", &signs(), &self.body)
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

    fn within(&mut self, [from, to]: [f64; 2], y: f64, height: f64, drawing: &str) {
        let [x, width, y, height] = [from, to - from, y, height].map(|number| short(number, 1));
        self.put(format_args!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\">{drawing}</svg>\n"
        ));
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
    }
}

/// A picture of this width and height with its title and description, and `style` and `definitions` of its own.
pub(super) fn alone(size: [f64; 2], about: [&str; 2], style: &str, definitions: &str, body: &str) -> String {
    let [width, height] = size.map(|pixels| short(pixels, 0));
    let [title, description] = about.map(escaped_between_tags);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"t d\"><title id=\"t\">{title}</title><desc id=\"d\">{description}</desc>\n\
         <style>{DRAWING}{STYLE}{style}</style>\n<defs>{definitions}</defs>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"var(--bg)\"/>\n{body}</svg>\n"
    )
}

fn height(row: &PictureRow) -> f64 {
    ROW + STEP * row.marks.len().saturating_sub(1) as f64
}

fn across(share: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * share
}

/// Cuts text to a number of characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Curve, Mark, Point, Sign, Text, Verdict};
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
        let axis = Axis::of_times([90.0, 120.0].into_iter()).expect("an axis");
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
        let drawn = picture(&[figure(&["call"], 1)], &["AMD".to_owned()]).expect("a picture");
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
        // Nothing is fetched, and every sign is its own.
        for part in ["url(", "<script", "href=\"h"] {
            assert!(!drawn.contains(part), "{part} in {drawn}");
        }
        for sign in drawn.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(drawn.contains(&format!("<path id=\"{sign}\"")), "{sign}");
        }
        assert!(drawn.contains("<g class=\"vs\">"), "the verdict's color");
    }

    #[test]
    fn every_row_has_its_height_and_its_marks() {
        let heights = [1, 3].map(|looks| {
            let names = ["a", "b", "a name that is far too long for the column of names"];
            let drawn = picture(&[figure(&names, looks)], &[]).expect("a picture");
            assert_eq!(drawn.matches("<use class=\"f").count(), looks * 3, "{drawn}");
            assert!(drawn.contains('…'));
            let height =
                drawn.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<f64>().ok());
            height.expect("a height")
        });
        assert!(heights[1] - heights[0] >= 3.0 * 2.0 * STEP, "{heights:?}");
    }

    #[test]
    fn curves_are_those_of_the_page_beneath_their_name() {
        let across = Axis::logarithmic(4.0, 64.0, Vec::new()).expect("an axis");
        let up = Axis::of_times([1.0, 90.0].into_iter()).expect("an axis");
        let points = vec![Point { x: 4.0, y: 1.0, title: "p".into() }];
        let curves = Curves::new(&across, &up, vec![Curve { look: 1, points }]);
        let panel = super::super::Panel {
            name: Some("one pair".into()),
            environment: None,
            drawing: Drawing::Curves(curves.clone()),
        };
        let of_curves = Figure { title: "sharing".into(), panels: vec![panel], ..Figure::default() };
        let drawn = picture(&[figure(&["call"], 1), of_curves.clone()], &[]).expect("a picture");
        assert!(drawn.contains(">one pair</text>"), "{drawn}");
        assert!(drawn.contains(&curves.draw("", &of_curves.title)), "{drawn}");
        assert!(drawn.contains(">call</text>"), "{drawn}");
    }

    #[test]
    fn without_a_figure_there_is_none() {
        assert_eq!(picture(&[], &[]), None);
    }
}
