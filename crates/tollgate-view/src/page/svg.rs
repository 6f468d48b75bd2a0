//! Writes SVG. Positions across are percent of the width and positions down are pixels: a picture fills any width, and its
//! letters and lines keep their size.

use std::fmt::{self, Display, Write};

use tollgate_output::markup::{Text, escaped};

/// Colours that remain distinct for colour-blind readers; further looks reuse them with other signs.
pub(super) const COLOURS: usize = 8;
/// Signs that are distinct without a colour.
pub(super) const SIGNS: usize = 5;
const SIGN_PATHS: [&str; SIGNS] = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
    "M-4-4h8v8h-8z",
    "M0-5.4L5 3.8H-5z",
    "M0-5.6L5.6 0L0 5.6L-5.6 0z",
    "M-5-1.7h3.3V-5h3.4v3.3H5v3.4H1.7V5h-3.4V1.7H-5z",
];

/// The definitions that drawings use: every sign by its number, and the arrows of an interval that leaves its axis.
pub(super) fn signs() -> String {
    let signs = SIGN_PATHS.iter().enumerate();
    let signs: String = signs.map(|(at, path)| format!("<path id=\"m{at}\" d=\"{path}\"/>")).collect();
    signs + "<path id=\"less\" d=\"M0-4.5v9l-6-4.5z\"/><path id=\"more\" d=\"M0-4.5v9l6-4.5z\"/>"
}

pub(super) struct Svg(String);

#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn class(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Middle => "y",
            Self::End => "x",
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Percent(pub(super) f64);

impl Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", short(self.0, 2))
    }
}

pub(super) fn short(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Svg {
    /// Begins a picture that is read as one image, with its title. Its description is above, for all pictures of the figure.
    pub(super) fn image(class: &str, height: f64, id: &str, title: &Text) -> Self {
        let mut svg = Self(String::new());
        let figure = id.split('-').next().unwrap_or(id);
        svg.put(format_args!(
            "<svg class=\"{class}\" height=\"{}\" role=\"img\" aria-describedby=\"{figure}d\"><title>{}</title>",
            short(height, 1),
            escaped(title.as_str()),
        ));
        svg
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }

    pub(super) fn group(&mut self, class: impl Display) {
        self.put(format_args!("<g class=\"{class}\">"));
    }

    pub(super) fn end_group(&mut self) {
        self.0.push_str("</g>");
    }

    pub(super) fn line(&mut self, class: &str, [x1, x2]: [f64; 2], [y1, y2]: [f64; 2]) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>",
            Percent(x1),
            Percent(x2),
            short(y1, 1),
            short(y2, 1)
        ));
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, dx: f64, text: &str) {
        let classes: Vec<&str> =
            class.split(' ').chain([anchor.class()]).filter(|class| !class.is_empty()).collect();
        let class =
            if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
        // Absent attributes are zero.
        let x = if x == 0.0 { String::new() } else { format!(" x=\"{}\"", Percent(x)) };
        let dx = if dx == 0.0 { String::new() } else { format!(" dx=\"{}\"", short(dx, 1)) };
        self.put(format_args!("<text{class}{x} y=\"{}\"{dx}>{}</text>", short(y, 1), escaped(text)));
    }

    pub(super) fn sign(&mut self, look: usize, [x, y]: [f64; 2], title: &Text) {
        self.put(format_args!(
            "<use href=\"#m{}\" x=\"{}\" y=\"{}\"><title>{}</title></use>",
            look % SIGNS,
            Percent(x),
            short(y, 1),
            escaped(title.as_str())
        ));
    }

    /// Begins a part that fills the width and has its own coordinates, this many across and down.
    pub(super) fn stretched(&mut self, y: f64, height: f64, [across, down]: [f64; 2]) {
        self.put(format_args!(
            "<svg y=\"{}\" width=\"100%\" height=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">",
            short(y, 1),
            short(height, 1),
            short(across, 0),
            short(down, 0)
        ));
    }

    pub(super) fn end_stretched(&mut self) {
        self.0.push_str("</svg>");
    }

    pub(super) fn path(&mut self, class: impl Display, path: &str) {
        if !path.is_empty() {
            self.put(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(text);
    }
}

pub(super) const WIDE: f64 = 2000.0;

pub(super) fn look(look: usize, is_environment: bool) -> String {
    let colour = look % COLOURS;
    if is_environment { format!("c{colour} p{look}") } else { format!("c{colour}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let cases =
            [(1.0, "1"), (0.5, "0.5"), (-0.001, "0"), (12.345, "12.35"), (100.0, "100"), (10.004, "10")];
        for (value, text) in cases {
            assert_eq!(short(value, 2), text);
        }
    }

    #[test]
    fn a_picture_is_one_image_and_its_text_is_escaped() {
        let mut svg = Svg::image("plot", 20.0, "f1-2", &"<b> \"t\"".into());
        svg.text("v", 50.0, 10.0, Anchor::End, -4.0, "</text><script>");
        let drawn = svg.finish();
        assert_eq!(
            drawn,
            "<svg class=\"plot\" height=\"20\" role=\"img\" aria-describedby=\"f1d\"><title>&lt;b&gt; &#34;t&#34;</title><text \
             class=\"v x\" x=\"50%\" y=\"10\" dx=\"-4\">&lt;/text&gt;&lt;script&gt;</text></svg>"
        );
    }
}
