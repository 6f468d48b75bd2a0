//! The rules about two rows. In a text `{slow}` and `{fast}` are their figures, `{times}` is the ratio, `{compared}` the ratio with its word,
//! `{share}` the ratio in percent, and `{device}` the device below the file system.

use tollgate_output::figures;

use super::row::{Row, Times, known, row};
use super::{Expense, Finding};
use crate::facts;
use crate::summary::{BASELINE, Summary};

pub(super) struct Pair {
    slow: &'static str,
    fast: &'static str,
    /// The least ratio that is worth a sentence, by both intervals. `None`: any ratio of the medians is worth one.
    least: Option<f64>,
    text: &'static str,
}

pub(super) struct Cost {
    pair: Pair,
    /// The ratio on a machine without a hypervisor and with a local SSD: the further a ratio is above it, the earlier it is shown.
    usual: f64,
    cause: &'static str,
    /// The cause to name if `cause` is empty and no fact is a cause.
    otherwise: &'static str,
    action: &'static str,
    /// Another row that is faster, and the addition to the action.
    also: Option<(&'static str, &'static str)>,
}

const fn pair(slow: &'static str, fast: &'static str, least: f64, text: &'static str) -> Pair {
    Pair { slow, fast, least: Some(least), text }
}

const fn medians(slow: &'static str, fast: &'static str, text: &'static str) -> Pair {
    Pair { slow, fast, least: None, text }
}

/// The rows, the least ratio and the usual one, and the texts.
const fn cost(
    [slow, fast]: [&'static str; 2],
    [least, usual]: [f64; 2],
    [text, cause, action]: [&'static str; 3],
) -> Cost {
    Cost { pair: pair(slow, fast, least, text), usual, cause, otherwise: "", action, also: None }
}

/// The first that applies in each group counts.
pub(super) const COSTS: &[&[Cost]] = &[
    // It does not describe other gates: its handler reads the local APIC since Linux 6.7, in a guest a VM exit.
    &[Cost {
        otherwise: "gate, stack switch and IRET",
        ..cost(["entry/int80", BASELINE], [2.5, 1.5], ["INT 80h {times} a call", "", "use SYSCALL"])
    }],
    &[Cost {
        otherwise: "the hypervisor handles it",
        ..cost(
            ["entry/vm-exit", BASELINE],
            [5.0, 20.0],
            ["VM exit {slow}, {times} a call", "", "fewer timers, IPIs and device writes"],
        )
    }],
    &[Cost {
        otherwise: "one fault a page",
        also: Some(("traps/fresh-page{by=populate}", ", MAP_POPULATE ")),
        ..cost(
            ["traps/minor-fault{page=4k}", "traps/fresh-page{by=huge}"],
            [1.5, 4.0],
            ["Page fault {slow}", "", "in huge pages {fast}"],
        )
    }],
    &[cost(
        ["processes/switch{by=futex, placement=other-cpu}", "processes/switch{by=futex, placement=same-cpu}"],
        [1.5, 2.0],
        [
            "Wake-up on another CPU {slow}, {times} the same",
            "IPI and idle exit",
            "keep threads that talk together",
        ],
    )],
    &[cost(
        ["files/read{block=4k, state=uncached}", "files/read{block=4k, state=cached}"],
        [3.0, 100.0],
        [
            "Uncached 4 KiB read {slow}, {times} a cached one",
            "waits for {device}",
            "read ahead, or many at once by io_uring",
        ],
    )],
    &[cost(
        ["files/fsync", "files/open"],
        [10.0, 50.0],
        ["fsync {slow}, {times} an open", "flushes {device}", "group writes, one fsync for many"],
    )],
    &[
        cost(
            ["memory/neighbour{distance=8}", "memory/neighbour{distance=128}"],
            [2.0, 8.0],
            [
                "False sharing: stores in one line {times} slower",
                "the line moves between cores",
                "keep them 128 bytes apart",
            ],
        ),
        cost(
            ["memory/pingpong{protocol=store}", "memory/latency{kib=16, page=4k}"],
            [2.0, 50.0],
            [
                "A line from another core {slow}, {times} an L1 hit",
                "the line moves between cores",
                "keep data per CPU, no shared counters",
            ],
        ),
    ],
    &[cost(
        ["memory/latency{kib=131072, page=4k}", "memory/latency{kib=131072, page=2m}"],
        [1.2, 1.5],
        ["Random loads in 128 MiB take {slow}", "TLB misses", "huge pages {fast} (madvise)"],
    )],
];

pub(super) const FINDINGS: &[Pair] = &[
    // As the published experiment asked (Walter Zhou, "Simulate Invalid Opcode 的性能代价分析").
    medians(
        "traps/invalid-opcode",
        "traps/imul",
        "An invalid opcode that a signal handler emulates is {compared} than a multiplication.",
    ),
    medians(
        "traps/invalid-opcode{by=module-ring0}",
        "traps/invalid-opcode{by=module-ring3}",
        "Emulated by a kernel module, a trap taken in ring 0 is {compared} than one taken in ring 3: the processor delivers both through the same gate, and both end with IRET.",
    ),
    pair(
        "memory/neighbour{distance=8}",
        "memory/neighbour{distance=128}",
        0.0,
        "An atomic addition by two threads to two words of one line is {compared} than 128 bytes apart (false sharing).",
    ),
    pair(
        "memory/neighbour{distance=64}",
        "memory/neighbour{distance=128}",
        0.0,
        "An atomic addition by two threads to words of two adjacent lines is {compared} than 128 bytes apart.",
    ),
    pair(
        "locks/uncontended{by=futex-trylock-pi}",
        "locks/uncontended{by=rseq}",
        1.0,
        "A free lock is taken by a system call (FUTEX_TRYLOCK_PI) and released by a compare-and-swap {compared} than by a restartable sequence.",
    ),
    medians(
        "files/small-file{call=fsync}",
        "files/small-file{call=all}",
        "fsync is {share} of the latency of one small file's life.",
    ),
    pair(
        "workloads/build{cache=warm, jobs=all, size=small}",
        "workloads/build{cache=warm, jobs=1, size=small}",
        0.0,
        "Building the small tree with a job for each processor is {compared} than with one job.",
    ),
    pair(
        "workloads/build{cache=warm, jobs=all, size=large}",
        "workloads/build{cache=warm, jobs=1, size=large}",
        0.0,
        "Building the large tree with a job for each processor is {compared} than with one job.",
    ),
];

struct Compared<'a> {
    summary: &'a Summary<'a>,
    slow: Row<'a>,
    fast: Row<'a>,
    times: Times,
}

impl Compared<'_> {
    fn fill(&self, text: &str) -> String {
        let device = facts::text(&self.summary.run.facts, "files.device").unwrap_or("the device");
        [
            ("{slow}", self.slow.in_words()),
            ("{fast}", self.fast.in_words()),
            ("{times}", self.times.in_words()),
            ("{compared}", self.times.compared()),
            ("{share}", figures::percent(self.times.times)),
            ("{device}", device.to_owned()),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, words)| text.replace(name, words))
    }
}

