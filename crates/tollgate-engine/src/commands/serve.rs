//! An agent's part: it executes whole commands as the coordinator asks.

use std::cell::RefCell;
use std::io;
use std::time::{Duration, Instant};

use tollgate_model::text::said_by;
use tollgate_model::{Case, Fact};

use super::executor::{Attempt, Executor, Halt};
use super::local::Local;
use super::protocol::{CommandAnswer, CommandRequest};
use crate::benchmark::{Benchmark, Chosen};
use crate::plan::{Place, Plan};
use crate::refusal::Refusal;
use crate::run::{BenchError, Progress};
use crate::storage::Storage;
use crate::{group, interrupt};

/// The agent's end of the line to its coordinator.
pub(crate) trait Line {
    /// Writes an answer.
    fn say(&mut self, answer: CommandAnswer) -> io::Result<()>;
    /// The next request about whole commands. None at the end of the line.
    fn next(&mut self) -> io::Result<Option<CommandRequest>>;
    /// Whether the line has ended, or something was said that no answer is awaited for. Does not wait.
    fn is_over(&mut self) -> bool;
}

/// Serves requests until the fixture is finished with, or the line ends.
///
/// # Errors
/// Those of the line.
pub(crate) fn serve(
    first: CommandRequest,
    storage: Result<Storage, String>,
    find: fn(&str) -> Option<&'static Benchmark>,
    line: &mut dyn Line,
) -> io::Result<()> {
    // Each request has its time; there is no other budget here.
    let plan = Plan { storage, ..Plan::within(Duration::ZERO) };
    let line = RefCell::new(line);
    let began = Instant::now();
    let (mut looked, mut said) = (began, None);
    let mut watch = |progress: &Progress| {
        let now = Instant::now();
        if now - looked < group::LOOK {
            return;
        }
        looked = now;
        let mut line = line.borrow_mut();
        if line.is_over() {
            interrupt::stop_step();
        }
        if said.as_ref().is_none_or(|(what, at)| *what != progress.what || now - *at >= SIGN) {
            said = Some((progress.what.clone(), now));
            // That the line has ended is seen by the next request.
            let _ = line.say(CommandAnswer::Doing(progress.what.clone()));
        }
    };
    let mut cases = Known::default();
    let mut local = Local::new(&plan, began, Place::default(), &mut watch);
    let mut next = Some(first);
    while let Some(request) = next {
        let is_last = request == CommandRequest::Finish;
        let answer = cases.meet(request, &mut local, find);
        let stopped = interrupt::resume();
        match answer {
            Ok(answer) => line.borrow_mut().say(answer)?,
            // The coordinator did not wait for the answer.
            Err(Halt::Run(BenchError::Interrupted(_))) if stopped => {}
            Err(Halt::Run(BenchError::NoProcess(error))) => {
                let why = format!("no process can be started: {}", said_by("process", &error));
                line.borrow_mut().say(CommandAnswer::Failed(why))?;
            }
            Err(Halt::Run(error)) => line.borrow_mut().say(CommandAnswer::Failed(error.to_string()))?,
            Err(Halt::Lost(why) | Halt::Over(why)) => line.borrow_mut().say(CommandAnswer::Failed(why))?,
        }
        if is_last {
            break;
        }
        next = line.borrow_mut().next()?;
    }
    Ok(())
}

/// A sign of life at least so often.
const SIGN: Duration = Duration::from_millis(250);

/// The cases of a preparation.
#[derive(Default)]
struct Known {
    /// For each case of the request its place among those that this build knows.
    places: Vec<Option<usize>>,
}

