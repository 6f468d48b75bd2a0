//! `tollgate trace`: where a command's time went. The tracer is `tollgate-trace`; here its answer is shown and kept.
//!
//! Slow work is done neither before the command starts nor while its caller waits for its end: what this verb does around a
//! command is part of the time that its user sees.

mod kept;
mod keys;
mod log;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use tollgate_inspect::Machine;
use tollgate_model::traced::{Backend, Ended};
use tollgate_model::{Facts, Label, Run, RunId, Traced};
use tollgate_output::table::paragraph;
use tollgate_store::writing::{self, Existing, Until};
use tollgate_trace::output::{TracedCommand, calibration, command_of, grouped, screen, timeline};
use tollgate_trace::{Calibration, Choice, Event, Interval, Request, Running, Trace, TraceError};
use tollgate_view::facts;
use tollgate_view::page::{Flames, flames};
use tollgate_view::show::text::whereabouts;

use crate::args::Format;
use crate::args::trace::{By, Follow, TraceArgs, ViewArgs};
use crate::destination::{Destination, expect_seen};
use crate::failure::{Failure, plainly};
use crate::{out, say, show};

impl TraceArgs {
    /// Does not return once the command was started: the process ends as the command did, even after other errors.
    ///
    /// # Errors
    /// Wrong input; a command that cannot be started, or not traced as requested.
    pub fn execute(&self) -> Result<(), Failure> {
        if let Some(file) = &self.from {
            return log::trace_log(self, file);
        }
        if let Some(file) = &self.keys {
            return keys::trace_keys(self, file);
        }
        if !attaches(self) && (self.time.is_some() || self.every.is_some()) {
            return Err(Failure::input("--for and --every need --pid or --cgroup"));
        }
        if self.backend == Follow::Ptrace && (self.blocked || self.stacks.is_some()) {
            return Err(Failure::input(
                "--blocked and --stacks need BPF; --backend ptrace does not support them",
            ));
        }
        if self.command.is_empty() && !attaches(self) {
            let calibration = calibrate()?;
            return match self.format {
                Format::Table => out::print(&calibration::text(&calibration, out::width())),
                Format::Json => out::print_json_line(&calibration::CalibrationRecord::of(&calibration)),
            };
        }
        // A named file is tried before the command runs; the usual store, after it.
        let named = self.out.as_deref().map(|file| Destination::choose(Some(file))).transpose()?;
        if let Some(file) = &self.timeline {
            check_timeline(file)?;
        }
        if let Some(file) = &self.stacks {
            let refused = |why| Failure::input(format!("--stacks {}: {why}", file.display()));
            writing::check(file).map_err(refused)?;
        }
        let request = request(self)?;
        let calibration = if self.calibrate { Some(calibrate()?) } else { None };
        let began = SystemTime::now();
        let trace = if attaches(self) {
            tollgate_trace::attach(&request, &running(self), |interval| show_interval(self, interval))
        } else {
            tollgate_trace::trace(&request)
        };
        let trace = trace.map_err(failure)?;
        let report = Report { args: self, began, named, calibration };
        tollgate_trace::end_like(report.show(trace))
    }
}

fn attaches(args: &TraceArgs) -> bool {
    !args.pid.is_empty() || args.cgroup.is_some()
}

fn running(args: &TraceArgs) -> Running {
    Running { processes: args.pid.clone(), cgroup: args.cgroup.clone(), time: args.time, every: args.every }
}

/// Shows a part of a trace that goes on. A closed reader does not end the trace.
fn show_interval(args: &TraceArgs, interval: Interval) {
    let Interval { number, from_ns, to_ns, traced } = interval;
    match args.format {
        Format::Json => {
            let bounds = Bounds { number, from_s: from_ns as f64 / 1e9, to_s: to_ns as f64 / 1e9 };
            let _ = out::print_json_line(&Part { interval: bounds, traced: TracedCommand::of(&traced) });
        }
        Format::Table if args.quiet => {}
        Format::Table => {
            let view = args.view_of(&traced);
            say::warn(&tollgate_trace::output::interval(
                &traced,
                (from_ns, to_ns),
                &view,
                out::width_beside(),
            ));
        }
    }
}

