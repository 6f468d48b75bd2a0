//! Traced commands: the parts of each one's real time, and its slowest calls.

use tollgate_model::traced::Call;
use tollgate_model::traced::blame::{self, Account};
use tollgate_model::{Case, Traced};
use tollgate_output::table::{heading, paragraph};

use crate::summary::Summary;
use tollgate_trace::output::{division, ranked, text};

const CALLS: usize = 3;
const CHANCE: &str = "User and sys are sampled by the clock tick; with few ticks the split is coarse.";

pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let traced = summary
        .measured()
        .filter(|(_, figures)| figures.is_estimate())
        .filter_map(|(case, figures)| Some((case, blame::median(figures.measured.divided())?)));
    let mut by_chance = false;
    let cases = traced.map(|(case, traced)| {
        by_chance |= division::is_chance(traced);
        lines(case, traced, width)
    });
    let cases: Vec<String> = cases.collect();
    if cases.is_empty() {
        return None;
    }
    let title = "where the real time of each command went, in its median execution";
    let note = if by_chance { paragraph(CHANCE, width, "") } else { String::new() };
    Some(format!("{}{}{note}", heading(title, width), cases.concat()))
}

fn lines(case: &Case, traced: &Traced, width: usize) -> String {
    let account = Account::from_traced(traced);
    let known = account.parts().into_iter().filter(|(_, ns)| *ns > 0);
    let parts: Vec<String> =
        known.map(|(name, ns)| format!("{name} {} %", text::share(ns, account.real))).collect();
    let mut text = paragraph(&format!("{case}: real {}", text::time(account.real)), width, "");
    text.push_str(&paragraph(&parts.join(", "), width, "  "));
    let [working, _] = ranked(traced);
    let slowest: Vec<String> = working.iter().take(CALLS).map(|call| in_words(call)).collect();
    if !slowest.is_empty() {
        text.push_str(&paragraph(&slowest.join("; "), width, "  "));
    }
    text
}

/// `unlink 344 ms (disk 293 ms, …)`.
fn in_words(call: &Call) -> String {
    format!("{} {} ({})", text::cut(&call.name, 40), text::time(call.total_ns), text::parts(call.parts))
}
