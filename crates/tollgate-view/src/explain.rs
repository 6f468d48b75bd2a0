//! A benchmark explained: the operation, its figure on this machine, what affects it here and in which state, how to avoid it,
//! and where it is described.

mod bench;
mod functions;
mod session;

use std::borrow::Cow;

use tollgate_engine::{Architecture, Timed, Topology};
use tollgate_model::measurement::pairs;
use tollgate_model::stats::quantile;
use tollgate_model::{Case, Effect, Fact, Facts, Reach};
use tollgate_output::figures;
use tollgate_output::table::{Table, cut, heading, paragraph};
use tollgate_suites::Benchmark;

use crate::benchmarks::{instruction, interface};
use crate::burdens::{self, Burden};
use crate::rules::{self, Finding};
use crate::session::Session;
use crate::show::columns::{RowKind, Shown};
use crate::show::names::{every_name, values};
use crate::summary::{CaseRow, Figures, Summary};
use crate::together::together;
use crate::{causes, counts};

pub use bench::bench;
pub use functions::functions;

const FACTS: usize = 5;
const ROWS: usize = 12;
const VALUE: usize = 44;

/// The explanation of a benchmark, with its rows of a run if it has any, and the costs in the environments of the run's session.
/// The facts are the run's, or this machine's. The cases are those of the machine, with the architecture that the facts name.
pub fn text(
    benchmark: &Benchmark,
    machine: &Topology,
    summary: Option<&Summary>,
    session: Option<&Session>,
    facts: &Facts,
    width: usize,
) -> String {
    let named = facts.get("cpu.architecture").and_then(Fact::value).map(ToString::to_string);
    let architecture = named.and_then(|name| Architecture::named(&name)).unwrap_or(machine.architecture);
    let machine = &Topology { architecture, ..machine.clone() };
    let mut text = heading(benchmark.name, width);
    let mut field = |name: &str, words: &str| {
        text.push_str(&paragraph(words, width, &format!("{name:<13}")));
    };
    field("Operation", benchmark.operation);
    if let Some(instruction) = instruction(benchmark, machine) {
        field("Instruction", &instruction);
    }
    if let Some(interface) = interface(benchmark, machine) {
        field("Through", &interface);
    }
    let is_counted = summary.is_some_and(counts::is_counted);
    field("Subtracted", if is_counted { OF_COUNTS } else { subtracted(benchmark, machine) });
    if let Some(counts) = benchmark.counts {
        field("Counted", &format!("{counts}, exactly one per operation, or the case fails"));
    }
    if let Some(share) = benchmark.share {
        field("Counted", &format!("for one in {} operations: {}", share.one_of, share.what));
    }
    if !benchmark.counters.is_empty() {
        field("Also counted", &benchmark.counters.join(", "));
    }
    let crosses: Vec<&str> = benchmark.crosses.iter().map(|boundary| boundary.name()).collect();
    field("Crosses", &crosses.join(", "));
    let is_of = |(case, _): &(&Case, &Figures)| case.benchmark == benchmark.name;
    let rows: Vec<(&Case, &Figures)> =
        summary.iter().flat_map(|summary| summary.measured()).filter(is_of).collect();
    match (summary, headline(benchmark, &rows)) {
        (Some(summary), Some(shown)) => {
            text.push_str(&measured(summary, shown, &rows, width));
            text.push_str(&beside(benchmark, summary, shown, width));
            text.push_str(&found(benchmark, summary, width));
        }
        (Some(summary), None) => {
            text.push_str(&paragraph(&why_not(benchmark, summary), width, "Here         "));
        }
        (None, _) => {
            let words = match benchmark.why_absent(machine) {
                Some(why) => format!("not on this architecture: {why}"),
                None => format!("not measured yet; `tollgate run {}` does", benchmark.name),
            };
            text.push_str(&paragraph(&words, width, "Here         "));
        }
    }
    if let Some(session) = session {
        text.push_str(&session::text(benchmark, session, width));
    }
    let case = headline(benchmark, &rows).map(|(case, _)| case.clone());
    let first = || (benchmark.cases)(machine).into_iter().next().map(|params| benchmark.case(params));
    let case = case.or_else(first);
    text.push_str(&paragraph(benchmark.avoid, width, "To avoid it  "));
    text.push_str(&paragraph(&sources(benchmark, machine), width, "See          "));
    if let Some(case) = case {
        text.push_str(&affecting(facts, &case, width));
    }
    text
}

