//! Whole processes of rounds, for an environment without paired turns: the only one of a session, or one on another machine.

use std::time::{Duration, Instant};

use super::agent_side::AgentSide;
use super::connection::Gone;
use super::running::Session;
use crate::rounds::case_state::CaseStatus;
use crate::sides::agent::protocol::Job;

impl Session<'_, '_, '_> {
    pub fn whole_process(&mut self, at: usize, deadline: Instant) -> Result<(), Gone> {
        let (plan, seed) = (self.plan, self.random.next_u64());
        let Self { sides, teller, .. } = self;
        let side = &mut sides[at];
        let began = Instant::now();
        let left = deadline.saturating_duration_since(began);
        let Some(group) = side.next() else { return Ok(()) };
        let schedule = &mut side.schedules[group];
        let (batch_order, slice) = schedule.running(schedule.length(plan).min(left));
        if batch_order.is_empty() {
            schedule.settled = true;
            return Ok(());
        }
        // A fixture's first process may exceed its share, but not the remaining time.
        let within = slice.min(left);
        teller.done = schedule.processes;
        let (name, place) = (side.side.name.clone(), schedule.place);
        let job = Job::Rounds { clock: side.clock, instances: batch_order.orders.clone(), seed, within };
        // The process ends by itself; the margin allows for a long last batch.
        let most = within + plan.stall.max(Duration::from_millis(200));
        let most = most.min(left + plan.budget / 20);
        let mut tick = |instance| teller.hint(place, || format!("{} in {name}", batch_order.name(instance)));
        tick(Some(0));
        side.wake()?;
        let (ending, record) = side.run(job, plan.stall, most, &mut tick)?;
        let schedule = &mut side.schedules[group];
        schedule.collect(&batch_order, &record, ending, plan.stall);
        schedule.taken += began.elapsed();
        schedule.settle(plan);
        teller.decided.extend(schedule.newly_decided(side.clock));
        Ok(())
    }
}

impl AgentSide<'_, '_> {
    fn next(&self) -> Option<usize> {
        let open = (0..self.schedules.len()).filter(|&group| {
            let schedule = &self.schedules[group];
            !schedule.settled && schedule.cases.iter().any(|state| state.state == CaseStatus::Running)
        });
        open.min_by(|&one, &other| {
            self.schedules[one].progress().total_cmp(&self.schedules[other].progress())
        })
    }

    /// The least share that a suite has taken; `None` if all are settled, or the agent has ended.
    pub fn progress(&self) -> Option<f64> {
        let group = self.next().filter(|_| self.is_here())?;
        Some(self.schedules[group].progress())
    }
}
