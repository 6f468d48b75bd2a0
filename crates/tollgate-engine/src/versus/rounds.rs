//! The executions from the first preparation to the last clean-up.
//!
//! A round executes each command once in each place, in an order that is drawn anew, so that which one meets what of the machine is a
//! coin of the round's own. Rounds in which commands are traced lie between those in which they are timed: nothing that is timed is traced.
//!
//! Where the time of a command depends on which one was executed before it, as that of `git checkout` does, an order in which it comes
//! after itself compares other things than were meant. Then it begins anew, with the commands in turn.

use std::time::{Duration, Instant};

use tollgate_model::estimate::CONFIDENCE;
use tollgate_model::traced::{Backend, Ended};
use tollgate_model::versus::IN_TURN;
use tollgate_model::{Fact, compare, stats};

use super::cell::{Cell, Found};
use super::executor::{Executor, Halt};
use super::order::{End, Execution, How, Order};
use super::plan::{Accepts, Given, Plan, SHORT};
use crate::ending::signal_name;
use crate::interrupt;
use crate::measure::INTERRUPTED;
use crate::run::BenchError;
use tollgate_model::stats::random::Random;

/// Rounds that are traced take at most this share of the time, and are at most so many; by ptrace(2), which stops a command twice a call,
/// fewer.
const TRACED_SHARE: f64 = 0.2;
const MOST_TRACED: usize = 25;
const MOST_BY_PTRACE: usize = 3;
/// With fewer pairs an interval is not trusted to be narrow.
pub(crate) const LEAST_PAIRS: usize = 16;
/// After so many rounds it is looked at whether the order matters: with many commands one follows itself rarely.
const LOOKS_AT_ORDER: [u32; 6] = [10, 16, 24, 32, 48, 64];
/// Executions of what surrounds a command, before it is known whether it matters.
const STARTS: u32 = 5;
/// The variable that tells a command the number of its execution: scripts that hyperfine executes have it in names of files.
const ITERATION: &str = "HYPERFINE_ITERATION";
/// How long a clean-up may take when the user asked to stop.
const CLEANS_UP: Duration = Duration::from_secs(10);

/// What was found of all commands.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// Command by command, each in all places.
    pub found: Vec<Found>,
    /// Facts of the comparison.
    pub facts: Vec<(String, Fact)>,
    /// For each place why it gave nothing more, where it was lost.
    pub lost: Vec<Option<String>>,
    /// The signal that stopped it early.
    pub interrupted: Option<i32>,
}

/// What goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Doing<'a> {
    /// In a few words.
    pub what: &'a str,
    /// Since the first preparation.
    pub elapsed: Duration,
    /// Rounds that were timed.
    pub rounds: u32,
    /// The last comparison so far, with its place among the commands and places.
    pub so_far: Option<(usize, compare::Neighbours)>,
}

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// A command ended in a way that is not accepted, was not started, or took too long: a sentence, and what it said last.
    #[error("{sentence}")]
    Failed {
        /// It names the command.
        sentence: String,
        /// The end of what the command wrote.
        said: String,
    },
    /// The run ends.
    #[error(transparent)]
    Run(#[from] BenchError),
}

