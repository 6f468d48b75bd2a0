//! Reads a log of strace(1), or its table (`-c`), as a trace. The text is untrusted: every count and length is bounded.
//!
//! `line` parses a line, `clock` its time stamps, `text` its strings; `threads` adds up, `table` reads the table.

mod clock;
mod line;
mod table;
mod text;
mod threads;

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use tollgate_model::Traced;
use tollgate_model::text::signal_number;
use tollgate_model::traced::{Backend, Call, Ended, Missed};

use crate::outcome::{Event, slowest_first};
use clock::Clock;
use line::{Body, Line, Open, Returned, Stamp};
use table::Table;
use threads::Threads;

/// The rest of a longer line is discarded. `-s 65536` writes some 260 KiB of escaped bytes.
const LONGEST_LINE: usize = 1 << 20;
/// After this many bytes in a row without a line of strace's, a text is not a log. The command may print between its calls.
const MOST_FOREIGN: u64 = 64 << 20;
const MOST_SIGNALS: usize = 64;

/// A log as a trace.
#[derive(Debug)]
pub struct Log {
    /// The part that runs keep.
    pub traced: Traced,
    /// Single calls, if they were requested and the log has time stamps.
    pub events: Vec<Event>,
}

/// The reason why a text is not a log, as a clause that follows its name.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Reading failed.
    #[error("{}", tollgate_model::text::plainly(.0))]
    Unreadable(#[from] io::Error),
    /// No line is one of strace's.
    #[error("no line looks like a log of strace(1); `strace -f -T -tt -o FILE COMMAND` writes one")]
    NotALog,
    /// The text is mostly something else.
    #[error(
        "{} MiB have no line from a log of strace(1); `strace -f -T -tt -o FILE COMMAND` writes one without other output",
        MOST_FOREIGN >> 20
    )]
    Foreign,
}

/// Reads a log to its end in constant memory. At most `most_events` single calls are kept. Only calls named in `only` are
/// counted; if it is empty, all are.
///
/// # Errors
/// If the text is not such a log, or cannot be read.
pub fn read(input: impl BufRead, only: &[&str], most_events: usize) -> Result<Log, LogError> {
    let mut reader = Reader { only, ..Reader::default() };
    reader.threads.most_events = most_events;
    let mut lines = Lines { input, line: Vec::new(), foreign: 0 };
    while let Some(line) = lines.next()? {
        if reader.take(&line) {
            lines.foreign = 0;
        }
    }
    reader.finish()
}

