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
    /// They do, and a difference is larger than claimed: beyond the upper limit of "about twice as fast", or beyond twice the least of
    /// "more than 7 times".
    #[serde(rename = "holds, and more")]
    HoldsAndMore,
    /// Some of them hold, and others do not or are open; or a part of the claim is not tested.
    #[serde(rename = "holds in part")]
    InPart,
    /// None of them does.
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
            Self::InPart => "holds in part",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeTold => "cannot be told here",
        }
    }
}

/// Beyond this multiple of the least that is claimed a difference is larger than claimed, where no most is.
const MORE: f64 = 2.0;

/// A verdict, with what it rests on: a clause a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The evidence, or the reason why it cannot be told.
    pub because: Vec<String>,
}

/// Judges a claim: it holds where all of its conditions do and no part of it is untested, and in part where some do.
pub fn judged(claim: &Claim, known: &Known) -> Judged {
    let each: Vec<(Verdict, String)> =
        claim.holds.iter().map(|condition| verdict_of(condition, known)).collect();
    let has = |meant: &[Verdict]| each.iter().any(|(one, _)| meant.contains(one));
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
    // A difference that is larger than claimed is no other than claimed.
    let [more, less] = [least > 1.0, most < 1.0];
    let is_more = more && low > condition.at_most.unwrap_or(MORE * least)
        || less && high < condition.at_least.unwrap_or(most / MORE);
    let verdict = match () {
        () if is_more => Verdict::HoldsAndMore,
        () if low >= least && high <= most => Verdict::Holds,
        () if high < least || low > most => Verdict::DoesNotHold,
        () => return (Verdict::CannotBeTold, format!("{clause}; its interval reaches to both sides")),
    };
    (verdict, clause)
}