/// Executes the commands in all places until the intervals are narrow, or the time is over.
///
/// # Errors
/// See [`NotCompared`]. What is to clean up is executed also then.
pub fn measure(
    places: &mut [&mut dyn Executor],
    plan: &Plan,
    watch: &mut dyn FnMut(&Doing<'_>),
) -> Result<Compared, NotCompared> {
    let cells = plan.commands.len() * places.len();
    let mut run = Run {
        plan,
        random: Random::new(plan.seed),
        began: Instant::now(),
        cells: (0..cells).map(|_| Cell::default()).collect(),
        starts: vec![Vec::new(); places.len()],
        lost: vec![None; places.len()],
        set_up: Vec::new(),
        is_start_timed: false,
        is_length_known: false,
        traced_for: Duration::ZERO,
        backends: vec![None; places.len()],
        rounds: 0,
        least: plan.rounds.least,
        traced_rounds: 0,
        checked: 0,
        so_far: None,
        last: vec![None; places.len()],
        in_turn: None,
        watch,
        places,
    };
    let ended = run.whole();
    let cleaned = run.clean_up(matches!(ended, Err(Stop::Interrupted(_))));
    match (ended, cleaned) {
        (Ok(()), Ok(())) => Ok(run.conclude(None)),
        (Err(Stop::Interrupted(signal)), _) | (Ok(()), Err(Stop::Interrupted(signal))) => {
            Ok(run.conclude(Some(signal)))
        }
        (Err(Stop::Failed(failed)), _) | (Ok(()), Err(Stop::Failed(failed))) => Err(failed),
    }
}

/// Why the executions end before their time.
enum Stop {
    Interrupted(i32),
    Failed(NotCompared),
}

struct Run<'r, 'p> {
    plan: &'r Plan,
    places: &'r mut [&'p mut dyn Executor],
    random: Random,
    began: Instant,
    /// Command by command, each in all places.
    cells: Vec<Cell>,
    /// For each place real times of what surrounds a command, in nanoseconds.
    starts: Vec<Vec<f64>>,
    lost: Vec<Option<String>>,
    /// The cells that were set up, and are to be cleaned up.
    set_up: Vec<usize>,
    is_start_timed: bool,
    is_length_known: bool,
    traced_for: Duration,
    /// For each place by what commands are traced, once that is known.
    backends: Vec<Option<Backend>>,
    rounds: u32,
    /// At least so many are timed, also beyond the time.
    least: u32,
    /// Rounds that were traced.
    traced_rounds: usize,
    /// The rounds after which the intervals were looked at last.
    checked: u32,
    so_far: Option<(usize, compare::Neighbours)>,
    /// The cell that was executed last in each place.
    last: Vec<Option<usize>>,
    /// The order that is kept, where the order matters, and the command that it mattered to.
    in_turn: Option<(Vec<usize>, String)>,
    watch: &'r mut dyn FnMut(&Doing<'_>),
}

impl Run<'_, '_> {
    fn whole(&mut self) -> Result<(), Stop> {
        for cell in 0..self.cells.len() {
            self.set_up.push(cell);
            self.around(cell, "setup", |given| given.setup.as_ref())?;
        }
        if self.plan.is_cold {
            self.find_files()?;
        }
        for number in 0..self.plan.warmups {
            for cell in self.order() {
                if let Some((execution, _)) = self.execute(cell, How::Timed, format!("warmup-{number}"))? {
                    self.cells[cell].warmed(&execution);
                }
            }
        }
        self.find_whether_short()?;
        loop {
            self.trace_a_round()?;
            let order = self.order();
            self.time_a_round(&order)?;
            if self.is_over() {
                return Ok(());
            }
            // In turn a command never follows itself.
            if self.in_turn.is_none() && LOOKS_AT_ORDER.contains(&self.rounds) {
                self.take_turns_if_needed();
            }
        }
    }

    /// Begins anew with the commands in turn, where the order matters. With a preparation it is not looked at: that sets the state.
    fn take_turns_if_needed(&mut self) {
        if self.in_turn.is_some() || self.plan.commands.len() < 2 {
            return;
        }
        let cells = self.cells.iter().enumerate();
        let mut depending = cells.filter(|(cell, _)| self.given(*cell).prepare.is_none());
        let Some((cell, [other, itself])) = depending.find_map(|(at, cell)| Some((at, cell.depends()?)))
        else {
            return;
        };
        let said = format!(
            "{} takes {:.3} s after another command and {:.3} s after itself",
            self.given(cell).name,
            other / 1e9,
            itself / 1e9
        );
        let mut order = self.order();
        // The first one comes after another, too.
        if order.first().is_some_and(|first| self.last.contains(&Some(*first))) {
            order.rotate_left(1);
        }
        self.in_turn = Some((order, said));
        self.cells.iter_mut().for_each(Cell::begin_anew);
        self.starts.iter_mut().for_each(Vec::clear);
        // What was dropped has cost its time: the time may be over before there is an interval.
        self.least = self.least.max(self.rounds.min(LEAST_PAIRS as u32));
        (self.rounds, self.checked, self.so_far, self.traced_rounds) = (0, 0, None, 0);
    }

