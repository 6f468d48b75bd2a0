//! Plays one schedule: A is preempted, B takes and releases the lock, A continues.

use crate::counterexample::Counterexample;
use crate::search::{Harm, Machine as _};
use crate::subject::{MOST_STEPS, Rival, Work};

use super::effect::{Act, Deed};
use super::instruction::Place;
use super::machine::{Event, Machine, Move, MoveKind};
use super::narrative::Narrative;
use super::state::{Phase, State};

const A: usize = 0;
const B: usize = 1;

struct Player<'a> {
    machine: &'a Machine<'a, 2>,
    state: State<2>,
    schedule: Vec<(Move, State<2>)>,
    /// The step to which a process that runs alone has looped back.
    back_to: Option<usize>,
    work: Work,
}

pub(super) struct Played {
    pub(super) counterexample: Counterexample,
    /// A's work until it had the lock; `None` if it did not take it.
    pub(super) work: Option<Work>,
}

/// Plays the schedule in which A is preempted just before instruction number `point`.
pub(super) fn play(machine: &Machine<'_, 2>, point: usize, rival: Rival) -> Played {
    let mut player =
        Player { machine, state: machine.start(), schedule: vec![], back_to: None, work: Work::default() };
    let reached = player.preempt_at(point);
    if reached {
        player.give_and_take(rival);
        player.run(A, |_, _| false);
    }
    let taken = reached && player.state.processes[A].phase == Phase::Done;
    let work = taken.then_some(player.work);
    Played { counterexample: player.counterexample(point, reached), work }
}

pub(super) fn play_alone(machine: &Machine<'_, 1>) -> Played {
    let step = Move { processor: 0, process: A as u8, kind: MoveKind::Execute };
    let mut state = machine.start();
    let mut schedule = vec![];
    let runs = |state: &State<1>| {
        let phase = state.processes[A].phase;
        phase != Phase::Critical && state.processes[A].alive() && machine.harm(state).is_none()
    };
    let mut work = Work::default();
    while runs(&state) && schedule.len() < MOST_STEPS {
        let event = machine.step(&mut { state }, A);
        count(&mut work, event);
        state = machine.after(&state, step);
        schedule.push((step, state));
    }
    let narrative = Narrative::new(machine, &schedule);
    let harm = machine.harm(&state);
    let ending = narrative.ending(&state, None);
    let so = match (harm, state.processes[A].phase) {
        (Some(harm), _) => ending.so(harm),
        (None, Phase::Critical) => format!("Without a rival: {work}."),
        (None, _) => format!("A alone had not taken the lock after {} steps.", schedule.len()),
    };
    let taken = harm.is_none() && state.processes[A].phase == Phase::Critical;
    Played { counterexample: narrative.counterexample(harm, None, so), work: taken.then_some(work) }
}

fn count(work: &mut Work, event: Event) {
    work.instructions += usize::from(matches!(event, Event::Ran | Event::Returned(_) | Event::Excepted(..)));
    work.entries += usize::from(matches!(event, Event::Excepted(..)));
}

