use tollgate_model::Traced;
use tollgate_model::traced::{Call, Parts, Process};
use tollgate_output::table::{Look, Table};

use super::columns::{Known, is_blocking};
use super::text;

pub(crate) fn parts(process: &Process) -> Parts {
    process.calls.iter().fold(process.outside, |sum, call| sum.plus(call.parts))
}

pub(crate) fn waiting(parts: Parts) -> u64 {
    parts.total_ns().saturating_sub(parts.on_cpu_ns)
}

/// Returns the headings of time columns. If the time on processors is unknown, they have the time in calls, if that is known.
pub(crate) fn time_columns(traced: &Traced) -> &'static [&'static str] {
    match Known::of(traced) {
        Known { cpu: true, .. } => &["cpu", "waiting"],
        Known { totals: true, .. } => &["in calls"],
        Known { .. } => &[],
    }
}

pub(crate) fn time_cells(traced: &Traced, parts: Parts) -> Vec<String> {
    match Known::of(traced) {
        Known { cpu: true, .. } => vec![text::time(parts.on_cpu_ns), text::time(waiting(parts))],
        Known { totals: true, .. } => vec![text::time(parts.total_ns())],
        Known { .. } => vec![],
    }
}

/// Returns the call that took longest; a blocking call only if there is no other. `None` if no call has a known time.
pub(crate) fn top_call(calls: &[Call]) -> Option<&Call> {
    let timed = calls.iter().filter(|call| call.timed() > 0);
    timed.max_by_key(|call| (!is_blocking(call), call.total_ns))
}

pub(crate) fn real(process: &Process) -> Option<u64> {
    process.ended_ns.map(|ended| ended.saturating_sub(process.began_ns))
}

pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    let mut processes: Vec<(&Process, Parts)> =
        traced.tree.iter().map(|process| (process, parts(process))).collect();
    processes.sort_by_key(|(_, parts)| std::cmp::Reverse((parts.on_cpu_ns, parts.total_ns())));
    let header = [&["process", "pid", "real"], time_columns(traced), &["calls", "top call"]].concat();
    let mut table = Table::new(&header).with_words(&["top call"]).with_dispensable(2);
    for (process, parts) in processes.iter().take(top) {
        let calls = process.calls.iter().map(|call| call.count).fold(0, u64::saturating_add);
        let mut cells = vec![
            text::cut(&process.name, 24),
            // A log of one thread may not contain its id.
            Some(process.pid).filter(|&pid| pid > 0).map(|pid| pid.to_string()).unwrap_or_default(),
            real(process).map_or_else(|| "not ended".to_owned(), text::time),
        ];
        cells.extend(time_cells(traced, *parts));
        cells.extend([
            text::grouped(calls),
            top_call(&process.calls).map(|call| in_words(traced, call)).unwrap_or_default(),
        ]);
        table.row(Look::Plain, &cells, &[]);
    }
    if let Some(others) = processes.get(top..).filter(|others| !others.is_empty()) {
        let sum = others.iter().fold(Parts::default(), |sum, (_, parts)| sum.plus(*parts));
        let name = text::counted(others.len() as u64, "other", "others");
        let mut cells = vec![name, String::new(), String::new()];
        cells.extend(time_cells(traced, sum));
        table.row(Look::Faint, &cells, &[]);
    }
    table.render(width)
}

/// `openat 12.3 ms`; empty if no call has a time.
pub(crate) fn in_words(traced: &Traced, call: &Call) -> String {
    if traced.is_untimed {
        String::new()
    } else {
        format!("{} {}", text::cut(&call.name, 24), text::time(call.total_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::examples;

    #[test]
    fn the_top_call_is_one_whose_time_is_known() {
        let mut wait = examples::checkout().calls[0].clone();
        wait.name = "wait4".to_owned();
        let parts = Parts::default();
        let stopped =
            Call { name: "socket".to_owned(), count: 7, stopped: 7, total_ns: 0, parts, ..wait.clone() };
        let top = |calls: &[Call]| top_call(calls).map(|call| call.name.clone());
        assert_eq!(top(&[stopped.clone(), wait]).as_deref(), Some("wait4"));
        assert_eq!(top(&[stopped]), None);
    }
}
