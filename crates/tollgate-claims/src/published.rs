//! The programs of the published experiments, rewritten from their descriptions (`published/` of this crate): as published, and
//! with each correction. This module defines the variants and judges their figures. The caller executes them and passes the
//! output to [`Measured::new`].

mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tollgate_model::stats::{Interval, anytime_interval, median};
use tollgate_model::text::listed;
use tollgate_output::figures::{compared_within, percent, significant};

use crate::data::Files;

static FILES: Files = Files::of(include_bytes!(concat!(env!("OUT_DIR"), "/published.deflated")));
/// The file that describes the programs.
const LIST: &str = "programs.json";
/// Minimum number of executions of each variant, which an interval needs.
pub const FEWEST_ROUNDS: usize = 6;
/// Maximum number of executions of each variant. A step that is undecided after them is reported as open.
pub const MOST_ROUNDS: usize = 20;
/// The rounds end when the steps are decided, so the interval must hold at every look.
const CONFIDENCE: f64 = 0.95;
/// A step changes nothing that matters if its interval lies within this distance of 1.
const NO_CHANGE: f64 = 0.1;
/// Bounds on a change are not reported more precisely than this.
const LEAST: f64 = 0.01;
/// Two threads that share a buffer show the effect of sharing only if they ran simultaneously for at least this share of the
/// time.
const TOGETHER: f64 = 0.5;

/// A published program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name in this project.
    pub name: String,
    /// Name of the experiment that it belongs to.
    pub experiment: String,
    /// Source file in `published/`, in C or Go.
    pub file: String,
    /// Compiler options, as far as the source names them.
    pub flags: Vec<String>,
    /// Its work, in words.
    pub work: String,
    /// Figures of its output that are shown.
    pub columns: Vec<Column>,
    /// Corrections, in the order in which they are added.
    pub corrections: Vec<Correction>,
}

/// A figure, or the ratio of two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Heading of the column.
    pub head: String,
    /// The figure, by the name that the program prints.
    pub of: String,
    /// Name of the figure by which it is divided.
    #[serde(default)]
    pub over: Option<String>,
    /// The published figure.
    pub there: String,
    /// Names, as the program prints them, of shares of the time in which its threads ran simultaneously. An execution in which
    /// one of them is small has no figure.
    #[serde(default)]
    pub together: Vec<String>,
}

/// A correction of the program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// The macro that enables it, or the variable in Go.
    pub flag: String,
    /// The effect of the correction, in words.
    pub does: String,
    /// The error that it corrects.
    pub cause: String,
}

/// The output of one execution: figures and words by name, or why it printed none.
pub type Execution = Result<BTreeMap<String, String>, String>;

/// The load by others while a program was executed.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// Number of other runnable tasks at the beginning of each round; empty if unknown.
    pub beside: Vec<f64>,
    /// Seconds that the hypervisor gave to other guests.
    pub stolen: f64,
}

impl Load {
    fn in_words(&self) -> Vec<String> {
        let rounds = self.beside.iter().filter(|tasks| **tasks >= 1.0).count();
        let tasks = median(&self.beside).filter(|_| rounds > 0).map(|tasks| {
            format!(
                "other tasks ran at the beginning of {rounds} of {} rounds ({tasks:.0} in the median)",
                self.beside.len()
            )
        });
        let stolen = (self.stolen > 0.0)
            .then(|| format!("the hypervisor gave other guests {} s", significant(self.stolen, 2)));
        tasks.into_iter().chain(stolen).collect()
    }
}

impl Program {
    /// Returns all programs.
    ///
    /// # Errors
    /// Fails if the file that describes them is malformed.
    pub fn all() -> Result<Vec<Self>, String> {
        serde_json::from_str(FILES.text_of(LIST).unwrap_or_default())
            .map_err(|error| format!("{LIST}: {error}"))
    }

