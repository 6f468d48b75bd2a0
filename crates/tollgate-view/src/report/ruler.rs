//! The ruler: every latency on one axis, and among them well-known operations by name.

use crate::page::{Axis, Dots, Drawing, Figure, Row, Strip, Table, Text};
use tollgate_model::Case;

use super::dots;
use super::panels::keys;
use super::subject::{Subject, is_drawn};
use super::suites;
use crate::figures;
use crate::summary::Figures;

const CALL: &str = "function call";
const VDSO: &str = "vDSO clock";
const SYSTEM_CALL: &str = "system call";
const TRAP: &str = "trap and its handler";
const FORK: &str = "fork";
const DISK: &str = "write safe on disk";

/// A well-known operation: its name, its benchmark, and the parameters that its case has among others.
struct Landmark(&'static str, &'static str, &'static [&'static str]);

/// From usually fast to usually slow.
const LANDMARKS: [Landmark; 14] = [
    Landmark(CALL, "entry/call", &[]),
    Landmark(VDSO, "entry/vdso-clock", &[]),
    Landmark("line of another core", "memory/pingpong", &["protocol=store"]),
    Landmark(SYSTEM_CALL, "entry/syscall", &[]),
    Landmark("read 4 KiB, cached", "files/read", &["state=cached", "block=4k"]),
    Landmark("page fault", "traps/minor-fault", &["page=4k"]),
    Landmark("context switch", "processes/switch", &["by=futex", "placement=same-cpu"]),
    Landmark(TRAP, "traps/breakpoint", &[]),
    Landmark("VM exit (CPUID)", "entry/vm-exit", &[]),
    Landmark("thread", "processes/thread", &["dirty_mib=0", "until=exited"]),
    Landmark(FORK, "processes/fork", &["dirty_mib=0", "until=exited"]),
    Landmark("read 4 KiB, disk", "files/read", &["state=uncached", "block=4k"]),
    Landmark(DISK, "files/fsync", &[]),
    Landmark("program start", "processes/fork-exec", &["image=dynamic", "dirty_mib=0"]),
];

impl Landmark {
    fn is(&self, case: &Case) -> bool {
        let Self(_, benchmark, params) = self;
        let has =
            |wanted: &&str| case.params.iter().any(|(name, value)| format!("{name}={value}") == *wanted);
        case.benchmark == *benchmark && params.iter().all(has)
    }

    /// Its case, in the first environment that measured one.
    fn case<'a>(&self, subjects: &[Subject<'a>]) -> Option<&'a Case> {
        subjects.iter().find_map(|subject| {
            let drawn = subject.summary.measured().filter(|(_, figures)| is_drawn(figures));
            drawn.map(|(case, _)| case).find(|case| self.is(case))
        })
    }
}

/// The ruler; None where there are no marks.
pub fn of<'a, 'b>(subjects: &'b [Subject<'a>]) -> Option<Figure> {
    // A command is no crossing.
    if suites::suites(subjects).iter().all(|suite| suites::COMMANDS.contains(suite)) {
        return None;
    }
    let is_comparison = subjects.len() > 1;
    let mut rows = Vec::new();
    let mut numbers = Table::new("The figures of the named operations", ["operation", "case"]);
    match is_comparison {
        true => numbers.head.extend(subjects.iter().map(|subject| Text::new(&subject.name))),
        false => numbers.head.extend(["median", "95 % CI", "min"].map(Text::from)),
    }
    for landmark in &LANDMARKS {
        let Some(case) = landmark.case(subjects) else { continue };
        let mut marks: Vec<_> = subjects.iter().filter_map(|subject| subject.mark(case)).collect();
        let mut cells = vec![Text::from(landmark.0), Text::new(&case.to_string())];
        let mut value = Text::default();
        let figures = |subject: &'b Subject<'a>| subject.summary.figures(case);
        if let [subject] = subjects {
            // The row has its name and value.
            marks.iter_mut().for_each(|mark| mark.title = Text::default());
            value = figures(subject).map(Figures::in_words).unwrap_or_default().into();
            cells.extend(figures(subject).into_iter().flat_map(in_words));
        } else {
            let words = subjects.iter().map(|subject| figures(subject).map_or("–".into(), Figures::in_words));
            cells.extend(words.map(Text::from));
        }
        rows.push((marks.first()?.at, Row { name: landmark.0.into(), value, marks }, cells));
    }
    rows.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let (rows, cells): (Vec<Row>, Vec<Vec<Text>>) =
        rows.into_iter().map(|(_, row, cells)| (row, cells)).unzip();
    numbers.rows = cells;
    let strips: Vec<Strip> = suites::suites(subjects)
        .iter()
        .enumerate()
        .flat_map(|(at, suite)| strips(at + 1, suite, subjects, is_comparison))
        .filter(|strip| !strip.marks.is_empty())
        .collect();
    let marks = rows.iter().flat_map(|row| &row.marks).chain(strips.iter().flat_map(|strip| &strip.marks));
    let times = dots::reached(marks);
    /// From a nanosecond to a second, and further where latencies are.
    const LEAST: (f64, f64) = (1.0, 1e9);
    let number: usize = strips.iter().map(|strip| strip.marks.len()).sum();
    if number == 0 {
        return None;
    }
    let axis = Axis::of_times(times.into_iter(), Some(LEAST))?;
    let description = format!(
        "{} in time on one logarithmic axis. A sign is the median, the band around it its 95 % CI, the \
         stroke to its left the min. Below the named ones are all latencies by suite{}.",
        figures::count(number, "latency", "latencies"),
        if is_comparison { ", a line an environment" } else { "" }
    );
    Some(Figure {
        title: "From a nanosecond to a second".into(),
        description: description.into(),
        keys: keys(subjects),
        panels: vec![Drawing::Dots(Dots { axis, rows, strips, is_by_environment: true }).into()],
        numbers: Some(numbers).filter(|table| !table.rows.is_empty()),
        ..Figure::default()
    })
}

