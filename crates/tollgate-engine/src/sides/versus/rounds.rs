//! The executions from the first preparation to the last clean-up.
//!
//! A round executes each command once in each place. The order is drawn anew for each round, so that chance decides which command meets
//! which disturbance of the machine. Rounds in which commands are traced lie between those in which they are timed: a timed execution is
//! never traced.
//!
//! If the time of a command depends on which one was executed before it, as that of `git checkout` does, an order in which it follows
//! itself does not compare what was meant. The rounds then start again, with the commands in turn.

use std::time::{Duration, Instant};

use tollgate_alternation::{Alternation, How as Purpose, Outcome, Places, SoFar, Trial, Turn};
use tollgate_model::estimate::CONFIDENCE;
use tollgate_model::traced::{Backend, Ended};
use tollgate_model::versus::{IN_TURN, LAYOUTS};
use tollgate_model::{Fact, compare, stats};

use super::cell::{Cell, Found, processor_time};
use super::executor::Executor;
use super::order::{End, Execution, How, Order};
use super::plan::{Accepts, Given, Plan, SHORT};
use crate::cases::run::BenchError;
use crate::machine::ending::signal_name;
use crate::machine::interrupt;
use crate::rounds::commands::most_traced;
use crate::rounds::measure::INTERRUPTED;
use tollgate_model::stats::random::Random;

/// Executions of a command's start, before it is known whether its time matters.
const STARTS: u32 = 5;
/// The variable that tells a command the number of its execution. Scripts for hyperfine use it in file names.
const ITERATION: &str = "HYPERFINE_ITERATION";
/// How long a clean-up may take after the user asked to stop.
const CLEANS_UP: Duration = Duration::from_secs(10);

/// The results of all commands.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// The results command by command, each in all places.
    pub found: Vec<Found>,
    /// Facts of the comparison.
    pub facts: Vec<(String, Fact)>,
    /// For each place, why it was lost, if it was.
    pub lost: Vec<Option<String>>,
    /// The signal that stopped it early.
    pub interrupted: Option<i32>,
}

/// The present activity.
#[derive(Debug, Clone, PartialEq)]
pub struct Doing<'a> {
    /// The activity, in a few words.
    pub what: &'a str,
    /// Time since the first preparation.
    pub elapsed: Duration,
    /// The number of timed rounds.
    pub rounds: u32,
    /// The last comparison so far, with its index among the commands and places.
    pub so_far: Option<(usize, compare::Neighbours)>,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// A command ended in a way that is not accepted, was not started, or took too long.
    #[error("{sentence}")]
    Failed {
        /// A sentence that names the command.
        sentence: String,
        /// The last bytes that the command wrote.
        said: String,
    },
    /// The run ends.
    #[error(transparent)]
    Run(#[from] BenchError),
}

