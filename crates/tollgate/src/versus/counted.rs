//! Commands in guests that count instructions. Each command in each guest has its own boot, so that its counts depend on nothing
//! else of the comparison; so has each build of benches, whose benches are commands of one boot.
//!
//! It is first executed and traced on this machine, with the variables that it has in the guest, and the files that it opens are
//! copied into the guest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tollgate_engine::benches::counted::STATISTIC;
use tollgate_engine::benches::{Bench, Builds};
use tollgate_engine::interrupt;
use tollgate_engine::session::{
    Counted, Counting, FunctionCount, Inside, InstructionLog, Link, Side, count_in, is_kernel, watch,
};
use tollgate_engine::versus::counted::{PATH, PATIENCE, Rounds};
use tollgate_engine::versus::rounds::{judged, succeeded};
use tollgate_engine::versus::tally::tally;
use tollgate_engine::versus::{
    Accepts, Compared, Doing, Found, Given, How, Input, NotCompared, Order, Output, Plan,
};
use tollgate_engine::versus::{Executor, Halt};
use tollgate_environments::{
    Cleanup, Environment, EnvironmentError, Spec, Wanted, What, interpreter, page_number,
};
use tollgate_model::measurement::Outcome;
use tollgate_model::traced::{FileTime, Traced};
use tollgate_model::versus::INSTRUCTIONS;
use tollgate_model::{Fact, Facts, Part, RunId};
use tollgate_os::affinity;
use tollgate_store::destination::new_id;
use tollgate_suites::command::Here;
use tollgate_trace::{UserCode, UserFunction};
use tollgate_view::facts;

use super::executed::{Executed, Stacks, failed};
use crate::args::versus::{By, VersusArgs};
use crate::failure::{Failure, go_on, plainly};
use crate::run::sides::{named, parse, reason};
use crate::say;

/// Executions after the first, if they are short and no number is requested.
const STEADY: u32 = 15;
/// Instructions of all executions of a command after which no other one begins, if no number is requested: a few seconds.
const ENOUGH: u64 = 300_000_000;
/// Instructions of this program, before it becomes the command and after its end, and code that a program makes itself.
const IN_NO_FILE: &str = "[no file]";
/// Seconds of this machine for each second of the guest's clock, and the time of a start: the limit for commands that never end.
const SLOWER: u32 = 10;
const START: Duration = Duration::from_secs(60);
/// Guests at the same time; each has 512 MiB or more.
const MOST_AT_ONCE: usize = 4;

/// Whether the environments count instructions.
///
/// # Errors
/// A wrong name; some count, and others do not.
pub fn is_asked(names: &[String]) -> Result<bool, Failure> {
    let specs: Vec<(String, Spec)> = names.iter().map(|name| parse(name)).collect::<Result<_, _>>()?;
    let other = specs.iter().find(|(_, spec)| !spec.counts());
    match (specs.iter().find(|(_, spec)| spec.counts()), other) {
        (None, _) => Ok(false),
        (Some(_), None) => Ok(true),
        (Some((counts, _)), Some((times, _))) => Err(Failure::input(format!(
            "--in {counts} counts instructions but --in {times} measures time, so they cannot be compared; name only guests that count, or none"
        ))),
    }
}

pub fn check(args: &VersusArgs) -> Result<(), Failure> {
    let (length, conditions, result) = (&args.length, &args.conditions, &args.result);
    let given = [
        ("--control", args.bench.control.is_some()),
        ("--time", length.time.is_some()),
        ("--until-decided", length.until_decided),
        ("--by real", result.by == Some(By::Real)),
        ("--by cpu", result.by == Some(By::Cpu)),
        ("--cold", conditions.cold),
        ("--processor", !conditions.processor.is_empty()),
        ("--cgroup", conditions.cgroup.is_some()),
        ("--export-json", result.export_json.is_some()),
        ("--export-csv", result.export_csv.is_some()),
        ("--export-markdown", result.export_markdown.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::input(format!("{option} cannot be used with vm:exact, which counts instructions")))
        }
    }
}

