//! The same for programs that read it.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_kconfig::{
    Configuration, Counts, Difference, Entry, Kind, Source, compare, counter, identity, overridden,
};

use super::asked::Asked;
use super::chosen::Chosen;
use super::words;

/// What `--format json` prints.
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
    counts: Counted,
    unended: bool,
    repeated: Option<Repeated<'a>>,
    foreign: Option<Foreign<'a>>,
    command_line: Option<&'a str>,
    overridden: Vec<Override>,
    renamed: Vec<Renamed<'a>>,
    areas: Vec<InArea>,
    moving: Vec<Moving<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<BTreeMap<&'a str, String>>,
}

#[derive(Serialize)]
struct Counted {
    built_in: usize,
    modules: usize,
    off: usize,
    valued: usize,
}

#[derive(Serialize)]
struct Repeated<'a> {
    lines: usize,
    first_line: usize,
    first: &'a str,
}

#[derive(Serialize)]
struct Foreign<'a> {
    lines: usize,
    first_line: usize,
    first: &'a str,
}

#[derive(Serialize)]
struct Override {
    option: &'static str,
    parameter: String,
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
    counts: Counted,
}

/// An option that affects a boundary, offered or not.
#[derive(Serialize)]
struct Moving<'a> {
    option: &'a str,
    area: &'static str,
    value: Option<String>,
    without: Option<&'static str>,
    moves: Option<Moves>,
}

#[derive(Serialize)]
struct Moves {
    /// The boundaries that it affects.
    estimates: String,
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
    moves: Option<Moves>,
}

impl<'a> Document<'a> {
    /// What was asked for of these.
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
            counts: Counts::of(configuration).into(),
            unended: configuration.unended,
            repeated: configuration.repeated.as_ref().map(|it| Repeated {
                lines: it.lines,
                first_line: it.first,
                first: &it.name,
            }),
            foreign: configuration.foreign.as_ref().map(|it| Foreign {
                lines: it.lines,
                first_line: it.first,
                first: &it.excerpt,
            }),
            command_line: chosen.command_line.as_deref(),
            overridden: given
                .into_iter()
                .map(|it| Override { option: it.option, parameter: it.parameter })
                .collect(),
            renamed: words::renamed(configuration)
                .map(|(formerly, option)| Renamed { option, formerly })
                .collect(),
            areas: of_areas
                .map(|counter| InArea { name: counter.area.name, counts: counter.counts.into() })
                .collect(),
            moving: moving(configuration, asked),
            options: asked.every_option().then(options),
        }
    }
}

/// Every option that is known to affect a latency, with what it is here.
fn moving<'a>(configuration: &'a Configuration, asked: &Asked) -> Vec<Moving<'a>> {
    let mut moving = Vec::new();
    for area in asked.areas() {
        for entry in area.entries.iter().filter(|entry| entry.affects.is_some()) {
            let names = std::iter::once(&entry.name).chain(entry.formerly);
            let value = names.filter_map(|name| configuration.value(name)).next();
            let value = value.map(ToString::to_string);
            moving.push(Moving {
                option: entry.name,
                area: area.name,
                value,
                without: entry.without,
                moves: Moves::of(Some(entry)),
            });
        }
    }
    moving
}

impl Moves {
    fn of(entry: Option<&Entry>) -> Option<Self> {
        let affects = entry?.affects?;
        let effect = affects.effect;
        Some(Self { estimates: effect.reach.to_string(), why: effect.how, source: affects.source })
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
            moves: Moves::of(difference.entry),
        }
    }
}

impl From<Counts> for Counted {
    fn from(counts: Counts) -> Self {
        let Counts { built_in, modules, off, valued } = counts;
        Self { built_in, modules, off, valued }
    }
}
