//! The headline cases of the registry on one axis, from fast to slow.

use tollgate_engine::{Headline, Section};
use tollgate_model::Case;
use tollgate_output::figures;

use super::panels::keys;
use super::subject::{Subject, figures_of_all};
use crate::page::{self, Drawing, Figure, Key, Rows, Sign, Table, Text};
use crate::screen;
use crate::summary::{CaseRow, Figures, Summary};

pub fn headlines<'a>(summary: &'a Summary) -> Vec<(String, &'a Case)> {
    let named = |(section, row, headline): (Section, &'a CaseRow, &Headline)| match section {
        // A size alone needs its operation.
        Section::Loads => (format!("dependent load, {}", headline.name), row.case),
        _ => (headline.name.to_owned(), row.case),
    };
    screen::headlines(summary).into_iter().map(named).collect()
}

pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let mut names: Vec<(String, &Case)> = Vec::new();
    for found in subjects.iter().flat_map(|subject| headlines(&subject.summary)) {
        if names.iter().all(|known| known.1 != found.1) {
            names.push(found);
        }
    }
    let is_comparison = subjects.len() > 1;
    let mut rows = Vec::new();
    let mut numbers = Table::new("The figures of the overview", ["operation"]);
    if is_comparison {
        numbers.head.extend(subjects.iter().map(|subject| Text::new(&subject.name)))
    } else {
        // The ratio stands beside the figure, where a narrow screen shows it.
        numbers.head.extend(["median", "× syscall", "95 % CI", "min"].map(Text::from))
    }
    numbers.head.push("case".into());
    for (name, case) in names {
        let marks: Vec<_> = subjects.iter().filter_map(|subject| subject.mark(case)).collect();
        // A value below its detection limit has its row but no mark.
        let found = subjects.iter().find_map(|subject| subject.summary.figures(case));
        let Some(at) = found.map(Figures::bounded) else { continue };
        let mut cells = vec![Text::new(&name)];
        match subjects {
            [subject] => cells.extend(subject.summary.figures(case).into_iter().flat_map(in_words)),
            subjects => cells.extend(subjects.iter().map(|subject| {
                Text::from(subject.summary.figures(case).map_or("–".into(), Figures::in_words))
            })),
        }
        cells.push(Text::new(&case.to_string()));
        let value = figures_of_all(subjects, case);
        rows.push((at, page::PictureRow { name: Text::label(&name), value, verdict: None, marks }, cells));
    }
    rows.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let (rows, cells): (Vec<page::PictureRow>, Vec<_>) =
        rows.into_iter().map(|(_, row, cells)| (row, cells)).unzip();
    numbers.rows = cells;
    let rows = Rows::of_times(rows)?;
    let key = |sign, name: &str| Key { sign, name: name.into() };
    let mut signs = keys(subjects);
    signs.extend((!is_comparison).then(|| key(Sign::Median, "median")));
    signs.extend([key(Sign::Hollow, "noisy"), key(Sign::Interval, "95 % CI"), key(Sign::Min, "min")]);
    Some(Figure {
        is_folded: false,
        title: "Latency of well-known operations".into(),
        description:
            "From fast to slow, on one logarithmic axis; rows without a band have too few processes for a CI."
                .into(),
        keys: signs,
        panels: vec![Drawing::Rows(rows).into()],
        numbers: Some(numbers),
    })
}

fn in_words(figures: &Figures) -> [Text; 4] {
    let unit = figures.measured.unit;
    let min = figures.min().filter(|_| figures.below.is_none());
    let min = min.map_or_else(String::new, |min| figures::estimate(min, unit));
    let multiple = figures.multiple.map(|multiple| figures::significant(multiple, 3));
    [figures.in_words(), multiple.unwrap_or_default(), figures.interval_in_words().unwrap_or_default(), min]
        .map(Text::from)
}
