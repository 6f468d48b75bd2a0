//! The arguments of `tollgate versus`. Those that hyperfine has too have its names, short forms and meaning.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use tollgate_model::Label;
use tollgate_model::stats::FEWEST_LAYOUTS;
use tollgate_model::versus::MOST_LAYOUTS;
use tollgate_os::calls;
use tollgate_view::versus::hyperfine;
use tollgate_view::versus::more::{Budget, QUANTITIES};

use super::compare::{FailOn, UndecidedArgs, parse_threshold};
use super::{ShowFormat, parse_cpu};
use crate::{examples, time};

const AFTER: &str = "\
Each COMMAND is one line for the shell, so quote it. Each round executes every command once, in random order. docs/versus.md describes the method and the differences from hyperfine.";

/// `tollgate versus`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = examples::help("versus", AFTER))]
pub struct VersusArgs {
    /// The commands; each is compared with the first. With --bench: builds, OLD NEW, and patterns of benches
    #[arg(value_name = "COMMAND", required_unless_present_all = ["rev", "bench"], value_hint = ValueHint::CommandString)]
    pub commands: Vec<String>,
    /// Execute the commands in this environment, as for `run --in`; several alternate. NAME=ENV names it NAME
    #[arg(long = "in", value_name = "ENV", value_hint = ValueHint::Other, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub environments: Vec<String>,
    /// Execute them with each kernel under this directory of unpacked packages, in the guest that --in names,
    /// as `run --kernels` does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "environments", conflicts_with = "bench")]
    pub kernels: Option<PathBuf>,
    /// Revisions of a repository
    #[command(flatten)]
    pub revisions: RevisionArgs,
    /// Builds of benches
    #[command(flatten)]
    pub bench: BenchArgs,
    /// How long, how often
    #[command(flatten)]
    pub length: LengthArgs,
    /// Commands executed around the commands
    #[command(flatten)]
    pub around: AroundArgs,
    /// Parameters and names
    #[command(flatten)]
    pub parameters: ParameterArgs,
    /// Streams, processors and the page cache
    #[command(flatten)]
    pub conditions: ConditionArgs,
    /// The use of the result
    #[command(flatten)]
    pub result: ResultArgs,
}

/// Revisions of a repository as sides.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Revisions")]
pub struct RevisionArgs {
    /// Compare the command in this revision of the git repository here, built at a path of its own, with the
    /// next --rev, or with the working tree if there is one; {dir} in the command is the directory of a build
    #[arg(long, value_name = "REV", value_parser = clap::builder::NonEmptyStringValueParser::new(), value_hint = ValueHint::Other)]
    #[arg(group = "sources", conflicts_with_all = ["parameter_scan", "parameter_list", "reference", "control"])]
    pub rev: Vec<String>,
    /// Find the first commit after GOOD, up to BAD, that changed the command: by its counts in a guest, or by its
    /// time where they are the same or there is no guest
    #[arg(long, num_args = 2, value_names = ["GOOD", "BAD"], value_parser = clap::builder::NonEmptyStringValueParser::new(), value_hint = ValueHint::Other)]
    #[arg(group = "sources", conflicts_with_all = ["parameter_scan", "parameter_list", "reference", "bench", "environments", "counts", "fail_on", "budget", "label", "out"])]
    #[arg(conflicts_with_all = ["export_json", "export_csv", "export_markdown", "stacks", "by", "runs"])]
    pub bisect: Vec<String>,
    /// Append each judged commit to this file, as `git bisect log` does, and begin with what it says
    #[arg(long, value_name = "FILE", requires = "bisect", value_hint = ValueHint::FilePath)]
    pub bisect_log: Option<PathBuf>,
    /// Build a revision by CMD [default: cargo build --release, or go build -o bin/ ./...]
    #[arg(long, value_name = "CMD", requires = "sources", value_hint = ValueHint::CommandString)]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub build: Option<String>,
    /// Link the programs of each side N times with their functions in another order, and compare across these layouts; 1 or 6 to 64
    /// [default: 8 with Cargo or Go, else 1; more if 8 do not decide]. {layout} in --build is the seed of a layout
    #[arg(long, value_name = "N", requires = "sources", value_parser = parse_layouts)]
    pub layouts: Option<usize>,
}

fn parse_layouts(text: &str) -> Result<usize, String> {
    let number =
        text.parse().ok().filter(|number| *number == 1 || (FEWEST_LAYOUTS..=MOST_LAYOUTS).contains(number));
    number.ok_or_else(|| format!("it is neither 1 nor a number from {FEWEST_LAYOUTS} to {MOST_LAYOUTS}"))
}

