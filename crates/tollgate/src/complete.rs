//! `tollgate completions`: from the argument definitions.

use crate::args::{CompletionsArgs, command};
use crate::failure::Failure;
use crate::out;

/// Prints the completions of one shell.
///
/// # Errors
/// When they cannot be printed.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "tollgate", &mut script);
    out::print_raw(&script)
}
