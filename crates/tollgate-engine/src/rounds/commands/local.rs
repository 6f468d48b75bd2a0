//! Whole commands in this process, for a run without environments and for an agent.

use std::time::Instant;

use tollgate_model::Fact;

use super::stage::{Attempt, NO_TIME, Phase, Stage};
use crate::cases::benchmark::{Chosen, Commands, Kind};
use crate::cases::fixture::{Fixture, Stop};
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::run::Halt;
use crate::cases::run::{Progress, RunContext};
use crate::refusal::Refusal;

/// Executes whole commands in this process.
pub(crate) struct Local<'a> {
    plan: &'a Plan,
    began: Instant,
    suite: Ordinal,
    watch: &'a mut dyn FnMut(&Progress),
    pub(super) fixture: Option<Box<dyn Fixture>>,
    has_prepared: bool,
}

impl<'a> Local<'a> {
    /// Makes one for a run that began at this moment.
    pub(crate) fn new(
        plan: &'a Plan,
        began: Instant,
        suite: Ordinal,
        watch: &'a mut dyn FnMut(&Progress),
    ) -> Self {
        Self { plan, began, suite, watch, fixture: None, has_prepared: false }
    }

    /// Whether commands may have run; they may have left daemons.
    pub(crate) fn has_prepared(&self) -> bool {
        self.has_prepared
    }

    fn context(&mut self, deadline: Instant) -> RunContext<'_> {
        let Self { plan, began, suite, watch, .. } = self;
        RunContext { plan, began: *began, deadline, suite: *suite, watch: *watch }
    }
}

impl Stage for Local<'_> {
    fn prepare(&mut self, cases: &[Chosen], until: Instant) -> Result<Vec<Option<Refusal>>, Halt> {
        let Some(commands) = of_kind(cases) else { return Ok(vec![None; cases.len()]) };
        let mut refusals = vec![None; cases.len()];
        let mut fixture = match (commands.fixture)(cases, &mut self.context(until)) {
            Ok(fixture) => fixture,
            Err(Stop::Case(why)) => return Ok(vec![Some(why); cases.len()]),
            Err(Stop::Time) => return Ok(vec![Some(no_time()); cases.len()]),
            Err(Stop::Run(error)) => return Err(Halt::Run(error)),
        };
        self.has_prepared = true;
        let mut context = self.context(until);
        for case in 0..cases.len() {
            match fixture.make_ready(case, &mut context) {
                Ok(()) => {}
                Err(Stop::Case(why)) => refusals[case] = Some(why),
                Err(Stop::Time) => {
                    refusals[case..].fill(Some(no_time()));
                    break;
                }
                Err(Stop::Run(error)) => return Err(Halt::Run(error)),
            }
        }
        self.fixture = Some(fixture);
        Ok(refusals)
    }

    fn pass(&mut self, case: usize, phase: Phase, until: Instant) -> Result<Attempt, Halt> {
        let Some(mut fixture) = self.fixture.take() else {
            return Ok(Attempt::Refused(Refusal::Fail("it was not prepared".to_owned())));
        };
        let context = &mut self.context(until);
        let attempt = match phase {
            Phase::Reset => fixture.reset(case, context).map(|()| Attempt::Passed),
            Phase::Run { is_traced } => fixture.run(case, is_traced, context).map(|()| Attempt::Passed),
            Phase::Check => fixture.check(case, context).map(|done| Attempt::Executed(Box::new(done))),
        };
        self.fixture = Some(fixture);
        match attempt {
            Ok(attempt) => Ok(attempt),
            Err(Stop::Case(why)) => Ok(Attempt::Refused(why)),
            Err(Stop::Time) => Ok(Attempt::OutOfTime),
            Err(Stop::Run(error)) => Err(Halt::Run(error)),
        }
    }

    fn finish(&mut self) -> Result<Vec<(String, Fact)>, Halt> {
        let facts = self.fixture.take().map(|fixture| fixture.facts()).unwrap_or_default();
        Ok(facts)
    }
}

fn of_kind(cases: &[Chosen]) -> Option<&'static Commands> {
    match cases.first()?.0.kind {
        Kind::Instance(_) | Kind::Environment(_) => None,
        Kind::Command(commands) => Some(commands),
    }
}

fn no_time() -> Refusal {
    Refusal::OutOfTime(NO_TIME.to_owned())
}
