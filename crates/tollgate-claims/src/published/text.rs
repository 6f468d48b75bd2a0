use std::borrow::Cow;

use tollgate_output::figures::significant;
use tollgate_output::table::{Look, Table, heading, paragraph};

use super::{AsPublished, Measured, ShownFigure, Variant};

impl AsPublished {
    /// Formats the programs as text, one table for each.
    pub fn page(&self, width: usize) -> String {
        self.programs.iter().map(|program| program.page(width)).collect::<Vec<_>>().join("\n")
    }
}

impl Measured {
    fn page(&self, width: usize) -> String {
        let mut text = heading(&format!("{}: the program of {}", self.program, self.experiment), width);
        text.push_str(&paragraph(&self.work, width, "work: "));
        if let Some(why) = &self.missing {
            return text + &paragraph(why, width, "not executed: ");
        }
        let by = [&self.compiler, &self.command].map(|part| part.as_deref().unwrap_or_default());
        text.push_str(&paragraph(&format!("{}: {}", by[0], by[1]), width, "by: "));
        text.push('\n');
        text.push_str(&self.table().render(width));
        let note = format!(
            "Medians of {} executions, in alternation. Each line has the corrections above it, too.",
            self.rounds
        );
        text.push_str(&paragraph(&note, width, ""));
        for sentence in &self.sentences {
            text.push_str(&paragraph(sentence, width, "- "));
        }
        text
    }

    fn table(&self) -> Table {
        let heads = std::iter::once("program").chain(self.heads.iter().map(String::as_str));
        let mut table = Table::of_columns(heads.map(|head| Cow::Owned(head.to_owned())).collect());
        let there = self.heads.iter().map(|head| self.there.get(head).cloned().unwrap_or_default());
        table.row(Look::Faint, &std::iter::once("there".to_owned()).chain(there).collect::<Vec<_>>(), &[]);
        for variant in &self.variants {
            table.row(Look::Plain, &cells(variant, self.heads.len()), &[]);
        }
        table
    }
}

fn cells(variant: &Variant, columns: usize) -> Vec<String> {
    let name = variant.corrects.as_ref().map_or("as published".to_owned(), |does| format!("+ {does}"));
    let none = vec!["none".to_owned(); columns];
    let figures = match variant.failed {
        Some(_) => none,
        None => variant.figures.iter().map(cell).collect(),
    };
    std::iter::once(name).chain(figures).collect()
}

fn cell(figure: &ShownFigure) -> String {
    match (figure.median, &figure.words) {
        (Some(median), _) => significant(median, 3),
        (None, Some(words)) => words.clone(),
        (None, None) => "none".to_owned(),
    }
}
