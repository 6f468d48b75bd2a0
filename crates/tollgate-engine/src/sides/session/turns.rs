//! Pairs of processes: a bench process of each environment, which make their turns one after the other.

use std::ops::Range;
use std::time::{Duration, Instant};

use tollgate_alternation::Mirrored;
use tollgate_model::{Fact, ProcessRounds};

use super::agent_side::AgentSide;
use super::connection::Stop;
use super::joint;
use super::pairs::{FIRST_GUESS, NARROW, Pairs};
use super::running::Session;
use super::turn_plan::{self, Turn, Unit};
use crate::bench_process::record::ProcessRecord;
use crate::bench_process::shared::MAX_ROUNDS;
use crate::bench_process::worker::{TurnOrder, WARM_UP_PART};
use crate::cases::plan::Plan;
use crate::machine::ending::Ending;
use crate::rounds::schedule::{self, BatchOrder, Schedule};
use crate::sides::agent::protocol::{Job, Request};

/// With fewer pairs no interval that is corrected for the rows of a run could be narrow.
const LEAST_PAIRS: usize = 24;
/// Further pairs between two checks whether every ratio is decided.
const EVERY: usize = 4;

/// The environments that are measured in turns, with one schedule for all of them.
pub struct TurnTrack {
    sides: Vec<usize>,
    /// One for each suite. It has no samples, only the time of a pair, and how often each case has run.
    joint: Vec<Schedule>,
    pairs: Vec<Pairs>,
}

struct There {
    side: usize,
    batch_order: BatchOrder,
    /// How it ended and what it left, if it has ended.
    left: Option<(Ending, ProcessRecord)>,
}

impl TurnTrack {
    /// For these calibrated sides.
    pub fn new(session: &mut Session<'_, '_, '_>, sides: Vec<usize>, time: Duration) -> Self {
        for &at in &sides {
            session.sides[at].schedules.iter_mut().for_each(joint::shorten);
        }
        let empty = |schedule: &Schedule| schedule.without_results();
        let mut joint: Vec<Schedule> = session.sides[sides[0]].schedules.iter().map(empty).collect();
        for (group, joint) in joint.iter_mut().enumerate() {
            joint::refresh(joint, &schedules(&session.sides, &sides, group));
        }
        let start_up = sides.iter().map(|&at| session.sides[at].start_up).sum();
        schedule::share(&mut joint, time, &plan(session.plan), start_up);
        let pairs = joint.iter().map(|_| Pairs::default()).collect();
        Self { sides, joint, pairs }
    }

    /// The least share that a suite has taken of its time. `None` if all are settled, or no side is left.
    pub fn progress(&self, session: &Session<'_, '_, '_>) -> Option<f64> {
        self.here(session).first()?;
        self.next().map(|group| self.joint[group].progress())
    }

    /// The suite that has taken the least of its share. One that is nearly decided leaves most of its share to the others.
    fn next(&self) -> Option<usize> {
        const LEFT: f64 = 4.0;
        let progress = |group: usize| {
            let weight = if self.pairs[group].is_nearly_decided { LEFT } else { 1.0 };
            self.joint[group].progress() * weight
        };
        let open = (0..self.joint.len()).filter(|&group| !self.joint[group].settled);
        open.min_by(|&one, &other| progress(one).total_cmp(&progress(other)))
    }

    fn here(&self, session: &Session<'_, '_, '_>) -> Vec<usize> {
        self.sides.iter().copied().filter(|&at| session.sides[at].is_here()).collect()
    }

