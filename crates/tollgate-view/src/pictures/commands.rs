//! Traced commands: the parts of each one's real time, and its slowest calls.

use tollgate_model::traced::Call;
use tollgate_model::traced::blame::{self, Account};
use tollgate_model::{Case, Traced};
use tollgate_output::table::{heading, paragraph};

use crate::summary::Summary;
use tollgate_trace::output::{division, ranked, text};

/// The longest bar.
const BAR: usize = 40;
/// This many calls are named.
const CALLS: usize = 3;
const LEGEND: &str =
    "█ user, ▓ kernel, ▒ disk or runnable, ░ sleep or unaccounted; of several repetitions the median.";

const CHANCE: &str = "The clock tick samples user and kernel: with few ticks the division is coarse.";

/// None where no command was traced.
pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let traced = summary
        .measured()
        .filter(|(_, figures)| figures.is_estimate())
        .filter_map(|(case, figures)| Some((case, blame::median(&figures.measured.traced)?)));
    let mut by_chance = false;
    let cases = traced.map(|(case, traced)| {
        by_chance |= division::is_chance(traced);
        lines(case, traced, width)
    });
    let cases: Vec<String> = cases.collect();
    if cases.is_empty() {
        return None;
    }
    let title = "where the real time of each command went";
    let legend = if by_chance { format!("{LEGEND} {CHANCE}") } else { LEGEND.to_owned() };
    Some(format!("{}{}{}", heading(title, width), cases.concat(), paragraph(&legend, width, "")))
}

/// The case, its bar, its figures and its calls.
fn lines(case: &Case, traced: &Traced, width: usize) -> String {
    let account = Account::from_traced(traced);
    let room = width.saturating_sub(2).min(BAR);
    let known = account.parts().into_iter().filter(|(_, ns)| *ns > 0);
    let parts: Vec<String> =
        known.map(|(name, ns)| format!("{name} {} %", text::share(ns, account.real))).collect();
    let mut text = paragraph(&format!("{case}: real {}", text::time(account.real)), width, "");
    let bar = bar(&account, room);
    let beside = format!("  {bar}  {}", parts.join(", "));
    match beside.chars().count() <= width {
        true => text.push_str(&format!("{beside}\n")),
        false => text.push_str(&format!("  {bar}\n{}", paragraph(&parts.join(", "), width, "  "))),
    }
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

/// Four parts that add up to one length.
fn bar(account: &Account, room: usize) -> String {
    let parts = [
        ('█', account.user),
        ('▓', account.sys),
        ('▒', account.disk.saturating_add(account.runqueue)),
        ('░', account.sleep.saturating_add(account.unaccounted)),
    ];
    let mut bar = String::new();
    let (mut seen, mut drawn) = (0_u64, 0);
    for (shade, ns) in parts {
        seen = seen.saturating_add(ns);
        // Ends are rounded, not lengths, so that all together are as long as the bar.
        let end = (seen as f64 / account.real.max(1) as f64 * room as f64).round() as usize;
        let end = end.min(room).max(drawn);
        bar.extend(std::iter::repeat_n(shade, end - drawn));
        drawn = end;
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_parts_together() {
        let account =
            Account { real: 100, user: 50, sys: 25, disk: 10, runqueue: 5, sleep: 10, unaccounted: 0 };
        assert_eq!(bar(&account, 20), "██████████▓▓▓▓▓▒▒▒░░");
        assert_eq!(bar(&Account::default(), 20), "");
        for room in 0..60 {
            assert_eq!(bar(&account, room).chars().count(), room);
        }
    }
}