#[derive(Default)]
struct Reader<'a> {
    only: &'a [&'a str],
    clock: Clock,
    threads: Threads,
    table: Table,
    /// The end of the last call, in nanoseconds since the first line.
    last_ns: u64,
    /// The thread whose call the last line left open: the command's output may stand in between.
    broken: Option<usize>,
    signals: BTreeMap<String, u64>,
    others: u64,
    calls: u64,
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> bool {
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            return false;
        }
        if self.table.take(text) || Table::is_head(text) {
            return true;
        }
        let line = Line::parse(text);
        // The command's output may begin with a number or a time of its own.
        let is_of_strace = !matches!(line.body, Body::Other | Body::Continued { .. });
        let now_ns = self.clock.at(if is_of_strace { line.stamp } else { Stamp::default() });
        self.last_ns = self.last_ns.max(now_ns);
        if let Body::Attached(id) = line.body {
            self.threads.attached(id, now_ns);
            return true;
        }
        if let Body::Mode { thread, is_32_bit } = line.body {
            self.threads.mode(thread, is_32_bit);
            return true;
        }
        match line.body {
            Body::Ignored => return false,
            Body::Other => {
                self.others += 1;
                return false;
            }
            Body::Continued { arguments, returned } => {
                let broken = self.broken.take();
                match (broken, returned) {
                    (Some(at), Some(returned)) => {
                        self.threads.ended(at, "", arguments, returned);
                        self.passes(line.thread, now_ns, returned);
                    }
                    (Some(_), None) => {}
                    (None, _) => self.others += 1,
                }
                return broken.is_some();
            }
            _ => self.broken = None,
        }
        let resumes = matches!(line.body, Body::Resumed { .. });
        let at = self.threads.index_of(line.thread, line.comm, resumes, now_ns);
        match line.body {
            Body::Call { name, arguments, returned } => {
                self.calls += 1;
                self.passes(line.thread, now_ns, returned);
                self.threads.called(at, name, arguments, returned, now_ns);
            }
            Body::Begun { name, arguments, end } => {
                self.calls += 1;
                self.threads.begun(at, name, arguments, now_ns);
                if let Open::Attached(id) = end {
                    self.threads.attached(id, now_ns);
                }
                self.broken = (end != Open::Unfinished).then_some(at);
            }
            Body::Resumed { name, arguments, returned: Some(returned) } => {
                self.threads.ended(at, name, arguments, returned);
            }
            Body::Resumed { returned: None, .. } => self.broken = Some(at),
            Body::Signal(name) if self.signals.len() < MOST_SIGNALS => {
                *self.signals.entry(name.chars().take(32).collect()).or_default() += 1;
            }
            Body::Exited(status) => self.threads.gone(at, Some(Ended::Exit(status)), now_ns),
            Body::Killed(name) => self.threads.gone(at, signal_number(name).map(Ended::Signal), now_ns),
            Body::Superseded(by) => self.threads.superseded(at, by, now_ns),
            _ => {}
        }
        true
    }

    fn passes(&mut self, thread: Option<u32>, began_ns: u64, returned: Returned) {
        let end_ns = began_ns.saturating_add(returned.took_ns.unwrap_or(0));
        self.last_ns = self.last_ns.max(end_ns);
        // Lines that name no thread belong to one thread.
        if thread.is_none() {
            self.clock.not_before(end_ns);
        }
    }

    fn finish(mut self) -> Result<Log, LogError> {
        self.threads.close();
        let has_table = !self.table.calls.is_empty();
        if self.calls == 0 && !has_table {
            return Err(LogError::NotALog);
        }
        let (ended, ended_ns) = self.threads.end();
        let number = self.threads.number();
        let (untimed, beyond, unkept) = (self.threads.untimed, self.threads.beyond, self.threads.unkept);
        let command = std::mem::take(&mut self.threads.command);
        let (mut tree, sums, mut events) = std::mem::take(&mut self.threads).processes();
        let processes = tree.len() as u64;
        let mut calls = sums.calls();
        let is_untimed = calls.iter().all(|call| call.total_ns == 0) && (untimed > 0 || self.calls == 0);
        let mut notes = self.notes(&command, is_untimed);
        if is_untimed && has_table {
            // The table adds up what the log has no times for, but not by process.
            (calls, tree) = (std::mem::take(&mut self.table.calls), Vec::new());
            slowest_first(&mut calls);
            if self.table.total.is_some_and(|total| total != sum(&calls)) {
                notes.push(
                    "the calls of the table's rows do not sum to its last row: rows are missing".to_owned(),
                );
            }
        }
        calls.retain(|call| is_wanted(self.only, &call.name));
        if !self.clock.is_known || is_untimed {
            events.clear();
        }
        events.retain(|event| is_wanted(self.only, &event.call));
        let missed = [
            ("calls without a time", if is_untimed { 0 } else { untimed }),
            ("lines of further threads, added to another thread", beyond),
            ("calls in no process of the tree, which is too long", unkept),
        ];
        let missed = missed.into_iter().filter(|(_, number)| *number > 0);
        // With whole seconds, less than a second is unknown.
        let least = u64::from(!self.clock.is_coarse);
        let traced = Traced {
            command,
            ended,
            wall_ns: if self.clock.is_known { ended_ns.unwrap_or(self.last_ns).max(least) } else { 0 },
            processes,
            threads: number,
            is_untimed: is_untimed && !has_table,
            calls,
            tree,
            missed: missed.map(|(what, number)| Missed { what: what.to_owned(), number }).collect(),
            notes,
            ..Traced::new(Backend::Strace, 0)
        };
        Ok(Log { traced, events })
    }

    fn notes(&self, command: &[String], is_untimed: bool) -> Vec<String> {
        const TABLE: &str = "its seconds are processor time in the kernel, or with -w real time; the table does not say which";
        let has_table = !self.table.calls.is_empty();
        if self.calls == 0 {
            return vec![format!(
                "from the table of strace -c: {TABLE}; real time, user, sys and single calls are not in it"
            )];
        }
        let mut notes = vec![match (is_untimed, has_table) {
            (true, true) => format!(
                "from a log of strace(1) without times of its calls, and the table below it (-C): {TABLE}; user and sys are not in it"
            ),
            (true, false) => "from a log of strace(1) without times of its calls: it lacks their durations, user and sys; `strace -T` adds the times, as in `strace -f -T -tt -o FILE COMMAND`"
                .to_owned(),
            (false, _) => "from a log of strace(1), which stops each call twice: the times include these stops, which may change the order of calls; it lacks user, sys and the parts of each call's time"
                .to_owned(),
        }];
        let mut note = |holds: bool, text: String| {
            if holds {
                notes.push(text);
            }
        };
        note(
            !self.clock.is_known,
            "it has no time stamps (strace -tt), so the real time is unknown".to_owned(),
        );
        note(
            self.clock.is_coarse,
            "its time stamps, and so the real time, are whole seconds (strace -t)".to_owned(),
        );
        note(
            self.clock.is_short,
            "its time stamps are relative to the last line of any process (strace -ff -r), so the real time is at least the one above; \
             `strace -tt` writes times"
                .to_owned(),
        );
        note(
            command.is_empty(),
            "it does not begin with the command's execve(2): strace was attached, or the log is a part"
                .to_owned(),
        );
        let lines = format!(
            "{} of other programs, or broken by their output, were left out",
            counted(self.others, "line")
        );
        note(self.others > 0, lines);
        let signals: Vec<String> =
            self.signals.iter().map(|(name, number)| format!("{name} ×{number}")).collect();
        note(!signals.is_empty(), format!("signals delivered: {}", signals.join(", ")));
        note(has_table && !is_untimed, "it has a table (strace -C) too, which is not used".to_owned());
        notes
    }
}

fn sum(calls: &[Call]) -> u64 {
    calls.iter().map(|call| call.count).fold(0, u64::saturating_add)
}

fn counted(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

fn is_wanted(only: &[&str], name: &str) -> bool {
    only.is_empty() || only.contains(&name.split(' ').next().unwrap_or(name))
}

struct Lines<R> {
    input: R,
    line: Vec<u8>,
    foreign: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<String>, LogError> {
        self.line.clear();
        let mut is_any = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if buffer.is_empty() {
                break;
            }
            is_any = true;
            let end = buffer.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
            let taken = end.unwrap_or(buffer.len());
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&buffer[..taken.min(room)]);
            self.input.consume(taken);
            self.foreign += taken as u64;
            if self.foreign > MOST_FOREIGN {
                return Err(LogError::Foreign);
            }
            if end.is_some() {
                break;
            }
        }
        Ok(is_any.then(|| String::from_utf8_lossy(&self.line).into_owned()))
    }
}

#[cfg(test)]
mod tests;
