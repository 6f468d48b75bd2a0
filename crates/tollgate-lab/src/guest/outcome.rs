use super::record::{Fault, Maker, Record, Round};

/// The outcome of one experiment.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All its rounds were done.
    Done(Vec<Round>),
    /// The processor lacks features, given by their bits.
    Lacks(u64),
    /// A fault ended it; `count` operations of that batch had arrived.
    Fault { rounds: Vec<Round>, fault: Fault, count: u64 },
    /// The run ended during the attempt: the engine stopped the guest, or could not go on.
    Stopped(Vec<Round>),
}

/// How a run ended.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ending {
    /// All chosen experiments were attempted, and no line is missing.
    Complete,
    /// All chosen experiments were attempted, but lines are missing: the guest says that it wrote `written`, and `read` arrived.
    Lost { written: u32, read: u32 },
    /// A fault outside any experiment ended it.
    Broken(Fault),
    /// The processor has no long mode.
    Refused,
    /// The engine cut it short.
    #[default]
    Cut,
}

/// The outcomes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcomes {
    /// The processor's vendor; `None` if it was not reported.
    pub maker: Option<Maker>,
    /// Operations of a batch (n); 0 if not reported.
    pub operations: u32,
    /// Rounds of each experiment; 0 if not reported.
    pub rounds: u32,
    /// The experiments that were attempted, by number, in order.
    pub experiments: Vec<(u8, Outcome)>,
    /// How the run ended.
    pub ending: Ending,
}

impl Outcomes {
    /// Collects the outcomes of records. If they come from several runs, the last one counts.
    pub fn of(records: &[Record]) -> Self {
        let mut outcomes = Self::default();
        let begin =
            records.iter().rposition(|record| matches!(record, Record::Begin { .. } | Record::Refused));
        for (read, record) in (0..).zip(&records[begin.unwrap_or(0)..]) {
            outcomes.add(record, read);
        }
        // The last experiment may be complete even though no record follows it.
        if let Some((_, Outcome::Stopped(rounds))) = outcomes.experiments.last()
            && rounds.len() >= outcomes.rounds as usize
        {
            outcomes.settle();
        }
        outcomes
    }

    /// Returns the outcome of an experiment; `None` if it was not attempted.
    pub fn of_number(&self, number: u8) -> Option<&Outcome> {
        self.experiments.iter().find(|(at, _)| *at == number).map(|(_, outcome)| outcome)
    }

    fn add(&mut self, record: &Record, read: u32) {
        match *record {
            Record::Begin { maker, operations, rounds, .. } => {
                self.maker = Some(maker);
                self.operations = operations;
                self.rounds = rounds;
            }
            Record::Try { experiment } => {
                self.settle();
                self.experiments.push((experiment, Outcome::Stopped(Vec::new())));
            }
            Record::Done { experiment, round, .. } => {
                let mut rounds = self.rounds_so_far(experiment);
                rounds.push(round);
                self.set(experiment, Outcome::Stopped(rounds));
            }
            Record::Lacks { experiment, features } => self.set(experiment, Outcome::Lacks(features)),
            Record::Fault { experiment, fault, count, .. } => {
                let rounds = self.rounds_so_far(experiment);
                self.set(experiment, Outcome::Fault { rounds, fault, count });
            }
            Record::Broken { fault } => self.ending = Ending::Broken(fault),
            Record::Refused => self.ending = Ending::Refused,
            Record::Program(_) => {}
            Record::End { lines } => {
                self.settle();
                self.ending =
                    if lines == read { Ending::Complete } else { Ending::Lost { written: lines, read } };
            }
        }
    }

    /// Marks the last experiment as done if it has rounds: the guest went on after it.
    fn settle(&mut self) {
        if let Some((_, outcome)) = self.experiments.last_mut()
            && let Outcome::Stopped(rounds) = outcome
            && !rounds.is_empty()
        {
            *outcome = Outcome::Done(std::mem::take(rounds));
        }
    }

    /// Takes the rounds of the current experiment, to be put back with its new outcome.
    fn rounds_so_far(&mut self, number: u8) -> Vec<Round> {
        match self.experiments.last_mut() {
            Some((at, Outcome::Stopped(rounds))) if *at == number => std::mem::take(rounds),
            _ => Vec::new(),
        }
    }

