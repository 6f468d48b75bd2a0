//! `tollgate trace`: where a command's time went. The tracer is `tollgate-trace`; here its answer is shown and kept.
//!
//! Before the command is let go nothing is done that takes time, and after it has ended nothing that waits: what this verb
//! does around a command is part of what people see it cost.

pub mod blame;
mod calibration;
mod calls;
pub mod division;
mod document;
mod files;
mod histogram;
mod kept;
mod page;
mod processes;
mod rule;
mod timeline;
mod tree;
mod view;
pub mod words;

#[cfg(test)]
mod examples;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use tollgate_inspect::Machine;
use tollgate_model::traced::{Backend, Ended};
use tollgate_model::{Facts, Label, Run, RunId, Traced};
use tollgate_trace::{Calibration, Choice, Event, Request, Trace, TraceError};

use crate::args::{By, Follow, Format, TraceArgs, ViewArgs};
use crate::failure::{Failure, plainly};
use crate::store::Destination;
use crate::table::paragraph;
use crate::writing::{self, Existing};
use crate::{facts, out, run, say, show};

pub use calls::ranked;
pub use document::Record;
pub use kept::command_of;
pub use page::page;
pub use view::View;

/// Runs a command, follows it, says where its time went and keeps that as a run. Where the command was started, this does not
/// come back: the process ends as the command did, whatever else went wrong.
///
/// # Errors
/// Wrong input; a command that cannot be started, or not be followed as was asked.
pub fn trace(args: &TraceArgs) -> Result<(), Failure> {
    if args.command.is_empty() {
        return calibration::print(&calibrate()?, args.format);
    }
    // What somebody named is tried before the command runs; where runs are kept usually, after it.
    let named = args.out.as_deref().map(|file| Destination::choose(Some(file))).transpose()?;
    if let Some(file) = &args.timeline {
        check_timeline(file)?;
    }
    let request = request(args)?;
    let calibration = if args.calibrate { Some(calibrate()?) } else { None };
    let began = SystemTime::now();
    let trace = tollgate_trace::trace(&request).map_err(failure)?;
    let told = Told { args, began, named, calibration };
    tollgate_trace::end_like(told.tell(trace))
}

fn request(args: &TraceArgs) -> Result<Request, Failure> {
    let only: BTreeSet<String> = only(args).map(str::to_owned).collect();
    if only.is_empty() && !args.only.is_empty() {
        return Err(Failure::input(
            "--only names no system call; several are separated by commas: openat,close",
        ));
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
        linger: args.linger.unwrap_or(Request::LINGER),
        ..Request::new(args.command.clone())
    })
}

/// The calls that are asked for, as they were named.
fn only(args: &TraceArgs) -> impl Iterator<Item = &str> {
    args.only.iter().map(|name| name.trim()).filter(|name| !name.is_empty())
}

/// What is to be known of a selection of calls, where anybody followed.
fn selection(only: &[&str], by: Backend) -> Option<String> {
    let told = !only.is_empty() && by != Backend::Rusage;
    told.then(|| format!("only these calls were followed: {}", only.join(", ")))
}

fn wants_tree(view: &ViewArgs) -> bool {
    view.tree || view.by == Some(By::Process)
}

fn calibrate() -> Result<Calibration, Failure> {
    tollgate_trace::calibrate().map_err(failure)
}

fn failure(error: TraceError) -> Failure {
    match error {
        TraceError::NotFound(sentence) => Failure::NotFound(sentence),
        TraceError::NotExecutable(sentence) => Failure::NotExecutable(sentence),
        TraceError::Asked(signal) => Failure::Interrupted(signal),
        TraceError::Unavailable(_) | TraceError::Request(_) | TraceError::System { .. } => {
            Failure::input(error.to_string())
        }
    }
}

fn check_timeline(file: &Path) -> Result<(), Failure> {
    writing::check(file).map_err(|why| Failure::input(format!("--timeline {}: {why}", file.display())))
}

/// What is to be told of a command when it has ended.
struct Told<'a> {
    args: &'a TraceArgs,
    began: SystemTime,
    named: Option<Destination>,
    calibration: Option<Calibration>,
}

impl Told<'_> {
    /// Shows and keeps what came of it. What goes wrong from here on is said, and changes nothing: the command's own end is
    /// what counts.
    fn tell(&self, trace: Trace) -> Ended {
        let Trace { mut traced, events, ended } = trace;
        traced.notes.extend(selection(&only(self.args).collect::<Vec<_>>(), traced.backend));
        // The facts are read now, when nobody waits for the command to begin.
        let facts = tollgate_inspect::read_facts(&Machine::here());
        if facts::emulated(&facts) {
            traced.notes.push("an emulator executes everything here: its times are no machine's".to_owned());
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
            say::warn(&page(&traced, &View::of(&self.args.view, &traced), width));
        }
        if let Err(Failure::Input(sentence) | Failure::NotKept(sentence)) = self.keep(facts, traced) {
            say::say(&sentence);
        }
        // The process is about to end: nobody waits until a million events are given back.
        std::mem::forget(events);
        ended
    }

    fn keep(&self, facts: Facts, traced: Traced) -> Result<(), Failure> {
        let run = kept::document(self.began, self.args.label.clone(), facts, traced)?;
        let (kept, is_printed) = match &self.named {
            Some(named) => (named.keep_soon(&run), matches!(named, Destination::Output)),
            None => (self.keep_as_usual(&run), false),
        };
        let path = kept.as_ref().ok().and_then(Option::as_deref);
        let shown = match self.args.format {
            // One document on standard output is enough.
            _ if is_printed => Ok(()),
            Format::Json => {
                let shown = self.print_json(&run, path);
                if kept.is_ok() { run::expect_seen(shown, path) } else { shown }
            }
            Format::Table => {
                if !self.args.quiet {
                    say::warn(&paragraph(&show::whereabouts(&run, path), out::width_beside(), ""));
                }
                Ok(())
            }
        };
        // Last and gravest: that it was not kept.
        kept?;
        shown
    }

    fn keep_as_usual(&self, run: &Run) -> Result<Option<PathBuf>, Failure> {
        let destination = Destination::choose(None)?;
        run::say_doubt(&destination);
        destination.keep_soon(run)
    }

    fn print_json(&self, run: &Run, path: Option<&Path>) -> Result<(), Failure> {
        let Some(traced) = command_of(run) else { return Ok(()) };
        out::print_json_line(&Document {
            id: &run.id,
            label: run.label.as_ref(),
            traced: Record::of(traced),
            calibration: self.calibration.as_ref().map(calibration::Record::of),
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
                words::grouped(events.len() as u64)
            )),
            Ok(()) => {}
        }
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Document<'a> {
    id: &'a RunId,
    label: Option<&'a Label>,
    #[serde(flatten)]
    traced: Record<'a>,
    calibration: Option<calibration::Record<'a>>,
    kept: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_told_where_somebody_followed() {
        let told = selection(&["read", "openat"], Backend::Ptrace);
        assert_eq!(told.as_deref(), Some("only these calls were followed: read, openat"));
        assert_eq!(selection(&["read"], Backend::Rusage), None);
        assert_eq!(selection(&[], Backend::Bpf), None);
    }
}
