//! The settings that a project's file may give if it is found rather than named: it comes with a repository, which another person may have
//! written.
//!
//! No list here has an option that executes, opens, mounts, writes, deletes, connects, hides, takes unlimited time, or decides an
//! exit status. Options in no list are refused, and a test requires a decision on each new option.

use std::time::Duration;

use tollgate_engine::{Group, Topology};
use tollgate_suites::{Extent, Size};

use super::Setting;
use super::toml::Value;
use crate::time;

const SHOWN: &[(&str, &str)] = &[
    ("", "color"),
    ("run", "counters format verbose"),
    ("list", "format pattern"),
    ("show", "all bench by counters format histogram notes rule sort top tree unit width"),
    ("compare", "all format"),
    ("versus", "all format time-unit"),
    ("claims", "format"),
    ("runs", "format"),
    ("trace", "all by format histogram rule top tree"),
    ("schedules", "format"),
    ("inspect", "all format"),
    ("inspect.aslr", "format"),
    ("inspect.kernel", "format"),
    ("inspect.config", "all explain format"),
    ("decode", "explain format"),
    ("lab", "format"),
    ("export", "format"),
    ("store.list", "format"),
    ("doctor", "format"),
    ("bill", "format"),
    ("environments", "format"),
    ("config", "format"),
];

/// The scope, length and precision of measurements. A verdict depends on them, so they are not taken if the exit status depends
/// on one.
const MEASURED: &[(&str, &str)] = &[
    ("run", "by pattern quick threshold time"),
    ("compare", "by threshold"),
    ("versus", "precision threshold time"),
    ("lab", "experiment"),
];

/// The time of `run --thorough`.
const MOST_TIME: Duration = Duration::from_secs(600);

/// Why a found file may not give a setting: empty if there is no more to say. `None` if it may. `is_gated` if the exit status
/// depends on measurements.
pub fn refusal(setting: &Setting, is_gated: bool) -> Option<&'static str> {
    let table = setting.verb.join(".");
    let has = |list: &[(&str, &str)]| {
        let mut keys = list.iter().filter(|(known, _)| *known == table).flat_map(|(_, keys)| keys.split(' '));
        keys.any(|key| key == setting.key)
    };
    match setting.key.as_str() {
        _ if has(SHOWN) => None,
        _ if !has(MEASURED) => Some(""),
        _ if is_gated => Some("the exit status depends on it"),
        "time" if !is_bounded(&setting.value) => Some("more than 10m"),
        "pattern" if is_on_request(&setting.value) => {
            Some("workloads, environments and large files are measured where they are typed")
        }
        _ => None,
    }
}

fn is_bounded(value: &Value) -> bool {
    value.text().and_then(|text| time::parse_time(text).ok()).is_some_and(|time| time <= MOST_TIME)
}

