//! The agent's part: it executes whole commands at the coordinator's request.

use std::time::{Duration, Instant};

use tollgate_model::Case;

use super::local::Local;
use super::protocol::{CommandAnswer, CommandRequest};
use super::stage::{Attempt, Stage};
use crate::cases::benchmark::{Benchmark, Chosen};
use crate::cases::fixture::Fixture;
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::run::Halt;
use crate::cases::run::Progress;
use crate::machine::storage::Storage;
use crate::refusal::Refusal;

/// The agent's state between requests, until the fixture is removed.
#[derive(Default)]
pub(crate) struct Served {
    fixture: Option<Box<dyn Fixture>>,
    /// For each case of the preparation, its index among those that this build knows.
    places: Vec<Option<usize>>,
}

impl Served {
    /// Serves a request. Each request has its own time limit; there is no other budget here.
    ///
    /// # Errors
    /// See [`Halt`].
    pub fn meet(
        &mut self,
        request: CommandRequest,
        storage: Result<Storage, String>,
        find: fn(&str) -> Option<&'static Benchmark>,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<CommandAnswer, Halt> {
        let plan = Plan { storage, ..Plan::within(Duration::ZERO) };
        let mut local = Local::new(&plan, Instant::now(), Ordinal::default(), watch);
        local.fixture = self.fixture.take();
        let answer = self.answer(request, &mut local, find);
        self.fixture = local.fixture.take();
        answer
    }

    /// Removes the fixture.
    pub fn end(&mut self) {
        self.fixture = None;
    }

    fn answer(
        &mut self,
        request: CommandRequest,
        local: &mut Local,
        find: fn(&str) -> Option<&'static Benchmark>,
    ) -> Result<CommandAnswer, Halt> {
        match request {
            CommandRequest::Prepare { cases, within } => {
                let until = later(within);
                // The fixture of the previous preparation is removed first.
                local.finish()?;
                let refusals = self.prepare(&cases, find, |known| local.prepare(known, until))?;
                Ok(CommandAnswer::Prepared(refusals))
            }
            CommandRequest::Pass { case, phase, within } => {
                let attempt = match self.places.get(case).copied().flatten() {
                    Some(case) => local.pass(case, phase, later(within))?,
                    None => Attempt::Refused(Refusal::Fail("it was not prepared".to_owned())),
                };
                Ok(CommandAnswer::Did(attempt))
            }
            CommandRequest::Finish => {
                let facts = local.finish()?;
                self.end();
                Ok(CommandAnswer::Finished(facts))
            }
        }
    }