    /// All cells of places that are there, in random order, or in turn.
    fn order(&mut self) -> Vec<usize> {
        if let Some((order, _)) = &self.in_turn {
            return order.iter().copied().filter(|cell| self.lost[self.place(*cell)].is_none()).collect();
        }
        let mut order: Vec<usize> =
            (0..self.cells.len()).filter(|cell| self.lost[self.place(*cell)].is_none()).collect();
        self.random.shuffle(&mut order);
        order
    }

    fn place(&self, cell: usize) -> usize {
        cell % self.places.len()
    }

    /// The name of a command, with its environment where there are several.
    fn name(&self, cell: usize) -> String {
        let name = &self.given(cell).name;
        match self.plan.places.get(self.place(cell)) {
            Some(place) if self.places.len() > 1 => format!("{name} in {place}"),
            _ => name.clone(),
        }
    }

    fn given(&self, cell: usize) -> &Given {
        &self.plan.commands[cell / self.places.len()]
    }

    /// One execution of each command in each place, and of what surrounds it.
    fn time_a_round(&mut self, order: &[usize]) -> Result<(), Stop> {
        for &cell in order {
            let is_after_itself = self.last[self.place(cell)] == Some(cell);
            if let Some((execution, ended)) = self.execute(cell, How::Timed, self.rounds.to_string())? {
                self.cells[cell].time(&execution, ended, is_after_itself);
            }
        }
        if self.is_start_timed {
            self.time_starts()?;
        }
        self.rounds += 1;
        self.find_whether_short()
    }

    /// What surrounds a command, once in each place.
    fn time_starts(&mut self) -> Result<(), Stop> {
        let Some(start) = &self.plan.start else { return Ok(()) };
        for place in 0..self.places.len() {
            let executed = self.step(place, start, "the start of a command")?;
            if let Some(Execution { end: End::Ended(Ended::Exit(0)), wall_ns, .. }) = executed {
                self.starts[place].push(wall_ns as f64);
            }
        }
        Ok(())
    }

    /// Finds whether any command is so short that what surrounds it matters: by the warm-ups, or by the first round.
    fn find_whether_short(&mut self) -> Result<(), Stop> {
        let is_executed = |cell: &Cell| cell.shortest().is_some();
        if self.is_length_known || self.plan.start.is_none() || !self.cells.iter().any(is_executed) {
            return Ok(());
        }
        self.is_length_known = true;
        let rounds = self.starts.iter().map(Vec::len).max().unwrap_or_default();
        for _ in 0..STARTS {
            self.time_starts()?;
        }
        for (at, cell) in self.cells.iter().enumerate() {
            let around = stats::median(&self.starts[self.place(at)]).unwrap_or(0.0);
            let shortest = cell.shortest().unwrap_or(f64::INFINITY);
            self.is_start_timed |= shortest - around < SHORT.as_nanos() as f64;
        }
        self.starts.iter_mut().for_each(|starts| starts.truncate(rounds));
        Ok(())
    }

    /// Finds the files that each command reads, by tracing it once.
    fn find_files(&mut self) -> Result<(), Stop> {
        for cell in self.order() {
            let executed = self.execute(cell, How::Traced { files: true }, "traced-0".to_owned())?;
            let Some((execution, _)) = executed else { continue };
            let traced = execution.traced.filter(|traced| traced.backend != Backend::Rusage);
            let Some(traced) = traced else {
                let name = self.name(cell);
                return Err(failed(format!(
                    "{name}: which files it reads is not known, because it cannot be traced here; --cold needs that"
                )));
            };
            let files = traced.files.into_iter().map(|file| file.path).filter(|path| path.starts_with('/'));
            self.cells[cell].files = files.collect();
        }
        Ok(())
    }

