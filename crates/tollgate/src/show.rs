//! `tollgate show`: a kept run again.

use std::path::Path;

use tollgate_engine::{Selection, Topology};
use tollgate_model::compare::Spread;
use tollgate_model::{Run, Traced};
use tollgate_output::table::paragraph;
use tollgate_store::RunKind;
use tollgate_suites::{Extent, Size, UnknownPattern, select};
use tollgate_trace::output as trace;
use tollgate_view::compare::{self, columns::Sides};
use tollgate_view::comparison::Comparison;
use tollgate_view::report::{markdown, picture_of};
use tollgate_view::session::{self, Session};
use tollgate_view::show::{counters, csv, json, text};
use tollgate_view::summary::Summary;
use tollgate_view::{screen, versus};

use crate::args::trace::ViewArgs;
use crate::args::{ShowArgs, ShowFormat};
use crate::failure::Failure;
use crate::out;

impl ShowArgs {
    /// # Errors
    /// When there is no such run, a pattern matches none of its rows, or it cannot be printed.
    pub fn execute(&self) -> Result<(), Failure> {
        let is_trace = self.view.by.is_some() || self.view.tree || self.view.histogram;
        let kinds = if is_trace { &[RunKind::Trace] } else { RunKind::MEASURED };
        let (runs, patterns) = chosen(self, kinds)?;
        let run = match runs.as_slice() {
            [run] if !is_alone_of_commands(run) => run,
            runs => return show_session(self, runs, &patterns),
        };
        match (trace::command_of(run), self.format) {
            (Some(traced), ShowFormat::Table) => return print_traced(run, traced, &self.view),
            (Some(traced), ShowFormat::Csv) => return out::print_raw(trace::csv(traced).as_bytes()),
            _ => {}
        }
        let mut summary = Summary::of(run);
        if !patterns.is_empty() {
            summary.retain(|case| patterns.iter().any(|pattern| tollgate_suites::matches(pattern, case)));
            if summary.rows.is_empty() {
                return Err(Failure::input(format!(
                    "run {} has no row that matches {}",
                    run.id,
                    patterns.join(" ")
                )));
            }
        }
        match self.format {
            ShowFormat::Table if self.counters => {
                let width = self.rows.width.map(usize::from).or_else(out::given_width);
                out::page(&counters::text(&summary, width))
            }
            ShowFormat::Table if self.all || !patterns.is_empty() => {
                let width = self.rows.width.map(usize::from).or_else(out::given_width);
                out::page(&text::text(&summary, self.rows.options(width)))
            }
            ShowFormat::Table => print_screen(&summary),
            ShowFormat::Json => print_json(&summary, None),
            ShowFormat::Csv => out::print_raw(csv::csv(&summary).as_bytes()),
            ShowFormat::Md | ShowFormat::Svg if !patterns.is_empty() => Err(whole(self.format)),
            ShowFormat::Md => print_markdown(&runs, &Spread::default(), 0.0),
            ShowFormat::Svg => print_picture(&runs, &Spread::default(), 0.0),
        }
    }
}

fn show_session(args: &ShowArgs, runs: &[Run], patterns: &[String]) -> Result<(), Failure> {
    let Some(mut session) = Session::of(runs) else {
        return Err(Failure::input("the runs are not of one session; name one of them"));
    };
    if !patterns.is_empty() {
        session.retain(|case| patterns.iter().any(|pattern| tollgate_suites::matches(pattern, case)));
        if session.members.iter().all(|member| member.summary.rows.is_empty()) {
            let (id, patterns) = (session.id, patterns.join(" "));
            return Err(Failure::input(format!("session {id} has no row that matches {patterns}")));
        }
    }
    match args.format {
        ShowFormat::Table if args.counters => {
            let width = args.rows.width.map(usize::from).or_else(out::given_width);
            out::page(&counters_of(&session, width))
        }
        ShowFormat::Table if session.is_of_commands() && patterns.is_empty() => {
            let width = args.rows.width.map_or_else(out::width, usize::from);
            let text = versus::text(&session, args.all, width);
            if args.all { out::page(&text) } else { out::print(&text) }
        }
        ShowFormat::Json if session.is_of_commands() => {
            out::print_json(&versus::json::VersusDocument::new(&session, &[]))
        }
        ShowFormat::Table if args.all || !patterns.is_empty() => {
            let width = args.rows.width.map_or_else(out::width, usize::from);
            out::page(&session::text(&session, true, width))
        }
        ShowFormat::Table => out::print(&session::text(&session, false, out::width())),
        ShowFormat::Json => out::print_json(&session::json::SessionDocument::new(&session, &[])),
        ShowFormat::Csv => print_csv(session.compared()),
        ShowFormat::Md | ShowFormat::Svg if !patterns.is_empty() => Err(whole(args.format)),
        ShowFormat::Md => print_markdown(runs, &Spread::default(), 0.0),
        ShowFormat::Svg => print_picture(runs, &Spread::default(), 0.0),
    }
}

