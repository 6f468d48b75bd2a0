//! The arguments of `tollgate run` for environments, and those of the verbs `environments` and `agent`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use tollgate_environments::OnRam;
use tollgate_model::run::Switched;

use super::Format;
use super::compare::{FailOn, Quantity, UndecidedArgs, parse_threshold};
use crate::examples;

fn in_these() -> String {
    let forms = tollgate_environments::forms("or");
    format!(
        "Measure in this environment: {forms}; docs/environments.md lists their keys. Several environments take turns on one processor and are compared with the first"
    )
}

/// In which environments `tollgate run` measures.
#[derive(Debug, Default, Args)]
pub struct SessionArgs {
    // The kinds are those of the registry.
    #[arg(long = "in", value_name = "ENV", value_hint = ValueHint::Other, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    #[arg(help = in_these())]
    pub environments: Vec<String>,
    /// Measure each kernel under this directory of unpacked packages, in the guest that `--in` names, such as
    /// vm:exact; each environment is called by its kernel's release
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "environments", conflicts_with_all = ["explain", "knob"])]
    pub kernels: Option<PathBuf>,
    /// Count the instructions of one operation of this benchmark by kernel function, as `tollgate explain
    /// BENCHMARK --in ENV` does; no run is kept
    #[arg(long, value_name = "BENCHMARK", requires = "environments", conflicts_with_all = ["pattern", "knob"])]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub explain: Option<String>,
    /// Alternate between the present value of this setting, a file in /proc/sys or /sys, and VALUE. The
    /// setting is restored however the run ends
    #[arg(long, value_name = "PATH=VALUE", value_hint = ValueHint::AnyPath)]
    pub knob: Option<String>,
    #[command(flatten)]
    pub switches: Switches,
    /// With several environments: exit with status 1 if any benchmark has this verdict, 3 if that is
    /// undecided
    #[arg(long, value_name = "VERDICT", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// The time that --fail-on uses for workloads
    #[arg(long, value_name = "TIME", value_enum, default_value_t)]
    pub by: Quantity,
    /// The status of an undecided comparison
    #[command(flatten)]
    pub undecided: UndecidedArgs,
    /// With several environments: ignore smaller differences [default: 1%; 0% for counted instructions]
    #[arg(long, value_name = "PERCENT", value_parser = parse_threshold, allow_negative_numbers = true)]
    pub threshold: Option<f64>,
}

/// States of the machine, each by two commands and a name.
#[derive(Debug, Default)]
pub struct Switches(pub Vec<Switched>);

const SWITCH: &str = "switch";

impl Args for Switches {
    fn augment_args(command: Command) -> Command {
        let help = "Alternate between two states of the machine that the commands ON and OFF set; sh executes them with your rights. \
                    OFF is executed however the run ends. Several switches are compared one by one and together";
        command.arg(
            Arg::new(SWITCH)
                .long(SWITCH)
                .value_names(["ON", "OFF", "NAME"])
                .num_args(2..=3)
                .action(ArgAction::Append)
                .conflicts_with_all(["knob", "kernels", "explain"])
                .help(help),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Switches {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = matches.get_occurrences::<String>(SWITCH).into_iter().flatten();
        let given = given.map(|words| words.cloned().collect::<Vec<String>>());
        let switched = |words: Vec<String>| {
            let (on, off) = (words.first()?.clone(), words.get(1)?.clone());
            Some(Switched { name: words.get(2).unwrap_or(&on).clone(), on, off })
        };
        Ok(Self(given.filter_map(switched).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `tollgate environments`.
#[derive(Debug, Args)]
#[command(after_help = examples::help("environments", ""))]
pub struct EnvironmentsArgs {
    /// Start each working environment three times, and show the time to its first answer and the size of the
    /// package or file that makes it. This takes seconds, or a minute for a guest without KVM
    #[arg(long)]
    pub time: bool,
    /// How to print the result
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tollgate agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Take the settings of this environment of the kind host before serving
    #[arg(long = "as", value_name = "ENV")]
    pub spec: Option<String>,
    /// Measure files in a private directory under this one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "on")]
    pub dir: Option<PathBuf>,
    /// Measure files on a fresh file system in memory, made before serving
    #[arg(long, value_name = "ram|brd|loop[:FS]")]
    pub on: Option<OnRam>,
}
