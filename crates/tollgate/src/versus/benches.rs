//! The benches of builds, `versus --bench`: the chosen builds and benches, and their outcome.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use tollgate_engine::benches::{Bench, Build, Builds, Harness, Plan, Template, is_nameable, measure};
use tollgate_engine::versus::{Doing, Executor, NotCompared, Order, Rounds};
use tollgate_engine::{Random, interrupt};
use tollgate_model::Fact;
use tollgate_model::text::{clean, excerpt, listed, plainly};
use tollgate_model::versus::Command;
use tollgate_suites::command::Here;
use tollgate_suites::wildcard;
use tollgate_view::facts;
use tollgate_view::session::{Member, Session};

use super::executed::{Executed, failed};
use super::places;
use super::progress::Shown;
use super::revisions::{self, Revisions};
use super::{TIME, counted, rounds};
use crate::args::versus::{BenchArgs, HarnessName, VersusArgs};
use crate::failure::Failure;
use crate::{out, say};

/// The time of a bench, if no time is given and there are many.
const TIME_OF_EACH: Duration = Duration::from_secs(4);
/// Names of benches in a message.
const MOST_NAMED: usize = 8;

/// Executes the benches of the chosen builds. Returns each build as a run keeps it.
///
/// # Errors
/// Builds without a harness, of unequal ones, or without a common bench; patterns that match nothing; an environment that neither
/// is this machine nor counts; what stops every execution.
pub fn execute(
    args: &VersusArgs,
    revisions: Option<&Revisions>,
    began: SystemTime,
) -> Result<(Executed, Vec<Command>), Failure> {
    check_environments(&args.environments)?;
    let (mut paths, patterns) = match revisions {
        Some(revisions) => (revisions.benches.clone(), args.commands.clone()),
        None => arguments(&args.commands)?,
    };
    let control = args.bench.control.as_ref().map(|_| paths.len());
    paths.extend(args.bench.control.clone());
    let harness = harness(&args.bench, &paths)?;
    let mut names = names(args, &paths)?;
    for (at, side) in revisions.iter().flat_map(|revisions| revisions.sides.iter().enumerate()) {
        if args.parameters.command_name.get(at).is_none() {
            names[at] = clean(&side.name).into_owned();
        }
    }
    let programs = paths.iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>();
    let programs =
        programs.map_err(|why| Failure::input(format!("the working directory: {}", plainly(&why))))?;
    let kept = programs.iter().zip(&names).map(|(program, name)| kept(program, name, &harness)).collect();
    let layouts = |at: usize| revisions.map_or(Vec::new(), |revisions| revisions.sides[at].layouts.clone());
    let all = (0..).zip(names.into_iter().zip(programs));
    let all = all.map(|(at, (name, program))| Build { name, program, layouts: layouts(at) });
    let builds = Builds::new(harness, all.collect(), order(args)).map_err(Failure::input)?;
    let executed = if counted::is_asked(&args.environments)? {
        counted(args, &builds, &patterns, began)?
    } else {
        timed(args, &builds, &patterns, control, began)?
    };
    if !args.result.quiet {
        say_equal(&builds);
    }
    Ok((executed, kept))
}

/// Says which builds are copies of one file, as when a build was not made anew.
fn say_equal(builds: &Builds) {
    let programs: Vec<PathBuf> = builds.all().iter().map(|build| build.program.clone()).collect();
    for pair in revisions::equal::builds(&programs) {
        let [one, other] = pair.map(|at| excerpt(&builds.all()[at].name));
        say::say(&format!(
            "{one} and {other} are one file, equal to the byte, so they can differ only by chance"
        ));
    }
}

