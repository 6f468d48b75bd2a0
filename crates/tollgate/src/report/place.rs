//! What a place is, in a few words.

use tollgate_view::page::{Place, Text};

use super::subject::Subject;
use crate::{advice, facts, figures};

/// Characters of a value.
const LONGEST: usize = 80;
/// Of what is said of a place, the first so many are said where there are several.
const BESIDE_OTHERS: usize = 5;

/// What is said of a place at the top of the page.
pub fn of(subject: &Subject, is_comparison: bool) -> Place {
    let run = subject.run;
    let facts = &run.facts;
    let text = |name: &str| facts.get(name)?.value().map(ToString::to_string);
    let clock = text(facts::CLOCK).map(|clock| {
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        format!("{clock}{}", pace.map(|pace| format!(", {pace}")).unwrap_or_default())
    });
    // Beside others there is room for what tells them apart.
    let most = if is_comparison { BESIDE_OTHERS } else { usize::MAX };
    let about = [
        ("Place", Some(run.environment.to_string())),
        ("Processor", text("cpu.model")),
        ("Kernel", text("kernel.release")),
        ("Clock", clock),
        ("Begun", Some(run.started.clone())),
        ("Measured on processor", text(facts::CPU)),
        ("Ended", Some(run.finished.clone())),
        ("Run", Some(run.id.to_string())),
        ("Made by", Some(format!("{} {}", run.tool.name, run.tool.version))),
    ];
    let known = about
        .into_iter()
        .take(most)
        .filter_map(|(name, value)| Some((Text::from(name), Text::cut(&value?, LONGEST))));
    Place { name: Text::new(&subject.name), about: known.collect() }
}

/// What makes its prices less sure, and what to do about it.
pub fn warnings(subject: &Subject, is_comparison: bool) -> Vec<Text> {
    let place = if is_comparison { format!("{}: ", subject.name) } else { String::new() };
    let advice = advice::of(subject.run, &subject.estimates).into_iter();
    advice.map(|advice| Text::new(&format!("{place}{}. {}", advice.warning, advice.remedy))).collect()
}
