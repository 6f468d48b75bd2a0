//! A verdict in a sentence, by real time or by processor time.

use tollgate_model::compare::{ComparedCase, Verdict, margin};
use tollgate_model::stats::Interval;
use tollgate_output::figures;

const WORDS: [&str; 2] = ["slower", "faster"];

/// `B is 3.2 % slower [2.6 %, 3.6 %] than A`, `B and A are the same within 1 %`. `None` if inconclusive.
pub(crate) fn verdict([base, other]: [&str; 2], result: &ComparedCase, asked: f64) -> Option<String> {
    let within = figures::percent(margin(asked)).replace(".0 ", " ");
    let perhaps = |word| format!("{other} is {word} than {base}, perhaps by less than {within}");
    match result.verdict {
        Verdict::Same => Some(format!("{other} and {base} are the same within {within}")),
        Verdict::Slower | Verdict::Faster => Some(format!("{other} is {} than {base}", different(result))),
        Verdict::SomewhatSlower => Some(perhaps(WORDS[0])),
        Verdict::SomewhatFaster => Some(perhaps(WORDS[1])),
        Verdict::Inconclusive => None,
    }
}

/// `10.0 × slower [9.8, 10.2]`
pub(crate) fn different(result: &ComparedCase) -> String {
    match result.interval {
        Some(Interval { low, high }) => figures::compared_within(result.ratio, [low, high], WORDS),
        None => figures::compared(result.ratio, WORDS),
    }
}

/// `ratio 1.004 [0.995, 1.013]`
pub(crate) fn ratio(ratio: f64, interval: Option<Interval>) -> String {
    let ends =
        interval.map(|Interval { low, high }| format!(" [{}]", [low, high].map(figures::ratio).join(", ")));
    format!("ratio {}{}", figures::ratio(ratio), ends.unwrap_or_default())
}
