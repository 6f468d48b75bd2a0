use tollgate_model::traced::blame::{self, Account};
use tollgate_model::traced::{Idle, TimesFrom};
use tollgate_model::{Case, Traced, Unit};
use tollgate_output::figures;
use tollgate_trace::output::ranked;

use super::subject::Subject;
use super::suites::TRACE;
use crate::page::{Table, Text};

const MOST_CALLS: usize = 8;

pub fn table(subjects: &[Subject], suite: &str, cases: &[&Case]) -> Option<Table> {
    let columns = [
        "command",
        "environment",
        "real",
        "user",
        "kernel",
        "no processor",
        "disk",
        "asleep",
        "unaccounted",
        "slowest calls, without blocking calls",
    ];
    let caption = format!("{suite}: where the time of commands went, and their slowest calls");
    let row = |subject: &Subject, case: &Case| {
        let traced = blame::median(subject.summary.figures(case)?.measured.divided())?;
        Some(numbers_of(&name_of(case, suite, traced), subject, traced))
    };
    let rows = subjects.iter().flat_map(|subject| cases.iter().filter_map(move |case| row(subject, case)));
    let rows: Vec<Vec<Text>> = rows.collect();
    (!rows.is_empty()).then_some(Table { rows, is_open: true, ..Table::new(caption, columns) })
}

fn time(ns: f64) -> String {
    figures::estimate(ns, Unit::Nanoseconds)
}

/// For `tollgate trace`, the command itself.
fn name_of(case: &Case, suite: &str, traced: &Traced) -> String {
    if suite == TRACE && !traced.command.is_empty() {
        return traced.command.join(" ");
    }
    let name = case.to_string();
    name.strip_prefix(suite).and_then(|name| name.strip_prefix('/')).unwrap_or(&name).to_owned()
}

fn numbers_of(name: &str, subject: &Subject, traced: &Traced) -> Vec<Text> {
    let idle = |of: fn(Idle) -> u64| traced.idle.map_or("unknown".to_owned(), |idle| time(of(idle) as f64));
    let processor = |ns: u64| match traced.times_from {
        TimesFrom::Unknown => "unknown".to_owned(),
        TimesFrom::Trace | TimesFrom::Rusage => time(ns as f64),
    };
    // Blocking calls would hide the rest.
    let [working, _] = ranked(traced);
    let calls: Vec<String> = working
        .iter()
        .take(MOST_CALLS)
        .map(|call| format!("{} {} in {} calls", call.name, time(call.total_ns as f64), call.count))
        .collect();
    [
        name.to_owned(),
        subject.name.clone(),
        time(traced.wall_ns as f64),
        processor(traced.user_ns),
        processor(traced.sys_ns),
        idle(|idle| idle.runqueue_ns),
        idle(|idle| idle.disk_ns),
        idle(|idle| idle.sleep_ns),
        time(Account::from_traced(traced).unaccounted as f64),
        calls.join("; "),
    ]
    .map(Text::from)
    .to_vec()
}
