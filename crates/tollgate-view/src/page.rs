//! Runs as one self-contained page.
//!
//! The caller fills a [`Page`] with plain data; this module draws and writes it. Pictures are SVG ([`Drawing`]), the rest
//! is a template. Text enters as [`Text`] alone, which is safe, and is escaped for its context. A content security policy
//! forbids everything but the page's own style and script, so text that slipped through could do nothing.
//!
//! The page decides nothing: it draws plain data. Text enters as `Text` alone, which is escaped where it
//! stands; a policy with the digests of the page's own style and script forbids all else. Horizontal
//! positions are percent and vertical ones pixels, so that one picture fits every width.

mod axis;
mod bars;
mod curves;
mod dots;
mod heat;
mod levels;
mod policy;
mod svg;
mod text;

use askama::Template;

pub use axis::{Axis, Tick};
pub use bars::{Bar, Bars, Fill, Part};
pub use curves::{Curve, Curves, Point};
pub use dots::{Dots, Mark, Row, Strip};
pub use heat::{Cell as HeatCell, Heat};
pub use levels::{Levels, Seen};
pub use text::Text;

/// The most environments on a page.
pub const MAX_ENVIRONMENTS: usize = 20;

/// Everything that is on a page, from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its title.
    pub title: Text,
    /// The program that made it.
    pub maker: Text,
    /// The environments; the others are compared with the first.
    pub environments: Vec<Environment>,
    /// Noise and limits of its figures.
    pub warnings: Vec<Text>,
    /// The largest differences, a sentence each.
    pub findings: Vec<Text>,
    /// The facts that differ between the environments.
    pub differing: Vec<Table>,
    /// All latencies on one axis.
    pub ruler: Option<Figure>,
    /// Suites.
    pub sections: Vec<Section>,
    /// The facts of the environments.
    pub facts: Vec<Table>,
}

/// A measured environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// Its name.
    pub name: Text,
    /// Its description, in pairs of a name and a value.
    pub about: Vec<(Text, Text)>,
}

/// A suite.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Its name.
    pub name: Text,
    /// Its subject.
    pub about: Text,
    /// Findings over several rows.
    pub findings: Vec<Text>,
    /// Its pictures.
    pub figures: Vec<Figure>,
    /// Tables of its own.
    pub tables: Vec<Table>,
    /// Its results.
    pub estimates: Estimates,
}

/// Pictures of one subject, side by side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// Its title.
    pub title: Text,
    /// Its content for readers who do not see it, and how to read it.
    pub description: Text,
    /// The meaning of its signs.
    pub keys: Vec<Key>,
    /// The pictures.
    pub panels: Vec<Panel>,
    /// There are many small ones.
    pub is_small: bool,
    /// Its numbers.
    pub numbers: Option<Table>,
}

/// The meaning of a sign.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The sign.
    pub sign: Sign,
    /// Its meaning.
    pub name: Text,
}

/// A sign in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// A mark of this look.
    Look(usize),
    /// A part of a bar.
    Fill(Fill),
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Its subject, where there are several.
    pub name: Option<Text>,
    /// The look of the environment that it shows alone.
    pub environment: Option<usize>,
    /// The picture.
    pub drawing: Drawing,
}

/// The kinds of pictures.
#[derive(Debug, Clone, PartialEq)]
pub enum Drawing {
    /// Marks on an axis.
    Dots(Dots),
    /// Curves.
    Curves(Curves),
    /// A matrix.
    Heat(Heat),
    /// Bars.
    Bars(Bars),
    /// Distributions.
    Levels(Levels),
}

/// A plain table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Its caption.
    pub caption: Text,
    /// The names of its columns.
    pub head: Vec<Text>,
    /// Its rows; the first cell of each names it.
    pub rows: Vec<Vec<Text>>,
    /// It is open from the beginning.
    pub is_open: bool,
}

/// The results of a suite, each with its evidence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimates {
    /// Its caption.
    pub caption: Text,
    /// The names of its columns.
    pub head: Vec<Text>,
    /// Notes on all of them.
    pub notes: Vec<Text>,
    /// Benchmarks.
    pub groups: Vec<Group>,
}