/// # Errors
/// A command that failed, here or in a guest, after its own message; no guest; files that do not fit; the user stopped it.
pub fn execute(
    args: &VersusArgs,
    plan: &Plan,
    began: SystemTime,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Executed, Failure> {
    let mut work = Work::begin(args, plan.accepts.clone(), watch)?;
    let trace = |given| work.trace(std::slice::from_ref(given));
    let traced = plan.commands.iter().map(trace).collect::<Result<Vec<_>, _>>()?;
    let mut boots = Vec::new();
    for (given, brought) in plan.commands.iter().zip(&traced) {
        let there = in_guest(given, args.length.timeout)?;
        let (rounds, commands) = (work.rounds(&there), vec![there]);
        boots.extend(args.environments.iter().map(|place| Boot {
            of: given.name.clone(),
            place,
            commands: commands.clone(),
            rounds: rounds.clone(),
            brought,
            why_not_watched: None,
            is_traced: !args.conditions.no_trace,
        }));
    }
    let mut all = Vec::new();
    work.count(&boots, &mut |work, boot, booted| {
        all.push((boot, work.found(boot, booted)?));
        Ok(())
    })?;
    let (mut functions, mut stacks) = (Vec::new(), Vec::new());
    let (mut found, mut facts) = (Vec::new(), Vec::new());
    for (boot, counted) in all.into_iter().filter(|(boot, _)| !work.is_lost(boot.place)) {
        functions.extend((args.result.by == Some(By::Function)).then_some(counted.functions));
        let of = format!("{} in {}", boot.of, named(boot.place).0);
        stacks.extend(args.result.stacks.is_some().then_some(Stacks { of, folded: counted.stacks }));
        facts.push(counted.facts);
        found.push(counted.found);
    }
    let places: Vec<&String> = args.environments.iter().filter(|place| !work.is_lost(place)).collect();
    // The facts of a place are those of its last boot.
    let facts = facts.split_off(facts.len().saturating_sub(places.len()));
    let rounds = found.iter().map(number).min().unwrap_or_default();
    Ok(Executed { stacks, ..executed(&places, began, found, facts, rounds, functions)? })
}

/// Counts the benches of each build in the only environment.
/// A bench that fails is left out.
pub fn benches(
    args: &VersusArgs,
    builds: &Builds,
    benches: &[Bench],
    began: SystemTime,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Executed, Failure> {
    let mut work = Work::begin(args, Accepts::default(), watch)?;
    let numbered = builds.numbered(benches, args.length.timeout, &mut Here::new()).map_err(failed)?;
    let commands = (0..builds.all().len()).map(|build| builds.commands(build, &numbered));
    let commands: Vec<Vec<Given>> = commands.collect::<Result<_, _>>().map_err(failed)?;
    let brought = commands.iter().map(|commands| work.trace(commands)).collect::<Result<Vec<_>, _>>()?;
    let rounds = args.length.runs.unwrap_or(builds.harness().counted_rounds());
    let mut boots = Vec::new();
    for ((build, commands), brought) in builds.all().iter().zip(&commands).zip(&brought) {
        let commands: Vec<Given> =
            commands.iter().map(|given| in_guest(given, args.length.timeout)).collect::<Result<_, _>>()?;
        let round: Vec<Order> = commands.iter().map(|given| given.order.clone()).collect();
        boots.push(Boot {
            of: format!("the benches of {}", build.name),
            place: &args.environments[0],
            commands,
            rounds: Rounds {
                orders: vec![round; rounds as usize + 1],
                enough: u64::MAX,
                has_functions: work.has_functions(),
                traced: None,
            },
            brought,
            why_not_watched: builds.harness().why_not_split(),
            is_traced: false,
        });
    }
    let (mut all, mut of_place) = (Vec::new(), Facts::new());
    work.count(&boots, &mut |_, _, booted| {
        of_place = booted.facts;
        all.push(booted.counted);
        Ok(())
    })?;
    let found = builds.found(&numbered, args.length.timeout, &all);
    let mut executed =
        executed(&[&args.environments[0]], began, found, vec![of_place], rounds as usize, Vec::new())?;
    let statistic = Fact::known(STATISTIC, builds.harness().name());
    executed.compared.facts.push((facts::STATISTIC.to_owned(), statistic));
    Ok(executed)
}

fn executed(
    places: &[&String],
    began: SystemTime,
    found: Vec<Found>,
    facts: Vec<Facts>,
    rounds: usize,
    functions: Vec<Vec<FunctionCount>>,
) -> Result<Executed, Failure> {
    let id = new_id(began)?;
    let place = |(name, facts): (&String, Facts)| Some((part(&id, named(name).0), facts));
    let places: Vec<_> = places.iter().copied().zip(facts).map(place).collect();
    let facts = vec![("run.rounds".to_owned(), Fact::known(rounds as i64, "executions that were counted"))];
    let lost = vec![None; places.len()];
    let compared = Compared { found, facts, lost, interrupted: None };
    Ok(Executed { compared, places, functions, stacks: Vec::new() })
}

fn part(id: &RunId, name: &str) -> Part {
    Part { paired: false, ..Part::alone(id.clone(), name.to_owned()) }
}

fn number(found: &Found) -> usize {
    let of = found.measurements.iter().find(|measurement| measurement.case.benchmark == INSTRUCTIONS);
    of.and_then(|of| of.outcome.measured()).map_or(0, |measured| measured.samples.len())
}

struct Brought {
    wanted: BTreeMap<PathBuf, What>,
    /// The programs that it executes.
    programs: Vec<PathBuf>,
    since: SystemTime,
    /// Why it may fail in the guest, each a clause.
    lacking: Vec<String>,
}

impl Brought {
    fn want(&mut self, path: &Path, what: What) {
        let known = self.wanted.entry(path.to_owned()).or_insert(what);
        *known = (*known).max(what);
    }

    /// Adds the program if the command has executed it.
    fn executed(&mut self, file: &FileTime) {
        let is_executed = file.operations.iter().any(|of| of.operation.starts_with("execve"));
        if is_executed && Path::new(&file.path).is_file() {
            self.programs.push(file.path.clone().into());
        }
    }

    /// The code of all files. The command's own program is the only other one that it executes, as a shell does, or else its first file.
    fn code(&self, given: &Given) -> UserCode {
        let own = files_of(&given.order).into_iter().next().map(|(path, _)| path);
        let is_other = |path: &&PathBuf| {
            path.canonicalize().ok() != own.as_ref().and_then(|own| own.canonicalize().ok())
        };
        let mut others = self.programs.iter().filter(is_other);
        let program = match (others.next(), others.next()) {
            (Some(other), None) => Some(other),
            _ => own.as_ref(),
        };
        let contents = self.wanted.iter().filter(|(_, what)| matches!(what, What::Content | What::Replaced));
        let mut files: Vec<PathBuf> = contents.map(|(path, _)| path.clone()).collect();
        // The kernel loads these without a call that opens them: a script's interpreter, which has a loader itself.
        for _ in 0..2 {
            files.extend(files.iter().filter_map(|path| interpreter(path)).collect::<BTreeSet<_>>());
        }
        UserCode::of(program.map(PathBuf::as_path), &files, page_number)
    }
}

/// A boot of a guest, which executes commands before anything is asked.
struct Boot<'b> {
    /// The name of the commands in messages.
    of: String,
    /// The guest, as the user named it.
    place: &'b str,
    commands: Vec<Given>,
    rounds: Rounds,
    brought: &'b Brought,
    why_not_watched: Option<&'static str>,
    is_traced: bool,
}

/// A guest that executes its commands.
struct Launched {
    called: String,
    // Dropped before the log, which reads what the guest still writes.
    environment: Environment,
    log: Box<dyn InstructionLog>,
    watched: Result<(), String>,
    link: Link,
    came: String,
}

struct Booted {
    facts: Facts,
    counted: Counted,
    /// The size of the copied files.
    came: String,
}

struct CountedCommand {
    facts: Facts,
    found: Found,
    functions: Vec<FunctionCount>,
    stacks: Vec<(String, u64)>,
}

struct Work<'w> {
    args: &'w VersusArgs,
    accepts: Accepts,
    /// The first guest, until it is launched: its place, its name and itself.
    first: Option<(String, (String, Environment))>,
    // Dropped after the guest.
    cleanup: Cleanup,
    began: Instant,
    done: u32,
    /// Why places are left out, by their names.
    lost: BTreeMap<String, String>,
    watch: &'w mut dyn FnMut(&Doing<'_>),
}

