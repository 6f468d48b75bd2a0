//! Shows where the time of one execution went, as text: the answer on the first line, then the evidence.

use anstyle::Style;
use tollgate_model::traced::blame::Account;
use tollgate_model::traced::{Backend, TimesFrom};
use tollgate_model::{Traced, Unit};
use tollgate_output::figures;
use tollgate_output::table::{heading, paragraph};

use super::view::{By, Stage, View};
use super::{blocked, calls, division, files, histogram, processes, rule, text, tree};

const BOLD: Style = Style::new().bold();
/// Further notes are only counted.
const MOST_NOTES: usize = 8;

/// Renders everything about an execution; each line ends with a newline.
pub fn screen(traced: &Traced, view: &View, width: usize) -> String {
    let mut text = head(traced, width);
    text.push_str(&paragraph(&subject(traced), width, ""));
    if !traced.missed.is_empty() {
        text.push_str(&paragraph("not everything was counted: see `missed` below", width, ""));
    }
    text.push('\n');
    text.push_str(&body(traced, view, width));
    if view.histogram {
        text.push_str(&histogram::text(traced, view.top, width));
    }
    if !traced.blocked.is_empty() {
        text.push_str(&section("sleeps", &blocked::text(traced, view.top, width), width));
    }
    if view.tree {
        let tree = if traced.tree.is_empty() {
            paragraph(view.stage.without_processes(), width, "")
        } else {
            tree::text(traced, view.top, width)
        };
        text.push_str(&section("processes", &tree, width));
    }
    if view.rule {
        text.push_str(&paragraph(&rule::in_words(traced), width, ""));
    }
    text.push_str(&cost(traced, width));
    text.push_str(&doubts(traced, width));
    text
}

/// Renders one interval of an ongoing trace, given its start and end in nanoseconds.
pub fn interval(traced: &Traced, bounds: (u64, u64), view: &View, width: usize) -> String {
    let (from, to) = bounds;
    let title = format!("from {} to {}", text::time(from), text::time(to));
    let view = View { stage: Stage::GoesOn, ..*view };
    format!("{}{}{}", heading(&title, width), head(traced, width), body(traced, &view, width))
}

fn section(title: &str, text: &str, width: usize) -> String {
    format!("{}{text}\n", heading(title, width))
}

fn body(traced: &Traced, view: &View, width: usize) -> String {
    let text = match view.by {
        By::Call if traced.backend == Backend::Rusage => return String::new(),
        By::Call if traced.calls.is_empty() && traced.attached.is_some() => {
            paragraph("None of the traced system calls was made or returned.", width, "")
        }
        By::Call if traced.calls.is_empty() => {
            paragraph("The command made none of the traced system calls.", width, "")
        }
        By::Call => {
            let mut text = calls::table(traced, view.top, view.blocking, width).render(width);
            for note in [calls::legend(traced, width), calls::left_out(traced)].into_iter().flatten() {
                text.push_str(&paragraph(&note, width, ""));
            }
            text
        }
        By::Process if traced.tree.is_empty() => paragraph(view.stage.without_processes(), width, ""),
        By::Process => processes::text(traced, view.top, width),
        By::File if traced.files.is_empty() => paragraph(view.stage.without_files(), width, ""),
        By::File => files::text(traced, view.top, width),
    };
    format!("{text}\n")
}

