//! `versus --bisect GOOD BAD`: the first commit after which a command does more or less, or takes another time.
//!
//! git(1) chooses the commits. Where a guest counts a difference between the two ends, a commit is judged by its counts, else by its
//! time in alternation with the good one. It is bad beyond the middle between the two ends.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use tollgate_model::compare::Verdict;
use tollgate_model::stats::Interval;
use tollgate_model::text::{excerpt, listed, plainly};
use tollgate_model::versus::{INSTRUCTIONS, REAL, USER_INSTRUCTIONS};
use tollgate_model::{Case, Run};
use tollgate_os::paths::read_regular;
use tollgate_output::figures;
use tollgate_view::comparison::Comparison;
use tollgate_view::versus::revisions::{BisectStep, Bisected, CommitFigure};

use super::counts::of_guest;
use super::given::Commands;
use super::measure;
use super::revisions::git::{Commit, Repository};
use super::revisions::{self, Side};
use crate::args::ShowFormat;
use crate::args::versus::{LengthArgs, ResultArgs, VersusArgs};
use crate::failure::Failure;
use crate::{out, say};

/// The time for which a commit is timed at first. It doubles after each attempt that leaves the commit open.
const TIME: Duration = Duration::from_secs(30);
const ATTEMPTS: u32 = 4;
const MOST_LOG: u64 = 1 << 20;

/// Finds the commit and prints it.
///
/// # Errors
/// A good commit that is not an ancestor of the bad one; ends that do not differ, or have no figure; a signal; and a commit that is not
/// found because those before it cannot be judged.
pub fn execute(args: &VersusArgs) -> Result<(), Failure> {
    let [good, bad] = args.revisions.bisect.as_slice() else {
        return Err(Failure::input("--bisect takes two commits, such as --bisect v1.0 HEAD"));
    };
    if !matches!(args.result.format, ShowFormat::Table | ShowFormat::Json) {
        return Err(Failure::input("--bisect prints text or JSON; omit --format"));
    }
    tollgate_engine::interrupt::install();
    let repository = Repository::open()?;
    let is_quiet = args.result.quiet;
    let args = &VersusArgs { result: ResultArgs { quiet: true, ..args.result.clone() }, ..args.clone() };
    let [good, bad] = [repository.commit(good)?, repository.commit(bad)?];
    if !repository.is_ancestor(&good, &bad)? {
        let turned = repository.is_ancestor(&bad, &good)?;
        let advice = if turned {
            "; give them in the other order"
        } else {
            "; give a commit that both have in common"
        };
        let [good, bad] = [&good, &bad].map(|commit| excerpt(&commit.subject));
        return Err(Failure::input(format!(
            "--bisect: the good commit ({good}) is not an ancestor of the bad one ({bad}){advice}"
        )));
    }
    if good.id == bad.id {
        return Err(Failure::input(
            "--bisect: both ends are one commit; name a good one and a later bad one",
        ));
    }
    let mut search = Search {
        args,
        is_quiet,
        repository,
        goods: vec![good.clone()],
        bad: bad.clone(),
        skipped: BTreeSet::new(),
        steps: Vec::new(),
    };
    search.resume()?;
    let ends = search.ends(&good, &bad)?;
    search.say(&ends.said());
    let open = loop {
        let left = search.repository.candidates(&search.bad, &search.goods)?;
        let Some(next) = left.iter().find(|commit| !search.skipped.contains(&commit.id)) else { break left };
        search.say(&format!("about {} left: {} {}", left.len(), next.short(), excerpt(&next.subject)));
        let judged = search.judge(&ends, next)?;
        search.keep(next, judged)?;
    };
    search.conclude(&ends, &open)
}

/// A commit, and how it was judged.
struct Step {
    commit: Commit,
    judged: Judged,
}

impl Step {
    fn record(&self) -> BisectStep<'_> {
        let figure = match self.judged {
            Judged::Good(figure) | Judged::Bad(figure) => figure,
            Judged::Skipped => None,
        };
        BisectStep { verdict: self.judged.word(), judged: CommitFigure { commit: &self.commit.id, figure } }
    }
}

/// A judgement about a commit, with its figure.
#[derive(Clone, Copy, PartialEq)]
enum Judged {
    Good(Option<f64>),
    Bad(Option<f64>),
    Skipped,
}

impl Judged {
    /// The word of git-bisect(1).
    fn word(self) -> &'static str {
        match self {
            Self::Good(_) => "good",
            Self::Bad(_) => "bad",
            Self::Skipped => "skip",
        }
    }
}

/// The two ends, by which the others are judged.
struct Ends {
    good: Commit,
    bad: Commit,
    by: By,
    /// Counts of the good end and of the bad one; for times 1 and the ratio.
    figures: [f64; 2],
}

