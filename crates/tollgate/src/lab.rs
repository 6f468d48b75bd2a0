//! `tollgate lab`: ring crossings in a small kernel of its own, and the latency of each.

mod chosen;
mod explain;
mod kept;
mod locks;
mod programs;

#[cfg(test)]
pub use explain::Page;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use tollgate_engine::interrupt;
use tollgate_lab::guest::{Command, Image, Parameters, Serial};
use tollgate_lab::output::{self as view, Entries};
use tollgate_lab::{EngineChoice, Provenance, Results};
use tollgate_model::{Fact, Facts, Run, bounded};
use tollgate_output::table::paragraph;
use tollgate_store::writing::{Existing, Until, write_whole};
use tollgate_view::facts;
use tollgate_view::summary::latency;
use tollgate_x86::Vendor;

use crate::args::Format;
use crate::args::lab::{LabArgs, On};
use crate::destination::{Destination, expect_seen};
use crate::failure::{Failure, go_on, plainly};
use crate::{decode, out};

/// Most bytes of a serial port's output that are read.
const MOST: u64 = 16 << 20;
/// Repetitions of an operation in an image that is started elsewhere, enough for a clock.
const OPERATIONS: u32 = 1000;
const ROUNDS: u32 = 11;

impl LabArgs {
    /// # Errors
    /// An unknown experiment; a missing engine; a file that cannot be read or written.
    pub fn execute(&self) -> Result<(), Failure> {
        if self.read.is_none() {
            tollgate_lab::expect_guest()?;
        }
        if !self.programs.program.is_empty() {
            return programs::run(self, engine(self.on)?);
        }
        if self.prove {
            return locks::prove(self);
        }
        if let Some(chosen) = chosen::locks(&self.experiment)? {
            return locks::measure(&chosen, self);
        }
        if self.explain {
            return explain::explain(self);
        }
        let chosen = chosen::chosen(&self.experiment)?;
        if let Some(path) = &self.image {
            let chosen = chosen.iter().copied().collect();
            return write_image(
                path,
                &Parameters {
                    operations: OPERATIONS,
                    rounds: ROUNDS,
                    command: Command::AfterFirmware,
                    chosen,
                },
            );
        }
        if let Some(path) = &self.read {
            return import(path, self);
        }
        if self.dump {
            return dump(self);
        }
        let began = SystemTime::now();
        let destination = Destination::choose(self.out.as_deref())?;
        destination.say_doubt();
        interrupt::install();
        let vendor = self.vendor.map(Vendor::from);
        let results = tollgate_lab::run(&chosen, engine(self.on)?, vendor, &interrupt::requested)?;
        let mut run = kept::document(&results, began, self.label.clone())?;
        run.facts.extend([facts::patterns(&self.experiment)]);
        go_on()?;
        keep(&run, &destination, || show(&results, shares(&results), self))
    }
}

fn keep(
    run: &Run,
    destination: &Destination,
    show: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let kept = destination.keep(run, Until::Durable);
    if matches!(destination, Destination::Output) {
        return kept.map(|_| ());
    }
    let shown = show();
    // The gravest error comes last.
    let path = kept?;
    expect_seen(shown, path.as_deref())
}

/// Shows the records of a guest that ran elsewhere. They are kept as a run if `--on` names the engine, which the guest cannot
/// know.
fn import(path: &Path, args: &LabArgs) -> Result<(), Failure> {
    let began = SystemTime::now();
    let results = read(path)?;
    if args.on == On::Auto {
        return if args.label.is_some() || args.out.is_some() {
            Err(Failure::input(
                "--from: the guest's ticks have no meaning without its engine; name it with --on",
            ))
        } else {
            show(&results, Vec::new(), args)
        };
    }
    let destination = Destination::choose(args.out.as_deref())?;
    destination.say_doubt();
    let run = kept::imported(&results, began, args.label.clone(), args.on, path)?;
    keep(&run, &destination, || show(&results, Vec::new(), args))
}

/// The processor's share of each entry that was measured on the same processor in the newest kept run; none if the guest has no
/// times.
fn shares(results: &Results) -> Vec<String> {
    if results.provenance != Some(Provenance::Kvm) {
        return Vec::new();
    }
    let model = |facts: &Facts| facts.get("cpu.model").and_then(Fact::value).cloned();
    let here = model(&tollgate_inspect::read_facts(&tollgate_inspect::Machine::here()));
    let kept = tollgate_store::kept::kept().unwrap_or_default();
    let runs = kept.iter().rev().filter_map(|entry| entry.open().ok());
    let mut entries =
        runs.filter(|run| here.is_some() && model(&run.facts) == here).filter_map(|run| entries(&run));
    entries.next().map_or_else(Vec::new, |entries| view::shares(results, &entries))
}

