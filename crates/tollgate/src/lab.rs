//! `tollgate lab`: the rings crossed by a small kernel of our own, and what each crossing takes.

mod chosen;
mod course;
mod document;
mod explain;
mod gates;
mod kept;
mod references;
mod words;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use tollgate_lab::guest::{Command, Image, Outcomes, Parameters, Serial};
use tollgate_model::Run;

use crate::args::{Format, LabArgs, On};
use crate::failure::{Failure, go_on, plainly};
use crate::store::Destination;
use crate::table::paragraph;
use crate::writing::{Existing, write_whole};
use crate::{decode, out, run};
use course::Course;

/// The longest text of a serial port that is read.
const MOST: u64 = 16 << 20;
/// So often an operation is repeated in an image that is started elsewhere, where a clock is to tell it.
const OPERATIONS: u32 = 1000;
const ROUNDS: u32 = 11;

/// Runs the experiments, or what else was asked for.
///
/// # Errors
/// An experiment that there is not; an engine that is not there; a file that cannot be read or written.
pub fn lab(args: &LabArgs) -> Result<(), Failure> {
    let chosen = chosen::chosen(&args.experiment)?;
    if let Some(path) = &args.image {
        let chosen = chosen.iter().copied().collect();
        return write_image(
            path,
            &Parameters { operations: OPERATIONS, rounds: ROUNDS, chosen, ..Parameters::default() },
        );
    }
    if let Some(path) = &args.read {
        return import(path, args);
    }
    if args.dump {
        return dump(args);
    }
    if args.explain {
        return explain::explain(&chosen, args);
    }
    let began = SystemTime::now();
    let destination = Destination::choose(args.out.as_deref())?;
    run::say_doubt(&destination);
    let mut course = course::run(&chosen, args.on, args.vendor)?;
    let shares = gates::shares(&course);
    course.remarks.extend(shares);
    let run = kept::document(&course, began, args.label.clone())?;
    go_on()?;
    keep(&course, &run, &destination, args)
}

fn keep(course: &Course, run: &Run, destination: &Destination, args: &LabArgs) -> Result<(), Failure> {
    let kept = destination.keep(run);
    if matches!(destination, Destination::Output) {
        return kept.map(|_| ());
    }
    let shown = show(course, args);
    // Last and gravest: that it was not kept.
    kept?;
    shown
}

/// Shows what a guest said elsewhere. Kept as a run it is where somebody says what executed it: the guest cannot know.
fn import(path: &Path, args: &LabArgs) -> Result<(), Failure> {
    let began = SystemTime::now();
    let course = read(path)?;
    if args.on == On::Auto {
        return match args.label.is_some() || args.out.is_some() {
            true => Err(Failure::input(
                "--read: what executed the guest is not said, without which its ticks are no measure; name it with --on",
            )),
            false => show(&course, args),
        };
    }
    let destination = Destination::choose(args.out.as_deref())?;
    run::say_doubt(&destination);
    let run = kept::imported(&course, began, args.label.clone(), args.on, path)?;
    keep(&course, &run, &destination, args)
}

fn show(course: &Course, args: &LabArgs) -> Result<(), Failure> {
    match args.format {
        Format::Json => out::print_json(&document::Document::of(course)),
        Format::Table => out::print(&words::page(course, out::width())),
    }
}

/// The image with a sentence that says how it is started.
fn write_image(path: &Path, parameters: &Parameters) -> Result<(), Failure> {
    let image = Image::new(parameters);
    write_whole(path, image.bytes(), Existing::Replace)
        .map_err(|error| Failure::input(format!("--image: {}: {}", path.display(), plainly(&error))))?;
    let told = format!(
        "{} has {} bytes for any loader of multiboot 1, such as GRUB's `multiboot` or QEMU's -kernel. It writes its records to the \
         first serial port (0x3f8); `tollgate lab --read FILE` shows them.",
        path.display(),
        image.bytes().len()
    );
    out::print(&paragraph(&told, out::width(), ""))
}

/// What was written to a serial port elsewhere.
fn read(path: &Path) -> Result<Course, Failure> {
    let name = path.display();
    let refused = |error: &io::Error| Failure::input(format!("--read: {name}: {}", plainly(error)));
    let mut bytes = Vec::new();
    match path.as_os_str() == "-" {
        true => io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes).map_err(|error| refused(&error))?,
        false => {
            let file = File::open(path).map_err(|error| refused(&error))?;
            file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| refused(&error))?
        }
    };
    if bytes.len() as u64 > MOST {
        return Err(Failure::input(format!(
            "--read: {name}: larger than {} MiB, which no guest writes",
            MOST >> 20
        )));
    }
    let serial = Serial::read(&bytes);
    if serial.records.is_empty() {
        return Err(Failure::input(format!(
            "--read: {name}: no records of the guest in it, which are lines that begin with tg1"
        )));
    }
    let complaints =
        serial.complaints.iter().map(|(line, complaint)| format!("line {line}: {complaint}")).collect();
    Ok(Course::elsewhere(&Outcomes::of(&serial.records), complaints))
}

/// The guest's tables as `decode` shows them; with --out the text itself, which `decode` reads.
fn dump(args: &LabArgs) -> Result<(), Failure> {
    let parameters = Parameters { command: Command::Dump, ..Parameters::default() };
    let text = course::say(&parameters, args.on, args.vendor)?;
    match args.out.as_deref() {
        None => decode::print_text(&text, args.format),
        Some(path) if path.as_os_str() == "-" => out::print_raw(&text),
        Some(path) => write_whole(path, &text, Existing::Replace)
            .map_err(|error| Failure::input(format!("--out: {}: {}", path.display(), plainly(&error)))),
    }
}