    /// A round of traced executions, where it is due.
    fn trace_a_round(&mut self) -> Result<(), Stop> {
        let is_known = |backend: Backend| self.backends.contains(&Some(backend));
        let most = if is_known(Backend::Ptrace) { MOST_BY_PTRACE } else { MOST_TRACED };
        let number = self.traced_rounds;
        let is_due =
            number == 0 || self.traced_for.as_secs_f64() < TRACED_SHARE * self.began.elapsed().as_secs_f64();
        // Half of the time is for those that are timed, however long one that is traced takes.
        let has_time = number == 0 || self.traced_for.as_secs_f64() < self.plan.time.as_secs_f64() / 2.0;
        let is_possible = self.cells.iter().any(|cell| !cell.is_untraced());
        if !(self.plan.is_traced && is_possible && number < most && is_due && has_time) {
            return Ok(());
        }
        let began = Instant::now();
        for cell in self.order() {
            let place = self.place(cell);
            // Where nothing can trace, times are those of wait4(2), which the timed executions have too.
            if self.cells[cell].is_untraced() {
                continue;
            }
            let iteration = format!("traced-{number}");
            if let Some((execution, _)) = self.execute(cell, How::Traced { files: false }, iteration)? {
                let backend = execution.traced.as_ref().map(|traced| traced.backend);
                self.backends[place] = self.backends[place].or(backend);
                self.cells[cell].trace(execution);
            }
        }
        self.traced_for += began.elapsed();
        self.traced_rounds += 1;
        Ok(())
    }

    /// Executes a command with what surrounds it, and tells it the number of this execution. None where its place is lost.
    fn execute(
        &mut self,
        cell: usize,
        how: How,
        iteration: String,
    ) -> Result<Option<(Execution, Ended)>, Stop> {
        if self.around(cell, "preparation", |given| given.prepare.as_ref())?.is_none() {
            return Ok(None);
        }
        let is_known = !self.cells[cell].files.is_empty();
        if self.plan.is_cold && is_known {
            let place = self.place(cell);
            let cooled = self.places[place].cool(&self.cells[cell].files);
            match self.taken(place, cooled)? {
                Some(cooled) => self.cells[cell].cooled(cooled),
                None => return Ok(None),
            }
        }
        let given = self.given(cell);
        // What tracing adds is not the command's.
        let within = match how {
            How::Timed => self.plan.patience(self.cells[cell].slowest()),
            _ => self.plan.patience_of_traced(self.cells[cell].slowest()),
        };
        let variables = vec![(ITERATION.to_owned(), iteration.clone())];
        let order = Order { how, within, variables, ..given.order.clone() };
        let name = self.name(cell);
        let place = self.place(cell);
        self.last[place] = Some(cell);
        let Some(execution) = self.step(self.place(cell), &order, &name)? else { return Ok(None) };
        let ended = match self.judge(&name, &order, &execution) {
            // It has passed without, or the next execution that is timed says what is wrong: a set-user-ID program may fail under ptrace(2).
            Err(Stop::Failed(NotCompared::Failed { sentence, .. }))
                if how == (How::Traced { files: false }) =>
            {
                self.cells[cell].leave_untraced(format!("it failed while it was traced: {sentence}"));
                None
            }
            // Where others have passed, this one's number says where to look.
            judged => Some(judged.map_err(|stop| self.numbered(stop, &iteration))?),
        };
        if self.around(cell, "conclusion", |given| given.conclude.as_ref())?.is_none() {
            return Ok(None);
        }
        Ok(ended.map(|ended| (execution, ended)))
    }

    /// The failure of a command's execution, with its number where it is not the first one.
    fn numbered(&self, stop: Stop, iteration: &str) -> Stop {
        match (stop, iteration.parse::<u32>()) {
            (Stop::Failed(NotCompared::Failed { sentence, said }), Ok(number @ 1..)) => {
                let rounds = self.plan.rounds;
                let of =
                    if rounds.least == rounds.most { format!(" of {}", rounds.most) } else { String::new() };
                let sentence = format!("{sentence} in its execution {}{of}", number + 1);
                Stop::Failed(NotCompared::Failed { sentence, said })
            }
            (stop, _) => stop,
        }
    }

    /// Executes what surrounds a command, which must succeed. None where its place is lost.
    fn around(
        &mut self,
        cell: usize,
        what: &str,
        of: impl Fn(&Given) -> Option<&Order>,
    ) -> Result<Option<()>, Stop> {
        let given = self.given(cell);
        let Some(order) = of(given).cloned() else { return Ok(Some(())) };
        let order = Order { within: order.within.or(self.plan.timeout), ..order };
        let name = format!("the {what} of {}", self.name(cell));
        let Some(execution) = self.step(self.place(cell), &order, &name)? else { return Ok(None) };
        succeeded(&name, &order, execution).map(Some).map_err(Stop::Failed)
    }

