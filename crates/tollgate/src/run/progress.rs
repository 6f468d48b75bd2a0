//! The progress of a run on standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tollgate_engine::{Decided, Length, Ordinal, Progress};
use tollgate_model::text::clean;
use tollgate_output::figures;

use crate::{out, say};

/// A narrower terminal has no room for a bar beside what is being measured.
const NARROW: usize = 54;
/// The interval of lines for a reader that is not a terminal.
const OFTEN: Duration = Duration::from_secs(10);

const STEPS: u64 = 10_000;

/// The progress on standard error: on a terminal a line that is redrawn, with the figures of the first screen above it as they
/// are decided; elsewhere plain lines.
pub struct Shown {
    bar: ProgressBar,
    /// Whether lines are printed instead of a bar, and when the last one was.
    lines: bool,
    last: Duration,
}

impl Shown {
    pub fn new(visible: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        let is_drawn = std::io::stderr().is_terminal() && !is_dumb;
        let bar = progress_bar(visible && is_drawn);
        Self { bar, lines: visible && !is_drawn, last: Duration::ZERO }
    }

    pub fn update(&mut self, progress: &Progress) {
        // It includes names of commands and benches.
        let what = clean(&progress.what);
        // The clock of timing starts when all is counted.
        self.last = self.last.min(progress.elapsed);
        let (left, of_what, part) = match progress.length {
            Length::Time(whole) => {
                let left = format!("{} left", figures::time_left(whole.saturating_sub(progress.elapsed)));
                (left, String::new(), progress.elapsed.as_secs_f64() / whole.as_secs_f64())
            }
            Length::Number(of_what, Ordinal { number, of }) => {
                (format!("{number} of {of}"), format!("{of_what} "), number as f64 / of.max(1) as f64)
            }
        };
        let place = match progress.suite {
            Ordinal { of: 0 | 1, .. } => String::new(),
            Ordinal { number, of } => format!("suite {number} of {of}: "),
        };
        for line in progress.decided.iter().filter_map(decided) {
            if self.lines { say::warn(&format!("{line}\n")) } else { self.bar.println(line) }
        }
        if self.lines && !what.is_empty() && progress.elapsed >= self.last + OFTEN {
            self.last = progress.elapsed;
            let so_far = match progress.length {
                Length::Time(whole) => {
                    format!("{} of {}", figures::time_left(progress.elapsed), figures::time_left(whole))
                }
                Length::Number(..) => left.clone(),
            };
            say::say(&format!("{place}{what}, {of_what}{so_far}"));
        }
        self.bar.set_prefix(left);
        if !what.is_empty() {
            self.bar.set_message(format!("{place}{what}"));
        }
        self.bar.set_position((part.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn decided(decided: &Decided) -> Option<String> {
    let benchmark = tollgate_suites::find(&decided.case.benchmark)?;
    let figure = match decided.median_ns {
        above if above > 0.0 => figures::estimate(above, benchmark.unit),
        _ => "below the detection limit".to_owned(),
    };
    Some(format!("  {:<28} {figure:>10}", decided.headline.name))
}

/// On a terminal. It is drawn only when the engine reports progress: a drawing thread would disturb the measurement.
fn progress_bar(visible: bool) -> ProgressBar {
    let target = if visible { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
    // A broken line cannot be drawn over.
    let template = match out::width_of_errors() {
        narrow if narrow < NARROW => "{prefix:>9}  {wide_msg}",
        _ => "{bar:24} {prefix:>9}  {wide_msg}",
    };
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::with_draw_target(Some(STEPS), target);
    match style {
        Ok(style) => bar.with_style(style.progress_chars("━╸─")),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_commands_no_terminal() {
        let mut shown = Shown::new(false);
        shown.update(&Progress {
            what: "timing \u{1b}]0;owned\u{7}\u{202e}b".to_owned(),
            elapsed: Duration::ZERO,
            length: Length::Time(Duration::from_secs(1)),
            suite: Ordinal::default(),
            decided: Vec::new(),
        });
        assert_eq!(shown.bar.message(), "timing \\u{1b}]0;owned\\u{7}\\u{202e}b");
    }

    #[test]
    fn a_decided_figure_has_its_name_on_the_first_screen() {
        let of = |benchmark: &str, median_ns| {
            let headline = tollgate_suites::find(benchmark)?.headlines.first()?;
            decided(&Decided { case: tollgate_model::Case::plain(benchmark), headline, median_ns })
        };
        assert_eq!(of("entry/int80", 5_970.0).as_deref(), Some("  int 0x80                        5.97 µs"));
        assert!(of("entry/vdso-clock", -0.1).is_some_and(|line| line.ends_with("below the detection limit")));
        assert_eq!(of("entry/call", 1.0), None);
    }
}
