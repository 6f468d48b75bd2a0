//! Everything that is said about two runs side by side: verdicts, the facts that differ, the likely causes first.

use std::collections::{HashMap, HashSet};

use tollgate_model::compare::{self, FactDifference, NotCompared, Verdict};
use tollgate_model::run::Part;
use tollgate_model::text::beginning;
use tollgate_model::versus::Command;
use tollgate_model::{Case, Effect, Fact, Measured, Run, Unit};

use crate::proven::Proven;
use crate::summary::is_estimate;
use crate::{causes, facts};

/// A run compared with a base.
pub struct Comparison<'a> {
    /// The base.
    pub base: &'a Run,
    /// The run.
    pub other: &'a Run,
    /// The cases that both measured, in the order of the base.
    pub rows: Vec<ComparedRow<'a>>,
    /// The cases that only the base measured, and why the other has none.
    pub only_base: Vec<(Case, String)>,
    /// The cases that only the other measured, and why the base has none.
    pub only_other: Vec<(Case, String)>,
    /// The cases that one side counted and the other timed.
    pub not_compared: Vec<NotCompared>,
    /// Loop overhead in the base and in the other, in ns.
    pub pace: Option<(f64, f64)>,
    /// The facts that differ, those first that can be causes of a difference.
    pub facts: Vec<FactDifference>,
    /// Whether the two alternated, so that the rows compare turn with turn.
    pub is_alternated: bool,
    /// The name of the intervals of the ratios, with their level.
    pub interval_name: String,
    /// How the two are compared: sentences.
    pub method: String,
    /// The base compared with itself, if turns alternated.
    pub halves: Option<compare::Halves>,
    /// The only setting by which the two differ, if they alternated or were counted: the cause of each difference.
    pub proven: Option<Proven>,
    /// The requested relative difference up to which differences do not count.
    pub asked: f64,
    by_case: HashMap<Case, usize>,
}

/// A case that both measured.
pub struct ComparedRow<'a> {
    /// The ratio and the verdict.
    pub result: compare::ComparedCase,
    /// The samples of the base.
    pub base: &'a Measured,
    /// The samples of the other.
    pub other: &'a Measured,
}

impl ComparedRow<'_> {
    /// Its case.
    pub fn case(&self) -> &Case {
        &self.result.case
    }

    /// The unit of both sides; `None` if they differ.
    pub fn unit(&self) -> Option<Unit> {
        Some(self.base.unit).filter(|unit| *unit == self.other.unit)
    }

    /// Whether they are compared as counts: of instructions, or sizes.
    pub fn is_count(&self) -> bool {
        self.unit().is_some() && (self.base.is_count() || self.other.is_count())
    }

    /// Whether hardware executed both.
    pub fn is_estimate(&self) -> bool {
        is_estimate(self.base) && is_estimate(self.other)
    }

    /// other / base, if it has a ratio.
    pub fn ratio(&self) -> Option<f64> {
        let row = &self.result;
        let are_alike = self.unit().is_some() && self.base.provenance == self.other.provenance;
        // Only a count may be zero.
        let is_known = |side: Option<f64>| side.is_some_and(|side| side > 0.0);
        let has_both = is_known(row.base) && is_known(row.other) && (are_alike || self.is_count());
        Some(row.ratio).filter(|ratio| has_both && ratio.is_finite())
    }

    /// The other's addition, in the unit of the samples: the median over the turns, or the difference of the estimates.
    pub fn adds(&self) -> Option<f64> {
        let row = &self.result;
        match &row.alternation {
            _ if self.is_count() => Some(row.other? - row.base?),
            _ if self.ratio().is_none() => None,
            Some(found) => Some(found.adds),
            None => Some(row.other? - row.base?),
        }
    }

    /// How far its ratio is from 1, in either direction.
    pub fn size(&self) -> f64 {
        self.ratio().map_or(0.0, |ratio| ratio.ln().abs())
    }

    fn without_emulated(mut self) -> Self {
        let is_estimate_of_both = self.is_estimate();
        let row = &mut self.result;
        row.base = row.base.filter(|_| is_estimate(self.base));
        row.other = row.other.filter(|_| is_estimate(self.other));
        if !is_estimate_of_both {
            row.interval = None;
            row.verdict = Verdict::Inconclusive;
            row.why = Some("times are an emulator's".to_owned());
        }
        self
    }
}

impl<'a> Comparison<'a> {
    /// Compares a run with the base.
    pub fn of(base: &'a Run, other: &'a Run) -> Self {
        Self::above(base, other, 0.0)
    }

    /// Like [`Comparison::of`], ignoring relative differences up to `asked`.
    pub fn above(base: &'a Run, other: &'a Run, asked: f64) -> Self {
        Self::knowing(base, other, asked, &compare::Spread::default())
    }

