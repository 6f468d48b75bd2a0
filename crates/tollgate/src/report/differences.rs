//! What differs between places: the prices, and the facts that are known to move those that differ.

use std::collections::{BTreeMap, HashMap};

use tollgate_model::compare::{FactDifference, Row, Verdict};
use tollgate_model::{Case, Fact, Unit};
use tollgate_report::page::{Table, Text};

use super::subject::Subject;
use crate::compare::{Compared, Sides};
use crate::figures;
use crate::trace::blame::Held;

/// A place held against the base.
pub struct Difference<'a> {
    /// The place's.
    pub look: usize,
    /// The rows and facts.
    pub compared: Compared<'a>,
    by_case: HashMap<Case, usize>,
}

impl<'a> Difference<'a> {
    /// Every other place held against the first.
    pub fn all(subjects: &[Subject<'a>]) -> Vec<Self> {
        let [base, others @ ..] = subjects else { return Vec::new() };
        let of = |other: &Subject<'a>| {
            let compared = Compared::of(base.run, other.run);
            let rows = compared.comparison.rows.iter().enumerate();
            Self {
                look: other.look,
                by_case: rows.map(|(at, row)| (row.case.clone(), at)).collect(),
                compared,
            }
        };
        others.iter().map(of).collect()
    }

    /// What is said of a case, and its ratio to the base where it has one.
    pub fn row(&self, case: &Case) -> Option<(&Row, Option<f64>)> {
        let (row, sides) = self.compared.rows().nth(*self.by_case.get(case)?)?;
        Some((row, sides.ratio(row)))
    }

    /// The prices that differ for certain, with their ratios.
    fn moved(&self) -> impl Iterator<Item = (&Row, Sides<'a>, f64)> {
        let rows = self.compared.rows().filter(|(row, _)| row.verdict.is_difference());
        rows.filter_map(|(row, sides)| Some((row, sides, sides.ratio(row)?)))
    }
}

/// A price that moved: what is said of it, what it was made from, and the ratio.
type Moved<'a> = (&'a Row, Sides<'a>, f64);

/// A smaller difference is no sentence.
const LARGE: f64 = 1.25;
/// More sentences are not read.
const MOST: usize = 12;

/// A sentence for each large difference, the largest of a probe and place.
pub fn findings(subjects: &[Subject], differences: &[Difference]) -> Vec<Text> {
    let Some(base) = subjects.first() else { return Vec::new() };
    let mut found: Vec<(f64, String)> = Vec::new();
    for difference in differences {
        let Some(other) = subjects.get(difference.look) else { continue };
        let mut by_probe: BTreeMap<(&str, bool), Vec<Moved>> = BTreeMap::new();
        for (row, sides, ratio) in difference.moved().filter(|(_, _, ratio)| size(*ratio) >= LARGE.ln()) {
            by_probe.entry((&row.case.probe, ratio > 1.0)).or_default().push((row, sides, ratio));
        }
        for (row, sides) in difference.compared.rows() {
            let held = Held::of(&row.case, sides.base, sides.other);
            if let Some(held) = held.filter(|held| size(held.ratio()) >= LARGE.ln()) {
                found.push((size(held.ratio()), held.sentence([&base.name, &other.name])));
            }
        }
        for rows in by_probe.values() {
            let largest = rows.iter().max_by(|(.., a), (.., b)| size(*a).total_cmp(&size(*b)));
            if let Some((row, sides, ratio)) = largest {
                let likewise = rows.len() - 1;
                let sentence = sentence(&base.name, &other.name, (row, *sides, *ratio), likewise);
                let by = known_movers(&difference.compared.comparison.facts, &row.case);
                found.push((size(*ratio), format!("{sentence}{by}")));
            }
        }
    }
    tollgate_model::sort::by(&mut found, |(a, _), (b, _)| b.total_cmp(a));
    let left_out = found.len().saturating_sub(MOST);
    let mut sentences: Vec<Text> =
        found.iter().take(MOST).map(|(_, sentence)| Text::cut(sentence, 600)).collect();
    if left_out > 0 {
        sentences.push(Text::from(format!(
            "{left_out} more probes differ by a quarter or more: see the tables of the suites."
        )));
    }
    let tally = |difference: &Difference| {
        let count =
            |verdict| difference.compared.comparison.rows.iter().filter(|row| row.verdict == verdict).count();
        let [slower, faster, same, untold] =
            [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::CannotTell].map(count);
        let other = subjects.get(difference.look).map_or("", |other| other.name.as_str());
        Text::new(&format!(
            "Of {} that both have, in {other} {slower} {} slower than in {}, {faster} faster, {same} the same; {untold} cannot be \
             told.",
            figures::count(difference.compared.comparison.rows.len(), "price", "prices"),
            if slower == 1 { "is" } else { "are" },
            base.name
        ))
    };
    let mut all: Vec<Text> = differences.iter().map(tally).collect();
    all.extend(sentences);
    all
}

/// How far a ratio is from one.
fn size(ratio: f64) -> f64 {
    ratio.ln().abs()
}

