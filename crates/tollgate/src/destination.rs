//! The destination of a new run: standard output, or a [`tollgate_store::Destination`].

use std::path::{Path, PathBuf};

use tollgate_model::Run;
use tollgate_store::writing::Until;

use crate::failure::{Failure, plainly};
use crate::out::{self, Form};
use crate::say;

pub const STANDARD_OUTPUT: &str = "-";

#[derive(Debug)]
pub enum Destination {
    /// Standard output, instead of the table: for containers and sandboxes whose files are not visible outside.
    Output,
    Store(tollgate_store::Destination),
}

impl Destination {
    /// # Errors
    /// When a file or directory that the user named cannot be written to.
    pub fn choose(out: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = out else { return Ok(Self::Store(tollgate_store::Destination::usual()?)) };
        if file == Path::new(STANDARD_OUTPUT) {
            if out::is_closed() {
                return Err(Failure::input("--out -: standard output is closed"));
            }
            return Ok(Self::Output);
        }
        let chosen = tollgate_store::Destination::file(file);
        chosen.map(Self::Store).map_err(|why| Failure::input(format!("--out {}: {why}", file.display())))
    }

    /// Fails if the directory cannot be written to.
    pub fn stored(directory: &Path) -> Result<Self, Failure> {
        Ok(Self::Store(tollgate_store::Destination::stored(directory)?))
    }

    /// For the runs of several environments: a directory with a file for each, or the directory of kept runs.
    /// Fails if a directory that the user named cannot be written to.
    pub fn of_session(out: Option<&Path>) -> Result<Self, Failure> {
        let Some(directory) = out else { return Self::choose(None) };
        if directory == Path::new(STANDARD_OUTPUT) {
            return Err(Failure::input(
                "--out -: several environments are several runs; name a directory, or print all with --format json",
            ));
        }
        let chosen = tollgate_store::Destination::directory(directory).map_err(|error| {
            let (directory, why) = (directory.display(), plainly(&error));
            Failure::input(format!(
                "--out {directory}: {why}; with several environments it must be a directory"
            ))
        });
        chosen.map(Self::Store)
    }

    /// Keeps a run and returns its path, if it has one. On failure nothing of it is left.
    pub fn keep(&self, run: &Run, until: Until) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Store(store) => Ok(store.keep(run, until)?),
            Self::Output => {
                let document = run.to_json().map_err(|error| Failure::input(format!("the run {error}")))?;
                let printed = out::print_document(&document, Form::Json);
                printed.map(|()| None).map_err(|failure| keep_unprinted(run, failure))
            }
        }
    }

    /// Warns that a run will not be kept, if the user named no file for it.
    pub fn say_doubt(&self) {
        if let Self::Store(tollgate_store::Destination::Nowhere(why)) = self {
            say::say(&format!(
                "warning: this run will not be kept: {why}; name a file with --out to keep it"
            ));
        }
    }
}

/// A run that could not be printed is kept as usual, since measuring may have taken long.
fn keep_unprinted(run: &Run, failure: Failure) -> Failure {
    let why = match failure {
        Failure::ClosedPipe => "standard output was closed before the run was printed".to_owned(),
        Failure::Input(why) => why,
        other => return other,
    };
    match Destination::choose(None).and_then(|usual| usual.keep(run, Until::Durable)) {
        Ok(Some(path)) => Failure::input(format!("{why}; the run is kept in {}", path.display())),
        Ok(None) => Failure::NotKept(format!("{why}, and the run was not kept: it is lost")),
        Err(Failure::Input(also) | Failure::NotKept(also)) => Failure::NotKept(format!("{why}; {also}")),
        Err(other) => other,
    }
}

/// Names the file that keeps the run, if standard output was closed. Fails if the run is neither kept nor shown.
pub fn expect_seen(shown: Result<(), Failure>, kept: Option<&Path>) -> Result<(), Failure> {
    match (shown, kept) {
        (Ok(()), _) if !out::is_closed() => Ok(()),
        (Ok(()) | Err(Failure::ClosedPipe), Some(kept)) => {
            say::say(&format!("standard output is closed; the run is kept in {}", kept.display()));
            Ok(())
        }
        (Ok(()) | Err(Failure::ClosedPipe), None) => {
            Err(Failure::input("standard output is closed, and the run is not kept: it is lost"))
        }
        (failed, _) => failed,
    }
}
