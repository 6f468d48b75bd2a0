//! The one definition of the arguments, for the parser, the help, the completions and the manual pages.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use tollgate_dump::output::{Entry, InputKind, kinds_for_help};
use tollgate_engine::Selection;
use tollgate_environments::{OnRam, is_file_system_name};
use tollgate_model::{Boundary, Label};
use tollgate_view::show::text::{Options, Order};
use tollgate_x86::{Vendor, Width};

use self::compare::FailOn;
use crate::boundaries::Boundaries;
use crate::configuration::{self, Configuration};
use crate::failure::Failure;
use crate::{examples, out, size, time};

pub mod bill;
pub mod claims;
pub mod compare;
pub mod doctor;
mod groups;
mod habits;
pub mod lab;
pub mod ram;
pub mod runs;
pub mod session;
pub mod trace;
pub mod versus;
pub mod wrong;

/// Measures, explains and compares what it costs to cross the boundaries of a machine.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = examples::help("tollgate", AFTER))]
pub struct Arguments {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
    /// Color the output: auto (on a terminal, subject to NO_COLOR and CLICOLOR_FORCE), always or never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true, hide_default_value = true, display_order = 1000)]
    color: habits::Color,
    /// Read this configuration file instead of tollgate.toml and your own (docs/configuration.md)
    #[arg(long = "config", global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "no_config", display_order = 1001)]
    config_file: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long, global = true, display_order = 1002)]
    no_config: bool,
}

const AFTER: &str = "\
Exit status: 0 done, 1 the condition of --fail-on is met, 2 wrong usage or input, 3 the runs do not decide whether it is met, 4 the run was made but could not be kept. If a signal interrupts the program, it ends by that signal.
Runs are kept in $XDG_DATA_HOME/tollgate/runs, or ~/.local/share/tollgate/runs; `run --store` keeps runs in its own directory instead.
Defaults for options come from a project's tollgate.toml and from $XDG_CONFIG_HOME/tollgate/config.toml, or ~/.config/tollgate/config.toml (docs/configuration.md).";