/// Executes the commands in all places until the intervals are narrow, or the time is over.
///
/// # Errors
/// See [`NotCompared`]. Clean-ups are executed even then.
pub fn measure(
    executors: &mut [&mut dyn Executor],
    plan: &Plan,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Compared, NotCompared> {
    let (places, cells) = (executors.len(), plan.commands.len() * executors.len());
    let mut commands = Commands {
        plan,
        began: Instant::now(),
        cells: (0..cells).map(|_| Cell::default()).collect(),
        starts: vec![Vec::new(); places],
        set_up: Vec::new(),
        is_start_timed: false,
        is_length_known: false,
        finds_files: false,
        backends: vec![None; places],
        watch,
        executors,
    };
    let lengths = tollgate_alternation::Plan {
        until_decided: plan.until_decided,
        asked: plan.asked,
        is_whole: true,
        layouts: plan.layouts(),
        ..tollgate_alternation::Plan::new(plan.rounds, plan.time, plan.precision)
    };
    let all = [(0..cells).collect()];
    let mut rounds = Alternation::new(lengths, Random::new(plan.seed), &all, Places::in_turn(cells, places));
    let ended = commands.whole(&mut rounds).map_err(stopped);
    let cleaned = commands.clean_up(&mut rounds.places, matches!(ended, Err(Stop::Interrupted(_))));
    match (ended, cleaned) {
        (Ok(()), Ok(())) => Ok(commands.conclude(&rounds, None)),
        (Err(Stop::Interrupted(signal)), _) | (Ok(()), Err(Stop::Interrupted(signal))) => {
            Ok(commands.conclude(&rounds, Some(signal)))
        }
        (Err(Stop::Failed(failed)), _) | (Ok(()), Err(Stop::Failed(failed))) => Err(failed),
    }
}

/// Why the executions end before their time.
enum Stop {
    Interrupted(i32),
    Failed(NotCompared),
}

type Halt = tollgate_alternation::Halt<NotCompared>;

fn stopped(halt: Halt) -> Stop {
    match halt {
        Halt::Run(NotCompared::Run(BenchError::Interrupted(signal))) => Stop::Interrupted(signal),
        Halt::Run(failed) => Stop::Failed(failed),
        Halt::Lost(why) => Stop::Failed(BenchError::NoEnvironment(why).into()),
    }
}

/// The executions of commands. A side is a command in one place: command by command, each in all places.
struct Commands<'r, 'p> {
    plan: &'r Plan,
    executors: &'r mut [&'p mut dyn Executor],
    began: Instant,
    cells: Vec<Cell>,
    /// For each place, real times of a command's start, in nanoseconds.
    starts: Vec<Vec<f64>>,
    /// The cells that were set up and must be cleaned up.
    set_up: Vec<usize>,
    is_start_timed: bool,
    is_length_known: bool,
    /// Whether commands are traced for the files that they read.
    finds_files: bool,
    /// For each place, the backend that traces commands, once that is known.
    backends: Vec<Option<Backend>>,
    watch: &'r mut dyn FnMut(&Doing<'_>),
}

impl Trial for Commands<'_, '_> {
    type Stop = NotCompared;

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn execute(&mut self, turn: &Turn, so_far: &SoFar) -> Result<Outcome, Halt> {
        let Turn { side: cell, how, number, .. } = *turn;
        let (how, iteration) = match how {
            Purpose::Warm => (How::Timed, format!("warmup-{number}")),
            Purpose::Timed => (How::Timed, number.to_string()),
            // If no backend can trace, only wait4(2) gives times, which the timed executions have too.
            Purpose::Traced if self.cells[cell].is_untraced() => return Ok(Outcome::Done),
            Purpose::Traced => (How::Traced { files: self.finds_files }, format!("traced-{number}")),
        };
        let executed = self.executed(cell, how, (number, iteration), so_far)?;
        let (plan, place) = (self.plan, self.place(cell));
        let of_cell = &mut self.cells[cell];
        let figure = match (&executed, plan.by_processor) {
            (Some((execution, _)), true) => processor_time(execution),
            (Some((execution, _)), false) => execution.wall_ns as f64,
            (None, _) => 0.0,
        };
        match (executed, turn.how) {
            (None, _) => {}
            (Some((execution, _)), Purpose::Warm) => of_cell.warmed(&execution),
            (Some((execution, ended)), Purpose::Timed) => of_cell.time(&execution, ended),
            (Some((execution, _)), Purpose::Traced) if self.finds_files => {
                self.find_files(cell, execution)?
            }
            (Some((execution, _)), Purpose::Traced) => {
                let backend = execution.traced.as_ref().map(|traced| traced.backend);
                self.backends[place] = self.backends[place].or(backend);
                of_cell.trace(execution);
            }
        }
        Ok(Outcome::Figure(figure))
    }

    /// Times the start of a command if that matters.
    fn after_round(&mut self, places: &mut Places, so_far: &SoFar) -> Result<(), Halt> {
        if self.is_start_timed {
            self.time_starts(places, so_far)?;
        }
        self.find_whether_short(places, so_far)
    }

    fn less(&self, side: usize) -> f64 {
        let is_subtracted =
            !self.plan.by_processor && self.is_start_timed && is_start_known(&self.cells, &self.starts);
        let starts = Some(&self.starts[self.place(side)]).filter(|_| is_subtracted);
        starts.and_then(|starts| stats::median(starts)).unwrap_or(0.0)
    }

