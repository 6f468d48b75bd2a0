//! `tollgate explain BENCHMARK --in vm:exact`: the kernel functions that an operation's instructions are in.

use tollgate_engine::session::{Side, explain_in};
use tollgate_engine::{BenchError, Chosen, Group, Selection, interrupt};
use tollgate_environments::{Cleanup, Environment, EnvironmentError};
use tollgate_view::explain;

use crate::failure::{Failure, go_on, plainly};
use crate::run::sides::parse;
use crate::{out, say};

/// # Errors
/// No such environment, or one whose instructions are not counted; the reason why the case has no count there.
pub fn explain(pattern: &str, selection: &Selection, environment: &str) -> Result<(), Failure> {
    let (_, spec) = parse(environment)?;
    let group = group(pattern, selection)?;
    let case = group.cases.first().map(|(benchmark, params)| benchmark.case(params.clone()));
    let case = case.ok_or_else(|| Failure::input(format!("no case of {pattern} can be explained")))?;
    interrupt::install();
    // A copy of this process, which must have no other threads.
    let cleanup = Cleanup::begin().map_err(|error| {
        Failure::input(format!("the cleanup process could not be started: {}", plainly(&error)))
    })?;
    let stop = || interrupt::requested().is_some();
    let prepared = Environment::prepare(&spec, &cleanup, &stop).and_then(|mut prepared| {
        if tollgate_suites::needs_kernel_module(&case) {
            prepared.bring_module(&stop)?;
        }
        Ok(prepared)
    });
    let mut prepared = prepared.map_err(|error| match error {
        EnvironmentError::Interrupted => Failure::Interrupted(interrupt::requested().unwrap_or_default()),
        error => Failure::input(error.to_string()),
    })?;
    go_on()?;
    let mut log = prepared.instructions().ok_or_else(|| {
        Failure::input(format!(
            "explain --in takes a guest that counts instructions, such as vm:exact, not {environment}"
        ))
    })?;
    let (starts, cpu) = (prepared.starts(), prepared.cpu());
    let (is_paired, is_counting, has_disk) =
        (prepared.is_paired(), prepared.is_counting(), prepared.has_disk());
    let start = Box::new(|| prepared.start().map_err(|error| error.to_string()));
    let name = environment.to_owned();
    let mut side = Side {
        name,
        start,
        starts,
        wake: None,
        cpu,
        is_paired,
        is_counting,
        has_disk,
        outside: None,
        life: None,
    };
    let mut said = String::new();
    let found = explain_in(&mut side, &mut *log, &group, &mut |progress| {
        if progress.what != said {
            said.clone_from(&progress.what);
            say::say(&said);
        }
    });
    drop(side);
    // The guest has ended before anything is shown.
    drop(prepared);
    drop(cleanup);
    let found = found.map_err(|error| match error {
        BenchError::Interrupted(signal) => Failure::Interrupted(signal),
        BenchError::NoEnvironment(why) => Failure::input(format!("{environment}: {why}")),
        error => Failure::input(error.to_string()),
    })?;
    out::page(&explain::functions(&case, environment, &found, out::width()))
}

/// The one case that is explained: that of the first screen among those that the pattern means, otherwise the first.
fn group(pattern: &str, selection: &Selection) -> Result<Group, Failure> {
    let is_meant =
        |(benchmark, params): &&Chosen| tollgate_suites::matches(pattern, &benchmark.case(params.clone()));
    let found = selection.groups.iter().find_map(|group| {
        let mut meant = group.cases.iter().filter(is_meant);
        let is_headline =
            |(benchmark, params): &&Chosen| benchmark.headlines.iter().any(|headline| headline.names(params));
        let case = meant.clone().find(is_headline).or_else(|| meant.next())?;
        Some(Group { suite: group.suite, cases: vec![case.clone()] })
    });
    found.ok_or_else(|| Failure::input(format!("no case of {pattern} can be explained")))
}