fn sentence(base: &str, other: &str, (row, sides, ratio): (&Row, Sides, f64), likewise: usize) -> String {
    let price = |price: Option<f64>, unit: Unit| {
        price.map_or("no price".to_owned(), |price| figures::price(price, unit))
    };
    let (here, there) = (price(row.other, sides.other.unit), price(row.base, sides.base.unit));
    let (times, how, span) = match (ratio > 1.0, row.interval) {
        (true, span) => (ratio, "as long", span.map(|span| (span.low, span.high))),
        (false, span) => (1.0 / ratio, "as short a time", span.map(|span| (1.0 / span.high, 1.0 / span.low))),
    };
    let span = span.map(|(low, high)| format!(", {}", figures::ratio_span(low, high))).unwrap_or_default();
    let is_time = matches!(sides.base.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine);
    let what = match (is_time, ratio > 1.0) {
        (true, _) => format!("takes {} times {how} in {other} as in {base}", figures::significant(times, 3)),
        (false, true) => {
            format!("is {} times as much in {other} as in {base}", figures::significant(times, 3))
        }
        (false, false) => {
            format!("is {} times as little in {other} as in {base}", figures::significant(times, 3))
        }
    };
    let more = match likewise {
        0 => String::new(),
        1 => " One more of its cases differs likewise.".to_owned(),
        more => format!(" {more} more of its cases differ likewise."),
    };
    format!("{} {what}: {here} against {there}{span}.{more}", row.case)
}

/// The facts that differ and are known to move this price, where they are few enough to say something.
fn known_movers(facts: &[FactDifference], case: &Case) -> String {
    const FEW: usize = 4;
    let names: Vec<&str> = facts
        .iter()
        .filter(|fact| has_value(&fact.base) && has_value(&fact.other))
        .filter(|fact| {
            tollgate_inspect::movers(&fact.name)
                .is_some_and(|moves| is_moved(moves, &case.probe) && !is_general(moves))
        })
        .map(|fact| fact.name.as_str())
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names if names.len() > FEW => format!(
            " {} facts that differ are known to move it, {} among them.",
            names.len(),
            names[..2].join(" and ")
        ),
        [one] => format!(" {one} differs, which is known to move it."),
        [before @ .., last] => {
            format!(" {} and {last} differ, which are known to move it.", before.join(", "))
        }
    }
}

fn has_value(fact: &Option<Fact>) -> bool {
    fact.as_ref().is_some_and(|fact| fact.value().is_some())
}