/// Builds of benches in the place of commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Benches")]
pub struct BenchArgs {
    /// Compare builds bench by bench: the first two arguments and any later paths of files are builds; the
    /// others are patterns, each a part of a bench's name, or with `*` the whole name
    #[arg(long)]
    #[arg(conflicts_with_all = ["setup", "prepare", "conclude", "cleanup", "shell", "no_shell", "ignore_failure"])]
    #[arg(conflicts_with_all = ["parameter_scan", "parameter_list", "reference", "input", "output", "show_output", "cold"])]
    #[arg(conflicts_with_all = ["export_json", "export_csv", "export_markdown", "time_unit"])]
    pub bench: bool,
    /// A build of the base's code at other addresses, which is compared too; changes no larger than the
    /// control's are noted
    #[arg(long, value_name = "BUILD", requires = "bench", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// Benchmark harness [default: detected from the binaries]
    #[arg(long, value_name = "NAME", value_enum, requires = "bench")]
    pub harness: Option<HarnessName>,
    /// Describe another harness: CMD prints the name of one bench per line; {binary} stands for the build
    #[arg(long, value_name = "CMD", requires_all = ["bench", "one"], conflicts_with = "harness", value_hint = ValueHint::CommandString)]
    pub list: Option<String>,
    /// CMD executes one bench, {bench} of {binary}, without a shell, for some ten milliseconds or for
    /// {iterations} iterations
    #[arg(long, value_name = "CMD", requires = "list", value_hint = ValueHint::CommandString)]
    pub one: Option<String>,
    /// The line that --one prints, with {ns}, {us}, {ms} or {s} in place of the figure; several such lines
    /// give their median
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
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "How long")]
pub struct LengthArgs {
    /// Start no round after this time, from 1s to 24h; a bare number is seconds [default: 30s; with --bench
    /// at least 4s per bench]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_time, allow_negative_numbers = true)]
    pub time: Option<Duration>,
    /// Stop when the interval of every ratio is narrower than this
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, default_value = "1%", allow_negative_numbers = true)]
    pub precision: f64,
    /// Keep running until every comparison is decided or the time runs out; exit with status 3 if one stays
    /// inconclusive
    #[arg(long)]
    pub until_decided: bool,
    /// Execute each command this many times before timing starts
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// Time each command exactly this many times
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(conflicts_with_all = ["min_runs", "max_runs", "time", "until_decided"])]
    pub runs: Option<u32>,
    /// Time each command at least this many times [default: 10; 1 with --time]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub min_runs: Option<u32>,
    /// Time each command at most this many times
    #[arg(short = 'M', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_runs: Option<u32>,
    /// End an execution that takes longer than this, and with it the comparison [default: 20 times the
    /// slowest so far plus 30s; the first has no limit]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_wait, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
}

/// Commands executed around the commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Around the commands")]
pub struct AroundArgs {
    /// Execute CMD once before all executions of a command
    #[arg(short, long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub setup: Option<String>,
    /// Execute CMD before each execution; give it once for all commands, or once per command
    #[arg(short, long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub prepare: Vec<String>,
    /// Execute CMD after each execution; give it once for all commands, or once per command
    #[arg(short = 'C', long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub conclude: Vec<String>,
    /// Execute CMD once after all executions of a command, however they ended
    #[arg(short, long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    pub cleanup: Option<String>,
    /// The shell: a name or path, optionally with options, `default`, or `none`
    #[arg(short = 'S', long, value_name = "SHELL", value_hint = ValueHint::CommandName, default_value = "default")]
    pub shell: String,
    /// Execute commands without a shell; same as --shell none
    #[arg(short = 'N', conflicts_with = "shell")]
    pub no_shell: bool,
    /// Accept exit statuses other than 0, and signals: all of them, or those in a list
    #[arg(short, long, value_name = "STATUS,…", num_args = 0..=1, require_equals = true, default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<String>,
}

/// Parameters in commands, and names.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Parameters and names")]
pub struct ParameterArgs {
    /// Execute each command with every value of {VAR} from MIN to MAX
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_hyphen_values = true)]
    #[arg(conflicts_with = "parameter_list")]
    pub parameter_scan: Vec<String>,
    /// The step of --parameter-scan [default: 1]
    #[arg(short = 'D', long, value_name = "DELTA", requires = "parameter_scan", allow_hyphen_values = true)]
    pub parameter_step_size: Option<String>,
    /// Execute each command with {VAR} replaced by each of VALUES, separated by commas
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"], action = clap::ArgAction::Append)]
    #[arg(allow_hyphen_values = true)]
    pub parameter_list: Vec<String>,
    /// The name of a command; repeat it in the order of the commands
    #[arg(short = 'n', long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub command_name: Vec<String>,
    /// Compare all commands with this one
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString)]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub reference: Option<String>,
    /// The name of the reference command
    #[arg(long, value_name = "NAME", requires = "reference")]
    pub reference_name: Option<String>,
}

