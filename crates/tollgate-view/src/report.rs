//! The content of a page of runs; its form is in [`crate::page`]. As Markdown, it is the summary of a CI job.

mod changes;
mod curves;
mod differences;
mod dots;
mod environment;
mod ipc;
mod kernels;
mod known;
mod levels;
mod locks;
mod markdown;
mod matrix;
mod panels;
mod picture;
mod ratios;
mod rows;
mod ruler;
mod scaling;
mod sections;
mod split;
mod subject;
mod suites;
mod traced;
mod verdict;

use tollgate_model::Run;
use tollgate_model::compare::Spread;

use crate::page::{Page, Text};
pub use markdown::markdown;
pub use picture::picture_of;
use subject::Subject;

/// Describes a case that belongs to no benchmark, by its name, in a sentence.
pub type About = fn(&str) -> Option<&'static str>;

/// The page of runs, of which there is at least one. `other` knows cases that belong to no suite; `spread` is the machine's
/// run-to-run spread.
pub fn page_of(runs: &[Run], other: About, spread: &Spread) -> Page {
    let subjects = Subject::all(runs);
    let comparisons = differences::all(&subjects, spread, 0.0);
    let (kernels, title_of_kernels) = kernels::figure(&subjects).unzip();
    let mut facts = known::of(&subjects, &comparisons);
    // The table of the kernels has all counts and changes.
    let (changes, sections) = match kernels {
        Some(_) => (Vec::new(), Vec::new()),
        None => {
            let sections = sections::of(&subjects, &comparisons, other, &mut facts.by_suite);
            (changes::tables(&subjects, &comparisons), sections)
        }
    };
    Page {
        title: title_of_kernels.unwrap_or_else(|| title(&subjects)),
        maker: maker(&subjects),
        environments: subjects.iter().map(environment::of).collect(),
        expensive: match subjects.as_slice() {
            [subject] => verdict::expensive(subject),
            _ => Vec::new(),
        },
        counts: if kernels.is_some() { Vec::new() } else { differences::counts(&subjects, &comparisons) },
        ratios: kernels.or_else(|| ratios::figure(&subjects, &comparisons)),
        differences: differences::sentences(&subjects, &comparisons),
        differing: [
            changes,
            split::tables(&subjects, &comparisons),
            differences::facts(&subjects, &comparisons),
        ]
        .concat(),
        ruler: ruler::figure(&subjects),
        sections,
        facts: facts.by_suite.into_values().chain(facts.others).collect(),
    }
}

/// For one run, the machine and its first finding; for several, their names.
fn title(subjects: &[Subject]) -> Text {
    Text::new(&match subjects {
        [subject] => verdict::title(subject),
        _ => names(subjects),
    })
}

fn names(subjects: &[Subject]) -> String {
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    match names.as_slice() {
        [base, others @ ..] if !others.is_empty() => format!("{} compared with {base}", others.join(", ")),
        names => names.concat(),
    }
}

fn maker(subjects: &[Subject]) -> Text {
    let program = format!("tollgate {}", env!("CARGO_PKG_VERSION"));
    Text::new(&match subjects {
        [subject] => format!("{program}, run {}", names(std::slice::from_ref(subject))),
        _ => program,
    })
}