    fn most_traced(&self) -> u32 {
        let is_possible = self.plan.is_traced && self.cells.iter().any(|cell| !cell.is_untraced());
        if is_possible { most_traced(self.backends.iter().copied().flatten()) } else { 0 }
    }

    /// A command with a preparation inherits nothing, because the preparation sets the state.
    fn inherits(&self, side: usize) -> bool {
        self.given(side).prepare.is_none()
    }

    fn begin_anew(&mut self) {
        self.cells.iter_mut().for_each(Cell::begin_anew);
        self.starts.iter_mut().for_each(Vec::clear);
    }
}

impl Commands<'_, '_> {
    fn whole(&mut self, rounds: &mut Alternation) -> Result<(), Halt> {
        let so_far = SoFar::default();
        for cell in 0..self.cells.len() {
            self.set_up.push(cell);
            let place = self.place(cell);
            rounds
                .places
                .step(place, || self.around(cell, "setup", |given| given.setup.as_ref(), &so_far))?;
        }
        if self.plan.is_cold {
            self.finds_files = true;
            rounds.pass(self, Purpose::Traced, 0)?;
            self.finds_files = false;
        }
        for number in 0..self.plan.warmups {
            rounds.pass(self, Purpose::Warm, number)?;
        }
        self.find_whether_short(&mut rounds.places, &so_far)?;
        rounds.run(self)
    }

    fn place(&self, cell: usize) -> usize {
        cell % self.executors.len()
    }

    /// Returns the name of a command, with its environment if there are several.
    fn name(&self, cell: usize) -> String {
        let name = &self.given(cell).name;
        match self.plan.places.get(self.place(cell)) {
            Some(place) if self.executors.len() > 1 => format!("{name} in {place}"),
            _ => name.clone(),
        }
    }

    fn given(&self, cell: usize) -> &Given {
        &self.plan.commands[cell / self.executors.len()]
    }

    /// Times the start of a command, once in each place.
    fn time_starts(&mut self, places: &mut Places, so_far: &SoFar) -> Result<(), Halt> {
        let Some(start) = &self.plan.start else { return Ok(()) };
        for place in 0..self.executors.len() {
            let executed =
                places.step(place, || self.step(place, start, "the start of a command", so_far))?;
            if let Some(Execution { end: End::Ended(Ended::Exit(0)), wall_ns, .. }) = executed {
                self.starts[place].push(wall_ns as f64);
            }
        }
        Ok(())
    }

    /// Finds, from the warm-ups or the first round, whether any command is so short that its start matters.
    fn find_whether_short(&mut self, places: &mut Places, so_far: &SoFar) -> Result<(), Halt> {
        let is_executed = |cell: &Cell| cell.shortest().is_some();
        if self.is_length_known || self.plan.start.is_none() || !self.cells.iter().any(is_executed) {
            return Ok(());
        }
        self.is_length_known = true;
        let rounds = self.starts.iter().map(Vec::len).max().unwrap_or_default();
        for _ in 0..STARTS {
            self.time_starts(places, so_far)?;
        }
        for (at, cell) in self.cells.iter().enumerate() {
            let around = stats::median(&self.starts[self.place(at)]).unwrap_or(0.0);
            let shortest = cell.shortest().unwrap_or(f64::INFINITY);
            self.is_start_timed |= shortest - around < SHORT.as_nanos() as f64;
        }
        self.starts.iter_mut().for_each(|starts| starts.truncate(rounds));
        Ok(())
    }

    /// Notes the files that a command reads.
    fn find_files(&mut self, cell: usize, execution: Execution) -> Result<(), Halt> {
        let traced = execution.traced.filter(|traced| traced.backend != Backend::Rusage);
        let Some(traced) = traced else {
            let name = self.name(cell);
            return Err(failed(format!(
                "{name}: --cold needs the list of files that it reads, but it cannot be traced here"
            )));
        };
        let files = traced.files.into_iter().map(|file| file.path).filter(|path| path.starts_with('/'));
        self.cells[cell].files = files.collect();
        Ok(())
    }

