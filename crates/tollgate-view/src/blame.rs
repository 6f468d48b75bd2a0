//! Two executions side by side: the parts of the difference of their real times, and the calls that account for it.

use serde::Serialize;
use tollgate_model::traced::blame::{self, Account, Blame, Difference, Part};
use tollgate_model::traced::{Backend, Parts, TimesFrom};
use tollgate_model::{Case, Measured, Params, RunId, Traced};
use tollgate_output::figures;
use tollgate_output::table::{Table, heading, paragraph};
use tollgate_trace::calls::is_blocking;
use tollgate_trace::output::text::{self, seconds};

use crate::comparison::Comparison;
use crate::versus::lines::{self, Shown, in_words_of_part};
use crate::versus::record::{self, LineRecord, SplitCall, SplitPart};
use crate::versus::split::{Line, method};

const MOST_CALLS: usize = 10;

pub struct Held<'a> {
    case: &'a Case,
    /// Base and other; the median if there are several repetitions.
    sides: [Side<'a>; 2],
    calls: Vec<Difference>,
}

struct Side<'a> {
    traced: &'a Traced,
    repetitions: usize,
    blame: Blame,
}

pub(crate) fn of<'a>(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Held<'a>> {
    let rows = comparison.rows.iter().filter(|row| row.is_estimate());
    rows.filter_map(|row| Held::of(row.case(), row.base, row.other))
}

impl<'a> Held<'a> {
    /// Compares the median repetitions of two measurements; `None` if either was not traced.
    pub(crate) fn of(case: &'a Case, base: &'a Measured, other: &'a Measured) -> Option<Self> {
        let sides = [Side::of(base)?, Side::of(other)?];
        let calls = blame::differences(&sides[0].blame, &sides[1].blame);
        Some(Self { case, sides, calls })
    }

    pub(crate) fn text(&self, width: usize) -> String {
        let [base, other] = self.accounts();
        let change = match (blame::less(other.real, base.real), base.real) {
            (0, _) => "no difference".to_owned(),
            (difference, 0) => text::difference(difference),
            (difference, real) => {
                let times = figures::multiple(other.real as f64 / real as f64);
                format!("{}, {times}", text::difference(difference))
            }
        };
        let real = [base.real, other.real].map(text::time).join(" → ");
        let title = format!("{}: real {real} ({change})", self.case);
        let mut text = format!("\n{}", heading(&title, width));
        for line in self.remarks() {
            text.push_str(&paragraph(&line, width, ""));
        }
        text.push_str(&self.parts_table().render(width));
        text.push('\n');
        text.push_str(&self.calls_table().render(width));
        text.push_str(&paragraph(self.method(), width, ""));
        text
    }

    pub(crate) fn ratio(&self) -> f64 {
        let [base, other] = self.accounts();
        other.real as f64 / base.real.max(1) as f64
    }

    pub(crate) fn sentence(&self, names: [&str; 2]) -> String {
        let [base, other] = self.accounts();
        let parts = self.parts().into_iter().map(|(part, line)| (self.part(part), line.difference));
        let mut parts: Vec<(&str, i64)> = parts.filter(|(_, difference)| *difference != 0).collect();
        parts.sort_by_key(|(_, difference)| std::cmp::Reverse(difference.unsigned_abs()));
        let part = |(name, difference): &(&str, i64)| format!("{name} {}", text::difference(*difference));
        let parts: Vec<String> = parts.iter().map(part).collect();
        let [base, other] = [base.real, other.real].map(text::time);
        let mut sentence =
            format!("{}: real time {base} in {}, {other} in {}", self.case, names[0], names[1]);
        if !parts.is_empty() {
            sentence.push_str(&format!(": {}", parts.join(", ")));
        }
        let call = self.calls.iter().find(|call| !is_blocking(&call.name) && call.total_ns() != 0);
        if let Some(call) = call {
            let (name, difference) = (text::cut(&call.name, 40), text::difference(call.total_ns()));
            sentence.push_str(&format!("; of the calls {name} differs most, by {difference}"));
        }
        sentence.push('.');
        sentence
    }

    fn accounts(&self) -> [&Account; 2] {
        [&self.sides[0].blame.account, &self.sides[1].blame.account]
    }

    fn has_strace(&self) -> bool {
        self.sides.iter().any(|side| side.traced.backend == Backend::Strace)
    }

    fn real(&self) -> Line {
        line(self.accounts().map(|account| account.real))
    }

    fn parts(&self) -> Vec<(Part, Line)> {
        let [base, other] = self.accounts();
        let parts = base.parts().into_iter().zip(other.parts());
        let parts = parts.map(|((part, base), (_, other))| (part, line([base, other])));
        if self.has_strace() { Vec::new() } else { parts.collect() }
    }