    /// How a command ended, if that is accepted.
    fn judge(&self, name: &str, order: &Order, execution: &Execution) -> Result<Ended, Stop> {
        judged(name, order, execution, &self.plan.accepts).map_err(Stop::Failed)
    }

    /// Executes an order in a place. None where that is lost.
    fn step(&mut self, place: usize, order: &Order, what: &str) -> Result<Option<Execution>, Stop> {
        if self.lost[place].is_some() {
            return Ok(None);
        }
        let Self { places, watch, began, rounds, so_far, .. } = self;
        let mut tick = || watch(&Doing { what, elapsed: began.elapsed(), rounds: *rounds, so_far: *so_far });
        tick();
        let executed = places[place].execute(order, &mut tick);
        self.taken(place, executed)
    }

    fn taken<T>(&mut self, place: usize, outcome: Result<T, Halt>) -> Result<Option<T>, Stop> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Halt::Lost(why)) => {
                self.lost[place] = Some(why);
                match self.lost.iter().all(Option::is_some) {
                    true => {
                        let why = self.lost[place].clone().unwrap_or_default();
                        Err(Stop::Failed(BenchError::NoEnvironment(why).into()))
                    }
                    false => Ok(None),
                }
            }
            Err(Halt::Run(BenchError::Interrupted(signal))) => Err(Stop::Interrupted(signal)),
            Err(Halt::Run(error)) => Err(Stop::Failed(error.into())),
        }
    }

    /// Whether enough rounds were timed.
    fn is_over(&mut self) -> bool {
        let rounds = self.plan.rounds;
        if self.rounds >= rounds.most {
            return true;
        }
        if self.rounds < self.least {
            return false;
        }
        self.began.elapsed() >= self.plan.time || self.is_narrow()
    }

    /// Whether every interval is narrow, and every comparison decided where that is asked for. The intervals hold at all looks together; it
    /// is looked at rarely where there are many rounds.
    fn is_narrow(&mut self) -> bool {
        if (self.rounds as usize) < LEAST_PAIRS || self.rounds < self.checked + self.checked / 20 {
            return false;
        }
        self.checked = self.rounds;
        let here = |cell: &usize| self.lost[self.place(*cell)].is_none();
        let cells: Vec<usize> = (0..self.cells.len()).filter(here).collect();
        let Some((&base, others)) = cells.split_first() else { return true };
        let times = self.times(base);
        if others.is_empty() {
            let interval = stats::settled_interval(&times, CONFIDENCE);
            let median = stats::median(&times).filter(|median| *median > 0.0);
            return interval.zip(median).is_some_and(|(interval, median)| {
                interval.high - interval.low <= self.plan.precision * median
            });
        }
        let mut all = true;
        for &other in others {
            let found = compare::neighbours(&times, &self.times(other), others.len(), self.plan.asked, true);
            let is_narrow = found.is_some_and(|found| {
                let is_decided = !self.plan.until_decided || found.verdict != compare::Verdict::Inconclusive;
                is_decided && found.is_precise(self.plan.precision)
            });
            self.so_far = found.map(|found| (other, found)).or(self.so_far);
            all &= is_narrow;
        }
        all
    }

    /// The times of a cell that are compared: the real ones less what surrounds it where that is subtracted, or those of a processor.
    fn times(&self, cell: usize) -> Vec<f64> {
        if self.plan.by_processor {
            return self.cells[cell].processor_times();
        }
        let is_subtracted = self.is_start_timed && is_start_known(&self.cells, &self.starts);
        let starts = Some(&self.starts[self.place(cell)]).filter(|_| is_subtracted);
        let around = starts.and_then(|starts| stats::median(starts)).unwrap_or(0.0);
        self.cells[cell].times().into_iter().map(|time| time - around).collect()
    }

    /// Cleans up what was set up, in the order of the commands, whatever happened.
    fn clean_up(&mut self, is_interrupted: bool) -> Result<(), Stop> {
        let mut aside = is_interrupted.then(interrupt::set_aside);
        let mut outcome = Ok(());
        for cell in std::mem::take(&mut self.set_up) {
            let Some(order) = self.given(cell).cleanup.clone() else { continue };
            let within = |is_hurried: bool| if is_hurried { Some(CLEANS_UP) } else { self.plan.timeout };
            let hurried = Order { within: within(true), ..order.clone() };
            let order =
                if aside.is_some() { hurried.clone() } else { Order { within: within(false), ..order } };
            let name = format!("the clean-up of {}", self.name(cell));
            let place = self.place(cell);
            let mut stepped = self.step(place, &order, &name);
            if let (Err(Stop::Interrupted(signal)), None) = (&stepped, &aside) {
                // It is executed anew, and the others after it.
                outcome = outcome.and(Err(Stop::Interrupted(*signal)));
                aside = Some(interrupt::set_aside());
                stepped = self.step(place, &hurried, &name);
            }
            let cleaned = match stepped {
                Ok(Some(execution)) if execution.end != End::Ended(Ended::Exit(0)) => {
                    Err(Stop::Failed(ended_badly(&name, &order, execution)))
                }
                Ok(_) => Ok(()),
                Err(stop) => Err(stop),
            };
            outcome = outcome.and(cleaned);
        }
        outcome
    }

    fn conclude(self, interrupted: Option<i32>) -> Compared {
        let Self { cells, starts, lost, is_start_timed, backends, rounds, plan, in_turn, .. } = self;
        let places = starts.len();
        let mut facts = schedule_facts(plan.seed, rounds, in_turn.is_some(), plan.time, interrupted);
        facts.extend(
            in_turn
                .map(|(_, why)| (IN_TURN.to_owned(), Fact::known(why, "the first rounds, in random order"))),
        );
        facts.extend(backends.into_iter().flatten().next().map(|backend| {
            let name = match backend {
                Backend::Bpf => "bpf",
                Backend::Ptrace => "ptrace",
                Backend::Rusage | Backend::Strace => "none",
            };
            ("run.tracer".to_owned(), Fact::known(name, "the best that works here"))
        }));
        // A round that was not finished is no pair.
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
        Compared { found: cells.into_iter().enumerate().map(conclude).collect(), facts, lost, interrupted }
    }
}

