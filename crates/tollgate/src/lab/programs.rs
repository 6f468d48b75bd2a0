//! The user's own programs, in ring 3 under the lab's kernel.

use std::path::Path;

use rustix::process::Signal;
use tollgate_lab::output::{Programs, ended};
use tollgate_lab::system::{
    self, AssemblerError, Cause, End, FileError, Foreign, Options, Program, Ran, foreign, refused_locks,
};
use tollgate_lab::{EngineChoice, Provenance};
use tollgate_output::figures::count;
use tollgate_x86::Vendor;

use crate::args::Format;
use crate::args::lab::{LabArgs, ProgramArgs};
use crate::failure::Failure;
use crate::{out, say};

/// Most instructions of a program that are named if the kernel does not save their registers.
const MOST_NAMED: usize = 3;
/// The exit status if the programs were stopped, as with timeout(1).
const STOPPED: u8 = 124;
/// The exit status if a program was not loaded, as shells have it for one that cannot be executed.
const NOT_LOADED: u8 = 126;

/// Runs the programs. Their output is standard output; the rest goes to standard error.
///
/// # Errors
/// A file that is not a program; an engine that cannot be used. A program that fails gives its status.
pub fn run(args: &LabArgs, engine: EngineChoice) -> Result<(), Failure> {
    let programs = programs(&args.programs)?;
    let options = Options {
        timer: args.programs.timer.unwrap_or_default(),
        test_and_set: args.programs.test_and_set,
        vendor: args.vendor.map(Vendor::from),
        patience: args.programs.time,
        ..Options::default()
    };
    let ran = system::run(&programs, engine, options)?;
    // Copies of a program have its code.
    for program in programs.iter().step_by(usize::from(args.programs.copies.max(1))) {
        warn_of_locks(program, &ran.provenance);
    }
    let walk = |at| ran.fault(at).and_then(|fault| system::walk(&programs, options, fault).ok().flatten());
    let walks: Vec<_> = (0..programs.len()).map(walk).collect();
    let document = Programs::new(&ran, &programs, &walks);
    if args.format == Format::Json {
        out::print_json(&document)?;
    } else {
        let written: Vec<u8> = ran.written.iter().flat_map(|written| written.bytes.iter().copied()).collect();
        out::print_document(&written, out::Form::Lines)?;
        if !args.programs.quiet {
            let gap = if written.is_empty() { "" } else { "\n" };
            say::warn(&format!("{gap}{}", ended(&document, out::width_beside())));
        }
    }
    match status(&ran) {
        0 => Ok(()),
        status => Err(Failure::Status(status)),
    }
}

/// In the order of the arguments.
fn programs(args: &ProgramArgs) -> Result<Vec<Program>, Failure> {
    let (given, wanted) = (args.argument.len(), args.program.len());
    if given > 1 && given != wanted {
        return Err(Failure::input(format!(
            "--argument: {given} numbers for {}; give one for all of them, or one for each",
            count(wanted, "program", "programs")
        )));
    }
    let mut programs = Vec::new();
    for (at, path) in args.program.iter().enumerate() {
        let mut program = open(path)?;
        program.argument = args.argument.get(at).or(args.argument.first()).copied().unwrap_or(0);
        program.iopl = args.iopl;
        warn_of_foreign(&program);
        for copy in 1..=args.copies {
            let name =
                if args.copies > 1 { format!("{} {copy}", program.name) } else { program.name.clone() };
            programs.push(Program { name, ..program.clone() });
        }
    }
    Ok(programs)
}

fn open(path: &Path) -> Result<Program, Failure> {
    Program::open(path).map_err(|error| {
        if let FileError::Assembler(error) = &error {
            say_assembler(error);
        }
        Failure::input(format!("--program: {} {error}", path.display()))
    })
}

pub fn say_assembler(error: &AssemblerError) {
    let lines = error.said().iter().map(|line| format!("{}\n", say::clean(line)));
    say::warn(&lines.collect::<String>());
}

/// Names the instructions that use registers which the kernel does not save, before they fault.
fn warn_of_foreign(program: &Program) {
    warn(
        &program.name,
        &foreign(program),
        "seems to use x87, MMX or SSE registers, which the kernel does not save (build it with -mgeneral-regs-only)",
    );
}

/// Names the instructions that the engine has executed although every processor refuses them.
fn warn_of_locks(program: &Program, provenance: &Provenance) {
    if matches!(provenance, Provenance::QemuTcg { .. }) {
        warn(
            &program.name,
            &refused_locks(program),
            "has instructions that a LOCK prefix makes invalid: #UD is right, as in the interpreter; QEMU's translator is wrong when it executes them without the prefix",
        );
    }
}

fn warn(name: &str, found: &[Foreign], what: &str) {
    let named = found.iter().take(MOST_NAMED).map(|it| {
        let bytes: Vec<String> = it.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:x} {} [{}]", it.address, it.text, bytes.join(" "))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    if !named.is_empty() {
        let more = match found.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        say::say(&format!("{name} {what}: {named}{more}"));
    }
}

/// The first status that is not 0, as a shell would show it. If every program's first thread of control ended with 0, another one
/// may still have run.
fn status(ran: &Ran) -> u8 {
    let of_none = match (&ran.broken, &ran.cut_short) {
        (Some(_), _) => 1,
        (None, Some(_)) => STOPPED,
        (None, None) => 0,
    };
    (0..ran.programs.len()).map(|at| of_program(ran, at)).find(|&status| status != 0).unwrap_or(of_none)
}

fn of_program(ran: &Ran, at: usize) -> u8 {
    const SIGNALLED: u8 = 128;
    if ran.unloaded.iter().any(|(which, _)| which.is_none_or(|which| which == at)) {
        return NOT_LOADED;
    }
    if let Some(fault) = ran.fault(at) {
        return SIGNALLED + signal(fault.cause);
    }
    match ran.first(at).map(|control| &control.end) {
        // A shell shows the lowest byte of a number; 0 would not be a failure.
        Some(End::Exit { status, .. }) if *status != 0 => (*status as u8).max(1),
        Some(End::Exit { .. }) => 0,
        Some(End::Stuck | End::Fault(_)) | None => STOPPED,
    }
}

/// The signal that Linux would send, by its number in signal(7).
fn signal(cause: Cause) -> u8 {
    let Cause::Exception { vector, .. } = cause else { return Signal::ILL.as_raw() as u8 };
    let signal = match vector {
        0 | 16 | 19 => Signal::FPE,
        1 | 3 => Signal::TRAP,
        6 | 7 => Signal::ILL,
        11 | 12 | 17 => Signal::BUS,
        _ => Signal::SEGV,
    };
    signal.as_raw() as u8
}
