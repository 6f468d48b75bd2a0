//! `tollgate versus`: commands in alternation. The engine executes them; here they are read, kept and shown.
//!
//! - `given`: the commands as they are given; `parameters`: what is in their lines. `benches`: builds of benches in their place.
//! - `revisions`: builds of a repository's revisions, in which a command or the benches are executed.
//! - `places`: where they are executed, and `counted`: guests that count their instructions, `counts` beside times. `progress`: what is seen meanwhile.
//! - `bisect`: the first commit that changed a command.
//! - `more`: the counts that decide the exit status.

mod benches;
mod bisect;
mod counted;
mod counts;
mod executed;
mod given;
mod more;
mod parameters;
mod places;
mod progress;
mod revisions;

pub use benches::explain as explain_bench;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tollgate_engine::session::FunctionCount;
use tollgate_engine::versus::{Compared, Found, Plan, Rounds};
use tollgate_engine::{Random, interrupt};
use tollgate_model::compare::Spread;
use tollgate_model::compare::Verdict;
use tollgate_model::versus::{Command, INSTRUCTIONS, REAL, USER_INSTRUCTIONS};
use tollgate_model::{Case, Facts, Outcome, Part, Provenance, Run, own};
use tollgate_store::writing::{self, Existing, Until};
use tollgate_view::comparison::{ComparedRow, Comparison};
use tollgate_view::session::{self, Session};
use tollgate_view::versus::{self, hyperfine, json, text};

use crate::args::ShowFormat;
use crate::args::compare::{FailOn, Quantity};
use crate::args::versus::{AroundArgs, By, ConditionArgs, LengthArgs, ResultArgs, VersusArgs};
use crate::destination::{Destination, STANDARD_OUTPUT, expect_seen};
use crate::failure::{Failure, plainly};
use crate::run::sides::{named, names_of_kernels};
use crate::{compare, document, out, say, show};
use counts::Counts;
use executed::{Executed, Stacks};
use given::Commands;
use progress::Shown;
use revisions::{Revisions, Side, equal};

const TIME: Duration = Duration::from_secs(30);
/// Minimum number of executions of each command without --time, as in hyperfine.
const LEAST: u32 = 10;

impl VersusArgs {
    /// # Errors
    /// Wrong input, before anything is executed; a command that failed; a result that could not be kept or written, after it was
    /// shown; the condition of `--fail-on`; commands that stay undecided with `--until-decided`.
    pub fn execute(&self) -> Result<(), Failure> {
        let is_bisected = !self.revisions.bisect.is_empty();
        let execute = if is_bisected { bisect::execute } else { versus };
        let done = match &self.kernels {
            None => execute(self),
            Some(directory) => names_of_kernels(&self.environments, directory)
                .and_then(|environments| execute(&Self { environments, ..self.clone() })),
        };
        self.result.undecided.applied(done)
    }
}

fn versus(args: &VersusArgs) -> Result<(), Failure> {
    let asked = revisions::asked(args)?;
    let commands = if args.bench.bench { None } else { Some(Commands::of(args, asked.as_deref())?) };
    let files = || exports(args).filter(|(_, file)| *file != Path::new(STANDARD_OUTPUT));
    files().try_for_each(|(option, file)| {
        writing::check(file).map_err(|why| Failure::input(format!("{option} {}: {why}", file.display())))
    })?;
    let counts = counted::is_asked(&args.environments)?;
    counts::check(args)?;
    if counts {
        counted::check(args)?;
    } else {
        let is_by_function = args.result.by == Some(By::Function);
        let given = [("--by function", is_by_function), ("--stacks", args.result.stacks.is_some())];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let said = format!("{option} needs a guest that counts instructions, such as --in vm:exact");
            return Err(Failure::input(said));
        }
    }
    more::check(args, counts)?;
    if args.bench.bench && matches!(args.result.by, Some(By::Function | By::Cpu)) {
        return Err(Failure::input(
            "--by function and --by cpu apply to commands; with --bench the harness gives the figure, so omit --by",
        ));
    }
    if args.result.by == Some(By::Function)
        && !matches!(args.result.format, ShowFormat::Table | ShowFormat::Json)
    {
        return Err(Failure::input("--by function prints a table or JSON; omit --by with other formats"));
    }
    let destination = destination(args)?;
    interrupt::install();
    commands.iter().filter(|_| asked.is_none() && !args.result.quiet).for_each(say_equal);
    let Some(Measured { runs, interrupted, left_out, functions, stacks, revisions }) =
        measure(args, asked, commands)?
    else {
        return Ok(());
    };
    let is_counted = args.result.counts && interrupted.is_none();
    let counts = if is_counted { counts::count(args, revisions.as_ref())? } else { Counts::default() };
    finish(args, destination.as_ref(), &runs, &counts, &functions, &stacks)?;
    if interrupted.is_some() {
        let kept = if destination.is_some() { "; what was timed until then was kept" } else { "" };
        say::say(&format!("interrupted{kept}"));
        return Ok(());
    }
    // A condition that is met decides before one that is open.
    match (more::judge(args, &runs), judge(args, &runs)) {
        (Err(met @ Failure::Condition(_)), _) | (_, Err(met @ Failure::Condition(_))) => Err(met),
        (of_counts, of_times) => of_counts.and(of_times).and_then(|()| all_were_measured(args, left_out)),
    }
}