/// Whether the time of what surrounds a command, whose executions in each place are `starts`, is known to a tenth of what the shortest
/// command takes beside it: to subtract it moves no difference by more than a tenth then. Other work makes it many times longer, by chance.
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

/// Facts of a schedule that rounds followed.
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

fn failed(sentence: String) -> Stop {
    Stop::Failed(NotCompared::Failed { sentence, said: String::new() })
}

/// How a command ended, if that is accepted.
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

/// Whether what surrounds a command succeeded.
///
/// # Errors
/// [`NotCompared::Failed`].
pub fn succeeded(name: &str, order: &Order, execution: Execution) -> Result<(), NotCompared> {
    match execution.end {
        End::Ended(Ended::Exit(0)) => Ok(()),
        _ => Err(ended_badly(name, order, execution)),
    }
}

/// What was wrong with an execution.
fn ended_badly(name: &str, order: &Order, Execution { end, said, .. }: Execution) -> NotCompared {
    let sentence = format!("{name} {}", how_ended(&end, order.within));
    NotCompared::Failed { sentence, said }
}

/// How an execution ended that should have ended otherwise: the predicate of a sentence.
pub(crate) fn how_ended(end: &End, within: Option<Duration>) -> String {
    match end {
        End::Ended(Ended::Exit(status)) => format!("ended with exit status {status}"),
        End::Ended(Ended::Signal(signal)) => format!("was killed by {}", signal_name(*signal)),
        End::KilledGroup(signal) => format!("killed its process group by {}", signal_name(*signal)),
        End::NotStarted(why) => format!("was not started: {why}"),
        End::Full(most) => format!("was ended: it wrote more than {} MiB to standard output", most >> 20),
        End::OutOfTime => {
            let seconds = within.unwrap_or_default().as_secs_f64();
            format!("was ended: it took longer than {seconds:.1} s; --timeout gives it more")
        }
    }
}
