//! Makes measurements from the counts of a command in one guest.

use tollgate_model::measurement::{Measurement, Outcome, Provenance, Unit};
use tollgate_model::traced::{Ended, MOST_ENTRIES};
use tollgate_model::versus::{
    CALLS, FAULTS, FIRST, Failed, INSTRUCTIONS, ITERATIONS, KERNEL_INSTRUCTIONS, TICKS, USER_INSTRUCTIONS,
};
use tollgate_model::{Traced, stats};

use super::cell::{Found, measured, not_measured};
use super::order::{End, Execution};
use super::plan::{Accepts, Given};
use super::rounds::{NotCompared, judged, succeeded};
use crate::sides::session::{Inside, Sums};

/// Returns the measurements of a command. `executions` are those by `/init` of a guest: the ones before the rounds, then those of each
/// round.
///
/// # Errors
/// See [`NotCompared`]: an execution of the command, or of an order around it, ended in a way that is not accepted.
pub fn tally(
    executions: Vec<Execution>,
    inside: Inside,
    given: &Given,
    accepts: &Accepts,
    place: &str,
) -> Result<Found, NotCompared> {
    let Inside { sums, traced, .. } = inside;
    let commands = commands(executions, given, accepts, place)?;
    let mut steady = commands.as_slice();
    let first = commands.first().map(|first| first.wall_ns as f64);
    if commands.len() > 1 {
        steady = &commands[1..];
    }
    let of = |value: fn(&Execution) -> f64| steady.iter().map(value).collect::<Vec<f64>>();
    let totals = of(|execution| execution.wall_ns as f64);
    let total = stats::median(&totals);
    let count = |name: &str, unit: Unit, samples: Vec<f64>| {
        let mut measurement = measured(name, unit, samples, "no execution was counted");
        if let Outcome::Measured(measured) = &mut measurement.outcome {
            measured.provenance = Provenance::QemuIcount;
        }
        measurement
    };
    let split = |name: &str, samples: Option<f64>| match (&sums, samples) {
        (Ok(_), Some(sample)) => count(name, Unit::Instructions, vec![sample]),
        (Err(why), _) => not_measured(name, why),
        (_, None) => not_measured(name, "no execution was counted"),
    };
    let user = |sums: &Sums| sums.program() as f64;
    let known = sums.as_ref().ok().zip(total);
    let calls = traced.and_then(|execution| match (execution.end, execution.traced) {
        (End::Ended(_), Some(traced)) if !traced.calls.is_empty() => Ok(Traced::count(&traced) as f64),
        _ => Err("it was not traced to its end".to_owned()),
    });
    let measurements: Vec<Measurement> = vec![
        count(INSTRUCTIONS, Unit::Instructions, totals),
        split(USER_INSTRUCTIONS, known.map(|(sums, _)| user(sums))),
        // The kernel's part of the watched execution differs a little from others', so it is the total less the program's part.
        split(KERNEL_INSTRUCTIONS, known.map(|(sums, total)| (total - user(sums)).max(0.0))),
        split(ITERATIONS, known.map(|(sums, _)| sums.repeated.iter().sum::<u64>() as f64)),
        count(FIRST, Unit::Instructions, first.into_iter().collect()),
        match calls {
            Ok(calls) => count(CALLS, Unit::Count, vec![calls]),
            Err(why) => not_measured(CALLS, &why),
        },
        count(FAULTS, Unit::Count, of(|execution| execution.faults as f64)),
        count(TICKS, Unit::Count, of(|execution| f64::from(execution.ticks))),
    ];
    Ok(Found { measurements, is_corrected: false, failed: failed(steady), cold: None })
}

/// Selects the executions of the command, if all executions ended in an accepted way.
fn commands(
    executions: Vec<Execution>,
    given: &Given,
    accepts: &Accepts,
    place: &str,
) -> Result<Vec<Execution>, NotCompared> {
    let around = [(&given.setup, "setup"), (&given.prepare, "preparation"), (&given.conclude, "conclusion")];
    let mut kinds = Vec::new();
    let [setup, prepare, conclude] =
        around.map(|(order, what)| order.as_ref().map(|order| (what, Some(order))));
    let round = [prepare, Some(("", None)), conclude];
    kinds.extend(setup);
    let mut commands = Vec::new();
    let kinds = kinds.into_iter().chain(round.into_iter().flatten().cycle());
    for ((what, order), execution) in kinds.zip(executions) {
        match order {
            Some(order) => succeeded(&format!("the {what} of {} in {place}", given.name), order, execution)?,
            None => {
                let name = format!("{} in {place}", given.name);
                judged(&name, &given.order, &execution, accepts)?;
                commands.push(execution);
            }
        }
    }
    Ok(commands)
}

fn failed(executions: &[Execution]) -> Vec<Failed> {
    let ended = |execution: &Execution| match execution.end {
        End::Ended(ended) => Some(ended).filter(|ended| *ended != Ended::Exit(0)),
        _ => None,
    };
    let all = (0..).zip(executions);
    all.filter_map(|(execution, of)| Some(Failed { execution, ended: ended(of)? }))
        .take(MOST_ENTRIES)
        .collect()
}
