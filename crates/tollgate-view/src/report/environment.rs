//! A short description of an environment.

use tollgate_model::FactValue;

use crate::page::{Environment, Text};
use crate::pictures::curve;

use super::subject::Subject;
use super::verdict;
use crate::{facts, figures};

/// Characters of a value.
const LONGEST: usize = 80;

/// The head of the page.
pub fn of(subject: &Subject) -> Environment {
    Environment {
        name: Text::new(&subject.name),
        about: texts(about(subject)),
        quality: verdict::quality(subject),
        details: texts(details(subject)),
    }
}

fn texts<const N: usize>(pairs: [(&str, Option<String>); N]) -> Vec<(Text, Text)> {
    let known =
        pairs.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    known.map(|(name, value)| (Text::from(name), Text::cut(&value, LONGEST))).collect()
}

/// What decides its latencies.
fn about(subject: &Subject) -> [(&'static str, Option<String>); 6] {
    let run = subject.summary.run;
    let facts = &run.facts;
    let value = |name: &str| facts.get(name)?.value();
    let text = |name: &str| value(name).map(ToString::to_string);
    let caches: Vec<String> = curve::caches(facts).into_iter().map(|(name, _)| name).collect();
    let layers = match value("hypervisor.layers") {
        Some(FactValue::List(layers)) => layers.join(" in "),
        _ => String::new(),
    };
    let number = facts::number(facts, "cpu.online")
        .map(|number| figures::count(number as usize, "processor", "processors"));
    // Those that do something: "Not affected" and "Vulnerable" cost nothing.
    let on = facts.iter().filter_map(|(name, fact)| {
        let name = name.strip_prefix("mitigation.")?;
        let value = fact.value()?;
        let is_on = value
            .as_flag()
            .unwrap_or_else(|| value.as_text().is_some_and(|text| text.starts_with("Mitigation")));
        is_on.then(|| name.replace('_', " "))
    });
    let on: Vec<String> = on.collect();
    [
        ("Processor", text("cpu.model")),
        ("Processors", number),
        ("Caches", Some(caches.join(", "))),
        ("Kernel", text("kernel.release").map(|release| format!("Linux {release}"))),
        (
            "Environment",
            Some(if layers.is_empty() {
                run.environment.to_string()
            } else {
                format!("{} ({layers})", run.environment)
            }),
        ),
        (
            "Mitigations that are on",
            Some(on.join(", ")).filter(|on| !on.is_empty()).map(|on| format!("mitigations: {on}")),
        ),
    ]
}

/// When, where and by what it was measured.
fn details(subject: &Subject) -> [(&'static str, Option<String>); 7] {
    let run = subject.summary.run;
    let facts = &run.facts;
    let text = |name: &str| facts.get(name)?.value().map(ToString::to_string);
    let clock = text(facts::CLOCK).map(|clock| {
        let pace = facts::number(facts, facts::CLOCK_HZ).map(figures::frequency);
        format!("{clock}{}", pace.map(|pace| format!(", {pace}")).unwrap_or_default())
    });
    let rows = &subject.summary.rows;
    let measured = subject.summary.measured().count();
    [
        ("Begun", Some(run.started.clone())),
        ("Ended", Some(run.finished.clone())),
        ("Cases measured", Some(format!("{measured} of {}", rows.len()))),
        ("Measured on processor", text(facts::CPU)),
        ("Clock", clock),
        ("Run", Some(run.id.to_string())),
        ("Made by", Some(format!("{} {}", run.tool.name, run.tool.version))),
    ]
}
