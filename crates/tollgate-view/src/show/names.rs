//! The names of rows: whole, or below a heading without what all rows of a benchmark have in common.

use std::collections::{BTreeSet, HashMap};

use tollgate_model::measurement::pairs;
use tollgate_model::{Case, Params};

use crate::summary::CaseRow;

#[derive(Default)]
pub struct Names<'a> {
    of_benchmark: HashMap<&'a str, Form>,
}

enum Form {
    Pairs,
    /// Only their values, in this order, below the benchmark's name and theirs.
    Values(Vec<String>),
}

impl<'a> Names<'a> {
    /// Each benchmark of several rows with long names gets a heading, so that its rows show only the parameters.
    pub fn beneath_headings(rows: &[&'a CaseRow]) -> Self {
        const LONG: usize = 33;
        let whole = Self::default();
        let is_long = |rows: &[&'a CaseRow]| rows.len() > 1 && whole.longest(rows) > LONG;
        let of_long = of_each(rows).into_iter().filter(|(_, rows)| is_long(rows));
        Self { of_benchmark: of_long.map(|(benchmark, _)| (benchmark, Form::Pairs)).collect() }
    }

    /// Like [`Names::beneath_headings`]; rows that would be wider than this show only the values of the parameters.
    pub fn within(mut self, columns: usize, rows: &[&'a CaseRow]) -> Self {
        let wide: Vec<(&str, Vec<&CaseRow>)> =
            of_each(rows).into_iter().filter(|(_, rows)| self.longest(rows) > columns).collect();
        for (benchmark, rows) in wide {
            if let Some(form) = self.of_benchmark.get_mut(benchmark) {
                *form = Form::Values(every_name(rows.into_iter().map(|row| row.case)));
            }
        }
        self
    }

    pub fn heading(&self, benchmark: &str) -> Option<String> {
        self.of_benchmark.get(benchmark).map(|form| match form {
            Form::Pairs => benchmark.to_owned(),
            Form::Values(names) => format!("{benchmark}{{{}}}", names.join(", ")),
        })
    }

    pub fn name(&self, case: &Case) -> String {
        match self.of_benchmark.get(case.benchmark.as_str()) {
            None => case.to_string(),
            Some(Form::Pairs) => format!("  {}", pairs(&case.params)),
            Some(Form::Values(names)) => format!("  {}", values(names, &case.params)),
        }
    }

    fn longest(&self, rows: &[&CaseRow]) -> usize {
        rows.iter().map(|row| self.name(row.case).chars().count()).max().unwrap_or(0)
    }
}

pub fn every_name<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<String> {
    let names: BTreeSet<&String> = cases.flat_map(|case| case.params.keys()).collect();
    names.into_iter().cloned().collect()
}

/// `pipe, 4096, same`: the values of these parameters, in this order.
pub fn values(names: &[String], params: &Params) -> String {
    let value = |name| params.get(name).map_or_else(|| "-".to_owned(), ToString::to_string);
    names.iter().map(value).collect::<Vec<_>>().join(", ")
}

fn of_each<'a, 'b>(rows: &[&'b CaseRow<'a>]) -> HashMap<&'b str, Vec<&'b CaseRow<'a>>> {
    let mut of_each: HashMap<&'b str, Vec<&'b CaseRow<'a>>> = HashMap::new();
    for row in rows {
        of_each.entry(&row.case.benchmark).or_default().push(row);
    }
    of_each
}
