//! The programs of the published experiments, written anew after their descriptions (`published/` of this crate), as they were published and
//! with each correction: which variants there are, and what their figures say. Who executes them hands what they print to [`Measured::new`].

mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tollgate_model::stats::{median, median_interval};
use tollgate_output::figures::{compared_within, significant};

use crate::data::Files;

static FILES: Files = Files::of(include_bytes!(concat!(env!("OUT_DIR"), "/published.deflated")));
/// The file that describes the others.
const LIST: &str = "programs.json";
/// Executions of each variant: as many as an interval needs.
pub const ROUNDS: usize = 6;
const CONFIDENCE: f64 = 0.95;

/// A published program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name here.
    pub name: String,
    /// The experiment that it is of.
    pub experiment: String,
    /// Its source, in C or Go.
    pub file: String,
    /// The compiler's options, as far as the source names them.
    pub flags: Vec<String>,
    /// What it does.
    pub work: String,
    /// What is shown of what it prints.
    pub columns: Vec<Column>,
    /// What is done better, one after the other.
    pub corrections: Vec<Correction>,
}

/// A figure, or the ratio of two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its heading.
    pub head: String,
    /// The figure, by the name that the program prints.
    pub of: String,
    /// It is divided by this one.
    #[serde(default)]
    pub over: Option<String>,
    /// As it was published.
    pub there: String,
}

/// A change of the program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// The macro that makes it, or the variable in Go.
    pub flag: String,
    /// What it does.
    pub does: String,
    /// What is wrong without it.
    pub cause: String,
}

/// What an execution printed: figures and words by their names; or why it printed none.
pub type Execution = Result<BTreeMap<String, String>, String>;

impl Program {
    /// All of them.
    ///
    /// # Errors
    /// Of the file that describes them.
    pub fn all() -> Result<Vec<Self>, String> {
        serde_json::from_str(FILES.text_of(LIST).unwrap_or_default())
            .map_err(|error| format!("{LIST}: {error}"))
    }

    /// The files that are compiled, each with its text.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        FILES.all().filter(|(name, _)| *name == self.file || name.ends_with(".h"))
    }

    /// Whether it is in Go.
    pub fn is_go(&self) -> bool {
        self.file.ends_with(".go")
    }

    /// What each variant corrects: nothing, the first, the first two, and so on.
    pub fn variants(&self) -> impl Iterator<Item = &[Correction]> {
        (0..=self.corrections.len()).map(|number| &self.corrections[..number])
    }
}

impl Correction {
    /// The option of a compiler.
    pub fn option(&self, is_go: bool) -> String {
        match is_go {
            true => format!("-ldflags=-X main.{}=1", self.flag),
            false => format!("-D{}", self.flag),
        }
    }
}

/// The lines of a program's output that are a name and a figure or a word.
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
    /// How often each variant was executed, in alternation.
    pub rounds: usize,
    /// The programs.
    pub programs: Vec<Measured>,
}

/// A program as it was published, and with its corrections added one after the other.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ProgramAsPublished"))]
pub struct Measured {
    /// Its name.
    pub program: String,
    /// The published experiment that it is of.
    pub experiment: String,
    /// What it does, and the units of its figures.
    pub work: String,
    /// The compiler's own first line.
    pub compiler: Option<String>,
    /// How it is compiled without a correction.
    pub command: Option<String>,
    /// Why it was not executed.
    pub missing: Option<String>,
    /// Its figures as they were published: a text for each of their names.
    pub there: BTreeMap<String, String>,
    /// The variants: as published, then with one correction more each.
    pub variants: Vec<Variant>,
    /// What each correction changes.
    pub steps: Vec<Step>,
    /// What follows: where the gap between the published program and the corrected one comes from.
    pub sentences: Vec<String>,
    /// The heads of the columns, in order.
    #[serde(skip)]
    heads: Vec<String>,
}

/// A program with some of its corrections.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VariantAsPublished"))]
pub struct Variant {
    /// What it corrects that the one before it does not; null of the published program.
    pub corrects: Option<String>,
    /// The compiler's options for all that it corrects.
    pub options: Vec<String>,
    /// Its figures.
    pub figures: Vec<ShownFigure>,
    /// Why it has none, such as the signal that killed it.
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
    /// The upper end.
    pub high: Option<f64>,
    /// What each execution printed, in the order of the rounds.
    pub samples: Vec<f64>,
    /// What it printed in the place of a figure, such as `EINVAL`.
    pub words: Option<String>,
}

