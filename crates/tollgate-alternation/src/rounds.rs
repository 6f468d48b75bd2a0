use std::time::Duration;

use tollgate_statistics::random::Random;

use crate::case::{Case, LEAST_PAIRS, chosen};
use crate::order::{InTurn, LOOKS_AT_ORDER, depends, drawn};
use crate::{Halt, How, Outcome, Places, Plan, SoFar, Trial, Turn};

/// The share of the time that traced rounds may take.
const TRACED_SHARE: f64 = 0.2;

/// A comparison in progress: whose turn it is, the results so far, and whether it is over.
#[derive(Debug, Clone)]
pub struct Alternation {
    /// Draws the orders. With the same seed they repeat.
    pub random: Random,
    /// The places of the sides.
    pub places: Places,
    plan: Plan,
    cases: Vec<Case>,
    /// The number of rounds to time even beyond the time.
    least: u32,
    so_far: SoFar,
    traced: Traced,
    /// The last execution at each place.
    last: Vec<Option<(usize, usize)>>,
    in_turn: Option<InTurn>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Traced {
    rounds: u32,
    took: Duration,
}

impl Alternation {
    /// Starts a comparison of cases, each on these sides. The first side is the base.
    pub fn new(plan: Plan, random: Random, cases: &[Vec<usize>], places: Places) -> Self {
        Self {
            random,
            last: vec![None; places.number()],
            places,
            plan,
            cases: cases.iter().map(|sides| Case::new(sides)).collect(),
            least: plan.rounds.least,
            so_far: SoFar::default(),
            traced: Traced::default(),
            in_turn: None,
        }
    }

    /// Excludes a case from further rounds.
    pub fn leave(&mut self, case: usize) {
        self.cases[case].sides.iter_mut().for_each(|side| side.is_left = true);
    }

    /// Excludes a case on one side.
    pub fn leave_side(&mut self, case: usize, side: usize) {
        self.cases[case].side(side).iter_mut().for_each(|side| side.is_left = true);
    }

    /// Returns the progress.
    pub fn so_far(&self) -> &SoFar {
        &self.so_far
    }

    /// Returns the figures of a case on a side, one for each round that all of its sides have.
    pub fn figures(&self, case: usize, side: usize) -> &[f64] {
        let case = &self.cases[case];
        let whole =
            case.sides.iter().filter(|side| self.places.has(side.number)).map(|side| side.figures.len());
        let whole = whole.min().unwrap_or_default();
        let figures = case.sides.iter().find(|of| of.number == side).map(|side| side.figures.as_slice());
        figures.map_or(&[], |figures| &figures[..whole.min(figures.len())])
    }

    /// Returns the fixed order, if the order matters.
    pub fn in_turn(&self) -> Option<&InTurn> {
        self.in_turn.as_ref()
    }

    /// Executes each case once on each of its sides without keeping a figure.
    ///
    /// # Errors
    /// See [`Halt`].
    pub fn pass<T: Trial>(&mut self, trial: &mut T, how: How, number: u32) -> Result<(), Halt<T::Stop>> {
        (0..self.cases.len()).try_for_each(|case| self.execute(trial, case, how, number))
    }

    /// Executes rounds until every comparison is decided and narrow, or the time is over.
    ///
    /// # Errors
    /// See [`Halt`]; the figures so far are kept.
    pub fn run<T: Trial>(&mut self, trial: &mut T) -> Result<(), Halt<T::Stop>> {
        while self.so_far.rounds < self.plan.rounds.most && !self.is_time_over(trial) {
            let due = self.due(trial);
            if due.is_empty() {
                break;
            }
            self.take_turns_if_needed(trial);
            self.trace(trial)?;
            let mut is_any = false;
            for case in due {
                if self.is_time_over(trial) {
                    return Ok(());
                }
                if self.fits(case, trial) {
                    is_any = true;
                    self.execute(trial, case, How::Timed, self.so_far.rounds)?;
                    self.trace_at_once(trial, case)?;
                }
            }
            if !is_any {
                break;
            }
            self.so_far.rounds += 1;
            trial.after_round(&mut self.places, &self.so_far)?;
        }
        Ok(())
    }

    fn is_time_over(&self, trial: &impl Trial) -> bool {
        self.so_far.rounds >= self.least && trial.now() >= self.plan.time
    }

    fn fits(&self, case: usize, trial: &impl Trial) -> bool {
        let is_needed = !self.plan.must_fit || self.so_far.rounds < self.least;
        is_needed || self.cases[case].longest <= self.plan.time.saturating_sub(trial.now())
    }

    fn due(&mut self, trial: &impl Trial) -> Vec<usize> {
        for (at, case) in self.cases.iter_mut().enumerate() {
            let found = case.look(&self.places, &self.plan, trial, self.plan.comparisons);
            self.so_far.compared = found.map(|(side, found)| (at, side, found)).or(self.so_far.compared);
        }
        let rounds = self.so_far.rounds;
        let mut due: Vec<usize> = if self.plan.rounds.is_exact() || rounds < self.least {
            (0..self.cases.len()).filter(|case| self.is_open(*case)).collect()
        } else {
            chosen(&self.cases, &self.places, self.plan.time.saturating_sub(trial.now()))
        };
        // The time that cases took decides which ones are due, but must not affect their order.
        due.sort_unstable();
        if self.plan.begins_in_order && rounds == 0 { due } else { drawn(due, &mut self.random) }
    }

