//! The chosen experiments, or locks.

use std::path::Path;

use tollgate_lab::guest::{EXPERIMENTS, Experiment};
use tollgate_lab::locks::{ENTRIES, Group, LOCKS, Lock, MUTANTS, Subject};
use tollgate_lab::output::BOOT;
use tollgate_lab::system::Program;
use tollgate_model::text::listed;
use tollgate_suites::selection::{near, wildcard};

use crate::failure::Failure;

/// Returns experiments in their own order; by default those that are timed.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    if names.is_empty() {
        return Ok(EXPERIMENTS.iter().filter(|experiment| experiment.is_measured()).collect());
    }
    if names.iter().any(|name| name == BOOT) {
        return Err(Failure::input(NO_EXPERIMENT));
    }
    if let Some(name) = names.iter().find(|name| !is_experiment(name)) {
        return Err(Failure::input(unknown(name)));
    }
    let is_meant = |experiment: &&Experiment| names.iter().any(|name| stands_for(name, experiment));
    Ok(EXPERIMENTS.iter().filter(is_meant).collect())
}

const NO_EXPERIMENT: &str = "boot is not an experiment; --explain boot shows what the kernel sets up";

const ALL_LOCKS: &str = "locks";

/// The locks with these names, and the restarts of two of them; none if the names are those of experiments.
/// Fails if names of both are mixed.
pub fn locks(names: &[String]) -> Result<Option<Vec<&'static Lock>>, Failure> {
    let is_meant = |lock: &&Lock, name: &String| name == ALL_LOCKS || wildcard(name, lock.name);
    let is_lock = |name: &String| !is_experiment(name) && LOCKS.iter().any(|lock| is_meant(&lock, name));
    let Some(lock) = names.iter().find(|name| is_lock(name)) else {
        let mutant = names.iter().find(|name| !is_experiment(name) && is_mutant(name));
        return mutant.map_or(Ok(None), |name| Err(Failure::input(without_latency(name))));
    };
    if let Some(other) = names.iter().find(|name| !is_lock(name)) {
        return Err(Failure::input(if is_experiment(other) {
            format!("{other:?} is an experiment and {lock:?} is a lock; ask for them one after the other")
        } else if is_mutant(other) {
            without_latency(other)
        } else if other == BOOT {
            NO_EXPERIMENT.to_owned()
        } else {
            unknown(other)
        }));
    }
    let chosen = LOCKS.iter().filter(|lock| names.iter().any(|name| is_meant(lock, name)));
    Ok(Some(chosen.collect()))
}

const ALL_ENTRIES: &str = "entries";

/// The files with the user's own entries among these names, by their endings; none if there are none.
/// Fails if other names stand beside them than the one for all entries.
pub fn own(names: &[String]) -> Result<Option<Vec<&Path>>, Failure> {
    let (files, others): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| Program::is_assembly(Path::new(name)));
    match others.iter().find(|name| **name != ALL_ENTRIES) {
        _ if files.is_empty() => Ok(None),
        Some(other) => Err(Failure::input(format!(
            "--prove: {other:?} is not a file with an entry of your own; ask for it and for {} one after the other",
            files[0]
        ))),
        None => Ok(Some(files.into_iter().map(Path::new).collect())),
    }
}

pub fn subjects(names: &[String]) -> Result<Vec<Subject>, Failure> {
    let locks = LOCKS.iter().filter(|lock| lock.group == Group::Lock).map(Subject::Lock);
    let all = locks.chain(MUTANTS.iter().map(Subject::Mutant)).chain(ENTRIES.iter().map(Subject::Entry));
    let all: Vec<Subject> = all.collect();
    let is_meant = |subject: &Subject, name: &String| {
        let every = if matches!(subject, Subject::Entry(_)) { ALL_ENTRIES } else { ALL_LOCKS };
        name == every || wildcard(name, subject.name())
    };
    if let Some(name) = names.iter().find(|name| !all.iter().any(|subject| is_meant(subject, name))) {
        let names: Vec<&str> = all.iter().map(|subject| subject.name()).collect();
        let tip = match near(name, names.iter().copied()).as_slice() {
            [] => format!("there are {ALL_LOCKS} and {ALL_ENTRIES} for all of them, {}", listed(&names)),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        return Err(Failure::input(format!("--prove: there is no lock or entry {name:?}; {tip}")));
    }
    Ok(all.into_iter().filter(|subject| names.iter().any(|name| is_meant(subject, name))).collect())
}

fn is_experiment(name: &str) -> bool {
    EXPERIMENTS.iter().any(|it| stands_for(name, it))
}

fn stands_for(name: &str, experiment: &Experiment) -> bool {
    wildcard(name, experiment.name) || name == experiment.group.name()
}

fn is_mutant(name: &str) -> bool {
    is_entry(name) || MUTANTS.iter().any(|mutant| wildcard(name, mutant.name))
}

fn is_entry(name: &str) -> bool {
    name == ALL_ENTRIES || ENTRIES.iter().any(|entry| wildcard(name, entry.name))
}

fn without_latency(name: &str) -> String {
    let what = if is_entry(name) {
        "is an entry of SYSCALL, which is proved, not timed"
    } else {
        "is a lock with a deliberate fault, which has no latency"
    };
    format!("{name:?} {what}; try --prove")
}

fn unknown(name: &str) -> String {
    let names = EXPERIMENTS.iter().map(|it| it.name);
    let names = names.chain([ALL_LOCKS]).chain(LOCKS.iter().map(|lock| lock.name));
    let tip = match near(name, names.clone()).as_slice() {
        [] => format!("there are {}", listed(&names.collect::<Vec<_>>())),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    format!("there is no experiment {name:?}; {tip}")
}
