//! `tollgate show`: a kept run again.

use std::path::Path;

use tollgate_model::{Run, Traced};
use tollgate_view::show::{csv, json, text};
use tollgate_view::trace;

use crate::args::{ShowArgs, ShowFormat, ViewArgs};
use crate::failure::Failure;
use crate::{out, say};
use tollgate_view::summary::Summary;
use tollgate_view::table::paragraph;

/// Shows a kept run.
///
/// # Errors
/// When there is no such run, or it cannot be printed.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    let run = tollgate_store::find(&args.run)?;
    match args.format {
        ShowFormat::Table => match trace::command_of(&run) {
            Some(traced) => print_traced(&run, traced, &args.view),
            None => {
                let summary = Summary::of(&run);
                print_table(&summary, None)?;
                print_warnings(&summary);
                Ok(())
            }
        },
        ShowFormat::Json => print_json(&Summary::of(&run), None),
        ShowFormat::Csv => out::print_raw(csv::csv(&Summary::of(&run)).as_bytes()),
    }
}

/// Prints where a command's time went, as `trace` does.
fn print_traced(run: &Run, traced: &Traced, view: &ViewArgs) -> Result<(), Failure> {
    let width = out::width();
    let page = trace::page(traced, &view.of(traced), width);
    out::print(&format!("{page}{}", paragraph(&text::whereabouts(run, None), width, "")))
}

/// Prints a run as tables and sentences, with the file in which it is kept.
///
/// # Errors
/// When standard output is closed or full.
pub fn print_table(summary: &Summary, kept: Option<&Path>) -> Result<(), Failure> {
    out::print(&text::text(summary, kept, out::width()))
}

/// Prints the warnings of a run, last and to standard error: they are no result.
pub fn print_warnings(summary: &Summary) {
    say::warn(&text::warnings(summary, out::width()));
}

/// Prints a run as JSON, with the file in which it is kept.
///
/// # Errors
/// When standard output is closed or full.
pub fn print_json(summary: &Summary, kept: Option<&Path>) -> Result<(), Failure> {
    out::print_json(&json::Document::of(summary, kept))
}
