//! `tollgate completions`: a script for a shell, which asks this program for candidates while its user types, so the names of
//! benchmarks and the labels of kept runs are current.

use std::ffi::OsStr;

use clap::{Arg, Command};
use clap_complete::engine::ValueCompleter;
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, CompletionCandidate, PathCompleter};
use tollgate_claims::Experiment;
use tollgate_store::kept::kept;
use tollgate_suites::SUITES;

use crate::args::{CompletionsArgs, command};
use crate::failure::Failure;
use crate::out;

const VARIABLE: &str = "TOLLGATE_COMPLETE";
/// The newest kept runs that are offered.
const MOST_RUNS: usize = 100;

impl CompletionsArgs {
    pub fn execute(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        let shell = self.shell.to_string();
        if let Some(shell) = Shells::builtins().completer(&shell) {
            let written = shell.write_registration(VARIABLE, "tollgate", "tollgate", "tollgate", &mut script);
            written.map_err(|error| Failure::of_output(&error))?;
        }
        out::print_raw(&script)
    }
}

/// Answers a script that asks; false if none does.
pub fn serve() -> Result<bool, Failure> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(offering).var(VARIABLE);
    let served = asked.try_complete(std::env::args_os(), here.as_deref());
    served.map_err(|error| Failure::input(format!("{VARIABLE}: {error}")))
}

fn offering() -> Command {
    fn of_verb(verb: Command) -> Command {
        verb.mut_args(of_argument).mut_subcommands(of_verb)
    }
    command().mut_subcommands(of_verb)
}

fn of_argument(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "pattern" | "benchmark" => argument.add(ArgValueCompleter::new(benchmarks)),
        "published" => argument.add(ArgValueCompleter::new(experiments)),
        "environments" => argument.add(ArgValueCompleter::new(environments)),
        "run" | "base" | "other" => argument.add(ArgValueCompleter::new(runs)),
        _ => argument,
    }
}

fn benchmarks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let named = SUITES.iter().flat_map(|suite| {
        let benchmarks = suite.benchmarks.iter().filter(|benchmark| !benchmark.name.contains("/test-"));
        std::iter::once(suite.name).chain(benchmarks.map(|benchmark| benchmark.name))
    });
    beginning_with(typed, named.map(str::to_owned))
}

fn experiments(typed: &OsStr) -> Vec<CompletionCandidate> {
    beginning_with(typed, Experiment::names().map(str::to_owned))
}

/// The newest first; files if none of them has this beginning.
fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let entries = kept().unwrap_or_default();
    let newest = || entries.iter().rev().take(MOST_RUNS);
    let labels = newest().filter_map(|entry| entry.label());
    let ids = newest().map(|entry| entry.id.to_string());
    let found = beginning_with(typed, std::iter::once("last".to_owned()).chain(labels).chain(ids));
    if found.is_empty() { PathCompleter::file().complete(typed) } else { found }
}

fn environments(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = typed.to_str() else { return Vec::new() };
    let offered = tollgate_environments::typed();
    let Some((kind, keys)) = text.split_once(':') else {
        return beginning_with(typed, offered.into_iter().map(|(kind, _)| kind));
    };
    let before = match keys.rsplit_once(',') {
        Some((given, _)) => format!("{kind}:{given},"),
        None => format!("{kind}:"),
    };
    let pairs = offered.into_iter().filter(|(known, _)| *known == kind).flat_map(|(_, pairs)| pairs);
    beginning_with(typed, pairs.map(|pair| format!("{before}{pair}")))
}

fn beginning_with(typed: &OsStr, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let mut seen = std::collections::HashSet::new();
    let candidates = names.filter(|name| name.starts_with(typed) && seen.insert(name.clone()));
    candidates.map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use tollgate_environments::Spec;

    use super::*;

    #[test]
    fn what_is_offered_names_environments() {
        for (kind, pairs) in
            tollgate_environments::typed().into_iter().filter(|(kind, _)| !kind.ends_with(':'))
        {
            kind.parse::<Spec>().expect("a kind");
            for pair in pairs.iter().filter(|pair| !pair.ends_with(['=', '.'])) {
                // Some are for one architecture.
                let alone = format!("{kind}:{pair}").parse::<Spec>();
                alone.or_else(|_| format!("{kind}:arch=x86-64,{pair}").parse()).expect("a pair");
            }
        }
    }

    #[test]
    fn keys_are_offered_behind_a_kind() {
        let offered = |typed: &str| {
            let candidates = environments(OsStr::new(typed)).into_iter();
            candidates.map(|one| one.get_value().to_string_lossy().into_owned()).collect::<Vec<String>>()
        };
        assert_eq!(offered("c"), ["container"]);
        assert_eq!(offered("container:runtime=r"), ["container:runtime=runc"]);
        assert_eq!(offered("host:nice=5,sched=i"), ["host:nice=5,sched=idle"]);
        assert_eq!(offered("vm:cpus=2,e"), ["vm:cpus=2,exact"]);
        assert!(offered("host:").len() > 10 && offered("ssh:").is_empty());
    }
}