impl Known {
    fn meet(
        &mut self,
        request: CommandRequest,
        local: &mut Local,
        find: fn(&str) -> Option<&'static Benchmark>,
    ) -> Result<CommandAnswer, Halt> {
        match request {
            CommandRequest::Prepare { cases, within } => {
                let until = later(within);
                // One preparation after the other: the former one's fixture is removed first.
                local.finish()?;
                let refusals = self.prepare(&cases, find, |known| local.prepare(known, until))?;
                Ok(CommandAnswer::Prepared(refusals))
            }
            CommandRequest::Tracer { within } => Ok(CommandAnswer::Tracer(local.tracer(later(within))?)),
            CommandRequest::Pass { case, phase, within } => match self.places.get(case).copied().flatten() {
                Some(case) => Ok(CommandAnswer::Did(local.pass(case, phase, later(within))?)),
                None => {
                    let why = "it was not prepared".to_owned();
                    Ok(CommandAnswer::Did(Attempt::Refused(Refusal::Fail(why))))
                }
            },
            CommandRequest::Finish => {
                let facts: Vec<(String, Fact)> = local.finish()?;
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

/// The moment after so long; a length from another program may be of any size.
fn later(within: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
    Instant::now() + within.min(LONGEST)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    use super::*;
    use crate::benchmark::{Commands, Kind, PLAIN, params};
    use crate::commands::Phase;
    use crate::fixture::{Execution, Fixture, Step, Stop};
    use crate::run::RunContext;
    use tollgate_model::traced::Backend;

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

        fn tracer(&mut self, _: &mut RunContext) -> Step<Backend> {
            Ok(Backend::Ptrace)
        }

        fn reset(&mut self, _: usize, _: &mut RunContext) -> Step<()> {
            Ok(())
        }

        /// Works until it is stopped, or its time is over.
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

        fn check(&mut self, _: usize, _: &mut RunContext) -> Step<Execution> {
            Ok(Execution { traced: None, notes: Vec::new() })
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

    /// A coordinator that sends these requests, and then ends.
    #[derive(Default)]
    struct Script {
        requests: VecDeque<CommandRequest>,
        answers: Vec<CommandAnswer>,
        /// Whether it ends without waiting for the answer.
        ends_early: bool,
    }

    impl Line for Script {
        fn say(&mut self, answer: CommandAnswer) -> io::Result<()> {
            if !matches!(answer, CommandAnswer::Doing(_)) || self.answers.last() != Some(&answer) {
                self.answers.push(answer);
            }
            Ok(())
        }

        fn next(&mut self) -> io::Result<Option<CommandRequest>> {
            Ok(self.requests.pop_front())
        }

        fn is_over(&mut self) -> bool {
            self.ends_early && self.requests.is_empty()
        }
    }

    fn served(ends_early: bool, requests: Vec<CommandRequest>) -> Vec<CommandAnswer> {
        let mut script = Script { requests: requests.into(), ends_early, ..Script::default() };
        let first = script.requests.pop_front().expect("a request");
        let find = |name: &str| (name == GREP.name).then_some(&GREP);
        serve(first, Err("no directory".to_owned()), find, &mut script).expect("served");
        THERE.with(|there| assert_eq!(there.get(), 0, "a fixture outlives its requests"));
        script.answers
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
        let tracer = CommandRequest::Tracer { within: Duration::from_secs(5) };
        let phases = [pass(1, Phase::Reset), pass(1, RUN), pass(1, Phase::Check), pass(0, RUN), pass(9, RUN)];
        let requests = [vec![prepare(), tracer], phases.to_vec(), vec![CommandRequest::Finish]].concat();
        let answers = served(false, requests);
        let [CommandAnswer::Prepared(refusals), tracer, reset, CommandAnswer::Doing(what), run, rest @ ..] =
            answers.as_slice()
        else {
            unreachable!("{answers:?}");
        };
        let why: Vec<_> = refusals.iter().map(|refusal| refusal.as_ref().map(Refusal::why)).collect();
        let unknown = "the agent's build has no workload later/grep";
        assert_eq!(why, [Some(unknown), None, Some("no git"), None]);
        assert_eq!((tracer, what.as_str()), (&CommandAnswer::Tracer(Some(Backend::Ptrace)), "grep"));
        let passed = CommandAnswer::Did(Attempt::Passed);
        assert_eq!((reset, run), (&passed, &passed));
        assert!(matches!(&rest[0], CommandAnswer::Did(Attempt::Executed(_))), "{rest:?}");
        for refused in &rest[1..3] {
            assert!(matches!(refused, CommandAnswer::Did(Attempt::Refused(Refusal::Fail(_)))), "{refused:?}");
        }
        assert!(matches!(&rest[3..], [CommandAnswer::Finished(facts)] if facts.len() == 1), "{rest:?}");
    }

    #[test]
    fn the_end_of_the_line_ends_the_work_in_hand() {
        let began = Instant::now();
        let execute = CommandRequest::Pass { case: 1, phase: RUN, within: Duration::from_secs(600) };
        let answers = served(true, vec![prepare(), execute]);
        assert!(began.elapsed() < Duration::from_secs(60));
        assert!(!answers.iter().any(|answer| matches!(answer, CommandAnswer::Did(_))), "{answers:?}");
        assert!(!interrupt::resume(), "later steps go on");
    }
}
