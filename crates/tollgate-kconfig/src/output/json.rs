//! Configurations as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::asked::Asked;
use super::chosen::Chosen;
use super::text;
use crate::{
    Configuration, Counts, Difference, Entry, Foreign, Kind, Overridden, Repeated, Source, compare, counter,
    identity, overridden,
};

/// The output of `--format json`.
#[derive(Serialize)]
pub struct Document<'a> {
    configurations: Vec<Record<'a>>,
    differences: Vec<Differs<'a>>,
}

/// One configuration.
#[derive(Serialize)]
struct Record<'a> {
    path: &'a str,
    running: bool,
    source: &'static str,
    compressions: Vec<&'static str>,
    release: Option<&'a str>,
    version: Option<&'a str>,
    architecture: Option<&'a str>,
    compiler: Option<String>,
    #[serde(flatten)]
    counts: Counts,
    unended: bool,
    repeated: Option<&'a Repeated>,
    foreign: Option<&'a Foreign>,
    command_line: Option<&'a str>,
    overridden: Vec<Overridden>,
    renamed: Vec<Renamed<'a>>,
    areas: Vec<InArea>,
    affecting: Vec<Affecting<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<BTreeMap<&'a str, String>>,
}

#[derive(Serialize)]
struct Renamed<'a> {
    option: &'a str,
    formerly: &'a str,
}

#[derive(Serialize)]
struct InArea {
    name: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

/// An option that affects a boundary, offered or not.
#[derive(Serialize)]
struct Affecting<'a> {
    option: &'a str,
    area: &'static str,
    value: Option<String>,
    without: Option<&'static str>,
    affects: Option<Affects>,
}

#[derive(Serialize)]
struct Affects {
    /// The boundaries that it affects.
    boundaries: String,
    why: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct Differs<'a> {
    option: &'a str,
    area: &'static str,
    kind: &'static str,
    values: Vec<Option<String>>,
    formerly: Vec<Option<&'a str>>,
    without: Option<&'static str>,
    affects: Option<Affects>,
}

impl<'a> Document<'a> {
    /// The chosen ones of these.
    pub fn of(chosen: &'a [Chosen], asked: &Asked) -> Self {
        let configurations: Vec<&Configuration> = chosen.iter().map(|it| &it.reading.configuration).collect();
        let differences = compare(&configurations);
        Self {
            configurations: chosen.iter().map(|it| Record::of(it, asked)).collect(),
            differences: differences.iter().filter(|it| asked.has(it.area)).map(Differs::of).collect(),
        }
    }
}

impl<'a> Record<'a> {
    fn of(chosen: &'a Chosen, asked: &Asked) -> Self {
        let reading = &chosen.reading;
        let configuration = &reading.configuration;
        let given = chosen.command_line.as_deref().map(overridden).unwrap_or_default();
        let counters = counter(configuration);
        let of_areas = counters.iter().filter(|counter| asked.has(counter.area));
        let options = || {
            let options = configuration.options.iter().filter(|(name, _)| asked.has(identity(name).area));
            options.map(|(name, value)| (name.as_str(), value.to_string())).collect()
        };
        Self {
            path: &chosen.path,
            running: chosen.running,
            source: match reading.source {
                Source::Plain => "plain",
                Source::Compressed => "compressed",
                Source::Embedded => "embedded",
            },
            compressions: reading.compressions.iter().map(|compression| compression.name()).collect(),
            release: reading.release.as_deref(),
            version: configuration.version.as_deref(),
            architecture: configuration.architecture.as_deref(),
            compiler: configuration.compiler(),
            counts: Counts::of(configuration),
            unended: configuration.unended,
            repeated: configuration.repeated.as_ref(),
            foreign: configuration.foreign.as_ref(),
            command_line: chosen.command_line.as_deref(),
            overridden: given,
            renamed: text::renamed(configuration)
                .map(|(formerly, option)| Renamed { option, formerly })
                .collect(),
            areas: of_areas
                .map(|counter| InArea { name: counter.area.name, counts: counter.counts })
                .collect(),
            affecting: affecting(configuration, asked),
            options: asked.every_option.then(options),
        }
    }
}

/// Every option that is known to affect a latency, with its value here.
fn affecting<'a>(configuration: &'a Configuration, asked: &Asked) -> Vec<Affecting<'a>> {
    let mut affecting = Vec::new();
    for area in &asked.areas {
        for entry in area.entries.iter().filter(|entry| entry.affects.is_some()) {
            let names = std::iter::once(&entry.name).chain(entry.formerly);
            let value = names.filter_map(|name| configuration.value(name)).next();
            let value = value.map(ToString::to_string);
            affecting.push(Affecting {
                option: entry.name,
                area: area.name,
                value,
                without: entry.without,
                affects: Affects::of(Some(entry)),
            });
        }
    }
    affecting
}

impl Affects {
    fn of(entry: Option<&Entry>) -> Option<Self> {
        let affects = entry?.affects?;
        let effect = affects.effect;
        Some(Self { boundaries: effect.reach.to_string(), why: effect.how, source: affects.source })
    }
}

impl<'a> Differs<'a> {
    fn of(difference: &Difference<'a>) -> Self {
        Self {
            option: difference.name,
            area: difference.area.name,
            kind: match difference.kind {
                Kind::Set => "set",
                Kind::Offered => "offered",
            },
            values: difference.values.iter().map(|value| value.map(ToString::to_string)).collect(),
            formerly: difference.formerly.clone(),
            without: difference.entry.and_then(|entry| entry.without),
            affects: Affects::of(difference.entry),
        }
    }
}