    /// Returns the files to compile, each with its text.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        FILES.all().filter(|(name, _)| *name == self.file || name.ends_with(".h"))
    }

    /// Returns whether the source is in Go.
    pub fn is_go(&self) -> bool {
        self.file.ends_with(".go")
    }

    /// Returns the corrections of each variant: none, the first, the first two, and so on.
    pub fn variants(&self) -> impl Iterator<Item = &[Correction]> {
        (0..=self.corrections.len()).map(|number| &self.corrections[..number])
    }
}

impl Correction {
    /// Returns the compiler option that enables the correction.
    pub fn option(&self, is_go: bool) -> String {
        if is_go { format!("-ldflags=-X main.{}=1", self.flag) } else { format!("-D{}", self.flag) }
    }
}

/// Returns those lines of a program's output that are a name and a figure or a word.
pub fn printed(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [name, value] if !name.ends_with(':') => Some((name.to_owned(), value.to_owned())),
        _ => None,
    };
    text.lines().filter_map(pair).collect()
}

/// The programs that were executed here.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ClaimsAsPublished"))]
pub struct AsPublished {
    /// The programs.
    pub programs: Vec<Measured>,
}

/// A program as it was published, and with its corrections added one by one.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ProgramAsPublished"))]
pub struct Measured {
    /// Its name.
    pub program: String,
    /// The published experiment that it belongs to.
    pub experiment: String,
    /// The work that it does, and the units of its figures.
    pub work: String,
    /// The compiler's own first line.
    pub compiler: Option<String>,
    /// The command that compiles it without a correction.
    pub command: Option<String>,
    /// Why it was not executed, or null.
    pub missing: Option<String>,
    /// How often each variant was executed; the variants alternate.
    pub rounds: usize,
    /// Its published figures, as text, by name.
    pub there: BTreeMap<String, String>,
    /// The variants: the published program, then one more correction in each.
    pub variants: Vec<Variant>,
    /// The change that each correction makes.
    pub steps: Vec<Step>,
    /// The conclusion: where the gap between the published program and the corrected one comes from.
    pub sentences: Vec<String>,
    /// The heads of the columns, in order.
    #[serde(skip)]
    heads: Vec<String>,
}

/// A program with some of its corrections.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VariantAsPublished"))]
pub struct Variant {
    /// The correction that the previous variant lacks; null for the published program.
    pub corrects: Option<String>,
    /// The compiler options for all of its corrections.
    pub options: Vec<String>,
    /// Its figures.
    pub figures: Vec<ShownFigure>,
    /// Why it has no figures, such as the signal that killed it; or null.
    pub failed: Option<String>,
}

/// A figure of a variant.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FigureAsPublished"))]
pub struct ShownFigure {
    /// Its name.
    pub name: String,
    /// Its median.
    pub median: Option<f64>,
    /// The lower end of its 95 % CI.
    pub low: Option<f64>,
    /// The upper end of its 95 % CI.
    pub high: Option<f64>,
    /// The figure of each execution, in the order of the rounds; null if its threads did not run at the same time.
    pub samples: Vec<Option<f64>>,
    /// The words that it printed in place of a figure, such as `EINVAL`; or null.
    pub words: Option<String>,
}

/// The change that a correction makes to a figure.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StepAsPublished"))]
pub struct Step {
    /// The option of the correction.
    pub option: String,
    /// The defect that it corrects.
    pub cause: String,
    /// The name of the figure.
    pub figure: String,
    /// The figure without the correction.
    pub from: Option<f64>,
    /// The figure with the correction.
    pub to: Option<f64>,
    /// The figure with the correction divided by the one without it: the median of the rounds' ratios. Null if a figure is not above zero.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's 95 % CI.
    pub low: Option<f64>,
    /// The upper end of the ratio's 95 % CI.
    pub high: Option<f64>,
    /// Whether the correction changes the figure.
    pub shows: Shows,
    /// The words that were printed in place of the figure, without the correction and with it.
    #[serde(skip)]
    words: [Option<String>; 2],
}