impl<'w> Work<'w> {
    fn begin(
        args: &'w VersusArgs,
        accepts: Accepts,
        watch: &'w mut dyn FnMut(&Doing<'_>),
    ) -> Result<Self, Failure> {
        // A copy of this process, which must have no other threads.
        let cleanup = Cleanup::begin().map_err(|error| {
            Failure::input(format!("the cleanup process could not be started: {}", plainly(&error)))
        })?;
        let began = Instant::now();
        let mut work =
            Self { args, accepts, first: None, cleanup, began, done: 0, lost: BTreeMap::new(), watch };
        // If no guest can be made, that is known before anything is executed.
        for name in &args.environments {
            match work.prepare(name) {
                Ok(prepared) => _ = work.first.get_or_insert((name.clone(), prepared)),
                Err(failure) => work.leave_out(name, failure)?,
            }
        }
        Ok(work)
    }

    fn is_lost(&self, place: &str) -> bool {
        self.lost.contains_key(place)
    }

    /// Goes on without a guest and says why. Fails if it was the only one, or one of two, or because of a signal.
    fn leave_out(&mut self, place: &str, failure: Failure) -> Result<(), Failure> {
        let all = &self.args.environments;
        let why = match failure {
            Failure::Input(why) | Failure::Failed(why) if all.len() > 1 => reason(named(place).0, &why),
            failure => return Err(failure),
        };
        if self.is_lost(place) {
            return Ok(());
        }
        self.lost.insert(place.to_owned(), why.clone());
        if all.iter().filter(|place| !self.is_lost(place)).count() < 2 {
            let whys: Vec<&str> = self.lost.values().map(String::as_str).collect();
            return Err(Failure::input(format!("nothing was compared: {}", whys.join("; "))));
        }
        say::say(&why);
        Ok(())
    }

    fn say(&mut self, what: &str) {
        (self.watch)(&Doing { what, elapsed: self.began.elapsed(), rounds: self.done, so_far: None });
    }

    /// Executes commands of a boot here once, with what surrounds them.
    fn trace(&mut self, commands: &[Given]) -> Result<Brought, Failure> {
        let since = SystemTime::now();
        let mut brought =
            Brought { wanted: BTreeMap::new(), programs: Vec::new(), since, lacking: Vec::new() };
        commands.iter().try_for_each(|given| self.trace_one(given, &mut brought))?;
        for path in &self.args.conditions.with {
            let path = std::path::absolute(path).map_err(|error| with_failed(path, &error))?;
            let about = std::fs::metadata(&path).map_err(|error| with_failed(&path, &error))?;
            if path.parent().is_none() || !(about.is_file() || about.is_dir()) {
                return Err(Failure::input(format!(
                    "--with {}: only regular files and directories below the root can be copied",
                    path.display()
                )));
            }
            brought.want(&path, What::All);
        }
        brought.lacking.dedup();
        Ok(brought)
    }

    fn trace_one(&mut self, given: &Given, brought: &mut Brought) -> Result<(), Failure> {
        let mut here = Here::new();
        let around = [(&given.setup, "setup"), (&given.prepare, "preparation")];
        let before = around.into_iter().filter_map(|(order, what)| Some((Some(what), order.as_ref()?)));
        let around = [(&given.conclude, "conclusion"), (&given.cleanup, "clean-up")];
        let after = around.into_iter().filter_map(|(order, what)| Some((Some(what), order.as_ref()?)));
        let mut outcome = Ok(());
        for (what, order) in before.chain([(None, &given.order)]).chain(after) {
            // The set-up is cleaned up even if something failed.
            if outcome.is_err() && what != Some("clean-up") {
                continue;
            }
            let name = match what {
                Some(what) => format!("the {what} of {} on this machine", given.name),
                None => format!("{} on this machine", given.name),
            };
            self.say(&format!("tracing {name}"));
            let order = alone(order, self.args.length.timeout, How::Traced { files: true })?;
            let executed = here.execute(&order, &mut || {}).map_err(halted)?;
            brought.lacking.extend(executed.traced.iter().flat_map(lacking));
            let files = executed.traced.iter().flat_map(|traced| &traced.files);
            if what.is_none() {
                files.clone().for_each(|file| brought.executed(file));
            }
            files.filter_map(needed).for_each(|(path, what)| brought.want(path, what));
            files_of(&order).into_iter().for_each(|(path, what)| brought.want(&path, what));
            outcome = outcome.and_then(|()| match what {
                Some(_) => succeeded(&name, &order, executed),
                None => judged(&name, &order, &executed, &self.accepts).map(drop),
            });
        }
        let variables = format!("its variables are those of the guest: PATH={PATH} HOME=/root");
        outcome.map_err(|error| failed(hinted(error, &[variables])))
    }

    fn prepare(&mut self, name: &str) -> Result<(String, Environment), Failure> {
        let (called, spec) = parse(name)?;
        self.say(&format!("preparing {called}"));
        let stop = || interrupt::requested().is_some();
        let prepared = Environment::prepare(&spec, &self.cleanup, &stop);
        let prepared = prepared.map_err(|error| refused(&called, &error))?;
        Ok((called, prepared))
    }

    /// Boots all in turn and passes on what each counted. At most as many guests as there are processors execute their commands at the
    /// same time, since their counts do not depend on what else the machine does.
    fn count<'b>(
        &mut self,
        boots: &'b [Boot<'b>],
        keep: &mut dyn FnMut(&Self, &'b Boot<'b>, Booted) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let at_once = affinity::allowed(0).map_or(1, |processors| processors.len()).clamp(1, MOST_AT_ONCE);
        let (mut next, mut launched) = (boots.iter(), VecDeque::new());
        for boot in boots {
            for boot in next.by_ref().take(at_once - launched.len()) {
                go_on()?;
                launched.push_back((!self.is_lost(boot.place)).then(|| self.launch(boot)));
            }
            go_on()?;
            let Some(Some(guest)) = launched.pop_front() else { continue };
            let booted = guest.and_then(|guest| self.ask(boot, guest));
            if let Err(failure) = booted.and_then(|booted| keep(self, boot, booted)) {
                self.leave_out(boot.place, failure)?;
            }
            self.done += 1;
        }
        Ok(())
    }

    fn found(&self, boot: &Boot<'_>, booted: Booted) -> Result<CountedCommand, Failure> {
        let Booted { facts, mut counted, came } = booted;
        let nothing = || Failure::input(format!("{}: nothing was counted", boot.place));
        let given = boot.commands.first().ok_or_else(nothing)?;
        let mut inside = counted.inside.pop().ok_or_else(nothing)?;
        let stacks = std::mem::replace(&mut inside.stacks, Ok(Vec::new()));
        let functions = match inside.functions.is_empty() {
            true => Vec::new(),
            false => by_function(&mut inside, &boot.brought.code(given)),
        };
        let found = tally(counted.executions, inside, given, &self.accepts, named(boot.place).0);
        let mut found = found.map_err(|error| failed(hinted(error, &boot.brought.lacking)))?;
        note(&mut found, format!("{came} came along"));
        if let (Err(why), Some(_)) = (&stacks, &self.args.result.stacks) {
            note(&mut found, format!("there are no stacks: {why}"));
        }
        Ok(CountedCommand { facts, found, functions, stacks: stacks.unwrap_or_default() })
    }

    fn counting<'c>(&self, boot: &'c Boot<'_>) -> Counting<'c> {
        let patience = self.args.length.timeout.unwrap_or(PATIENCE);
        let number = u32::try_from(boot.commands.len()).unwrap_or(u32::MAX);
        Counting {
            name: &boot.of,
            commands: &boot.commands,
            within: patience.saturating_mul(SLOWER.saturating_mul(number)).saturating_add(START),
            why_not_watched: boot.why_not_watched,
            is_traced: boot.is_traced,
            has_functions: boot.rounds.has_functions,
            has_stacks: self.args.result.stacks.is_some(),
        }
    }

    fn launch(&mut self, boot: &Boot<'_>) -> Result<Launched, Failure> {
        let first = self.first.take_if(|(place, _)| place == boot.place);
        let (called, mut environment) = first.map_or_else(|| self.prepare(boot.place), |(_, it)| Ok(it))?;
        let refused = |error: EnvironmentError| refused(&called, &error);
        let wanted = boot.brought.wanted.iter();
        let wanted = wanted.map(|(path, what)| Wanted { path: path.clone(), what: *what });
        let wanted: Vec<Wanted> = wanted.collect();
        let came = environment.bring_commands(&wanted, boot.brought.since, &boot.rounds).map_err(refused)?;
        let mut log = environment
            .instructions()
            .ok_or_else(|| Failure::input(format!("{called}: its instructions are not counted")))?;
        let watched = watch(&mut *log, &self.counting(boot));
        let link = environment.start().map_err(refused)?;
        Ok(Launched { called, environment, log, watched, link, came })
    }

    fn ask(&mut self, boot: &Boot<'_>, guest: Launched) -> Result<Booted, Failure> {
        let Launched { called, environment, mut log, watched, link, came } = guest;
        let mut link = Some(link);
        let mut side = Side {
            name: called,
            start: Box::new(move || link.take().ok_or_else(|| "it was started already".to_owned())),
            starts: environment.starts(),
            wake: None,
            cpu: environment.cpu(),
            is_paired: false,
            is_counting: true,
            has_disk: false,
            outside: environment.observer(),
            life: None,
        };
        let counting = self.counting(boot);
        let counted = count_in(&mut side, &mut *log, watched, &counting, &mut |what| self.say(&what));
        drop(side);
        // The guest has ended before anything is reported.
        drop(environment);
        let (place, counted) = counted.map_err(|error| failed(error.into()))?;
        let mut facts = place.facts;
        facts.extend(place.findings.facts);
        Ok(Booted { facts, counted, came })
    }

    /// The rounds of a command, and the instructions after which no other one begins.
    fn rounds(&self, given: &Given) -> Rounds {
        let length = &self.args.length;
        let (steady, enough) = match (length.runs, length.min_runs, length.max_runs) {
            (Some(runs), ..) => (runs, u64::MAX),
            (_, Some(least), _) => (least, u64::MAX),
            (.., most) => (most.unwrap_or(STEADY), ENOUGH),
        };
        let around = [given.prepare.as_ref(), Some(&given.order), given.conclude.as_ref()];
        let round: Vec<Order> = around.into_iter().flatten().cloned().collect();
        let setup = given.setup.iter().cloned().collect();
        let rounds = std::iter::repeat_n(round, steady as usize + 1);
        let orders = std::iter::once(setup).chain(rounds).collect();
        let is_ahead = !self.args.conditions.no_trace && given.prepare.is_none() && given.conclude.is_none();
        let how = How::Traced { files: false };
        let traced = is_ahead.then(|| Order { how, ..given.order.clone() });
        Rounds { orders, enough, has_functions: self.has_functions(), traced }
    }

    fn has_functions(&self) -> bool {
        self.args.result.by == Some(By::Function) || self.args.result.stacks.is_some()
    }
}