fn request(args: &TraceArgs) -> Result<Request, Failure> {
    let only: BTreeSet<String> = only(args).map(str::to_owned).collect();
    if only.is_empty() && !args.only.is_empty() {
        return Err(Failure::input("--only is empty; give system calls separated by commas: openat,close"));
    }
    Ok(Request {
        by: match args.backend {
            Follow::Auto => Choice::Best,
            Follow::Bpf => Choice::Bpf,
            Follow::Ptrace => Choice::Ptrace,
        },
        only: (!only.is_empty()).then_some(only),
        // A timeline names its processes.
        tree: wants_tree(&args.view) || args.timeline.is_some(),
        files: args.view.by == Some(By::File),
        events: if args.timeline.is_some() { timeline::MOST_EVENTS } else { 0 },
        blocked: args.blocked,
        stacks: args.stacks.is_some(),
        linger: args.linger.unwrap_or(Request::LINGER),
        ..Request::new(args.command.clone())
    })
}

fn only(args: &TraceArgs) -> impl Iterator<Item = &str> {
    args.only.iter().map(|name| name.trim()).filter(|name| !name.is_empty())
}

/// The note on a selection of calls, if the command was traced.
fn selection(only: &[&str], by: Backend) -> Option<String> {
    let is_partial = !only.is_empty() && by != Backend::Rusage;
    is_partial.then(|| format!("only these calls were traced: {}", only.join(", ")))
}

fn wants_tree(view: &ViewArgs) -> bool {
    view.tree || view.by == Some(By::Process)
}

fn calibrate() -> Result<Calibration, Failure> {
    tollgate_trace::calibrate().map_err(failure)
}

pub fn failure(error: TraceError) -> Failure {
    match error {
        TraceError::NotFound(sentence) => Failure::NotFound(sentence),
        TraceError::NotExecutable(sentence) => Failure::NotExecutable(sentence),
        TraceError::Unavailable(_) | TraceError::Request(_) | TraceError::System(..) => {
            Failure::input(error.to_string())
        }
    }
}

fn check_timeline(file: &Path) -> Result<(), Failure> {
    writing::check(file).map_err(|why| Failure::input(format!("--timeline {}: {why}", file.display())))
}

struct Report<'a> {
    args: &'a TraceArgs,
    began: SystemTime,
    named: Option<Destination>,
    calibration: Option<Calibration>,
}

impl Report<'_> {
    /// Shows and keeps the trace. Errors from here on are reported and change nothing: the command's own end counts.
    fn show(&self, trace: Trace) -> Ended {
        let Trace { mut traced, events, stacks, ended, .. } = trace;
        if traced.backend != Backend::Bpf {
            let missing = self.without_bpf();
            // The table has it among its notes.
            missing.iter().filter(|_| self.args.quiet).for_each(|what| say::say(what));
            traced.notes.extend(missing);
        }
        // Another backend has no stacks, and an existing file stays unchanged.
        if let Some(file) = &self.args.stacks
            && traced.backend == Backend::Bpf
        {
            write_stacks(file, &self.args.command.join(OsStr::new(" ")).to_string_lossy(), &stacks);
        }
        if !self.args.blocked {
            traced.blocked.clear();
        }
        traced.notes.extend(selection(&only(self.args).collect::<Vec<_>>(), traced.backend));
        // The facts are read now: before the start they would delay the command. Most of them are for a kept run.
        let is_kept = self.named.is_some() || self.args.label.is_some();
        let read = if is_kept { tollgate_inspect::read_facts } else { tollgate_inspect::read_environment };
        let facts = read(&Machine::here());
        if facts::emulated(&facts) {
            traced
                .notes
                .push("this machine is emulated: times are the emulator's, not those of hardware".to_owned());
        }
        if let Some(file) = &self.args.timeline {
            self.write_timeline(file, &traced, &events);
            if !wants_tree(&self.args.view) {
                traced.tree.clear();
            }
        }
        if self.args.format == Format::Table && !self.args.quiet {
            let width = out::width_beside();
            if let Some(calibration) = &self.calibration {
                say::warn(&calibration::text(calibration, width));
            }
            say::warn(&screen(&traced, &self.args.view_of(&traced), width));
        }
        if let Err(Failure::Input(sentence) | Failure::NotKept(sentence)) = self.keep(facts, traced) {
            say::say(&sentence);
        }
        // The process is about to end: freeing a million events would only delay it.
        std::mem::forget(events);
        ended
    }

    /// Requested results that need BPF, if another backend traced.
    fn without_bpf(&self) -> Vec<String> {
        let blocked =
            self.args.blocked.then(|| "what ended sleeps is not shown: only BPF reports it".to_owned());
        let stacks = self.args.stacks.as_deref().map(|file| {
            let old = if file.exists() { "; the existing file is an older one" } else { "" };
            format!("{} was not written: only BPF reports the stacks of sleeps{old}", file.display())
        });
        blocked.into_iter().chain(stacks).collect()
    }

    fn keep(&self, facts: Facts, traced: Traced) -> Result<(), Failure> {
        let run = kept::document(self.began, self.args.label.clone(), facts, traced)?;
        let (kept, is_printed) = match &self.named {
            Some(named) => (named.keep(&run, Until::Written), matches!(named, Destination::Output)),
            None if self.args.label.is_some() => (self.keep_as_usual(&run), false),
            None => (Ok(None), false),
        };
        let path = kept.as_ref().ok().and_then(Option::as_deref);
        let shown = match self.args.format {
            // One document on standard output is enough.
            _ if is_printed => Ok(()),
            Format::Json => {
                let shown = self.print_json(&run, path);
                if path.is_some() { expect_seen(shown, path) } else { shown }
            }
            Format::Table => {
                if !self.args.quiet {
                    say::warn(&paragraph(&whereabouts(&run, path), out::width_beside(), ""));
                }
                Ok(())
            }
        };
        // The gravest error comes last.
        kept?;
        shown
    }

    fn keep_as_usual(&self, run: &Run) -> Result<Option<PathBuf>, Failure> {
        let destination = Destination::choose(None)?;
        destination.say_doubt();
        destination.keep(run, Until::Written)
    }

    fn print_json(&self, run: &Run, path: Option<&Path>) -> Result<(), Failure> {
        let Some(traced) = command_of(run) else { return Ok(()) };
        out::print_json_line(&TraceDocument {
            id: &run.id,
            label: run.label.as_ref(),
            traced: TracedCommand::of(traced),
            calibration: self.calibration.as_ref().map(calibration::CalibrationRecord::of),
            kept: path.map(|path| path.display().to_string()),
        })
    }

    fn write_timeline(&self, file: &Path, traced: &Traced, events: &[Event]) {
        let written =
            writing::write_soon(file, Existing::Replace, |file| timeline::write(file, &traced.tree, events));
        match written {
            Err(error) => {
                let (file, why) = (file.display(), plainly(&error));
                say::say(&format!("the timeline was not written: {file}: {why}"));
            }
            Ok(()) if events.len() >= timeline::MOST_EVENTS && !self.args.quiet => say::say(&format!(
                "warning: the timeline ends after {} calls; later ones are only counted",
                grouped(events.len() as u64)
            )),
            Ok(()) => {}
        }
    }
}