/// An environment that was left out may hide a result that meets a condition.
fn all_were_measured(args: &VersusArgs, left_out: usize) -> Result<(), Failure> {
    let option = match (args.result.fail_on.as_slice(), args.result.budget.as_slice()) {
        _ if left_out == 0 => return Ok(()),
        ([], []) => return Ok(()),
        ([], _) => "--budget",
        _ => "--fail-on",
    };
    let of = args.environments.len();
    let measured = of.saturating_sub(left_out);
    Err(Failure::Undecided(format!("{option}: {measured} of {of} environments were measured")))
}

/// The runs of a comparison, and what else was found.
struct Measured {
    runs: Vec<Run>,
    interrupted: Option<i32>,
    /// The number of environments that could not be measured.
    left_out: usize,
    functions: Vec<Vec<FunctionCount>>,
    stacks: Vec<Stacks>,
    /// The builds are kept as long as this exists.
    revisions: Option<Revisions>,
}

/// Builds revisions and executes everything. `None` if the sides execute equal files.
fn measure(
    args: &VersusArgs,
    asked: Option<Vec<Side>>,
    mut commands: Option<Commands>,
) -> Result<Option<Measured>, Failure> {
    let began = SystemTime::now();
    let mut revisions = asked.map(|asked| revisions::built(args, asked)).transpose()?;
    let mut layouts = None;
    let (runs, interrupted, left_out, functions, stacks) = loop {
        if let Some(revisions) = &mut revisions {
            if layouts.is_none() && revisions.are_equal(args)? {
                return Ok(None);
            }
            layouts = Some(revisions.lay_out(args, layouts)?);
            commands = (!args.bench.bench).then(|| Commands::of(args, Some(&revisions.sides))).transpose()?;
        }
        let (Executed { compared, places, functions, stacks }, kept) = match commands.take() {
            Some(commands) => execute(args, commands, began)?,
            None => benches::execute(args, revisions.as_ref(), began)?,
        };
        let interrupted = compared.interrupted;
        let left_out = args.environments.len().saturating_sub(places.iter().flatten().count());
        let runs = runs(args, began, compared, &places, kept)?;
        match layouts.filter(|_| interrupted.is_none()).and_then(|number| more_layouts(args, number, &runs)) {
            Some(more) => layouts = Some(more),
            None => break (runs, interrupted, left_out, functions, stacks),
        }
    };
    if !runs.iter().any(is_timed) {
        return Err(interrupted.map_or_else(|| nothing(&runs), Failure::Interrupted));
    }
    Ok(Some(Measured { runs, interrupted, left_out, functions, stacks, revisions }))
}

/// Returns how many layouts would decide a comparison that `number` layouts leave open, and reports it. `None` if the user gave a number.
fn more_layouts(args: &VersusArgs, number: usize, runs: &[Run]) -> Option<usize> {
    if args.revisions.layouts.is_some() || number == 1 {
        return None;
    }
    let (base, others) = runs.split_first()?;
    let asked = args.result.threshold.unwrap_or(0.0);
    let rows = others.iter().flat_map(|other| Comparison::above(base, other, asked).rows);
    let is_open = |row: &ComparedRow| {
        row.result.verdict == Verdict::Inconclusive && (args.bench.bench || is_asked_for(row.case()))
    };
    let deciding = rows.filter(is_open).filter_map(|row| row.result.layouts?.deciding).max()?;
    // Each layout needs executions of its own.
    let most = args.length.runs.or(args.length.max_runs).map_or(usize::MAX, |runs| runs as usize / 2);
    let more = deciding.next_multiple_of(4).min(revisions::MOST_LAYOUTS).min(most);
    (more > number).then(|| {
        say::say(&format!("{number} layouts of each do not decide; again with up to {more}"));
        more
    })
}