/// The functions of the watched execution, the largest first. The functions of programs are named by the symbols of
/// their files on this machine, which were copied.
fn by_function(inside: &mut Inside, code: &UserCode) -> Vec<FunctionCount> {
    let mut all = std::mem::take(&mut inside.functions);
    let Ok(sums) = &inside.sums else { return all };
    all.retain(|one| one.name.is_some());
    let mut counts: BTreeMap<UserFunction, [u64; 2]> = BTreeMap::new();
    for ((address, page), times) in sums.addresses.iter().filter(|((address, _), _)| !is_kernel(*address)) {
        let count = counts.entry(code.at(*address, *page)).or_default();
        count.iter_mut().zip(times).for_each(|(count, times)| *count += times);
    }
    all.extend(counts.into_iter().map(|(UserFunction { file, name }, [instructions, repeated])| {
        let file = file.or_else(|| Some(IN_NO_FILE.to_owned()));
        FunctionCount { name, file, instructions, repeated }
    }));
    all.sort_by_key(|function| std::cmp::Reverse(function.instructions));
    all
}

/// The error of a command that works elsewhere, with its possible causes.
fn hinted(error: NotCompared, causes: &[String]) -> NotCompared {
    match error {
        NotCompared::Failed { mut sentence, said } => {
            causes.iter().for_each(|cause| sentence += &format!("; {cause}"));
            NotCompared::Failed { sentence, said }
        }
        error => error,
    }
}

