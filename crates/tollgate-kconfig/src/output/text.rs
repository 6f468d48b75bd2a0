use tollgate_output::figures;
use tollgate_output::table::paragraph;

use super::chosen::Chosen;
use crate::{Configuration, Counts, Entry, Overridden, Value, identity};

/// The width of a value in a table; a longer one goes to a remark.
const LONGEST_VALUE: usize = 12;

pub(crate) const NOT_STATE: &str = "A configuration shows how a kernel was built, not its state, which the command line and settings change. `tollgate inspect` shows the state.";

/// Describes the kernel: `Linux 6.18.5, x86, 64 bits, built by gcc 15.3.0`.
pub(crate) fn kernel(chosen: &Chosen) -> String {
    let configuration = &chosen.reading.configuration;
    let mut words = vec![match &configuration.version {
        Some(version) => format!("Linux {version}"),
        None => "a kernel of unknown version".to_owned(),
    }];
    words.extend(configuration.architecture().map(str::to_owned));
    let is_built_in = |name: &str| configuration.value(name) == Some(&Value::BuiltIn);
    // Before 2.6.24, x86 had no 64BIT.
    match (configuration.value("64BIT"), is_built_in("X86_64"), is_built_in("X86_32")) {
        (Some(Value::BuiltIn), ..) | (None, true, _) => words.push("64 bits".to_owned()),
        (Some(_), ..) | (None, _, true) => words.push("32 bits".to_owned()),
        (None, false, false) => {}
    }
    words.extend(configuration.compiler().map(|compiler| format!("built by {compiler}")));
    words.join(", ")
}

/// Names the source: `/proc/config.gz, unpacked from gzip`.
pub(crate) fn source(chosen: &Chosen) -> String {
    let unpacked = if chosen.reading.is_compressed { ", unpacked from gzip" } else { "" };
    format!("{}{unpacked}", chosen.path)
}

pub(crate) fn counts(counts: Counts) -> String {
    let modules = figures::count(counts.modules, "module", "modules");
    let (built_in, off, valued) = (counts.built_in, counts.off, counts.valued);
    format!("{built_in} built in, {modules}, {off} off; {valued} numbers and texts")
}

/// Describes oddities of the text, one per line.
pub(crate) fn oddities(configuration: &Configuration, width: usize) -> String {
    let mut shown = Vec::new();
    if let Some(foreign) = &configuration.foreign {
        let are = if foreign.lines == 1 { "is not an option and was" } else { "are not options and were" };
        let lines = figures::count(foreign.lines, "line", "lines");
        let first = if foreign.lines == 1 { "it is" } else { "the first is" };
        shown.push(format!("{lines} {are} left out; {first} line {}: {:?}", foreign.first, foreign.excerpt));
    }
    if let Some(repeated) = &configuration.repeated {
        let lines = figures::count(repeated.lines, "line sets an option", "lines set an option");
        let first = format!("{} in line {}", repeated.name, repeated.first);
        shown.push(format!("{lines} again, as {first} does; the last one counts, as in Kconfig"));
    }
    if configuration.unended {
        shown.push("the last line has no end: the file may be cut short".to_owned());
    }
    shown.iter().map(|sentence| paragraph(sentence, width, "! ")).collect()
}

/// Shortens a value for a table; `-` if the option is not offered.
pub(crate) fn value(value: Option<&Value>) -> String {
    match value.map(ToString::to_string) {
        None => "-".to_owned(),
        Some(text) if text.chars().count() <= LONGEST_VALUE => text,
        Some(text) => text.chars().take(LONGEST_VALUE - 1).chain(['…']).collect(),
    }
}

pub(crate) fn long_value(value: Option<&Value>) -> Option<String> {
    value.map(ToString::to_string).filter(|text| text.chars().count() > LONGEST_VALUE)
}

/// Returns the former and current names of options that this kernel has under a former name.
pub(crate) fn renamed(configuration: &Configuration) -> impl Iterator<Item = (&str, &str)> {
    configuration
        .options
        .keys()
        .map(|name| (name.as_str(), identity(name).name))
        .filter(|(was, is)| was != is)
}

/// Returns each parameter that overrides options once, in the order of the table.
pub(crate) fn parameters(given: &[Overridden]) -> Vec<&str> {
    let mut once: Vec<&str> = Vec::new();
    for it in given {
        if !once.contains(&it.parameter.as_str()) {
            once.push(&it.parameter);
        }
    }
    once
}

pub(crate) fn about(entry: &Entry) -> Option<String> {
    match (entry.affects, entry.about) {
        (Some(affects), _) => Some(affects.effect.to_string()),
        (None, about) => about.map(str::to_owned),
    }
}