fn whole(format: ShowFormat) -> Failure {
    let what = if matches!(format, ShowFormat::Svg) { "svg draws the overview" } else { "md has all rows" };
    Failure::input(format!("--format {what}; omit the patterns, or use --format csv"))
}

pub fn print_csv<'a>(all: impl Iterator<Item = (Sides<'a>, &'a Comparison<'a>)>) -> Result<(), Failure> {
    out::print_raw(compare::csv::csv(all).as_bytes())
}

pub fn print_markdown(runs: &[Run], spread: &Spread, asked: f64) -> Result<(), Failure> {
    out::print_raw(markdown(runs, spread, asked).as_bytes())
}

/// Whether a file is a picture by its name.
pub fn is_picture(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
}

/// Fails if nothing of the runs can be drawn.
pub fn print_picture(runs: &[Run], spread: &Spread, asked: f64) -> Result<(), Failure> {
    let picture = picture_of(runs, spread, asked).ok_or_else(|| {
        let what = if runs.len() > 1 {
            "no case that two of the runs measured"
        } else {
            "neither a latency of the overview nor a curve of sharing"
        };
        Failure::input(format!(
            "--format svg has nothing to draw: found {what}; --format json has all figures"
        ))
    })?;
    out::print_document(picture.as_bytes(), out::Form::Lines)
}

fn counters_of(session: &Session, width: Option<usize>) -> String {
    let of = |member: &tollgate_view::session::Member| {
        format!("{}\n{}\n", member.name, counters::text(&member.summary, width))
    };
    session.members.iter().map(of).collect()
}

pub fn print_session_counters(session: &Session) -> Result<(), Failure> {
    out::print(&format!("\n{}", counters_of(session, out::given_width())))
}

pub fn print_counters(summary: &Summary) -> Result<(), Failure> {
    out::print(&format!("\n{}", counters::text(summary, out::given_width())))
}

/// Such a command's figures are a separate screen.
fn is_alone_of_commands(run: &Run) -> bool {
    run.session.as_ref().is_some_and(|part| part.command.is_some() && part.of == 1)
}

/// The chosen run, or those of the session, and the patterns. The first word is a pattern if no run has that name and benchmarks
/// match it.
fn chosen(args: &ShowArgs, kinds: &[RunKind]) -> Result<(Vec<Run>, Vec<String>), Failure> {
    const LAST: &str = "last";
    let find = |meant: &str| tollgate_store::find_runs(meant, kinds);
    let Some(first) = &args.run else { return Ok((find(LAST)?, Vec::new())) };
    match find(first) {
        Ok(runs) => Ok((runs, args.pattern.clone())),
        Err(error) => match selected(first) {
            Ok(_) => {
                let patterns = std::iter::once(first).chain(&args.pattern).cloned().collect();
                Ok((find(LAST)?, patterns))
            }
            Err(unknown) if !unknown.near.is_empty() && !Path::new(first).exists() => {
                Err(Failure::input(format!("{first} is not a kept run, and {unknown}")))
            }
            Err(_) => Err(error.into()),
        },
    }
}

fn selected(word: &str) -> Result<Selection, UnknownPattern> {
    select(&Topology::here(), &[word.to_owned()], Extent::Thorough, Size::Small)
}

fn print_traced(run: &Run, traced: &Traced, view: &ViewArgs) -> Result<(), Failure> {
    let width = out::width();
    let screen = trace::screen(traced, &view.of(traced), width);
    out::print(&format!("{screen}{}", paragraph(&text::whereabouts(run, None), width, "")))
}

pub fn print_screen(summary: &Summary) -> Result<(), Failure> {
    out::print(&screen::text(summary, out::given_width().unwrap_or(usize::MAX)))
}

pub fn print_json(summary: &Summary, kept: Option<&Path>) -> Result<(), Failure> {
    out::print_json(&json::ShowDocument::new(summary, kept))
}
