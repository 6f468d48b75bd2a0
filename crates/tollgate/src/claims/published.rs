//! `tollgate claims --as-published`: compiles the published programs, executes them as published and with each correction, in
//! alternation, and shows the causes of the difference.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use tollgate_claims::published::{
    AsPublished, Correction, Execution, FEWEST_ROUNDS, Load, MOST_ROUNDS, Measured, Program, printed,
};
use tollgate_engine::interrupt;
use tollgate_inspect::{Machine, strain};
use tollgate_model::Facts;
use tollgate_model::text::{excerpt, plainly, signal_name};
use tollgate_os::private::PrivateDirectory;
use tollgate_os::programs::{find, search_path};
use tollgate_os::tool::{Attended, attend};
use tollgate_view::facts::number;

use crate::args::Format;
use crate::args::claims::ClaimsArgs;
use crate::failure::{Failure, go_on};
use crate::{out, say};

/// A compiler that takes longer is ended. Go compiles its library first.
const COMPILER: Duration = Duration::from_secs(300);
/// A program that takes longer is ended: on slow machines most take a second.
const PROGRAM: Duration = Duration::from_secs(60);

/// # Errors
/// An experiment without one; a signal that asked to stop.
pub fn show(args: &ClaimsArgs) -> Result<(), Failure> {
    let programs = chosen(args.published.as_deref())?;
    interrupt::install();
    let measured = programs.iter().map(|program| measure(program, args.quiet));
    let shown = AsPublished { programs: measured.collect::<Result<_, _>>()? };
    match args.format {
        Format::Json => out::print_json(&shown),
        Format::Table => out::page(&shown.page(out::width())),
    }
}

fn chosen(name: Option<&str>) -> Result<Vec<Program>, Failure> {
    let mut all = Program::all().map_err(Failure::input)?;
    let Some(name) = name else { return Ok(all) };
    let names: Vec<String> = all.iter().map(|program| program.experiment.clone()).collect();
    all.retain(|program| program.experiment == name || program.name == name);
    if all.is_empty() {
        Err(Failure::input(format!(
            "--as-published: {name:?} is neither a program nor an experiment whose program runs on Linux; those are {}",
            names.join(", ")
        )))
    } else {
        Ok(all)
    }
}

fn measure(program: &Program, quiet: bool) -> Result<Measured, Failure> {
    let built = Built::build(program);
    go_on()?;
    let built = match built {
        Ok(built) => built,
        Err(why) => return Ok(Measured::missing(program, why)),
    };
    if !quiet {
        let variants = built.files.len();
        say::say(&format!(
            "{}: compiled; {variants} variants of it are executed {FEWEST_ROUNDS} to {MOST_ROUNDS} times each",
            program.name
        ));
    }
    let mut executions: Vec<Vec<Execution>> = built.files.iter().map(|_| Vec::new()).collect();
    let (mut load, mut stolen) = (Load::default(), Vec::new());
    for round in 1..=MOST_ROUNDS {
        note_load(&mut load, &mut stolen);
        // Forwards and backwards, so that drift affects all of them.
        let there = 0..executions.len();
        let order: Vec<usize> = if round % 2 == 1 { there.collect() } else { there.rev().collect() };
        for at in order {
            if executions[at].iter().all(Result::is_ok) {
                executions[at].push(built.execute(at));
            }
            go_on()?;
        }
        let is_a_look = round >= FEWEST_ROUNDS && round % 2 == 0;
        if is_a_look && built.measured(program, &executions, &load).is_decided() {
            break;
        }
    }
    note_load(&mut load, &mut stolen);
    Ok(built.measured(program, &executions, &load))
}

/// Notes the number of other runnable tasks, and the time that the hypervisor has taken since the first look.
fn note_load(load: &mut Load, stolen: &mut Vec<f64>) {
    /// Ticks per second: USER_HZ of proc_stat(5).
    const TICKS: f64 = 100.0;
    let facts: Facts = strain(&Machine::here(), "now").into_iter().collect();
    // One of them reads that file.
    load.beside.extend(number(&facts, "running.now").map(|tasks| (tasks - 1.0).max(0.0)));
    stolen.extend(number(&facts, "steal.now"));
    if let (Some(first), Some(last)) = (stolen.first(), stolen.last()) {
        load.stolen = (last - first) / TICKS;
    }
}