/// The results of a benchmark.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    /// Its name.
    pub benchmark: Text,
    /// Its one operation, as a sentence.
    pub operation: Text,
    /// Notes on all of its cases.
    pub notes: Vec<Text>,
    /// `tollgate run` can measure its cases again; the script adds the command to each row.
    pub can_be_run: bool,
    /// Its cases.
    pub rows: Vec<EstimateRow>,
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EstimateRow {
    /// Its parameters, or the benchmark's name where it has none.
    pub name: Text,
    /// It is noisy.
    pub is_noisy: bool,
    /// Its columns.
    pub cells: Vec<Cell>,
    /// Its samples, processes and intervals, in lines.
    pub evidence: Vec<Text>,
}

/// A cell of a table of results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Its text.
    pub text: Text,
    /// Its verdict, if it has one.
    pub verdict: Option<Verdict>,
}

pub use tollgate_model::compare::Verdict;

impl Cell {
    /// The class of its verdict.
    fn class(&self) -> &'static str {
        match self.verdict {
            None => "",
            Some(Verdict::Faster) => " class=vf",
            Some(Verdict::Slower) => " class=vs",
            Some(Verdict::Same | Verdict::Inconclusive) => " class=vn",
        }
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
        Ok(Document { page: self, style: policy::STYLE, script: policy::SCRIPT, policy: policy::policy() }
            .render()?)
    }

    fn is_comparison(&self) -> bool {
        self.environments.len() > 1
    }
}

/// The whole file.
#[derive(Template)]
#[template(path = "page.html")]
struct Document<'a> {
    page: &'a Page,
    style: &'static str,
    script: &'static str,
    policy: String,
}

impl Document<'_> {
    /// The signs, for pictures to use.
    fn signs(&self) -> Vec<(usize, &'static str)> {
        svg::SIGN_PATHS.into_iter().enumerate().collect()
    }

    fn figure<'b>(&self, figure: &'b Figure, id: impl Into<String>) -> FigureView<'b> {
        FigureView { figure, id: id.into() }
    }

    fn table<'b>(&self, table: &'b Table) -> TableView<'b> {
        TableView { table }
    }

    fn code(&self, command: &Text) -> String {
        text::escaped_between_tags(command.as_str())
    }

    fn key(&self, look: &usize) -> String {
        key_of(Sign::Look(*look))
    }
}

/// A figure with its numbers.
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
            Drawing::Dots(dots) => dots.draw(&id, title),
            Drawing::Curves(curves) => curves.draw(&id, title, figure.is_small),
            Drawing::Heat(heat) => heat.draw(&id, title),
            Drawing::Bars(bars) => bars.draw(&id, title),
            Drawing::Levels(levels) => levels.draw(&id, title),
        }
    }

    fn class(&self, panel: &Panel) -> String {
        panel.environment.map(|look| format!(" class=\"p{look}\"")).unwrap_or_default()
    }

    fn numbers(&self, table: &'_ Table) -> String {
        TableView { table }.to_string()
    }
}

/// A plain table.
#[derive(Template)]
#[template(path = "table.html")]
struct TableView<'a> {
    table: &'a Table,
}

/// A sign, drawn by itself.
fn key_of(sign: Sign) -> String {
    match sign {
        Sign::Look(look) => format!(
            "<svg class=\"key c{0}\" width=\"26\" height=\"12\" aria-hidden=\"true\"><path class=\"d{1}\" d=\"M0 6H26\"/><use \
             href=\"#m{2}\" x=\"13\" y=\"6\"/></svg>",
            look % svg::COLOURS,
            look % 4,
            look % svg::SIGNS
        ),
        Sign::Fill(fill) => format!(
            "<svg class=\"key\" width=\"26\" height=\"12\" aria-hidden=\"true\"><rect class=\"{}\" width=\"26\" height=\"12\"/></svg>",
            fill.class()
        ),
    }
}
