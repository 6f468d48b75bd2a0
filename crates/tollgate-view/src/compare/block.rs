//! A comparison on a terminal: who was compared with whom and how, the rows that have room, what is said beneath them, and the causes.
//! Each verb chooses the head, the columns and how many rows there are.

use std::collections::HashSet;

use tollgate_model::Case;
use tollgate_model::text::clean;
use tollgate_output::table::{Table, cut, heading, paragraph};

use super::causes::Causes;
use super::columns::Choice;
use super::facts::facts_text;
use super::{notes, rows};
use crate::comparison::Comparison;
use crate::screen::headlines;
use crate::summary::Summary;

/// Who is compared with whom, and how that is shown.
pub(crate) struct Head {
    /// The two, and where or when they were measured.
    pub(crate) who: String,
    /// How they were compared, each a paragraph.
    pub(crate) how: Vec<String>,
    /// The columns of the rows.
    pub(crate) choice: Choice,
    /// So many causes are shown.
    pub(crate) most_causes: usize,
    /// Up to so many cases that one of the two alone measured are shown with the reason.
    pub(crate) most_only: usize,
    /// The command that may decide the inconclusive rows is shown.
    pub(crate) is_helpful: bool,
}

/// A comparison with its head, for a terminal of some width.
pub(crate) struct Block<'c, 'a> {
    comparison: &'c Comparison<'a>,
    head: Head,
    causes: Causes<'c>,
    sentences: Vec<String>,
    /// The cases that have room before others: on a screen those of a run's first screen, else the largest differences.
    headlines: HashSet<String>,
    width: usize,
}

impl<'c, 'a> Block<'c, 'a> {
    /// What is said of a comparison under this head.
    pub(crate) fn new(comparison: &'c Comparison<'a>, head: Head, width: usize) -> Self {
        let causes = Causes::new(comparison, head.most_causes);
        let base = Summary::of(comparison.base);
        Self {
            // The builds differ, and no fact of their environment.
            sentences: if comparison.is_of_builds() { Vec::new() } else { causes.sentences(comparison) },
            causes,
            headlines: match head.choice {
                Choice::Base => headlines(&base).iter().map(|(_, row, _)| row.case.to_string()).collect(),
                Choice::Both => HashSet::new(),
            },
            comparison,
            head,
            width,
        }
    }

    /// The lines beside those of its rows, of which the header of the table is one.
    pub(crate) fn lines(&self) -> usize {
        let changed = self.comparison.changed().len();
        let text = self.before() + &self.after(changed);
        1 + text.lines().count() + usize::from(changed > 0 || self.is_beside())
    }

    /// With at most so many rows; how many they are.
    pub(crate) fn text(&self, room: usize) -> (String, usize) {
        let (table, used, hidden) = match self.is_beside() {
            true => {
                let (table, used) = rows::beside(self.comparison, &self.headlines, room);
                (Some(table), used, 0)
            }
            false => {
                let rows = rows::shown(self.comparison, &self.headlines, room);
                let table = rows::table(self.comparison, &rows, &self.causes, self.head.choice);
                let hidden = self.comparison.changed().len() - rows.len();
                (Some(table).filter(|_| !rows.is_empty()), rows.len(), hidden)
            }
        };
        let table = table.map(|table| table.lines(Some(self.width), false)).unwrap_or_default();
        (format!("{}{table}{}", self.before(), self.after(hidden)), used)
    }

    /// With every row and every fact.
    pub(crate) fn whole(&self) -> String {
        let table: Table = match self.is_beside() {
            true => rows::beside(self.comparison, &self.headlines, usize::MAX).0,
            false => rows::whole(self.comparison, self.head.choice),
        };
        let table = table.render(self.width);
        let facts = facts_text(&self.comparison.facts, self.width);
        let only = self.only(usize::MAX);
        format!("{}{table}{only}{}{facts}", self.before(), self.beneath(0))
    }

    fn before(&self) -> String {
        let verdicts = match self.comparison.rows.is_empty() {
            true => "not in one unit".to_owned(),
            false => self.comparison.differences(),
        };
        let how = self.head.how.iter().map(|line| paragraph(line, self.width, ""));
        heading(&format!("{}: {verdicts}", self.head.who), self.width) + &how.collect::<String>()
    }

    /// Whether no row changed and some have no ratio: their figures stand side by side.
    fn is_beside(&self) -> bool {
        !self.comparison.not_compared.is_empty() && self.comparison.changed().is_empty()
    }

    fn after(&self, hidden: usize) -> String {
        self.only(self.head.most_only) + &self.beneath(hidden)
    }

    /// The cases that one of the two alone measured, and why, where they are at most so many.
    fn only(&self, most: usize) -> String {
        let of = |where_from: &'static str, only: &'c [(Case, String)]| {
            only.iter().map(move |(case, why)| format!("{case}: measured in the {where_from} only; {why}"))
        };
        let Comparison { only_base, only_other, .. } = self.comparison;
        let has_room = only_base.len() + only_other.len() <= most;
        let lines = of("base", only_base).chain(of("other", only_other)).filter(|_| has_room);
        lines.map(|line| paragraph(&line, self.width, "  ")).collect()
    }

    fn beneath(&self, hidden: usize) -> String {
        let notes = notes::all(self.comparison, hidden, self.head.is_helpful);
        let notes = notes.iter().map(|line| paragraph(line, self.width, ""));
        // The value of a fact may be long; the first of them proves or is likeliest.
        let is_proven = self.comparison.proven.is_some();
        let sentence = |line: &String| match is_proven {
            true => paragraph(line, self.width, ""),
            false => format!("{}\n", cut(&clean(line), self.width)),
        };
        notes.chain(self.sentences.iter().map(sentence)).collect()
    }
}
