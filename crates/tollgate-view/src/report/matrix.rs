//! The heat map of the processors.

use std::collections::BTreeSet;

use tollgate_model::Unit;
use tollgate_output::figures;

use super::subject::Subject;
use crate::page::{Drawing, Figure, Heat, HeatCell, Panel, Table, Text};
use crate::pictures::matrix::{self, Matrix};

/// With fewer processors there is one number and no picture.
const LEAST: usize = 3;

pub fn is_drawn(subjects: &[Subject]) -> bool {
    subjects.iter().any(|subject| {
        matrix::by_protocol(&subject.summary).values().any(|found| processors(found).len() >= LEAST)
    })
}

pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let mut found: Vec<(&Subject, &str, Matrix)> = Vec::new();
    for subject in subjects {
        let matrices = matrix::by_protocol(&subject.summary).into_iter();
        let drawn = matrices.filter(|(_, matrix)| processors(matrix).len() >= LEAST);
        found.extend(drawn.map(|(protocol, matrix)| (subject, protocol, matrix)));
    }
    let all = || found.iter().flat_map(|(_, _, matrix)| matrix.values().copied());
    let least = all().min_by(f64::total_cmp)?;
    let most = all().max_by(f64::total_cmp)?;
    let mut numbers = Table::new("The figures of every pair", ["pair", "environment", "by", "median"]);
    let estimate = |ns| figures::estimate(ns, Unit::Nanoseconds);
    let panels = found.iter().map(|(subject, protocol, matrix)| {
        let names: Vec<u64> = processors(matrix).into_iter().collect();
        let at = |cpu: u64| names.iter().position(|name| *name == cpu).unwrap_or_default();
        let cells = matrix.iter().map(|(&(low, high), &ns)| HeatCell {
            row: at(high),
            column: at(low),
            heat: (ns / least).ln() / (most / least).max(1.1).ln(),
            value: figures::significant(ns, if ns < 99.95 { 2 } else { 3 }).into(),
        });
        numbers.rows.extend(matrix.iter().map(|(&(low, high), &ns)| {
            [format!("{low} and {high}"), subject.name.clone(), (*protocol).to_owned(), estimate(ns)]
                .map(Text::from)
                .to_vec()
        }));
        let prefix = subject.prefix(", ");
        Panel {
            name: Some(Text::label(&format!("{prefix}by {protocol}"))),
            environment: (subjects.len() > 1).then_some(subject.look),
            drawing: Drawing::Heat(Heat {
                cells: cells.collect(),
                names: names.iter().map(|cpu| Text::from(cpu.to_string())).collect(),
            }),
        }
    });
    let panels = panels.collect();
    Some(Figure {
        title: "memory/pingpong: latency of handing a line to another processor".into(),
        description: format!(
            "Nanoseconds between each two processors; darker is slower, from {} to {}.",
            estimate(least),
            estimate(most)
        )
        .into(),
        panels,
        numbers: Some(numbers),
        ..Figure::default()
    })
}

fn processors(matrix: &Matrix) -> BTreeSet<u64> {
    matrix.keys().flat_map(|&(low, high)| [low, high]).collect()
}
