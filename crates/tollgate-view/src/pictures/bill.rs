//! The latency of one small file's life: of each call, and its share of the whole.

use tollgate_output::figures;
use tollgate_output::table::heading;

use crate::summary::Summary;

pub const BENCHMARK: &str = "files/small-file";
/// The row that is all calls together.
pub const ALL: &str = "all";
/// The longest bar.
const BAR: usize = 30;

/// One call's latency, with its median, p99 and maximum as text.
pub struct Line<'a> {
    pub call: &'a str,
    /// Its median, ns.
    pub median: f64,
    /// Median, p99 and maximum. The second is empty where the samples are too few for one.
    pub text: [String; 3],
}

/// None where a part was not measured.
pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let lines = lines(summary);
    let (all, calls): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| line.call == ALL);
    let all = all.first()?;
    if calls.len() < 2 || all.median <= 0.0 || !all.median.is_finite() {
        return None;
    }
    let title = "files/small-file: latency of one small file's life, by call";
    Some(format!("{}{}", heading(title, width), draw(&calls, all, width)))
}

/// The measured calls.
pub fn lines<'a>(summary: &Summary<'a>) -> Vec<Line<'a>> {
    summary
        .of_benchmark(BENCHMARK)
        .filter_map(|(case, figures)| {
            let (estimate, unit) = (&figures.estimate, figures.measured.unit);
            let shown = |value| figures::estimate(value, unit);
            let p99 = estimate.p99.map(shown).unwrap_or_default();
            let text = [figures.in_words(), p99, shown(estimate.max)];
            let call = case.word("call")?;
            Some(Line { call, median: estimate.median, text })
        })
        .collect()
}

fn draw(calls: &[&Line], all: &Line, width: usize) -> String {
    let name = calls.iter().map(|line| line.call.len()).max().unwrap_or(0).max(ALL.len());
    let figure = |at: usize, head: &str| {
        let lines = calls.iter().chain([&all]);
        lines.map(|line| line.text[at].chars().count()).max().unwrap_or(0).max(head.len())
    };
    let [median, p99, max] = [(0, "median"), (1, "p99"), (2, "max")].map(|(at, head)| figure(at, head));
    let fixed = name + median + p99 + max + 4 * 2 + 5;
    let room = width.saturating_sub(fixed + 2).min(BAR);
    let mut picture =
        format!("{:name$}  {:>median$}  {:>p99$}  {:>max$}  share\n", "", "median", "p99", "max");
    for line in calls.iter().chain([&all]) {
        let share = (line.median / all.median).clamp(0.0, 1.0);
        let bar = if line.call == ALL { 0 } else { (share * room as f64).round() as usize };
        let [a, b, c] = &line.text;
        let percent = format!("{:.0} %", share * 100.0);
        let shown = format!(
            "{:name$}  {a:>median$}  {b:>p99$}  {c:>max$}  {percent:>5}  {}",
            line.call,
            "█".repeat(bar)
        );
        picture.push_str(shown.trim_end());
        picture.push('\n');
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(call: &str, median: f64) -> Line<'_> {
        let text = [median, median * 2.0, median * 10.0]
            .map(|value| figures::estimate(value, tollgate_model::Unit::Nanoseconds));
        Line { call, median, text }
    }

    #[test]
    fn each_call_has_its_share_and_the_slowest_the_longest_bar() {
        let (create, fsync, all) =
            (line("create", 20_000.0), line("fsync", 180_000.0), line("all", 200_000.0));
        let picture = draw(&[&create, &fsync], &all, 80);
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines.len(), 4, "{picture}");
        assert!(lines[1].starts_with("create  20.0 µs") && lines[1].ends_with("10 %  ███"), "{picture}");
        assert!(lines[2].contains("90 %  ███████"), "{picture}");
        assert!(lines[3].starts_with("all") && lines[3].ends_with("100 %"), "{picture}");
        for width in 40..100 {
            let widest = draw(&[&create, &fsync], &all, width).lines().map(|l| l.chars().count()).max();
            assert!(widest <= Some(width.max(51)), "{width}");
        }
    }
}
