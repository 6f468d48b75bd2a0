//! The slowest processes.

use tollgate_model::Traced;
use tollgate_model::traced::{Call, Parts, Process};

use super::text;
use crate::table::{Look, Table, paragraph};

/// How all threads of a process passed their time.
pub(crate) fn parts(process: &Process) -> Parts {
    process.calls.iter().fold(process.outside, |sum, call| sum.plus(call.parts))
}

/// All of it that was not on a processor.
pub(crate) fn waiting(parts: Parts) -> u64 {
    parts.total_ns().saturating_sub(parts.on_cpu_ns)
}

/// The call that took longest; a blocking call only where there is no other.
pub(crate) fn top_call(calls: &[Call]) -> Option<&Call> {
    calls.iter().max_by_key(|call| (!super::calls::is_blocking(call), call.total_ns))
}

/// How long it was there, where it ended.
pub(crate) fn real(process: &Process) -> Option<u64> {
    process.ended_ns.map(|ended| ended.saturating_sub(process.began_ns))
}

/// The table, or why there is none.
pub(crate) fn text(traced: &Traced, top: usize, width: usize) -> String {
    if traced.tree.is_empty() {
        return paragraph(
            "Its processes were not added up: `tollgate trace --by process` or `--tree` does that, where its backend can.",
            width,
            "",
        );
    }
    let mut processes: Vec<(&Process, Parts)> =
        traced.tree.iter().map(|process| (process, parts(process))).collect();
    // By processor time, then by waiting.
    processes.sort_by_key(|(_, parts)| std::cmp::Reverse((parts.on_cpu_ns, parts.total_ns())));
    let mut table = Table::new(&["process", "pid", "real", "cpu", "waiting", "calls", "top call"])
        .with_words(&["top call"])
        .with_dispensable(2);
    for (process, parts) in processes.iter().take(top) {
        let calls = process.calls.iter().map(|call| call.count).fold(0, u64::saturating_add);
        let cells = [
            text::cut(&process.name, 24),
            process.pid.to_string(),
            real(process).map_or_else(|| "not ended".to_owned(), text::time),
            text::time(parts.on_cpu_ns),
            text::time(waiting(*parts)),
            text::grouped(calls),
            top_call(&process.calls).map(in_words).unwrap_or_default(),
        ];
        table.row(Look::Plain, &cells, &[]);
    }
    if let Some(others) = processes.get(top..).filter(|others| !others.is_empty()) {
        let sum = others.iter().fold(Parts::default(), |sum, (_, parts)| sum.plus(*parts));
        let name = text::counted(others.len() as u64, "other", "others");
        let cells = [name, String::new(), String::new(), text::time(sum.on_cpu_ns), text::time(waiting(sum))];
        table.row(Look::Faint, &cells, &[]);
    }
    table.render(width)
}

/// `openat 12.3 ms`.
pub(crate) fn in_words(call: &Call) -> String {
    format!("{} {}", text::cut(&call.name, 24), text::time(call.total_ns))
}