/// Whether patterns choose cases that execute programs, start environments or fill a disk.
fn is_on_request(value: &Value) -> bool {
    let patterns: Vec<String> = match value {
        Value::List(values) => values.iter().filter_map(Value::text).map(str::to_owned).collect(),
        value => value.text().map(str::to_owned).into_iter().collect(),
    };
    let large = tollgate_suites::large_files();
    // A pattern that matches nothing ends the run.
    tollgate_suites::select(&Topology::here(), &patterns, Extent::Usual, Size::default()).is_ok_and(
        |chosen| {
            chosen.groups.iter().any(|group: &Group| group.usual_time().is_some())
                || chosen.cases().any(|case| tollgate_suites::matches(&large, &case))
        },
    )
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::configuration::options;

    /// Options that a found file may not give.
    const REFUSED: &[(&str, &str)] = &[
        (
            "run",
            "cpu dir exit-undecided explain fail-on in kernels knob label machine on out processes quiet size store switch thorough",
        ),
        ("show", "run"),
        ("explain", "benchmark in stacks"),
        ("compare", "base exit-undecided fail-on"),
        (
            "versus",
            "bench bisect bisect-log budget build by cgroup cleanup cold command-name commands conclude control exit-undecided export-csv export-json export-markdown",
        ),
        (
            "versus",
            "fail-on harness ignore-failure in input label list max-runs min-runs no-trace one out output parameter-list",
        ),
        (
            "versus",
            "parameter-scan parameter-step-size prepare processor quiet read reference reference-name rev runs setup shell show-output",
        ),
        // A build is linked as often as --layouts says, and guests are started for --counts and --kernels.
        ("versus", "counts kernels layouts stacks timeout until-decided warmup with"),
        ("claims", "as-published check processes published quiet time"),
        ("runs.rename", "run"),
        ("runs.delete", "run"),
        (
            "trace",
            "backend blocked calibrate cgroup every for from keys label linger only out pace pid quiet stacks timeline",
        ),
        ("ram", "fs quiet size"),
        ("schedules", "fail-on max-states no-preemption preempt processes processors program rounds"),
        ("inspect", "affects capture dir from only"),
        ("inspect.aslr", "program runs"),
        ("inspect.kernel", "from since symbols"),
        ("inspect.config", "area config"),
        ("decode", "as cpl input live mode one-machine vendor walk"),
        (
            "lab",
            "argument copies dump explain from image iopl label on out program prove quiet steps test-and-set time timer until vendor",
        ),
        // A page is a file.
        ("report", "fail-on format open out run"),
        ("export", "out run"),
        ("store.list", "dir"),
        ("store.add", "dir"),
        ("doctor", "fail-on"),
        ("bill", "time yes"),
        ("environments", "time"),
        ("completions", "shell"),
        ("man", "dir"),
    ];

    fn given_by_files(verb: &Command, table: &str, found: &mut Vec<(String, String)>) {
        found.extend(options(verb).map(|(key, _)| (table.to_owned(), key)));
        for inner in verb.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let joint = if table.is_empty() { "" } else { "." };
            given_by_files(inner, &format!("{table}{joint}{}", inner.get_name()), found);
        }
    }

    #[test]
    fn each_option_of_each_verb_is_on_one_side() {
        let sides = [SHOWN, MEASURED, REFUSED].concat();
        let listed = sides.iter().flat_map(|(table, keys)| keys.split(' ').map(move |key| (*table, key)));
        let mut listed: Vec<_> = listed.map(|(table, key)| (table.to_owned(), key.to_owned())).collect();
        let mut options = Vec::new();
        given_by_files(&crate::args::command(), "", &mut options);
        let unlisted: Vec<_> = options.iter().filter(|one| !listed.contains(one)).collect();
        assert!(
            unlisted.is_empty(),
            "may a file give these that comes with a stranger's repository? It may where they execute, open, write, delete, hide and decide \
             nothing: then they belong to SHOWN or MEASURED, else to REFUSED: {unlisted:?}"
        );
        listed.sort_unstable();
        options.sort_unstable();
        assert_eq!(listed, options);
    }

    #[test]
    fn patterns_that_execute_programs_or_fill_a_disk_are_typed() {
        let text = |pattern: &str| Value::Text(pattern.to_owned());
        for pattern in ["workloads", "work*", "*", "environments", "files/large-write", "files/large*"] {
            assert!(is_on_request(&text(pattern)), "{pattern}");
            assert!(is_on_request(&Value::List(vec![text("entry"), text(pattern)])), "{pattern}");
        }
        assert!(
            ["entry", "files", "traps/*", "no-such"].iter().all(|pattern| !is_on_request(&text(pattern)))
        );
    }

    #[test]
    fn a_time_is_bounded() {
        for (time, expected) in [("10m", true), ("1", true), ("601", false), ("24h", false)] {
            assert_eq!(is_bounded(&Value::Text(time.to_owned())), expected, "{time}");
        }
    }
}
