//! The kept runs of this machine, and the configuration of its kernel.

use tollgate_kconfig::{Configuration, Counts};
use tollgate_model::compare::is_volatile;
use tollgate_model::{Case, Fact, Facts, Run};
use tollgate_view::summary::{CaseRow, Summary};

/// The configuration of the kernel that the runs were made on, or why it is not known.
pub type Config = Result<Configuration, String>;

/// The kept runs and the state of this machine.
pub struct Known<'a> {
    /// Runs, the preferred one first. A figure, and both parts of a ratio, come from the first run that has them.
    pub runs: Vec<Summary<'a>>,
    /// The facts of this machine.
    pub facts: &'a Facts,
    /// The configuration of its kernel, or why it is not known.
    pub config: &'a Config,
    /// The cases that can be measured here.
    pub cases: &'a [Case],
}

impl Known<'_> {
    pub(super) fn whence(&self, at: usize) -> String {
        let run = self.runs[at].run;
        match &run.session {
            Some(part) => format!("in {}, run {}", part.environment, run.id),
            None => format!("run {}", run.id),
        }
    }

    /// Returns the runs of the same machine in the same state at other times.
    pub(super) fn other_times(&self, at: usize) -> impl Iterator<Item = &Summary<'_>> {
        let own = self.runs.get(at);
        let others = self.runs.iter().enumerate().filter(move |(other, _)| *other != at);
        others
            .filter(move |(_, other)| own.is_some_and(|own| is_another_time(other.run, own.run)))
            .map(|(_, other)| other)
    }

    pub(super) fn has_case(&self, pattern: &str) -> bool {
        self.cases.iter().any(|case| tollgate_suites::matches(pattern, case))
    }

    /// Returns the value of an option. For `=y` and `=m` returns the number of options that are built in or modules.
    pub(super) fn option(&self, name: &str) -> Result<String, String> {
        let configuration = self.config.as_ref().map_err(Clone::clone)?;
        let counts = Counts::of(configuration);
        match name {
            "=y" => Ok(counts.built_in.to_string()),
            "=m" => Ok(counts.modules.to_string()),
            _ => Ok(configuration.value(name).map_or("not there".to_owned(), ToString::to_string)),
        }
    }
}

/// Returns whether a run was made on the same machine in the same state as another one, and not in alternation: no fact that both
/// know differs, except momentary ones. Each run knows the facts that its suites need, so one may know more than the other.
fn is_another_time(run: &Run, other: &Run) -> bool {
    let is_alone = run.session.is_none() && run.environment == other.environment;
    let differs = |(name, fact): (&String, &Fact)| {
        let values = fact.value().zip(other.facts.get(name).and_then(Fact::value));
        !is_volatile(name) && values.is_some_and(|(one, other)| one != other)
    };
    is_alone && !run.facts.iter().any(differs)
}

/// Returns the row that matches a pattern and has the fewest parameters. With `nth`, returns the row that has the nth smallest
/// value of a parameter.
pub(super) fn row<'a, 'b>(
    summary: &'b Summary<'a>,
    pattern: &str,
    nth: Option<&(String, usize)>,
) -> Option<&'b CaseRow<'a>> {
    let matching = summary.rows.iter().filter(|row| tollgate_suites::matches(pattern, row.case));
    let Some((parameter, at)) = nth else { return matching.min_by_key(|row| row.case.params.len()) };
    let size = |case: &Case| case.number(parameter);
    let mut rows: Vec<&CaseRow> = matching.filter(|row| size(row.case).is_some()).collect();
    rows.sort_by_key(|row| size(row.case));
    rows.dedup_by_key(|row| size(row.case));
    rows.get(*at).copied()
}
