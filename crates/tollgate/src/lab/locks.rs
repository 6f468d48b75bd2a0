//! A test-and-set by the page-fault handler, beside other locks: the time of each, and every order of their programs.

use std::path::Path;
use std::time::SystemTime;

use tollgate_engine::interrupt;
use tollgate_lab::locks::{self, Bounds, Lock, OwnEntry, OwnError, Subject};
use tollgate_lab::output::{Locks, Orders};
use tollgate_lab::system::FileError;
use tollgate_view::facts;
use tollgate_x86::Vendor;

use super::{chosen, engine, keep, kept, programs};
use crate::args::Format;
use crate::args::lab::LabArgs;
use crate::destination::Destination;
use crate::failure::{Failure, go_on};
use crate::{out, say};

/// The exit status if a lock does not hold, or a mutant does.
const SURPRISED: u8 = 1;

/// # Errors
/// An option for experiments; an engine that cannot be used; a file that cannot be written.
pub fn measure(locks: &[&'static Lock], args: &LabArgs) -> Result<(), Failure> {
    if let Some(option) = args.explain.then_some("--explain").or(args.image.is_some().then_some("--image")) {
        return Err(Failure::input(format!("{option} applies to experiments, not to locks")));
    }
    let began = SystemTime::now();
    let destination = Destination::choose(args.out.as_deref())?;
    destination.say_doubt();
    interrupt::install();
    let vendor = args.vendor.map(Vendor::from);
    let results = locks::measure(locks, engine(args.on)?, vendor, &interrupt::requested)?;
    let mut run = kept::locks(&results, began, args.label.clone())?;
    run.facts.extend([facts::patterns(&args.experiment)]);
    go_on()?;
    let document = Locks::of(&results);
    keep(&run, &destination, || match args.format {
        Format::Json => out::print_json(&document),
        Format::Table => out::print(&document.page(out::width())),
    })
}

/// Tries the user's own entries at every interruption.
fn prove_own(paths: &[&Path], args: &LabArgs) -> Result<(), Failure> {
    let proofs = paths.iter().map(|path| {
        go_on()?;
        let refused = |error: OwnError| {
            if let OwnError::File(FileError::Assembler(error)) = &error {
                programs::say_assembler(error);
            }
            Failure::input(format!("--prove: {} {error}", path.display()))
        };
        let entry = OwnEntry::open(path).map_err(refused)?;
        let proof = locks::prove_own(&entry).map_err(refused)?;
        Ok((entry, proof))
    });
    let document = Orders::own(&proofs.collect::<Result<Vec<_>, Failure>>()?);
    match args.format {
        Format::Json => out::print_json(&document)?,
        Format::Table => out::print(&document.page(true, out::width()))?,
    }
    if document.surprises().is_empty() { Ok(()) } else { Err(Failure::Status(SURPRISED)) }
}

/// # Errors
/// An unknown name. A lock that does not hold, or a mutant that does, gives its status.
pub fn prove(args: &LabArgs) -> Result<(), Failure> {
    interrupt::install();
    if let Some(paths) = chosen::own(&args.experiment)? {
        return prove_own(&paths, args);
    }
    let subjects = chosen::subjects(&args.experiment)?;
    let bounds = |&subject: &Subject| subject.bounds().iter().map(move |&bounds| (subject, bounds));
    let tasks: Vec<(Subject, Bounds)> = subjects.iter().flat_map(bounds).collect();
    let proofs = locks::prove_all(&tasks, &interrupt::requested)?;
    let document = Orders::of(&tasks.iter().map(|task| task.0).zip(proofs).collect::<Vec<_>>());
    match args.format {
        Format::Json => out::print_json(&document)?,
        Format::Table => {
            let is_named = subjects.iter().all(|subject| subject.is_mutant());
            out::print(&document.page(is_named, out::width()))?;
        }
    }
    match document.surprises().as_slice() {
        [] => Ok(()),
        surprises => {
            say::say(&format!("not as expected: {}", surprises.join(", ")));
            Err(Failure::Status(SURPRISED))
        }
    }
}