/// The calls and devices that a command traced here uses, but a guest that counts lacks.
fn lacking(traced: &Traced) -> Vec<String> {
    /// Calls, and what each needs.
    const CALLS: [(&str, &str); 2] = [
        ("connect", "has no network but its loopback interface"),
        ("sched_setaffinity", "has one processor"),
    ];
    const EVERYWHERE: [&str; 10] =
        ["null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr"];
    let is_called = |name: &str| traced.calls.iter().any(|call| call.name == name);
    let calls = CALLS.iter().filter(|(name, _)| is_called(name));
    let calls = calls.map(|(name, lack)| format!("on this machine it calls {name}(2), and the guest {lack}"));
    let devices = traced.files.iter().filter(|file| matches!(needed(file), Some((_, What::Content))));
    let devices = devices.filter_map(|file| file.path.strip_prefix("/dev/"));
    let devices = devices.filter(|name| !name.contains('/') && !EVERYWHERE.contains(name)).take(3);
    let devices = devices.map(|name| {
        format!("on this machine it opens /dev/{name}, and the guest has no disk and few devices")
    });
    calls.chain(devices).collect()
}

fn in_guest(given: &Given, timeout: Option<Duration>) -> Result<Given, Failure> {
    let around =
        |order: &Option<Order>| order.as_ref().map(|order| alone(order, timeout, How::Timed)).transpose();
    Ok(Given {
        name: given.name.clone(),
        order: alone(&given.order, timeout, How::Counted)?,
        layouts: Vec::new(),
        setup: around(&given.setup)?,
        prepare: around(&given.prepare)?,
        conclude: around(&given.conclude)?,
        cleanup: None,
    })
}

