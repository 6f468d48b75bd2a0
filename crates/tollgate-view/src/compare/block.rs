//! A comparison on a terminal: the two sides and the method, the rows that fit, the notes below them, and the causes. Each verb
//! chooses the head, the columns and the number of rows.

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

pub(crate) struct Head {
    pub(crate) who: String,
    pub(crate) how: Vec<String>,
    pub(crate) choice: Choice,
    pub(crate) most_causes: usize,
    pub(crate) most_only: usize,
    pub(crate) is_helpful: bool,
}

pub(crate) struct Block<'c, 'a> {
    comparison: &'c Comparison<'a>,
    head: Head,
    causes: Causes<'c>,
    sentences: Vec<String>,
    /// On a screen the cases of a run's first screen take precedence, otherwise the largest differences.
    headlines: HashSet<String>,
    width: usize,
}

impl<'c, 'a> Block<'c, 'a> {
    pub(crate) fn new(comparison: &'c Comparison<'a>, head: Head, width: usize) -> Self {
        let causes = Causes::new(comparison, head.most_causes);
        let base = Summary::of(comparison.base);
        Self {
            // The builds differ, not the facts of their environment.
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

    pub(crate) fn lines(&self) -> usize {
        let changed = self.comparison.changed().len();
        let text = self.before() + &self.after(changed);
        1 + text.lines().count() + usize::from(changed > 0 || self.is_beside())
    }

    pub(crate) fn text(&self, room: usize) -> (String, usize) {
        let (table, used, hidden) = if self.is_beside() {
            let (table, used) = rows::beside(self.comparison, &self.headlines, room);
            (Some(table), used, 0)
        } else {
            let rows = rows::shown(self.comparison, &self.headlines, room);
            let table = rows::table(self.comparison, &rows, &self.causes, self.head.choice);
            let hidden = self.comparison.changed().len() - rows.len();
            (Some(table).filter(|_| !rows.is_empty()), rows.len(), hidden)
        };
        let table = table.map(|table| table.lines(Some(self.width), false)).unwrap_or_default();
        (format!("{}{table}{}", self.before(), self.after(hidden)), used)
    }

    pub(crate) fn whole(&self) -> String {
        let table: Table = if self.is_beside() {
            rows::beside(self.comparison, &self.headlines, usize::MAX).0
        } else {
            rows::whole(self.comparison, self.head.choice)
        };
        let table = table.render(self.width);
        let facts = facts_text(&self.comparison.facts, self.width);
        let only = self.only(usize::MAX);
        format!("{}{table}{only}{}{facts}", self.before(), self.beneath(0))
    }

    fn before(&self) -> String {
        let verdicts = if self.comparison.rows.is_empty() {
            "not in one unit".to_owned()
        } else {
            self.comparison.differences()
        };
        let how = self.head.how.iter().map(|line| paragraph(line, self.width, ""));
        heading(&format!("{}: {verdicts}", self.head.who), self.width) + &how.collect::<String>()
    }

    /// Whether no row changed and some have no ratio: their figures are shown side by side.
    fn is_beside(&self) -> bool {
        !self.comparison.not_compared.is_empty() && self.comparison.changed().is_empty()
    }

    fn after(&self, hidden: usize) -> String {
        self.only(self.head.most_only) + &self.beneath(hidden)
    }

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
        // Values of facts may be long, so sentences about unproven causes are cut to one line.
        let is_proven = self.comparison.proven.is_some();
        let sentence = |line: &String| {
            if is_proven {
                paragraph(line, self.width, "")
            } else {
                format!("{}\n", cut(&clean(line), self.width))
            }
        };
        notes.chain(self.sentences.iter().map(sentence)).collect()
    }
}