    /// Like [`Comparison::above`], given this machine's run-to-run spread.
    pub fn knowing(base: &'a Run, other: &'a Run, asked: f64, spread: &compare::Spread) -> Self {
        let found = compare::compare_knowing(base, other, asked, spread);
        let (interval_name, method) = (found.interval_name(), found.method(asked));
        let compare::Comparison {
            rows,
            only_base,
            only_other,
            not_compared,
            pace,
            mut facts,
            is_alternated,
            halves,
            ..
        } = found;
        let [of_base, of_other] = [base, other].map(|run| run.measured().collect::<HashMap<_, _>>());
        let row = |result: compare::ComparedCase| {
            let (base, other) = (*of_base.get(&result.case)?, *of_other.get(&result.case)?);
            Some(ComparedRow { result, base, other }.without_emulated())
        };
        let rows: Vec<ComparedRow> = rows.into_iter().filter_map(row).collect();
        // The clock and the isolation of processes are not facts of the environment, but can be causes.
        facts.extend([facts::CLOCK, facts::ISOLATION].iter().filter_map(|name| differing(name, base, other)));
        let differing = rows.iter().filter(|row| row.result.verdict.is_difference());
        causes::sort(&mut facts, differing.map(ComparedRow::case));
        let by_case = rows.iter().enumerate().map(|(at, row)| (row.case().clone(), at)).collect();
        let is_counted = !rows.is_empty() && rows.iter().all(ComparedRow::is_count);
        let proven = if is_counted {
            Proven::of_counts(base, other, &facts)
        } else {
            Proven::new(base, other, &facts).filter(|_| is_alternated)
        };
        Self {
            base,
            other,
            rows,
            only_base,
            only_other,
            not_compared,
            pace,
            facts,
            is_alternated,
            interval_name,
            method,
            halves,
            proven,
            asked,
            by_case,
        }
    }

    /// The comparison by processor time instead of real time.
    pub fn by_processor(mut self) -> Self {
        let known = self.rows.iter().filter(|row| row.result.processor.is_some());
        let known: HashSet<Case> = known.map(|row| row.case().clone()).collect();
        // Among whole commands no other benchmark has one.
        if !known.is_empty() {
            self.retain(|case| known.contains(case));
        }
        for ComparedRow { result, .. } in &mut self.rows {
            *result = match result.processor.take() {
                Some(processor) => *processor,
                None => result.without("its processor time is not known".to_owned()),
            };
        }
        self
    }

    /// Whether the two are parts of one session.
    pub fn is_of_one_session(&self) -> bool {
        let [base, other] = [self.base, self.other].map(|run| run.session.as_ref().map(|part| &part.id));
        base.is_some() && base == other
    }

    /// Whether both are the user's whole commands that were compared.
    pub fn is_of_commands(&self) -> bool {
        [self.base, self.other].into_iter().all(|run| command(run).is_some_and(Command::is_whole))
    }

    /// Whether both are builds whose benches were compared.
    pub fn is_of_builds(&self) -> bool {
        [self.base, self.other].into_iter().all(|run| command(run).is_some_and(|build| !build.is_whole()))
    }

    /// Keeps the rows of some cases. Their verdicts stay as they are among all.
    pub fn retain(&mut self, is_chosen: impl Fn(&Case) -> bool) {
        self.rows.retain(|row| is_chosen(row.case()));
        self.not_compared.retain(|apart| is_chosen(&apart.case));
        self.by_case = self.rows.iter().enumerate().map(|(at, row)| (row.case().clone(), at)).collect();
    }

    /// Whether there are rows, and all are counts.
    pub fn is_counted(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(ComparedRow::is_count)
    }