/// Says which commands execute one file with equal arguments, by mistake or to see what equal sides show.
fn say_equal(commands: &Commands) {
    let is_for_a_shell = |line: &str| line.contains(|c: char| "|&;<>()$`\\*?[]{}~#=!\n".contains(c));
    let words = |(_, command): &(_, Command)| {
        let line = Some(command.line.as_str()).filter(|line| !is_for_a_shell(line));
        line.and_then(|line| tollgate_os::words::split(line).ok()).unwrap_or_default()
    };
    for pair in equal::commands(&commands.all.iter().map(words).collect::<Vec<_>>()) {
        let [one, other] = pair.map(versus::letter);
        say::say(&format!(
            "{one} and {other} execute one file with equal arguments, so they can differ only by chance"
        ));
    }
}

fn execute(
    args: &VersusArgs,
    Commands { all, start, accepts }: Commands,
    began: SystemTime,
) -> Result<(Executed, Vec<Command>), Failure> {
    let layouts = all.iter().map(|(given, _)| given.layouts.len()).max().unwrap_or_default();
    let rounds = rounds(&args.length, layouts)?;
    let (commands, kept): (Vec<_>, Vec<Command>) = all.into_iter().unzip();
    let plan = Plan {
        commands,
        places: args.environments.iter().map(|name| named(name).0.to_owned()).collect(),
        start: Some(start),
        warmups: args.length.warmup,
        rounds,
        time: args.length.time.unwrap_or(if args.length.runs.is_some() { Duration::MAX } else { TIME }),
        precision: args.length.precision,
        asked: args.result.threshold.unwrap_or(0.0),
        by_processor: args.result.by == Some(By::Cpu),
        until_decided: args.length.until_decided,
        is_traced: !args.conditions.no_trace,
        is_cold: args.conditions.cold,
        accepts,
        timeout: args.length.timeout,
        seed: Random::seed(),
    };
    let is_counted = counted::is_asked(&args.environments)?;
    let counted = is_counted.then_some(plan.commands.len() * plan.places.len().max(1));
    let mut shown = Shown::new(plan.time, plan.rounds, !args.result.quiet, counted);
    let executed = places::execute(args, &plan, began, &mut |doing| shown.update(doing));
    shown.end();
    Ok((executed?, kept))
}

/// Shows the functions of a command as `versus --by function` does.
pub fn explain(line: &str, environment: &str, stacks: Option<&Path>) -> Result<(), Failure> {
    versus(&VersusArgs {
        commands: vec![line.to_owned()],
        environments: vec![environment.to_owned()],
        length: LengthArgs { runs: Some(2), ..LengthArgs::default() },
        around: AroundArgs { shell: "default".to_owned(), ..AroundArgs::default() },
        conditions: ConditionArgs {
            input: "null".to_owned(),
            output: vec!["null".to_owned()],
            ..ConditionArgs::default()
        },
        result: ResultArgs {
            by: Some(By::Function),
            stacks: stacks.map(Path::to_owned),
            ..ResultArgs::default()
        },
        ..VersusArgs::default()
    })
}

/// The files of `--export-…` and `--stacks`, with the options.
fn exports(args: &VersusArgs) -> impl Iterator<Item = (&'static str, &Path)> {
    let result = &args.result;
    let all = [
        ("--export-json", &result.export_json),
        ("--export-csv", &result.export_csv),
        ("--export-markdown", &result.export_markdown),
        ("--stacks", &result.stacks),
    ];
    all.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?)))
}

/// The destination of the runs; `None` unless requested.
fn destination(args: &VersusArgs) -> Result<Option<Destination>, Failure> {
    let is_asked = args.result.out.is_some() || args.result.label.is_some();
    let destination = is_asked.then(|| Destination::of_session(args.result.out.as_deref())).transpose()?;
    if let Some(destination) = destination.as_ref().filter(|_| !args.result.quiet) {
        destination.say_doubt();
    }
    Ok(destination)
}