    /// Executes a command with the orders around it, and tells it the number of this execution. `None` if it failed because it was traced.
    fn executed(
        &mut self,
        cell: usize,
        how: How,
        (number, iteration): (u32, String),
        so_far: &SoFar,
    ) -> Result<Option<(Execution, Ended)>, Halt> {
        self.around(cell, "preparation", |given| given.prepare.as_ref(), so_far)?;
        let place = self.place(cell);
        if self.plan.is_cold && !self.cells[cell].files.is_empty() {
            let cooled = self.executors[place].cool(&self.cells[cell].files);
            self.cells[cell].cooled(cooled.map_err(|halt| halt.map(NotCompared::from))?);
        }
        let given = self.given(cell);
        // A traced execution takes longer, which is not the command's fault.
        let within = match how {
            How::Timed => self.plan.patience(self.cells[cell].slowest()),
            _ => self.plan.patience_of_traced(self.cells[cell].slowest()),
        };
        let variables = vec![(ITERATION.to_owned(), iteration.clone())];
        let order = Order { how, within, variables, ..given.order_of(number).clone() };
        let name = self.name(cell);
        let execution = self.step(place, &order, &name, so_far)?;
        let ended = match judged(&name, &order, &execution, &self.plan.accepts) {
            // A set-user-ID program may fail under ptrace(2). Untraced it passes, or the next timed execution shows the error.
            Err(NotCompared::Failed { sentence, .. }) if how == (How::Traced { files: false }) => {
                self.cells[cell].leave_untraced(format!("it failed while it was traced: {sentence}"));
                None
            }
            // If earlier executions passed, the number of this one helps to find the cause.
            judged => Some(judged.map_err(|failed| Halt::Run(self.numbered(failed, &iteration)))?),
        };
        self.around(cell, "conclusion", |given| given.conclude.as_ref(), so_far)?;
        Ok(ended.map(|ended| (execution, ended)))
    }

    /// Adds the number of the execution to its failure, unless it is the first one.
    fn numbered(&self, failed: NotCompared, iteration: &str) -> NotCompared {
        match (failed, iteration.parse::<u32>()) {
            (NotCompared::Failed { sentence, said }, Ok(number @ 1..)) => {
                let rounds = self.plan.rounds;
                let of = if rounds.is_exact() { format!(" of {}", rounds.most) } else { String::new() };
                let sentence = format!("{sentence} in its execution {}{of}", number + 1);
                NotCompared::Failed { sentence, said }
            }
            (failed, _) => failed,
        }
    }

    /// Executes an order around a command, which must succeed.
    fn around(
        &mut self,
        cell: usize,
        what: &str,
        of: impl Fn(&Given) -> Option<&Order>,
        so_far: &SoFar,
    ) -> Result<(), Halt> {
        let given = self.given(cell);
        let Some(order) = of(given).cloned() else { return Ok(()) };
        let order = Order { within: order.within.or(self.plan.timeout), ..order };
        let name = format!("the {what} of {}", self.name(cell));
        let execution = self.step(self.place(cell), &order, &name, so_far)?;
        succeeded(&name, &order, execution).map_err(Halt::Run)
    }

    /// Executes an order in a place.
    fn step(&mut self, place: usize, order: &Order, what: &str, so_far: &SoFar) -> Result<Execution, Halt> {
        let Self { executors, watch, began, .. } = self;
        let so_far = Doing {
            what,
            elapsed: Duration::ZERO,
            rounds: so_far.rounds,
            so_far: so_far.compared.map(|(_, side, found)| (side, found)),
        };
        let mut tick = || watch(&Doing { elapsed: began.elapsed(), ..so_far.clone() });
        tick();
        executors[place].execute(order, &mut tick).map_err(|halt| halt.map(NotCompared::from))
    }