    /// The time outside of calls, if known: strace(1) does not distinguish it from parallel calls of several threads.
    fn outside(&self) -> Option<Line> {
        let is_known = |side: &Side| side.traced.backend != Backend::Strace || side.traced.threads == 1;
        let sides = self.sides.each_ref().map(|side| side.blame.outside_ns);
        self.sides.iter().all(is_known).then(|| Line::of(sides))
    }

    fn remarks(&self) -> Vec<String> {
        let [base, other] = &self.sides;
        let mut remarks = Vec::new();
        if base.repetitions.max(other.repetitions) > 1 {
            remarks.push(format!(
                "The median repetitions by real time, of {} in the base and {} in the other.",
                base.repetitions, other.repetitions
            ));
        }
        if base.traced.command != other.traced.command {
            let [base, other] = [base, other].map(|side| text::command(&side.traced.command));
            remarks.push(format!("Different commands: {base} in the base, {other} in the other."));
        }
        if base.traced.ended != other.traced.ended {
            let [base, other] =
                [base, other].map(|side| side.traced.ended.map_or("unknown".to_owned(), text::ended));
            remarks.push(format!("They ended differently: {base} in the base, {other} in the other."));
        }
        if base.traced.backend != other.traced.backend {
            let [base, other] = [base, other].map(|side| text::backend(side.traced.backend));
            remarks.push(format!(
                "Traced with {base} in the base and with {other} in the other: the difference includes the overhead of tracing."
            ));
        }
        let stopped = [base, other].map(|side| side.traced.stopped());
        if stopped != [0, 0] {
            let [base, other] = stopped.map(text::grouped);
            remarks.push(format!(
                "A filter (seccomp) stopped {base} calls in the base, {other} in the other: they are counted without a time."
            ));
        }
        if !(base.traced.missed.is_empty() && other.traced.missed.is_empty()) {
            remarks.push("Not everything was counted: `tollgate show` lists the missed events.".to_owned());
        }
        remarks
    }

    fn part(&self, part: Part) -> &'static str {
        in_words_of_part(part, self.sides.iter().any(|side| side.traced.backend == Backend::Ptrace))
    }

    fn parts_table(&self) -> Table {
        let parts = self.parts().into_iter().filter(|(_, line)| *line != Line::default());
        let lines = parts.map(|(part, line)| self.shown(self.part(part), line));
        let lines = lines.chain([self.shown("real", self.real())]);
        let columns = lines::columns().without(&["calls", "of_which"]);
        Table::from_rows(&columns, lines.map(|line| (line, None))).with_dispensable(1)
    }

    fn calls_table(&self) -> Table {
        // They are ranked: calls without a difference come last.
        let differ = self.calls.iter().take(MOST_CALLS).take_while(|call| call.total_ns() != 0).count();
        let (shown, rest) = self.calls.split_at(differ);
        let call = |call: &Difference| {
            let of_which = (!self.has_strace()).then(|| in_words(call));
            let shown = self.shown(&text::cut(&call.name, 40), line_of(call)).of_call(call.counts, of_which);
            (shown, is_blocking(&call.name).then(|| "blocking call".to_owned()))
        };
        let sum =
            |side: usize| rest.iter().map(|call| call.parts[side].total_ns()).fold(0, u64::saturating_add);
        let others = (!rest.is_empty()).then(|| {
            let name = text::counted(rest.len() as u64, "other", "others");
            self.shown(&name, line([sum(0), sum(1)])).of_rest()
        });
        let outside = self.outside().map(|line| self.shown("outside of calls", line));
        let beside = others.into_iter().chain(outside).map(|line| (line, None));
        let columns = lines::columns().headed("name", "call");
        Table::from_rows(&columns, shown.iter().map(call).chain(beside)).with_dispensable(3)
    }

    fn shown(&self, name: &str, line: Line) -> Shown {
        Shown::new(name, line, self.real().difference, text::difference)
    }

    fn method(&self) -> &'static str {
        const STRACE: &str = "strace(1) does not know the parts of the real time. If threads run in parallel, a call's share is an estimate.";
        if self.has_strace() { STRACE } else { method(self.sides.iter().map(|side| side.traced)) }
    }

    pub(crate) fn record(&self, other_run: &'a RunId) -> ComparedTraces<'_> {
        let [base, other] = &self.sides;
        ComparedTraces {
            other_run,
            benchmark: &self.case.benchmark,
            params: &self.case.params,
            base: SideRecord::of(base),
            other: SideRecord::of(other),
            difference_s: record::seconds(self.real().difference),
            parts: self.parts().into_iter().map(SplitPart::from).collect(),
            calls: self.calls.iter().map(|call| CallRecord::of(call, !self.has_strace())).collect(),
            outside: self.outside().map(LineRecord::from),
            exact: self.sides.iter().all(|side| blame::is_exact(side.traced)),
            same_command: base.traced.command == other.traced.command,
        }
    }
}