/// The facts that differ, ordered by how many of the prices that they are known to move have moved.
pub fn facts(subjects: &[Subject], differences: &[Difference]) -> Vec<Table> {
    if differences.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&str> = Vec::new();
    for fact in differences.iter().flat_map(|difference| &difference.compared.comparison.facts) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    if names.is_empty() {
        return vec![Table { caption: "No fact differs between the places".into(), ..Table::default() }];
    }
    let mut ranked: Vec<(Reach, &str)> =
        names.into_iter().map(|name| (Reach::of(name, differences), name)).collect();
    tollgate_model::sort::by(&mut ranked, |(a, _), (b, _)| b.rank().total_cmp(&a.rank()));
    let (moving, others): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|(reach, _)| reach.moves.is_some());
    let row = |(reach, name): &(Reach, &str)| {
        let values = subjects.iter().map(|subject| value(subject.run.environment.get(*name)));
        let moves = reach.moves.map(|_| Text::from(reach.in_words()));
        std::iter::once(Text::new(name)).chain(values).chain(moves).collect()
    };
    let head = |last: Option<&str>| {
        let places = subjects.iter().map(|subject| Text::label(&subject.name));
        std::iter::once(Text::from("fact")).chain(places).chain(last.map(Text::from)).collect()
    };
    let table = |caption: String, is_open, last, rows: &[(Reach, &str)]| Table {
        caption: caption.into(),
        head: head(last),
        rows: rows.iter().map(row).collect(),
        is_open,
    };
    /// Further ones are folded.
    const FIRST: usize = 12;
    let (first, rest) = moving.split_at(moving.len().min(FIRST));
    let tables = [
        table("Facts that differ and are known to move prices".to_owned(), true, Some("moves"), first),
        table(
            format!("{} more that differ and are known to move prices", rest.len()),
            false,
            Some("moves"),
            rest,
        ),
        table(format!("{} more facts that differ", others.len()), false, None, &others),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn value(fact: Option<&Fact>) -> Text {
    /// A list such as the processor's flags would bury the others.
    const MOST: usize = 120;
    match fact {
        None => "not recorded".into(),
        Some(Fact::Known { value, .. }) => Text::cut(&value.to_string(), MOST),
        Some(Fact::Unknown { why }) => Text::cut(&why.to_string(), MOST),
    }
}

/// Of the prices that a fact is known to move, how many there are and how many moved.
struct Reach {
    moves: Option<&'static str>,
    all: usize,
    moved: usize,
    /// Its value is known in all places that differ.
    is_known: bool,
}

impl Reach {
    fn of(name: &str, differences: &[Difference]) -> Self {
        let moves = tollgate_inspect::movers(name);
        let (mut all, mut moved) = (0, 0);
        for row in differences.iter().flat_map(|difference| &difference.compared.comparison.rows) {
            if moves.is_some_and(|moves| is_moved(moves, &row.case.probe)) {
                all += 1;
                moved += usize::from(row.verdict.is_difference());
            }
        }
        let of_name = differences.iter().flat_map(|difference| &difference.compared.comparison.facts);
        let is_known = of_name
            .filter(|fact| fact.name == name)
            .all(|fact| has_value(&fact.base) && has_value(&fact.other));
        Self { moves, all, moved, is_known }
    }

    /// The larger, the more of what it reaches has moved; of equal ones, the more there is of it.
    fn rank(&self) -> f64 {
        let share = self.moved as f64 / self.all.max(1) as f64;
        // Where nothing moved, what both places know comes before what one of them hides.
        let known = if self.is_known { 1e-9 } else { 0.0 };
        share + self.moved as f64 * 1e-6 + known
    }

    fn in_words(&self) -> String {
        let moves = self.moves.unwrap_or_default();
        match self.all {
            0 => format!("{moves}. None of these prices was measured in both."),
            all => format!("{moves}. {} of {all} such prices moved.", self.moved),
        }
    }
}

/// What the first words of a sentence on what a fact moves are about, by probe; a fact that moves what no probe measures
/// moves nothing here.
const REACHES: [(&str, &[&str]); 30] = [
    ("every price", &[""]),
    ("everything that enters", ENTRY),
    ("kernel e", ENTRY),
    ("system call", ENTRY),
    ("every system call", ENTRY),
    ("calls that allocate", &["processes/", "files/open", "files/create"]),
    ("32-bit", &["gates/int80", "gates/compat"]),
    ("int 0x80", &["gates/int80", "gates/compat"]),
    ("clocks", &["gates/vdso", "gates/syscall-clock", "gates/rdtsc"]),
    ("getcpu", &["gates/vdso-getcpu"]),
    ("trap", &["traps/"]),
    ("CPUID", &["gates/vm-exit"]),
    ("page fault", FAULTS),
    ("writes to merged pages", FAULTS),
    ("signals", &["traps/signal", "traps/sigreturn", "traps/breakpoint", "traps/segv"]),
    ("lines", &["lines/"]),
    ("memory", &["lines/latency", "lines/thrash"]),
    ("locks", &["locks/"]),
    ("split locks", &["traps/alignment"]),
    ("context switch", SWITCHES),
    ("switches", SWITCHES),
    ("waking another processor", SWITCHES),
    ("interrupts between processors", SWITCHES),
    ("indirect calls", ENTRY),
    ("fork", &["processes/"]),
    ("executing", &["processes/exec", "processes/fork-exec", "processes/posix-spawn", "processes/shell"]),
    ("whether a large process can fork", &["processes/fork"]),
    ("files", &["files/"]),
    ("fsync", &["files/fsync", "files/fdatasync", "files/small-file"]),
    ("copies to and from user memory", &["files/read", "files/write"]),
];

const ENTRY: &[&str] = &[
    "gates/syscall",
    "gates/seccomp",
    "gates/user-dispatch",
    "gates/speculation",
    "gates/io-uring",
    "gates/int80",
    "gates/compat",
    "traps/",
];
const FAULTS: &[&str] =
    &["traps/minor-fault", "traps/cow-fault", "traps/file-fault", "traps/fresh-page", "traps/userfaultfd"];
const SWITCHES: &[&str] =
    &["processes/switch", "processes/ring", "locks/handover", "locks/producer-consumer"];

/// Whether what a fact is known to move, in a sentence whose first words say what, is a probe's price.
fn is_moved(moves: &str, probe: &str) -> bool {
    let about = moves.split(':').next().unwrap_or_default();
    let reaches = REACHES.iter().filter(|(words, _)| about.contains(words));
    reaches.flat_map(|(_, probes)| *probes).any(|start| probe.starts_with(start))
}

/// Whether a fact is known to move everything, so that it explains nothing.
fn is_general(moves: &str) -> bool {
    moves.split(':').next().unwrap_or_default().contains("every price")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_reaches_what_its_sentence_names() {
        let pti = "kernel entry: two writes of CR3 on each crossing, and without PCID an empty TLB";
        assert!(
            is_moved(pti, "gates/syscall") && !is_moved(pti, "gates/call") && !is_moved(pti, "files/read")
        );
        let files = "uncached reads, direct reads and writes, and fsync of files: they wait for the device";
        assert!(is_moved(files, "files/fsync") && !is_moved(files, "gates/syscall"));
        let every = "every price in time: processors are not run faster";
        assert!(is_moved(every, "lines/latency") && is_general(every));
        assert!(!is_moved("RDRAND and RDSEED: each locks the bus while it reads", "gates/syscall"));
    }

    #[test]
    fn what_facts_reach_are_probes() {
        let known: Vec<&str> =
            tollgate_probes::SUITES.iter().flat_map(|suite| suite.probes).map(|probe| probe.name).collect();
        for start in REACHES.iter().flat_map(|(_, probes)| *probes) {
            assert!(known.iter().any(|probe| probe.starts_with(start)), "{start}");
        }
    }
}