    /// Cleans up everything that was set up, in the order of the commands, even after a failure.
    fn clean_up(&mut self, places: &mut Places, is_interrupted: bool) -> Result<(), Stop> {
        let mut aside = is_interrupted.then(interrupt::set_aside);
        let mut outcome = Ok(());
        let so_far = SoFar::default();
        for cell in std::mem::take(&mut self.set_up) {
            let Some(order) = self.given(cell).cleanup.clone() else { continue };
            let within = |is_hurried: bool| if is_hurried { Some(CLEANS_UP) } else { self.plan.timeout };
            let hurried = Order { within: within(true), ..order.clone() };
            let order =
                if aside.is_some() { hurried.clone() } else { Order { within: within(false), ..order } };
            let name = format!("the clean-up of {}", self.name(cell));
            let place = self.place(cell);
            let mut step = |order: &Order| {
                places.step(place, || self.step(place, order, &name, &so_far)).map_err(stopped)
            };
            let mut stepped = step(&order);
            if let (Err(Stop::Interrupted(signal)), None) = (&stepped, &aside) {
                // This clean-up is executed again, then the others.
                outcome = outcome.and(Err(Stop::Interrupted(*signal)));
                aside = Some(interrupt::set_aside());
                stepped = step(&hurried);
            }
            let cleaned = match stepped {
                Ok(Some(execution)) => succeeded(&name, &order, execution).map_err(Stop::Failed),
                Ok(None) => Ok(()),
                Err(stop) => Err(stop),
            };
            outcome = outcome.and(cleaned);
        }
        outcome
    }

    fn conclude(self, rounds: &Alternation, interrupted: Option<i32>) -> Compared {
        let in_turn = rounds.in_turn().map(|in_turn| {
            let [other, itself] = in_turn.medians.map(|ns| ns / 1e9);
            let name = &self.given(in_turn.side).name;
            let why =
                format!("{name} takes {other:.3} s after another command and {itself:.3} s after itself");
            (IN_TURN.to_owned(), Fact::known(why, "the first rounds, in random order"))
        });
        let Self { cells, starts, is_start_timed, backends, plan, .. } = self;
        let (places, lost) = (starts.len(), rounds.places.lost());
        let number = rounds.so_far().rounds;
        let mut facts = schedule_facts(plan.seed, number, in_turn.is_some(), plan.time, interrupted);
        facts.extend(in_turn);
        facts.extend(layouts_fact(plan.layouts()));
        facts.extend(backends.into_iter().flatten().next().map(|backend| {
            let name = match backend {
                Backend::Bpf => "bpf",
                Backend::Ptrace => "ptrace",
                Backend::Rusage | Backend::Strace => "none",
            };
            ("run.tracer".to_owned(), Fact::known(name, "the best that works here"))
        }));
        // An unfinished round is not a pair.
        let whole = cells.iter().enumerate().filter(|(cell, _)| lost[cell % places].is_none());
        let whole = whole.map(|(_, cell)| cell.number()).min().unwrap_or_default();
        let is_subtracted = is_start_known(&cells, &starts);
        let conclude = |(at, mut cell): (usize, Cell)| {
            cell.truncate(whole);
            let none: &[f64] = &[];
            let around = if is_start_timed { starts[at % places].as_slice() } else { none };
            let why = match (&lost[at % places], interrupted) {
                (Some(why), _) => why.as_str(),
                (None, Some(_)) => "interrupted before its first execution was timed",
                (None, None) => "it was not executed",
            };
            cell.conclude(around, is_subtracted, why)
        };
        let found = cells.into_iter().enumerate().map(conclude).collect();
        Compared { found, facts, lost: lost.to_vec(), interrupted }
    }
}