/// One row per verb: its help and its arguments. The file of the verb gives the arguments a method `execute`.
macro_rules! verbs {
    ($($(#[$meta:meta])* $verb:ident($args:ty),)+) => {
        /// The verbs.
        #[derive(Debug, Subcommand)]
        pub enum Verb {
            $($(#[$meta])* $verb($args),)+
        }

        impl Verb {
            pub fn execute(&self) -> Result<(), Failure> {
                match self {
                    $(Self::$verb(args) => args.execute(),)+
                }
            }
        }
    };
}

verbs! {
    /// Measure this machine, show the latencies and keep the run
    Run(RunArgs),
    /// Show the benchmarks
    List(ListArgs),
    /// Show a kept run
    Show(ShowArgs),
    /// Explain a benchmark: its operation, its figure here, what affects it, how to avoid it
    Explain(ExplainArgs),
    /// Compare runs: verdicts, and the facts that differ between the environments
    Compare(compare::CompareArgs),
    /// Execute commands in alternation: which is faster, by how much, and where the time went
    Versus(Box<versus::VersusArgs>),
    /// Show published experiments beside this machine's figures: which of their claims hold here
    Claims(claims::ClaimsArgs),
    /// List, rename or delete kept runs
    Runs(runs::RunsArgs),
    /// Run a command, trace it and its children, and show where the time went
    Trace(trace::TraceArgs),
    /// Run a command with a fresh file system on a device in memory, which is removed when the command ends
    Ram(ram::RamArgs),
    /// Check every interleaving of a lock on a model of a machine: proof or counterexample
    Schedules(SchedulesArgs),
    /// Show the facts of this environment that affect latencies, each with its source
    Inspect(InspectArgs),
    /// Decode descriptors, gates, TSS and MSRs from bytes or a debugger's text, and walk a kernel entry
    Decode(DecodeArgs),
    /// Measure ring crossings in the lab's own kernel, without an operating system
    Lab(lab::LabArgs),
    /// Make a self-contained HTML page of runs
    Report(ReportArgs),
    /// Export runs to other systems, in their formats
    Export(ExportArgs),
    /// List a directory of stored runs, or add to it
    Store(StoreArgs),
    /// Check whether this machine is fit for measuring, and suggest what would help
    Doctor(doctor::DoctorArgs),
    /// Show what sits on the boundaries of this machine, and what each costs a call
    Bill(bill::BillArgs),
    /// Show which environments `run --in` can measure on this machine, and what the others need
    Environments(session::EnvironmentsArgs),
    /// Show the values of configuration files, and where each comes from
    Config(ConfigurationArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page per verb
    Man(ManArgs),
    /// Measure for another tollgate, which speaks on standard input and output
    #[command(hide = true)]
    Agent(session::AgentArgs),
}

/// `tollgate run`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("run", ""))]
pub struct RunArgs {
    /// A suite, a benchmark or a case; `*` matches any text [default: the main cases of all suites except
    /// workloads and environments]
    pub pattern: Vec<String>,
    /// Spend this much time, from 1s to 24h; a bare number is seconds [default: 60s; in several environments
    /// 60s for up to two suites, or 60s per environment for more, plus in each 2m for workloads, 30m for
    /// large ones, 20s for starts]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["quick", "thorough"])]
    pub time: Option<Duration>,
    /// Measure each case in this many processes, however long that takes, instead of for a time
    #[arg(long, value_name = "N", value_parser = parse_processes, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["time", "quick", "thorough"])]
    pub processes: Option<usize>,
    /// Spend 10 seconds: the cases of the first screen, or those that match
    #[arg(long, conflicts_with = "thorough")]
    pub quick: bool,
    /// Spend up to 10 minutes: narrower intervals, and more sizes and pairs of processors
    #[arg(long)]
    pub thorough: bool,
    /// Give the run a label by which show and compare find it
    #[arg(long, value_name = "LABEL")]
    pub label: Option<Label>,
    /// Measure on this processor [default: the last allowed one; if cores differ, the last fast one]
    #[arg(long, value_name = "N", value_parser = parse_cpu, allow_negative_numbers = true)]
    pub cpu: Option<usize>,
    /// Write the run to this file instead of keeping it among the others; `-` prints it instead of the table.
    /// With several environments FILE is a directory, with a file for each run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Keep the run in this directory instead, in the layout of docs/fleet.md; several machines can share it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "out")]
    pub store: Option<PathBuf>,
    /// Record this name for the machine; by default the run names none
    #[arg(long, value_name = "NAME", value_parser = parse_machine)]
    pub machine: Option<String>,
    /// Measure files in a private directory under this one [default: the current one]; with several
    /// environments it applies to those of kind host
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "on")]
    pub dir: Option<PathBuf>,
    /// Measure files on a fresh file system in memory: `ram` for ext4, or another one, such as `ram:xfs`;
    /// `brd` and `loop` choose the device. Needs root. With --in it applies to environments of kind vm
    #[arg(long, value_name = "ram|brd|loop[:FS]")]
    pub on: Option<OnRam>,
    /// The size of the source tree of `workloads`, small (about 60 thousand lines) or large (about 2
    /// million); or of the file of files/large-write and files/large-read, such as 256M [default: small, and
    /// 1G]. Large files are measured only if they are named, with --thorough, or by `run files` with a size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<Size>,
    /// Also print the events counted for each operation, as `tollgate show --counters` does
    #[arg(long)]
    pub counters: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: PictureFormat,
    /// Print no progress bar and no warnings on standard error
    #[arg(long, short)]
    pub quiet: bool,
    /// Print on standard error how each environment of `--in` is set up (for a VM: kernel, files, QEMU
    /// arguments)
    #[arg(long, short)]
    pub verbose: bool,
    /// In which environments to measure
    #[command(flatten, next_help_heading = "Environments")]
    pub session: session::SessionArgs,
    /// The options that a configuration file gives, by their names here
    #[arg(skip)]
    pub configured: Vec<String>,
}

impl RunArgs {
    /// The arguments that these words are.
    pub fn of_words(words: Vec<String>) -> Result<Self, Failure> {
        let command = Self::augment_args(clap::Command::new("run").no_binary_name(true));
        let parsed = command.try_get_matches_from(words).and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| Failure::input(wrong::one_line(&error.render().to_string())))
    }

    pub fn is_configured(&self, option: &str) -> bool {
        self.configured.iter().any(|known| known == option)
    }

    pub fn place(&self, selection: &Selection) -> (Option<&Path>, Option<&OnRam>) {
        let is_left_out = |option| self.is_configured(option) && !selection.uses_files();
        let dir = self.dir.as_deref().filter(|_| !is_left_out("dir"));
        (dir, self.on.as_ref().filter(|_| !is_left_out("on")))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Tree(tollgate_suites::Size),
    File(u64),
}

/// `tollgate list`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("list", ""))]
pub struct ListArgs {
    /// Show only these: a suite, a benchmark or a case; `*` matches any text
    pub pattern: Vec<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate show`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("show", ""))]
pub struct ShowArgs {
    /// A file, a label (the newest run that has it), an id or its beginning, `last`, or a directory of stored
    /// runs, for the newest run in it; DIR:RUN is one run of a directory. The id of a session of several
    /// environments, or any of its runs, names the session [default: last]
    pub run: Option<String>,
    /// Show only the rows of this suite, benchmark or case; `*` matches any text. If RUN names no run, it is
    /// a pattern too, and the last run is shown
    pub pattern: Vec<String>,
    /// Show every row, with its pictures and sentences, instead of the summary
    #[arg(long)]
    pub all: bool,
    /// Show the events counted for each operation: context switches, page faults, and with a PMU cycles,
    /// instructions and misses
    #[arg(long, conflicts_with = "all")]
    pub counters: bool,
    /// How to show rows
    #[command(flatten)]
    pub rows: RowArgs,
    /// For a traced command: how to show it
    #[command(flatten)]
    pub view: trace::ViewArgs,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: ShowFormat,
}

/// How the rows of a run are shown, by `tollgate show` with a pattern or `--all`.
#[derive(Debug, Clone, Copy, Args)]
pub struct RowArgs {
    /// Sort the rows [default: as they were measured]
    #[arg(long, value_enum)]
    pub sort: Option<Sort>,
    /// The unit of latencies
    #[arg(long, value_enum, default_value_t)]
    pub unit: LatencyUnit,
    /// Show the full notes of each row at the end of its line
    #[arg(long)]
    pub notes: bool,
    /// Show tollgate's own figures: timer and loop overhead, detection limits, and warnings
    #[arg(long)]
    pub bench: bool,
    /// Width of the output in columns [default: the terminal's width; not limited if standard output is not a
    /// terminal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(30..=1000))]
    pub width: Option<u16>,
}

impl RowArgs {
    pub fn options(&self, width: Option<usize>) -> Options {
        let order = self.sort.map(|sort| match sort {
            Sort::Latency => Order::Latency,
            Sort::Name => Order::Name,
            Sort::Noise => Order::Noise,
        });
        let in_cycles = self.unit == LatencyUnit::Cycles;
        Options { width, order, in_cycles, notes: self.notes, bench: self.bench }
    }
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The slowest first
    Latency,
    /// By name
    Name,
    /// The widest interval first
    Noise,
}

/// The unit of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LatencyUnit {
    /// Nanoseconds, microseconds, milliseconds
    #[default]
    Ns,
    /// Cycles of the time-stamp counter
    Cycles,
}

/// `tollgate explain`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("explain", ""))]
pub struct ExplainArgs {
    /// A benchmark or one of its cases; a bench of a kept `versus --bench`, such as divan/ops::work; with
    /// --in also a command, as one line for the shell
    pub benchmark: String,
    /// The run to take figures from, as for `show` [default: last; if no run is kept, only this machine's
    /// facts are used]
    pub run: Option<String>,
    /// Count the instructions of one operation, or of one execution of a command, by kernel function, in this
    /// guest, such as vm:exact
    #[arg(long = "in", value_name = "ENV", value_hint = ValueHint::Other, conflicts_with = "run")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub environment: Option<String>,
    /// Write the kernel stacks of one execution of the command to this file, folded for flame graphs, or
    /// as a flame graph if its name ends in .svg
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "environment")]
    pub stacks: Option<PathBuf>,
}

/// `tollgate schedules`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("schedules", ""))]
pub struct SchedulesArgs {
    /// The name of a program, a file, or `-` for standard input: MIPS as the paper prints it, x86 on store
    /// buffers, or a litmus test [default: a table of all programs]
    pub program: Vec<String>,
    /// The number of processes that run it [default: the program's own number]
    #[arg(long, value_name = "N")]
    pub processes: Option<u8>,
    /// Each process takes and releases the lock this many times [default: the program's own number]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u8>,
    /// The processes share this many processors [default: the program's own number]
    #[arg(long, value_name = "N")]
    pub processors: Option<u8>,
    /// Do not preempt processes in user mode: each keeps its processor through the lock's code, and
    /// interrupts return to it
    #[arg(long)]
    pub no_preemption: bool,
    /// Stop, undecided, after this many states [default: 20000000]
    #[arg(long, value_name = "N", value_parser = parse_states, allow_negative_numbers = true)]
    pub max_states: Option<usize>,
    /// Play one schedule instead: A is preempted before its instruction N, from 0, and B takes the lock;
    /// `all` plays each N in turn
    #[arg(long, value_name = "N|all", value_parser = parse_preempt, requires = "program")]
    #[arg(conflicts_with_all = ["processes", "rounds", "processors", "no_preemption", "max_states"], allow_negative_numbers = true)]
    pub preempt: Option<Preempt>,
    /// Exit with status 1 if a property is violated or undecided
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOnLock>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate inspect`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("inspect", ""))]
#[command(args_conflicts_with_subcommands = true)]
pub struct InspectArgs {
    /// A question with its own answer
    #[command(subcommand)]
    pub question: Option<Question>,
    /// Show all facts, with their sources and the boundaries that they affect
    #[arg(long, conflicts_with_all = ["capture", "only", "affects"])]
    pub all: bool,
    /// Show only the facts that affect this boundary, named as in `tollgate list`: kernel-entry, page-faults
    #[arg(long, value_name = "BOUNDARY", value_parser = Boundaries, hide_possible_values = true, conflicts_with = "capture")]
    pub affects: Option<Boundary>,
    /// Show only the facts with these names or subjects: `cpu`, `mitigation.meltdown`; `*` matches any text
    #[arg(long, value_name = "NAME", conflicts_with = "capture")]
    pub only: Vec<String>,
    /// Read the facts of the file system under this directory, as --dir of `run` does [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Read another machine's captured tree instead of this machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub from: Option<PathBuf>,
    /// Copy the files that the facts are read from into this new directory, for --from
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "from")]
    pub capture: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The questions of `tollgate inspect` with their own answers.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Measure how many bits address-space randomization gives each region of a program
    ///
    /// Each start runs the program's loader, and the loader runs the constructors of the program's libraries (DT_INIT and
    /// DT_INIT_ARRAY, ld.so(8)) with your rights before the program ends at its entry point. Nothing of the program itself runs.
    /// Do not start a program whose libraries you do not trust.
    Aslr(AslrArgs),
    /// Show whether the kernel's own address is randomized, with the evidence
    Kernel(KernelArgs),
    /// Count the options of a kernel configuration, or compare several
    Config(ConfigArgs),
}