/// At least two executions of each layout.
fn rounds(length: &LengthArgs, layouts: usize) -> Result<Rounds, Failure> {
    if let Some(runs) = length.runs {
        return Ok(Rounds::exactly(runs));
    }
    let most = length.max_runs.unwrap_or(Rounds::MOST);
    let usual = if length.time.is_some() { 1 } else { LEAST.max(2 * layouts as u32) };
    match length.min_runs {
        Some(least) if least > most => {
            Err(Failure::input(format!("--min-runs {least} is more than --max-runs {most}")))
        }
        least => Ok(Rounds { least: least.unwrap_or(usual.min(most)), most }),
    }
}

fn runs(
    args: &VersusArgs,
    began: SystemTime,
    compared: Compared,
    places: &[Option<(Part, Facts)>],
    commands: Vec<Command>,
) -> Result<Vec<Run>, Failure> {
    let Compared { found, facts: of_comparison, .. } = compared;
    let cells = commands.iter().flat_map(|command| places.iter().map(move |place| (command, place)));
    let known: Vec<(&Command, &(Part, Facts), Found)> = cells
        .zip(found)
        .filter_map(|((command, place), found)| Some((command, place.as_ref()?, found)))
        .collect();
    let of = u32::try_from(known.len()).unwrap_or(u32::MAX);
    let id = known.first().map(|(_, (part, _), _)| part.id.clone());
    let make = |(place, (command, (part, facts), found)): (u32, (&Command, &(Part, Facts), Found))| {
        let Found { measurements, is_corrected, failed, cold } = found;
        let provenance = places::provenance(facts);
        let measurements = measurements.into_iter().map(|mut measurement| {
            if let Outcome::Measured(measured) = &mut measurement.outcome
                && measured.provenance == Provenance::Hardware
            {
                measured.provenance = provenance;
            }
            measurement
        });
        let mut all = facts.clone();
        all.extend(of_comparison.iter().cloned());
        let run = document::ended_run(began, args.result.label.clone(), all, measurements.collect())?;
        let command = Command { is_corrected, failed, cold, ..command.clone() };
        let id = id.clone().unwrap_or_else(|| part.id.clone());
        let part = Part { id, place, of, command: Some(Box::new(command)), ..part.clone() };
        Ok(Run { session: Some(part), ..run })
    };
    (0..).zip(known).map(make).collect()
}

fn is_timed(run: &Run) -> bool {
    run.measured().any(|(case, _)| !own::is_own(&case.benchmark))
}

fn nothing(runs: &[Run]) -> Failure {
    let measurements = runs.iter().flat_map(|run| &run.measurements);
    let failed = measurements.filter(|one| matches!(one.outcome, Outcome::Failed { .. }));
    let why = failed.filter_map(|one| Some(format!(": {} {}", one.case, one.outcome.why()?))).next();
    Failure::input(format!("nothing was timed{}", why.unwrap_or_default()))
}

/// The quantity that a comparison of commands is about: the real time, or instructions. Those of the program itself are more
/// precise.
fn is_asked_for(case: &Case) -> bool {
    [REAL, INSTRUCTIONS, USER_INSTRUCTIONS].contains(&case.benchmark.as_str())
}

