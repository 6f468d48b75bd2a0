//! The arguments of `tollgate versus`. Those that hyperfine has too have its names, its short forms and its meaning.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use tollgate_model::Label;
use tollgate_view::versus::hyperfine;

use super::compare::{FailOn, UndecidedArgs, parse_threshold};
use super::{ShowFormat, parse_cpu};
use crate::{examples, time};

const AFTER: &str = "\
Each COMMAND is one line for the shell, so quote it. Commands are executed in rounds, each once in a round, in random order. \
docs/versus.md has the method, and what differs from hyperfine.";

/// `tollgate versus`.
#[derive(Debug, Default, Args)]
#[command(after_help = examples::help("versus", AFTER))]
pub struct VersusArgs {
    /// The commands; the others are compared with the first. With --bench: builds, OLD NEW, and patterns of benches
    #[arg(value_name = "COMMAND", required = true, value_hint = ValueHint::CommandString)]
    pub commands: Vec<String>,
    /// Execute the commands in this environment, as `run --in`; several are alternated. NAME=ENV calls it NAME
    #[arg(long = "in", value_name = "ENV", value_hint = ValueHint::Other, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub environments: Vec<String>,
    /// Builds of benches
    #[command(flatten)]
    pub bench: BenchArgs,
    /// How long, how often
    #[command(flatten)]
    pub length: LengthArgs,
    /// What is executed around the commands
    #[command(flatten)]
    pub around: AroundArgs,
    /// Parameters and names
    #[command(flatten)]
    pub parameters: ParameterArgs,
    /// Streams, processors and the page cache
    #[command(flatten)]
    pub conditions: ConditionArgs,
    /// What becomes of the result
    #[command(flatten)]
    pub result: ResultArgs,
}

/// Builds of benches in the place of commands.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Benches")]
pub struct BenchArgs {
    /// Compare the benches of builds, bench by bench: the first two arguments and later paths of files are builds, the others patterns of
    /// benches, a part of a name or with `*` the whole
    #[arg(long)]
    #[arg(conflicts_with_all = ["setup", "prepare", "conclude", "cleanup", "shell", "no_shell", "ignore_failure"])]
    #[arg(conflicts_with_all = ["parameter_scan", "parameter_list", "reference", "input", "output", "show_output", "cold"])]
    #[arg(conflicts_with_all = ["export_json", "export_csv", "export_markdown", "time_unit"])]
    pub bench: bool,
    /// A build with the code of the base at other addresses, which is compared with it too: changes that are no larger than its own are noted
    #[arg(long, value_name = "BUILD", requires = "bench", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// The harness of the builds [default: the one that their files have]
    #[arg(long, value_name = "NAME", value_enum, requires = "bench")]
    pub harness: Option<HarnessName>,
    /// Another harness: CMD prints a bench a line, with {binary} for the build
    #[arg(long, value_name = "CMD", requires_all = ["bench", "one"], conflicts_with = "harness", value_hint = ValueHint::CommandString)]
    pub list: Option<String>,
    /// CMD executes one bench, with {binary} and {bench}, for some ten milliseconds, or for {iterations} iterations; without a shell
    #[arg(long, value_name = "CMD", requires = "list", value_hint = ValueHint::CommandString)]
    pub one: Option<String>,
    /// The line that it prints, with {ns}, {us}, {ms} or {s} where the figure stands; the median of several
    #[arg(long, value_name = "LINE", requires = "one", default_value = "{ns}")]
    pub read: String,
}

/// A harness whose builds are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HarnessName {
    /// criterion.rs
    Criterion,
    /// divan
    Divan,
    /// Go, by `go test -c`
    Go,
    /// Google Benchmark
    Gbench,
}

/// For how long commands are executed.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How long")]
pub struct LengthArgs {
    /// Begin no round after this time, from 1s to 24h; a bare number is seconds [default: 30s; with --bench at least 4s a
    /// bench]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, allow_negative_numbers = true)]
    pub time: Option<Duration>,
    /// End when the interval of every ratio is narrower than this
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, default_value = "1%", allow_negative_numbers = true)]
    pub precision: f64,
    /// Go on to the end of the time while a comparison is inconclusive, and exit with status 3 if it stays so
    #[arg(long)]
    pub until_decided: bool,
    /// Execute each command this many times before anything is kept
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// Time each command exactly this many times
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(conflicts_with_all = ["min_runs", "max_runs", "time", "until_decided"])]
    pub runs: Option<u32>,
    /// Time each command at least this many times [default: 10, with --time 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub min_runs: Option<u32>,
    /// Time each command at most this many times
    #[arg(short = 'M', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_runs: Option<u32>,
    /// End an execution that takes longer than this, and the comparison with it [default: 20 times the slowest so far and 30s; the first has
    /// no limit]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_wait, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
}