struct Built {
    own: PrivateDirectory,
    files: Vec<PathBuf>,
    compiler: String,
    command: String,
}

impl Built {
    /// The error is a sentence: there is no compiler, or its own message.
    fn build(program: &Program) -> Result<Self, String> {
        let needs = if program.is_go() { "go" } else { "cc" };
        let compiler =
            find(needs).ok_or_else(|| format!("it needs {needs} to be compiled, which is not in PATH"))?;
        let own =
            PrivateDirectory::for_programs().map_err(|error| format!("no directory: {}", plainly(&error)))?;
        for (name, text) in program.sources() {
            fs::write(own.path().join(name), text).map_err(|error| format!("{name}: {}", plainly(&error)))?;
        }
        let version = if program.is_go() { "version" } else { "--version" };
        let said = attended(at(&own, &compiler).arg(version), COMPILER)?;
        let mut built = Self { own, files: Vec::new(), compiler: first_line(&said), command: String::new() };
        for (number, corrections) in program.variants().enumerate() {
            let out = format!("{}-{number}", program.name);
            let words = words(program, corrections, &out);
            attended(at(&built.own, &compiler).args(&words), COMPILER)?;
            if number == 0 {
                built.command = format!("{needs} {}", words.join(" "));
            }
            built.files.push(built.own.path().join(out));
        }
        Ok(built)
    }

    fn measured(&self, program: &Program, executions: &[Vec<Execution>], load: &Load) -> Measured {
        Measured::new(program, self.compiler.clone(), self.command.clone(), executions, load)
    }

    fn execute(&self, variant: usize) -> Execution {
        attended(&mut at(&self.own, &self.files[variant]), PROGRAM).map(|said| printed(&said))
    }
}

fn words(program: &Program, corrections: &[Correction], out: &str) -> Vec<String> {
    let subcommand = program.is_go().then(|| "build".to_owned());
    let options = corrections.iter().map(|correction| correction.option(program.is_go()));
    let rest = ["-o", out, &program.file].map(str::to_owned);
    subcommand.into_iter().chain(program.flags.iter().cloned()).chain(options).chain(rest).collect()
}

fn at(own: &PrivateDirectory, program: &Path) -> Command {
    let mut command = own.command(program);
    // cc looks for as and ld in PATH. Go has a cache of its own, and neither a module nor another toolchain.
    let here = |name: &str| (OsString::from(name), own.path().as_os_str().to_owned());
    command.current_dir(own.path()).env("LC_ALL", "C").env("PATH", search_path());
    command.envs([here("HOME"), here("GOCACHE"), here("GOPATH")]);
    command.envs([("GO111MODULE", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")]);
    command
}

fn attended(command: &mut Command, limit: Duration) -> Result<String, String> {
    let ended =
        attend(command, limit, &|| interrupt::requested().is_some()).map_err(|error| plainly(&error))?;
    let Attended { status, said } = ended;
    match status {
        Some(status) if status.success() => Ok(said),
        Some(status) => Err(why(&said, status)),
        None => Err(format!("it did not end within {} s", limit.as_secs())),
    }
}

/// Its message and its end. For a compiler the first line with an error, otherwise the last one.
fn why(said: &str, status: ExitStatus) -> String {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.contains("error:")).or_else(|| lines.next_back());
    let line = line.map(excerpt).unwrap_or_default().into_owned();
    let signal =
        status.signal().map(|signal| signal_name(signal).unwrap_or_else(|| format!("signal {signal}")));
    match signal {
        Some(signal) if line.is_empty() => format!("killed by {signal}"),
        Some(signal) => format!("{line} (killed by {signal})"),
        None if line.is_empty() => format!("exit status {}", status.code().unwrap_or_default()),
        None => line,
    }
}

fn first_line(said: &str) -> String {
    excerpt(said.lines().next().unwrap_or_default()).into_owned()
}