/// An order with only the variables that it has in a guest.
fn alone(order: &Order, timeout: Option<Duration>, how: How) -> Result<Order, Failure> {
    let directory = std::env::current_dir()
        .map_err(|error| Failure::input(format!("the current directory: {}", plainly(&error))))?;
    let directory = directory.to_str().ok_or_else(|| {
        Failure::input("the name of the current directory is not UTF-8; start tollgate in another one")
    })?;
    let variables = [("PATH", PATH), ("HOME", "/root"), ("PWD", directory)];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let input = match &order.input {
        Input::File(path) => Input::File(Path::new(directory).join(path)),
        Input::Null => Input::Null,
    };
    let output = match &order.output {
        Output::File(path) => Output::File(Path::new(directory).join(path)),
        output => output.clone(),
    };
    let within = Some(timeout.unwrap_or(PATIENCE));
    Ok(Order { how, within, variables, input, output, is_alone: true, ..order.clone() })
}

/// How much to copy of a file that was opened, executed or looked at; `None` for what is not a path or does not exist.
fn needed(file: &FileTime) -> Option<(&Path, What)> {
    /// The operations that need its contents.
    const OPENED: [&str; 5] = ["named", "open", "read", "execve", "execveat"];
    let path = Path::new(&file.path);
    let is_any = |names: &[&str]| file.operations.iter().any(|of| names.contains(&of.operation.as_str()));
    let what = if is_any(&["present"]) {
        What::Replaced
    } else if is_any(&OPENED) {
        What::Content
    } else {
        What::Presence
    };
    path.is_absolute().then_some((path, what))
}