    /// Sets the outcome of the current experiment, or of one whose beginning was lost.
    fn set(&mut self, number: u8, outcome: Outcome) {
        match self.experiments.last_mut() {
            Some((at, under_way)) if *at == number => *under_way = outcome,
            _ => {
                self.settle();
                self.experiments.push((number, outcome));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROUND: Round =
        Round { iterations: 10, ticks_one: 50, ticks_two: 80, count_one: 10, count_two: 20, value: 0 };
    const FAULT: Fault = Fault { vector: 6, error: 0, cs: 0x2b, rip: 0x40_0000 };

    fn begin(rounds: u32) -> Record {
        let maker = Maker { ebx_edx: 0, ecx: 0 };
        Record::Begin { maker, signature: 1, features: 0, operations: 10, rounds }
    }

    fn done(experiment: u8, number: u32) -> Record {
        Record::Done { experiment, number, round: ROUND }
    }

    #[test]
    fn a_whole_run() {
        let records = [
            done(9, 0), // of the run before
            begin(2),
            Record::Try { experiment: 0 },
            done(0, 0),
            done(0, 1),
            Record::Try { experiment: 1 },
            done(1, 0),
            Record::Fault { experiment: 1, number: 1, fault: FAULT, count: 3 },
            Record::Try { experiment: 2 },
            Record::Lacks { experiment: 2, features: 4 },
            Record::End { lines: 9 },
        ];
        let outcomes = Outcomes::of(&records);
        assert_eq!(outcomes.ending, Ending::Complete);
        assert_eq!(
            outcomes.experiments,
            [
                (0, Outcome::Done(vec![ROUND; 2])),
                (1, Outcome::Fault { rounds: vec![ROUND], fault: FAULT, count: 3 }),
                (2, Outcome::Lacks(4)),
            ]
        );
        let lost: Vec<Record> = records.into_iter().filter(|record| *record != done(0, 0)).collect();
        let outcomes = Outcomes::of(&lost);
        assert_eq!(outcomes.ending, Ending::Lost { written: 9, read: 8 });
        assert_eq!(outcomes.of_number(0), Some(&Outcome::Done(vec![ROUND])));
    }

    #[test]
    fn what_was_under_way_when_the_run_ended_was_stopped() {
        let all = [
            begin(2),
            Record::Try { experiment: 0 },
            done(0, 0),
            done(0, 1),
            Record::Try { experiment: 1 },
            done(1, 0),
        ];
        let outcomes = Outcomes::of(&all);
        assert_eq!(outcomes.ending, Ending::Cut);
        assert_eq!(outcomes.of_number(0), Some(&Outcome::Done(vec![ROUND; 2])));
        assert_eq!(outcomes.of_number(1), Some(&Outcome::Stopped(vec![ROUND])));
        assert_eq!(Outcomes::of(&all[..4]).of_number(0), Some(&Outcome::Done(vec![ROUND; 2])));
        assert_eq!(Outcomes::of(&all[..2]).of_number(0), Some(&Outcome::Stopped(Vec::new())));
        assert_eq!(Outcomes::of(&[Record::Refused]).ending, Ending::Refused);
        assert_eq!(Outcomes::of(&[]).ending, Ending::Cut);
    }

    proptest! {
        #[test]
        fn every_round_is_kept(plan in prop::collection::vec((0_u8..40, 1_u32..5), 0..9)) {
            let mut records = vec![begin(4)];
            for (experiment, rounds) in &plan {
                records.push(Record::Try { experiment: *experiment });
                records.extend((0..*rounds).map(|number| done(*experiment, number)));
            }
            let outcomes = Outcomes::of(&records);
            prop_assert_eq!(outcomes.experiments.len(), plan.len());
            for ((number, rounds), (at, outcome)) in plan.iter().zip(&outcomes.experiments) {
                let (Outcome::Done(kept) | Outcome::Stopped(kept)) = outcome else { panic!("{outcome:?}") };
                prop_assert_eq!((number, *rounds as usize), (at, kept.len()));
            }
        }
    }
}
