//! A bench of two builds: how they compare, and an iteration's requests to the kernel in each.

use std::borrow::Cow;
use std::collections::BTreeSet;

use tollgate_engine::benches::Asked;
use tollgate_model::text::{clean, listed};
use tollgate_output::table::{Table, heading, paragraph};

use super::functions::decimal;
use super::session::in_words;
use crate::session::Session;

const FAULTS: &str = "page faults";
/// Smaller numbers per iteration belong to a runtime, whose calls depend on time.
const LEAST: f64 = 0.01;

/// The bench in the builds of a session, the base first, with the requests found in each.
pub fn bench(case: &str, session: &Session, asked: &[Asked], width: usize) -> String {
    let mut text = heading(case, width);
    for (other, comparison) in session.others() {
        let row = comparison.rows.iter().find(|row| row.case().benchmark == case);
        let words = row.map_or("no figure".to_owned(), |row| in_words(comparison, row, false));
        text.push_str(&paragraph(&format!("{}: {words}", other.name), width, "Compared     "));
    }
    text.push_str(&paragraph(&format!("session {}", session.id), width, &" ".repeat(13)));
    let rows = rows(asked);
    if !rows.is_empty() {
        text.push_str(&table(session, &rows).render(width));
    }
    text + &paragraph(&remarks(&rows, asked), width, "")
}

type Numbers<'a> = (&'a str, Vec<f64>);

/// Calls with the most first, and page faults last.
fn rows(asked: &[Asked]) -> Vec<Numbers<'_>> {
    let names: BTreeSet<&str> = asked.iter().flat_map(|one| one.calls.keys().map(String::as_str)).collect();
    let of = |name: &str, one: &Asked| one.calls.get(name).copied().unwrap_or_default();
    let calls = names.into_iter().map(|name| (name, asked.iter().map(|one| of(name, one)).collect()));
    let faults = (FAULTS, asked.iter().map(|one| one.faults).collect());
    let mut rows: Vec<Numbers> = calls.collect();
    let most = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
    rows.sort_by(|(_, one), (_, another)| most(another).total_cmp(&most(one)));
    rows.push(faults);
    rows.retain(|(_, numbers)| most(numbers) >= LEAST);
    rows
}

fn table(session: &Session, rows: &[Numbers]) -> Table {
    let names = session.members.iter().map(|member| Cow::Owned(clean(&member.name).into_owned()));
    let number = |number: &f64| Some(decimal((number.max(0.0) * 100.0).round() / 100.0));
    let rows = rows.iter().map(|(name, numbers)| (clean(name).into_owned(), numbers.iter().map(number)));
    Table::of_cells(std::iter::once(Cow::Borrowed("an iteration")).chain(names), rows)
}

fn remarks(rows: &[Numbers], asked: &[Asked]) -> String {
    let differs = |(_, numbers): &&Numbers| {
        numbers.iter().any(|number| (number - numbers[0]).abs() > LEAST.max(numbers[0] / 20.0))
    };
    let different: Vec<&str> = rows.iter().filter(differs).map(|(name, _)| *name).collect();
    let found = match (rows, different.as_slice()) {
        ([], _) => {
            "No iteration makes a system call or a page fault: the program's own code, or its address, changed (docs/benches.md, Layout)."
                .to_owned()
        }
        (_, []) => "The builds make the same requests of the kernel: the program's own code, or its address, changed (docs/benches.md, Layout)."
            .to_owned(),
        (_, different) => format!("Different: {}.", listed(different)),
    };
    let iterations = asked.first().map_or(0, |one| one.iterations);
    format!(
        "{found} Traced now, with the present files: {} iterations less {iterations}, the median of three.",
        2 * iterations
    )
}
