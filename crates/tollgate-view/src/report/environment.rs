//! A short description of an environment.

use crate::page::{Environment, Text};

use super::subject::Subject;
use crate::{advice, facts, figures};

/// Characters of a value.
const LONGEST: usize = 80;
/// The first so many items are shown where there are several environments.
const MOST_OF_SEVERAL: usize = 5;

/// The items at the top of the page.
pub fn of(subject: &Subject) -> Environment {
    let run = subject.summary.run;
    let facts = &run.facts;
    let text = |name: &str| facts.get(name)?.value().map(ToString::to_string);
    let clock = text(facts::CLOCK).map(|clock| {
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        format!("{clock}{}", pace.map(|pace| format!(", {pace}")).unwrap_or_default())
    });
    // Of several environments only the items that distinguish them are shown.
    let most = if subject.is_one_of_several { MOST_OF_SEVERAL } else { usize::MAX };
    let about = [
        ("Environment", Some(run.environment.to_string())),
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
    Environment { name: Text::new(&subject.name), about: known.collect() }
}

/// The reasons why its figures are noisy, and the remedies.
pub fn warnings(subject: &Subject) -> Vec<Text> {
    let prefix = subject.prefix(": ");
    let advice = advice::of(&subject.summary).into_iter();
    advice.map(|advice| Text::new(&format!("{prefix}{}. {}", advice.warning, advice.remedy))).collect()
}