/// `real 5.35 s   user 3.59 s   sys 1.78 s   waiting 210 ms (disk 150 ms, runnable 40.0 ms, sleep 20.0 ms)`.
fn head(traced: &Traced, width: usize) -> String {
    let time = |name: &str, ns: u64| format!("{name} {}", text::time(ns));
    let waiting = match traced.idle {
        Some(idle) => {
            let kinds = [("disk", idle.disk_ns), ("runnable", idle.runqueue_ns), ("sleep", idle.sleep_ns)];
            let kinds = kinds.map(|(name, ns)| time(name, ns)).join(", ");
            format!("waiting {} ({kinds})", text::time(idle.total_ns()))
        }
        // The busy time is at most user plus sys, but the stops of ptrace(2) are neither busy nor waiting.
        None => match (Account::from_traced(traced).unaccounted, traced.backend) {
            (0, _) | (_, Backend::Ptrace | Backend::Strace) => "waiting unknown".to_owned(),
            (least, _) => format!("waiting unknown, at least {}", text::time(least)),
        },
    };
    let known = |name: &str, ns: u64, is_known: bool| {
        if is_known { time(name, ns) } else { format!("{name} unknown") }
    };
    let has_processor_time = traced.times_from != TimesFrom::Unknown;
    let mut pieces = vec![
        known("real", traced.wall_ns, traced.wall_ns > 0 || traced.backend != Backend::Strace),
        known("user", traced.user_ns, has_processor_time),
        known("sys", traced.sys_ns, has_processor_time),
        waiting,
    ];
    if traced.idle.is_some() {
        pieces.push(time("unaccounted", Account::from_traced(traced).unaccounted));
    }
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + piece.chars().count() <= width => {
                line.push_str("   ");
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    let wrapped = lines.iter().flat_map(|line| {
        if line.chars().count() > width {
            tollgate_output::table::wrap(line, width)
        } else {
            vec![line.clone()]
        }
    });
    let lines: String = wrapped.map(|line| format!("{BOLD}{line}{BOLD:#}\n")).collect();
    lines + &unaccounted(traced, width)
}

fn unaccounted(traced: &Traced, width: usize) -> String {
    const MUCH: f64 = 0.2;
    let time = Account::from_traced(traced).unaccounted;
    let is_much = time as f64 > MUCH * traced.wall_ns as f64;
    if traced.idle.is_none() || traced.attached.is_some() || !is_much {
        return String::new();
    }
    let what = "Unaccounted time lies before the first call of the command (its start) and after its last (its memory is freed, and its \
                end is noticed).";
    paragraph(what, width, "")
}

fn subject(traced: &Traced) -> String {
    let mut words = vec![match (&traced.attached, traced.ended) {
        (Some(attached), _) => attached.until.map_or("goes on", text::until).to_owned(),
        (None, Some(ended)) => text::ended(ended),
        (None, None) => "its end is not known".to_owned(),
    }];
    let mut counted = |number: u64, one: &str, many: &str| {
        if number > 0 {
            words.push(text::counted(number, one, many));
        }
    };
    if traced.backend != Backend::Rusage {
        counted(traced.processes, "process", "processes");
        counted(traced.threads, "thread", "threads");
    }
    counted(u64::from(traced.processors), "processor", "processors");
    let command = match (&traced.attached, traced.command.is_empty()) {
        (Some(attached), _) => text::attached(attached, &traced.command),
        (None, true) => "a command that is not known".to_owned(),
        (None, false) => text::command(&traced.command),
    };
    format!("{command}: {}", words.join(", "))
}

fn cost(traced: &Traced, width: usize) -> String {
    let by = match traced.backend {
        Backend::Rusage => {
            let why = "not traced (rusage only): real, user and sys are from wait4(2); its calls are unknown";
            return paragraph(why, width, "");
        }
        Backend::Strace => return String::new(),
        backend => text::backend(backend),
    };
    let each = |ns: f64| figures::estimate(ns.max(0.0), Unit::Nanoseconds);
    let mut lines = vec![match traced.cost_per_call_ns {
        Some(ns) => format!("{} to each of {}", each(ns), text::counted(traced.count(), "call", "calls")),
        None => "to each call: could not be measured".to_owned(),
    }];
    lines.extend(cost_to_command(traced));
    lines.push(match cost_to_others(traced) {
        Some(0.0) => "nothing to other processes".to_owned(),
        Some(ns) if traced.leaves_calls_out() => {
            format!(
                "{} to each call that was left out, and to each call of every other process meanwhile",
                each(ns)
            )
        }
        Some(ns) => format!("{} to each call of every other process meanwhile", each(ns)),
        None => "to other processes: could not be measured".to_owned(),
    });
    let lines: String = lines.iter().map(|line| paragraph(line, width, "  ")).collect();
    format!("{}{lines}", paragraph(&format!("Tracing with {by} added, measured in this run:"), width, ""))
}

fn cost_to_command(traced: &Traced) -> Option<String> {
    let share = cost_share(traced)?;
    if share >= 1.0 {
        return Some("to the command: more than its real time, by these figures".to_owned());
    }
    // Calls of several threads are slowed in parallel.
    let whose = if traced.attached.is_some() { "to them" } else { "to the command" };
    let real = if traced.attached.is_some() { "the" } else { "its" };
    let about = match (share < 1e-4, traced.threads) {
        (true, _) => "",
        (false, 0 | 1) => "about ",
        (false, _) => "at most ",
    };
    let ns = text::time((share * traced.wall_ns as f64).round() as u64);
    Some(format!("{about}{ns} {whose}, {} of {real} real time", figures::percent(share)))
}

/// Returns the overhead for a call of an untraced process, in nanoseconds.
pub(crate) fn cost_to_others(traced: &Traced) -> Option<f64> {
    match traced.backend {
        Backend::Bpf => traced.cost_to_others_ns.map(|ns| ns.max(0.0)),
        Backend::Ptrace => Some(0.0),
        Backend::Rusage | Backend::Strace => None,
    }
}

/// Returns the share of the real time that tracing took if all calls were sequential. `None` if their number is unknown.
pub(crate) fn cost_share(traced: &Traced) -> Option<f64> {
    if traced.leaves_calls_out() {
        return None;
    }
    let cost = traced.cost_per_call_ns?.max(0.0) * traced.count() as f64;
    (traced.wall_ns > 0).then(|| cost / traced.wall_ns as f64).filter(|share| share.is_finite())
}

fn doubts(traced: &Traced, width: usize) -> String {
    let mut text = String::new();
    for missed in traced.missed.iter().take(MOST_NOTES) {
        let line = format!("{} {}", text::grouped(missed.number), text::sentence(&missed.what));
        text.push_str(&paragraph(&line, width, "missed: "));
    }
    if let Some(note) = stopped(traced) {
        text.push_str(&paragraph(&note, width, "note: "));
    }
    if let Some(doubt) = division::doubt(traced) {
        text.push_str(&paragraph(&doubt, width, "note: "));
    }
    for note in traced.notes.iter().take(MOST_NOTES) {
        text.push_str(&paragraph(&text::sentence(note), width, "note: "));
    }
    let more = traced.missed.len().saturating_sub(MOST_NOTES) + traced.notes.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        text.push_str(&paragraph(&format!("{more} more are in the run document"), width, "note: "));
    }
    text
}

