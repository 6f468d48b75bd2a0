//! `tollgate list`: what can be measured, from the registry; and what is kept.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::BufReader;

use serde::{Deserialize, Serialize};
use tollgate_model::bounded::{self, Bounded};
use tollgate_model::measurement::pairs;
use tollgate_model::run::{ReadError, SCHEMA};
use tollgate_model::text::shorten;
use tollgate_model::{Label, Params, Place, Reach, RunId, Unit, own};
use tollgate_probes::bench::Timed;
use tollgate_probes::{Extent, Probe, SUITES, Selection, Size};

use crate::args::{Format, ListArgs};
use crate::failure::Failure;
use crate::table::{Look, Table, heading, paragraph};
use crate::{out, say, store};

/// Shows the probes that match, or the kept runs.
///
/// # Errors
/// A pattern that matches nothing; a directory that cannot be read.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    match args.runs {
        true => list_runs(args.format),
        false => list_probes(&args.pattern, args.format),
    }
}

#[derive(Serialize)]
struct ProbeRecord {
    name: &'static str,
    suite: &'static str,
    operation: &'static str,
    /// The boundaries that its operation crosses, in any of its cases.
    crosses: Vec<&'static str>,
    /// The instruction that makes the crossing; several where cases differ.
    instruction: Option<String>,
    /// What is called instead, where it is no loop of instructions.
    interface: Option<String>,
    unit: Unit,
    /// Events that are counted beside the time.
    counts: Option<&'static str>,
    /// What a share of the operations is counted for.
    share: Option<&'static str>,
    /// What else is counted.
    tallies: &'static [&'static str],
    /// One object a case; a probe without parameters has one case, an empty object.
    params: Vec<Params>,
    /// The cases that --thorough adds.
    thorough_params: Vec<Params>,
    against: Option<&'static str>,
    /// What is different in the case of the same probe that the others are held against.
    over: Option<Params>,
}

#[derive(Serialize)]
struct Probes {
    probes: Vec<ProbeRecord>,
}

fn list_probes(patterns: &[String], format: Format) -> Result<(), Failure> {
    // Also what is only measured where it is asked for.
    let everything = ["*".to_owned()];
    let patterns = if patterns.is_empty() { &everything } else { patterns };
    let selection = Selection::matching(patterns, Extent::Usual, Size::Small)
        .map_err(|unknown| Failure::input(unknown.to_string()))?;
    let chosen: HashSet<String> = selection.cases().map(|case| case.probe).collect();
    let is_chosen = |probe: &&&'static Probe| chosen.contains(probe.name);
    match format {
        Format::Json => {
            let probes = SUITES.iter().flat_map(|suite| suite.probes.iter().filter(is_chosen));
            out::print_json(&Probes { probes: probes.map(|probe| ProbeRecord::of(probe)).collect() })
        }
        Format::Table => {
            let width = out::width();
            let mut text = String::new();
            for suite in SUITES {
                let probes: Vec<&'static Probe> = suite.probes.iter().filter(is_chosen).copied().collect();
                if probes.is_empty() {
                    continue;
                }
                text.push_str(&heading(&format!("{}: {}", suite.name, suite.about), width));
                for probe in probes {
                    text.push_str(&format!("  {}\n", probe.name));
                    text.push_str(&paragraph(&about(probe), width, "      "));
                }
            }
            out::print(&text)
        }
    }
}

/// What a probe prices, with what, in which cases, and against what.
fn about(probe: &Probe) -> String {
    let mut about = probe.operation.to_owned();
    if let Some(instruction) = instruction(probe) {
        about.push_str(&format!(" Instruction: {instruction}."));
    }
    if let Some(interface) = interface(probe) {
        about.push_str(&format!(" Through {interface}."));
    }
    if let Some(counts) = probe.counts {
        about.push_str(&format!(" Counted: {counts}."));
    }
    if let Some(share) = probe.share {
        about.push_str(&format!(" Counted for one in {} operations: {}.", share.one_of, share.what));
    }
    if !probe.tallies.is_empty() {
        about.push_str(&format!(" Also counted: {}.", probe.tallies.join(", ")));
    }
    about.push_str(&format!(" Crosses {}.", Reach::Boundaries(probe.crosses)));
    about.push_str(&in_words(" Cases: ", &(probe.cases)()));
    about.push_str(&in_words(" With --thorough also: ", &(probe.more)()));
    if let Some(against) = probe.against {
        about.push_str(&format!(" Held against {against}."));
    }
    if let Some(over) = over(probe) {
        about.push_str(&format!(" Held against {}.", pairs(&over)));
    }
    about
}

/// What is different in the case that the others of a probe are held against.
fn over(probe: &Probe) -> Option<Params> {
    (probe.cases)().iter().find_map(|params| {
        let mut over = (probe.over)(params)?;
        over.retain(|name, value| params.get(name) != Some(value));
        (!over.is_empty()).then_some(over)
    })
}

