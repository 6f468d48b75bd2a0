//! Where files are measured: under the directory that the user named or the current one, or on a file system in
//! memory. It is made before anything is measured and gone when this is dropped.

use std::path::Path;

use tollgate_engine::Selection;
use tollgate_engine::{Storage, interrupt};
use tollgate_environments::{Memory, PlaceError, Private, RamDisk};
use tollgate_inspect::Machine;
use tollgate_model::Fact;

use crate::args::{OnRam, RunArgs};
use crate::failure::Failure;

/// Where files are measured, or why they are not.
#[derive(Debug)]
pub enum Place {
    /// A private directory under one that was there.
    Directory {
        /// In the bench's words.
        storage: Storage,
        /// Removed when it is dropped.
        _private: Private,
    },
    /// A file system in memory.
    Memory {
        /// In the bench's words.
        storage: Storage,
        /// Gone when it is dropped.
        disk: RamDisk,
    },
    /// There is none, for this reason; what measures no files does without.
    Nowhere(String),
}

impl Place {
    /// Makes the place that the arguments ask for, where files are to be measured.
    ///
    /// # Errors
    /// A place that the user named and that cannot be used; a place that was named for nothing.
    pub fn choose(selection: &Selection, args: &RunArgs) -> Result<Self, Failure> {
        if !selection.cases().any(|case| Storage::is_used_by(&case.benchmark)) {
            return match (&args.dir, &args.on) {
                (None, None) => Ok(Self::Nowhere("no files are measured".to_owned())),
                (Some(_), _) => Err(unneeded("--dir")),
                (None, Some(_)) => Err(unneeded("--on")),
            };
        }
        // What a killed run left in the open, wherever this one measures.
        tollgate_environments::clean();
        match (&args.dir, &args.on) {
            (_, Some(OnRam(file_system))) => on_ram(file_system),
            (Some(directory), None) => {
                beneath(directory).map_err(|error| Failure::input(format!("--dir: {error}")))
            }
            (None, None) => {
                Ok(beneath(Path::new(".")).unwrap_or_else(|error| Self::Nowhere(unusable(&error))))
            }
        }
    }

    /// In the bench's words.
    pub fn storage(&self) -> Result<Storage, String> {
        match self {
            Self::Directory { storage, .. } | Self::Memory { storage, .. } => Ok(storage.clone()),
            Self::Nowhere(why) => Err(why.clone()),
        }
    }

    /// What is known of it: read before it is gone.
    pub fn facts(&self) -> Vec<(String, Fact)> {
        let facts = |directory: &Path| tollgate_inspect::storage(&Machine::here(), directory);
        match self {
            // The one that was there before: its name says more than that of a directory that is gone.
            Self::Directory { storage, .. } => {
                let directory = storage.directory.path();
                match storage.directory.enter() {
                    Ok(_access) => facts(directory.parent().unwrap_or(directory)),
                    Err(_) => Vec::new(),
                }
            }
            Self::Memory { storage, disk } => {
                facts(storage.directory.path()).into_iter().chain(disk.facts()).collect()
            }
            Self::Nowhere(_) => Vec::new(),
        }
    }
}

fn unneeded(option: &str) -> Failure {
    Failure::input(format!(
        "{option} says where files are measured, and no case of the suite files or workloads is chosen"
    ))
}

fn beneath(directory: &Path) -> Result<Place, PlaceError> {
    let private = Private::make(directory)?;
    let (limits, by) = private.room()?;
    let storage = Storage { directory: private.workdir().clone(), limits, by };
    Ok(Place::Directory { storage, _private: private })
}

/// Why files are skipped where nobody named a directory.
fn unusable(error: &PlaceError) -> String {
    let what = error.to_string();
    if matches!(error, PlaceError::Unsafe(_)) {
        return what;
    }
    // The current directory is named by a dot.
    let what = what.strip_prefix(". ").map_or(what.clone(), |rest| format!("the current directory {rest}"));
    format!("{what}; name another with --dir")
}

fn on_ram(file_system: &str) -> Result<Place, Failure> {
    let memory = tollgate_inspect::allowance(&Machine::here()).memory;
    let memory = memory.map_or(Memory { available: 0, by: "nothing says how much".to_owned() }, |limit| {
        Memory { available: limit.amount, by: limit.source }
    });
    let disk = RamDisk::make(file_system, &memory, &|| interrupt::requested().is_some());
    let disk = disk.map_err(|error| match (error, interrupt::requested()) {
        (PlaceError::Interrupted, Some(signal)) => Failure::Interrupted(signal),
        (error @ PlaceError::NeedsRoot(_), _) => Failure::input(format!("--on ram {error}")),
        (error, _) => Failure::input(format!("--on ram: {error}")),
    })?;
    let (limits, by) = disk.room();
    let storage = Storage { directory: disk.directory().clone(), limits, by };
    Ok(Place::Memory { storage, disk })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_directory_is_named_in_words() {
        let error = PlaceError::Unusable(". is on a file system that is read-only".to_owned());
        let why = unusable(&error);
        assert_eq!(
            why,
            "the current directory is on a file system that is read-only; name another with --dir"
        );
        let error = PlaceError::Unusable("nothing can be written in .: Permission denied".to_owned());
        assert!(unusable(&error).starts_with("nothing can be written in .: Permission"));
    }
}
