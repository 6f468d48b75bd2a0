//! Rounds of scripted executions, without processes or sleeps. The clock advances by the scripted times.

use std::collections::BTreeSet;

use super::*;
use std::time::Duration;
use tollgate_statistics::Verdict;
use tollgate_statistics::random::Random;

const MS: f64 = 1e6;

type Script<'a> = dyn FnMut(&Turn, &SoFar) -> Result<Outcome, Halt<&'static str>> + 'a;

struct Scripted<'a> {
    /// The executions, in order.
    told: Vec<Turn>,
    /// Nanoseconds so far.
    clock: f64,
    script: Box<Script<'a>>,
    most_traced: u32,
    inherits: bool,
    less: f64,
    begun_anew: usize,
    after_rounds: usize,
}

impl<'a> Scripted<'a> {
    fn new(script: impl FnMut(&Turn, &SoFar) -> Result<Outcome, Halt<&'static str>> + 'a) -> Self {
        Self {
            told: Vec::new(),
            clock: 0.0,
            script: Box::new(script),
            most_traced: 0,
            inherits: false,
            less: 0.0,
            begun_anew: 0,
            after_rounds: 0,
        }
    }

    /// Executions that take this many milliseconds on each side, give or take a thousandth.
    fn of(times: &'a [f64]) -> Self {
        let mut noise = Random::new(3);
        Self::new(move |turn, _| {
            let noise = 1.0 + (noise.next_u64() >> 40) as f64 / (1u64 << 24) as f64 / 1000.0;
            Ok(Outcome::Figure(times[turn.side] * MS * noise))
        })
    }
}

impl Trial for Scripted<'_> {
    type Stop = &'static str;

    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock as u64)
    }

    fn execute(&mut self, turn: &Turn, so_far: &SoFar) -> Result<Outcome, Halt<&'static str>> {
        self.told.push(*turn);
        let outcome = (self.script)(turn, so_far)?;
        if let Outcome::Figure(figure) = outcome {
            self.clock += figure * if turn.how == How::Traced { 3.0 } else { 1.0 };
        }
        Ok(outcome)
    }

    fn after_round(&mut self, _: &mut Places, _: &SoFar) -> Result<(), Halt<&'static str>> {
        self.after_rounds += 1;
        Ok(())
    }

    fn less(&self, _: usize) -> f64 {
        self.less
    }

    fn most_traced(&self) -> u32 {
        self.most_traced
    }

    fn inherits(&self, _: usize) -> bool {
        self.inherits
    }

    fn begin_anew(&mut self) {
        self.begun_anew += 1;
    }
}

fn plan(rounds: Rounds) -> Plan {
    Plan { is_whole: true, ..Plan::new(rounds, Duration::MAX, 0.01) }
}

const FREE: Rounds = Rounds { least: 1, most: 400 };

fn alternation(plan: Plan, seed: u64, cases: usize, sides: usize) -> Alternation {
    let cases = vec![(0..sides).collect(); cases];
    Alternation::new(plan, Random::new(seed), &cases, Places::of_each(sides))
}

/// The rounds of a comparison of one case whose executions take these times.
fn rounds(plan: Plan, times: &[f64]) -> u32 {
    let mut alternation = alternation(plan, 7, 1, times.len());
    alternation.run(&mut Scripted::of(times)).expect("nothing halts");
    alternation.so_far().rounds
}

#[test]
fn a_round_has_every_side_once_in_an_order_of_its_own() {
    let mut all = BTreeSet::new();
    for seed in 0..30 {
        let mut trial = Scripted::of(&[20.0, 21.0, 22.0]);
        alternation(plan(Rounds::exactly(4)), seed, 1, 3).run(&mut trial).expect("nothing halts");
        let sides: Vec<usize> = trial.told.iter().map(|turn| turn.side).collect();
        for round in sides.chunks(3) {
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 3, "{sides:?}");
        }
        all.insert(sides);
        assert_eq!(trial.after_rounds, 4);
    }
    assert!(all.len() > 20);
    // The first side of a round does not predict that of the next round, nor of the one after.
    let mut trial = Scripted::of(&[20.0, 21.0]);
    alternation(plan(Rounds::exactly(400)), 7, 1, 2).run(&mut trial).expect("nothing halts");
    let first: Vec<usize> = trial.told.chunks(2).map(|round| round[0].side).collect();
    for apart in [1, 2] {
        let equal = first.iter().zip(&first[apart..]).filter(|(one, later)| one == later).count();
        assert!((150..250).contains(&equal), "{apart}: {equal}");
    }
}

