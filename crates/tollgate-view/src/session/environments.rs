//! The environments of a session, and how they were measured.

use tollgate_model::text::clean;
use tollgate_model::{Fact, FactValue, Facts, Run, versus};
use tollgate_output::figures;
use tollgate_suites::Benchmark;

use super::{Member, Session, builds};
use crate::comparison::{ComparedRow, Comparison, command};
use crate::screen::machine;
use crate::{counts, facts};

/// Intervals that are narrower by less count as equally wide.
const LEAST_NARROWED: f64 = 1.05;

pub(crate) fn lines(session: &Session) -> Vec<(String, String)> {
    let Some((base, others)) = session.members.split_first() else { return Vec::new() };
    let mut lines = vec![(base.name.clone(), of_base(base))];
    lines.extend(others.iter().map(|other| (other.name.clone(), of_other(base, other))));
    lines
}

fn of_base(base: &Member) -> String {
    let run = base.summary.run;
    let [processor, kernel] = machine(&base.summary);
    let first = |line: &str| line.split(" | ").next().unwrap_or_default().to_owned();
    let cpu = facts::number(&run.facts, facts::CPU).map(|cpu| format!("CPU {cpu}"));
    let parts = [
        path(run),
        lost(&run.facts),
        runtime(&run.facts),
        Some(first(&kernel)),
        Some(first(&processor)),
        cpu,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn of_other(base: &Member, other: &Member) -> String {
    let (base, run) = (base.summary.run, other.summary.run);
    // All builds were executed in one environment.
    if let Some(path) = path(run) {
        return path;
    }
    if run.measured().next().is_none()
        && let Some(lost) = lost(&run.facts)
    {
        return lost;
    }
    let kind = Some(run.environment).filter(|kind| *kind != base.environment).map(|kind| kind.to_string());
    let differing = |name: &str, words: &dyn Fn(&str) -> String| {
        let value = |facts: &Facts| facts::text(facts, name).map(str::to_owned);
        value(&run.facts).filter(|own| Some(own) != value(&base.facts).as_ref()).map(|own| words(&own))
    };
    let sandbox = differing("sandbox.kernel", &|name| name.to_owned());
    let kernel = differing("kernel.release", &|release| format!("Linux {release}"));
    let processor = differing("cpu.model", &|model| clean(model).into_owned());
    let number = |facts: &Facts| facts::number(facts, facts::CPU);
    let cpu = number(&run.facts).filter(|own| Some(*own) != number(&base.facts));
    let is_alike = kernel.is_none() && sandbox.is_none() && processor.is_none();
    let parts = [
        kind,
        runtime(&run.facts),
        sandbox,
        kernel,
        processor,
        cpu.map(|cpu| format!("CPU {cpu}")),
        is_alike.then(|| "same kernel and processor".to_owned()),
        lost(&run.facts),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn path(run: &Run) -> Option<String> {
    builds::harness_of(run)?;
    Some(command(run)?.line.clone())
}

fn runtime(facts: &Facts) -> Option<String> {
    let layers = || match facts.get("container.layers").and_then(Fact::value) {
        // A sign without a maker's name, such as a namespace, has blanks.
        Some(FactValue::List(layers)) => layers.iter().rev().find(|layer| !layer.contains(' ')).cloned(),
        _ => None,
    };
    facts::text(facts, facts::RUNTIME).map(str::to_owned).or_else(layers)
}

fn lost(facts: &Facts) -> Option<String> {
    Some(format!("lost: {}", facts::text(facts, facts::LOST)?))
}

/// How two of one session were compared: the pairs of processes and the gain by alternation, or why nothing was paired. `None`
/// for runs without a common session.
pub(crate) fn method(comparison: &Comparison) -> Option<String> {
    let Comparison { base, other, .. } = comparison;
    if !comparison.is_of_one_session() {
        return None;
    }
    // Counts have no noise, so nothing had to alternate.
    if comparison.rows.is_empty() || comparison.is_counted() {
        return counts::method(comparison);
    }
    if !comparison.is_alternated {
        let is_paired = |run: &Run| run.session.as_ref().is_some_and(|part| part.paired);
        let why = if is_paired(base) && is_paired(other) {
            "Not paired: too few turns were made in both; medians of processes."
        } else {
            "Not paired: it runs on another machine, which shares no noise with this one. Alternated in time, compared by the medians of processes."
        };
        return Some(why.to_owned());
    }
    let alternations = || comparison.rows.iter().filter_map(|row| row.result.alternation.as_ref());
    let pairs = alternations().map(|found| found.pairs).max().unwrap_or(0);
    let turns = alternations().map(|found| found.turns).max().unwrap_or(0);
    let starts = facts::number(&other.facts, facts::STARTS).filter(|starts| *starts > 1.0);
    let is_of_starts = |row: &ComparedRow| {
        tollgate_suites::find(&row.case().benchmark).is_some_and(Benchmark::is_of_environment)
    };
    if comparison.is_of_commands() || comparison.is_of_builds() {
        let pairs = figures::count(pairs, "pair of executions", "pairs of executions");
        let layouts = comparison.rows.iter().find_map(|row| row.result.layouts);
        let layouts = layouts.map(|layouts| format!(" across {} layouts of each", layouts.number));
        let pairs = format!("{pairs}{}", layouts.unwrap_or_default());
        let order = match facts::text(&other.facts, facts::IN_TURN) {
            None => "in a random order in each round",
            Some(_) => "in turn",
        };
        return Some(format!("Alternated: {pairs}, {order}{}", gain(comparison)));
    }
    if comparison.rows.iter().all(is_of_starts) {
        let pairs = figures::count(pairs, "pair of starts", "pairs of starts");
        return Some(format!("Alternated: {pairs}, in a random order in each round"));
    }
    let pairs = figures::count(pairs, "process pair", "process pairs");
    let turns = figures::thousands(&turns.to_string());
    let starts = starts.map(|starts| format!(", {starts} starts")).unwrap_or_default();
    Some(format!("Alternated: {pairs}, {turns} turns{starts}{}", gain(comparison)))
}

/// The gain by alternation: `; correlation 0.93, CIs 3.8 × narrower`.
fn gain(comparison: &Comparison) -> String {
    // For a command the real time counts.
    let is_of_interest =
        |row: &&ComparedRow| !comparison.is_of_commands() || row.case().benchmark == versus::REAL;
    let rows = || comparison.rows.iter().filter(is_of_interest);
    let alternations = || rows().filter_map(|row| row.result.alternation.as_ref());
    let correlation = middle(alternations().filter_map(|found| found.correlation));
    let narrowed = correlation.filter(|rho| *rho < 1.0).map(|rho| match narrower(rho) {
        times if times > LEAST_NARROWED => {
            format!(", CIs {} × narrower", figures::significant(times, 2))
        }
        _ => ", which does not narrow the CIs".to_owned(),
    });
    let correlation = correlation.map(|rho| format!("; correlation {rho:.2}")).unwrap_or_default();
    format!("{correlation}{}", narrowed.unwrap_or_default())
}

/// By how much the interval of a difference is narrower if its two sides have this correlation.
fn narrower(correlation: f64) -> f64 {
    1.0 / (1.0 - correlation).sqrt()
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    tollgate_model::stats::quantile(&values, 0.5)
}