    pub fn pair(&mut self, session: &mut Session<'_, '_, '_>, deadline: Instant) -> Result<(), Stop> {
        let Some(group) = self.next() else { return Ok(()) };
        let (here, began) = (self.here(session), Instant::now());
        session.teller.done = self.joint[group].processes;
        let plan = &plan(session.plan);
        let joint = &mut self.joint[group];
        joint::refresh(joint, &schedules(&session.sides, &here, group));
        let left = deadline.saturating_duration_since(began);
        let (batch_order, time) = joint.running(joint.length(plan).min(left));
        if batch_order.is_empty() {
            joint.settled = true;
            return Ok(());
        }
        let schedules = schedules(&session.sides, &here, group);
        let units =
            joint::units(joint, &schedules, &batch_order.indices, |case| self.pairs[group].rest(case));
        let (turns, time) = match session.plan.turn {
            Duration::ZERO => self.length(group, &units, time.min(left)),
            turn => (MAX_ROUNDS, turn),
        };
        let until = began + time;
        let mut order = Mirrored::new(here.clone());
        let mut pair = Pair { group, there: Vec::new(), deadline };
        for at in order.next(&mut session.random) {
            pair.prepare(session, at, &batch_order.indices)?;
        }
        let started = Instant::now();
        let mut rounds = 0;
        while pair.is_whole(session, here.len()) && rounds < turns && (rounds == 0 || Instant::now() < until)
        {
            if !session.plan.turn.is_zero() {
                let sides = order.next(&mut session.random);
                rounds = pair.long_turns(session, (&units, rounds..turns), &sides)?;
                continue;
            }
            let due = turn_plan::turns(&units, rounds, &mut session.random);
            rounds += 1;
            for turn in due {
                let sides = order.next(&mut session.random);
                pair.turn(session, &turn, rounds - 1, &sides)?;
                if !pair.is_whole(session, here.len()) || Instant::now() >= deadline {
                    break;
                }
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        let turning = started.elapsed();
        pair.end(session)?;
        let rounds = pair.rounds(rounds);
        self.collect(session, pair, &batch_order.indices, rounds);
        if rounds > 0 {
            self.pairs[group].add(began.elapsed(), turning, rounds);
        }
        self.joint[group].taken += began.elapsed();
        self.settle(session, group, plan);
        let base = &mut session.sides[self.sides[0]];
        session.teller.decided.extend(base.schedules[group].newly_decided(base.clock));
        Ok(())
    }

    /// Rounds of the next pair, and how long it may take: a suite of long batches has time for few rounds.
    fn length(&self, group: usize, units: &[Unit], time: Duration) -> (usize, Duration) {
        let in_a_round =
            turn_plan::turns(units, 1, &mut tollgate_model::stats::random::Random::new(1)).len().max(1);
        let first = FIRST_GUESS.div_ceil(in_a_round);
        let most = self.joint[group].share / LEAST_PAIRS as u32;
        (self.pairs[group].next(first, MAX_ROUNDS), time.max(most))
    }

    fn collect(&mut self, session: &mut Session<'_, '_, '_>, pair: Pair, indices: &[usize], rounds: usize) {
        let (group, stall) = (pair.group, session.plan.stall);
        let mut records: Vec<(usize, BatchOrder, ProcessRecord)> = Vec::new();
        for There { side, batch_order, left } in pair.there {
            // A side that was lost meanwhile left nothing.
            let (ending, record) = left.unwrap_or((Ending::Finished, ProcessRecord::default()));
            let record = record.within(rounds);
            session.sides[side].schedules[group].collect(&batch_order, &record, ending, stall);
            records.push((side, batch_order, record));
        }
        let joint = &mut self.joint[group];
        joint.count_process(rounds > 0);
        for (index, state) in joint.cases.iter_mut().enumerate() {
            let ran = (!indices.contains(&index)).then(Vec::new);
            if rounds > 0 {
                state.processes.push(ProcessRounds { rounds: rounds as u32, ran, discarded: Vec::new() });
            }
        }
        let base = self.sides[0];
        let of = |(_, batch_order, record): &(usize, BatchOrder, ProcessRecord), index: usize| {
            let at = batch_order.indices.iter().position(|&other| other == index)?;
            record.instances.get(at).cloned()
        };
        let Some(of_base) = records.iter().find(|(side, ..)| *side == base) else { return };
        for other in records.iter().filter(|(side, ..)| *side != base) {
            for &index in indices {
                if let (Some(base), Some(found)) = (of(of_base, index), of(other, index))
                    && self.joint[group].cases[index].decides()
                {
                    self.pairs[group].compare(other.0, index, [&base, &found], rounds);
                }
            }
        }
    }

    /// A suite is settled when every ratio is decided, or every case has its pairs, or there were enough pairs.
    fn settle(&mut self, session: &Session<'_, '_, '_>, group: usize, plan: &Plan) {
        /// A fifth of the precision of a median leaves nothing to be found.
        const PART: f64 = 0.2;
        /// The share of decided ratios above which a suite needs less time than the others.
        const MOST: f64 = 0.85;
        let (joint, pairs) = (&mut self.joint[group], &mut self.pairs[group]);
        if let Some(wanted) = plan.processes {
            let mut here = self.sides.iter().map(|&at| &session.sides[at]).filter(|side| side.is_here());
            joint.settled = here.all(|side| side.schedules[group].has_kept(wanted));
        } else if pairs.number.is_multiple_of(EVERY) {
            pairs.is_nearly_decided = pairs.decided(NARROW) >= MOST;
            joint.settled = pairs.number >= LEAST_PAIRS && pairs.decided(plan.precision * PART) >= 1.0;
        }
        joint.settled |= joint.processes >= plan.most_processes;
    }

    pub fn facts(&self) -> Vec<(String, Fact)> {
        let suites = self.joint.iter().zip(&self.pairs).filter(|(_, pairs)| pairs.number > 0);
        let of_each: Vec<String> =
            suites.map(|(joint, pairs)| format!("{}: {}", joint.suite, pairs.describe())).collect();
        let of_each = of_each.join("; ");
        let sum = |of: fn(&Pairs) -> usize| self.pairs.iter().map(of).sum::<usize>();
        let (number, turns) = (sum(|pairs| pairs.number), sum(|pairs| pairs.turns));
        let turns = turns.checked_div(number).unwrap_or(0);
        let method = "chosen from their costs and variances (Kalibera & Jones, ISMM 2013)";
        let warm_up = "not recorded, before each timed batch of a turn; none before a batch of more than 2 ms, or of few iterations";
        let part = format!("1/{WARM_UP_PART} of a batch");
        vec![
            ("run.pairs".to_owned(), Fact::known(number as i64, format!("pairs of processes; {of_each}"))),
            (
                "run.turns".to_owned(),
                Fact::known(turns as i64, format!("turns of a case in a pair, {method}; {of_each}")),
            ),
            ("run.warm_up".to_owned(), Fact::known(part, warm_up)),
            ("run.order".to_owned(), Fact::known("ABBA or BAAB", "at random, by run.seed")),
        ]
    }
}

struct Pair {
    group: usize,
    there: Vec<There>,
    deadline: Instant,
}

impl Pair {
    fn prepare(
        &mut self,
        session: &mut Session<'_, '_, '_>,
        at: usize,
        indices: &[usize],
    ) -> Result<(), Stop> {
        let batch_order = session.sides[at].schedules[self.group].only(indices);
        let most = self.patience(session.plan);
        let prepared = {
            let Session { plan, sides, teller, .. } = session;
            let side = &mut sides[at];
            let (name, place) = (side.side.name.clone(), side.schedules[self.group].place);
            teller.hint(place, || format!("{} in {name}", batch_order.name(Some(0))));
            let mut tick =
                |instance| teller.hint(place, || format!("{} in {name}", batch_order.name(instance)));
            let job = Job::Turns { clock: side.clock, instances: batch_order.orders.clone() };
            side.wake().and_then(|()| side.prepare(job, plan.stall, most, &mut tick))
        };
        let left = session.settled(at, prepared)?.flatten();
        self.there.push(There { side: at, batch_order, left });
        Ok(())
    }

    /// Time for a preparation or a turn: a hanging instance is found by its heartbeat.
    fn patience(&self, plan: &Plan) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()) + plan.stall + plan.budget / 20
    }