fn stopped(traced: &Traced) -> Option<String> {
    let were = match traced.stopped() {
        0 => return None,
        1 => "1 call was".to_owned(),
        number => format!("{} calls were", text::grouped(number)),
    };
    Some(format!("{were} stopped by a filter (seccomp): counted, without a time"))
}

#[cfg(test)]
mod tests {
    use tollgate_model::traced::Missed;

    use super::*;
    use crate::output::examples;

    const ALL: View = View {
        top: 12,
        blocking: 12,
        by: By::Call,
        tree: true,
        histogram: true,
        rule: true,
        stage: Stage::Kept,
    };

    #[test]
    fn sums_that_were_asked_for_are_not_said_to_be_asked_for() {
        let (mut traced, view) = (examples::build(), View { by: By::File, ..ALL });
        (traced.files, traced.tree) = (Vec::new(), Vec::new());
        let says = |text: String, sentence: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.join(" ").contains(sentence), "{text}");
        };
        says(text_of(&traced, &view), "`tollgate trace --by file` does that");
        let fresh = View { stage: Stage::Traced, ..view };
        says(text_of(&traced, &fresh), "No call that was traced worked on a file");
        assert!(!text_of(&traced, &fresh).contains("does that"));
        let part = anstream::adapter::strip_str(&interval(&traced, (0, 1), &fresh, 80)).to_string();
        says(part, "Files are summed over the whole time and shown at the end.");
        let by_process = View { by: By::Process, ..fresh };
        let part = anstream::adapter::strip_str(&interval(&traced, (0, 1), &by_process, 80)).to_string();
        says(part, "Processes are summed over the whole time and shown at the end.");
    }

    fn plain(traced: &Traced, view: &View, width: usize) -> String {
        anstream::adapter::strip_str(&screen(traced, view, width)).to_string()
    }

    fn text_of(traced: &Traced, view: &View) -> String {
        plain(traced, view, 120).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_text_commands_it() {
        let evil = format!("\u{1b}]0;owned\u{7}\r\n\u{202e}{}", "x".repeat(300_000));
        let mut hostile = examples::build();
        hostile.command = vec![evil.clone(); 20];
        hostile.calls[0].name = evil.clone();
        hostile.tree[3].name = evil.clone();
        hostile.tree[2].calls[0].name = evil.clone();
        hostile.files[0].path = evil.clone();
        hostile.files[1].operations[0].operation = evil.clone();
        hostile.missed = vec![Missed { what: evil.clone(), number: u64::MAX }; 50];
        hostile.notes = vec![evil; 50];
        for traced in [hostile, examples::checkout(), examples::by_ptrace(), examples::build()] {
            for (by, width) in [By::Call, By::Process, By::File]
                .into_iter()
                .flat_map(|by| [46, 54, 60, 72, 80, 100, 120, 160].map(|width| (by, width)))
            {
                let text = plain(&traced, &View { by, ..ALL }, width);
                assert!(text.len() < 40_000, "{} bytes", text.len());
                assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }
}