/// ` Cases: instructions = 1, 32, 256.`; nothing where there is one case without parameters.
fn in_words(what: &str, cases: &[Params]) -> String {
    let mut values: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for (name, value) in cases.iter().flatten() {
        let values = values.entry(name).or_default();
        let value = value.to_string();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let of_each: Vec<String> =
        values.iter().map(|(name, values)| format!("{name} = {}", enumerated(values))).collect();
    // Not every combination is a case.
    let all: usize = values.values().map(Vec::len).product();
    let number = if all == cases.len() { String::new() } else { format!(" ({} in all)", cases.len()) };
    if of_each.is_empty() { String::new() } else { format!("{what}{}{number}.", of_each.join("; ")) }
}

/// All of them; of many the first, the last and how many.
fn enumerated(values: &[String]) -> String {
    const MANY: usize = 20;
    match values {
        [first, second, third, .., last] if values.len() > MANY => {
            format!("{first}, {second}, {third}, … {last} ({} values)", values.len())
        }
        _ => values.join(", "),
    }
}

/// The instructions of its cases, each once.
fn instruction(probe: &Probe) -> Option<String> {
    let mut names = Vec::new();
    for params in (probe.cases)() {
        match (probe.timed)(&params) {
            Timed::Loop { instruction, .. } | Timed::Together { instruction, .. }
                if !names.contains(&instruction) =>
            {
                names.push(instruction);
            }
            Timed::Loop { .. } | Timed::Together { .. } | Timed::Whole(_) => {}
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// What its cases call, each once.
fn interface(probe: &Probe) -> Option<String> {
    let mut names = Vec::new();
    for params in (probe.cases)() {
        match (probe.timed)(&params) {
            Timed::Whole(interface) if !names.contains(&interface) => names.push(interface),
            Timed::Loop { .. } | Timed::Together { .. } | Timed::Whole(_) => {}
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

impl ProbeRecord {
    fn of(probe: &'static Probe) -> Self {
        Self {
            name: probe.name,
            suite: probe.suite(),
            operation: probe.operation,
            crosses: probe.crosses.iter().map(|boundary| boundary.name()).collect(),
            instruction: instruction(probe),
            interface: interface(probe),
            unit: probe.unit,
            counts: probe.counts,
            share: probe.share.map(|share| share.what),
            tallies: probe.tallies,
            params: (probe.cases)(),
            thorough_params: (probe.more)(),
            against: probe.against,
            over: over(probe),
        }
    }
}

#[derive(Serialize)]
struct Runs {
    runs: Vec<RunRecord>,
}

#[derive(Serialize)]
struct RunRecord {
    id: RunId,
    label: Option<Label>,
    place: Option<Place>,
    started: Option<String>,
    rows: Option<usize>,
    path: String,
    /// Why the file does not read as a run.
    fault: Option<String>,
}

/// A run document without its samples.
#[derive(Deserialize)]
struct Outline {
    schema: u64,
    id: RunId,
    label: Option<Label>,
    place: Place,
    started: String,
    #[serde(deserialize_with = "bounded::measurements")]
    measurements: Vec<OutlineRow>,
}

#[derive(Deserialize)]
struct OutlineRow {
    probe: String,
}

fn list_runs(format: Format) -> Result<(), Failure> {
    let runs: Vec<RunRecord> = store::kept()?.into_iter().map(RunRecord::of).collect();
    match format {
        Format::Json => out::print_json(&Runs { runs }),
        Format::Table if runs.is_empty() => {
            say::say("no run is kept yet; `tollgate run` makes one");
            Ok(())
        }
        Format::Table => {
            let mut table = Table::new(&["run", "label", "place", "started", "rows"])
                .with_words(&["label", "place", "started"]);
            for run in &runs {
                let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
                let cells = [
                    run.id.to_string(),
                    or_none(run.label.as_ref().map(ToString::to_string)),
                    or_none(run.place.map(|place| place.to_string())),
                    or_none(run.started.clone()),
                    or_none(run.rows.map(|rows| rows.to_string())),
                ];
                let (look, remarks) = match &run.fault {
                    Some(fault) => (Look::Flagged, vec![format!("its file {fault}")]),
                    None => (Look::Plain, Vec::new()),
                };
                table.row(look, &cells, &remarks);
            }
            out::print(&table.render(out::width()))
        }
    }
}

impl RunRecord {
    fn of(entry: store::Entry) -> Self {
        let outline = File::open(&entry.path)
            .map_err(|error| format!("cannot be read: {}", crate::failure::plainly(&error)))
            .and_then(|file| {
                serde_json::from_reader::<_, Outline>(BufReader::new(Bounded::new(file)))
                    .map_err(|error| format!("is not a run document: {}", shorten(&error.to_string())))
            })
            .and_then(|outline| match outline.schema {
                found if found > u64::from(SCHEMA) => Err(ReadError::NewerSchema { found }.to_string()),
                _ if outline.id != entry.id => Err(store::another_run(&outline.id)),
                _ => Ok(outline),
            });
        let path = entry.path.display().to_string();
        match outline {
            Err(fault) => Self {
                id: entry.id,
                label: None,
                place: None,
                started: None,
                rows: None,
                path,
                fault: Some(fault),
            },
            Ok(outline) => {
                let rows =
                    outline.measurements.iter().filter(|row| !row.probe.starts_with(own::SUITE)).count();
                Self {
                    id: entry.id,
                    label: outline.label,
                    place: Some(outline.place),
                    started: Some(outline.started),
                    rows: Some(rows),
                    path,
                    fault: None,
                }
            }
        }
    }
}
