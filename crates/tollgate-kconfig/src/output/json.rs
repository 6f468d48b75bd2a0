use std::collections::BTreeMap;

use serde::Serialize;

use super::asked::Asked;
use super::chosen::Chosen;
use super::text;
use crate::{
    Configuration, Counts, Difference, DifferenceKind, Entry, Foreign, Overridden, Repeated, compare,
    counter, identity, overridden,
};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Configurations"))]
pub struct ConfigDocument<'a> {
    /// One object per file.
    configurations: Vec<ConfigurationRecord<'a>>,
    /// Options that differ between the files.
    differences: Vec<Differs<'a>>,
}

/// One configuration.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Configuration"))]
struct ConfigurationRecord<'a> {
    /// The path of its file.
    path: &'a str,
    /// Whether it is the configuration of the running kernel.
    running: bool,
    /// `plain`, or `compressed` (by gzip(1)).
    source: &'static str,
    /// The kernel's version, or null.
    version: Option<&'a str>,
    /// The architecture, or null.
    architecture: Option<&'a str>,
    /// The compiler, or null.
    compiler: Option<String>,
    #[serde(flatten)]
    counts: Counts,
    /// Whether its last line lacks a newline.
    unended: bool,
    /// Options that are set more than once, or null.
    repeated: Option<&'a Repeated>,
    /// Lines that are neither options nor comments, or null.
    foreign: Option<&'a Foreign>,
    /// The kernel's command line, or null.
    command_line: Option<&'a str>,
    /// Options that a parameter of the command line overrides.
    overridden: Vec<Overridden>,
    /// Options that the file has under a former name.
    renamed: Vec<Renamed<'a>>,
    /// The number of options in each area.
    areas: Vec<InArea>,
    /// Options that affect a boundary.
    affecting: Vec<Affecting<'a>>,
    /// With `--area` or `--all`, the value of each option; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<BTreeMap<&'a str, String>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Renamed<'a> {
    /// Its name now.
    option: &'a str,
    /// Its name in the file.
    formerly: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OptionsOfArea"))]
struct InArea {
    /// The area.
    name: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

/// An option that affects a boundary, offered or not.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AffectingOption"))]
struct Affecting<'a> {
    /// Its name.
    option: &'a str,
    /// Its area.
    area: &'static str,
    /// Its value as in the file: `y`, `m`, `n`, a number or a quoted text; null if the option is not offered.
    value: Option<String>,
    /// The kernel's behaviour without it, or null.
    without: Option<&'static str>,
    /// The boundaries that it affects, or null.
    affects: Option<Affects>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Affects {
    /// The names of the boundaries.
    boundaries: String,
    /// How it affects them.
    why: &'static str,
    /// The source that describes this.
    source: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DifferentOption"))]
struct Differs<'a> {
    /// Its name.
    option: &'a str,
    /// Its area.
    area: &'static str,
    /// `set` or `offered`.
    kind: &'static str,
    /// One value per file, as in the file; null if the option is not offered there.
    values: Vec<Option<String>>,
    /// One per file: its name in that file if that is a different one, else null.
    formerly: Vec<Option<&'a str>>,
    /// The kernel's behaviour without it, or null.
    without: Option<&'static str>,
    /// The boundaries that it affects, or null.
    affects: Option<Affects>,
}

impl<'a> ConfigDocument<'a> {
    /// Builds the document from these configurations.
    pub fn new(chosen: &'a [Chosen], asked: &Asked) -> Self {
        let configurations: Vec<&Configuration> = chosen.iter().map(|it| &it.reading.configuration).collect();
        let differences = compare(&configurations);
        Self {
            configurations: chosen.iter().map(|it| ConfigurationRecord::new(it, asked)).collect(),
            differences: differences
                .iter()
                .filter(|it| asked.has(it.area))
                .map(|it| Differs::from_difference(it, &configurations))
                .collect(),
        }
    }
}

impl<'a> ConfigurationRecord<'a> {
    fn new(chosen: &'a Chosen, asked: &Asked) -> Self {
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
            source: if reading.is_compressed { "compressed" } else { "plain" },
            version: configuration.version.as_deref(),
            architecture: configuration.architecture(),
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

/// Every option that is known to affect a latency, with its value in this configuration.
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
                without: entry.without_in(configuration),
                affects: Affects::from_entry(Some(entry)),
            });
        }
    }
    affecting
}

impl Affects {
    fn from_entry(entry: Option<&Entry>) -> Option<Self> {
        let affects = entry?.affects?;
        let effect = affects.effect;
        Some(Self { boundaries: effect.reach.to_string(), why: effect.how, source: affects.source })
    }
}

impl<'a> Differs<'a> {
    fn from_difference(difference: &Difference<'a>, configurations: &[&Configuration]) -> Self {
        Self {
            option: difference.name,
            area: difference.area.name,
            kind: match difference.kind {
                DifferenceKind::Set => "set",
                DifferenceKind::Offered => "offered",
            },
            values: difference.values.iter().map(|value| value.map(ToString::to_string)).collect(),
            formerly: difference.formerly.clone(),
            without: difference.without(configurations),
            affects: Affects::from_entry(difference.entry),
        }
    }
}
