//! `tollgate inspect aslr`: how many bits of a program's addresses are really random.

mod bar;

use bar::Bar;
use tollgate_engine::interrupt;
use tollgate_inspect::Machine;
use tollgate_inspect::aslr::{NoStudy, Subject, study};
use tollgate_inspect::output::aslr::{AslrDocument, screen};

use crate::args::{AslrArgs, Format};
use crate::failure::Failure;
use crate::out;

const STARTS: u32 = 1000;

pub fn aslr(args: &AslrArgs) -> Result<(), Failure> {
    let subject = Subject::find(args.program.as_deref()).map_err(failure)?;
    let runs = args.runs.unwrap_or(STARTS);
    interrupt::install();
    let mut bar = Bar::new(runs);
    let stop = || interrupt::requested().is_some();
    let studied = study(subject, runs, &Machine::here(), &mut |done| bar.show(done), &stop);
    drop(bar);
    let study = studied.map_err(failure)?;
    match args.format {
        Format::Json => out::print_json(&AslrDocument::from_study(&study)),
        Format::Table => out::print(&screen(&study, out::width())),
    }
}

fn failure(why: NoStudy) -> Failure {
    match (why, interrupt::requested()) {
        (NoStudy::Stopped, Some(signal)) => Failure::Interrupted(signal),
        (why, _) => Failure::input(why.to_string()),
    }
}