/// Returns the gravest error, after everything else was done.
fn finish(
    args: &VersusArgs,
    destination: Option<&Destination>,
    runs: &[Run],
    counts: &Counts,
    functions: &[Vec<FunctionCount>],
    stacks: &[Stacks],
) -> Result<(), Failure> {
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut unkept = None;
    for (run, destination) in runs.iter().filter_map(|run| Some((run, destination?))) {
        match destination.keep(run, Until::Durable) {
            Ok(path) => kept.extend(path),
            Err(failure) => unkept = Some(failure),
        }
    }
    let asked = args.result.threshold.unwrap_or(0.0);
    let Some(session) = Session::above(runs, asked) else { return Ok(()) };
    // A file is named by its run's position.
    let named = if unkept.is_some() { &[][..] } else { &kept[..] };
    let (all, width) = (args.result.all, out::width());
    let shown = match args.result.format {
        ShowFormat::Csv => show::print_csv(session.compared()),
        ShowFormat::Md => show::print_markdown(runs, &Spread::default(), asked),
        ShowFormat::Svg => show::print_picture(runs, &Spread::default(), asked),
        ShowFormat::Table if args.bench.bench => out::print(&session::text(&session, all, width)),
        ShowFormat::Table => {
            // The last line names what else can be shown.
            let screen = screen(&session, functions, all);
            let last = screen.trim_end().rfind('\n').map_or(0, |end| end + 1);
            out::print(&format!("{}{}{}", &screen[..last], beside(&session, counts, all), &screen[last..]))
        }
        ShowFormat::Json if args.bench.bench => {
            out::print_json(&session::json::SessionDocument::new(&session, named))
        }
        ShowFormat::Json => {
            let document = json::VersusDocument::new(&session, named).with_functions(functions);
            let counted = Session::of(&counts.runs);
            out::print_json(&match &counted {
                Some(counted) => document.with_counts(&session, counted, &counts.functions),
                None => document,
            })
        }
    };
    let exported = export(args, &session, stacks);
    if let Some(failure) = unkept {
        return Err(failure);
    }
    exported?;
    match kept.first() {
        Some(path) => expect_seen(shown, Some(path)),
        None => shown,
    }
}

fn screen(session: &Session, functions: &[Vec<FunctionCount>], all: bool) -> String {
    let counts = text(session, all, out::width());
    if functions.len() == session.members.len() {
        counts + &versus::functions(session, functions, all, out::width())
    } else {
        counts
    }
}

fn beside(session: &Session, counts: &Counts, all: bool) -> String {
    let counted = Session::of(&counts.runs);
    counted.map_or_else(String::new, |counted| {
        versus::counts(session, &counted, &counts.functions, all, out::width())
    })
}

fn export(args: &VersusArgs, session: &Session, stacks: &[Stacks]) -> Result<(), Failure> {
    for (option, file) in exports(args) {
        let written = match option {
            "--export-json" => hyperfine::json(session)
                .map_err(|error| Failure::input(format!("{option} {}: {error}", file.display())))?,
            "--export-csv" => hyperfine::csv(session),
            "--stacks" => executed::text_of(stacks, file),
            _ => hyperfine::markdown(session, args.result.time_unit.map(Into::into)),
        };
        if file == Path::new(STANDARD_OUTPUT) {
            out::print(&written)?;
            continue;
        }
        writing::write_whole(file, written.as_bytes(), Existing::Replace)
            .map_err(|error| Failure::input(format!("{option} {}: {}", file.display(), plainly(&error))))?;
    }
    Ok(())
}

fn judge(args: &VersusArgs, runs: &[Run]) -> Result<(), Failure> {
    let Some((base, others)) = runs.split_first() else { return Ok(()) };
    // The control comes after all that is to be judged.
    let others = &others[..others.len() - usize::from(args.bench.control.is_some() && !others.is_empty())];
    let asked = args.result.threshold.unwrap_or(0.0);
    let mut comparisons: Vec<Comparison> =
        others.iter().map(|other| Comparison::above(base, other, asked)).collect();
    comparisons
        .iter_mut()
        .for_each(|comparison| comparison.retain(|case| args.bench.bench || is_asked_for(case)));
    let by = if args.result.by == Some(By::Cpu) { Quantity::Cpu } else { Quantity::Real };
    let judged = comparisons.iter().flat_map(|comparison| &comparison.rows).map(|row| match by {
        Quantity::Real => row.result.verdict,
        Quantity::Cpu => row.result.processor.as_ref().map_or(Verdict::Inconclusive, |cpu| cpu.verdict),
    });
    let judged: Vec<Verdict> = judged.collect();
    // For commands, `more` is about counts, which are judged elsewhere.
    let is_of_time = |fail_on: &&FailOn| args.bench.bench || **fail_on != FailOn::More;
    let fail_on: Vec<FailOn> = args.result.fail_on.iter().filter(is_of_time).copied().collect();
    if !fail_on.is_empty() {
        compare::check(&fail_on, asked, comparisons, by)?;
    }
    let open = judged.iter().filter(|verdict| **verdict == Verdict::Inconclusive).count();
    let of = judged.len();
    match open {
        open if open > 0 && args.length.until_decided => {
            Err(Failure::Undecided(format!("--until-decided: {open} of {of} are inconclusive")))
        }
        _ => Ok(()),
    }
}