    /// The row of a case.
    pub fn row(&self, case: &Case) -> Option<&ComparedRow<'a>> {
        self.rows.get(*self.by_case.get(case)?)
    }

    /// The rows with a significant difference, the largest first.
    pub fn changed(&self) -> Vec<&ComparedRow<'a>> {
        let mut rows: Vec<_> = self.rows.iter().filter(|row| row.result.verdict.is_difference()).collect();
        rows.sort_by(|one, another| another.size().total_cmp(&one.size()));
        rows
    }

    /// The facts that differ and can be causes of a difference in this row.
    pub fn causes(&self, row: &ComparedRow) -> impl Iterator<Item = &FactDifference> {
        // A frequency or a load does not change a count.
        let is_possible = |effect: &Effect| !(row.is_count() && effect.is_general());
        let reaches = move |fact: &&FactDifference| {
            let effect = tollgate_inspect::effect(&fact.name);
            effect.is_some_and(|effect| is_possible(effect) && causes::reaches(effect, row.case()))
        };
        self.facts.iter().filter(|fact| is_change(fact)).filter(reaches)
    }

    /// The names of the causes of a difference in this row: the proven ones, or else the possible ones.
    pub fn cause_names(&self, row: &ComparedRow) -> Vec<&str> {
        match &self.proven {
            _ if !row.result.verdict.is_difference() => Vec::new(),
            Some(proven) => proven.causes(),
            None => self.causes(row).map(|fact| fact.name.as_str()).collect(),
        }
    }

    /// `1 slower, 0 faster, 12 same, 3 inconclusive`, with those of undecided amount if there are any.
    pub fn verdicts(&self) -> String {
        self.counted(Verdict::ALL.into_iter())
    }

    /// The differences among these.
    pub fn differences(&self) -> String {
        self.counted(Verdict::ALL.into_iter().filter(|verdict| verdict.is_difference()))
    }

    fn counted(&self, verdicts: impl Iterator<Item = Verdict>) -> String {
        let is_rare = |verdict: Verdict| verdict.is_difference() && !verdict.is_beyond_margin();
        let counts = verdicts.map(|verdict| (verdict, self.of_verdict(verdict).len()));
        let shown = counts.filter(|(verdict, number)| *number > 0 || !is_rare(*verdict));
        let word = |verdict| verdict_word(verdict, self.is_counted());
        shown.map(|(verdict, number)| format!("{number} {}", word(verdict))).collect::<Vec<_>>().join(", ")
    }

    /// The rows with this verdict, in their order.
    pub fn of_verdict(&self, verdict: Verdict) -> Vec<&ComparedRow<'a>> {
        self.rows.iter().filter(|row| row.result.verdict == verdict).collect()
    }

    /// Every row: those that changed, the largest first, then those that are inconclusive, then the same ones.
    pub fn in_order(&self) -> Vec<&ComparedRow<'a>> {
        let others = [Verdict::Inconclusive, Verdict::Same].map(|verdict| self.of_verdict(verdict));
        self.changed().into_iter().chain(others.into_iter().flatten()).collect()
    }
}

/// Whether a fact differs: both know it, or only one has the kernel that it names.
pub fn is_change(fact: &FactDifference) -> bool {
    fact.is_change() || fact.name == "sandbox.kernel"
}

fn differing(name: &str, base: &Run, other: &Run) -> Option<FactDifference> {
    let (base, other) = (base.facts.get(name), other.facts.get(name));
    let differ = base.and_then(Fact::value) != other.and_then(Fact::value);
    differ.then(|| FactDifference { name: name.to_owned(), base: base.cloned(), other: other.cloned() })
}

/// A run's label, or its id. In a session, the environment's name; for a user's command, the command's name, with the environment
/// unless it is the host.
pub fn name(run: &Run) -> String {
    match &run.session {
        Some(part) => match &part.command {
            Some(command) if part.environment == HOST => in_short_of(command),
            Some(command) => format!("{} in {}", in_short_of(command), part.environment),
            None => environment(part),
        },
        None => run.label.as_ref().map_or_else(|| run.id.to_string(), ToString::to_string),
    }
}

const HOST: &str = "host";

pub(crate) fn command(run: &Run) -> Option<&Command> {
    run.session.as_ref()?.command.as_deref()
}

/// The beginning of a command, on one line.
pub(crate) fn in_short_of(command: &Command) -> String {
    /// Two of them and some words fit on a line.
    const LONGEST: usize = 32;
    let words: Vec<&str> = command.shown().split_whitespace().collect();
    beginning(&words.join(" "), LONGEST).into_owned()
}

/// An environment as the user named it, with the setting that differed there.
pub fn environment(part: &Part) -> String {
    let name = &part.environment;
    if let Some(switches) = switches(part) {
        return format!("{name}, {switches}");
    }
    match &part.knob {
        Some(knob) if !name.contains(&knob.path) => {
            format!("{name}, {}={}", in_short(&knob.path), knob.value)
        }
        _ => name.clone(),
    }
}

/// The names of the states that were on there.
pub(crate) fn switches(part: &Part) -> Option<String> {
    let names: Vec<&str> = part.switches.iter().map(|switch| switch.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// The last two names of a path.
pub(crate) fn in_short(path: &str) -> &str {
    path.rmatch_indices('/').nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

/// The word for a verdict: counts are more or fewer, not slower or faster.
pub fn verdict_word(verdict: Verdict, is_count: bool) -> String {
    match verdict {
        Verdict::Slower if is_count => "more".to_owned(),
        Verdict::Faster if is_count => "fewer".to_owned(),
        verdict => verdict.to_string(),
    }
}
