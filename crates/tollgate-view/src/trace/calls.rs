//! The table of system calls: working calls first, then blocking calls, then the time outside of calls.

use tollgate_model::Traced;
use tollgate_model::sorting::Ordered as _;
use tollgate_model::traced::{Backend, Call, Parts};
use tollgate_output::table::{Look, Table};

use super::text;

/// A terminal of so many columns has room for the parts as times; a narrower one for their shares of the total.
const WIDE: usize = 112;
/// The columns of the kinds of waiting.
const KINDS: [&str; 3] = ["sleep", "disk", "runnable"];

/// Whether a call waits by nature: by its name, or because it mostly slept, as a read from an empty pipe does. A wait for a disk is no
/// sleep but state D of proc(5).
pub(crate) fn is_blocking(call: &Call) -> bool {
    tollgate_trace::calls::is_blocking(&call.name) || call.parts.sleep_ns > call.total_ns / 2
}

/// The calls of an execution, the slowest first: working calls, and blocking calls.
pub(crate) fn ranked(traced: &Traced) -> [Vec<&Call>; 2] {
    let mut calls: Vec<&Call> = traced.calls.iter().collect();
    calls.order_by_key(|call| std::cmp::Reverse(call.total_ns));
    let (waiting, working) = calls.into_iter().partition(|call| is_blocking(call));
    [working, waiting]
}

/// The calls that a table of so many rows shows.
pub(crate) fn shown(traced: &Traced, top: usize) -> Vec<&Call> {
    ranked(traced).iter().flat_map(|calls| calls.iter().take(top)).copied().collect()
}

/// Whether the backend knows the kinds of waiting. ptrace(2) sees that a thread was off its processor, and not why.
pub(crate) fn knows_kinds(traced: &Traced) -> bool {
    let has_kinds = |parts: &Parts| parts.sleep_ns > 0 || parts.disk_ns > 0 || parts.runqueue_ns > 0;
    traced.backend == Backend::Bpf || traced.calls.iter().any(|call| has_kinds(&call.parts))
}

/// Whether the backend knows the time on processors.
pub(crate) fn knows_cpu(traced: &Traced) -> bool {
    traced.backend != Backend::Strace
}

/// The table, with so many rows of each kind.
pub(crate) fn table(traced: &Traced, top: usize, blocking: usize, width: usize) -> Table {
    let columns = Columns::of(traced, width);
    let mut table = columns.table();
    let [working, waiting] = ranked(traced);
    columns.section(&mut table, &working, top);
    if !waiting.is_empty() {
        table.heading("blocking calls");
        columns.section(&mut table, &waiting, blocking);
    }
    let inside = Row::sum(&traced.calls.iter().collect::<Vec<_>>());
    if traced.calls.is_empty() && traced.outside.is_none() {
        return table;
    }
    table.heading("");
    match traced.outside {
        Some(outside) => {
            let total_ns = outside.total_ns();
            let row = Row { count: None, errors: None, parts: outside, total_ns, is_timed: true };
            columns.put(&mut table, Look::Plain, "outside calls", &row, &[], &[]);
            let all = Row {
                parts: inside.parts.plus(outside),
                total_ns: inside.total_ns.saturating_add(row.total_ns),
                ..inside
            };
            columns.put(&mut table, Look::Plain, "all threads", &all, &[], &[]);
        }
        None => {
            columns.put(&mut table, Look::Plain, "all calls", &inside, &[], &[]);
            let why = if traced.leaves_calls_out() {
                "unknown, as calls were left out"
            } else {
                "unknown to this backend"
            };
            table.row(Look::Faint, &["outside calls".to_owned()], &[why.to_owned()]);
        }
    }
    table
}

/// The meaning of the columns of parts, where they are shown.
pub(crate) fn legend(traced: &Traced, width: usize) -> Option<String> {
    if traced.calls.is_empty() {
        return None;
    }
    let columns = Columns::of(traced, width);
    let [sleep, disk, runnable] = KINDS;
    let mut parts = vec!["cpu: on a processor".to_owned()];
    if !columns.cpu {
        return None;
    }
    if columns.kinds {
        parts.push(format!("{sleep}: until something happens"));
        parts.push(format!("{disk}: in state D, as for a disk"));
        parts.push(format!("{runnable}: waiting for a processor"));
    }
    if columns.off {
        parts.push("off: not on a processor, for a reason unknown to the backend".to_owned());
    }
    let of = if columns.times { "" } else { "Percent of the total. " };
    Some(format!("{of}{}.", parts.join("; ")))
}

/// A line of figures.
#[derive(Clone, Copy)]
struct Row {
    count: Option<u64>,
    errors: Option<u64>,
    total_ns: u64,
    parts: Parts,
    /// False where all of its calls were stopped: no time is known.
    is_timed: bool,
}

impl Row {
    fn of(call: &Call) -> Self {
        Self {
            count: Some(call.count),
            errors: Some(call.errors),
            total_ns: call.total_ns,
            parts: call.parts,
            is_timed: call.stopped == 0 || call.timed() > 0,
        }
    }

