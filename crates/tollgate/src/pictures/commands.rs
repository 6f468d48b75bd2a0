//! Followed commands: what the real time of each was passed with, and the calls that took longest.

use tollgate_model::traced::Call;
use tollgate_model::traced::blame::{self, Account};
use tollgate_model::{Case, Traced};

use crate::estimates::Estimates;
use crate::table::{heading, paragraph};
use crate::trace::{division, ranked, words};

/// The longest bar.
const BAR: usize = 40;
/// So many calls are named.
const CALLS: usize = 3;
const LEGEND: &str = "█ user, ▓ kernel, ▒ waiting for a disk or a processor, ░ asleep or not told; of several repetitions the median.";

const CHANCE: &str =
    "User and kernel are divided by what the clock tick met: of a command of few ticks that says little.";

/// None where no command was followed.
pub(super) fn of(estimates: &Estimates, width: usize) -> Option<String> {
    let followed = estimates
        .measured()
        .filter(|(_, figures)| figures.is_estimate())
        .filter_map(|(case, figures)| Some((case, blame::median(&figures.measured.traced)?)));
    let mut by_chance = false;
    let cases = followed.map(|(case, traced)| {
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
    let account = Account::of(traced);
    let room = width.saturating_sub(2).min(BAR);
    let told = account.parts().into_iter().filter(|(_, ns)| *ns > 0);
    let told: Vec<String> =
        told.map(|(name, ns)| format!("{name} {} %", words::share(ns, account.real))).collect();
    let mut text = paragraph(&format!("{case}: real {}", words::time(account.real)), width, "");
    let bar = bar(&account, room);
    let beside = format!("  {bar}  {}", told.join(", "));
    match beside.chars().count() <= width {
        true => text.push_str(&format!("{beside}\n")),
        false => text.push_str(&format!("  {bar}\n{}", paragraph(&told.join(", "), width, "  "))),
    }
    let [working, _] = ranked(traced);
    let dearest: Vec<String> = working.iter().take(CALLS).map(|call| in_words(call)).collect();
    if !dearest.is_empty() {
        text.push_str(&paragraph(&dearest.join("; "), width, "  "));
    }
    text
}

/// `unlink 344 ms (disk 293 ms, …)`.
fn in_words(call: &Call) -> String {
    format!("{} {} ({})", words::cut(&call.name, 40), words::time(call.total_ns), words::parts(call.parts))
}

/// Four parts of one length together; whoever is not nothing and has room is seen.
fn bar(account: &Account, room: usize) -> String {
    let parts = [
        ('█', account.user),
        ('▓', account.sys),
        ('▒', account.disk.saturating_add(account.runqueue)),
        ('░', account.sleep.saturating_add(account.untold)),
    ];
    let mut bar = String::new();
    let (mut seen, mut drawn) = (0_u64, 0);
    for (block, ns) in parts {
        seen = seen.saturating_add(ns);
        // Ends are rounded, not lengths, so that all together are as long as the bar.
        let end = (seen as f64 / account.real.max(1) as f64 * room as f64).round() as usize;
        let end = end.min(room).max(drawn);
        bar.extend(std::iter::repeat_n(block, end - drawn));
        drawn = end;
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_parts_together() {
        let account = Account { real: 100, user: 50, sys: 25, disk: 10, runqueue: 5, sleep: 10, untold: 0 };
        assert_eq!(bar(&account, 20), "██████████▓▓▓▓▓▒▒▒░░");
        assert_eq!(bar(&Account::default(), 20), "");
        for room in 0..60 {
            assert_eq!(bar(&account, room).chars().count(), room);
        }
    }
}