/// Shows how a bench of a kept comparison of builds compares, and the requests of an iteration to the kernel in each build.
///
/// # Errors
/// No kept comparison with a figure of it, or another one named; a harness that takes no number of iterations; a build that
/// failed.
pub fn explain(case: &str, meant: Option<&str>) -> Result<(), Failure> {
    let runs = match meant {
        Some(meant) => tollgate_store::find_kept_session(meant)?,
        None => tollgate_store::find_newest_session_of(case)?,
    };
    let session = runs.as_deref().and_then(Session::of).filter(|session| is_measured(session, case));
    let session = session.ok_or_else(|| {
        let of =
            meant.map(|meant| format!("{} has", excerpt(meant))).unwrap_or("no kept session has".to_owned());
        let no = if meant.is_some() { "no " } else { "a " };
        Failure::input(format!(
            "{of} {no}figure of the bench {}; `tollgate versus --bench OLD NEW --label NAME` keeps one",
            excerpt(case)
        ))
    })?;
    let (harness, bench) = case.split_once('/').unwrap_or_default();
    let harness = HarnessName::from_str(harness, false).map(Harness::from).map_err(|_| {
        Failure::input(format!(
            "the bench {} belongs to a harness described with --list, whose commands are not kept",
            excerpt(case)
        ))
    })?;
    let build = |member: &Member| {
        let line = member.part.command.as_ref().map(|command| command.line.as_str()).unwrap_or_default();
        match Path::new(line) {
            program if program.is_absolute() => {
                Ok(Build { name: member.name.clone(), program: program.to_owned(), layouts: Vec::new() })
            }
            _ => Err(Failure::input(format!(
                "the run names the build {} by a relative path and may have been made elsewhere; `tollgate versus --bench OLD NEW --label \
                 NAME` keeps whole paths",
                excerpt(line)
            ))),
        }
    };
    let all = session.members.iter().map(build).collect::<Result<Vec<_>, Failure>>()?;
    let builds = Builds::new(harness, all, Order::default()).map_err(Failure::input)?;
    interrupt::install();
    let asked = builds.asked_of_kernel(bench, &mut Here::new()).map_err(failed)?;
    out::page(&tollgate_view::explain::bench(case, &session, &asked, out::width()))
}

fn is_measured(session: &Session, case: &str) -> bool {
    let has_it = |member: &Member| member.summary.measured().any(|(known, _)| known.benchmark == case);
    session.members.first().is_some_and(has_it)
}

/// Benches are timed on this machine, or counted in one guest.
fn check_environments(names: &[String]) -> Result<(), Failure> {
    match names {
        [] => Ok(()),
        [_] if counted::is_asked(names)? => Ok(()),
        [name] => Err(Failure::input(format!(
            "--in {name}: --bench times benches on this machine; omit --in, or name a guest that counts instructions, such as vm:exact"
        ))),
        _ => Err(Failure::input("--bench counts benches in one guest; name one --in")),
    }
}

/// Times the benches on this machine.
fn timed(
    args: &VersusArgs,
    builds: &Builds,
    patterns: &[String],
    control: Option<usize>,
    began: SystemTime,
) -> Result<Executed, Failure> {
    let layouts = builds.all().iter().map(|build| build.layouts.len()).max().unwrap_or_default();
    let rounds = rounds(&args.length, layouts)?;
    places::here(began, |executor| {
        let benches = asked(args, builds, patterns, executor)?;
        let plan = plan(args, benches, rounds);
        let mut shown = Shown::new(plan.time, plan.rounds, !args.result.quiet, None);
        let compared = measure(builds, executor, &plan, &mut |doing: &Doing| shown.update(doing));
        shown.end();
        let mut compared = compared?;
        let control = control.map(|place| Fact::known(place as i64, "--control"));
        compared.facts.extend(control.map(|control| (facts::CONTROL.to_owned(), control)));
        Ok(compared)
    })
}

/// Counts their instructions in a guest.
fn counted(
    args: &VersusArgs,
    builds: &Builds,
    patterns: &[String],
    began: SystemTime,
) -> Result<Executed, Failure> {
    if !builds.harness().is_told() {
        let why = match builds.harness() {
            Harness::Template(_) => "--one lacks {iterations}, the number of iterations".to_owned(),
            harness => format!(
                "{} chooses its number of iterations by a clock; divan, Go, Google Benchmark 1.8 and later, and a harness whose --one has {{iterations}} take it as an argument",
                harness.name()
            ),
        };
        let guest = &args.environments[0];
        return Err(Failure::input(format!(
            "--in {guest} must count the same number of iterations in all builds, but {why}"
        )));
    }
    let benches = asked(args, builds, patterns, &mut Here::new()).map_err(failed)?;
    let mut shown =
        Shown::new(Duration::MAX, Rounds::exactly(1), !args.result.quiet, Some(builds.all().len()));
    let executed = counted::benches(args, builds, &benches, began, &mut |doing| shown.update(doing));
    shown.end();
    executed
}

/// The builds and the patterns among the arguments: the first two are builds, and each later one that is the path of a file, with
/// a slash.
fn arguments(given: &[String]) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
    let is_build = |(at, argument): (usize, &String)| {
        at < 2 || (argument.contains('/') && Path::new(argument).is_file())
    };
    let (mut builds, mut patterns) = (Vec::new(), Vec::new());
    for (at, argument) in given.iter().enumerate() {
        if is_build((at, argument)) {
            builds.push(PathBuf::from(argument))
        } else {
            patterns.push(argument.clone())
        }
    }
    match builds.len() {
        0 | 1 => Err(Failure::input(
            "--bench compares builds, but only one is named; name the old and the new one",
        )),
        number if number > MOST_BUILDS => Err(Failure::input(format!(
            "{number} builds are too many for one comparison; at most {MOST_BUILDS}"
        ))),
        _ => Ok((builds, patterns)),
    }
}

