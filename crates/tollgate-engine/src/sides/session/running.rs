use tollgate_model::Fact;

use super::agent_side::AgentSide;
use super::commands::Commands;
use super::connection::{Gone, Stop};
use super::starts::Starts;
use super::teller::Teller;
use crate::cases::plan::Plan;
use crate::machine::other_cpus::OtherCpus;
use tollgate_model::stats::random::Random;

pub struct Session<'p, 's, 'a> {
    pub plan: &'p Plan,
    pub sides: Vec<AgentSide<'s, 'a>>,
    pub random: Random,
    pub teller: Teller<'p>,
    pub facts: Vec<(String, Fact)>,
    pub commands: Commands<'p>,
    pub starts: Starts<'p>,
    /// Keeps this process off the measured processor.
    pub other_cpus: Option<OtherCpus>,
}

impl Session<'_, '_, '_> {
    /// Performs a step in each environment that is there or was never started. One that fails is lost.
    pub fn each(&mut self, mut step: impl FnMut(&mut Self, usize) -> Result<(), Gone>) -> Result<(), Stop> {
        for at in 0..self.sides.len() {
            let is_new = self.sides[at].started == 0 && !self.sides[at].side.is_counting;
            if is_new || self.sides[at].is_here() {
                let done = step(self, at);
                self.settled(at, done)?;
            }
        }
        if self.sides.iter().any(AgentSide::is_here) { Ok(()) } else { Err(Stop::Over) }
    }

    pub fn settled<T>(&mut self, at: usize, outcome: Result<T, Gone>) -> Result<Option<T>, Stop> {
        self.sides[at].settled(outcome)
    }
}