impl<'a> Side<'a> {
    fn of(measured: &'a Measured) -> Option<Self> {
        let executions = measured.divided();
        let traced = blame::median(executions)?;
        Some(Self { traced, repetitions: executions.len(), blame: Blame::of(traced) })
    }
}

/// The differences of the parts of a call: on a processor, asleep, waiting for a disk, ready to run, and unknown.
fn differences(call: &Difference) -> [i64; 5] {
    let of =
        |parts: Parts| [parts.on_cpu_ns, parts.sleep_ns, parts.disk_ns, parts.runqueue_ns, parts.unknown_ns];
    let [base, other] = call.parts.map(of);
    std::array::from_fn(|at| blame::less(other[at], base[at]))
}

fn in_words(call: &Difference) -> String {
    let names = ["cpu", "sleep", "disk", "runnable", "off"];
    let mut parts: Vec<(&str, i64)> = names.into_iter().zip(differences(call)).collect();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(ns.unsigned_abs()));
    let largest = parts.iter().filter(|(_, ns)| *ns != 0).take(2);
    largest.map(|(name, ns)| format!("{name} {}", text::difference(*ns))).collect::<Vec<String>>().join(", ")
}

fn line(sides: [u64; 2]) -> Line {
    Line::of(sides.map(|ns| blame::less(ns, 0)))
}

fn line_of(call: &Difference) -> Line {
    line(call.parts.map(Parts::total_ns))
}

/// A comparison of two executions.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ComparedTraces<'a> {
    /// The id of the other run.
    other_run: &'a RunId,
    /// Such as `workloads/grep`.
    benchmark: &'a str,
    /// The parameters of the case by name.
    params: &'a Params,
    /// The median repetition of the base.
    base: SideRecord<'a>,
    /// The median repetition of the other.
    other: SideRecord<'a>,
    /// Difference of the real times.
    difference_s: f64,
    /// The parts of the difference. They sum to the real times. Empty if a side is a log of strace(1).
    parts: Vec<SplitPart>,
    /// The contribution of each call to the real time, the largest difference first.
    calls: Vec<CallRecord>,
    /// Time outside of calls; None if a side is a log of strace(1) of several threads.
    outside: Option<LineRecord>,
    /// Each command had one thread and all of its time was seen; otherwise contributions are an estimate.
    exact: bool,
    /// Whether both ran the same command.
    same_command: bool,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedExecution"))]
struct SideRecord<'a> {
    /// Its arguments, the program first.
    command: &'a [String],
    /// Its tracer.
    backend: Backend,
    /// Number of repetitions.
    repetitions: usize,
    /// Real time.
    wall_s: f64,
    /// Time on processors in user mode.
    user_s: Option<f64>,
    /// Time on processors in the kernel.
    sys_s: Option<f64>,
    /// Real time in which no thread was on a processor.
    wait_s: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedCall"))]
struct CallRecord {
    #[serde(flatten)]
    call: SplitCall,
    /// Part of the difference: on a processor; None if a side is a log of strace(1), like the others.
    on_cpu_s: Option<f64>,
    /// Asleep until something happens.
    sleep_s: Option<f64>,
    /// Waiting for a disk.
    disk_s: Option<f64>,
    /// Ready to run, without a processor.
    runqueue_s: Option<f64>,
    /// Off the processor, for an unknown reason.
    unknown_s: Option<f64>,
    /// Whether it usually waits for others, such as `wait4`.
    blocking: bool,
}

impl<'a> SideRecord<'a> {
    fn of(side: &Side<'a>) -> Self {
        let traced = side.traced;
        let processor = |ns: u64| (traced.times_from != TimesFrom::Unknown).then(|| seconds(ns));
        Self {
            command: &traced.command,
            backend: traced.backend,
            repetitions: side.repetitions,
            wall_s: seconds(traced.wall_ns),
            user_s: processor(traced.user_ns),
            sys_s: processor(traced.sys_ns),
            wait_s: traced.idle.map(|idle| seconds(idle.total_ns())),
        }
    }
}

impl CallRecord {
    fn of(call: &Difference, has_parts: bool) -> Self {
        let parts = differences(call).map(|ns| has_parts.then(|| record::seconds(ns)));
        let [on_cpu_s, sleep_s, disk_s, runqueue_s, unknown_s] = parts;
        Self {
            call: SplitCall::new(&call.name, call.counts, line_of(call)),
            on_cpu_s,
            sleep_s,
            disk_s,
            runqueue_s,
            unknown_s,
            blocking: is_blocking(&call.name),
        }
    }
}
