//! Parts of a whole: the latency of a small file's life by call, and the time of traced commands.

use tollgate_model::traced::blame::{self, Account};
use tollgate_model::traced::{Idle, TimesFrom};
use tollgate_model::{Case, Traced, Unit};
use tollgate_output::figures;

use super::panels::panels;
use super::subject::Subject;
use super::suites::TRACE;
use crate::page::{Bar, Bars, Drawing, Figure, Fill, Key, Part, Sign, Table, Text};
use crate::pictures::bill;
use tollgate_trace::output::ranked;

/// More bars are no picture.
const MOST: usize = 40;

/// The latency of each call in one small file's life.
pub fn bill(subjects: &[Subject]) -> Option<Figure> {
    let columns = ["call", "environment", "median", "p99", "max", "share"];
    let mut numbers = Table::new("The figures by call", columns);
    let mut draw = |subject: &Subject| {
        let lines = bill::lines(&subject.summary);
        let all = lines.iter().find(|line| line.call == bill::ALL).filter(|all| all.median > 0.0)?.median;
        let share = |median: f64| (median / all).clamp(0.0, 1.0);
        let calls = lines.iter().filter(|line| line.call != bill::ALL).take(MOST);
        let row = |line: &bill::Line| {
            let [median, p99, max] = &line.text;
            let words = format!("{median}, {}", figures::percent(share(line.median)));
            let tail = if p99.is_empty() { format!("max {max}") } else { format!("p99 {p99}") };
            let title = format!("{}: {median}, {tail}", line.call);
            let parts = vec![Part { fill: Fill::Plain, share: share(line.median), title: title.into() }];
            let words = Text::from(words);
            Bar { name: Text::label(line.call), value: words.clone(), in_short: words, parts }
        };
        let rows: Vec<Bar> = calls.map(row).collect();
        numbers.rows.extend(lines.iter().map(|line| {
            let [median, p99, max] = line.text.clone();
            let share = figures::percent(share(line.median));
            [line.call.to_owned(), subject.name.clone(), median, p99, max, share].map(Text::from).to_vec()
        }));
        (rows.len() > 1).then_some(Drawing::Bars(Bars { rows }))
    };
    let found: Vec<Option<Drawing>> = subjects.iter().map(&mut draw).collect();
    let panels = panels(subjects, |subject| found.get(subject.look)?.clone());
    (!panels.is_empty()).then(|| Figure {
        title: "files/small-file: latency of one small file's life, by call".into(),
        description: "The latency of each call in a small file's life, as a share of their sum.".into(),
        panels,
        numbers: Some(numbers),
        ..Figure::default()
    })
}

/// Calls of a command that are worth naming.
const MOST_CALLS: usize = 8;

/// Where the real time of traced commands went.
pub fn traced(subjects: &[Subject], suite: &str, cases: &[&Case]) -> Option<Figure> {
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
    let caption = format!("{suite}: the figures of the commands, and their slowest calls");
    let mut numbers = Table::new(caption, columns);
    let mut draw = |subject: &Subject| {
        let rows: Vec<Bar> = cases
            .iter()
            .filter_map(|case| {
                let traced = blame::median(&subject.summary.figures(case)?.measured.traced)?;
                numbers.rows.push(numbers_of(&name_of(case, suite, traced), subject, traced));
                Some(bar(&name_of(case, suite, traced), traced))
            })
            .take(MOST)
            .collect();
        (!rows.is_empty()).then_some(Drawing::Bars(Bars { rows }))
    };
    let found: Vec<Option<Drawing>> = subjects.iter().map(&mut draw).collect();
    let panels = panels(subjects, |subject| found.get(subject.look)?.clone());
    let key = |fill, name: &str| Key { sign: Sign::Fill(fill), name: name.into() };
    (!panels.is_empty()).then(|| Figure {
        is_folded: false,
        title: format!("{suite}: where the time of commands went").into(),
        description: "The real time of the median execution: on a processor, in user mode and in the \
                      kernel; and while none of its threads was on one, the kind of waiting."
            .into(),
        keys: vec![
            key(Fill::User, "on a processor, user mode"),
            key(Fill::Kernel, "on a processor, kernel"),
            key(Fill::Ready, "waiting for a processor"),
            key(Fill::Disk, "waiting for a disk"),
            key(Fill::Asleep, "asleep"),
            key(Fill::Unknown, "unaccounted"),
        ],
        panels,
        numbers: Some(numbers),
    })
}

/// The parts of the real time, each in nanoseconds.
fn parts(traced: &Traced) -> [(Fill, f64); 6] {
    let Account { real: _, user, sys, runqueue, disk, sleep, unaccounted } = Account::from_traced(traced);
    [
        (Fill::User, user),
        (Fill::Kernel, sys),
        (Fill::Ready, runqueue),
        (Fill::Disk, disk),
        (Fill::Asleep, sleep),
        (Fill::Unknown, unaccounted),
    ]
    .map(|(fill, ns)| (fill, ns as f64))
}

fn time(ns: f64) -> String {
    figures::estimate(ns, Unit::Nanoseconds)
}

/// The longest name that fits left of the time.
const LONGEST_NAME: usize = 42;

/// A case without its suite; for `tollgate trace`, the command itself.
fn name_of(case: &Case, suite: &str, traced: &Traced) -> String {
    if suite == TRACE && !traced.command.is_empty() {
        return traced.command.join(" ");
    }
    let name = case.to_string();
    name.strip_prefix(suite).and_then(|name| name.strip_prefix('/')).unwrap_or(&name).to_owned()
}

fn bar(name: &str, traced: &Traced) -> Bar {
    let wall = (traced.wall_ns as f64).max(1.0);
    let named = |fill| match fill {
        Fill::User => "user",
        Fill::Kernel => "kernel",
        Fill::Ready => "no processor",
        Fill::Disk => "disk",
        Fill::Asleep => "asleep",
        Fill::Plain | Fill::Unknown => "unaccounted",
    };
    let shown: Vec<(Fill, f64)> = parts(traced).into_iter().filter(|(_, ns)| *ns > 0.0).collect();
    let words: Vec<String> = shown
        .iter()
        .filter(|(_, ns)| ns / wall >= 0.005)
        .map(|(fill, ns)| format!("{} {}", named(*fill), figures::percent(ns / wall)))
        .collect();
    let part = |&(fill, ns): &(Fill, f64)| {
        let title = format!("{}: {} ({})", named(fill), time(ns), figures::percent(ns / wall)).into();
        Part { fill, share: ns / wall, title }
    };
    Bar {
        name: Text::cut(name, LONGEST_NAME),
        value: Text::new(&format!("{}: {}", time(wall), words.join(", "))),
        in_short: time(wall).into(),
        parts: shown.iter().map(part).collect(),
    }
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