/// `tollgate inspect aslr`.
#[derive(Debug, Args)]
pub struct AslrArgs {
    /// The program to start [default: true(1), or tollgate itself]; the constructors of its libraries run
    #[arg(value_hint = ValueHint::AnyPath)]
    pub program: Option<PathBuf>,
    /// Start it this many times, at most 100000 [default: 1000]
    #[arg(long, value_name = "N", value_parser = parse_starts, allow_negative_numbers = true)]
    pub runs: Option<u32>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate inspect kernel`.
#[derive(Debug, Args)]
pub struct KernelArgs {
    /// Symbols to show instead, such as do_page_fault: their addresses now and as linked, and what this kernel calls them
    #[arg(value_name = "SYMBOL")]
    pub symbols: Vec<String>,
    /// Show how far the symbols moved since this tree was captured; its proc/kallsyms must have them
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "symbols")]
    pub since: Option<PathBuf>,
    /// Read another machine's captured tree instead of this machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub from: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate inspect config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// A configuration, plain or packed by gzip, a captured tree, or `-` for standard input [default: the running kernel's]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub config: Vec<PathBuf>,
    /// List the options of this area one by one: `entry`, `memory`, `file-systems`; can be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub area: Vec<String>,
    /// Show every option, not only those that affect latencies
    #[arg(long)]
    pub all: bool,
    /// Explain which boundaries each option affects, and how
    #[arg(long)]
    pub explain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate decode`.
#[derive(Debug, Clone, Args)]
#[command(after_help = examples::help("decode", &kinds_for_help()))]
pub struct DecodeArgs {
    /// Bytes in hexadecimal, files, or `-` for standard input, which is also the default
    pub input: Vec<String>,
    /// The kind of input [default: detected]
    #[arg(long = "as", value_name = "KIND")]
    pub kind: Option<InputKind>,
    /// The width of the tables, if the input does not show it: 32 or 64 [default: both readings]
    #[arg(long, value_name = "32|64", value_parser = parse_width)]
    pub mode: Option<Width>,
    /// Walk this entry: int:VECTOR, call:SELECTOR, sysenter, syscall, iret, sysexit or sysret; append `:32`
    /// for compatibility mode; `none` for no walk [default: the entries that the input names]
    #[arg(long, value_name = "ENTRY")]
    pub walk: Vec<Entry>,
    /// The ring that the walk starts from
    #[arg(long, value_name = "0..3", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub cpl: u8,
    /// The processor vendor, where Intel and AMD differ [default: both]
    #[arg(long, value_enum)]
    pub vendor: Option<Maker>,
    /// Treat the whole text as one machine, despite headings and prose, unless it contradicts itself
    #[arg(long)]
    pub one_machine: bool,
    /// Decode this machine's own tables, as far as it shows them; root sees more
    #[arg(long, conflicts_with_all = ["input", "kind", "mode", "one_machine"])]
    pub live: bool,
    /// Explain the bits in sentences
    #[arg(long)]
    pub explain: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate report`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("report", ""))]
pub struct ReportArgs {
    /// The runs: files, labels, ids or their beginnings, or `last`; each is compared with the first. A
    /// session means all of its runs [default: last]
    #[arg(default_value = "last", hide_default_value = true)]
    pub run: Vec<String>,
    /// The format
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Write to this file; `-` is standard output [default: tollgate-report.html in this directory; Markdown to standard output]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Open the page, as xdg-open(1) does
    #[arg(long)]
    pub open: bool,
    /// Exit with status 1 if any benchmark has this verdict, as compare does
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// One self-contained page
    #[default]
    Html,
    /// Markdown, for the summary page of a CI job
    Md,
}

/// `tollgate export`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("export", ""))]
pub struct ExportArgs {
    /// The runs: files, labels, ids or their beginnings, `last`, or directories of stored runs
    #[arg(required = true)]
    pub run: Vec<String>,
    /// The format
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Write to this file; `-` is standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "-")]
    pub out: PathBuf,
}

/// The formats of other systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Gauges for Prometheus and other collectors of its text files
    Openmetrics,
    /// Bencher Metric Format, of one run
    Bmf,
    /// For spreadsheets: one record per measurement
    Csv,
    /// For query engines: one line of JSON per metric, with facts and histogram
    Ndjson,
}

/// `tollgate store`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("store", ""))]
pub struct StoreArgs {
    /// The verb
    #[command(subcommand)]
    pub verb: StoreVerb,
}

/// The verbs for a directory of stored runs.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// List the stored runs
    List(StoreListArgs),
    /// Add existing runs
    Add(StoreAddArgs),
}

/// `tollgate store list`.
#[derive(Debug, Args)]
pub struct StoreListArgs {
    /// The directory that `run --store` writes to
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate store add`.
#[derive(Debug, Args)]
pub struct StoreAddArgs {
    /// The directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// The runs: files, labels, ids or their beginnings, or `last`
    #[arg(required = true)]
    pub run: Vec<String>,
}

/// `tollgate config`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("config", ""))]
pub struct ConfigurationArgs {
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The values that the files give.
    #[arg(skip)]
    pub read: Configuration,
}

/// `tollgate completions`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("completions", ""))]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `tollgate man`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("man", ""))]
pub struct ManArgs {
    /// Write tollgate.1 and one page per verb into this directory, which is created if it is missing
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Tables and sentences
    #[default]
    #[value(name = "text", alias = "table")]
    Table,
    /// JSON (docs/json.md)
    Json,
}

/// How the result of `run` is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum PictureFormat {
    /// Tables and sentences
    #[default]
    #[value(name = "text", alias = "table")]
    Table,
    /// JSON (docs/json.md)
    Json,
    /// A picture: latencies of one run, ratios of several with their intervals
    Svg,
}

/// How kept runs and comparisons are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ShowFormat {
    /// Tables and sentences
    #[default]
    #[value(name = "text", alias = "table")]
    Table,
    /// JSON (docs/json.md)
    Json,
    /// CSV: one line per case of one run, per system call of a traced command, or per compared case of several
    Csv,
    /// Markdown, as `report` writes it
    Md,
    /// A picture: latencies of one run, ratios of several with their intervals, times of commands
    Svg,
}