/// Whether a correction changes a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ShownAsPublished"))]
#[serde(rename_all = "lowercase")]
pub enum Shows {
    /// The interval of the ratio does not contain 1; or one side is a figure and the other a word, such as `EINVAL`.
    Change,
    /// The figure was above zero, and its interval with the correction contains zero.
    Vanishes,
    /// The interval of the ratio lies within a tenth of 1.
    Nothing,
    /// The rounds do not decide.
    Open,
}

impl Step {
    fn is_a_change(&self) -> bool {
        matches!(self.shows, Shows::Change | Shows::Vanishes)
    }

    /// The factor of the largest change that the interval allows; `None` without an interval.
    fn most(&self) -> Option<f64> {
        Some((1.0 / self.low?).max(self.high?))
    }

    fn in_words(&self) -> String {
        let figure = &self.figure;
        let number = |value: Option<f64>| value.map(|value| significant(value, 3));
        let [from, to] = [(self.from, 0), (self.to, 1)].map(|(value, at)| {
            number(value).or_else(|| self.words[at].clone()).unwrap_or_else(|| "none".to_owned())
        });
        match (self.shows, self.ratio, self.low, self.high) {
            (Shows::Vanishes, ..) => format!("{figure} is 0 in these rounds ({from} with it)"),
            (_, Some(ratio), Some(low), Some(high)) => {
                format!("{figure} is {}", compared_within(ratio, [low, high], ["more", "less"]))
            }
            _ => format!("{figure} is {to}, and {from} with it"),
        }
    }
}

impl Measured {
    /// Returns a program that was not executed, with the reason.
    pub fn missing(program: &Program, why: String) -> Self {
        Self {
            program: program.name.clone(),
            experiment: program.experiment.clone(),
            work: program.work.clone(),
            compiler: None,
            command: None,
            missing: Some(why),
            rounds: 0,
            there: program.columns.iter().map(|column| (column.head.clone(), column.there.clone())).collect(),
            variants: Vec::new(),
            steps: Vec::new(),
            sentences: Vec::new(),
            heads: program.columns.iter().map(|column| column.head.clone()).collect(),
        }
    }

    /// Evaluates the executions of each variant, in the order of the rounds.
    pub fn new(
        program: &Program,
        compiler: String,
        command: String,
        executions: &[Vec<Execution>],
        load: &Load,
    ) -> Self {
        let variants: Vec<Variant> = program
            .variants()
            .zip(executions)
            .map(|(corrections, executions)| variant(program, corrections, executions))
            .collect();
        let steps = steps(program, &variants);
        let rounds = executions.iter().map(Vec::len).max().unwrap_or_default();
        let mut sentences = sentences(program, &variants, &steps);
        sentences.extend(open(program, &steps, rounds, load));
        let missing = None;
        let shown = Self::missing(program, String::new());
        Self {
            compiler: Some(compiler),
            command: Some(command),
            missing,
            rounds,
            variants,
            steps,
            sentences,
            ..shown
        }
    }

    /// Returns whether every step is decided, so that more rounds would add nothing.
    pub fn is_decided(&self) -> bool {
        self.steps.iter().all(|step| step.shows != Shows::Open)
    }
}

fn variant(program: &Program, corrections: &[Correction], executions: &[Execution]) -> Variant {
    let printed: Vec<_> = executions.iter().filter_map(|execution| execution.as_ref().ok()).collect();
    // A variant that fails occasionally has no figure, because its rounds do not pair with those of the others.
    let failed = executions.iter().find_map(|execution| execution.as_ref().err()).cloned();
    let figures = match failed {
        Some(_) => Vec::new(),
        None => program.columns.iter().map(|column| column.of_all(&printed)).collect(),
    };
    Variant {
        corrects: corrections.last().map(|correction| correction.does.clone()),
        options: corrections.iter().map(|correction| correction.option(program.is_go())).collect(),
        figures,
        failed,
    }
}

