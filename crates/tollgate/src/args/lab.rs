//! The arguments of `tollgate lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use tollgate_lab::system::Timer;
use tollgate_model::Label;

use super::{Format, Maker, parse_address};
use crate::{examples, time};

/// `tollgate lab`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("lab", ""))]
pub struct LabArgs {
    /// The name of an experiment, several with `*`, or a group: crossings, traps, pieces, interrupts, wrong
    /// [default: all that are measured]. `locks` compares a test-and-set by the page-fault handler with other
    /// locks
    pub experiment: Vec<String>,
    /// Run the kernel on this engine [default: KVM if it executes ring 0 on the processor, otherwise the
    /// interpreter]; with --from, the engine that ran it, so that it is kept as a run
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    pub on: On,
    /// The processor vendor that the kernel finds, if the engine can choose it [default: Intel; under KVM the
    /// host's]
    #[arg(long, value_enum, ignore_case = true)]
    pub vendor: Option<Maker>,
    /// Step through one operation of an experiment in the interpreter, and show what each crossing checks and
    /// loads; `boot` shows what the kernel sets up, with the reason for each write
    #[arg(long, requires = "experiment", conflicts_with_all = ["on", "dump", "image", "read", "label", "out"])]
    pub explain: bool,
    /// Preempt the lock programs before every instruction, in the interpreter, and show which locks hold and
    /// which mutants of the test-and-set do not. `entries` does the same for SYSCALL entries, and `entries
    /// FILE.s` for your own, and shows what an interrupt, an NMI and a #MC before each instruction lose. The
    /// name of a mutant also shows its counterexample
    #[arg(
        long,
        requires = "experiment",
        conflicts_with_all = ["on", "vendor", "explain", "dump", "image", "read", "label", "out"]
    )]
    pub prove: bool,
    /// Stop the explanation at this address
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, requires = "explain", conflicts_with_all = ["dump", "image", "read"])]
    pub until: Option<u64>,
    /// Stop the explanation after this many instructions
    #[arg(long, value_name = "N", default_value_t = 200, requires = "explain", conflicts_with_all = ["dump", "image", "read"])]
    pub steps: u64,
    /// Show the kernel's own descriptor tables and MSRs; with --out keep the text that `tollgate decode` reads
    #[arg(long, conflicts_with_all = ["experiment", "image", "read", "label"])]
    pub dump: bool,
    /// Write the kernel to this file instead, for another machine; GRUB and every other multiboot loader
    /// boots it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["on", "vendor", "read", "label", "out", "format"])]
    pub image: Option<PathBuf>,
    /// Give the run a label by which show and compare find it
    #[arg(long, value_name = "LABEL")]
    pub label: Option<Label>,
    /// Write the run to this file instead of keeping it among the others; `-` prints it in place of the table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Show the results of a guest that ran elsewhere, from a file with its serial port's output; `-` is standard input
    #[arg(long = "from", visible_alias = "read", value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["experiment", "vendor"])]
    pub read: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Programs of one's own.
    #[command(flatten)]
    pub programs: ProgramArgs,
}

/// The arguments for other tasks than programs. Each option of programs names them, since an option that conflicts with
/// `--program` no longer requires it.
const OTHER_TASKS: [&str; 8] = ["experiment", "explain", "prove", "dump", "image", "read", "label", "out"];

/// Programs that `tollgate lab` runs in ring 3.
#[derive(Debug, Args)]
#[command(next_help_heading = "Programs of your own")]
pub struct ProgramArgs {
    /// Run this program in ring 3 under the lab's kernel: a static ELF file, a flat binary, or assembly (.s, .S, .asm). Repeat it for
    /// several at once, up to 16. The exit status is the first one that is not 0
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = OTHER_TASKS
    )]
    pub program: Vec<PathBuf>,
    /// Run each program this many times at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16), requires = "program", conflicts_with_all = OTHER_TASKS)]
    pub copies: u8,
    /// Pass this number to the programs in RDI; give it once for all of them, or once per program
    #[arg(long, value_name = "N", requires = "program", conflicts_with_all = OTHER_TASKS)]
    pub argument: Vec<u32>,
    /// Let the programs take I/O privilege level 3
    #[arg(long, requires = "program", conflicts_with_all = OTHER_TASKS)]
    pub iopl: bool,
    /// Switch between programs after this many counts of the timer, of 838 ns each; `off` for no timer [default: 1193]
    #[arg(long, value_name = "COUNTS", value_parser = parse_timer, requires = "program", conflicts_with_all = OTHER_TASKS)]
    pub timer: Option<Timer>,
    /// Guard the test-and-set at 3ffff000h: the kernel spoils R15 at every switch, and its page-fault handler restarts a program that
    /// lost the processor there. Programs use R15 for nothing else (-ffixed-r15)
    #[arg(long, requires = "program", conflicts_with_all = OTHER_TASKS)]
    pub test_and_set: bool,
    /// Stop the programs after this much time
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, default_value = "10s", requires = "program", conflicts_with_all = OTHER_TASKS)]
    pub time: Duration,
    /// Print only the programs' output
    #[arg(short, long, requires = "program", conflicts_with_all = OTHER_TASKS, conflicts_with = "format")]
    pub quiet: bool,
}

fn parse_timer(text: &str) -> Result<Timer, String> {
    match (text, text.parse()) {
        ("off", _) => Ok(Timer::Off),
        (_, Ok(counts)) if counts > 1 => Ok(Timer::Counts(counts)),
        _ => Err("it is neither a number of counts from 2 to 65535 nor off".to_owned()),
    }
}

/// The engine that runs the lab's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum On {
    /// The engine that shows the most
    #[default]
    Auto,
    /// KVM
    Kvm,
    /// QEMU's translator, which counts instructions
    Qemu,
    /// QEMU with KVM
    QemuKvm,
    /// The built-in interpreter, which counts instructions too
    Interpreter,
    /// Another machine: with --from
    Hardware,
}
