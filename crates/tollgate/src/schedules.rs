//! `tollgate schedules`: every interleaving of a lock on a small machine, and its violations.

mod checks;
mod chosen;
mod plays;

use tollgate_schedules::output::{CheckedProgram, SchedulesDocument, comparison, detail, fault, table};
use tollgate_schedules::subject::Wish;
use tollgate_schedules::{COMPARISONS, Limits};

use crate::args::{FailOnLock, Format, SchedulesArgs};
use crate::failure::Failure;
use crate::out;

impl SchedulesArgs {
    /// # Errors
    /// An unknown program or an impossible setting; and the condition of `--fail-on`.
    pub fn execute(&self) -> Result<(), Failure> {
        let subjects = chosen::chosen(&self.program)?;
        if let Some(preempt) = self.preempt {
            return plays::play(&subjects, preempt, self);
        }
        let wish = Wish {
            processes: self.processes,
            rounds: self.rounds,
            processors: self.processors,
            preempted: self.no_preemption.then_some(false),
        };
        let states = self.max_states.unwrap_or(Limits::default().states);
        let outcomes = checks::check(&subjects, wish, states)?;
        match self.format {
            Format::Json => {
                let programs = outcomes.iter().map(CheckedProgram::of_check).collect();
                out::print_json(&SchedulesDocument { programs })?;
            }
            Format::Table if compares(&self.program) => out::print(&comparison(&outcomes, out::width()))?,
            Format::Table if self.program.is_empty() => out::print(&table(&outcomes, out::width()))?,
            Format::Table => {
                let each: Vec<String> =
                    outcomes.iter().map(|outcome| detail(outcome, out::width())).collect();
                out::print(&each.join("\n"))?;
            }
        }
        let failed = outcomes.iter().filter(|outcome| outcome.checked.verdict.fails());
        let failed: Vec<String> = failed.map(fault).collect();
        self.fail_on.map_or(Ok(()), |FailOnLock::Violated| checks::conclude(&failed))
    }
}

fn compares(programs: &[String]) -> bool {
    matches!(programs, [only] if COMPARISONS.contains(&only.as_str()))
}
