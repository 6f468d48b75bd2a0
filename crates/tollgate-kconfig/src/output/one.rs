//! Shows one configuration: the options that affect latencies, and its counts by area.

use std::collections::BTreeMap;

use tollgate_output::table::{Look, Table, heading, paragraph};

use super::affecting::{Options, affecting, row, table};
use super::asked::Asked;
use super::chosen::Chosen;
use super::text;
use crate::{Area, Counts, Entry, Overridden, Value, counter, identity, overridden};

pub(crate) fn show(chosen: &Chosen, asked: &Asked, width: usize) -> String {
    let configuration = &chosen.reading.configuration;
    let mut text = heading(&text::kernel(chosen), width);
    text.push_str(&paragraph(&text::source(chosen), width, ""));
    text.push_str(&paragraph(&text::counts(Counts::of(configuration)), width, ""));
    text.push_str(&text::oddities(configuration, width));
    let given = chosen.command_line.as_deref().map(overridden).unwrap_or_default();
    if chosen.running {
        text.push_str(&parameters(chosen, &given, width));
    }
    text.push('\n');
    let (areas, options) = (areas(chosen, asked, width), options(chosen));
    let parts = if asked.every_option {
        [areas, every(&options, &given, asked, width)]
    } else {
        [affecting(configuration, &options, &given, asked, width), areas]
    };
    text.push_str(&parts.join("\n"));
    text.push('\n');
    text.push_str(&paragraph(text::NOT_STATE, width, ""));
    text
}

fn areas(chosen: &Chosen, asked: &Asked, width: usize) -> String {
    let mut table = Table::new(&["area", "built in", "modules", "off", "values"]).with_dispensable(1);
    for counter in counter(&chosen.reading.configuration).iter().filter(|counter| asked.has(counter.area)) {
        let Counts { built_in, modules, off, valued } = counter.counts;
        let counts = [built_in, modules, off, valued].map(|count| count.to_string());
        let look = if counter.counts.all() == 0 { Look::Faint } else { Look::Plain };
        let cells: Vec<String> = std::iter::once(counter.area.name.to_owned()).chain(counts).collect();
        let about = asked.explained.then(|| counter.area.about.to_owned());
        table.row(look, &cells, &Vec::from_iter(about));
    }
    table.render(width)
}

fn options(chosen: &Chosen) -> Options<'_> {
    let mut options = Options::new();
    for (name, value) in &chosen.reading.configuration.options {
        let now = identity(name).name;
        // If the text has both names, the current one counts.
        if now == name || !options.contains_key(now) {
            options.insert(now, value);
        }
    }
    options
}

fn every(options: &Options, given: &[Overridden], asked: &Asked, width: usize) -> String {
    let mut by_area: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
    for (&name, &value) in options {
        by_area.entry(identity(name).area.name).or_default().push((name, value));
    }
    let mut table = table();
    for area in &asked.areas {
        let Some(options) = by_area.get(area.name) else { continue };
        table.heading(area.name);
        let (affecting, others): (Vec<_>, Vec<_>) =
            options.iter().partition(|(name, _)| entry_of(area, name).is_some_and(|it| it.affects.is_some()));
        for (name, value) in affecting.into_iter().chain(others) {
            row(&mut table, name, Some(value), entry_of(area, name), given);
        }
    }
    table.render(width)
}

fn entry_of(area: &Area, name: &str) -> Option<&'static Entry> {
    identity(name).entry.filter(|_| identity(name).area.name == area.name)
}

fn parameters(chosen: &Chosen, given: &[Overridden], width: usize) -> String {
    let sentence = match (&chosen.command_line, text::parameters(given).as_slice()) {
        (None, _) => "The command line of this kernel cannot be read.".to_owned(),
        (Some(_), []) => "Its command line overrides none of the options that affect latencies.".to_owned(),
        (Some(_), parameters) => format!("Its command line overrides some: {}.", parameters.join(" ")),
    };
    paragraph(&sentence, width, "")
}
