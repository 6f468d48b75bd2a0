//! The properties of each lock: the second table of the published comparison, filled in from measurements, stress tests and model
//! checks, with the evidence below each row.

use tollgate_model::{Counter, ParamValue};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, heading};
use tollgate_schedules::subject::Wish;
use tollgate_schedules::{Limits, Verdict};

use crate::summary::{Figures, Summary};

const SYSTEM_CALL: &str = "futex-trylock-pi";

pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let rows = judged(summary)?;
    let mut table = Table::new(&COLUMNS);
    for (words, evidence) in rows {
        table.row(Look::Plain, &words, &evidence);
    }
    let title = "locks: properties, each with its evidence";
    Some(format!("{}{}", heading(title, width), table.render(width)))
}

pub const COLUMNS: [&str; 5] = ["lock", "safety", "efficiency", "resources", "footprint"];

/// The rows, each with its words and their evidence; `None` if no lock was tested.
pub fn judged(summary: &Summary) -> Option<Vec<(Vec<String>, Vec<String>)>> {
    let system_call = find(summary, "locks/uncontended", SYSTEM_CALL, None)?.estimate.median;
    let mut rows = Vec::new();
    let mut any = false;
    for (case, figures) in summary.measured().filter(|(case, _)| case.benchmark == "locks/uncontended") {
        let Some(by) = case.word("by") else { continue };
        let cells = [
            safety(summary, by),
            efficiency(figures, system_call),
            resources(summary, by),
            footprint(summary, by),
        ];
        any |= cells[0].is_some();
        let words = cells.iter().map(|cell| cell.as_ref().map_or("not tested", |cell| cell.word).to_owned());
        let words: Vec<String> = std::iter::once(by.to_owned()).chain(words).collect();
        rows.push((words, cells.into_iter().flatten().map(|cell| cell.evidence).collect()));
    }
    any.then_some(rows)
}

struct Cell {
    word: &'static str,
    evidence: String,
}

fn safety(summary: &Summary, by: &str) -> Option<Cell> {
    let preempted = find(summary, "locks/preempted", by, None)?;
    let takes = preempted.operations();
    let [switches, ..] = preempted.measured.counters.as_slice() else { return None };
    let word = match by {
        "rseq" | "lamport-up" => "one processor",
        "rseq-cpu" => "its processor",
        _ => "safe",
    };
    let takes = figures::significant(takes as f64 / 1e6, 3);
    let mut evidence =
        format!("mutual exclusion held in {takes} M acquisitions with {} forced switches", switches.number);
    if let Some(proof) = proof(by) {
        evidence.push_str(&proof);
    }
    Some(Cell { word, evidence })
}

fn proof(by: &str) -> Option<String> {
    let (name, what) = match by {
        "rseq" | "rseq-cpu" => ("figure-11", "its forerunner"),
        "lamport" => ("lamport", "its algorithm"),
        "lamport-up" => ("lamport-up", "its algorithm"),
        _ => return None,
    };
    let subject = tollgate_schedules::subjects().find(|subject| subject.name() == name)?;
    let checked = subject.check(subject.setting(Wish::default()).ok()?, Limits::default());
    (checked.verdict == Verdict::Holds)
        .then(|| format!(", and in all {} states of the model of {what} ({name})", checked.states))
}

/// The uncontended latency, by the published bounds: seven times as fast as the system call was excellent.
fn efficiency(figures: &Figures, system_call: f64) -> Option<Cell> {
    const EXCELLENT: f64 = 7.0;
    const GOOD: f64 = 2.0;
    let bounded = figures.bounded();
    let times = system_call / bounded;
    if !figures.is_estimate() || !times.is_finite() {
        return None;
    }
    let word = match times {
        EXCELLENT.. => "excellent",
        GOOD.. => "good",
        _ => "poor",
    };
    let at_least = if figures.below.is_some() { "at least " } else { "" };
    let evidence = match times {
        0.95..=1.05 => "as fast as the system call".to_owned(),
        _ => format!("{at_least}{} than {SYSTEM_CALL}", figures::compared(1.0 / times, ["slower", "faster"])),
    };
    Some(Cell { word, evidence })
}

fn resources(summary: &Summary, by: &str) -> Option<Cell> {
    let counters = |at: &str| {
        let figures = find(summary, "locks/killed", by, Some(("at", at)))?;
        Some(figures.measured.counters.as_slice())
    };
    let (holding, random) = (counters("holding")?, counters("random")?);
    let (word, needs) = match by {
        "rseq" | "rseq-cpu" => ("easy", "an area for each thread, which the C library registers; "),
        "lamport" | "lamport-up" => ("difficult", "a number for each thread; "),
        "eventfd" => ("easy", "a descriptor; "),
        "semop" => ("difficult", "a set in the kernel that outlives every process; "),
        _ => ("unnecessary", ""),
    };
    let evidence =
        format!("{needs}owner killed while holding: {}; killed at random: {}", left(holding), left(random));
    Some(Cell { word, evidence })
}

/// `12 locks stayed held, 30 stayed free`: the counts after the kills.
fn left(counters: &[Counter]) -> String {
    let met: Vec<String> = counters
        .iter()
        .filter(|counter| counter.number > 0)
        .map(|counter| format!("{} {}", counter.number, counter.what))
        .collect();
    if met.is_empty() { "not tested".to_owned() } else { met.join(", ") }
}

/// Judges the bytes that a lock takes in this program. The kernel's bytes depend on the machine, so they are only evidence.
fn footprint(summary: &Summary, by: &str) -> Option<Cell> {
    const SMALL: f64 = 64.0;
    const MEDIUM: f64 = 160.0;
    let bytes =
        |part: &str| Some(find(summary, "locks/footprint", by, Some(("part", part)))?.estimate.median);
    let (code, data) = (bytes("code")?, bytes("data")?);
    let word = match code + data {
        ..=SMALL => "small",
        ..=MEDIUM => "medium",
        _ => "large",
    };
    let mut evidence = format!("{code} bytes of code, {data} of data");
    if let Some(kernel) = bytes("kernel") {
        evidence.push_str(&format!(", {kernel} in the kernel"));
    }
    Some(Cell { word, evidence })
}

fn find<'a, 'b>(
    summary: &'b Summary<'a>,
    benchmark: &'b str,
    by: &str,
    other: Option<(&str, &str)>,
) -> Option<&'b Figures<'a>> {
    let is = |value: Option<&ParamValue>, wanted: &str| {
        *value.unwrap_or(&ParamValue::Flag(false)) == wanted.into()
    };
    let found = summary.of_benchmark(benchmark).find(|(case, _)| {
        is(case.params.get("by"), by) && other.is_none_or(|(name, value)| is(case.params.get(name), value))
    });
    found.map(|(_, figures)| figures)
}