/// What a correction changes of a figure.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StepAsPublished"))]
pub struct Step {
    /// The option of the correction.
    pub option: String,
    /// What is wrong without it.
    pub cause: String,
    /// The name of the figure.
    pub figure: String,
    /// The figure with the correction over the one without it: the median of the rounds' ratios.
    pub ratio: f64,
    /// The lower end of its 95 % CI.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Step {
    /// Whether the interval has no 1 in it.
    fn is_a_change(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    fn in_words(&self) -> String {
        let size = compared_within(self.ratio, [self.low, self.high], ["more", "less"]);
        format!("{} {size}", self.figure)
    }
}

impl Measured {
    /// A program that was not executed, and why.
    pub fn missing(program: &Program, why: String) -> Self {
        Self {
            program: program.name.clone(),
            experiment: program.experiment.clone(),
            work: program.work.clone(),
            compiler: None,
            command: None,
            missing: Some(why),
            there: program.columns.iter().map(|column| (column.head.clone(), column.there.clone())).collect(),
            variants: Vec::new(),
            steps: Vec::new(),
            sentences: Vec::new(),
            heads: program.columns.iter().map(|column| column.head.clone()).collect(),
        }
    }

    /// What executions say: those of each variant, in the order of the rounds.
    pub fn new(program: &Program, compiler: String, command: String, executions: &[Vec<Execution>]) -> Self {
        let variants: Vec<Variant> = program
            .variants()
            .zip(executions)
            .map(|(corrections, executions)| variant(program, corrections, executions))
            .collect();
        let steps = steps(program, &variants);
        let sentences = sentences(program, &variants, &steps);
        let missing = None;
        let shown = Self::missing(program, String::new());
        Self {
            compiler: Some(compiler),
            command: Some(command),
            missing,
            variants,
            steps,
            sentences,
            ..shown
        }
    }
}

fn variant(program: &Program, corrections: &[Correction], executions: &[Execution]) -> Variant {
    let printed: Vec<_> = executions.iter().filter_map(|execution| execution.as_ref().ok()).collect();
    // One that fails now and then has no figure: its rounds are not those of the others.
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
        let samples: Vec<f64> = printed.iter().filter_map(|one| self.value(one)).collect();
        let is_whole = !samples.is_empty() && samples.len() == printed.len();
        let samples = if is_whole { samples } else { Vec::new() };
        let words = printed.first().and_then(|one| one.get(&self.of));
        let words = words.filter(|word| self.over.is_none() && word.parse::<f64>().is_err()).cloned();
        let interval = median_interval(&samples, CONFIDENCE);
        ShownFigure {
            name: self.head.clone(),
            median: median(&samples),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            samples,
            words,
        }
    }

    fn value(&self, printed: &BTreeMap<String, String>) -> Option<f64> {
        let number = |name: &String| printed.get(name)?.parse::<f64>().ok();
        let over = self.over.as_ref().map_or(Some(1.0), number)?;
        Some(number(&self.of)? / over).filter(|value| value.is_finite())
    }
}

/// Each correction against the variant before it, figure by figure, where both have it.
fn steps(program: &Program, variants: &[Variant]) -> Vec<Step> {
    let pairs = program.corrections.iter().zip(variants.windows(2));
    let of_one = |(correction, pair): (&Correction, &[Variant])| {
        let figures = pair[0].figures.iter().zip(&pair[1].figures);
        let (option, cause) = (correction.option(program.is_go()), correction.cause.clone());
        figures.filter_map(|(before, after)| change(before, after, (&option, &cause))).collect::<Vec<_>>()
    };
    pairs.flat_map(of_one).collect()
}

/// The ratio of two figures, round by round; none where one of them is not above zero, as a difference of free memory may be.
fn change(before: &ShownFigure, after: &ShownFigure, (option, cause): (&str, &str)) -> Option<Step> {
    let ratios: Vec<f64> =
        after.samples.iter().zip(&before.samples).map(|(after, before)| after / before).collect();
    let interval = median_interval(&ratios, CONFIDENCE)?;
    let is_sound = [before, after].iter().all(|figure| figure.samples.iter().all(|sample| *sample > 0.0));
    let (figure, ratio) = (after.name.clone(), median(&ratios)?);
    let (low, high) = is_sound.then_some((interval.low, interval.high))?;
    Some(Step { option: option.to_owned(), cause: cause.to_owned(), figure, ratio, low, high })
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
        let changes: Vec<String> =
            own.iter().filter(|step| step.is_a_change()).map(|step| step.in_words()).collect();
        said.extend(match changes.as_slice() {
            [] if own.is_empty() => None,
            [] => {
                Some(format!("{}: without it nothing changes that {ROUNDS} rounds show.", correction.cause))
            }
            changes => Some(format!("{}: without it {}.", correction.cause, changes.join(", "))),
        });
    }
    let figures = program.columns.iter().filter_map(|column| together(&column.head, variants, steps));
    said.extend(figures);
    said
}

