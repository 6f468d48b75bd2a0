//! Pictures side by side, one for each environment.

use super::subject::Subject;
use crate::page::{Drawing, Key, MAX_ENVIRONMENTS, Panel, Sign, Text};

/// The signs of the environments, where there are several.
pub fn keys(subjects: &[Subject]) -> Vec<Key> {
    let key = |subject: &Subject| Key { sign: Sign::Look(subject.look), name: Text::label(&subject.name) };
    if subjects.len() < 2 { Vec::new() } else { subjects.iter().map(key).collect() }
}

/// A picture of each environment that has one, side by side.
pub fn panels<'a, 'b>(
    subjects: &'b [Subject<'a>],
    draw: impl Fn(&'b Subject<'a>) -> Option<Drawing>,
) -> Vec<Panel> {
    let is_comparison = subjects.len() > 1;
    let panel = |subject: &'b Subject<'a>| {
        Some(Panel {
            name: is_comparison.then(|| Text::label(&subject.name)),
            environment: is_comparison.then_some(subject.look.min(MAX_ENVIRONMENTS)),
            drawing: draw(subject)?,
        })
    };
    subjects.iter().filter_map(panel).collect()
}