    fn is_open(&self, case: usize) -> bool {
        self.cases[case].open(&self.places).next().is_some()
    }

    fn order(&mut self, case: usize) -> Vec<usize> {
        let here: Vec<usize> = self.cases[case].open(&self.places).map(|side| side.number).collect();
        match &self.in_turn {
            Some(in_turn) => in_turn.order.iter().copied().filter(|side| here.contains(side)).collect(),
            None => drawn(here, &mut self.random),
        }
    }

    /// Begins anew with the sides in turn if the order matters: a side that inherits what another one left then always inherits
    /// it, because in turn a side never follows itself. With several cases it is unknown which one left it.
    fn take_turns_if_needed<T: Trial>(&mut self, trial: &mut T) {
        let is_looked = self.in_turn.is_none() && LOOKS_AT_ORDER.contains(&self.so_far.rounds);
        let [case] = self.cases.as_slice() else { return };
        if !is_looked {
            return;
        }
        let found = case
            .open(&self.places)
            .filter(|side| trial.inherits(side.number))
            .find_map(|side| Some((side.number, depends(&side.figures, &side.is_after_itself)?)));
        let Some((side, medians)) = found else { return };
        let mut order = self.order(0);
        // The first one must follow another, too.
        if order.first().is_some_and(|first| self.last.contains(&Some((0, *first)))) {
            order.rotate_left(1);
        }
        self.in_turn = Some(InTurn { order, side, medians });
        self.cases.iter_mut().for_each(Case::begin_anew);
        trial.begin_anew();
        // The dropped figures took their time, which may be over before there is an interval.
        self.least = self.least.max(self.so_far.rounds.min(LEAST_PAIRS as u32));
        (self.so_far, self.traced.rounds) = (SoFar::default(), 0);
    }

    /// Traces a case after its first execution: the first round of cases that must fit may need all of the time.
    fn trace_at_once<T: Trial>(&mut self, trial: &mut T, case: usize) -> Result<(), Halt<T::Stop>> {
        let is_first = self.plan.must_fit && self.so_far.rounds == 0;
        if is_first && trial.most_traced() > 0 && self.fits(case, trial) {
            let began = trial.now();
            self.execute(trial, case, How::Traced, 0)?;
            self.traced.took += trial.now().saturating_sub(began);
            self.traced.rounds = 1;
        }
        Ok(())
    }

    /// Executes a traced round if it is due. Half of the time is for timed rounds, however long a traced one takes.
    fn trace<T: Trial>(&mut self, trial: &mut T) -> Result<(), Halt<T::Stop>> {
        let Traced { rounds, took } = self.traced;
        let began = trial.now();
        let is_due = took.as_secs_f64() < TRACED_SHARE * began.as_secs_f64() && took < self.plan.time / 2;
        if rounds >= trial.most_traced() || !(is_due || rounds == 0) {
            return Ok(());
        }
        for case in 0..self.cases.len() {
            if self.fits(case, trial) {
                self.execute(trial, case, How::Traced, rounds)?;
            }
        }
        self.traced.took += trial.now().saturating_sub(began);
        self.traced.rounds += 1;
        Ok(())
    }

    fn execute<T: Trial>(
        &mut self,
        trial: &mut T,
        case: usize,
        how: How,
        number: u32,
    ) -> Result<(), Halt<T::Stop>> {
        let began = trial.now();
        let mut done: Vec<(usize, Outcome)> =
            self.order(case).into_iter().map(|side| (side, Outcome::Done)).collect();
        if done.is_empty() {
            return Ok(());
        }
        let mut is_after_itself = Vec::new();
        for step in [Step::Prepare, Step::Execute, Step::Conclude] {
            for (side, outcome) in std::mem::take(&mut done) {
                let turn = Turn { case, side, how, number };
                let place = self.places.of(side);
                let so_far = &self.so_far;
                let outcome = self.places.step(place, || match step {
                    Step::Prepare => trial.prepare(&turn, so_far),
                    Step::Execute => trial.execute(&turn, so_far),
                    Step::Conclude => trial.conclude(&turn, outcome, so_far),
                })?;
                if let (Step::Execute, Some(Outcome::Figure(_))) = (step, outcome) {
                    let before = self.last[place].replace((case, side));
                    is_after_itself.push((side, before == Some((case, side))));
                }
                match outcome {
                    Some(Outcome::LeaveCase) => {
                        self.leave(case);
                        return Ok(());
                    }
                    Some(Outcome::LeaveSide) => self.leave_side(case, side),
                    Some(outcome) => done.push((side, outcome)),
                    None => {}
                }
            }
        }
        if how == How::Timed {
            for (side, outcome) in done {
                let figure = match outcome {
                    Outcome::Figure(figure) => figure,
                    Outcome::Discarded => f64::NAN,
                    _ => continue,
                };
                if let Some(kept) = self.cases[case].side(side) {
                    kept.figures.push(figure);
                    kept.is_after_itself.push(is_after_itself.contains(&(side, true)));
                }
            }
        }
        if how != How::Traced {
            self.cases[case].took(trial.now().saturating_sub(began));
        }
        Ok(())
    }
}

/// Each step is done for all sides of a case before the next.
#[derive(Clone, Copy)]
enum Step {
    Prepare,
    Execute,
    Conclude,
}