/// All latencies of a suite, a line an environment.
fn strips(section: usize, suite: &str, subjects: &[Subject], is_comparison: bool) -> Vec<Strip> {
    let of_suite = |case: &Case| suites::suite_of(case) == suite;
    let strip = |subject: &Subject| {
        let cases = subject.summary.rows.iter().map(|row| row.case).filter(|case| of_suite(case));
        let name =
            Text::label(&if is_comparison { format!("{suite}, {}", subject.name) } else { suite.to_owned() });
        let (look, section) = (subject.look, section);
        Strip { name, section, look, marks: cases.filter_map(|case| subject.mark(case)).collect() }
    };
    subjects.iter().map(strip).collect()
}

/// A median, its CI and its min.
fn in_words(figures: &Figures) -> [Text; 3] {
    let (estimate, unit) = (&figures.estimate, figures.measured.unit);
    let is_known = figures.below.is_none() && estimate.min > 0.0;
    let min = if is_known { figures::estimate(estimate.min, unit) } else { String::new() };
    let interval = figures.interval_in_words().unwrap_or_default();
    [figures.in_words(), interval, min].map(Text::from)
}

/// The ruler in two sentences.
pub fn sentences(subjects: &[Subject]) -> Vec<Text> {
    let [subject] = subjects else { return Vec::new() };
    let estimate = |name: &str| {
        let landmark = LANDMARKS.iter().find(|landmark| landmark.0 == name)?;
        let figures = subject.summary.figures(landmark.case(subjects)?)?;
        figures.below.is_none().then_some((figures.estimate.median, figures.in_words()))
    };
    let Some((baseline, words)) = estimate(SYSTEM_CALL) else { return Vec::new() };
    let times =
        |name: &str, of: f64| estimate(name).map(|(estimate, _)| figures::significant(of / estimate, 2));
    let mut sentence = format!("A system call takes {words} here");
    let faster = [(CALL, "function calls"), (VDSO, "readings of the clock through the vDSO")];
    let faster: Vec<String> =
        faster.iter().filter_map(|(name, many)| Some(format!("{} {many}", times(name, baseline)?))).collect();
    if !faster.is_empty() {
        sentence.push_str(&format!(", as long as {}", faster.join(" or ")));
    }
    let slower = [(TRAP, "a trap and its handler"), (FORK, "a fork"), (DISK, "a write that is safe on disk")];
    let slower: Vec<String> = slower
        .iter()
        .filter_map(|(name, what)| Some(format!("{what} {}", whole(estimate(name)?.0 / baseline))))
        .collect();
    let mut sentences = vec![Text::new(&format!("{sentence}."))];
    if !slower.is_empty() {
        sentences.push(Text::new(&format!("Counted in system calls: {}.", slower.join(", "))));
    }
    sentences
}

/// A number of times: `2.3`, `21`, `2,130`.
fn whole(times: f64) -> String {
    match times {
        near if near < 9.95 => figures::significant(near, 2),
        times => {
            // Three digits are shown.
            let step = 10_f64.powi((times.log10().floor() as i32 - 2).max(0));
            let digits = format!("{:.0}", (times / step).round() * step);
            let groups: Vec<&str> =
                digits.as_bytes().rchunks(3).rev().filter_map(|part| str::from_utf8(part).ok()).collect();
            groups.join(",")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landmarks_are_cases_that_there_are() {
        for landmark in &LANDMARKS {
            let benchmark = tollgate_suites::find(landmark.1).expect("a benchmark");
            let mut cases = (benchmark.cases)().into_iter().chain((benchmark.thorough_cases)());
            let found =
                cases.any(|params| landmark.is(&Case { benchmark: benchmark.name.to_owned(), params }));
            // Some cases need two processors.
            assert!(found || landmark.1 == "memory/pingpong", "{}", landmark.0);
        }
    }

    #[test]
    fn times_have_three_digits() {
        assert_eq!([2.34, 21.2, 2134.0, 1_234_567.0].map(whole), ["2.3", "21", "2,130", "1,230,000"]);
    }
}