/// The conditions that commands are executed under.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Conditions")]
pub struct ConditionArgs {
    /// Standard input: `null`, or a file that is opened anew for each execution
    #[arg(long, value_name = "WHERE", default_value = "null", value_hint = ValueHint::FilePath)]
    pub input: String,
    /// Standard output: `null`, `pipe` (read and discarded), `inherit`, or a file; give it once for all
    /// commands, or once per command
    #[arg(long, value_name = "WHERE", default_value = "null", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "show_output")]
    pub output: Vec<String>,
    /// Show the output of the commands; same as --output inherit
    #[arg(long)]
    pub show_output: bool,
    /// Before each execution, drop the files that the command reads from the page cache
    #[arg(long)]
    pub cold: bool,
    /// Copy this file or directory, with everything under it, into a guest that counts instructions
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub with: Vec<PathBuf>,
    /// Execute the commands on this processor; separate several by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = parse_cpu, allow_negative_numbers = true)]
    pub processor: Vec<usize>,
    /// Execute the commands in this control group, an existing directory under /sys/fs/cgroup
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<PathBuf>,
    /// Do not trace; by default further executions are traced, in separate rounds
    #[arg(long)]
    pub no_trace: bool,
}

/// The use of the result.
#[derive(Debug, Clone, Default, Args)]
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
    /// Write the results as hyperfine's CSV to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub export_csv: Option<PathBuf>,
    /// Write the results as hyperfine's Markdown to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub export_markdown: Option<PathBuf>,
    /// The unit of times in Markdown [default: that of the first command]
    #[arg(short = 'u', long, value_name = "UNIT", value_enum)]
    pub time_unit: Option<Unit>,
    /// Exit with status 1 if any command has this verdict, 3 if that is undecided
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Exit with status 1 if each execution of a command (of several, not of the base) has more than N of
    /// this: `calls`, `faults`, a call by its name such as `openat`, and in guests that count instructions `user`
    /// or `kernel`; separate several by commas
    #[arg(long, value_name = "COUNT=N", value_parser = parse_budget, value_delimiter = ',', conflicts_with = "bench")]
    pub budget: Vec<Budget>,
    /// The status of an undecided comparison
    #[command(flatten)]
    pub undecided: UndecidedArgs,
    /// Ignore smaller differences [default: 1%; 0.2% for counted instructions]
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// The time that --fail-on, --precision and --until-decided use [default: real]; with guests that count
    /// instructions, `function` shows one execution by function
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,
    /// Also count the instructions of the commands, in a guest, and say what counts and times mean together
    #[arg(long)]
    pub counts: bool,
    /// With guests that count instructions: write the kernel stacks of one execution to this file, folded for
    /// flame graphs, with the instructions in each; as flame graphs if its name ends in .svg, those of other
    /// commands compared with the first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "bench")]
    pub stacks: Option<PathBuf>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: ShowFormat,
    /// Show every call and every note
    #[arg(long)]
    pub all: bool,
    /// Print no progress bar and no notes
    #[arg(short, long)]
    pub quiet: bool,
}

/// The quantity that commands are compared by, or the division of counted instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The time that passes
    Real,
    /// The processor time of their processes, without waiting and without the time of other tasks
    Cpu,
    /// Functions of the kernel and the program, in guests that count instructions
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

fn parse_budget(text: &str) -> Result<Budget, String> {
    const FORM: &str = "it is not a count and its greatest number, such as calls=400 or openat=20";
    let (of, most) = text.split_once('=').ok_or(FORM)?;
    if QUANTITIES.iter().all(|(name, _)| *name != of) && calls::number(of).is_none() {
        let near = calls::near(of).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return Err(format!("{of:?} is none of calls, faults, user and kernel, and no system call{near}"));
    }
    Ok(Budget { of: of.to_owned(), most: most.parse().map_err(|_| FORM)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_names_a_count_and_its_greatest_number() {
        let budget = |of: &str, most| Ok(Budget { of: of.to_owned(), most });
        assert_eq!(parse_budget("calls=400"), budget("calls", 400));
        assert_eq!(parse_budget("openat=0"), budget("openat", 0));
        for (text, why) in [
            ("calls", "such as calls=400"),
            ("calls=", "such as calls=400"),
            ("calls=-1", "such as calls=400"),
            ("calls=4e2", "such as calls=400"),
            ("opneat=1", "no system call; did you mean openat?"),
            ("=1", "\"\" is none of calls"),
        ] {
            let said = parse_budget(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
