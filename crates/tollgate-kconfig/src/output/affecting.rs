//! The options of one configuration that affect latencies: in short by area, or with the reasons.

use std::collections::BTreeMap;

use tollgate_output::table::{Look, Table, heading, paragraph};

use super::asked::Asked;
use super::text;
use crate::{Area, Configuration, Entry, Overridden, Value};

const NOT_OFFERED: &str = "not offered";
/// At most this many missing options are named. If there are more, as in a fragment, they are only counted.
const MOST_LACKING: usize = 60;
/// Above this number, options of one area that are off are only counted: the debugging checks are off almost everywhere.
const MOST_OF_AREA: usize = 15;

/// The options of a configuration, by current name.
pub(crate) type Options<'a> = BTreeMap<&'a str, &'a Value>;

type ByArea = Vec<(&'static Area, Vec<&'static str>)>;

/// The entries of an area that affect a latency: those that are on, and the others.
struct InArea {
    area: &'static Area,
    on: Vec<&'static Entry>,
    others: Vec<&'static Entry>,
}

pub(crate) fn affecting(
    configuration: &Configuration,
    options: &Options,
    given: &[Overridden],
    asked: &Asked,
    width: usize,
) -> String {
    let areas: Vec<InArea> = asked.areas.iter().map(|area| in_area(area, options)).collect();
    let mut text = heading("Options that affect latencies", width);
    text.push_str(&match asked.explained {
        _ if areas.iter().all(|it| it.on.is_empty()) => paragraph("None of them is on.", width, ""),
        true => reasons(&areas, options, given, width),
        false => names(&areas, options, given, width),
    });
    text.push_str(&others(&areas, configuration, options, asked.explained, width));
    if !asked.explained {
        let more = "--explain says which boundaries each of them affects and how, --area NAME lists an area one by \
             one, --all everything.";
        text.push('\n');
        text.push_str(&paragraph(more, width, ""));
    }
    text
}

fn in_area(area: &'static Area, options: &Options) -> InArea {
    let affecting = area.entries.iter().filter(|entry| entry.affects.is_some());
    let (on, others) =
        affecting.partition(|entry| options.get(entry.name).is_some_and(|value| value.is_on()));
    InArea { area, on, others }
}

/// Lists the options that are on, with any value other than `y` and the parameter that overrides it.
fn names(areas: &[InArea], options: &Options, given: &[Overridden], width: usize) -> String {
    let mut table = Table::new(&["area"]);
    let mut long = Vec::new();
    for InArea { area, on, .. } in areas.iter().filter(|it| !it.on.is_empty()) {
        let mut names = Vec::new();
        for entry in on {
            let value = options.get(entry.name).copied();
            let mut name = match value {
                None | Some(Value::BuiltIn) => entry.name.to_owned(),
                value if text::long_value(value).is_some() => format!("{}=…", entry.name),
                value => format!("{}={}", entry.name, text::value(value)),
            };
            let parameters: Vec<&str> =
                given.iter().filter(|it| it.option == entry.name).map(|it| it.parameter.as_str()).collect();
            if !parameters.is_empty() {
                name.push_str(&format!(" ({})", parameters.join(" ")));
            }
            names.push(name);
            // Lines can break at the spaces after the commas of a list.
            long.extend(
                text::long_value(value).map(|text| format!("{} is {}", entry.name, text.replace(',', ", "))),
            );
        }
        table.row(Look::Plain, &[area.name.to_owned()], &[names.join(", ")]);
    }
    let mut text = table.render(width);
    for value in long {
        text.push('\n');
        text.push_str(&paragraph(&value, width, ""));
    }
    text
}

fn reasons(areas: &[InArea], options: &Options, given: &[Overridden], width: usize) -> String {
    let mut table = table();
    for InArea { area, on, .. } in areas.iter().filter(|it| !it.on.is_empty()) {
        table.heading(area.name);
        for entry in on {
            row(&mut table, entry.name, options.get(entry.name).copied(), Some(entry), given);
        }
    }
    table.render(width)
}

/// Lists the options that are off or not offered, one paragraph per reason.
fn others(
    areas: &[InArea],
    configuration: &Configuration,
    options: &Options,
    explained: bool,
    width: usize,
) -> String {
    let mut by_reason: Vec<(&str, ByArea)> = vec![("off", vec![]), (NOT_OFFERED, vec![])];
    for InArea { area, others, .. } in areas {
        for entry in others {
            let why = if options.contains_key(entry.name) {
                "off"
            } else {
                entry.without_in(configuration).unwrap_or(NOT_OFFERED)
            };
            let at = by_reason.iter().position(|(known, _)| *known == why).unwrap_or_else(|| {
                by_reason.push((why, vec![]));
                by_reason.len() - 1
            });
            let areas = &mut by_reason[at].1;
            match areas.last_mut() {
                Some((last, names)) if last.name == area.name => names.push(entry.name),
                _ => areas.push((area, vec![entry.name])),
            }
        }
    }
    let mut text = String::new();
    for (why, areas) in by_reason.iter().filter(|(_, areas)| !areas.is_empty()) {
        let number: usize = areas.iter().map(|(_, names)| names.len()).sum();
        let list = if why == &NOT_OFFERED && number > MOST_LACKING {
            format!("{number} that are known to affect latencies")
        } else {
            listed(areas, explained)
        };
        if ["off", NOT_OFFERED].contains(why) {
            text.push('\n');
        }
        text.push_str(&paragraph(&format!("{why}: {list}"), width, ""));
    }
    text
}

/// Lists names; an area with too many is only counted.
fn listed(areas: &ByArea, all: bool) -> String {
    let (named, counted): (Vec<_>, Vec<_>) =
        areas.iter().partition(|(_, names)| all || names.len() <= MOST_OF_AREA);
    let names = named.iter().flat_map(|(_, names)| names.iter().map(|&name| name.to_owned()));
    let numbers = counted.iter().map(|(area, names)| format!("{} of {}", names.len(), area.name));
    names.chain(numbers).collect::<Vec<String>>().join(", ")
}

pub(crate) fn table() -> Table {
    Table::new(&["option", "is"]).with_words(&["is"])
}

pub(crate) fn row(
    table: &mut Table,
    name: &str,
    value: Option<&Value>,
    entry: Option<&'static Entry>,
    given: &[Overridden],
) {
    let mut remarks: Vec<String> = entry.and_then(text::about).into_iter().collect();
    remarks.extend(text::long_value(value));
    let parameters = given.iter().filter(|it| it.option == name);
    let parameters: Vec<String> =
        parameters.map(|it| format!("the command line has {}", it.parameter)).collect();
    let look = if parameters.is_empty() { Look::Plain } else { Look::Coloured };
    remarks.extend(parameters);
    table.row(look, &[format!("  {name}"), text::value(value)], &remarks);
}