impl Pair {
    fn compared<'a>(&self, summary: &'a Summary<'a>) -> Option<Compared<'a>> {
        let (slow, fast) = (row(summary, self.slow)?, row(summary, self.fast)?);
        let times = match self.least {
            Some(least) => Times::of(slow, fast).filter(|times| times.least >= least)?,
            None => Times::of_medians(slow, fast)?,
        };
        Some(Compared { summary, slow, fast, times })
    }

    pub(super) fn finding(&self, summary: &Summary) -> Option<Finding> {
        let compared = self.compared(summary)?;
        let from = vec![compared.slow.case.clone(), compared.fast.case.clone()];
        Some(Finding { sentence: compared.fill(self.text), from })
    }
}

impl Cost {
    pub(super) fn expense(&self, summary: &Summary) -> Option<Expense> {
        let compared = self.pair.compared(summary)?;
        let mut from = vec![compared.slow.case.clone(), compared.fast.case.clone()];
        let mut action = compared.fill(self.action);
        let also = self.also.and_then(|(pattern, words)| Some((known(summary, pattern)?, words)));
        let is_faster = |interval: &tollgate_model::stats::Interval| {
            compared.slow.known().is_some_and(|slow| interval.high < slow.interval.low)
        };
        if let Some((other, words)) = also.filter(|(other, _)| is_faster(&other.interval)) {
            action.push_str(&format!("{words}{}", other.in_words()));
            from.push(other.row.case.clone());
        }
        let expense = Expense {
            what: compared.fill(self.pair.text),
            cause: compared.fill(self.cause),
            action,
            benchmark: self.pair.slow.split('{').next().unwrap_or_default(),
            from,
            facts: Vec::new(),
            rank: compared.times.times / self.usual,
        };
        Some(expense.caused_by(summary, compared.slow.case, self.otherwise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_registered_benchmarks_and_only_known_fields() {
        let pairs = || COSTS.iter().copied().flatten().map(|cost| &cost.pair).chain(FINDINGS);
        for pattern in pairs().flat_map(|pair| [pair.slow, pair.fast]) {
            let benchmark = pattern.split('{').next().unwrap_or_default();
            assert!(tollgate_suites::find(benchmark).is_some(), "{pattern}");
        }
        for text in pairs().map(|pair| pair.text) {
            for field in text.split('{').skip(1) {
                let name = field.split('}').next().unwrap_or_default();
                assert!(["slow", "times", "compared", "share"].contains(&name), "{text}");
            }
        }
    }
}
