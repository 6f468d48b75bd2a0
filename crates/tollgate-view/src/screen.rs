//! The first screen of a run: at most 43 lines of at most 80 columns that say what is expensive here, why, what to do about it,
//! and how far the figures can be trusted.

mod machine;
mod rows;

use tollgate_model::measurement::Status;
use tollgate_model::text::{clean, quoted};
use tollgate_output::figures::{count, time_left};
use tollgate_output::table::{cut, heading, wrap};
use unicode_width::UnicodeWidthStr;

use crate::quality;
use crate::rules::{self, Expense};
use crate::summary::{CaseRow, State, Summary};

pub use machine::lines as machine;
pub(crate) use rows::headlines;

const LINES: usize = 43;
const COLUMNS: usize = 80;
const MOST_EXPENSES: usize = 6;
/// The most lines that the expenses take, and the fewest: those are theirs however many rows there are.
const EXPENSE_LINES: usize = 12;
const LEAST_EXPENSE_LINES: usize = 4;

/// The meaning of a row's mark, which its interval shows.
const LEGEND: &str = "  ~ CI wider than ±10 %";

/// The first screen, for a terminal of this width. Only its head may be wider than 80 columns, if there is room.
pub fn text(summary: &Summary, width: usize) -> String {
    let (of_head, width) = (width, width.min(COLUMNS));
    let mut text = String::new();
    // A narrow terminal gets more lines rather than less content.
    let put = |line: &str, room: usize| -> String {
        let line = clean(line);
        let lines = if width < COLUMNS { wrap(&line, room) } else { vec![cut(&line, room)] };
        lines.join("\n")
    };
    let [machine, environment] = machine::lines(summary);
    for line in [title(summary, width), machine, environment] {
        text.push_str(&format!("{}\n", put(&line, of_head)));
    }
    // The quality, a heading, and the last line.
    let left_out = summary.without_memory().map_or(Vec::new(), |why| wrap(&clean(&why), width));
    let room = LINES.saturating_sub(text.lines().count() + 3 + left_out.len());
    let mut rows = rows::Rows::headlines(summary, width);
    let lines = room.saturating_sub(rows.lines()).clamp(LEAST_EXPENSE_LINES, EXPENSE_LINES);
    let expenses = Expenses::new(summary, width, lines);
    rows.fill(summary, room - expenses.lines());
    let legend = if rows.is_any_wide() { LEGEND } else { "" };
    let quality = format!("Quality: {}", quality::of(summary));
    text.push_str(&format!("{}{legend}\n", put(&quality, of_head.saturating_sub(legend.width()))));
    text.push_str(&rows.text());
    text.push_str(&expenses.text(width));
    text.extend(left_out.into_iter().map(|line| line + "\n"));
    text.push_str(&cut(&more(summary, &expenses.shown), width));
    text.push('\n');
    text
}

/// `run 20261122-172804-4e1f51d3  60 s  412 cases; 10 not available  before`
fn title(summary: &Summary, width: usize) -> String {
    let run = summary.run;
    let measured = summary.measured().count();
    let of = |status: Status| {
        let is_so = |row: &&CaseRow| matches!(&row.state, State::Without(own, _) if *own == status);
        summary.rows.iter().filter(is_so).count()
    };
    let counts = [
        (of(Status::Skipped), "not available"),
        (of(Status::Refused), "refused"),
        (of(Status::NotMeasured), "not measured"),
        (of(Status::Failed), "failed"),
    ];
    let time = |text: &str| humantime::parse_rfc3339(text).ok();
    let took = time(&run.started).zip(time(&run.finished));
    let took = took.and_then(|(started, finished)| finished.duration_since(started).ok());
    let took = took.map(|took| format!("  {}", time_left(took))).unwrap_or_default();
    let label = run.label.as_ref().map(|label| format!("  {label}")).unwrap_or_default();
    let interrupted = if run.facts.contains_key(tollgate_engine::INTERRUPTED) { "interrupted; " } else { "" };
    let begin = format!("run {}{took}  {interrupted}", run.id);
    let with = counts.into_iter().filter(|(number, _)| *number > 0);
    let without: Vec<String> = with.map(|(number, words)| format!("{number} {words}")).collect();
    let cases = if without.is_empty() {
        count(measured, "case", "cases")
    } else {
        format!("{}; {}", count(measured, "case", "cases"), without.join(", "))
    };
    // Three reasons have no room beside a label.
    let in_short = format!("{measured} of {}", count(summary.rows.len(), "case", "cases"));
    let titles = [format!("{begin}{cases}{label}"), format!("{begin}{in_short}{label}"), begin + &in_short];
    let fits = |title: &&String| title.width() <= width;
    titles.iter().find(fits).unwrap_or(&titles[2]).clone()
}

fn more(summary: &Summary, shown: &[Expense]) -> String {
    let measured = || summary.measured().map(|(case, _)| case.benchmark.as_str()).next();
    let expense = shown.get(1).or(shown.first()).map(|expense| expense.benchmark);
    let interesting = expense.or_else(measured).unwrap_or("entry/syscall");
    format!("More: tollgate show --all | tollgate explain {} | tollgate report", quoted(interesting))
}

struct Expenses {
    shown: Vec<Expense>,
    lines: Vec<Vec<String>>,
}

impl Expenses {
    fn new(summary: &Summary, width: usize, mut room: usize) -> Self {
        let (mut shown, mut lines) = (Vec::new(), Vec::new());
        for expense in rules::expenses(summary).into_iter().take(MOST_EXPENSES) {
            let own = wrapped(&expense.sentence(), width);
            if own.len() <= room {
                room -= own.len();
                lines.push(own);
                shown.push(expense);
            }
        }
        Self { shown, lines }
    }

    fn lines(&self) -> usize {
        self.lines.iter().map(Vec::len).sum()
    }

    fn text(&self, width: usize) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let lines: String = self.lines.iter().flatten().map(|line| format!("{line}\n")).collect();
        heading("Expensive here, and what to do", width) + &lines
    }
}

fn wrapped(sentence: &str, width: usize) -> Vec<String> {
    let sentence = clean(sentence);
    if sentence.width() + 2 <= width {
        return vec![format!("  {sentence}")];
    }
    let lines = wrap(&sentence, width.saturating_sub(4).max(20)).into_iter().enumerate();
    lines.map(|(at, line)| if at == 0 { format!("  {line}") } else { format!("    {line}") }).collect()
}