    fn prepare(
        &mut self,
        cases: &[Case],
        find: fn(&str) -> Option<&'static Benchmark>,
        prepare: impl FnOnce(&[Chosen]) -> Result<Vec<Option<Refusal>>, Halt>,
    ) -> Result<Vec<Option<Refusal>>, Halt> {
        let mut known: Vec<Chosen> = Vec::new();
        self.places.clear();
        for case in cases {
            let benchmark = find(&case.benchmark).filter(|benchmark| benchmark.is_command());
            self.places.push(benchmark.map(|benchmark| {
                known.push((benchmark, case.params.clone()));
                known.len() - 1
            }));
        }
        let refusals = prepare(&known)?;
        let refusal = |(case, place): (&Case, &Option<usize>)| match place {
            Some(place) => refusals.get(*place).cloned().flatten(),
            None => Some(Refusal::Skip(format!("the agent's build has no workload {}", case.benchmark))),
        };
        Ok(cases.iter().zip(&self.places).map(refusal).collect())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the moment after this duration. A duration from another program may have any size.
fn later(within: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
    Instant::now() + within.min(LONGEST)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::cases::benchmark::{Commands, Kind, PLAIN, params};
    use crate::cases::fixture::{Fixture, Repetition, Step, Stop};
    use crate::cases::run::{BenchError, RunContext};
    use crate::machine::interrupt;
    use crate::rounds::commands::Phase;
    use tollgate_model::Fact;

    thread_local! {
        /// Fixtures that exist.
        static THERE: Rc<Cell<i32>> = Rc::default();
    }

    const RUN: Phase = Phase::Run { is_traced: true };

    struct Shelf;

    impl Shelf {
        fn new() -> Self {
            THERE.with(|there| there.set(there.get() + 1));
            Self
        }
    }

    impl Drop for Shelf {
        fn drop(&mut self) {
            THERE.with(|there| there.set(there.get() - 1));
        }
    }

    impl Fixture for Shelf {
        fn make_ready(&mut self, case: usize, _: &mut RunContext) -> Step<()> {
            if case == 1 { Err(Refusal::Skip("no git".to_owned()).into()) } else { Ok(()) }
        }

        fn reset(&mut self, _: usize, _: &mut RunContext) -> Step<()> {
            Ok(())
        }

        /// Works until it is stopped or its time is over.
        fn run(&mut self, _: usize, _: bool, context: &mut RunContext) -> Step<()> {
            while !context.left().is_zero() {
                context.say("grep");
                if let Some(signal) = interrupt::requested() {
                    return Err(Stop::Run(BenchError::Interrupted(signal)));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        }

        fn check(&mut self, _: usize, _: &mut RunContext) -> Step<Repetition> {
            Ok(Repetition { traced: None, notes: Vec::new() })
        }

        fn facts(&self) -> Vec<(String, Fact)> {
            vec![("workloads.grep".to_owned(), Fact::known("3.8", "grep --version"))]
        }
    }

    static COMMANDS: Commands = Commands {
        usual: |_| Duration::ZERO,
        fixtures: |cases| vec![(0..cases.len()).collect()],
        fixture: |_, _| Ok(Box::new(Shelf::new())),
    };
    static GREP: Benchmark = Benchmark { name: "fake/grep", kind: Kind::Command(&COMMANDS), ..PLAIN };

    /// Returns the answers to these requests, and what each was reported to do, if `stops` stops the current work.
    fn served(stops: bool, requests: Vec<CommandRequest>) -> (Vec<Result<CommandAnswer, Halt>>, Vec<String>) {
        let find = |name: &str| (name == GREP.name).then_some(&GREP);
        let (mut served, mut said) = (Served::default(), Vec::new());
        let mut meet = |request| {
            let mut watch = |progress: &Progress| {
                said.push(progress.what.clone());
                if stops {
                    interrupt::stop_step();
                }
            };
            served.meet(request, Err("no directory".to_owned()), find, &mut watch)
        };
        let answers = requests.into_iter().map(&mut meet).collect();
        drop(served);
        THERE.with(|there| assert_eq!(there.get(), 0, "a fixture outlives its requests"));
        said.dedup();
        (answers, said)
    }

    fn prepare() -> CommandRequest {
        let case = |benchmark: &str, number: u64| Case {
            benchmark: benchmark.to_owned(),
            params: params(&[("number", number.into())]),
        };
        let cases =
            vec![case("later/grep", 0), case("fake/grep", 1), case("fake/grep", 2), case("fake/grep", 3)];
        CommandRequest::Prepare { cases, within: Duration::from_secs(5) }
    }

    #[test]
    fn cases_are_executed_by_their_place_in_the_request() {
        let pass = |case, phase| CommandRequest::Pass { case, phase, within: Duration::from_millis(100) };
        let phases = [pass(1, Phase::Reset), pass(1, RUN), pass(1, Phase::Check), pass(0, RUN), pass(9, RUN)];
        let requests = [vec![prepare()], phases.to_vec(), vec![CommandRequest::Finish]].concat();
        let (answers, said) = served(false, requests);
        let answers: Vec<CommandAnswer> = answers.into_iter().collect::<Result<_, _>>().expect("answers");
        let [CommandAnswer::Prepared(refusals), reset, run, rest @ ..] = answers.as_slice() else {
            unreachable!("{answers:?}");
        };
        let why: Vec<_> = refusals.iter().map(|refusal| refusal.as_ref().map(Refusal::why)).collect();
        let unknown = "the agent's build has no workload later/grep";
        assert_eq!(why, [Some(unknown), None, Some("no git"), None]);
        assert_eq!(said, ["grep"]);
        let passed = CommandAnswer::Did(Attempt::Passed);
        assert_eq!((reset, run), (&passed, &passed));
        assert!(matches!(&rest[0], CommandAnswer::Did(Attempt::Executed(_))), "{rest:?}");
        for refused in &rest[1..3] {
            assert!(matches!(refused, CommandAnswer::Did(Attempt::Refused(Refusal::Fail(_)))), "{refused:?}");
        }
        assert!(matches!(&rest[3..], [CommandAnswer::Finished(facts)] if facts.len() == 1), "{rest:?}");
    }

    #[test]
    fn a_stop_ends_the_work_in_hand() {
        let execute = CommandRequest::Pass { case: 1, phase: RUN, within: Duration::from_secs(600) };
        let (answers, _) = served(true, vec![prepare(), execute]);
        let stopped = &answers[1];
        assert!(matches!(stopped, Err(Halt::Run(BenchError::Interrupted(_)))), "{stopped:?}");
        assert!(interrupt::resume() && interrupt::requested().is_none(), "later steps go on");
    }
}