#[test]
fn the_sides_of_a_case_are_executed_before_another_case_is() {
    let first_in_order = Plan { begins_in_order: true, ..plan(Rounds::exactly(6)) };
    let mut trial = Scripted::of(&[20.0, 21.0, 22.0]);
    alternation(first_in_order, 7, 4, 3).run(&mut trial).expect("nothing halts");
    let cases: Vec<usize> = trial.told.iter().map(|turn| turn.case).collect();
    assert_eq!(cases.len(), 6 * 4 * 3);
    assert!(cases.chunks(3).all(|sides| sides.iter().all(|case| *case == sides[0])));
    let rounds: Vec<Vec<usize>> =
        cases.chunks(12).map(|round| round.iter().copied().step_by(3).collect()).collect();
    assert_eq!(rounds[0], [0, 1, 2, 3]);
    assert!(rounds[1..].iter().any(|round| *round != rounds[0]));
}

#[test]
fn it_ends_when_intervals_are_narrow_or_at_the_most_or_after_the_time() {
    let is_soon = |rounds: u32| (14..30).contains(&rounds);
    let free = Rounds { least: 10, most: 100 };
    let (usual, times) = (plan(free), [20.0, 30.0]);
    assert!(is_soon(rounds(usual, &times)));
    let wide = Plan { precision: 0.0, ..usual };
    assert_eq!(rounds(wide, &times), 100);
    assert_eq!(rounds(Plan { time: Duration::ZERO, ..wide }, &times), 10);
    // A round takes 50 ms.
    assert_eq!(rounds(Plan { time: Duration::from_millis(1010), ..wide }, &times), 21);
    assert_eq!(rounds(Plan { time: Duration::from_millis(1010), must_fit: true, ..wide }, &times), 20);
    assert_eq!(rounds(plan(Rounds { least: 30, most: 100 }), &times), 30);
    assert_eq!(rounds(plan(Rounds::exactly(3)), &times), 3);
    assert!(is_soon(rounds(usual, &[20.0])), "a side alone");
    assert_eq!(rounds(wide, &[20.0]), 100);
    let decided = Plan { precision: 0.5, until_decided: true, ..usual };
    assert!(is_soon(rounds(decided, &[20.0, 20.0])), "equal sides are decided as the same");
    assert!(is_soon(rounds(usual, &[20.0, 30.0, 25.0])), "three sides");
}

#[test]
fn figures_are_those_of_whole_rounds_and_what_is_known_is_told() {
    let mut known = Vec::new();
    let script = |turn: &Turn, so_far: &SoFar| {
        known.push((so_far.rounds, so_far.compared.map(|(_, side, found)| (side, found.verdict))));
        match turn.number {
            25 if turn.side == 1 => Err(Halt::Run("a signal")),
            _ => Ok(Outcome::Figure((10.0 + turn.side as f64) * MS + f64::from(turn.number % 3))),
        }
    };
    let mut alternation = alternation(Plan { precision: 0.0, ..plan(FREE) }, 7, 1, 2);
    let halted = alternation.run(&mut Scripted::new(script));
    assert!(matches!(halted, Err(Halt::Run("a signal"))));
    assert_eq!([0, 1].map(|side| alternation.figures(0, side).len()), [25, 25]);
    assert_eq!(alternation.figures(0, 2), &[] as &[f64]);
    assert_eq!(known[30], (15, None));
    assert_eq!(known[48], (24, Some((1, Verdict::Slower))));
}