fn files_of(order: &Order) -> Vec<(PathBuf, What)> {
    let mut all = Vec::new();
    if let Some(name) = order.words.first() {
        let candidates = PATH.split(':').map(|directory| Path::new(directory).join(name));
        let program = if name.contains('/') {
            std::path::absolute(name).ok()
        } else {
            candidates.into_iter().find(|path| path.is_file())
        };
        all.extend(program.map(|path| (path, What::Content)));
    }
    if let Input::File(path) = &order.input {
        all.push((path.clone(), What::Content));
    }
    if let Output::File(path) = &order.output {
        all.extend(path.parent().map(|parent| (parent.to_owned(), What::Presence)));
    }
    all.extend(order.directory().map(|directory| (directory.to_owned(), What::Presence)));
    all
}

fn refused(name: &str, error: &EnvironmentError) -> Failure {
    match error {
        EnvironmentError::Interrupted => Failure::Interrupted(interrupt::requested().unwrap_or_default()),
        error => Failure::input(reason(name, &error.to_string())),
    }
}

fn halted(halt: Halt) -> Failure {
    match halt {
        Halt::Run(error) => failed(error.into()),
        Halt::Lost(why) => Failure::input(why),
    }
}

fn with_failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("--with {}: {}", path.display(), plainly(error)))
}

fn note(found: &mut Found, note: String) {
    let of = found.measurements.iter_mut().find(|measurement| measurement.case.benchmark == INSTRUCTIONS);
    if let Some(Outcome::Measured(measured)) = of.map(|of| &mut of.outcome) {
        measured.notes.push(note);
    }
}
