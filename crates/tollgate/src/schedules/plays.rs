//! `--preempt`: one schedule played forward, or one for each instruction before which a process can be preempted.

use tollgate_schedules::subject::Rival;
use tollgate_schedules::{Subject, output as view};

use super::checks::conclude;
use super::chosen::Chosen;
use crate::args::{FailOnLock, Format, Preempt, SchedulesArgs};
use crate::failure::Failure;
use crate::out;

/// # Errors
/// A program that is not played, an instruction that it does not have; and the condition of `--fail-on`.
pub fn play(subjects: &[Chosen], preempt: Preempt, args: &SchedulesArgs) -> Result<(), Failure> {
    let played: Vec<(&dyn Subject, Vec<view::Played>)> = subjects
        .iter()
        .map(|subject| Ok((subject.get(), plays(subject.get(), preempt)?)))
        .collect::<Result<_, Failure>>()?;
    match args.format {
        Format::Json => {
            let programs = played
                .iter()
                .map(|(subject, plays)| view::CheckedProgram::of_plays(*subject, plays))
                .collect();
            out::print_json(&view::SchedulesDocument { programs })?;
        }
        Format::Table => {
            let width = out::width();
            let all = preempt == Preempt::All;
            let each = played.iter().map(|(subject, played)| view::plays(*subject, played, all, width));
            out::print(&each.collect::<Vec<String>>().join("\n"))?;
        }
    }
    let failed = played.iter().flat_map(|(subject, plays)| {
        plays.iter().filter_map(|view::Played { point, counterexample }| {
            let harm = counterexample.harm?;
            Some(format!("{} preempted before instruction {point}: {harm}", subject.name()))
        })
    });
    let failed: Vec<String> = failed.collect();
    args.fail_on.map_or(Ok(()), |FailOnLock::Violated| conclude(&failed))
}

fn plays(subject: &dyn Subject, preempt: Preempt) -> Result<Vec<view::Played>, Failure> {
    let points = match preempt {
        Preempt::Before(point) => point..=point,
        // A program that cannot be played reports so when its first instruction is requested.
        Preempt::All => 0..=subject.points().saturating_sub(1),
    };
    points
        .map(|point| {
            let counterexample =
                subject.play(point, Rival::GivesBack).map_err(|unfit| Failure::input(unfit.to_string()))?;
            Ok(view::Played { point, counterexample })
        })
        .collect()
}