impl Player<'_> {
    /// Runs A to an instruction, and on to where it can be interrupted. Returns whether it got that far.
    fn preempt_at(&mut self, point: usize) -> bool {
        self.run(A, |state, _| {
            let process = &state.processes[A];
            process.inside() && usize::from(process.pc) == point
        });
        self.run(A, |state, _| state.processes[A].interrupts);
        self.goes_on() && self.state.processes[A].alive()
    }

    /// Interrupts A; lets B take and release the lock, or find it taken; continues with A.
    fn give_and_take(&mut self, rival: Rival) {
        self.take(A, MoveKind::Interrupt(B as u8));
        self.run(B, |state, event| {
            let has_it = state.processes[B].phase == Phase::Critical && rival == Rival::Holds;
            has_it || matches!(event, Some(Event::Returned(1..)))
        });
        if self.state.processes[B].interrupts {
            // If B had looped, it would be waiting for A.
            self.back_to = None;
        }
        self.run(B, |state, _| state.processes[B].interrupts);
        if !self.goes_on() {
            return;
        }
        if self.state.processes[B].alive() {
            self.take(B, MoveKind::Interrupt(A as u8));
        } else {
            self.take(A, MoveKind::Dispatch);
        }
    }

    /// Runs a process until `there` holds, it finishes or does harm, or it loops.
    fn run(&mut self, who: usize, mut there: impl FnMut(&State<2>, Option<Event>) -> bool) {
        let began = self.schedule.len();
        let mut seen = vec![self.state];
        let mut arrived = there(&self.state, None);
        while !arrived && self.goes_on() && self.state.processes[who].alive() {
            let event = self.take(who, MoveKind::Execute);
            arrived = there(&self.state, event);
            if !arrived {
                self.back_to = seen.iter().position(|state| *state == self.state).map(|place| began + place);
            }
            seen.push(self.state);
        }
    }

    fn goes_on(&self) -> bool {
        self.back_to.is_none() && self.machine.harm(&self.state).is_none() && self.schedule.len() < MOST_STEPS
    }

    fn take(&mut self, who: usize, kind: MoveKind) -> Option<Event> {
        let step = Move { processor: 0, process: who as u8, kind };
        let event = (kind == MoveKind::Execute).then(|| self.machine.step(&mut { self.state }, who));
        if who == A {
            event.into_iter().for_each(|event| count(&mut self.work, event));
        }
        self.state = self.machine.after(&self.state, step);
        self.schedule.push((step, self.state));
        event
    }

    fn counterexample(self, point: usize, reached: bool) -> Counterexample {
        let narrative = Narrative::new(self.machine, &self.schedule);
        let harm = self.machine.harm(&self.state);
        let ending = narrative.ending(&self.state, self.back_to);
        let so = match (harm, self.back_to) {
            (Some(harm), _) => ending.so(harm),
            (None, Some(_)) => ending.so(Harm::Stuck),
            (None, None) if self.schedule.len() >= MOST_STEPS => {
                format!("It had not ended after {MOST_STEPS} steps.")
            }
            (None, None) => self.so(ending.deeds, point, reached),
        };
        narrative.counterexample(harm, self.back_to, so)
    }

    fn so(&self, deeds: &[Deed], point: usize, reached: bool) -> String {
        let place = Place(point as i64);
        let suspended = deeds.iter().position(|deed| deed.act == Act::Suspended);
        let Some((since, at)) = suspended.filter(|_| reached).map(|index| (index, deeds[index].pc)) else {
            return format!("A finished without reaching {place} where it could be preempted.");
        };
        let preempted = if usize::from(at) == point {
            format!("A was preempted before {place}")
        } else {
            format!("Interrupts were off at {place}, and A was preempted before {}", Place(i64::from(at)))
        };
        let [a, b] = &self.state.processes;
        let b_did =
            if b.phase == Phase::Done { "took the lock and gave it back" } else { "found the lock taken" };
        let again = |wanted: Act| deeds[since..].iter().any(|deed| deed.process == 0 && deed.act == wanted);
        let a_did = if again(Act::Restarted) {
            "A's store faulted, the handler started tst again, and A finished"
        } else if again(Act::BranchedToStart) {
            "A noticed it, restarted tst and finished"
        } else if a.phase == Phase::Done {
            "A went on from there and finished"
        } else {
            "A went on from there"
        };
        format!("{preempted}; B {b_did}; {a_did}.")
    }
}

#[cfg(test)]
mod tests {
    use super::Rival;
    use crate::mips::subjects;

    fn so(name: &str, point: usize) -> String {
        let subject = subjects().iter().find(|subject| subject.name() == name).unwrap();
        subject.play(point, Rival::GivesBack).unwrap().so
    }

    #[test]
    fn figure_11_starts_again_wherever_it_is_preempted_before_the_store() {
        assert!(so("figure-11", 0).ends_with("A went on from there and finished."));
        for point in 1..7 {
            assert!(so("figure-11", point).ends_with("A noticed it, restarted tst and finished."));
        }
        assert_eq!(
            so("figure-11", 7),
            "A was preempted before tst+0x1c; B took the lock and gave it back; A's store faulted, the handler \
             started tst again, and A finished."
        );
        for point in 8..10 {
            assert!(
                so("figure-11", point)
                    .ends_with("B found the lock taken; A went on from there and finished.")
            );
        }
    }

    #[test]
    fn a_process_with_interrupts_disabled_is_preempted_later() {
        assert_eq!(
            so("di-ei", 3),
            "Interrupts were off at tst+0xc, and A was preempted before tst+0x20; B found the lock taken; A went on \
             from there and finished."
        );
        let halted = "A disabled interrupts at tst (di) and loops for ever: no other process runs any more.";
        assert_eq!(so("figure-5", 1), halted);
    }

    #[test]
    fn what_a_mutant_lacks_shows_where_it_is_preempted_before_the_store() {
        let killed =
            "A is killed at tst+0x1c (sw t0,(k1)): it stores to 0x00200000, and no handler starts tst again.";
        assert_eq!(so("figure-11-no-handler", 7), killed);
        let endless =
            "A stores to 0x00200000 at tst+0x1c (sw t0,(k1)), and continues at the same store, for ever.";
        assert_eq!(so("figure-11-handler-resumes-at-store", 7), endless);
        assert!(so("figure-11-no-trap", 7).ends_with("A went on from there and finished."));
    }

    #[test]
    fn every_point_of_every_program_is_described() {
        for subject in subjects() {
            for point in 0..subject.points() {
                let counterexample = subject.play(point, Rival::GivesBack).unwrap();
                assert!(counterexample.so.ends_with('.') && !counterexample.steps.is_empty());
                assert_eq!(counterexample, subject.play(point, Rival::GivesBack).unwrap());
            }
            assert!(subject.play(subject.points(), Rival::GivesBack).is_err());
        }
    }
}