impl Column {
    fn of_all(&self, printed: &[&BTreeMap<String, String>]) -> ShownFigure {
        let samples: Vec<Option<f64>> = printed.iter().map(|one| self.value(one)).collect();
        let known: Vec<f64> = samples.iter().flatten().copied().collect();
        // Executions whose threads ran apart are left out; that criterion does not depend on the figure. If any other figure is
        // missing, none is shown.
        let apart = printed.iter().filter(|one| !self.is_together(one)).count();
        let is_whole =
            known.len() >= FEWEST_ROUNDS.min(printed.len()) && known.len() + apart == printed.len();
        let (samples, known) = if is_whole { (samples, known) } else { (Vec::new(), Vec::new()) };
        let words = printed.first().and_then(|one| one.get(&self.of));
        let words = words.filter(|word| self.over.is_none() && word.parse::<f64>().is_err()).cloned();
        let interval = anytime_interval(&known, CONFIDENCE);
        ShownFigure {
            name: self.head.clone(),
            median: median(&known),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            samples,
            words,
        }
    }

    /// Returns `None` if the figure is missing, if the threads ran apart, or for a ratio to a figure that is not above zero.
    fn value(&self, printed: &BTreeMap<String, String>) -> Option<f64> {
        let over = self.over.as_ref().map_or(Some(1.0), |name| number(printed, name))?;
        let value = number(printed, &self.of)? / over;
        (over > 0.0 && value.is_finite() && self.is_together(printed)).then_some(value)
    }

    fn is_together(&self, printed: &BTreeMap<String, String>) -> bool {
        self.together.iter().all(|part| number(printed, part).is_some_and(|part| part >= TOGETHER))
    }
}

fn number(printed: &BTreeMap<String, String>, name: &str) -> Option<f64> {
    printed.get(name)?.parse().ok()
}

/// Compares each correction with the variant before it, for each figure.
fn steps(program: &Program, variants: &[Variant]) -> Vec<Step> {
    let pairs = program.corrections.iter().zip(variants.windows(2));
    let of_one = |(correction, pair): (&Correction, &[Variant])| {
        let figures = pair[0].figures.iter().zip(&pair[1].figures);
        let (option, cause) = (correction.option(program.is_go()), correction.cause.clone());
        figures.filter_map(|(before, after)| step(before, after, (&option, &cause))).collect::<Vec<_>>()
    };
    pairs.flat_map(of_one).collect()
}

/// Compares two figures round by round; returns `None` if neither has a sample.
fn step(before: &ShownFigure, after: &ShownFigure, (option, cause): (&str, &str)) -> Option<Step> {
    let is_above = |figure: &ShownFigure| figure.samples.iter().flatten().all(|sample| *sample > 0.0);
    let pairs = after.samples.iter().zip(&before.samples);
    let ratios: Vec<f64> = pairs.filter_map(|(after, before)| Some((*after)? / (*before)?)).collect();
    let is_sound = is_above(before) && is_above(after);
    let interval = anytime_interval(&ratios, CONFIDENCE).filter(|_| is_sound);
    let shows = match (before.median, after.median, interval) {
        (None, None, _) => return None,
        (Some(_), Some(_), Some(Interval { low, high })) if low > 1.0 || high < 1.0 => Shows::Change,
        (Some(_), Some(_), Some(Interval { low, high }))
            if low >= 1.0 / (1.0 + NO_CHANGE) && high <= 1.0 + NO_CHANGE =>
        {
            Shows::Nothing
        }
        (Some(_), Some(_), Some(_)) => Shows::Open,
        (Some(_), Some(_), None) if before.low > Some(0.0) && after.low <= Some(0.0) => Shows::Vanishes,
        (Some(_), Some(_), None) => Shows::Open,
        // A word, such as an error, was printed by every execution.
        (None, Some(_), _) if before.words.is_some() => Shows::Change,
        (Some(_), None, _) if after.words.is_some() => Shows::Change,
        _ => return None,
    };
    Some(Step {
        option: option.to_owned(),
        cause: cause.to_owned(),
        figure: after.name.clone(),
        from: before.median,
        to: after.median,
        ratio: interval.and(median(&ratios)),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        shows,
        words: [before.words.clone(), after.words.clone()],
    })
}