#[test]
fn a_place_that_is_lost_takes_its_sides_with_it_and_the_others_go_on() {
    // Sides 0 and 2 are at place 0, sides 1 and 3 at place 1.
    let script = |turn: &Turn, _: &SoFar| match turn.number {
        3 if turn.side == 2 => Err(Halt::Lost("it ended".to_owned())),
        _ => Ok(Outcome::Figure(20.0 * MS)),
    };
    let mut trial = Scripted::new(script);
    let places = Places::in_turn(4, 2);
    let rounds = plan(Rounds::exactly(8));
    let mut alternation = Alternation::new(rounds, Random::new(7), &[vec![0, 1, 2, 3]], places);
    alternation.run(&mut trial).expect("one place is left");
    assert_eq!(alternation.places.lost(), [Some("it ended".to_owned()), None]);
    assert_eq!([1, 3].map(|side| alternation.figures(0, side).len()), [8, 8]);
    assert!(trial.told.iter().all(|turn| turn.number <= 3 || turn.side % 2 == 1));
    // The last place takes the comparison with it.
    let mut trial = Scripted::new(|_, _| Err(Halt::Lost("it ended".to_owned())));
    let halted = self::alternation(rounds, 7, 1, 2).run(&mut trial);
    assert!(matches!(halted, Err(Halt::Lost(why)) if why == "it ended"));
    assert_eq!(trial.told.len(), 2);
}

#[test]
fn a_case_or_a_side_that_fails_is_left_out() {
    let script = |turn: &Turn, _: &SoFar| match (turn.case, turn.side, turn.number) {
        (1, 0, 2) => Ok(Outcome::LeaveCase),
        (2, 1, 3) => Ok(Outcome::LeaveSide),
        _ => Ok(Outcome::Figure(20.0 * MS)),
    };
    let mut trial = Scripted::new(script);
    let mut alternation = alternation(plan(Rounds::exactly(6)), 7, 4, 2);
    alternation.leave(3);
    alternation.run(&mut trial).expect("nothing halts");
    let number = |case, side| trial.told.iter().filter(|turn| (turn.case, turn.side) == (case, side)).count();
    assert_eq!([number(0, 0), number(0, 1), number(2, 0), number(2, 1), number(3, 0)], [6, 6, 6, 4, 0]);
    assert!(number(1, 0) == 3 && number(1, 1) <= 3);
}

#[test]
fn a_round_that_was_discarded_on_one_side_keeps_its_place() {
    let mut noise = Random::new(3);
    let script = |turn: &Turn, _: &SoFar| match (turn.side, turn.number % 5) {
        (1, 4) => Ok(Outcome::Discarded),
        (side, _) => {
            let noise = (noise.next_u64() >> 50) as f64;
            Ok(Outcome::Figure(
                (20.0 + 10.0 * side as f64) * f64::from(100 + turn.number) / 100.0 * MS + noise,
            ))
        }
    };
    let mut alternation = alternation(Plan { is_whole: false, ..plan(FREE) }, 7, 1, 2);
    alternation.run(&mut Scripted::new(script)).expect("nothing halts");
    let [base, other] = [0, 1].map(|side| alternation.figures(0, side));
    assert!(base.len() == other.len() && base.len() < 400);
    assert!(other.iter().enumerate().all(|(round, figure)| figure.is_nan() == (round % 5 == 4)));
}

#[test]
fn warm_ups_are_not_kept_and_traced_rounds_take_their_share() {
    let mut trial = Scripted { most_traced: 25, ..Scripted::of(&[20.0, 30.0]) };
    let rounds = Plan { precision: 0.0, ..plan(Rounds::exactly(200)) };
    let mut alternation = alternation(rounds, 7, 1, 2);
    alternation.pass(&mut trial, How::Warm, 0).expect("nothing halts");
    alternation.run(&mut trial).expect("nothing halts");
    assert_eq!(alternation.figures(0, 0).len(), 200);
    let traced = trial.told.iter().filter(|turn| turn.how == How::Traced).count() / 2;
    // A round takes 50 ms, and a traced one 150.
    assert!((14..=18).contains(&traced), "{traced}");
    assert_eq!((trial.told[0].how, trial.told[2].how), (How::Warm, How::Traced));
    let mut trial = Scripted { most_traced: 3, ..Scripted::of(&[20.0, 30.0]) };
    self::alternation(rounds, 7, 1, 2).run(&mut trial).expect("nothing halts");
    assert_eq!(trial.told.len(), 2 * (200 + 3));
}

#[test]
fn nothing_is_traced_for_which_the_time_is_too_short() {
    for (must_fit, seconds) in [(false, 0.12), (true, 0.12), (true, 10.0)] {
        let mut trial = Scripted::of(&[20.0, 30.0]);
        let plan = Plan {
            must_fit,
            ..Plan::new(Rounds { least: 0, most: 2 }, Duration::from_secs_f64(seconds), 0.0)
        };
        let mut rounds = alternation(plan, 1, 1, 2);
        // A warm-up says how long a round takes: 50 ms.
        rounds.pass(&mut trial, How::Warm, 0).expect("executed");
        (trial.most_traced, trial.clock) = (25, 0.08 * 1e9);
        rounds.run(&mut trial).expect("executed");
        let traced = trial.told.iter().filter(|turn| turn.how == How::Traced).count();
        assert_eq!(traced > 0, !(must_fit && seconds < 1.0), "{must_fit} {seconds}");
    }
}

