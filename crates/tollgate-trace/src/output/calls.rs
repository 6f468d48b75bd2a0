//! The table of system calls: working calls first, then blocking calls, then the time outside of calls.

use tollgate_model::Traced;
use tollgate_model::traced::Call;
use tollgate_output::column::Columns;
use tollgate_output::table::{Look, Table};

use super::columns::{self, Known, Line, is_blocking};
use super::text;

/// A terminal with this many columns has room for the parts as times; on a narrower one they are shares of the total.
const WIDE: usize = 112;
/// Columns of the distribution of single calls, which follow the sums.
const DISTRIBUTION: [&str; 4] = ["p50_s", "p99_s", "max_s", "mean_s"];

/// Returns the calls of an execution, slowest first: working calls, and blocking calls.
pub fn ranked(traced: &Traced) -> [Vec<&Call>; 2] {
    let mut calls: Vec<&Call> = traced.calls.iter().collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.total_ns));
    let (waiting, working) = calls.into_iter().partition(|call| is_blocking(call));
    [working, waiting]
}

pub(crate) fn shown(traced: &Traced, top: usize) -> Vec<&Call> {
    ranked(traced).iter().flat_map(|calls| calls.iter().take(top)).copied().collect()
}

pub(crate) fn table(traced: &Traced, top: usize, blocking: usize, width: usize) -> Table {
    let mut rows = Rows::of(traced, width);
    let [working, waiting] = ranked(traced);
    rows.section(&working, top);
    if !waiting.is_empty() {
        rows.table.heading("blocking calls");
        rows.section(&waiting, blocking);
    }
    if traced.calls.is_empty() && traced.outside.is_none() {
        return rows.table;
    }
    rows.table.heading("");
    let all: Vec<&Call> = traced.calls.iter().collect();
    match traced.outside {
        Some(outside) => {
            rows.put(Look::Plain, Line::outside("outside calls", outside, rows.known), &[]);
            rows.put(Look::Plain, Line::together("all threads", &all, rows.known).plus(outside), &[]);
        }
        None => {
            rows.put(Look::Plain, Line::together("all calls", &all, rows.known), &[]);
            let why = if traced.leaves_calls_out() {
                "unknown, since calls were left out"
            } else {
                "unknown to this backend"
            };
            rows.table.row(Look::Faint, &["outside calls".to_owned()], &[why.to_owned()]);
        }
    }
    rows.table
}

pub(crate) fn legend(traced: &Traced, width: usize) -> Option<String> {
    let keys = keys(traced);
    let said = [
        ("on_cpu_s", "on a processor"),
        ("sleep_s", "until something happens"),
        ("disk_s", "in state D, as for a disk"),
        ("runqueue_s", "waiting for a processor"),
        ("unknown_s", "not on a processor, for a reason unknown to the backend"),
    ];
    if traced.calls.is_empty() || !keys.contains(&"on_cpu_s") {
        return None;
    }
    let all = columns::columns();
    let head = |key: &str| all.iter().find(|column| column.key == key).map(|column| column.head.clone());
    let said = said.iter().filter(|(key, _)| keys.contains(key));
    let said: Vec<String> =
        said.map(|(key, what)| format!("{}: {what}", head(key).unwrap_or_default())).collect();
    let of = if width < WIDE { "Percent of the total. " } else { "" };
    Some(format!("{of}{}.", said.join("; ")))
}

pub(crate) fn left_out(traced: &Traced) -> Option<String> {
    let Known { totals: true, children: true, .. } = Known::of(traced) else { return None };
    let waits = traced.calls.iter().filter(|call| call.waits_for_child() && call.total_ns > 0);
    let waits: Vec<&str> = waits.map(|call| call.name.as_str()).collect();
    (!waits.is_empty()).then(|| {
        format!(
            "No sum includes the time of {}: the children's own calls have it.",
            tollgate_model::text::listed(&waits)
        )
    })
}

fn keys(traced: &Traced) -> Vec<&'static str> {
    let Known { cpu, kinds, totals, .. } = Known::of(traced);
    let any = |of: fn(&Call) -> bool| traced.calls.iter().any(of);
    let has_quantiles = any(|call| !call.histogram.is_empty());
    let columns = [
        ("name", true),
        ("count", true),
        ("errors", any(|call| call.errors > 0)),
        ("total_s", totals),
        ("on_cpu_s", cpu),
        ("sleep_s", kinds),
        ("disk_s", kinds),
        ("runqueue_s", kinds),
        ("unknown_s", cpu && (!kinds || any(|call| call.parts.unknown_ns > 0))),
        ("p50_s", has_quantiles),
        ("p99_s", has_quantiles),
        ("max_s", totals && (any(|call| call.max_ns > 0) || !any(|call| call.total_ns > 0))),
        ("mean_s", totals),
    ];
    columns.into_iter().filter(|(_, is_shown)| *is_shown).map(|(key, _)| key).collect()
}

struct Rows<'a> {
    columns: Columns<Line<'a>>,
    table: Table,
    known: Known,
    in_shares: bool,
}

impl<'a> Rows<'a> {
    fn of(traced: &Traced, width: usize) -> Self {
        let keys = keys(traced);
        let columns = columns::columns().arranged(&keys);
        // The narrowest terminals lose the last of the parts too.
        let dispensable = keys.iter().filter(|key| DISTRIBUTION.contains(key)).count() + 1;
        let table = Table::from_rows(&columns, []).with_dispensable(dispensable);
        Self { columns, table, known: Known::of(traced), in_shares: width < WIDE }
    }

    fn section(&mut self, calls: &[&'a Call], top: usize) {
        for call in calls.iter().take(top) {
            let line = Line::of(call, self.known);
            let remarks = line.remarks();
            self.put(Look::Plain, line, &remarks);
        }
        let others = calls.get(top..).unwrap_or_default();
        if !others.is_empty() {
            let name = text::counted(others.len() as u64, "other", "others");
            let line = Line::sum(name, others, self.known);
            let remarks = line.remarks();
            self.put(Look::Faint, line, &remarks);
        }
        if calls.len() > 1 && top > 0 {
            self.put(Look::Plain, Line::together("  together", calls, self.known), &[]);
        }
    }

    fn put(&mut self, look: Look, line: Line<'a>, remarks: &[String]) {
        let values = self.columns.values(&line.in_shares(self.in_shares));
        let cells: Vec<String> = values.into_iter().map(|value| value.known().unwrap_or_default()).collect();
        self.table.row(look, &cells, remarks);
    }
}
