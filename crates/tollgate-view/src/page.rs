//! Runs as one self-contained page.
//!
//! What is on it is decided by who makes a [`Page`]; this module draws and writes it. Pictures are SVG of our own
//! ([`Drawing`]), all else is a template. The page carries a policy that forbids everything but its own style and
//! script, so that even text that slipped through would do nothing; and no text slips through: it gets in as [`Text`]
//! alone, and is escaped for the place that it is written to.

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

/// The most places that are told apart on a page.
pub const MOST_PLACES: usize = 20;

/// Everything that is on a page, from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// What it is called.
    pub title: Text,
    /// The program that made it.
    pub maker: Text,
    /// The places; the first is what the others are held against.
    pub places: Vec<Place>,
    /// What makes its figures less sure.
    pub warnings: Vec<Text>,
    /// What differs most, a sentence each.
    pub findings: Vec<Text>,
    /// What differs between the places.
    pub differing: Vec<Table>,
    /// All prices on one axis.
    pub ruler: Option<Figure>,
    /// Suites.
    pub sections: Vec<Section>,
    /// What is known of the places.
    pub facts: Vec<Facts>,
}

/// A place that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Its name.
    pub name: Text,
    /// What it is, in pairs of a name and a value.
    pub about: Vec<(Text, Text)>,
}

/// A suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: Text,
    /// What it is about.
    pub about: Text,
    /// What several rows say together.
    pub findings: Vec<Text>,
    /// Its pictures.
    pub figures: Vec<Figure>,
    /// Tables of its own.
    pub tables: Vec<Table>,
    /// Its prices.
    pub estimates: Estimates,
}

/// Pictures of one thing, side by side where there are several.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: Text,
    /// What is to be seen in it, for who does not see it; and how it is read.
    pub description: Text,
    /// What its signs mean.
    pub keys: Vec<Key>,
    /// The pictures.
    pub panels: Vec<Panel>,
    /// They are small and there are many.
    pub is_small: bool,
    /// Its numbers.
    pub numbers: Option<Table>,
}

/// What a sign means.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The sign.
    pub sign: Sign,
    /// What it means.
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
    /// What it is of, where there are several.
    pub name: Option<Text>,
    /// The place whose picture it is, where it is one's alone.
    pub place: Option<usize>,
    /// The picture.
    pub drawing: Drawing,
}

/// What is drawn.
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
    /// What is in it.
    pub caption: Text,
    /// The names of its columns.
    pub head: Vec<Text>,
    /// Its rows; the first cell of each names it.
    pub rows: Vec<Vec<Text>>,
    /// It is there at once, and not to be unfolded.
    pub is_open: bool,
}

/// The prices of a suite, each with how it was come by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimates {
    /// What is in it.
    pub caption: Text,
    /// The names of its columns.
    pub head: Vec<Text>,
    /// What is true of all of them.
    pub notes: Vec<Text>,
    /// Benchmarks.
    pub groups: Vec<Group>,
}

/// The prices of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name.
    pub benchmark: Text,
    /// Its one operation, as a sentence.
    pub operation: Text,
    /// What is to be known of all of its cases.
    pub notes: Vec<Text>,
    /// `tollgate run` measures its cases again; the script says how, a line of each row.
    pub can_be_run: bool,
    /// Its cases.
    pub rows: Vec<EstimateRow>,
}

/// The price of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimateRow {
    /// Its parameters, or the benchmark's name where it has none.
    pub name: Text,
    /// It is not to be built on.
    pub is_unsure: bool,
    /// What the columns hold.
    pub cells: Vec<Cell>,
    /// How it was come by.
    pub evidence: Vec<Text>,
}

/// A cell of a table of prices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// What it holds.
    pub text: Text,
    /// What it says, where that is a verdict.
    pub verdict: Option<Verdict>,
}

pub use tollgate_model::compare::Verdict;

impl Cell {
    /// The class that shows a verdict, beside its word.
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

/// The facts of a place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    /// Of which place, where there are several.
    pub place: Option<Text>,
    /// Tables of facts.
    pub tables: Vec<Table>,
}

/// Why a page cannot be written, which is a defect of the templates.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be written: {0}")]
pub struct RenderError(#[from] askama::Error);

impl Page {
    /// The page.
    ///
    /// # Errors
    /// Never, as long as the templates are sound.
    pub fn render(&self) -> Result<String, RenderError> {
        Ok(Document { page: self, style: policy::STYLE, script: policy::SCRIPT, policy: policy::policy() }
            .render()?)
    }

    fn is_comparison(&self) -> bool {
        self.places.len() > 1
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
        panel.place.map(|place| format!(" class=\"p{place}\"")).unwrap_or_default()
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
