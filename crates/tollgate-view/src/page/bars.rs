//! Bars: a whole and its parts.

use super::svg::{Anchor, Svg};
use tollgate_output::markup::Text;

/// Bars of one scale, one below the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    pub rows: Vec<Bar>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub name: Text,
    /// Its value, as text.
    pub value: Text,
    /// The same on narrow screens.
    pub in_short: Text,
    /// Its parts, from left to right.
    pub parts: Vec<Part>,
}

/// A part of a bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// How it is filled.
    pub fill: Fill,
    /// Of the whole width, 0 to 1.
    pub share: f64,
    pub title: Text,
}

/// The fill of a part; each is another pattern as well as another colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The value itself.
    Plain,
    /// On a processor, in user mode.
    User,
    /// On a processor, in the kernel.
    Kernel,
    /// Ready to run, without a processor.
    Ready,
    /// Waiting for a disk.
    Disk,
    Asleep,
    /// Waiting for an unknown reason.
    Unknown,
}

impl Fill {
    /// The class that fills it.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Plain => "b0",
            Self::User => "b1",
            Self::Kernel => "b2",
            Self::Ready => "b3",
            Self::Disk => "b4",
            Self::Asleep => "b5",
            Self::Unknown => "b6",
        }
    }
}

const PITCH: f64 = 32.0;
const THICK: f64 = 11.0;

impl Bars {
    pub(super) fn draw(&self, id: &str, title: &Text) -> String {
        let mut svg = Svg::image("dots", self.rows.len() as f64 * PITCH + 4.0, id, title);
        for (at, row) in self.rows.iter().enumerate() {
            let y = at as f64 * PITCH;
            svg.text("", 0.0, y + 13.0, Anchor::Start, 0.0, row.name.as_str());
            let values = match row.value == row.in_short {
                true => vec![("v", &row.value)],
                false => vec![("w", &row.value), ("n", &row.in_short)],
            };
            for (class, value) in values {
                svg.text(class, 100.0, y + 13.0, Anchor::End, 0.0, value.as_str());
            }
            svg.bar("bg", [0.0, 100.0], y + 18.0, THICK);
            let mut from = 0.0;
            for part in &row.parts {
                let share = if part.share.is_finite() { part.share.clamp(0.0, 1.0 - from) } else { 0.0 };
                if share > 0.0 {
                    svg.group("q", Some(&part.title));
                    svg.bar(part.fill.class(), [from * 100.0, (from + share) * 100.0], y + 18.0, THICK);
                    svg.end_group();
                }
                from += share;
            }
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_never_leave_the_bar() {
        let part = |share: f64| Part { fill: Fill::User, share, title: "t".into() };
        let parts = vec![part(0.25), part(0.5), part(f64::NAN), part(7.0)];
        let bars = Bars {
            rows: vec![Bar {
                name: "make".into(),
                value: "1 s: user 75 %".into(),
                in_short: "1 s".into(),
                parts,
            }],
        };
        let drawn = bars.draw("f-0", &"t".into());
        assert!(drawn.contains("x=\"0%\" width=\"25%\""), "{drawn}");
        assert!(drawn.contains("x=\"25%\" width=\"50%\""), "{drawn}");
        assert!(drawn.contains("x=\"75%\" width=\"25%\""), "{drawn}");
        assert_eq!(drawn.matches("class=\"b1\"").count(), 3, "{drawn}");
        // A long text has a short form for narrow screens.
        assert!(drawn.contains(">1 s: user 75 %</text>") && drawn.contains(">1 s</text>"), "{drawn}");
    }
}
