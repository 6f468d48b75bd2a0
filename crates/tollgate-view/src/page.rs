//! Runs as one self-contained page.
//!
//! The page decides nothing: it draws plain data. Pictures are SVG (`Drawing`), the rest is a template. Horizontal positions are
//! percent and vertical ones pixels, so that one picture fits every width. Text enters only as `Text`, which is safe, and is
//! escaped for its context. A content security policy with the digests of the page's own style and script forbids all else, so
//! text that slipped through could do nothing.

mod axis;
mod curves;
mod flames;
mod heat;
mod picture;
mod policy;
mod rows;
mod svg;

use askama::Template;
use tollgate_output::markup::escaped_between_tags;

pub(crate) use axis::{Axis, Tick};
pub(crate) use curves::{Curve, Curves, Plateau, Point};
pub use flames::{Flames, flames};
pub(crate) use heat::{Cell as HeatCell, Heat};
pub(crate) use picture::picture;
pub(crate) use rows::{Mark, PictureRow, Rows};
pub(crate) use tollgate_output::html::Table;
pub(crate) use tollgate_output::markup::Text;

/// The most environments on a page.
pub const MAX_ENVIRONMENTS: usize = 20;

/// Everything on a page, from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub(crate) title: Text,
    pub(crate) maker: Text,
    pub(crate) environments: Vec<Environment>,
    /// For one environment: what is slow there, and what to do.
    pub(crate) expensive: Vec<Expensive>,
    /// For several: the numbers of verdicts, one sentence each.
    pub(crate) counts: Vec<Text>,
    /// For several: all ratios around 1, those with a verdict first; for kernels their counts.
    pub(crate) ratios: Option<Figure>,
    /// For several: the largest differences, one sentence each.
    pub(crate) differences: Vec<Text>,
    pub(crate) differing: Vec<Table>,
    pub(crate) ruler: Option<Figure>,
    pub(crate) sections: Vec<Section>,
    pub(crate) facts: Vec<Table>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Environment {
    pub(crate) name: Text,
    pub(crate) about: [Text; 2],
    pub(crate) quality: Quality,
    pub(crate) details: Vec<(Text, Text)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quality {
    pub(crate) grade: Text,
    pub(crate) words: Text,
    /// Causes of noisy figures, and the remedies.
    pub(crate) warnings: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Expensive {
    pub(crate) what: Text,
    pub(crate) cause: Text,
    pub(crate) action: Text,
    pub(crate) benchmark: Text,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Section {
    pub(crate) name: Text,
    pub(crate) about: Text,
    pub(crate) findings: Vec<Text>,
    pub(crate) facts: Option<Table>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) tables: Vec<Table>,
    pub(crate) estimates: Estimates,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Figure {
    /// Whether it is shown only when its title is clicked on, since its height depends on the noise.
    pub(crate) is_folded: bool,
    pub(crate) title: Text,
    /// Its content for readers who do not see it, and how to read it.
    pub(crate) description: Text,
    pub(crate) keys: Vec<Key>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) numbers: Option<Table>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) sign: Sign,
    pub(crate) name: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Look(usize),
    Median,
    Hollow,
    Interval,
    Min,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    pub(crate) name: Option<Text>,
    /// The look of the only environment that it shows.
    pub(crate) environment: Option<usize>,
    pub(crate) drawing: Drawing,
}

impl From<Drawing> for Panel {
    fn from(drawing: Drawing) -> Self {
        Self { name: None, environment: None, drawing }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Drawing {
    Rows(Rows),
    Curves(Curves),
    Heat(Heat),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Estimates {
    pub(crate) caption: Text,
    pub(crate) head: Vec<Text>,
    pub(crate) notes: Vec<Text>,
    pub(crate) groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Group {
    pub(crate) benchmark: Text,
    pub(crate) operation: Text,
    pub(crate) notes: Vec<Text>,
    pub(crate) can_be_run: bool,
    pub(crate) rows: Vec<EstimateRow>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct EstimateRow {
    /// Its parameters, or the benchmark's name if it has none.
    pub(crate) name: Text,
    pub(crate) is_noisy: bool,
    pub(crate) cells: Vec<Cell>,
    pub(crate) evidence: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    pub(crate) verdict: Option<Verdict>,
}

pub(crate) use tollgate_model::compare::Verdict;

impl Cell {
    fn class(&self) -> String {
        self.verdict.map(|verdict| format!(" class={}", class_of(verdict))).unwrap_or_default()
    }
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster | Verdict::SomewhatFaster => "vf",
        Verdict::Slower | Verdict::SomewhatSlower => "vs",
        Verdict::Same | Verdict::Inconclusive => "vn",
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text: Text::from(text), verdict: None }
    }
}

/// Why a page cannot be written: a defect of the templates.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be written: {0}")]
pub struct RenderError(#[from] askama::Error);

impl Page {
    /// The page.
    ///
    /// # Errors
    /// Only by a defect of the templates.
    pub fn render(&self) -> Result<String, RenderError> {
        Ok(EmbeddedPage {
            page: self,
            style: policy::STYLE,
            script: policy::SCRIPT,
            policy: policy::policy(),
        }
        .render()?)
    }

    fn is_comparison(&self) -> bool {
        self.environments.len() > 1
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct EmbeddedPage<'a> {
    page: &'a Page,
    style: &'static str,
    script: &'static str,
    policy: String,
}

impl EmbeddedPage<'_> {
    fn signs(&self) -> String {
        svg::signs()
    }

    fn figure<'b>(&self, figure: &'b Figure, id: impl Into<String>) -> FigureView<'b> {
        FigureView { figure, id: id.into() }
    }

    fn table(&self, table: &Table) -> String {
        table.render()
    }

    /// The name of a row after `#` in the page's address: its case, without spaces.
    fn anchor(&self, benchmark: &Text, row: &Text) -> String {
        let (benchmark, row) = (benchmark.as_str(), row.as_str());
        let case = if row == benchmark { row.to_owned() } else { format!("{benchmark}{{{row}}}") };
        case.split_whitespace().collect::<Vec<_>>().join("_")
    }

    fn code(&self, command: &Text) -> String {
        escaped_between_tags(command.as_str())
    }

    fn key(&self, look: &usize) -> String {
        key_of(Sign::Look(*look))
    }
}

#[derive(Template)]
#[template(path = "figure.html")]
struct FigureView<'a> {
    figure: &'a Figure,
    id: String,
}

impl FigureView<'_> {
    fn key(&self, key: &Key) -> String {
        key_of(key.sign)
    }

    fn panel(&self, panel: &Panel, at: &usize) -> String {
        let id = format!("{}-{at}", self.id);
        let figure = self.figure;
        let title = match &panel.name {
            Some(name) => Text::new(&format!("{}: {name}", figure.title)),
            None => figure.title.clone(),
        };
        let title = &title;
        match &panel.drawing {
            Drawing::Rows(rows) => rows.draw(title),
            Drawing::Curves(curves) => curves.draw(&id, title),
            Drawing::Heat(heat) => heat.draw(&id, title),
        }
    }

    fn class(&self, panel: &Panel) -> String {
        panel.environment.map(|look| format!(" class=\"p{look}\"")).unwrap_or_default()
    }

    fn numbers(&self, table: &'_ Table) -> String {
        table.render()
    }
}

fn key_of(sign: Sign) -> String {
    let (class, drawn) = match sign {
        Sign::Look(look) => (
            format!(" c{}", look % svg::COLOURS),
            format!(
                "<path class=\"d{}\" d=\"M0 6H26\"/><use href=\"#m{}\" x=\"13\" y=\"6\"/>",
                look % 4,
                look % svg::SIGNS
            ),
        ),
        Sign::Median => (" c0".to_owned(), "<use href=\"#m0\" x=\"13\" y=\"6\"/>".to_owned()),
        Sign::Hollow => (" c0".to_owned(), "<use class=\"h\" href=\"#m0\" x=\"13\" y=\"6\"/>".to_owned()),
        Sign::Interval => {
            (" c0".to_owned(), "<rect class=\"i\" width=\"26\" y=\"2.5\" height=\"7\"/>".to_owned())
        }
        Sign::Min => {
            (" c0".to_owned(), "<rect class=\"m\" x=\"12\" y=\"2\" width=\"1.5\" height=\"8\"/>".to_owned())
        }
    };
    format!("<svg class=\"key{class}\" width=\"26\" height=\"12\" aria-hidden=\"true\">{drawn}</svg>")
}