fn sentences(program: &Program, variants: &[Variant], steps: &[Step]) -> Vec<String> {
    let mut said = Vec::new();
    for (variant, of) in variants.iter().zip(program.variants()) {
        if let Some(why) = &variant.failed {
            let which = of.last().map_or("As published", |correction| correction.does.as_str());
            said.push(format!("{which}: no figure, since it ends with: {why}"));
        }
    }
    for correction in &program.corrections {
        let option = correction.option(program.is_go());
        let own: Vec<&Step> = steps.iter().filter(|step| step.option == option).collect();
        said.extend(in_words(&own).map(|words| format!("{}: without it {words}.", correction.cause)));
    }
    said.extend(variants.iter().flat_map(|variant| {
        let name = variant.corrects.as_deref().unwrap_or("as published");
        variant.figures.iter().filter_map(move |figure| apart(name, figure))
    }));
    let figures = program.columns.iter().filter_map(|column| together(&column.head, variants, steps));
    said.extend(figures);
    said
}

/// Names the figures that a correction changes, the bound on its changes if there are none, or what is open; `None` without a
/// step.
fn in_words(steps: &[&Step]) -> Option<String> {
    let changes: Vec<String> =
        steps.iter().filter(|step| step.is_a_change()).map(|step| step.in_words()).collect();
    if !changes.is_empty() {
        return Some(changes.join(", "));
    }
    let widest = steps.iter().max_by(|one, other| {
        let most = |step: &Step| step.most().unwrap_or(f64::INFINITY);
        most(one).total_cmp(&most(other))
    })?;
    Some(match widest.most() {
        None => {
            format!("{} may change: it is not above 0 in every round, so there is no ratio", widest.figure)
        }
        Some(most) if most <= 1.0 + NO_CHANGE => {
            format!("no figure changes by more than {}", percent((most - 1.0).max(LEAST)))
        }
        Some(most) => {
            format!(
                "no change is shown, but a change of {} by up to {} × is not excluded",
                widest.figure,
                significant(most, 3)
            )
        }
    })
}

/// Names the steps that the rounds did not decide, and the load that hides them; `None` if all are decided.
fn open(program: &Program, steps: &[Step], rounds: usize, load: &Load) -> Option<String> {
    let of = |correction: &Correction| {
        let option = correction.option(program.is_go());
        let own = steps.iter().filter(|step| step.option == option && step.shows == Shows::Open);
        let figures: Vec<&str> = own.map(|step| step.figure.as_str()).collect();
        (!figures.is_empty()).then(|| format!("{} ({})", correction.does, figures.join(", ")))
    };
    let open: Vec<String> = program.corrections.iter().filter_map(of).collect();
    let why = match load.in_words().as_slice() {
        [] => "No load that could hide a change is known.".to_owned(),
        known => format!(
            "Meanwhile {}: such load hides changes, so repeat it with nothing else running.",
            listed(known)
        ),
    };
    (!open.is_empty()).then(|| format!("Not decided by {rounds} executions: {}. {why}", open.join("; ")))
}

/// Counts the executions whose threads did not run simultaneously.
fn apart(variant: &str, figure: &ShownFigure) -> Option<String> {
    let missing = figure.samples.iter().filter(|sample| sample.is_none()).count();
    (missing > 0).then(|| {
        let number = figure.samples.len();
        format!(
            "{}, {variant}: in {missing} of {number} executions its threads overlapped for less than half of the time; these are left out.",
            figure.name
        )
    })
}

