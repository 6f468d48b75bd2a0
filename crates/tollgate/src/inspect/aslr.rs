//! `tollgate inspect aslr`: how many bits of its addresses a program really has at random, and what moved between two processes.

mod bar;

use std::path::{Path, PathBuf};

use bar::Bar;
use tollgate_engine::interrupt;
use tollgate_inspect::Machine;
use tollgate_inspect::aslr::{NoStudy, Side, Subject, study};
use tollgate_inspect::output::aslr::{AslrDocument, Moved, screen};

use crate::args::{AslrArgs, Format};
use crate::failure::Failure;
use crate::out;

/// Starts made unless another number is named.
const STARTS: u32 = 1000;

/// Starts the program, and prints its addresses; or prints those of one process, or of two.
///
/// # Errors
/// A program that cannot be started or observed; a process or a map that cannot be read.
pub fn aslr(args: &AslrArgs) -> Result<(), Failure> {
    let named: Vec<&Path> = args.program.iter().chain(&args.other).map(PathBuf::as_path).collect();
    let sides = sides(&named)?;
    if sides.is_empty() {
        return starts(args);
    }
    if args.runs.is_some() {
        return Err(Failure::input(
            "--runs starts a program; a process that is there already is only looked at",
        ));
    }
    let moved = Moved::of(&sides);
    match args.format {
        Format::Json => out::print_json(&moved.record()),
        Format::Table => out::print(&moved.screen(out::width())),
    }
}

/// The processes and saved maps that were named. Empty where one program was.
fn sides(named: &[&Path]) -> Result<Vec<Side>, Failure> {
    if named.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::input("standard input was named twice; it can be read once"));
    }
    let mut sides = Vec::new();
    for path in named {
        match Side::find(path).map_err(|why| Failure::input(why.to_string()))? {
            Some(side) => sides.push(side),
            None if named.len() == 1 => {}
            None => {
                let path = path.display();
                let why = format!(
                    "{path} is neither the number of a process nor a saved /proc/PID/maps; two of these are compared"
                );
                return Err(Failure::input(why));
            }
        }
    }
    Ok(sides)
}

fn starts(args: &AslrArgs) -> Result<(), Failure> {
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