/// The verdict that makes a check of locks fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOnLock {
    /// A property is violated or undecided
    Violated,
}

/// A processor's maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Maker {
    /// By the SDM
    Intel,
    /// By the APM
    Amd,
}

impl From<Maker> for Vendor {
    fn from(maker: Maker) -> Self {
        match maker {
            Maker::Intel => Self::Intel,
            Maker::Amd => Self::Amd,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preempt {
    Before(usize),
    All,
}

pub fn command() -> clap::Command {
    groups::grouped(habits::with_json(Arguments::command()))
}

/// Parses this process's arguments, together with those of configuration files.
/// Fails if the usage or a file is wrong, or if help or version cannot be printed.
pub fn parse() -> Result<Verb, Failure> {
    let (mut command, mut words) = (command(), std::env::args_os().collect::<Vec<_>>());
    let (mut read, mut configured) = (Configuration::default(), Vec::new());
    // Errors in the words themselves are reported below.
    let typed = command.clone().ignore_errors(true).try_get_matches_from(&words).ok();
    let is_of_files = |verb: &str| command.find_subcommand(verb).is_some_and(|verb| !verb.is_hide_set());
    if let Some(typed) = typed.filter(|typed| typed.subcommand_name().is_some_and(is_of_files))
        && !typed.get_flag("no_config")
    {
        read = configuration::read(&command, typed.get_one::<PathBuf>("config_file").map(PathBuf::as_path))?;
        command = configuration::with_names(command, &read.environments);
        (words, configured) = configuration::applied(&command, &words, &read);
    }
    let parsed = command
        .try_get_matches_from_mut(words)
        .and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let error = match parsed {
        Ok((mut arguments, matches)) => {
            configuration::say_used(&command, &matches, &read.environments);
            anstream::ColorChoice::from(arguments.color).write_global();
            match &mut arguments.verb {
                Verb::Run(args) => args.configured = configured,
                Verb::Config(args) => args.read = read,
                _ => {}
            }
            return Ok(arguments.verb);
        }
        Err(error) => with_transposed(error),
    };
    match error.kind() {
        // The text is the requested result; once it is printed, all is done.
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            out::print(&error.render().ansi().to_string())?;
            Err(Failure::ClosedPipe)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(Failure::input(
            "no command given; `tollgate run` measures, `tollgate --help` lists the other commands",
        )),
        _ => Err(Failure::input(wrong::one_line(&error.render().to_string()))),
    }
}

/// clap compares letters by position (Jaro): for `rnu` it proposes `runs`. Two transposed letters come first.
fn with_transposed(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let verbs = Arguments::command();
    let is_near = |verb: &&str| strsim::osa_distance(verb, typed) == 1 && verb.len() == typed.len();
    let mut names = verbs.get_subcommands().map(clap::Command::get_name);
    if let Some(verb) = names.find(is_near) {
        let verb = ContextValue::Strings(vec![verb.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, verb);
    }
    error
}

fn parse_file_system(text: &str) -> Result<String, String> {
    if is_file_system_name(text) {
        Ok(text.to_owned())
    } else {
        Err("it is not a file system, such as ext4 or xfs, nor tmpfs or none".to_owned())
    }
}

fn parse_size(text: &str) -> Result<Size, String> {
    const MEBIBYTE: u64 = 1 << 20;
    if let Some(size) = tollgate_suites::Size::named(text) {
        return Ok(Size::Tree(size));
    }
    match size::parse_bytes(text) {
        Ok(bytes) if bytes > 0 && bytes.is_multiple_of(MEBIBYTE) => Ok(Size::File(bytes)),
        Ok(_) => Err("a file's size is a multiple of 1 MiB, such as 256M".to_owned()),
        Err(why) => Err(format!("it is neither small nor large, and {why}")),
    }
}

fn parse_address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    address.ok_or_else(|| "it is not a hexadecimal address, such as 100540".to_owned())
}

fn parse_width(text: &str) -> Result<Width, String> {
    match text {
        "32" => Ok(Width::Legacy),
        "64" => Ok(Width::Long),
        _ => Err("it is neither 32 nor 64".to_owned()),
    }
}

fn parse_cpu(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is not the number of a processor, such as 0".to_owned())
}

fn parse_machine(text: &str) -> Result<String, String> {
    const LONGEST: usize = 253;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.len() <= LONGEST && text.bytes().all(fits) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a machine's name has 1 to {LONGEST} of A-Z a-z 0-9 . _ : - and begins with a letter or digit"
        ))
    }
}