/// As many as a session has positions, with one for a control.
const MOST_BUILDS: usize = tollgate_model::run::MAX_ENVIRONMENTS as usize - 1;

fn harness(args: &BenchArgs, builds: &[PathBuf]) -> Result<Harness, Failure> {
    let wrong = |build: &Path, why: String| Failure::input(format!("{} {why}", build.display()));
    if let (Some(list), Some(one)) = (&args.list, &args.one) {
        let template = Template::new(list, one, &args.read).map_err(Failure::input)?;
        return Ok(Harness::Template(Box::new(template)));
    }
    if let Some(name) = args.harness {
        return Ok(name.into());
    }
    let found: Vec<Harness> = builds
        .iter()
        .map(|build| Harness::of_program(build).map_err(|why| wrong(build, why)))
        .collect::<Result<_, _>>()?;
    let other = found.iter().zip(builds).find(|(harness, _)| **harness != found[0]);
    match other {
        None => Ok(found[0].clone()),
        Some((other, build)) => Err(Failure::input(format!(
            "{} has benches of {}, {} of {}; builds of one harness can be compared",
            builds[0].display(),
            found[0].name(),
            build.display(),
            other.name()
        ))),
    }
}

impl From<HarnessName> for Harness {
    fn from(name: HarnessName) -> Self {
        match name {
            HarnessName::Criterion => Self::Criterion,
            HarnessName::Divan => Self::Divan,
            HarnessName::Go => Self::Go,
            HarnessName::Gbench => Self::GoogleBenchmark,
        }
    }
}

/// The names of the builds: those of the user, or the shortest different ends of their paths.
fn names(args: &VersusArgs, builds: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let given = &args.parameters.command_name;
    if given.len() > builds.len() {
        let [given, number] = [given.len(), builds.len()];
        return Err(Failure::input(format!("--command-name is given {given} times for {number} builds")));
    }
    let end = |path: &PathBuf, most: usize| {
        let parts: Vec<Component> = path.components().collect();
        let end: PathBuf = parts[parts.len().saturating_sub(most)..].iter().collect();
        clean(&end.display().to_string()).into_owned()
    };
    let ends = |most: usize| builds.iter().map(|path| end(path, most)).collect::<Vec<_>>();
    let differ = |names: &[String]| names.iter().collect::<HashSet<_>>().len() == names.len();
    let longest = builds.iter().map(|path| path.components().count()).max().unwrap_or(1);
    let names = (1..=longest).map(ends).find(|names| differ(names)).unwrap_or_else(|| ends(longest));
    Ok(names.into_iter().enumerate().map(|(at, name)| given.get(at).cloned().unwrap_or(name)).collect())
}

/// A build as a run keeps it, with its whole path, since a file of the same name in another directory is a different one.
fn kept(program: &Path, name: &str, harness: &Harness) -> Command {
    Command {
        line: program.display().to_string(),
        name: Some(name.to_owned()),
        parameters: Default::default(),
        shell: None,
        is_corrected: false,
        failed: Vec::new(),
        cold: None,
        harness: Some(harness.name().to_owned()),
    }
}

fn order(args: &VersusArgs) -> Order {
    Order {
        processors: args.conditions.processor.clone(),
        cgroup: args.conditions.cgroup.clone(),
        ..Order::default()
    }
}

fn asked(
    args: &VersusArgs,
    builds: &Builds,
    patterns: &[String],
    executor: &mut dyn Executor,
) -> Result<Vec<Bench>, NotCompared> {
    let wrong = |sentence| NotCompared::Failed { sentence, said: String::new() };
    let lists = lists(builds, args, executor)?;
    let benches = chosen(all(&lists), patterns, builds.harness()).map_err(wrong)?;
    if !benches.iter().any(Bench::is_compared) {
        let names: Vec<&str> = builds.all().iter().map(|build| build.name.as_str()).collect();
        let benches: Vec<_> = benches.iter().map(|bench| excerpt(&bench.name)).take(MOST_NAMED).collect();
        return Err(wrong(format!(
            "{} have none of the requested benches in common; they have {}",
            listed(&names),
            listed(&benches)
        )));
    }
    Ok(benches)
}

fn lists(
    builds: &Builds,
    args: &VersusArgs,
    executor: &mut dyn Executor,
) -> Result<Vec<Vec<String>>, NotCompared> {
    let of = |number| builds.list(number, args.length.timeout, &mut *executor, &mut || {});
    (0..builds.all().len()).map(of).collect()
}

