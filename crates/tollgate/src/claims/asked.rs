//! The other verbs that `--check` executes: this program is executed with their arguments, and parts of its JSON become facts of
//! the run.

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use tollgate_claims::{Ask, Experiment, Known};
use tollgate_engine::interrupt;
use tollgate_model::{Fact, FactValue, text::plainly};
use tollgate_os::{memfd, process};

use crate::say;

pub fn open<'a>(experiments: &'a [Experiment], known: &Known) -> Vec<&'a Ask> {
    let is_open = |experiment: &Experiment, ask: &Ask| {
        let mut open = experiment.quantities().into_iter().flat_map(|quantity| quantity.unanswered(known));
        open.any(|name| ask.facts().any(|(fact, _)| fact == name))
    };
    experiments
        .iter()
        .flat_map(|experiment| experiment.asks.iter().filter(move |ask| is_open(experiment, ask)))
        .collect()
}

pub fn announce(asks: &[&Ask]) {
    for ask in asks {
        say::say(&format!("then: {} ({})", line(ask), ask.takes));
    }
}

/// A failed question says why; an interrupted command leaves the rest unasked.
pub fn answers(asks: &[&Ask], quiet: bool) -> Vec<(String, Fact)> {
    let mut facts = Vec::new();
    for ask in asks {
        if interrupt::requested().is_some() {
            break;
        }
        if !quiet {
            say::say(&format!("executing {}", line(ask)));
        }
        let answer = answer(ask);
        if interrupt::requested().is_some() {
            break;
        }
        let part = |pointer: &str| match &answer {
            Err(why) => Fact::unreadable(format!("{}: {why}", line(ask))),
            Ok(answer) => match answer.pointer(pointer).and_then(|part| FactValue::deserialize(part).ok()) {
                Some(value) => Fact::known(value, line(ask)),
                None => Fact::absent(why_absent(answer, pointer, &line(ask))),
            },
        };
        facts.extend(ask.facts().map(|(name, pointer)| (name, part(pointer))));
    }
    facts
}

fn why_absent(answer: &Value, pointer: &str, line: &str) -> String {
    let beside = pointer.rsplit_once('/').and_then(|(row, _)| answer.pointer(row));
    let said =
        |row: &Value| ["why", "error"].iter().find_map(|key| row.get(key)?.as_str().map(str::to_owned));
    let of_all = || Some(answer.pointer("/remarks/0")?.as_str()?.to_owned());
    match beside.and_then(said).or_else(of_all) {
        Some(why) => format!("{line}: {why}"),
        None => format!("the output of {line} has no figure there"),
    }
}

fn line(ask: &Ask) -> String {
    let words = ask.words.iter().map(|word| if word == Ask::FIXED { "PROGRAM" } else { word });
    format!("`tollgate {}`", words.collect::<Vec<_>>().join(" "))
}

fn answer(ask: &Ask) -> Result<Value, String> {
    let fail = |error: io::Error| plainly(&error);
    let mut fixed = memfd::create_executable("tollgate-fixed").map_err(fail)?;
    fixed.write_all(tollgate_suites::fixed_program()).map_err(fail)?;
    let path = format!("/proc/{}/fd/{}", process::own_pid(), fixed.as_raw_fd());
    let words = ask.words.iter().map(|word| if word == Ask::FIXED { &path } else { word });
    let mut command = Command::new("/proc/self/exe");
    // Processes that it starts end with it.
    process::bind(&mut command, || Ok(()));
    // A configuration file applies to the user's own commands.
    let output = command.arg("--no-config").args(words).stdin(Stdio::null()).output().map_err(fail)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = said.lines().last().unwrap_or("it failed without a message");
        return Err(last.strip_prefix("tollgate: ").unwrap_or(last).to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|_| "it did not print JSON".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_absent_figure_has_the_reason_that_stands_beside_it() {
        let answer =
            json!({"rows": [{"figure": null, "why": "no such"}, {"figure": null}], "remarks": ["emulated"]});
        assert_eq!(why_absent(&answer, "/rows/0/figure", "`x`"), "`x`: no such");
        assert_eq!(why_absent(&answer, "/rows/1/figure", "`x`"), "`x`: emulated");
        assert_eq!(why_absent(&json!({}), "/rows/1/figure", "`x`"), "the output of `x` has no figure there");
    }
}
