//! `--preempt`: one schedule played forward, or one for each instruction before which a process can be preempted.

use tollgate_schedules::subject::Wish;
use tollgate_schedules::{Counterexample, Subject};

use super::chosen::Chosen;
use super::json::{Document, Record};
use super::{conclude, figure, introduction};
use crate::args::{FailOnLock, Format, Preempt, SchedulesArgs};
use crate::failure::Failure;
use crate::out;
use crate::table::paragraph;

/// A preemption that was played: before which instruction, and its outcome.
pub struct Played {
    /// The number of the instruction, from 0.
    pub point: usize,
    /// The schedule.
    pub counterexample: Counterexample,
}

/// Plays the chosen preemptions, and prints them.
///
/// # Errors
/// A program that is not played, an instruction that it does not have; and the condition of `--fail-on`.
pub fn play(subjects: &[Chosen], preempt: Preempt, args: &SchedulesArgs) -> Result<(), Failure> {
    let played: Vec<(&dyn Subject, Vec<Played>)> = subjects
        .iter()
        .map(|subject| Ok((subject.get(), plays(subject.get(), preempt)?)))
        .collect::<Result<_, Failure>>()?;
    match args.format {
        Format::Json => {
            let programs = played.iter().map(|(subject, plays)| Record::of_plays(*subject, plays)).collect();
            out::print_json(&Document { programs })?;
        }
        Format::Table => {
            let width = out::width();
            let each: Vec<String> =
                played.iter().map(|(subject, plays)| text(*subject, preempt, plays, width)).collect();
            out::print(&each.join("\n"))?;
        }
    }
    let failed = played.iter().flat_map(|(subject, plays)| {
        plays.iter().filter_map(|Played { point, counterexample }| {
            let harm = counterexample.harm?;
            Some(format!("{} preempted before instruction {point}: {harm}", subject.name()))
        })
    });
    let failed: Vec<String> = failed.collect();
    args.fail_on.map_or(Ok(()), |FailOnLock::Violated| conclude(&failed))
}

fn plays(subject: &dyn Subject, preempt: Preempt) -> Result<Vec<Played>, Failure> {
    let points = match preempt {
        Preempt::Before(point) => point..=point,
        // A program that is not played says so when its first instruction is asked for.
        Preempt::All => 0..=subject.points().saturating_sub(1),
    };
    points
        .map(|point| {
            let counterexample = subject.play(point).map_err(|unfit| Failure::input(unfit.to_string()))?;
            Ok(Played { point, counterexample })
        })
        .collect()
}

/// The schedule of one preemption, or the outcome of each.
fn text(subject: &dyn Subject, preempt: Preempt, plays: &[Played], width: usize) -> String {
    let mut text = introduction(subject, width);
    let processors = subject.setting(Wish::default()).map_or(1, |setting| setting.processors);
    for Played { point, counterexample } in plays {
        match preempt {
            Preempt::Before(_) => {
                text.push_str(&paragraph(&format!("A is preempted before instruction {point}."), width, ""));
                text.push('\n');
                text.push_str(&figure::draw(counterexample, processors, width));
            }
            Preempt::All => {
                let mark = if counterexample.harm.is_some() { '!' } else { ' ' };
                text.push_str(&paragraph(
                    &figure::sentence(&counterexample.so),
                    width,
                    &format!("{mark} {point:2}  "),
                ));
            }
        }
    }
    text
}