/// How commits are judged.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// The median count of this case.
    Counts(&'static str),
    /// The ratio of the real time to that of the good end.
    Time,
}

impl Ends {
    fn middle(&self) -> f64 {
        (self.figures[0] * self.figures[1]).sqrt()
    }

    fn is_bad(&self, figure: f64) -> bool {
        (figure > self.middle()) == (self.figures[1] > self.figures[0])
    }

    fn shown(&self, figure: f64) -> String {
        match self.by {
            By::Counts(_) => format!("{} instructions", figures::thousands(&format!("{figure:.0}"))),
            By::Time if figure == 1.0 => "taken as 1".to_owned(),
            By::Time => format!("{} × its time", figures::ratio(figure)),
        }
    }

    fn change(&self) -> String {
        let change = self.figures[1] / self.figures[0] - 1.0;
        format!("{}{}", if change < 0.0 { "-" } else { "+" }, figures::percent(change.abs()))
    }

    fn said(&self) -> String {
        let by = if self.by == By::Time { "by time" } else { "by counts" };
        let [good, bad] = self.figures.map(|figure| self.shown(figure));
        format!(
            "{by}: {} good, {good}; {} bad, {bad} ({})",
            self.good.short(),
            self.bad.short(),
            self.change()
        )
    }
}

struct Search<'a> {
    /// The arguments of each comparison.
    args: &'a VersusArgs,
    is_quiet: bool,
    repository: Repository,
    goods: Vec<Commit>,
    bad: Commit,
    skipped: BTreeSet<String>,
    steps: Vec<Step>,
}