/// What is executed around the commands.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Around the commands")]
pub struct AroundArgs {
    /// Execute CMD once before all executions of a command
    #[arg(short, long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub setup: Option<String>,
    /// Execute CMD before each execution; once for all commands, or once for each
    #[arg(short, long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub prepare: Vec<String>,
    /// Execute CMD after each execution; once for all commands, or once for each
    #[arg(short = 'C', long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub conclude: Vec<String>,
    /// Execute CMD once after all executions of a command, however they ended
    #[arg(short, long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub cleanup: Option<String>,
    /// The shell: its name or path, with options or without, `default`, or `none` for no shell
    #[arg(short = 'S', long, value_name = "SHELL", value_hint = ValueHint::CommandName, default_value = "default")]
    pub shell: String,
    /// Execute commands without a shell, as --shell none
    #[arg(short = 'N', conflicts_with = "shell")]
    pub no_shell: bool,
    /// Accept exit statuses other than 0, and signals: all, or those of a list
    #[arg(short, long, value_name = "STATUS,…", num_args = 0..=1, require_equals = true, default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<String>,
}

/// Parameters in commands, and names.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Parameters and names")]
pub struct ParameterArgs {
    /// Execute each command with {VAR} from MIN to MAX
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_hyphen_values = true)]
    #[arg(conflicts_with = "parameter_list")]
    pub parameter_scan: Vec<String>,
    /// In steps of this, where it is not 1
    #[arg(short = 'D', long, value_name = "DELTA", requires = "parameter_scan", allow_hyphen_values = true)]
    pub parameter_step_size: Option<String>,
    /// Execute each command with each of VALUES, separated by commas, for {VAR}
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"], action = clap::ArgAction::Append)]
    #[arg(allow_hyphen_values = true)]
    pub parameter_list: Vec<String>,
    /// The name of a command, in the commands' order
    #[arg(short = 'n', long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub command_name: Vec<String>,
    /// Compare all commands with this one
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub reference: Option<String>,
    /// The name of that one
    #[arg(long, value_name = "NAME", requires = "reference")]
    pub reference_name: Option<String>,
}

/// The conditions that commands are executed under.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Conditions")]
pub struct ConditionArgs {
    /// Standard input: `null`, or a file that is opened anew for each execution
    #[arg(long, value_name = "WHERE", default_value = "null", value_hint = ValueHint::FilePath)]
    pub input: String,
    /// Standard output: `null`, `pipe` (read and thrown away), `inherit`, or a file; once for all commands, or once for each
    #[arg(long, value_name = "WHERE", default_value = "null", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "show_output")]
    pub output: Vec<String>,
    /// Show what the commands write, as --output inherit
    #[arg(long)]
    pub show_output: bool,
    /// Drop the pages of the files that a command reads from the page cache before each execution
    #[arg(long)]
    pub cold: bool,
    /// Take this file or directory along into a guest that counts instructions, with all below it
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub with: Vec<PathBuf>,
    /// Execute the commands on this processor; several are separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_cpu, allow_negative_numbers = true)]
    pub processor: Vec<usize>,
    /// Execute the commands in this control group: a directory that is there below /sys/fs/cgroup
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<PathBuf>,
    /// Trace nothing: without it other executions are traced, in rounds of their own
    #[arg(long)]
    pub no_trace: bool,
}

/// What becomes of the result.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Keep the runs under this label, by which show, compare and report find them; without it nothing is kept
    #[arg(long, value_name = "LABEL")]
    pub label: Option<Label>,
    /// Write the runs to files in this directory instead of keeping them among the others
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Write the results as hyperfine's JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub export_json: Option<PathBuf>,
    /// Write them as its CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub export_csv: Option<PathBuf>,
    /// Write them as its Markdown
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub export_markdown: Option<PathBuf>,
    /// The unit of times in Markdown [default: that of the first command]
    #[arg(short = 'u', long, value_name = "UNIT", value_enum)]
    pub time_unit: Option<Unit>,
    /// Exit with status 1 where any command has this verdict, 3 where that is undecided
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// What is undecided
    #[command(flatten)]
    pub undecided: UndecidedArgs,
    /// Ignore smaller differences [default: 1%, of counted instructions 0.2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// What --fail-on, --precision and --until-decided go by [default: real]; of guests that count instructions show one execution by
    /// `function`
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,
    /// Of guests that count instructions: write the stacks of the kernel's functions in one execution to this file, folded for flame
    /// graphs, with the instructions in each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "bench")]
    pub stacks: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub format: ShowFormat,
    /// Show every call and every note
    #[arg(long)]
    pub all: bool,
    /// Show no progress and no remarks
    #[arg(short, long)]
    pub quiet: bool,
}

/// What commands are compared by, or what counted instructions are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The time that passes
    Real,
    /// The time that their processes have a processor, without waiting and without what other tasks take
    Cpu,
    /// Functions of the kernel and the program, of guests that count instructions
    Function,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// µs
    Microsecond,
    /// ms
    Millisecond,
    /// s
    Second,
}

impl From<Unit> for hyperfine::TimeUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Microsecond => Self::Microsecond,
            Unit::Millisecond => Self::Millisecond,
            Unit::Second => Self::Second,
        }
    }
}