/// Returns whether the time of a command's start is known to a tenth of the shortest command's time without it; `starts` are its times in
/// each place. Subtracting it then changes no difference by more than a tenth. By chance, other work can make a start many times longer.
fn is_start_known(cells: &[Cell], starts: &[Vec<f64>]) -> bool {
    const PART: f64 = 0.1;
    let places = starts.len();
    let is_known = |(place, starts): (usize, &Vec<f64>)| {
        let of_place = cells.iter().skip(place).step_by(places);
        let shortest = of_place.filter_map(|cell| stats::median(&cell.times())).fold(f64::INFINITY, f64::min);
        let interval = stats::anytime_interval(starts, CONFIDENCE);
        stats::median(starts)
            .zip(interval)
            .is_some_and(|(start, interval)| interval.high - interval.low <= PART * (shortest - start))
    };
    starts.iter().enumerate().filter(|(_, starts)| !starts.is_empty()).all(is_known)
}

/// Returns facts about the schedule of rounds.
pub(crate) fn schedule_facts(
    seed: u64,
    rounds: u32,
    is_in_turn: bool,
    time: Duration,
    interrupted: Option<i32>,
) -> Vec<(String, Fact)> {
    let order = if is_in_turn { "in turn" } else { "random" };
    let mut facts = vec![
        ("run.seed".to_owned(), Fact::known(format!("{seed:016x}"), "getrandom(2)")),
        ("run.rounds".to_owned(), Fact::known(i64::from(rounds), "rounds that were timed")),
        ("run.order".to_owned(), Fact::known(order, "the schedule")),
    ];
    let budget = (time < Duration::MAX).then(|| Fact::known(time.as_secs_f64(), "--time"));
    facts.extend(budget.map(|budget| ("run.budget_s".to_owned(), budget)));
    facts.extend(
        interrupted.map(|signal| (INTERRUPTED.to_owned(), Fact::known(signal_name(signal), "signal(7)"))),
    );
    facts
}

/// Returns the fact that each side has several programs.
pub(crate) fn layouts_fact(number: usize) -> Option<(String, Fact)> {
    (number > 1).then(|| (LAYOUTS.to_owned(), Fact::known(number as i64, "--layouts")))
}

fn failed(sentence: String) -> Halt {
    Halt::Run(NotCompared::Failed { sentence, said: String::new() })
}

/// Returns how a command ended, if that is accepted.
///
/// # Errors
/// [`NotCompared::Failed`].
pub fn judged(
    name: &str,
    order: &Order,
    execution: &Execution,
    accepts: &Accepts,
) -> Result<Ended, NotCompared> {
    let ended = match execution.end {
        End::Ended(ended) => Some(ended),
        End::KilledGroup(signal) => Some(Ended::Signal(signal)),
        End::OutOfTime | End::Full(_) | End::NotStarted(_) => None,
    };
    let accepted = ended.filter(|ended| accepts.takes(*ended));
    accepted.ok_or_else(|| ended_badly(name, order, execution.clone()))
}

/// Checks that an order around a command succeeded.
///
/// # Errors
/// [`NotCompared::Failed`].
pub fn succeeded(name: &str, order: &Order, execution: Execution) -> Result<(), NotCompared> {
    match execution.end {
        End::Ended(Ended::Exit(0)) => Ok(()),
        _ => Err(ended_badly(name, order, execution)),
    }
}

/// Makes the error for an execution that ended badly.
fn ended_badly(name: &str, order: &Order, Execution { end, said, .. }: Execution) -> NotCompared {
    let sentence = format!("{name} {}", how_ended(&end, order.within));
    NotCompared::Failed { sentence, said }
}

/// Describes a bad end of an execution, as the predicate of a sentence.
pub(crate) fn how_ended(end: &End, within: Option<Duration>) -> String {
    match end {
        End::Ended(Ended::Exit(status)) => format!("ended with exit status {status}"),
        End::Ended(Ended::Signal(signal)) => format!("was killed by {}", signal_name(*signal)),
        End::KilledGroup(signal) => format!("killed its process group by {}", signal_name(*signal)),
        End::NotStarted(why) => format!("was not started: {why}"),
        End::Full(most) => format!("was ended: it wrote more than {} MiB to standard output", most >> 20),
        End::OutOfTime => {
            let seconds = within.unwrap_or_default().as_secs_f64();
            format!("was ended: it took longer than {seconds:.1} s; give it more with --timeout")
        }
    }
}