    /// Whether no process has ended, and no side was lost.
    fn is_whole(&self, session: &Session<'_, '_, '_>, number: usize) -> bool {
        let is_there = |there: &There| there.left.is_none() && session.sides[there.side].is_here();
        self.there.len() == number && self.there.iter().all(is_there)
    }

    /// Makes a long turn in each of the sides, in this order: the first makes these rounds until the time of a turn has passed, the
    /// others make as many. Returns the number of the next round.
    fn long_turns(
        &mut self,
        session: &mut Session<'_, '_, '_>,
        (units, rounds): (&[Unit], Range<usize>),
        sides: &[usize],
    ) -> Result<usize, Stop> {
        let number = sides.len();
        let mut due: Vec<Vec<Turn>> = Vec::new();
        for (place, &side) in sides.iter().enumerate() {
            let mut began = None;
            for (at, round) in rounds.clone().enumerate() {
                let is_over = began.is_some_and(|began: Instant| began.elapsed() >= session.plan.turn);
                match place {
                    0 if is_over => break,
                    0 => due.push(turn_plan::turns(units, round, &mut session.random)),
                    _ if at == due.len() => break,
                    _ => {}
                }
                for turn in &due[at] {
                    self.turn(session, turn, round, &[side])?;
                    // After the setting was made.
                    began.get_or_insert_with(Instant::now);
                }
                if !self.is_whole(session, number) || Instant::now() >= self.deadline {
                    break;
                }
            }
        }
        Ok(rounds.start + due.len())
    }

