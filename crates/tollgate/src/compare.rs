//! `tollgate compare`: medians of several runs, verdicts, and the facts that differ between the environments.

use tollgate_model::Run;
use tollgate_model::compare::{Spread, is_of_machine};
use tollgate_store::kept::{Entry, kept};
use tollgate_view::compare::columns::Sides;
use tollgate_view::compare::condition::{Answer, Condition, answer};
use tollgate_view::compare::{json, text};
use tollgate_view::comparison::Comparison;

use crate::args::ShowFormat;
use crate::args::compare::{CompareArgs, FailOn, Quantity};
use crate::failure::Failure;
use crate::{out, show, store};

impl CompareArgs {
    /// # Errors
    /// A run that cannot be read; and the condition of `--fail-on`, met or undecided.
    pub fn execute(&self) -> Result<(), Failure> {
        self.undecided.applied(compare(self))
    }
}

fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (base, others) = store::find_compared(&args.base, &args.other)?;
    let asked = args.threshold.unwrap_or(0.0);
    let runs: Vec<Run> = std::iter::once(base).chain(others).collect();
    let spread = spread(&runs);
    let [base, others @ ..] = runs.as_slice() else { return Ok(()) };
    let comparisons: Vec<Comparison> =
        others.iter().map(|other| Comparison::knowing(base, other, asked, &spread)).collect();
    match args.format {
        ShowFormat::Svg => show::print_picture(&runs, &spread, asked)?,
        ShowFormat::Md => show::print_markdown(&runs, &spread, asked)?,
        ShowFormat::Csv => show::print_csv(comparisons.iter().map(|one| (Sides::of(one), one)))?,
        ShowFormat::Table => out::print(&text::text(&comparisons, args.all, out::width()))?,
        ShowFormat::Json => {
            let traces = json::traces(&comparisons);
            out::print_json(&json::CompareDocument::new(base, &comparisons, &traces))?;
        }
    }
    check(&args.fail_on, asked, comparisons, args.by)
}

/// The run-to-run spread of the first run's machine, by kept runs that are not compared, the newest first.
pub fn spread(runs: &[Run]) -> Spread {
    /// This many of the newest runs, which can be read without a noticeable wait, are enough.
    const LOOKED_AT: usize = 60;
    const MOST: usize = 30;
    let [base, _, ..] = runs else { return Spread::default() };
    let is_compared = |entry: &Entry| runs.iter().any(|run| entry.id == run.id);
    // Unreadable runs do not prevent a comparison.
    let entries = kept().unwrap_or_default().into_iter().rev().filter(|entry| !is_compared(entry));
    let opened = entries.take(LOOKED_AT).filter_map(|entry| entry.open().ok());
    let kept = opened.filter(|run| is_of_machine(run, base));
    Spread::of(&kept.take(MOST).collect::<Vec<Run>>())
}

/// Fails if the runs meet a condition of `--fail-on` by this time, or leave it undecided; then it says whether the other time
/// would.
pub fn check(
    fail_on: &[FailOn],
    asked: f64,
    comparisons: Vec<Comparison>,
    by: Quantity,
) -> Result<(), Failure> {
    let conditions: Vec<Condition> = fail_on.iter().copied().map(Condition::from).collect();
    let by_real = answer(&conditions, asked, &comparisons);
    let comparisons: Vec<Comparison> = comparisons.into_iter().map(Comparison::by_processor).collect();
    let by_cpu = answer(&conditions, asked, &comparisons);
    let (chosen, other, [before, after]) = match by {
        Quantity::Real => (by_real, by_cpu, ["", "; processor time decides it: --by cpu"]),
        Quantity::Cpu => (by_cpu, by_real, ["by processor time ", "; real time decides it: --by real"]),
    };
    match (chosen, other) {
        (Answer::Met(sentence), _) => Err(Failure::Condition(format!("{before}{sentence}"))),
        (Answer::Open(sentence), Answer::Open(_)) => Err(Failure::Undecided(format!("{before}{sentence}"))),
        (Answer::Open(sentence), _) => Err(Failure::Undecided(format!("{before}{sentence}{after}"))),
        (Answer::NotMet, _) => Ok(()),
    }
}
