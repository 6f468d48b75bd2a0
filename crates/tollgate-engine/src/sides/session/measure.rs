//! A session from the start of its environments to the findings of each.

use std::time::{Duration, Instant};

use tollgate_model::bounded::MAX_PROCESSES;
use tollgate_model::{Fact, own};

use super::agent_side::AgentSide;
use super::commands::Commands;
use super::connection::{Gone, Stop};
use super::running::Session;
use super::starts::Starts;
use super::teller::Teller;
use super::turns::TurnTrack;
use super::{EnvironmentFindings, SessionFindings, Side, counting, joint};
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::run::{BenchError, Findings, Progress};
use crate::cases::selection::{Group, Selection};
use crate::machine::cpu;
use crate::machine::ending::signal_name;
use crate::machine::other_cpus::OtherCpus;
use crate::machine::topology;
use crate::rounds::commands::Terms;
use crate::rounds::measure::{CALIBRATION_SHARE, END_SHARE, INTERRUPTED, ROUNDS_SHARE, refuse_cpu};
use crate::rounds::schedule::{self, Schedule};
use crate::sides::agent::Moment;
use crate::sides::agent::protocol::Job;
use tollgate_model::stats::random::Random;

/// Processes are not started with less time than this.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// Measures the chosen cases in every environment within the plan's budget, in turns if two or more of them can be paired.
///
/// An environment that cannot be started, or whose agent dies, says so in [`EnvironmentFindings::lost`], and the others go on.
/// The budget does not include the start of the environments, the reading of their facts, and everything that is counted.
///
/// # Errors
/// See [`BenchError`]: if nothing was measured in any environment, or the requested processor does not exist.
pub fn measure_in(
    sides: &mut [Side<'_>],
    selection: &Selection,
    plan: &Plan,
    watch: &mut dyn FnMut(&Progress),
) -> Result<SessionFindings, BenchError> {
    let (rounds, others): (Vec<&Group>, Vec<&Group>) =
        selection.groups.iter().partition(|group| group.usual_time().is_none());
    let (starts, commands): (Vec<&Group>, Vec<&Group>) =
        others.into_iter().partition(|group| group.is_of_environments());
    let place = |number| Ordinal { number, of: selection.groups.len() };
    let schedules = |new: &dyn Fn(&Group, Ordinal) -> Schedule| -> Vec<Schedule> {
        rounds.iter().zip(1..).map(|(group, number)| new(group, place(number))).collect()
    };
    let control = (selection.find)(own::CONTROL);
    let measured = |group: &Group, place| Schedule::new(group, place, control);
    // Readers of a document refuse more processes.
    let cases: usize = schedules(&measured).iter().map(Schedule::number).sum();
    let most = MAX_PROCESSES as usize / cases.max(1);
    let plan = &Plan { most_processes: plan.most_processes.min(most), ..plan.clone() };
    let allowed = cpu::allowed();
    if let Some(asked) = plan.cpu.filter(|asked| !allowed.contains(asked)) {
        return Err(refuse_cpu(asked, allowed));
    }
    let seed = Random::seed();
    let mut session = Session {
        plan,
        sides: sides
            .iter_mut()
            .map(|side| {
                let counted = |group: &Group, place| counting::schedule(group, place, side.has_disk);
                let schedules = if side.is_counting { schedules(&counted) } else { schedules(&measured) };
                AgentSide::new(side, schedules)
            })
            .collect(),
        random: Random::new(seed),
        teller: Teller::new(watch, plan),
        facts: vec![
            ("run.seed".to_owned(), Fact::known(format!("{seed:016x}"), "getrandom(2)")),
            plan.fact(),
        ],
        commands: Commands::new(commands.iter().copied().zip((rounds.len() + 1..).map(place)).collect()),
        starts: Starts::new(
            &starts.iter().copied().zip((selection.groups.len()..).map(place)).collect::<Vec<_>>(),
        ),
        other_cpus: None,
    };
    // Rounds, commands and starts share the budget in proportion to their default times.
    let usual = selection.usual_time().as_secs_f64();
    let share = |of: &[&Group]| {
        let time: Duration = of.iter().filter_map(|group| group.usual_time()).sum();
        time.as_secs_f64() / usual
    };
    let of_starts = share(&starts);
    let of_rounds = if rounds.is_empty() { 0.0 } else { 1.0 - share(&commands) - of_starts };
    let signal = match session.whole(allowed, of_rounds, of_starts) {
        Ok(()) | Err(Stop::Over) => None,
        Err(Stop::Interrupted(signal)) => Some(signal),
    };
    judge(session.conclude(signal), signal, sides, plan)
}

fn judge(
    findings: SessionFindings,
    signal: Option<i32>,
    sides: &[Side<'_>],
    plan: &Plan,
) -> Result<SessionFindings, BenchError> {
    let is_measured = findings.found.iter().any(|found| found.findings.has_figures());
    let no_time = findings.found.iter().find_map(|found| found.findings.no_time(plan));
    match (signal, no_time) {
        (Some(signal), _) if !is_measured => return Err(BenchError::Interrupted(signal)),
        (None, Some(no_time)) if !is_measured => return Err(no_time),
        _ if is_measured || findings.found.iter().any(|found| found.lost.is_none()) => {}
        _ => {
            let why = |(found, side): (&EnvironmentFindings, &Side<'_>)| {
                format!("{}: {}", side.name, found.lost.clone().unwrap_or_default())
            };
            let why: Vec<String> = findings.found.iter().zip(sides).map(why).collect();
            return Err(BenchError::NoEnvironment(why.join("; ")));
        }
    }
    Ok(findings)
}

impl Session<'_, '_, '_> {
    /// Everything, from the first start of the environments to their last end. Rounds and starts take these parts of the budget.
    fn whole(&mut self, allowed: Vec<usize>, of_rounds: f64, of_starts: f64) -> Result<(), Stop> {
        counting::count(&mut self.sides, &mut self.teller, !self.starts.is_empty())?;
        self.teller.began = Instant::now();
        if self.sides.iter().any(|side| !side.side.is_counting) {
            match self.timed(allowed, of_rounds, of_starts) {
                // Counted environments may still be started.
                Err(Stop::Over) if of_starts > 0.0 => {}
                ended => ended?,
            }
        }
        // An environment starts with all processors.
        self.other_cpus = None;
        let deadline = self.teller.began + self.plan.budget.mul_f64(END_SHARE);
        self.starts.measure(&mut self.sides, (self.plan, deadline), &mut self.random, &mut self.teller)
    }

    fn timed(&mut self, allowed: Vec<usize>, of_rounds: f64, of_starts: f64) -> Result<(), Stop> {
        self.each(|session, at| {
            let name = session.sides[at].side.name.clone();
            session.teller.say(format!("starting {name}"), Ordinal::default());
            session.sides[at].start()
        })?;
        let cpu = self.choose_cpu(&allowed);
        self.other_cpus = Some(OtherCpus::except(cpu, allowed));
        self.each(|session, at| {
            let name = session.sides[at].side.name.clone();
            session.teller.say(format!("reading facts in {name}"), Ordinal::default());
            // A fact can be the setting that its turns need.
            session.sides[at].wake()?;
            session.sides[at].read_facts(Moment::Before)
        })?;
        self.each(|session, at| session.settle(at, cpu))?;
        self.teller.began = Instant::now();
        let deadline = self.teller.began + self.plan.budget.mul_f64(of_rounds * END_SHARE);
        if of_rounds > 0.0 {
            self.rounds(deadline)?;
        }
        let last = self.teller.began + self.plan.budget.mul_f64((1.0 - of_starts).max(0.0) * END_SHARE);
        let terms = Terms::new(self.plan, last, self.random.next_u64());
        self.commands.measure(&mut self.sides, &terms, &mut self.teller)?;
        self.each(|session, at| session.sides[at].read_facts(Moment::After))
    }

    /// The requested processor, or the usual one of those that every environment of this machine may use.
    fn choose_cpu(&self, allowed: &[usize]) -> Option<usize> {
        let here = || self.sides.iter().filter(|side| side.is_here() && side.side.is_paired);
        let common: Vec<usize> = allowed
            .iter()
            .copied()
            .filter(|cpu| here().all(|side| side.hello.allowed.contains(cpu)))
            .collect();
        self.plan.cpu.or_else(|| topology::usual(&common)).or_else(|| topology::usual(allowed))
    }

    fn settle(&mut self, at: usize, cpu: Option<usize>) -> Result<(), Gone> {
        let side = &mut self.sides[at];
        let cpu = match side.side.cpu {
            Some(own) => Some(own),
            None if side.side.is_paired => cpu,
            None => side.hello.usual,
        };
        side.settle(cpu)
    }

    fn find_clock(&mut self, at: usize) -> Result<(), Gone> {
        let (stall, most) = (self.plan.stall, self.plan.budget);
        self.sides[at].find_clock(stall, most)
    }

    /// Restarts an environment. Its cases stay calibrated.
    pub fn restart(&mut self, at: usize) -> Result<(), Gone> {
        let cpu = self.sides[at].cpu;
        let Self { sides, other_cpus, .. } = self;
        match other_cpus {
            Some(other_cpus) => other_cpus.lifted(|| sides[at].start())?,
            None => sides[at].start()?,
        }
        self.sides[at].settle(cpu)?;
        self.find_clock(at)
    }

    /// Everything that is measured in batches, until the deadline.
    fn rounds(&mut self, deadline: Instant) -> Result<(), Stop> {
        self.each(Self::find_clock)?;
        let enough_for_rounds = deadline.saturating_duration_since(Instant::now()).mul_f64(ROUNDS_SHARE);
        let groups = self.sides.first().map_or(0, |side| side.schedules.len());
        let timed: Vec<usize> =
            (0..self.sides.len()).filter(|&at| !self.sides[at].side.is_counting).collect();
        let number = groups * timed.len();
        for group in 0..groups {
            for (place, &at) in timed.iter().enumerate() {
                let left = number - (group * timed.len() + place);
                let until = (deadline, enough_for_rounds, left);
                let done = self.calibration(at, group, until);
                self.settled(at, done)?;
                self.sides[at].schedules[group].count_operations();
            }
            let paired = self.sides.iter_mut().filter(|side| side.side.is_paired && side.is_here());
            let mut paired: Vec<&mut Schedule> = paired.map(|side| &mut side.schedules[group]).collect();
            if paired.len() > 1 {
                joint::equalize(&mut paired);
            }
        }
        self.tracks(deadline)
    }

    /// Calibrates each instance of a suite, as a run does: if one dies, hangs or takes too long, that is recorded, and the next
    /// process continues with the one after it. `steps` are to come, including this one.
    fn calibration(
        &mut self,
        at: usize,
        group: usize,
        (deadline, enough_for_rounds, steps): (Instant, Duration, usize),
    ) -> Result<(), Gone> {
        let Self { plan, sides, teller, .. } = self;
        let side = &mut sides[at];
        while side.is_here() {
            let batch_order = side.schedules[group].waiting();
            let left = deadline.saturating_duration_since(Instant::now());
            if batch_order.is_empty() || left < enough_for_rounds {
                break;
            }
            side.wake()?;
            let within = left.mul_f64(CALIBRATION_SHARE) / u32::try_from(steps).unwrap_or(u32::MAX).max(1);
            let (clock, instances) = (side.clock, batch_order.orders.clone());
            let (name, place) = (side.side.name.clone(), side.schedules[group].place);
            teller.say(format!("{} in {name}", batch_order.name(Some(0))), place);
            let mut tick = |instance| teller.say(format!("{} in {name}", batch_order.name(instance)), place);
            let job = Job::Calibration { clock, instances, within };
            let (ending, record) = side.run(job, plan.stall, within, &mut tick)?;
            side.schedules[group].record_calibration(&batch_order, &record, ending, plan.stall);
        }
        Ok(())
    }

    /// Runs pairs of processes of the environments that can be paired, and whole processes of the others, until the deadline.
    /// The next to run is the pair or the environment, and in it the suite, that has taken the least of its share.
    fn tracks(&mut self, deadline: Instant) -> Result<(), Stop> {
        let here = |side: &&AgentSide| side.is_here();
        let paired: Vec<usize> = (0..self.sides.len())
            .filter(|&at| self.sides[at].is_here() && self.sides[at].side.is_paired)
            .collect();
        let paired = if paired.len() > 1 { paired } else { Vec::new() };
        let alone: Vec<usize> =
            (0..self.sides.len()).filter(|at| !paired.contains(at) && self.sides[*at].is_here()).collect();
        let number = self.sides.iter().filter(here).count().max(1) as u32;
        let each = deadline.saturating_duration_since(Instant::now()) / number;
        for &at in &alone {
            let (plan, side) = (self.plan, &mut self.sides[at]);
            schedule::share(&mut side.schedules, each, plan, side.start_up);
        }
        let time = each * paired.len() as u32;
        let mut turns = (!paired.is_empty()).then(|| TurnTrack::new(self, paired, time));
        let began = Instant::now();
        let whole = deadline.saturating_duration_since(began);
        let mut done = 0.0;
        let stopped = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left < TOO_SHORT {
                break Ok(());
            }
            if self.plan.processes.is_none() {
                done = began.elapsed().as_secs_f64() / whole.as_secs_f64();
            }
            if let Err(stop) = self.restart_some(done) {
                break Err(stop);
            }
            // `None` is the track of turns.
            let mut open: Vec<(f64, Option<usize>)> = Vec::new();
            open.extend(turns.as_ref().and_then(|track| track.progress(self)).map(|done| (done, None)));
            let progress = |&at: &usize| Some((self.sides[at].progress()?, Some(at)));
            open.extend(alone.iter().filter_map(progress));
            let next = open.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
            done = next.map_or(done, |(least, _)| least);
            let step = match (next, &mut turns) {
                (Some((_, Some(at))), _) => {
                    let done = self.whole_process(at, deadline);
                    self.settled(at, done).map(|_| ())
                }
                (Some((_, None)), Some(track)) => track.pair(self, deadline),
                _ => break Ok(()),
            };
            if let Err(stop) = step {
                break Err(stop);
            }
        };
        if let Some(track) = turns {
            self.facts.extend(track.facts());
        }
        stopped
    }

    /// Restarts what is due when this part of the time, or of the processes, has passed.
    fn restart_some(&mut self, passed: f64) -> Result<(), Stop> {
        for at in 0..self.sides.len() {
            let side = &self.sides[at];
            let is_due =
                side.started < side.side.starts && passed * side.side.starts as f64 >= side.started as f64;
            if side.is_here() && is_due {
                let done = self.restart(at);
                self.settled(at, done)?;
            }
        }
        Ok(())
    }

    fn conclude(self, signal: Option<i32>) -> SessionFindings {
        let mut facts = self.facts;
        if let Some(signal) = signal {
            facts.push((INTERRUPTED.to_owned(), Fact::known(signal_name(signal), "signal(7)")));
        }
        let (commands, starts) = (self.commands, self.starts);
        facts.extend(starts.facts());
        let mut timed = 0..;
        let conclude = |(at, mut side): (usize, AgentSide<'_, '_>)| {
            side.close();
            let place = if side.side.is_counting { None } else { timed.next() };
            if side.side.starts > 1 {
                side.note("run.starts", Fact::known(side.started as i64, "starts of the environment"));
            }
            let cut = signal.map(|_| "interrupted").or(side.lost.as_deref());
            let clock = side.clock;
            let of_starts = starts.measurements(at, &side, cut);
            let schedules = std::mem::take(&mut side.schedules);
            let lacks_time = || schedules.iter().find_map(Schedule::out_of_time);
            // A lost side says why.
            let out_of_time = if cut.is_none() { lacks_time() } else { None };
            let conclude = |schedule: Schedule| schedule.conclude(clock, cut);
            let of_rounds = schedules.into_iter().flat_map(conclude);
            let of_commands = commands.measurements(place, cut);
            let measurements = of_rounds.chain(of_commands).chain(of_starts).collect();
            let findings =
                Findings { measurements, facts: side.of_measuring, interrupted: signal, out_of_time };
            EnvironmentFindings { facts: side.facts, findings, lost: side.lost }
        };
        let found = self.sides.into_iter().enumerate().map(conclude).collect();
        SessionFindings { found, facts, interrupted: signal }
    }
}