fn parse_processes(text: &str) -> Result<usize, String> {
    let most = tollgate_engine::Plan::MOST_PROCESSES;
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("it is not a number of processes, from 1 to {most}")),
    }
}

fn parse_starts(text: &str) -> Result<u32, String> {
    let most = tollgate_inspect::aslr::MOST_STARTS;
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("it is not a number of starts, from 1 to {most}")),
    }
}

fn parse_states(text: &str) -> Result<usize, String> {
    let most = tollgate_schedules::Limits::MOST_STATES;
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("it is not a number of states, from 1 to {most}")),
    }
}

fn parse_preempt(text: &str) -> Result<Preempt, String> {
    match text {
        "all" => Ok(Preempt::All),
        number => number
            .parse()
            .map(Preempt::Before)
            .map_err(|_| "it is not the number of an instruction, such as 3, or `all`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_file_system_in_memory_has_a_name() {
        for (text, whole) in [("ram", "ram:ext4"), ("ram:xfs", "ram:xfs"), ("loop:xfs", "loop:xfs")] {
            assert_eq!(text.parse::<OnRam>().map(|on| on.to_string()).as_deref(), Ok(whole));
        }
        for text in ["", "disk", "ram:", "ram:../x", "ram:-t", "ram:Ext4", "rams", "ram:aaaaaaaaaaaaaaaaa"] {
            assert!(text.parse::<OnRam>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_is_that_of_a_tree_or_of_a_file() {
        assert_eq!(parse_size("large"), Ok(Size::Tree(tollgate_suites::Size::Large)));
        assert_eq!(parse_size("256M"), Ok(Size::File(256 << 20)));
        for text in ["", "huge", "1k", "0", "1.5G", "-1M"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_number_of_states_in_the_help_is_the_one_in_the_search() {
        let command = command();
        let verb = command.find_subcommand("schedules").expect("a verb");
        let argument = verb.get_arguments().find(|argument| argument.get_id() == "max_states");
        let help = argument.and_then(|argument| argument.get_help()).expect("help").to_string();
        let usual = tollgate_schedules::Limits::default().states;
        assert!(help.ends_with(&format!("[default: {usual}]")), "{help}");
        assert_eq!(parse_states("1"), Ok(1));
        assert!(parse_states("0").is_err() && parse_states("4294967295").is_err());
    }

    #[test]
    fn a_machine_has_a_plain_name() {
        for name in ["n1", "ip-10-0-3-7.eu-central-1.compute.internal", "8f14e45fceea167a5a36dedd4bea2543"] {
            assert_eq!(parse_machine(name).as_deref(), Ok(name));
        }
        assert!(
            ["", "-n", "a b", "a/b", "=1", "n\n", &"n".repeat(254)]
                .iter()
                .all(|name| parse_machine(name).is_err())
        );
    }

    #[test]
    fn a_preemption_is_before_an_instruction_or_each() {
        assert_eq!(parse_preempt("3"), Ok(Preempt::Before(3)));
        assert_eq!(parse_preempt("all"), Ok(Preempt::All));
        assert!(["", "-1", "All", "1.5"].iter().all(|text| parse_preempt(text).is_err()));
    }

    #[test]
    fn every_argument_says_what_it_does() {
        for verb in command().get_subcommands() {
            assert!(verb.get_about().is_some(), "{}", verb.get_name());
            for argument in verb.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", verb.get_name(), argument.get_id());
            }
        }
    }

    #[test]
    fn the_message_of_wrong_usage_is_one_line() {
        let error = Arguments::try_parse_from(["tollgate", "lst"]).expect_err("no such verb");
        let line = wrong::one_line(&error.render().to_string());
        assert!(
            line.contains("'lst'") && line.contains("; did you mean 'list'?") && !line.contains("Usage"),
            "{line}"
        );
        let error = Arguments::try_parse_from(["tollgate", "run", "--label", "../x"]).expect_err("a path");
        let line = wrong::one_line(&error.render().to_string());
        assert!(line.contains("would be a path") && !line.contains('\n'), "{line}");
    }
}