/// Compares the first variant that has the figure with the last, and names the step that contributes most.
fn together(figure: &str, variants: &[Variant], steps: &[Step]) -> Option<String> {
    let of =
        |variant: &Variant| variant.figures.iter().find(|one| one.name == figure).and_then(|one| one.median);
    let mut known = variants.iter().filter_map(of);
    let (first, last) = (known.next()?, known.next_back()?);
    // A change in the other direction contributes nothing.
    let share = |step: &&Step| step.ratio.unwrap_or(1.0).ln() * (last / first).ln();
    let own = steps.iter().filter(|step| step.figure == figure && step.is_a_change() && share(step) > 0.0);
    let most = own.max_by(|one, other| share(one).total_cmp(&share(other)))?;
    Some(format!(
        "{figure}: {} before the corrections and {} after them; most of the difference is {}.",
        significant(first, 3),
        significant(last, 3),
        most.cause
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        serde_json::from_str(
            r#"{"name": "p", "experiment": "e", "file": "p.c", "flags": ["-O2"], "work": "w",
                "columns": [{"head": "time", "of": "t", "there": "5"}, {"head": "ratio", "of": "t", "over": "u", "there": "2"}],
                "corrections": [{"flag": "ONE", "does": "one", "cause": "no one"}, {"flag": "TWO", "does": "two", "cause": "no two"}]}"#,
        )
        .expect("a program")
    }

    fn rounds(time: f64, under: f64) -> Vec<Execution> {
        (0..FEWEST_ROUNDS)
            .map(|round| Ok(printed(&format!("t {}\nu {under}\n", time + round as f64 * 0.01))))
            .collect()
    }

    fn measured(executions: &[Vec<Execution>]) -> Measured {
        Measured::new(&program(), "cc".into(), "cc p.c".into(), executions, &Load::default())
    }

    #[test]
    fn the_built_in_programs_have_their_sources_and_their_macros() {
        let all = Program::all().expect("they can be read");
        assert!(all.len() >= 4);
        for program in &all {
            let text = FILES.text_of(&program.file).expect("its source");
            for correction in &program.corrections {
                let words = if program.is_go() {
                    format!("var {} ", correction.flag)
                } else {
                    format!("#ifdef {}\n", correction.flag)
                };
                assert!(text.contains(&words), "{}: {}", program.file, correction.flag);
            }
            for column in &program.columns {
                for figure in std::iter::once(&column.of).chain(&column.over).chain(&column.together) {
                    assert!(text.contains(&format!("\"{figure}\"")), "{}: {figure}", program.file);
                }
            }
            assert!(crate::Experiment::named(&program.experiment).is_some(), "{}", program.experiment);
            assert_eq!(program.variants().count(), program.corrections.len() + 1);
        }
    }

    #[test]
    fn a_gap_is_attributed_to_the_correction_that_makes_most_of_it() {
        let measured = measured(&[rounds(10.0, 2.0), rounds(10.0, 2.0), rounds(5.0, 2.0)]);
        let ratio = |at: usize| (measured.steps[at].figure.as_str(), measured.steps[at].ratio);
        assert_eq!(ratio(0), ("time", Some(1.0)));
        assert_eq!([0, 2].map(|at| measured.steps[at].shows), [Shows::Nothing, Shows::Change]);
        assert_eq!(
            measured.sentences,
            [
                "no one: without it no figure changes by more than 1.0 %.",
                "no two: without it time is 2.00 × less [1.98, 2.01], ratio is 2.00 × less [1.98, 2.01].",
                "time: 10.0 before the corrections and 5.03 after them; most of the difference is no two.",
                "ratio: 5.01 before the corrections and 2.51 after them; most of the difference is no two."
            ]
        );
        assert_eq!(measured.variants[1].options, ["-DONE"]);
        assert!(measured.is_decided());
    }

    #[test]
    fn a_variant_that_fails_has_no_figure_and_says_why() {
        let failed = vec![Err("killed by SIGABRT".to_owned()); FEWEST_ROUNDS];
        let all = measured(&[failed, rounds(10.0, 2.0), rounds(5.0, 2.0)]);
        assert!(all.variants[0].figures.is_empty() && all.steps.len() == 2);
        assert_eq!(all.sentences[0], "As published: no figure, since it ends with: killed by SIGABRT");
        let mut some = rounds(10.0, 2.0);
        some[3] = Err("it was too slow".to_owned());
        let one = measured(&[some]);
        assert!(one.variants[0].figures.is_empty(), "one that fails now and then has none either");
    }

    /// A correction that removes a figure completely changes it, although its ratio to zero is undefined. So does one that
    /// replaces a word.
    #[test]
    fn what_becomes_nothing_and_what_was_a_word_are_changes() {
        let words = vec![Ok(printed("t EINVAL\nu 2")); FEWEST_ROUNDS];
        let measured = measured(&[words, rounds(9.0, 2.0), rounds(-0.02, 2.0)]);
        assert_eq!(measured.variants[0].figures[0].words.as_deref(), Some("EINVAL"));
        assert_eq!(measured.variants[0].figures[1].median, None, "no ratio of a word");
        assert_eq!(
            measured.sentences,
            [
                "no one: without it time is 9.02, and EINVAL with it.",
                "no two: without it time is 0 in these rounds (9.02 with it), ratio is 0 in these rounds (4.51 with it).",
            ]
        );
        assert!(printed("fork: Resource temporarily unavailable\nread: error\n").is_empty());
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        let measured = measured(&[rounds(9.0, 2.0), rounds(9.0, -0.01)]);
        assert_eq!(measured.variants[1].figures[1].median, None);
        assert_eq!(measured.sentences.len(), 1, "{:?}", measured.sentences);
    }

    #[test]
    fn a_step_that_the_rounds_do_not_decide_says_what_they_leave_open() {
        let noisy = (0..FEWEST_ROUNDS)
            .map(|round| Ok(printed(&format!("t {}\nu 2\n", if round % 2 == 0 { 5 } else { 20 }))));
        let executions = [rounds(10.0, 2.0), noisy.collect()];
        let one = measured(&executions);
        assert!(!one.is_decided());
        assert_eq!(
            one.sentences,
            [
                "no one: without it no change is shown, but a change of ratio by up to 3.50 × is not excluded.",
                "Not decided by 6 executions: one (time, ratio). No load that could hide a change is known."
            ]
        );
        let load = Load { beside: vec![0.0, 2.0, 3.0, 3.0, 3.0, 4.0], stolen: 1.23 };
        let loaded = Measured::new(&program(), String::new(), String::new(), &executions, &load);
        assert_eq!(
            loaded.sentences[1],
            "Not decided by 6 executions: one (time, ratio). Meanwhile other tasks ran at the beginning of 5 of 6 rounds (3 in the median) \
             and the hypervisor gave other guests 1.2 s: such load hides changes, so repeat it with nothing else running."
        );
    }

    #[test]
    fn what_is_open_beside_a_change_is_said() {
        let noisy = (0..FEWEST_ROUNDS)
            .map(|round| Ok(printed(&format!("t 5\nu {}\n", if round % 2 == 0 { 0.5 } else { 2.0 }))));
        let one = measured(&[rounds(10.0, 2.0), noisy.collect()]);
        assert_eq!(one.steps.iter().map(|step| step.shows).collect::<Vec<_>>(), [Shows::Change, Shows::Open]);
        let last = one.sentences.last().map(String::as_str);
        assert_eq!(
            last,
            Some("Not decided by 6 executions: one (ratio). No load that could hide a change is known.")
        );
    }

    #[test]
    fn an_execution_whose_threads_were_apart_has_no_figure() {
        let mut program = program();
        program.columns[0].together = vec!["both".to_owned()];
        let of = |apart: usize| -> Vec<Execution> {
            (0..9)
                .map(|at| Ok(printed(&format!("t 5\nu 2\nboth {}\n", if at < apart { 0.1 } else { 0.9 }))))
                .collect()
        };
        let measured =
            Measured::new(&program, String::new(), String::new(), &[of(2), of(4)], &Load::default());
        assert_eq!([0, 1].map(|at| measured.variants[at].figures[0].median), [Some(5.0), None]);
        assert_eq!(
            measured.sentences[1..],
            [
                "time, as published: in 2 of 9 executions its threads overlapped for less than half of the time; these are left out."
            ]
        );
    }
}