/// From the first variant that has the figure to the last, and what makes most of that.
fn together(figure: &str, variants: &[Variant], steps: &[Step]) -> Option<String> {
    let of =
        |variant: &Variant| variant.figures.iter().find(|one| one.name == figure).and_then(|one| one.median);
    let mut known = variants.iter().filter_map(of);
    let (first, last) = (known.next()?, known.next_back()?);
    // A change of the other sign makes none of it.
    let share = |step: &&Step| step.ratio.ln() * (last / first).ln();
    let own = steps.iter().filter(|step| step.figure == figure && step.is_a_change() && share(step) > 0.0);
    let most = own.max_by(|one, other| share(one).total_cmp(&share(other)))?;
    Some(format!(
        "{figure}: {} before the corrections and {} behind them; most of the gap is {}.",
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
        (0..ROUNDS)
            .map(|round| Ok(printed(&format!("t {}\nu {under}\n", time + round as f64 * 0.01))))
            .collect()
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
                for figure in std::iter::once(&column.of).chain(&column.over) {
                    assert!(text.contains(&format!("\"{figure}\"")), "{}: {figure}", program.file);
                }
            }
            assert!(crate::Experiment::named(&program.experiment).is_some(), "{}", program.experiment);
            assert_eq!(program.variants().count(), program.corrections.len() + 1);
        }
    }

    #[test]
    fn a_gap_is_attributed_to_the_correction_that_makes_most_of_it() {
        let measured = Measured::new(
            &program(),
            "cc".into(),
            "cc p.c".into(),
            &[rounds(10.0, 2.0), rounds(10.0, 2.0), rounds(5.0, 2.0)],
        );
        let ratio = |at: usize| (measured.steps[at].figure.as_str(), measured.steps[at].ratio);
        assert_eq!(ratio(0), ("time", 1.0));
        assert!(measured.steps[2].is_a_change() && !measured.steps[0].is_a_change());
        assert_eq!(
            measured.sentences,
            [
                "no one: without it nothing changes that 6 rounds show.",
                "no two: without it time 2.00 × less [1.99, 2.00], ratio 2.00 × less [1.99, 2.00].",
                "time: 10.0 before the corrections and 5.03 behind them; most of the gap is no two.",
                "ratio: 5.01 before the corrections and 2.51 behind them; most of the gap is no two."
            ]
        );
        assert_eq!(measured.variants[1].options, ["-DONE"]);
    }

    #[test]
    fn a_variant_that_fails_has_no_figure_and_says_why() {
        let failed = vec![Err("killed by SIGABRT".to_owned()); ROUNDS];
        let measured = Measured::new(
            &program(),
            "cc".into(),
            "cc p.c".into(),
            &[failed, rounds(10.0, 2.0), rounds(5.0, 2.0)],
        );
        assert!(measured.variants[0].figures.is_empty() && measured.steps.len() == 2);
        assert_eq!(measured.sentences[0], "As published: no figure, since it ends with: killed by SIGABRT");
        let mut some = rounds(10.0, 2.0);
        some[3] = Err("it was too slow".to_owned());
        let measured = Measured::new(&program(), String::new(), String::new(), &[some]);
        assert!(measured.variants[0].figures.is_empty(), "one that fails now and then has none either");
    }

    #[test]
    fn words_and_figures_that_are_not_above_zero_make_no_step() {
        let words = vec![Ok(printed("t EINVAL\nu 2")); ROUNDS];
        let measured = Measured::new(
            &program(),
            String::new(),
            String::new(),
            &[words, rounds(-1.0, 2.0), rounds(5.0, 2.0)],
        );
        assert_eq!(measured.variants[0].figures[0].words.as_deref(), Some("EINVAL"));
        assert_eq!(measured.variants[0].figures[1].median, None, "no ratio of a word");
        assert!(measured.steps.is_empty(), "{:?}", measured.steps);
        assert!(printed("fork: Resource temporarily unavailable\nread: error\n").is_empty());
    }
}
