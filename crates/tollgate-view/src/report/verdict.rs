//! The verdict strip: how far the figures can be trusted, and what is slow here.

use crate::page::{Expensive, Quality, Text};
use tollgate_model::Case;

use super::subject::Subject;
use crate::health::{self, State};
use crate::summary::Noise;
use crate::{advice, figures};

/// The first screen has room for so many.
const MOST: usize = 6;

/// What is slow, the first findings of a run.
pub fn expensive(subject: &Subject) -> Vec<Expensive> {
    subject
        .findings
        .iter()
        .take(MOST)
        .map(|finding| {
            let benchmark = finding.from.first().map_or("", |case| case.benchmark.as_str());
            Expensive {
                what: Text::new(&finding.sentence),
                benchmark: benchmark.into(),
                ..Expensive::default()
            }
        })
        .collect()
}

/// The findings that are not at the top, each with its first case.
pub fn further<'b>(subject: &'b Subject) -> impl Iterator<Item = (&'b Case, Text)> {
    let shown = if subject.is_one_of_several { 0 } else { MOST };
    let findings = subject.findings.iter().skip(shown);
    findings.filter_map(|finding| Some((finding.from.first()?, Text::new(&finding.sentence))))
}

/// The quality of a run.
pub fn quality(subject: &Subject) -> Quality {
    let summary = &subject.summary;
    let poor: Vec<String> = health::of_moment(summary.run)
        .into_iter()
        .filter(|check| check.judged.state == State::Poor)
        .map(|check| format!("{}: {}", check.name, check.judged.found))
        .collect();
    let all = summary.measured().count();
    let is_wide = |noise: &Noise| matches!(noise, Noise::Wide(_) | Noise::FewProcesses(_));
    let wide = summary.measured().filter(|(_, figures)| figures.noise().iter().any(is_wide)).count();
    let grade = match (poor.is_empty(), wide * 10 > all) {
        (true, false) => "good",
        (false, true) => "poor",
        _ => "fair",
    };
    let wide = (wide * 10 > all)
        .then(|| format!("{wide} of {} have a CI wider than ±10 %", figures::count(all, "row", "rows")));
    let warnings = advice::of(summary);
    Quality {
        grade: grade.into(),
        reasons: wide.into_iter().chain(poor).take(2).map(Text::from).collect(),
        warnings: warnings
            .iter()
            .map(|advice| Text::new(&format!("{}. {}", advice.warning, advice.remedy)))
            .collect(),
    }
}
