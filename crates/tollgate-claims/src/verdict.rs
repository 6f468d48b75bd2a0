use serde::Serialize;
use tollgate_model::compare::{ENOUGH_RUNS, SUPPOSED_APART};
use tollgate_model::stats::Interval;
use tollgate_output::figures;

use crate::data::{Claim, Condition, Experiment};
use crate::figure::{Answer, Figure};
use crate::known::Known;

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VerdictOfClaim"))]
pub enum Verdict {
    /// All of its conditions hold.
    #[serde(rename = "holds")]
    Holds,
    /// All of its conditions hold, and a difference is larger than claimed: beyond the upper limit of "about twice as fast", or beyond
    /// twice the lower limit of "more than 7 times".
    #[serde(rename = "holds, and more")]
    HoldsAndMore,
    /// Some of its conditions hold, and others do not or are open; or a part of the claim is not tested.
    #[serde(rename = "holds in part")]
    InPart,
    /// No condition of it holds.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// Its figures are missing or not clear enough, or it is about another machine.
    #[serde(rename = "cannot be told here")]
    CannotBeTold,
}

impl Verdict {
    /// Returns the verdict in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsAndMore => "holds, and more",
            Self::InPart => "holds in part",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeTold => "cannot be told here",
        }
    }
}

/// If a claim has no upper limit, a difference beyond this multiple of its lower limit is larger than claimed.
const MORE: f64 = 2.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// One clause for each condition: the evidence, or why it cannot be judged.
    pub because: Vec<String>,
}

/// Judges a claim. It holds if all of its conditions do and no part of it is untested; it holds in part if some do.
pub fn judged(claim: &Claim, known: &Known) -> Judged {
    let each: Vec<Found> = claim.holds.iter().map(|condition| found(condition, known)).collect();
    let has = |meant: &[Verdict]| each.iter().any(|one| meant.contains(&one.verdict));
    let holds = has(&[Verdict::Holds, Verdict::HoldsAndMore]);
    let verdict = match () {
        () if holds && (has(&[Verdict::DoesNotHold, Verdict::CannotBeTold]) || !claim.cannot.is_empty()) => {
            Verdict::InPart
        }
        () if has(&[Verdict::DoesNotHold]) => Verdict::DoesNotHold,
        () if !holds => Verdict::CannotBeTold,
        () if has(&[Verdict::HoldsAndMore]) => Verdict::HoldsAndMore,
        () => Verdict::Holds,
    };
    // Several conditions often have the same reason.
    let mut because: Vec<String> = Vec::new();
    for clause in each.into_iter().map(|one| one.clause).chain([claim.cannot.clone()]) {
        if !clause.is_empty() && !because.contains(&clause) {
            because.push(clause);
        }
    }
    Judged { verdict, because }
}

/// Returns the patterns of the measured cases for which more runs would decide a claim.
pub fn to_repeat(experiment: &Experiment, known: &Known) -> Vec<String> {
    let all = experiment.claims.iter().flat_map(|claim| &claim.holds);
    let open = all.filter(|condition| !condition.of.is_on_request());
    open.filter_map(|condition| {
        let at = found(condition, known).lacks_runs?;
        Some(condition.of.taken(known, known.runs.get(at)))
    })
    .flatten()
    .collect()
}

struct Found {
    verdict: Verdict,
    clause: String,
    /// The run that has the figure, if more runs would decide.
    lacks_runs: Option<usize>,
}

fn found(condition: &Condition, known: &Known) -> Found {
    let what = &condition.what;
    let told = |verdict, clause| Found { verdict, clause, lacks_runs: None };
    let (answer, at) = match condition.of.evaluate(known) {
        Err(missing) => return told(Verdict::CannotBeTold, format!("{what}: {}", missing.why)),
        Ok(found) => found,
    };
    let mut found = match &answer {
        Answer::Words(words) => {
            let is_so = condition.is.as_ref() == Some(words);
            let verdict = if is_so { Verdict::Holds } else { Verdict::DoesNotHold };
            told(verdict, format!("{what}: {words}"))
        }
        Answer::Figure(figure) => {
            let others = known.other_times(at).filter_map(|run| condition.of.of_run(known, Some(run)).ok());
            let spans = others.filter_map(|other| match other {
                Answer::Figure(other) if other.from == figure.from => other.span(),
                _ => None,
            });
            let (verdict, clause, lacks_runs) = of_figure(condition, figure, &spans.collect::<Vec<_>>());
            Found { lacks_runs: lacks_runs.then_some(at), ..told(verdict, clause) }
        }
    };
    if at > 0 {
        found.clause = format!("{} ({})", found.clause, known.whence(at));
    }
    if found.verdict == Verdict::DoesNotHold && !condition.unless.is_empty() {
        return told(Verdict::CannotBeTold, format!("{}: {}", found.clause, condition.unless));
    }
    found
}

/// Judges by the figure and its spans at other times. Also returns whether more runs would decide.
fn of_figure(condition: &Condition, figure: &Figure, others: &[Interval]) -> (Verdict, String, bool) {
    let limits = [("at least", condition.at_least), ("at most", condition.at_most)];
    let limits = limits
        .into_iter()
        .filter_map(|(word, limit)| Some(format!("{word} {}", figures::multiple_in_short(limit?))));
    let limits = limits.collect::<Vec<_>>().join(", ").replace('×', "");
    let mut clause = format!("{}: {}", condition.what, figure.with_interval());
    clause.extend(figure.modes.map(|modes| format!(", {modes}")));
    let times = 1 + others.len();
    let span = figure.span().map(|span| others.iter().fold(span, |span, other| span.hull(*other)));
    if let Some(span) = span.filter(|_| times > 1 && figure.interval.is_some()) {
        clause.push_str(&format!(", in {times} runs {}", figures::span(span.low, span.high)));
    }
    clause.push_str(&format!(", and it holds with {limits}"));
    let Some(Interval { low, high }) = span else {
        let why = format!("{clause}; too few processes measured it for an interval");
        return (Verdict::CannotBeTold, why, false);
    };
    let (least, most) = (condition.at_least.unwrap_or(0.0), condition.at_most.unwrap_or(f64::INFINITY));
    // A difference that is larger than claimed does not contradict the claim.
    let [more, less] = [least > 1.0, most < 1.0];
    let is_more = more && low > condition.at_most.unwrap_or(MORE * least)
        || less && high < condition.at_least.unwrap_or(most / MORE);
    let lacks_runs = times < ENOUGH_RUNS
        && figure.interval.is_some()
        && condition.unless.is_empty()
        && high * SUPPOSED_APART >= least
        && low / SUPPOSED_APART <= most;
    match () {
        () if is_more => (Verdict::HoldsAndMore, clause, false),
        () if (less || low >= least) && (more || high <= most) => (Verdict::Holds, clause, false),
        () if (high < least || low > most) && lacks_runs => {
            let why = format!(
                "{clause}; runs of one machine may differ by {SUPPOSED_APART} ×, so a verdict needs {ENOUGH_RUNS} runs, or a figure further from the limit: --check measures it once more"
            );
            (Verdict::CannotBeTold, why, true)
        }
        () if high < least || low > most => (Verdict::DoesNotHold, clause, false),
        () => {
            let what = match (times, figure.modes) {
                (2.., _) => "they reach",
                (_, Some(_)) => "its interval and its modes reach",
                (_, None) => "its interval reaches",
            };
            (Verdict::CannotBeTold, format!("{clause}; {what} to both sides"), false)
        }
    }
}
