//! The arguments of `tollgate trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use tollgate_model::{Label, Traced};
use tollgate_trace::output::{self, Stage, View};

use super::Format;
use crate::{examples, time};

/// `tollgate trace`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("trace", TRACE_AFTER))]
pub struct TraceArgs {
    /// The command and its arguments, after `--`
    #[arg(required_unless_present_any = ["calibrate", "from", "pid", "cgroup"], trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
    /// Trace these running processes, with all their threads and the children that they create from now on,
    /// until they end or Ctrl-C
    #[arg(long, short, value_name = "PID,…", value_delimiter = ',', value_parser = parse_pid)]
    #[arg(conflicts_with_all = ["command", "from", "calibrate"])]
    pub pid: Vec<u32>,
    /// Trace the processes of this control group, including those that join it later, until none is left or
    /// Ctrl-C
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["command", "from", "calibrate", "pid"])]
    pub cgroup: Option<PathBuf>,
    /// With --pid or --cgroup: stop after this time; the processes keep running
    #[arg(long = "for", value_name = "TIME", value_parser = time::parse_wait)]
    #[arg(conflicts_with_all = ["command", "from", "calibrate"])]
    pub time: Option<Duration>,
    /// With --pid or --cgroup: print a summary of each interval of this length, and of the whole at the end
    #[arg(long, value_name = "TIME", value_parser = time::parse_interval)]
    #[arg(conflicts_with_all = ["command", "from", "calibrate"])]
    pub every: Option<Duration>,
    /// Run the command on its own terminal, type the keys in this file, as `script --log-in FILE` records
    /// them, and show the delay of each: from read(2) of the key to write(2), and to the screen. The last
    /// keys should end the command
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "command")]
    #[arg(conflicts_with_all = ["from", "calibrate", "pid", "cgroup", "time", "every", "top", "by", "tree", "histogram", "rule", "all", "only"])]
    #[arg(conflicts_with_all = ["blocked", "stacks", "timeline", "label", "out"])]
    pub keys: Option<PathBuf>,
    /// With --keys: the shortest time between two keys; each key waits for the answer to the one before
    /// [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = time::parse_wait, requires = "keys")]
    pub pace: Option<Duration>,
    /// How to show it
    #[command(flatten)]
    pub view: ViewArgs,
    /// Show every row
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Trace these system calls only, by name, separated by commas
    #[arg(long, value_name = "CALL,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How to trace
    #[arg(long, value_enum, default_value_t)]
    pub backend: Follow,
    /// Read a log of `strace -f -T -tt -o FILE`, or its table (`strace -c`), instead of running a command; `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["command", "backend", "linger", "calibrate"])]
    pub from: Option<PathBuf>,
    /// Show what woke sleeping threads (a thread, a timer or a device), and in which kernel function they
    /// slept
    #[arg(long, conflicts_with = "from")]
    pub blocked: bool,
    /// Write the stacks of sleeping threads to this file, folded for flame graphs, with the microseconds that
    /// they slept; as a flame graph if its name ends in .svg
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "from")]
    pub stacks: Option<PathBuf>,
    /// Write single calls to this file as Chrome trace JSON, for a timeline viewer
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub timeline: Option<PathBuf>,
    /// After the command ends, wait this long for processes that it left [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = time::parse_wait, allow_negative_numbers = true)]
    pub linger: Option<Duration>,
    /// Measure how much time each backend adds to a call here; with a command, measure before it runs
    #[arg(long)]
    pub calibrate: bool,
    /// Keep the run under this label, by which show and compare find it; without it nothing is kept
    #[arg(long, value_name = "LABEL")]
    pub label: Option<Label>,
    /// Write the run to this file instead of keeping it among the others
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// How to print: text on standard error, or one line of JSON on standard output after the command's own output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print only errors on standard error
    #[arg(long, short)]
    pub quiet: bool,
}

fn parse_pid(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "it is not the number of a process".to_owned())
}

impl TraceArgs {
    pub fn view_of(&self, traced: &Traced) -> View {
        let view = View { stage: Stage::Traced, ..self.view.of(traced) };
        if self.all { view.with_all_rows() } else { view }
    }
}

/// How a traced command is shown, by `tollgate trace` and by `tollgate show`.
#[derive(Debug, Clone, Copy, Args)]
pub struct ViewArgs {
    /// Show at most this many rows of each kind [default: 10, and 4 blocking calls]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Sum the time of a traced command by system call, by process, or by file [default: by call; for a kept
    /// run, as it was kept]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,
    /// Show the processes of a traced command as a tree
    #[arg(long)]
    pub tree: bool,
    /// Draw a histogram of the latencies of a traced command's calls
    #[arg(long)]
    pub histogram: bool,
    /// Compare the measured waiting with the published rule of 2017, real - (user + sys) / cores
    #[arg(long)]
    pub rule: bool,
}

impl ViewArgs {
    pub fn of(&self, traced: &Traced) -> View {
        let by = match self.by {
            Some(By::Call) => output::By::Call,
            Some(By::Process) => output::By::Process,
            Some(By::File) => output::By::File,
            None if traced.files.is_empty() => output::By::Call,
            None => output::By::File,
        };
        let tree = self.tree || (self.by.is_none() && !traced.tree.is_empty());
        // With these, the whole fits on a usual terminal.
        let (top, blocking) = self.top.map_or((10, 4), |top| (top, top));
        View { top, blocking, by, tree, histogram: self.histogram, rule: self.rule, stage: Stage::Kept }
    }
}

const TRACE_AFTER: &str = "\
Exit status: the command's own; 126 if it cannot be executed, 127 if it is not found, 2 wrong usage; 0 if a log was read, or if running processes were traced. A command that is killed by a \
signal ends tollgate by the same signal.";

/// By what the time of a traced command is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// By system call
    Call,
    /// By process
    Process,
    /// By file
    File,
}

/// The backend that traces a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Follow {
    /// The best backend available
    #[default]
    Auto,
    /// BPF programs at the kernel's tracepoints; needs CAP_BPF and CAP_PERFMON, or root
    Bpf,
    /// ptrace(2)
    Ptrace,
}