fn entries(run: &Run) -> Option<Entries> {
    let hertz = facts::number(&run.facts, facts::CLOCK_HZ).filter(|hertz| *hertz > 0.0)?;
    let latencies = view::benchmarks().filter_map(|name| Some((name, latency(run, name)?)));
    let latencies: BTreeMap<_, _> = latencies.collect();
    (!latencies.is_empty()).then(|| Entries { run: run.id.to_string(), hertz, latencies })
}

fn show(results: &Results, shares: Vec<String>, args: &LabArgs) -> Result<(), Failure> {
    let mut remarks: Vec<String> = results.notes.iter().map(view::note).collect();
    remarks.extend(shares);
    match args.format {
        Format::Json => out::print_json(&view::LabDocument::new(results, &remarks)),
        Format::Table => out::print(&view::page(results, &remarks, out::width())),
    }
}

fn write_image(path: &Path, parameters: &Parameters) -> Result<(), Failure> {
    let name = path.display();
    let refused = |why: &str| Failure::input(format!("--image: {name}: {why}"));
    // Both were written once: an image for a stick or a CD must boot.
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("img") || end.eq_ignore_ascii_case("iso"))
    {
        return Err(refused(
            "the kernel is a file for GRUB, not a disk or CD image; write lab.bin, and make a CD from it with grub-mkrescue (docs/lab.md)",
        ));
    }
    let image = Image::new(parameters);
    write_whole(path, image.bytes(), Existing::Replace).map_err(|error| refused(&plainly(&error)))?;
    let output = format!(
        "{name} has {} bytes: a file for any loader of multiboot 1, such as GRUB's `multiboot` or QEMU's -kernel. It writes \
         its records to the first serial port (0x3f8); `tollgate lab --from FILE` shows them.",
        image.bytes().len()
    );
    out::print(&paragraph(&output, out::width(), ""))
}

fn read(path: &Path) -> Result<Results, Failure> {
    let name = path.display();
    let refused = |error: &io::Error| Failure::input(format!("--from: {name}: {}", plainly(error)));
    let bytes = if path.as_os_str() == "-" {
        bounded::whole(io::stdin().lock(), MOST)
    } else {
        File::open(path).and_then(|file| bounded::whole(file, MOST))
    };
    let Some(bytes) = bytes.map_err(|error| refused(&error))? else {
        return Err(Failure::input(format!(
            "--from: {name}: larger than {} MiB; a guest writes less",
            MOST >> 20
        )));
    };
    let serial = Serial::read(&bytes);
    if serial.records.is_empty() {
        return Err(Failure::input(format!(
            "--from: {name}: it has no records of the guest (lines that begin with tg1)"
        )));
    }
    Ok(Results::of_serial(&serial))
}

/// The guest's tables as `decode` shows them; with --out the text itself, which `decode` reads.
fn dump(args: &LabArgs) -> Result<(), Failure> {
    let parameters = Parameters { command: Command::Dump, ..Parameters::default() };
    let text = tollgate_lab::serial(&parameters, engine(args.on)?, args.vendor.map(Vendor::from))?;
    match args.out.as_deref() {
        None => decode::print_text(&text, args.format),
        Some(path) if path.as_os_str() == "-" => out::print_document(&text, out::Form::Lines),
        Some(path) => write_whole(path, &text, Existing::Replace)
            .map_err(|error| Failure::input(format!("--out: {}: {}", path.display(), plainly(&error)))),
    }
}

fn engine(on: On) -> Result<EngineChoice, Failure> {
    match on {
        On::Auto => Ok(EngineChoice::Auto),
        On::Kvm => Ok(EngineChoice::Kvm),
        On::Qemu => Ok(EngineChoice::Qemu),
        On::QemuKvm => Ok(EngineChoice::QemuKvm),
        On::Interpreter => Ok(EngineChoice::Interpreter),
        On::Hardware => Err(Failure::input(
            "--on hardware: tollgate cannot start another machine; write an image with --image, boot it there, and show its output with --from",
        )),
    }
}
