//! Options of other programs' users: `--json`, which clap cannot make an alias of `--format json`, and `--color`.

use clap::builder::ArgPredicate;
use clap::{Arg, ArgAction, Command, ValueEnum};

const FORMAT: &str = "format";
const JSON: &str = "json";

/// When output has colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, as NO_COLOR and CLICOLOR_FORCE have it.
    #[default]
    Auto,
    /// Also into a file or a pipe.
    Always,
    /// Nowhere.
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

pub fn with_json(command: Command) -> Command {
    let mut command = command.mut_subcommands(with_json);
    let Some(format) = command.get_arguments().find(|option| option.get_id() == FORMAT) else {
        return command;
    };
    if !format.get_possible_values().iter().any(|value| value.matches(JSON, false)) {
        return command;
    }
    let refused =
        |option: &&Arg| command.get_arg_conflicts_with(option).iter().any(|other| other.get_id() == FORMAT);
    let refused: Vec<_> =
        command.get_arguments().filter(refused).map(|option| option.get_id().clone()).collect();
    let json = Arg::new(JSON)
        .long(JSON)
        .action(ArgAction::SetTrue)
        .help("Print JSON: --format json")
        .help_heading(None::<&str>)
        .display_order(999)
        .conflicts_with(FORMAT)
        .conflicts_with_all(refused);
    let asked = ArgPredicate::Equals("true".into());
    command = command.mut_arg(FORMAT, |format| format.default_value_if(JSON, asked, JSON));
    command.arg(json)
}