#[test]
fn sides_that_find_what_another_left_take_turns() {
    let run = |inherits: bool| {
        let mut last = usize::MAX;
        let script = move |turn: &Turn, _: &SoFar| {
            let is_after_itself = std::mem::replace(&mut last, turn.side) == turn.side;
            let ms = [20.0, 30.0][turn.side] / if is_after_itself { 10.0 } else { 1.0 };
            Ok(Outcome::Figure(ms * MS))
        };
        let mut trial = Scripted { inherits, ..Scripted::new(script) };
        let rounds = plan(Rounds::exactly(40));
        let mut alternation = Alternation::new(rounds, Random::new(7), &[vec![0, 1]], Places::in_turn(2, 1));
        alternation.run(&mut trial).expect("nothing halts");
        (alternation, trial)
    };
    let (alternation, trial) = run(true);
    let in_turn = alternation.in_turn().expect("it is seen");
    assert_eq!((in_turn.medians[0] / in_turn.medians[1]).round(), 10.0);
    assert_eq!((trial.begun_anew, alternation.figures(0, 0)), (1, [20.0 * MS; 40].as_slice()));
    let (alternation, trial) = run(false);
    assert_eq!((alternation.in_turn(), trial.begun_anew), (None, 0));
}

#[test]
fn what_surrounds_an_execution_is_subtracted_before_figures_are_compared() {
    let ratio = |less: f64| {
        let mut trial = Scripted { less, ..Scripted::of(&[20.0, 30.0]) };
        let mut alternation = alternation(plan(FREE), 7, 1, 2);
        alternation.run(&mut trial).expect("nothing halts");
        alternation.so_far().compared.expect("compared").2.ratio
    };
    assert!((ratio(0.0) - 1.5).abs() < 0.01 && (ratio(10.0 * MS) - 2.0).abs() < 0.01);
}

/// The calls of a trial, in order.
struct Steps(Vec<(&'static str, usize)>);

impl Trial for Steps {
    type Stop = ();

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn prepare(&mut self, turn: &Turn, _: &SoFar) -> Result<Outcome, Halt<()>> {
        self.0.push(("prepare", turn.side));
        Ok(if turn.side == 2 { Outcome::LeaveSide } else { Outcome::Done })
    }

    fn execute(&mut self, turn: &Turn, _: &SoFar) -> Result<Outcome, Halt<()>> {
        self.0.push(("execute", turn.side));
        Ok(Outcome::Figure(turn.side as f64))
    }

    fn conclude(&mut self, turn: &Turn, outcome: Outcome, _: &SoFar) -> Result<Outcome, Halt<()>> {
        assert_eq!(outcome, Outcome::Figure(turn.side as f64));
        self.0.push(("conclude", turn.side));
        Ok(Outcome::Figure(7.0))
    }
}

#[test]
fn executions_lie_close_together_between_preparations_and_judgements() {
    let mut trial = Steps(Vec::new());
    let mut alternation = alternation(plan(Rounds::exactly(1)), 7, 1, 3);
    alternation.run(&mut trial).expect("nothing halts");
    let steps: Vec<&str> = trial.0.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [["prepare"; 3].as_slice(), &["execute"; 2], &["conclude"; 2]].concat());
    assert_eq!(trial.0[3].1, trial.0[5].1);
    assert_eq!(alternation.figures(0, 0).first(), None, "side 2 has no figure of the round");
}

#[test]
fn orders_are_reversed_in_every_second_turn() {
    let (mut order, mut random) = (Mirrored::new(vec![0, 1]), Random::new(7));
    let mut firsts = [0; 2];
    for _ in 0..200 {
        let (one, other) = (order.next(&mut random), order.next(&mut random));
        assert!(one.iter().eq(other.iter().rev()));
        firsts[one[0]] += 1;
    }
    assert!(firsts.iter().all(|&first| first > 60), "{firsts:?}");
}
