//! `tollgate man`: manual pages from the argument definitions.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;
use rustix::fs::Mode;
use tollgate_os::paths::Directory;
use tollgate_store::writing::{self, Existing, Until};

use crate::args::{ManArgs, command};
use crate::failure::{Failure, plainly};
use crate::{examples, out};

impl ManArgs {
    pub fn execute(&self) -> Result<(), Failure> {
        match &self.dir {
            None => out::print_raw(&page("tollgate", built())?),
            Some(directory) => write_all(directory),
        }
    }
}

/// Each page goes into the directory as it was found, even if its path has changed since.
fn write_all(path: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, what: &str, error: io::Error| {
        Failure::input(format!("{} cannot be {what}: {}", path.display(), plainly(&error)))
    };
    let directory = Directory::create(path, Mode::from_raw_mode(0o777))
        .map_err(|error| failed(path, "made", error.into()))?;
    let main = built();
    let verbs = main.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = verbs.map(|verb| (verb.get_name().to_owned(), verb.clone()));
    for (verb, command) in verbs.chain([("tollgate".to_owned(), main.clone())]) {
        let (name, page) = (Man::new(command.clone()).get_filename(), page(&verb, command)?);
        let (name, until) = (OsStr::new(&name), Until::Durable);
        writing::write_in(&directory, name, &page, Existing::Replace, until, writing::SHARED)
            .map_err(|error| failed(&path.join(name), "written", error))?;
    }
    Ok(())
}

/// Building gives the verbs the names of their pages, tollgate-run(1) for `tollgate run`, and adds the verb `help`, which has no
/// page.
fn built() -> Command {
    fn without_help(command: Command) -> Command {
        let command = command.mut_subcommands(without_help);
        if command.get_name() == "help" { command.hide(true) } else { command }
    }
    let mut main = command();
    main.build();
    without_help(main)
}

fn page(verb: &str, command: Command) -> Result<Vec<u8>, Failure> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut page = Vec::new();
    // Its text would be filled like a paragraph; the sections below keep its lines.
    let rendered = Man::new(command.after_help(Resettable::Reset)).render(&mut page);
    rendered
        .map_err(|error| Failure::input(format!("the manual page cannot be made: {}", plainly(&error))))?;
    page.extend(sections(verb, &after).into_bytes());
    Ok(page)
}

fn sections(verb: &str, after: &str) -> String {
    let mut text = ".SH EXAMPLES\n".to_owned();
    for (line, purpose) in examples::of(verb) {
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{}.\n", escaped(line), escaped(purpose)));
    }
    if let Some((_, notes)) = after.split_once("\n\n") {
        text.push_str(".SH NOTES\n");
        for line in notes.lines() {
            let request = if line.starts_with(' ') { ".br" } else { ".PP" };
            text.push_str(&format!("{request}\n{}\n", escaped(line)));
        }
    }
    text
}

/// A line of text in roff(7), in which a backslash is an escape and `-` a hyphen.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
