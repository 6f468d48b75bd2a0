use tollgate_output::figures;

use super::subject::Subject;
use super::verdict;
use crate::page::{Environment, Text};
use crate::{facts, screen};

const LONGEST: usize = 80;

pub fn of(subject: &Subject) -> Environment {
    Environment {
        name: Text::new(&subject.name),
        about: screen::machine(&subject.summary).map(Text::from),
        quality: verdict::quality(subject),
        details: details(subject),
    }
}

fn details(subject: &Subject) -> Vec<(Text, Text)> {
    let run = subject.summary.run;
    let facts = &run.facts;
    let text = |name: &str| facts.get(name)?.value().map(ToString::to_string);
    let clock = text(facts::CLOCK).map(|clock| {
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        format!("{clock}{}", pace.map(|pace| format!(", {pace}")).unwrap_or_default())
    });
    let rows = &subject.summary.rows;
    let measured = subject.summary.measured().count();
    let details = [
        ("Begun", Some(run.started.clone())),
        ("Ended", Some(run.finished.clone())),
        ("Cases measured", Some(format!("{measured} of {}", rows.len()))),
        ("Measured on processor", text(facts::CPU)),
        ("Clock", clock),
        ("Run", Some(run.id.to_string())),
        ("Session", run.session.as_ref().map(|part| part.id.to_string())),
        ("Command", run.session.as_ref().and_then(|part| Some(part.command.as_ref()?.line.clone()))),
        ("Environment", run.session.as_ref().map(|part| part.environment.clone())),
        ("Lost", text(facts::LOST)),
        ("Made by", Some(format!("{} {}", run.tool.name, run.tool.version))),
    ];
    let known =
        details.into_iter().filter_map(|(name, value)| Some((Text::from(name), Text::cut(&value?, LONGEST))));
    known.collect()
}