/// Writes stacks for flame graphs, or as one: frames, a space, and whole microseconds; the remainder of rounding goes to the next
/// one, so that the sum is that of all.
fn write_stacks(file: &Path, command: &str, stacks: &[(String, u64)]) {
    let mut rest = 0;
    let in_us = stacks.iter().filter_map(|(frames, ns)| {
        let ns = ns.saturating_add(rest);
        rest = ns % 1000;
        (ns >= 1000).then(|| (frames.clone(), ns / 1000))
    });
    let stacks: Vec<(String, u64)> = in_us.collect();
    let text: String = if show::is_picture(file) {
        let name = if command.is_empty() { "sleeping threads" } else { command };
        flames(&[Flames { name, stacks: &stacks }], "µs of sleep")
    } else {
        stacks.iter().map(|(frames, us)| format!("{frames} {us}\n")).collect()
    };
    let written = writing::write_soon(file, Existing::Replace, |file| file.write_all(text.as_bytes()));
    if let Err(error) = written {
        let (file, why) = (file.display(), plainly(&error));
        say::say(&format!("the stacks were not written: {file}: {why}"));
    }
}

/// A line of `--every` in JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "TraceInterval"))]
pub struct Part<'a> {
    /// Since the trace began.
    interval: Bounds,
    #[serde(flatten)]
    traced: TracedCommand<'a>,
}

/// Since the trace began.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "TimeOfInterval"))]
struct Bounds {
    /// Its number.
    number: u64,
    /// Its beginning.
    from_s: f64,
    /// Its end.
    to_s: f64,
}

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Trace"))]
pub struct TraceDocument<'a> {
    /// The id of the run that was kept.
    id: &'a RunId,
    /// The user's name for it, or None.
    label: Option<&'a Label>,
    #[serde(flatten)]
    traced: TracedCommand<'a>,
    /// With `--calibrate` the overhead of tracing here; otherwise None.
    calibration: Option<calibration::CalibrationRecord<'a>>,
    /// The file, or None.
    kept: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_noted_where_calls_were_traced() {
        let note = selection(&["read", "openat"], Backend::Ptrace);
        assert_eq!(note.as_deref(), Some("only these calls were traced: read, openat"));
        assert_eq!(selection(&["read"], Backend::Rusage), None);
        assert_eq!(selection(&[], Backend::Bpf), None);
    }
}
