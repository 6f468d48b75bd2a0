//! `tollgate trace --from`: a log of strace(1) as a trace. The log comes from another time and perhaps another machine, so no
//! fact of this one is kept with it, and its output is a result of this program.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::time::SystemTime;

use tollgate_model::Facts;
use tollgate_trace::log::{self, Log, LogError};
use tollgate_trace::output::{screen, timeline};

use super::{Report, check_timeline, only, selection, wants_tree};
use crate::args::Format;
use crate::args::trace::{By, TraceArgs};
use crate::destination::Destination;
use crate::failure::Failure;
use crate::out;

/// # Errors
/// A file that is not a log; a run that cannot be kept.
pub fn trace_log(args: &TraceArgs, file: &Path) -> Result<(), Failure> {
    if args.view.by == Some(By::File) {
        return Err(Failure::input(
            "--by file needs the command itself; a log can be summed by call and by process",
        ));
    }
    let named = args.out.as_deref().map(|file| Destination::choose(Some(file))).transpose()?;
    if let Some(file) = &args.timeline {
        check_timeline(file)?;
    }
    let Log { mut traced, events } = read(args, file)?;
    let is_kept = named.is_some() || args.label.is_some();
    if is_kept && traced.wall_ns == 0 {
        return Err(refused(
            file,
            "it has no time stamps (strace -tt), so no real time, which a kept run needs",
        ));
    }
    if is_kept && traced.is_untimed {
        return Err(refused(file, "it has no times of its calls (strace -T), so it is shown but not kept"));
    }
    if args.timeline.is_some() && events.is_empty() {
        return Err(refused(
            file,
            "a timeline needs single calls with time stamps (strace -tt -T), which it lacks",
        ));
    }
    traced.notes.extend(selection(&only(args).collect::<Vec<_>>(), traced.backend));
    let report = Report { args, began: SystemTime::now(), named, calibration: None };
    if let Some(file) = &args.timeline {
        report.write_timeline(file, &traced, &events);
    }
    if !wants_tree(&args.view) {
        traced.tree.clear();
    }
    let is_printed = matches!(report.named, Some(Destination::Output));
    if args.format == Format::Table && !is_printed {
        out::print(&screen(&traced, &args.view_of(&traced), out::width()))?;
    }
    match args.format {
        Format::Table if !is_kept => Ok(()),
        _ => report.keep(Facts::default(), traced),
    }
}

fn read(args: &TraceArgs, file: &Path) -> Result<Log, Failure> {
    let only: Vec<&str> = only(args).collect();
    let most = if args.timeline.is_some() { timeline::MOST_EVENTS } else { 0 };
    let log = if file.as_os_str() == "-" {
        log::read(io::stdin().lock(), &only, most)
    } else {
        File::open(file)
            .map_err(LogError::from)
            .and_then(|input| log::read(BufReader::with_capacity(1 << 16, input), &only, most))
    };
    log.map_err(|why| refused(file, &why.to_string()))
}

fn refused(file: &Path, why: &str) -> Failure {
    if file.as_os_str() == "-" {
        Failure::input(format!("--from: standard input: {why}"))
    } else {
        Failure::input(format!("--from {}: {why}", file.display()))
    }
}