    fn sum(calls: &[&Call]) -> Self {
        let add = |of: fn(&Call) -> u64| calls.iter().map(|call| of(call)).fold(0, u64::saturating_add);
        Self {
            count: Some(add(|call| call.count)),
            errors: Some(add(|call| call.errors)),
            total_ns: add(|call| call.total_ns),
            parts: calls.iter().fold(Parts::default(), |sum, call| sum.plus(call.parts)),
            is_timed: true,
        }
    }
}

/// What the columns do not say of calls.
fn remarks(calls: &[&Call]) -> Vec<String> {
    let sum = |of: fn(&Call) -> u64| calls.iter().map(|call| of(call)).fold(0, u64::saturating_add);
    let said =
        [(sum(|call| call.unfinished), "did not return"), (sum(|call| call.stopped), "stopped by a filter")];
    let said = said.into_iter().filter(|(number, _)| *number > 0);
    said.map(|(number, what)| format!("{} {what}", text::grouped(number))).collect()
}

/// Which columns there are.
#[derive(Clone, Copy)]
struct Columns {
    errors: bool,
    cpu: bool,
    kinds: bool,
    off: bool,
    /// The longest call is known.
    longest: bool,
    /// Parts are times, not shares.
    times: bool,
    quantiles: bool,
}

impl Columns {
    fn of(traced: &Traced, width: usize) -> Self {
        let any = |of: fn(&Call) -> bool| traced.calls.iter().any(of);
        Self {
            errors: any(|call| call.errors > 0),
            cpu: knows_cpu(traced),
            kinds: knows_kinds(traced),
            off: knows_cpu(traced) && (!knows_kinds(traced) || any(|call| call.parts.unknown_ns > 0)),
            longest: any(|call| call.max_ns > 0) || !any(|call| call.total_ns > 0),
            times: width >= WIDE,
            quantiles: any(|call| !call.histogram.is_empty()),
        }
    }

    fn table(self) -> Table {
        let mut header = vec!["call", "calls"];
        if self.errors {
            header.push("errors");
        }
        header.push("total");
        if self.cpu {
            header.push("cpu");
        }
        if self.kinds {
            header.extend(KINDS);
        }
        if self.off {
            header.push("off");
        }
        let before = header.len();
        if self.quantiles {
            header.extend(["p50", "p99"]);
        }
        if self.longest {
            header.push("max");
        }
        header.push("mean");
        // The narrowest terminals lose the last of the parts too.
        Table::new(&header).with_dispensable(header.len() - before + 1)
    }

    fn section(self, table: &mut Table, calls: &[&Call], top: usize) {
        for call in calls.iter().take(top) {
            let row = Row::of(call);
            let quantile = |q: f64| call.quantile_ns(q).map(text::time).unwrap_or_default();
            let mut distribution = Vec::new();
            if self.quantiles {
                distribution.extend([quantile(0.5), quantile(0.99)]);
            }
            if self.longest {
                distribution.push(if row.is_timed { text::time(call.max_ns) } else { String::new() });
            }
            distribution.push(call.mean_ns().map(|mean| text::time(mean.round() as u64)).unwrap_or_default());
            self.put(table, Look::Plain, &text::sentence(&call.name), &row, &distribution, &remarks(&[call]));
        }
        let others = calls.get(top..).unwrap_or_default();
        if !others.is_empty() {
            let name = text::counted(others.len() as u64, "other", "others");
            self.put(table, Look::Faint, &name, &Row::sum(others), &[], &remarks(others));
        }
        if calls.len() > 1 && top > 0 {
            self.put(table, Look::Plain, "  together", &Row::sum(calls), &[], &[]);
        }
    }

    fn put(
        self,
        table: &mut Table,
        look: Look,
        name: &str,
        row: &Row,
        distribution: &[String],
        remarks: &[String],
    ) {
        let number = |number: Option<u64>| number.map(text::grouped).unwrap_or_default();
        let part = |ns: u64| match (row.is_timed, self.times) {
            (false, _) => String::new(),
            (true, true) => text::time(ns),
            (true, false) => text::share(ns, row.total_ns),
        };
        let mut cells = vec![name.to_owned(), number(row.count)];
        if self.errors {
            cells.push(row.errors.filter(|errors| *errors > 0).map(text::grouped).unwrap_or_default());
        }
        cells.push(if row.is_timed { text::time(row.total_ns) } else { String::new() });
        if self.cpu {
            cells.push(part(row.parts.on_cpu_ns));
        }
        if self.kinds {
            cells.extend([row.parts.sleep_ns, row.parts.disk_ns, row.parts.runqueue_ns].map(part));
        }
        if self.off {
            cells.push(part(row.parts.unknown_ns));
        }
        cells.extend(distribution.iter().cloned());
        table.row(look, &cells, remarks);
    }
}