impl Search<'_> {
    fn say(&self, sentence: &str) {
        if !self.is_quiet {
            say::say(sentence);
        }
    }

    fn in_guest(&self) -> VersusArgs {
        let args = of_guest(self.args);
        VersusArgs { result: ResultArgs { by: None, ..args.result.clone() }, ..args }
    }

    /// Measures these commits. `None` if they execute equal files.
    fn measured(&self, args: &VersusArgs, commits: &[&Commit]) -> Result<Option<Vec<Run>>, Failure> {
        let sides: Vec<Side> = commits.iter().map(|commit| Side::named(&commit.id)).collect();
        let commands = Commands::of(args, Some(&sides))?;
        let found = measure(args, Some(sides), Some(commands))?;
        if let Some(signal) = found.as_ref().and_then(|found| found.interrupted) {
            return Err(Failure::Interrupted(signal));
        }
        Ok(found.map(|found| found.runs))
    }

    fn ends(&self, good: &Commit, bad: &Commit) -> Result<Ends, Failure> {
        let same = || {
            Failure::input(
                "--bisect: both ends execute equal files, so no commit between them changed the command",
            )
        };
        let ends = |by, figures| Ok(Ends { good: good.clone(), bad: bad.clone(), by, figures });
        match self.measured(&self.in_guest(), &[good, bad]) {
            Ok(Some(runs)) => {
                for case in [INSTRUCTIONS, USER_INSTRUCTIONS] {
                    if let Some((figures, true)) = counts(&runs, case) {
                        return ends(By::Counts(case), figures);
                    }
                }
                self.say("the ends count the same, so commits are judged by time");
            }
            Ok(None) => return Err(same()),
            Err(Failure::Input(why) | Failure::Failed(why)) => self.say(&format!("not by counts: {why}")),
            Err(other) => return Err(other),
        }
        let found = self.timed(&[good, bad], |interval| !interval.contains(1.0))?.ok_or_else(same)?;
        match found {
            Timed { verdict, ratio, .. } if verdict.is_difference() => ends(By::Time, [1.0, ratio]),
            Timed { interval, .. } => Err(Failure::Undecided(format!(
                "--bisect: the ends do not differ by what could be found: ratio {}",
                interval.map_or("unknown".to_owned(), |ends| figures::ratio_span(ends.low, ends.high))
            ))),
        }
    }

    /// The second commit's time over the first's, as soon as `is_enough`. `None` if both execute equal files.
    fn timed(
        &self,
        commits: &[&Commit],
        is_enough: impl Fn(Interval) -> bool,
    ) -> Result<Option<Timed>, Failure> {
        let first = self.args.length.time.unwrap_or(TIME);
        let mut found = Timed { verdict: Verdict::Inconclusive, ratio: 1.0, interval: None };
        for attempt in 0..ATTEMPTS {
            let length =
                LengthArgs { time: Some(first * 2_u32.pow(attempt)), runs: None, ..self.args.length.clone() };
            let args = VersusArgs { length, ..self.args.clone() };
            let Some(runs) = self.measured(&args, commits)? else { return Ok(None) };
            let [base, other] = runs.as_slice() else { return Err(Failure::input("a commit has no figure")) };
            let comparison = Comparison::above(base, other, args.result.threshold.unwrap_or(0.0));
            if let Some(row) = comparison.row(&Case::plain(REAL)) {
                let result = &row.result;
                found = Timed { verdict: result.verdict, ratio: result.ratio, interval: result.interval };
            }
            if found.interval.is_some_and(&is_enough) {
                break;
            }
        }
        Ok(Some(found))
    }

    fn judge(&self, ends: &Ends, commit: &Commit) -> Result<Judged, Failure> {
        match self.figure(ends, commit) {
            Ok(judged) => Ok(judged),
            // Anything else is not the commit's: a full disk, say, would skip the others too.
            Err(Failure::Failed(why)) => {
                self.say(&format!("skipped: {why}"));
                Ok(Judged::Skipped)
            }
            Err(other) => Err(other),
        }
    }

    fn figure(&self, ends: &Ends, commit: &Commit) -> Result<Judged, Failure> {
        // An end may be executed again under another commit's name.
        let known = [
            (&ends.good, Judged::Good as fn(_) -> _, ends.figures[0]),
            (&ends.bad, Judged::Bad, ends.figures[1]),
        ];
        for (end, judged, figure) in known {
            let has_its_files = self.repository.tree(&end.id)? == self.repository.tree(&commit.id)?;
            if has_its_files || revisions::execute_equal_files(self.args, [&end.id, &commit.id])? {
                return Ok(judged(Some(figure)));
            }
        }
        let judged = |figure: f64| {
            if ends.is_bad(figure) { Judged::Bad(Some(figure)) } else { Judged::Good(Some(figure)) }
        };
        if let By::Counts(case) = ends.by {
            let runs = self.measured(&self.in_guest(), &[commit])?.unwrap_or_default();
            let figure = runs.first().and_then(|run| median(run, case));
            return figure
                .map(judged)
                .ok_or_else(|| Failure::Failed(format!("{} has no count", commit.short())));
        }
        let middle = ends.middle();
        let found = self.timed(&[&ends.good, commit], |interval| !interval.contains(middle))?;
        let is_decided = |found: &Timed| found.interval.is_some_and(|interval| !interval.contains(middle));
        match found {
            Some(found) if is_decided(&found) => Ok(judged(found.ratio)),
            Some(_) => Err(Failure::Failed(format!(
                "{}: its time is undecided; give it more --time",
                commit.short()
            ))),
            None => Ok(Judged::Good(Some(1.0))),
        }
    }

    fn keep(&mut self, commit: &Commit, judged: Judged) -> Result<(), Failure> {
        let word = judged.word();
        self.learn(commit, judged);
        self.say(&format!("{word}: {} {}", commit.short(), excerpt(&commit.subject)));
        self.log(&format!("git bisect {word} {}\n", commit.id))
    }

    fn log(&self, lines: &str) -> Result<(), Failure> {
        let Some(file) = &self.args.revisions.bisect_log else { return Ok(()) };
        let log = OpenOptions::new().append(true).create(true).open(file);
        let kept = log.and_then(|mut log| log.write_all(lines.as_bytes()));
        kept.map_err(|why| Failure::input(format!("--bisect-log {}: {}", file.display(), plainly(&why))))
    }

    fn learn(&mut self, commit: &Commit, judged: Judged) {
        self.steps.push(Step { commit: commit.clone(), judged });
        match judged {
            Judged::Good(_) => self.goods.push(commit.clone()),
            Judged::Bad(_) => self.bad = commit.clone(),
            Judged::Skipped => drop(self.skipped.insert(commit.id.clone())),
        }
    }

    /// Begins a log, or learns what an earlier search wrote to it: lines of `git bisect log`, and the command as a comment.
    fn resume(&mut self) -> Result<(), Failure> {
        let Some(file) = &self.args.revisions.bisect_log else { return Ok(()) };
        let wrong = |why: String| Failure::input(format!("--bisect-log {}: {why}", file.display()));
        let end = self.bad.id.clone();
        let begins = format!("# tollgate: {:?} {:?}", self.args.commands, self.args.revisions.build);
        let text = match read_regular(file, MOST_LOG) {
            Ok(text) => String::from_utf8(text).map_err(|_| wrong("it is not text".to_owned()))?,
            Err(_) if !file.exists() => String::new(),
            Err(why) => return Err(wrong(why.to_string())),
        };
        if text.is_empty() {
            let ends = format!("git bisect start '{}' '{}'", self.bad.id, self.goods[0].id);
            return self.log(&format!("{begins}\n{ends}\n"));
        }
        if !text.ends_with('\n') {
            self.log("\n")?;
        }
        for (number, line) in (1..).zip(text.lines()) {
            let other =
                || wrong(format!("line {number} is of another search: {}; name another file", excerpt(line)));
            let Some(said) = line.strip_prefix("git bisect ") else {
                if line.starts_with("# tollgate: ") && line != begins {
                    return Err(other());
                }
                continue;
            };
            let words = tollgate_os::words::split(said).map_err(|_| other())?;
            let commit = |name: &String| self.repository.commit(name).map_err(|_| other());
            match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["start"] => {}
                ["start", _, _] => {
                    let is_one = [commit(&words[1])?.id, commit(&words[2])?.id]
                        == [end.clone(), self.goods[0].id.clone()];
                    is_one.then_some(()).ok_or_else(other)?;
                }
                [word @ ("good" | "bad" | "skip"), _] => {
                    let (commit, is_bad) = (commit(&words[1])?, *word == "bad");
                    let is_between = self.repository.is_ancestor(&self.goods[0], &commit)?
                        && self.repository.is_ancestor(&commit, &self.bad)?;
                    if is_bad && !is_between {
                        return Err(other());
                    }
                    let judged = match *word {
                        "good" => Judged::Good(None),
                        "bad" => Judged::Bad(None),
                        _ => Judged::Skipped,
                    };
                    self.learn(&commit, judged);
                }
                _ => return Err(other()),
            }
        }
        for good in &self.goods {
            if self.repository.is_ancestor(&self.bad, good)? {
                let [good, bad] = [good.short(), self.bad.short()];
                return Err(wrong(format!(
                    "it has {bad} as bad, and the later {good} as good; name another file"
                )));
            }
        }
        if !self.steps.is_empty() {
            let known = figures::count(self.steps.len(), "commit", "commits");
            self.say(&format!("{known} known from {}", file.display()));
        }
        Ok(())
    }

    fn known(&self, ends: &Ends, commit: &Commit) -> Option<f64> {
        let of_end = [(&ends.good, ends.figures[0]), (&ends.bad, ends.figures[1])];
        let of_end = of_end.into_iter().find(|(end, _)| end.id == commit.id).map(|(_, figure)| figure);
        let step = self.steps.iter().rev().find(|step| step.commit.id == commit.id);
        of_end.or_else(|| match step?.judged {
            Judged::Good(figure) | Judged::Bad(figure) => figure,
            Judged::Skipped => None,
        })
    }

    /// Prints the first bad commit, with its figure and that of the commit before.
    fn conclude(&self, ends: &Ends, open: &[Commit]) -> Result<(), Failure> {
        let before = self.repository.parents(&self.bad)?;
        let before: Vec<(Commit, Option<f64>)> = before
            .into_iter()
            .map(|commit| {
                let figure = self.known(ends, &commit);
                (commit, figure)
            })
            .collect();
        let figure = self.known(ends, &self.bad);
        if self.args.result.format == ShowFormat::Json {
            out::print_json(&Bisected {
                first_bad: &self.bad.id,
                subject: &self.bad.subject,
                is_exact: open.is_empty(),
                by: match ends.by {
                    By::Counts(case) => case,
                    By::Time => REAL,
                },
                figure,
                before: before
                    .iter()
                    .map(|(commit, figure)| CommitFigure { commit: &commit.id, figure: *figure })
                    .collect(),
                steps: self.steps.iter().map(Step::record).collect(),
            })?;
        } else {
            let shown =
                |figure: Option<f64>| figure.map_or("not measured".to_owned(), |figure| ends.shown(figure));
            let mut text = format!(
                "{} is the first bad commit: {}\n  {}\n",
                self.bad.id,
                excerpt(&self.bad.subject),
                shown(figure)
            );
            for (commit, figure) in &before {
                text += &format!(
                    "  before, {} {}: {}\n",
                    commit.short(),
                    excerpt(&commit.subject),
                    shown(*figure)
                );
            }
            text += &format!(
                "  {} judged, {}\n",
                figures::count(self.steps.len(), "commit", "commits"),
                ends.change()
            );
            out::print(&text)?;
        }
        if open.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = open.iter().map(Commit::short).collect();
        Err(Failure::Undecided(format!("it may also be one that was skipped: {}", listed(&names))))
    }
}

/// A comparison of real times.
struct Timed {
    verdict: Verdict,
    ratio: f64,
    interval: Option<Interval>,
}

fn median(run: &Run, case: &str) -> Option<f64> {
    let measured = run.measurement(&Case::plain(case))?.outcome.measured()?;
    tollgate_model::stats::median(&measured.samples)
}

/// The counts of a case in two runs, and whether they differ.
fn counts(runs: &[Run], case: &str) -> Option<([f64; 2], bool)> {
    let [good, bad] = runs else { return None };
    let figures = [median(good, case)?, median(bad, case)?];
    let comparison = Comparison::above(good, bad, 0.0);
    let differ = comparison.row(&Case::plain(case))?.result.verdict.is_difference();
    Some((figures, differ))
}
