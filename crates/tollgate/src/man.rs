//! `tollgate man`: manual pages from the argument definitions.

use std::path::Path;

use clap_mangen::Man;

use crate::args::{ManArgs, command};
use crate::failure::{Failure, plainly};
use crate::out;
use crate::writing::{self, Existing};

/// Prints the main page, or writes one page for the program and one a verb.
///
/// # Errors
/// When they cannot be written.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    match &args.dir {
        None => out::print_raw(&page(command())?),
        Some(directory) => write_all(directory),
    }
}

fn write_all(directory: &Path) -> Result<(), Failure> {
    let mut main = command();
    // Building gives the verbs the names that their pages have: tollgate-run(1) is of `tollgate run`.
    main.build();
    let verbs: Vec<clap::Command> = main.get_subcommands().cloned().collect();
    for command in std::iter::once(main).chain(verbs) {
        let file = directory.join(Man::new(command.clone()).get_filename());
        writing::write_whole(&file, &page(command)?, Existing::Replace).map_err(|error| {
            Failure::input(format!("{} cannot be written: {}", file.display(), plainly(&error)))
        })?;
    }
    Ok(())
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let rendered = Man::new(command).render(&mut page);
    rendered
        .map_err(|error| Failure::input(format!("the manual page cannot be made: {}", plainly(&error))))?;
    Ok(page)
}
