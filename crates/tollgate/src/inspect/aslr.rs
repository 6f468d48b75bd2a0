//! `tollgate inspect aslr`: how many bits of its addresses a program really has at random.

mod bar;

use tollgate_engine::interrupt;
use tollgate_inspect::Machine;
use tollgate_inspect::aslr::{NoStudy, Subject, study};
use tollgate_view::inspect::aslr::{Document, page};

use crate::args::{AslrArgs, Format};
use crate::failure::Failure;
use crate::out;
use bar::Bar;

/// Starts the program, and prints its addresses.
///
/// # Errors
/// A program that cannot be started or observed.
pub fn aslr(args: &AslrArgs) -> Result<(), Failure> {
    let subject = Subject::find(args.program.as_deref()).map_err(of)?;
    interrupt::install();
    let mut bar = Bar::new(args.runs);
    let stop = || interrupt::requested().is_some();
    let studied = study(subject, args.runs, &Machine::here(), &mut |done| bar.show(done), &stop);
    drop(bar);
    let study = studied.map_err(of)?;
    match args.format {
        Format::Json => out::print_json(&Document::of(&study)),
        Format::Table => out::print(&page(&study, out::width())),
    }
}

fn of(why: NoStudy) -> Failure {
    match (why, interrupt::requested()) {
        (NoStudy::Stopped, Some(signal)) => Failure::Interrupted(signal),
        (why, _) => Failure::input(why.to_string()),
    }
}