fn plan(args: &VersusArgs, benches: Vec<Bench>, rounds: Rounds) -> Plan {
    let compared = benches.iter().filter(|bench| bench.is_compared()).count();
    let usual = TIME.max(TIME_OF_EACH.saturating_mul(u32::try_from(compared).unwrap_or(u32::MAX)));
    let is_counted = args.length.runs.is_some();
    Plan {
        benches,
        warmups: args.length.warmup,
        rounds,
        time: args.length.time.unwrap_or(if is_counted { Duration::MAX } else { usual }),
        precision: args.length.precision,
        asked: args.result.threshold.unwrap_or(0.0),
        timeout: args.length.timeout,
        seed: Random::seed(),
    }
}

/// The benches of all builds, those of the base first.
fn all(lists: &[Vec<String>]) -> Vec<Bench> {
    let mut benches: Vec<Bench> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (build, list) in lists.iter().enumerate() {
        for name in list {
            let at = *places.entry(name).or_insert(benches.len());
            match benches.get_mut(at) {
                Some(known) => known.builds.push(build),
                None => benches.push(Bench { name: name.clone(), builds: vec![build] }),
            }
        }
    }
    benches
}

fn chosen(benches: Vec<Bench>, patterns: &[String], harness: &Harness) -> Result<Vec<Bench>, String> {
    let (fit, unfit): (Vec<Bench>, Vec<Bench>) =
        benches.into_iter().partition(|bench| is_nameable(&bench.name));
    leave_out(&unfit, "a name is longer than 200 bytes or has characters that control a terminal");
    let (fit, unfit): (Vec<Bench>, Vec<Bench>) =
        fit.into_iter().partition(|bench| harness.can_name(&bench.name));
    leave_out(
        &unfit,
        "the shell in --one would interpret a name; pass it as an argument: --one 'sh -c '\\''\"$0\" \"$1\"'\\'' {binary} {bench}'",
    );
    let is_meant = |pattern: &String, bench: &Bench| matches(pattern, &bench.name, harness.name());
    if let Some(pattern) = patterns.iter().find(|pattern| !fit.iter().any(|bench| is_meant(pattern, bench))) {
        let names: Vec<_> = fit.iter().map(|bench| excerpt(&bench.name)).take(MOST_NAMED).collect();
        let more = fit.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let pattern = excerpt(pattern);
        return Err(format!("no bench matches {pattern}; there are {}{more}", listed(&names)));
    }
    let is_chosen =
        |bench: &Bench| patterns.is_empty() || patterns.iter().any(|pattern| is_meant(pattern, bench));
    let chosen: Vec<Bench> = fit.into_iter().filter(is_chosen).collect();
    match chosen.len() {
        number if number > MOST_CHOSEN => Err(format!(
            "{number} benches are too many for one comparison; select at most {MOST_CHOSEN} with a pattern"
        )),
        _ => Ok(chosen),
    }
}

/// As many as a run document has room for.
const MOST_CHOSEN: usize = tollgate_model::run::MAX_MEASUREMENTS;

/// Says which benches are not compared.
fn leave_out(benches: &[Bench], why: &str) {
    let names: Vec<_> = benches.iter().map(|bench| excerpt(&bench.name)).take(MOST_NAMED).collect();
    let more = benches.len().saturating_sub(names.len());
    match (names.len(), more) {
        (0, _) => {}
        (_, 0) => say::say(&format!("left out: {}: {why}", listed(&names))),
        _ => say::say(&format!("left out: {} and {more} more: {why}", names.join(", "))),
    }
}

/// Whether a pattern means a bench: a part of its name, or with `*` the whole, with or without its harness before it.
fn matches(pattern: &str, bench: &str, harness: &str) -> bool {
    if pattern.contains('*') {
        wildcard(pattern, bench) || wildcard(pattern, &format!("{harness}/{bench}"))
    } else {
        let is_beginning = |pattern: &str| format!("{harness}/{bench}").starts_with(pattern);
        bench.contains(pattern) || (pattern.contains('/') && is_beginning(pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_parts_of_names_or_whole_ones() {
        let of = |pattern: &str| matches(pattern, "ops::sum::100", "divan");
        assert!(of("sum") && of("ops::*") && of("divan/ops::sum") && of("*::100"));
        assert!(!of("sum*") && !of("sums") && !of("divan"));
    }

    #[test]
    fn benches_of_several_builds_are_joined() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let joined = all(&[list(&["a", "b"]), list(&["b", "c"]), list(&["b"])]);
        let joined: Vec<(&str, &[usize])> =
            joined.iter().map(|bench| (bench.name.as_str(), bench.builds.as_slice())).collect();
        assert_eq!(joined, [("a", &[0][..]), ("b", &[0, 1, 2]), ("c", &[1])]);
    }
}
