//! The plan of a round: which cases share a turn.
//!
//! A turn is up to about 2 ms of batches in each environment. Alternation in turns of that length loses nothing; above 20 ms it does,
//! because a busy machine keeps one pace for about that long. A round has as many turns as its cases need. A longer batch has its own
//! turn, and only in every second, fourth, … round. So does a case whose ratio is decided, which leaves the time to the others.

use std::time::Duration;

use tollgate_alternation::drawn;

use crate::bench_process::worker::WARM_UP_PART;
use tollgate_model::stats::random::Random;

/// The time of a turn in one environment.
pub const TURN: Duration = Duration::from_millis(2);

/// Cases that share their batches: the questions of one experiment, or one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    pub cases: Vec<usize>,
    /// The time of its batch in the environment where it takes longest.
    pub batch: Duration,
    /// Iterations of a batch, in the environment where it has most.
    pub iterations: u64,
    /// It takes part only in every `rest`-th of those rounds, since its ratio needs few more turns.
    pub rest: usize,
}

/// One turn: the same cases in every environment, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub cases: Vec<usize>,
    /// Whether an unrecorded batch precedes each timed one.
    pub warms_up: bool,
}

impl Unit {
    fn is_long(&self) -> bool {
        self.batch > TURN
    }

    fn time(&self) -> Duration {
        time(self.batch, self.iterations)
    }

    /// It is due in every n-th round for a stride n, so that a case with long batches takes no more time than several short ones.
    fn stride(&self) -> usize {
        const DUE_IN_EACH: Duration = Duration::from_micros(500);
        const MOST: u128 = 1 << 10;
        let times = self.batch.as_nanos().div_ceil(DUE_IN_EACH.as_nanos()).max(1);
        ((times * self.rest as u128).min(MOST) as usize).next_power_of_two()
    }
}

/// The time that a turn takes for such a batch.
pub fn time(batch: Duration, iterations: u64) -> Duration {
    let warms_up = batch <= TURN && iterations >= WARM_UP_PART;
    if warms_up { batch + batch / WARM_UP_PART as u32 } else { batch }
}

/// The turns of a round. In round 0 every case is due, and long batches come last, in case the time is short.
pub fn turns(units: &[Unit], round: usize, random: &mut Random) -> Vec<Turn> {
    let mut due: Vec<&Unit> =
        drawn(units.iter().filter(|unit| round.is_multiple_of(unit.stride())).collect(), random);
    if round == 0 {
        due.sort_by_key(|unit| if unit.is_long() { unit.batch } else { Duration::ZERO });
    }
    let mut turns: Vec<Turn> = Vec::new();
    let mut filled = TURN;
    for unit in due {
        if unit.is_long() || filled + unit.time() > TURN || turns.is_empty() {
            turns.push(Turn { cases: Vec::new(), warms_up: !unit.is_long() });
            filled = Duration::ZERO;
        }
        filled += if unit.is_long() { TURN } else { unit.time() };
        if let Some(turn) = turns.last_mut() {
            turn.cases.extend(&unit.cases);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use tollgate_alternation::Mirrored;

    use super::*;

    fn unit(cases: &[usize], us: u64) -> Unit {
        Unit { cases: cases.to_vec(), batch: Duration::from_micros(us), iterations: 16, rest: 1 }
    }

    #[test]
    fn every_case_has_one_batch_in_a_round_and_no_turn_is_longer_than_two_milliseconds() {
        let units: Vec<Unit> = (0..30).map(|case| unit(&[case], 60)).collect();
        let mut random = Random::new(1);
        let turns = turns(&units, 3, &mut random);
        assert_eq!(turns.iter().map(|turn| turn.cases.len()).collect::<Vec<_>>(), [26, 4]);
        let mut cases: Vec<usize> = turns.iter().flat_map(|turn| turn.cases.clone()).collect();
        cases.sort_unstable();
        assert!(cases.into_iter().eq(0..30) && turns.iter().all(|turn| turn.warms_up));
    }

    #[test]
    fn a_long_batch_has_a_turn_to_itself_in_few_rounds_and_comes_last_in_the_first() {
        let units = [unit(&[0, 1], 100_000), unit(&[2], 50), unit(&[3], 1900)];
        let mut random = Random::new(1);
        let first = turns(&units, 0, &mut random);
        assert_eq!(first.last(), Some(&Turn { cases: vec![0, 1], warms_up: false }));
        let at = |round, random: &mut Random| turns(&units, round, random).len();
        assert_eq!(first.len(), 3);
        assert_eq!([1, 2, 4, 255, 256].map(|round| at(round, &mut random)), [1, 1, 2, 1, 3]);
        assert!(turns(&[], 0, &mut random).is_empty());
    }

    #[test]
    fn a_decided_case_is_due_in_every_fourth_round() {
        let units = [unit(&[0], 50), Unit { rest: 4, ..unit(&[1], 50) }];
        let mut random = Random::new(1);
        let number = |round, random: &mut Random| turns(&units, round, random)[0].cases.len();
        assert_eq!([0, 1, 2, 3, 4].map(|round| number(round, &mut random)), [2, 1, 1, 1, 2]);
    }

    #[test]
    fn orders_are_as_recorded() {
        crate::recorded::hold("turns", |seed| {
            let mut random = Random::new(seed);
            let units: Vec<Unit> = (0..20).map(|case| unit(&[case], 60 << (case % 7))).collect();
            let mut recorded = String::new();
            for sides in 2..5 {
                let mut order = Mirrored::new((0..sides).collect());
                for round in 0..4 {
                    for turn in turns(&units, round, &mut random) {
                        recorded += &format!("{:?} {:?}, ", turn.cases, order.next(&mut random));
                    }
                    recorded += "\n";
                }
            }
            recorded
        });
    }
}