    /// Makes a turn in each of the sides, in this order. If one ends, the others still make it.
    fn turn(
        &mut self,
        session: &mut Session<'_, '_, '_>,
        turn: &Turn,
        round: usize,
        sides: &[usize],
    ) -> Result<(), Stop> {
        let most = self.patience(session.plan);
        for &at in sides {
            let Some(there) = self.there.iter_mut().find(|there| there.side == at) else { continue };
            let instances = &there.batch_order.indices;
            let place_of = |case: &usize| instances.iter().position(|other| other == case);
            let due: Vec<usize> = turn.cases.iter().filter_map(place_of).collect();
            if due.is_empty() || there.left.is_some() || !session.sides[at].is_here() {
                continue;
            }
            let made = {
                let Session { sides, teller, .. } = session;
                let side = &mut sides[at];
                let (name, place) = (side.side.name.clone(), side.schedules[self.group].place);
                let mut tick = |instance| {
                    teller.hint(place, || format!("{} in {name}", there.batch_order.name(instance)));
                };
                tick(due.first().copied());
                let request = Request::Turn(TurnOrder { round, due, warms_up: turn.warms_up });
                side.wake().and_then(|()| side.ask(&request, most, instances.len(), &mut tick))
            };
            there.left = session.settled(at, made)?.flatten();
        }
        Ok(())
    }

    /// Ends the processes that wait for turns, and takes what they left.
    fn end(&mut self, session: &mut Session<'_, '_, '_>) -> Result<(), Stop> {
        for there in &mut self.there {
            if there.left.is_none() && session.sides[there.side].is_here() {
                let (side, instances) = (&mut session.sides[there.side], there.batch_order.indices.len());
                let left = side.ask(&Request::End, session.plan.stall, instances, &mut |_| {});
                there.left = session.settled(there.side, left)?.flatten();
            }
        }
        Ok(())
    }

    fn rounds(&self, begun: usize) -> usize {
        let recorded = self.there.iter().filter_map(|there| Some(there.left.as_ref()?.1.rounds));
        recorded.chain([begun]).max().unwrap_or(0)
    }
}

/// The plan of pairs: enough of them, and no others.
fn plan(plan: &Plan) -> Plan {
    if plan.processes.is_some() {
        return plan.clone();
    }
    Plan { least_processes: plan.least_processes.max(LEAST_PAIRS / 2), ..plan.clone() }
}

fn schedules<'x>(sides: &'x [AgentSide<'_, '_>], which: &[usize], group: usize) -> Vec<&'x Schedule> {
    which.iter().map(|&at| &sides[at].schedules[group]).collect()
}
