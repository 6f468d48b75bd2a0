//! Whether a claim holds here.

use serde::Serialize;
use tollgate_output::figures;

use crate::data::{Claim, Condition};
use crate::figure::{Answer, Figure};
use crate::known::Known;

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VerdictOfClaim"))]
pub enum Verdict {
    /// All of its conditions hold.
    #[serde(rename = "holds")]
    Holds,
    /// They do, and a difference is larger than claimed: "about twice as fast" where it is 39 times.
    #[serde(rename = "holds, and more")]
    HoldsAndMore,
    /// One of them does not.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// Its figures are missing or not clear enough, or it is about another machine.
    #[serde(rename = "cannot be told here")]
    CannotBeTold,
}

impl Verdict {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsAndMore => "holds, and more",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeTold => "cannot be told here",
        }
    }
}

/// A verdict, with what it rests on: a clause a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence, or the reason why it cannot be told.
    pub because: Vec<String>,
}

/// Judges a claim: it does not hold where one condition does not, and cannot be told where one cannot.
pub fn judged(claim: &Claim, known: &Known) -> Judged {
    let each: Vec<(Verdict, String)> =
        claim.holds.iter().map(|condition| verdict_of(condition, known)).collect();
    let has = |verdict| each.iter().any(|(one, _)| *one == verdict);
    let verdict = match () {
        () if each.is_empty() || has(Verdict::CannotBeTold) && !has(Verdict::DoesNotHold) => {
            Verdict::CannotBeTold
        }
        () if has(Verdict::DoesNotHold) => Verdict::DoesNotHold,
        () if has(Verdict::HoldsAndMore) => Verdict::HoldsAndMore,
        () => Verdict::Holds,
    };
    // One reason is often that of several conditions.
    let mut because: Vec<String> = Vec::new();
    for clause in each.into_iter().map(|(_, clause)| clause).chain([claim.cannot.clone()]) {
        if !clause.is_empty() && !because.contains(&clause) {
            because.push(clause);
        }
    }
    Judged { verdict, because }
}

fn verdict_of(condition: &Condition, known: &Known) -> (Verdict, String) {
    let what = &condition.what;
    let (answer, at) = match condition.of.evaluate(known) {
        Err(missing) => return (Verdict::CannotBeTold, format!("{what}: {}", missing.why)),
        Ok(found) => found,
    };
    let (verdict, mut clause) = match &answer {
        Answer::Words(words) => {
            let is_so = condition.is.as_ref() == Some(words);
            let verdict = if is_so { Verdict::Holds } else { Verdict::DoesNotHold };
            (verdict, format!("{what}: {words}"))
        }
        Answer::Figure(figure) => of_figure(condition, figure),
    };
    if at > 0 {
        clause = format!("{clause} ({})", known.whence(at));
    }
    match verdict == Verdict::DoesNotHold && !condition.unless.is_empty() {
        true => (Verdict::CannotBeTold, format!("{clause}: {}", condition.unless)),
        false => (verdict, clause),
    }
}

fn of_figure(condition: &Condition, figure: &Figure) -> (Verdict, String) {
    let limits = [("at least", condition.at_least), ("at most", condition.at_most)];
    let limits = limits
        .into_iter()
        .filter_map(|(word, limit)| Some(format!("{word} {}", figures::multiple_in_short(limit?))));
    let limits = limits.collect::<Vec<_>>().join(", ").replace('×', "");
    let clause = format!("{}: {}, and it holds with {limits}", condition.what, figure.with_interval());
    let Some((low, high)) = figure.span() else {
        return (Verdict::CannotBeTold, format!("{clause}; too few processes measured it for an interval"));
    };
    let (least, most) = (condition.at_least.unwrap_or(0.0), condition.at_most.unwrap_or(f64::INFINITY));
    let verdict = match () {
        () if low >= least && high <= most => Verdict::Holds,
        // Both limits are on one side of 1: it is a difference, and more of one.
        () if least > 1.0 && low > most || most < 1.0 && high < least => Verdict::HoldsAndMore,
        () if high < least || low > most => Verdict::DoesNotHold,
        () => return (Verdict::CannotBeTold, format!("{clause}; its interval reaches to both sides")),
    };
    (verdict, clause)
}