const OF_COUNTS: &str =
    "empty loops, and a batch of half the operations, so work done once per batch is not counted";

/// Returns its manuals and files. On arm64 Arm's manual takes the place of x86's, for the instructions of the operation.
fn sources(benchmark: &Benchmark, machine: &Topology) -> String {
    let is_x86 = |source: &&str| ["Intel ", "AMD ", "arch/x86"].iter().any(|word| source.contains(word));
    let (x86, others): (Vec<&str>, Vec<&str>) = benchmark.source.split("; ").partition(is_x86);
    match instruction(benchmark, machine) {
        Some(own) if machine.architecture == Architecture::Arm64 && !x86.is_empty() => {
            let arm = format!("Arm ARM, part C: {own}");
            [&[arm.as_str()], others.as_slice()].concat().join("; ")
        }
        _ => benchmark.source.to_owned(),
    }
}

fn subtracted(benchmark: &Benchmark, machine: &Topology) -> &'static str {
    let timed = (benchmark.cases)(machine).first().map(|params| (benchmark.timed)(params));
    match timed {
        Some(Timed::Loop { .. } | Timed::Together { .. }) => {
            "the shorter of two empty loops that run before and after each batch"
        }
        _ => "nothing; whole operations between two clock readings",
    }
}

fn headline<'a>(
    benchmark: &Benchmark,
    rows: &[(&'a Case, &'a Figures<'a>)],
) -> Option<(&'a Case, &'a Figures<'a>)> {
    let is_headline = |(case, _): &&(&Case, &Figures)| {
        benchmark.headlines.iter().any(|headline| headline.names(&case.params))
    };
    rows.iter().find(is_headline).or(rows.first()).copied()
}

fn why_not(benchmark: &Benchmark, summary: &Summary) -> String {
    let mut rows = summary.rows.iter().filter(|row| row.case.benchmark == benchmark.name);
    let why = rows.find_map(|row| Some(format!("{}: {}", row.status(), row.why()?)));
    format!("run {}: {}", summary.run.id, why.unwrap_or_else(|| "it was not requested".to_owned()))
}

fn measured(
    summary: &Summary,
    (case, figures): (&Case, &Figures),
    rows: &[(&Case, &Figures)],
    width: usize,
) -> String {
    let run = summary.run;
    let label = run.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    let kind = match figures.multiple {
        _ if figures.is_count() => RowKind::Counts,
        Some(_) => RowKind::Multiple,
        None => RowKind::Level,
    };
    let row = summary.row(case);
    let words = row.iter().flat_map(|row| figures_in_words(kind, &Shown::new(summary, row)));
    let words: Vec<String> = words.collect();
    let here = format!("{}; run {}{label}", words.join(", "), run.id);
    let name = if rows.len() > 1 { format!("{case}: ") } else { String::new() };
    let mut text = paragraph(&format!("{name}{here}"), width, "Here         ");
    for note in row.map(|row| row.notes()).unwrap_or_default() {
        text.push_str(&paragraph(&note.to_string(), width, "             "));
    }
    if figures.is_estimate() {
        text.push_str(&histogram(figures, width));
    }
    if rows.len() > 1 {
        text.push_str(&cases(summary, rows.get(..ROWS).unwrap_or(rows), kind, width));
        if rows.len() > ROWS {
            text.push_str(&format!("and {} more cases\n", rows.len() - ROWS));
        }
    }
    text
}

fn figures_in_words(kind: RowKind, shown: &Shown) -> Vec<String> {
    let columns = kind.columns();
    let words = columns.iter().map(|column| (column.head.clone(), column.value(shown).words().to_owned()));
    let known = words.filter(|(_, words)| !words.is_empty());
    known
        .map(|(head, words)| match words.strip_prefix('×') {
            Some(times) => format!("{times} {head}"),
            None => format!("{head} {words}"),
        })
        .collect()
}

fn cases(summary: &Summary, rows: &[(&Case, &Figures)], kind: RowKind, width: usize) -> String {
    let rows: Vec<&CaseRow> = rows.iter().filter_map(|(case, _)| summary.row(case)).collect();
    let table = |head: String, name: &dyn Fn(&Case) -> String| {
        let columns = kind.columns();
        let heads = columns.iter().map(|column| column.head.clone());
        let names = std::iter::once(Cow::Owned(head)).chain(heads);
        let dispensable = kind.keys().len().saturating_sub(2);
        let cells = rows.iter().map(|row| {
            let values = columns.values(&Shown::new(summary, row)).into_iter();
            (name(row.case), values.map(|value| Some(value.words().to_owned())).collect::<Vec<_>>())
        });
        Table::of_cells(names, cells).with_dispensable(dispensable)
    };
    let named = table("case".to_owned(), &|case| pairs(&case.params));
    // The case, its median and the interval stay.
    let table = match named.room_for_names(width, 3) {
        None => named,
        Some(_) => {
            let names = every_name(rows.iter().map(|row| row.case));
            table(names.join(", "), &|case| values(&names, &case.params))
        }
    };
    table.lines(Some(width), false)
}

/// The time of one of its steps alone, or of the same operation without one.
fn beside(benchmark: &Benchmark, summary: &Summary, (_, whole): (&Case, &Figures), width: usize) -> String {
    let line = |(name, what): &(&str, &str)| {
        let other = tollgate_suites::find(name)?;
        let rows: Vec<_> = summary.measured().filter(|(case, _)| case.benchmark == *name).collect();
        let (case, figures) = headline(other, &rows)?;
        let unit = figures.measured.unit;
        if unit != whole.measured.unit || figures.below.is_some() || whole.below.is_some() {
            return None;
        }
        let level = figures::estimate(figures.estimate.median, unit);
        let share = figures::percent(figures.estimate.median / whole.estimate.median);
        Some(format!("{case} {level}, {share} of it: {what}"))
    };
    let labels = std::iter::once("Beside it    ").chain(std::iter::repeat("             "));
    let lines = benchmark.beside.iter().filter_map(line).zip(labels);
    lines.map(|(line, label)| paragraph(&line, width, label)).collect()
}

fn found(benchmark: &Benchmark, summary: &Summary, width: usize) -> String {
    let is_of = |finding: &Finding| finding.from.first().is_some_and(|case| case.benchmark == benchmark.name);
    let of = rules::findings(summary).into_iter().filter(is_of);
    of.map(|finding| paragraph(&finding.sentence, width, "Finding      ")).collect()
}

const BINS: usize = 8;
const BAR: usize = 40;

/// The samples from the smallest to the 98 % quantile in bins of one width, and those above it.
fn histogram(figures: &Figures, width: usize) -> String {
    let measured = &figures.measured;
    let mut sorted = measured.samples.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let (Some(low), Some(high)) = (sorted.first().copied(), quantile(&sorted, 0.98)) else {
        return String::new();
    };
    if high <= low {
        return String::new();
    }
    let step = (high - low) / BINS as f64;
    let mut bins = [0_usize; BINS + 1];
    for sample in &sorted {
        let at = if *sample > high { BINS } else { (((sample - low) / step) as usize).min(BINS - 1) };
        bins[at] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(1).max(1);
    let longest = BAR.min(width.saturating_sub(32)).max(4);
    let mut text = String::new();
    for (at, number) in bins.into_iter().enumerate().filter(|(at, number)| *at < BINS || *number > 0) {
        let from = figures::estimate(low + step * at as f64, measured.unit);
        let sign = if at == BINS { ">" } else { " " };
        let bar = "█".repeat((number * longest).div_ceil(most));
        let share = format!("{:.0} %", 100.0 * number as f64 / sorted.len() as f64);
        text.push_str(
            &format!("{:13}{sign}{from:>9}  {bar:<longest$} {share:>6}\n", "").replace("  less than", ""),
        );
    }
    let of = match measured.ops_per_sample {
        1 => "each one operation".to_owned(),
        operations => format!("each the mean of {operations} operations"),
    };
    let samples = figures::count(sorted.len(), "sample", "samples");
    // Without those that measured only other cases.
    let processes = figures::count(figures.estimate.process_medians.len(), "process", "processes");
    text + &paragraph(&format!("{samples} of {processes}, {of}"), width, "             ")
}

type Reaching<'a> = (&'a String, &'a Fact, &'static Effect);

/// Facts with the same effect are listed together, at the place of the first.
fn of_one_effect<'r, 'a>(facts: &[&'r Reaching<'a>]) -> Vec<Vec<&'r Reaching<'a>>> {
    let groups = together(facts.iter().map(|fact| (fact.2.how, *fact)));
    groups.into_iter().map(|(_, facts)| facts).collect()
}

/// The facts that reach the case: those whose state makes it slow first, then others that are known.
fn affecting(facts: &Facts, case: &Case, width: usize) -> String {
    let slow: Vec<Burden> = burdens::of_case(facts, case);
    let reaching: Vec<Reaching> = facts
        .iter()
        .filter_map(|(name, fact)| Some((name, fact, tollgate_inspect::effect(name)?)))
        .filter(|(_, _, effect)| !effect.is_general() && causes::reaches(effect, case))
        .collect();
    if reaching.is_empty() {
        return String::new();
    }
    let (known, unknown): (Vec<Reaching>, Vec<Reaching>) =
        reaching.into_iter().partition(|(_, fact, _)| fact.value().is_some());
    let place = |name: &str| slow.iter().position(|burden| burden.fact == name);
    let mut text = heading("Affects it on this machine", width);
    let (mut burdens, mut others): (Vec<&Reaching>, Vec<&Reaching>) =
        known.iter().partition(|(name, ..)| place(name).is_some());
    burdens.sort_by_key(|(name, ..)| place(name));
    // A fact that affects few boundaries says more about each.
    others.sort_by_key(|(.., effect)| match effect.reach {
        Reach::Boundaries(boundaries) => boundaries.len(),
        Reach::Everything => usize::MAX,
    });
    let mut put = |mark: &str, group: &Vec<&Reaching>| {
        let value =
            |fact: &Fact| fact.value().map(|value| cut(&value.to_string(), VALUE)).unwrap_or_default();
        let facts: Vec<String> =
            group.iter().map(|(name, fact, _)| format!("{name} is {}", value(fact))).collect();
        let how = group.first().map_or("", |(.., effect)| effect.how);
        text.push_str(&paragraph(&format!("{}: {how}", facts.join(", ")), width, mark));
    };
    of_one_effect(&burdens).iter().for_each(|group| put("! ", group));
    let others = of_one_effect(&others);
    others.iter().take(FACTS).for_each(|group| put("  ", group));
    let rest = others.iter().skip(FACTS).map(Vec::len).sum::<usize>();
    let mut counts = Vec::new();
    counts.extend((rest > 0).then(|| format!("{rest} more")));
    counts.extend((!unknown.is_empty()).then(|| format!("{} unknown or absent here", unknown.len())));
    if !counts.is_empty() {
        text.push_str(&paragraph(&format!("{}: tollgate inspect", counts.join(", ")), width, "  "));
    }
    if !slow.is_empty() {
        text.push_str(&paragraph("! in a state that makes it slow", width, "  "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_is_explained_without_a_run_within_the_width() {
        let facts: Facts = [
            ("mitigation.pti".to_owned(), Fact::known(true, "test")),
            ("hypervisor.nesting".to_owned(), Fact::known(vec!["a mark".to_owned()], "test")),
        ]
        .into();
        let machine = Topology::default();
        for benchmark in tollgate_suites::SUITES.iter().flat_map(|suite| suite.benchmarks) {
            let text =
                anstream::adapter::strip_str(&text(benchmark, &machine, None, None, &facts, 60)).to_string();
            assert!(text.contains("Operation") && text.contains("See"), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        }
        let int80 = tollgate_suites::find("entry/int80").expect("registered");
        let found = text(int80, &machine, None, None, &facts, 80);
        assert!(found.contains("! hypervisor.nesting is a mark"), "{found}");
        assert!(found.contains("! mitigation.pti is yes"), "{found}");
        let on = |name: &str| {
            let facts = [("cpu.architecture".to_owned(), Fact::known(name, "test"))].into();
            text(int80, &machine, None, None, &facts, 80)
        };
        assert!(on("aarch64").contains("not on this architecture: INT 80h"), "{}", on("aarch64"));
        assert!(on("x86_64").contains("not measured yet"), "{}", on("x86_64"));
        let call = tollgate_suites::find("entry/syscall").expect("registered");
        let of = |architecture| sources(call, &Topology { architecture, ..Topology::default() });
        assert_eq!(of(Architecture::X86_64), call.source);
        assert_eq!(of(Architecture::Arm64), "Arm ARM, part C: svc");
    }
}
