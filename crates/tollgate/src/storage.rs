//! The directory in which files are measured: under the named or the current directory, or on a file system in memory. It is
//! created before anything is measured and removed when this is dropped.

use std::path::Path;

use tollgate_engine::Selection;
use tollgate_engine::{Storage, interrupt};
use tollgate_environments::{EnvironmentError, Memory, OnRam, RamDisk, for_files, writable};
use tollgate_inspect::Machine;
use tollgate_model::Fact;
use tollgate_os::{private::PrivateDirectory, workdir::Workdir};

use crate::failure::Failure;

#[derive(Debug)]
pub enum Workplace {
    /// A private directory under an existing one.
    Directory {
        storage: Storage,
        /// Removed when it is dropped.
        _private: PrivateDirectory,
    },
    Memory {
        storage: Storage,
        disk: Box<RamDisk>,
    },
    /// None, for this reason; cases that use files are skipped.
    Nowhere(String),
}

impl Workplace {
    /// Creates the directory that `--dir` or `--on` requests, otherwise one under the current one, if a chosen case uses files.
    ///
    /// # Errors
    /// A named directory that cannot be used; one that no chosen case uses.
    pub fn choose(selection: &Selection, dir: Option<&Path>, on: Option<&OnRam>) -> Result<Self, Failure> {
        if !selection.uses_files() {
            return match (dir, on) {
                (None, None) => Ok(Self::Nowhere("no files are measured".to_owned())),
                (Some(_), _) => Err(unneeded("--dir")),
                (None, Some(_)) => Err(unneeded("--on")),
            };
        }
        // Files left by a killed run.
        tollgate_environments::clean();
        match (dir, on) {
            (_, Some(on)) => on_ram(on),
            (Some(directory), None) => {
                beneath(directory).map_err(|error| Failure::input(format!("--dir: {error}")))
            }
            (None, None) => {
                Ok(beneath(Path::new(".")).unwrap_or_else(|error| Self::Nowhere(unusable(&error))))
            }
        }
    }

    /// Creates the directory in which an agent measures files: under this one, or else under the current one or one for temporary
    /// files, since an environment's current directory may be read-only.
    pub fn of_agent(directory: Option<&Path>) -> Self {
        tollgate_environments::clean();
        if let Some(directory) = directory {
            return beneath(directory).unwrap_or_else(|error| Self::Nowhere(error.to_string()));
        }
        let current = match beneath(Path::new(".")) {
            Ok(workplace) => return workplace,
            Err(error) => error,
        };
        let temporary = ["/var/tmp", "/tmp"].iter().find_map(|directory| beneath(Path::new(directory)).ok());
        temporary.unwrap_or_else(|| Self::Nowhere(current.to_string()))
    }

    pub fn of_agent_on_ram(on: &OnRam) -> Self {
        made_on_ram(on).unwrap_or_else(|error| Self::Nowhere(format!("--on ram: {error}")))
    }

    pub fn storage(&self) -> Result<Storage, String> {
        match self {
            Self::Directory { storage, .. } | Self::Memory { storage, .. } => Ok(storage.clone()),
            Self::Nowhere(why) => Err(why.clone()),
        }
    }

    /// Its facts, read before it is removed.
    pub fn facts(&self) -> Vec<(String, Fact)> {
        let facts = |directory: &Path| tollgate_inspect::storage(&Machine::here(), directory);
        match self {
            // The facts name the existing directory, since the private one is removed.
            Self::Directory { storage, .. } => {
                let directory = storage.directory.path();
                facts(directory.parent().unwrap_or(directory))
            }
            Self::Memory { storage, disk } => {
                facts(storage.directory.path()).into_iter().chain(disk.facts()).collect()
            }
            Self::Nowhere(_) => Vec::new(),
        }
    }
}

/// The refusal of an option that no chosen case uses.
pub fn unneeded(option: &str) -> Failure {
    Failure::input(format!(
        "{option} applies only to benchmarks that use files; select one, such as those of files and workloads"
    ))
}

fn beneath(directory: &Path) -> Result<Workplace, EnvironmentError> {
    let private = for_files(directory)?;
    let path = private.path();
    let (limit, by) = writable(&private, path)?;
    let directory = Workdir::new(path.to_owned(), &private)
        .map_err(|error| EnvironmentError::Unusable(format!("{}: {error}", path.display())))?;
    let storage = Storage { directory, limit, by };
    Ok(Workplace::Directory { storage, _private: private })
}

fn unusable(error: &EnvironmentError) -> String {
    let what = error.to_string();
    if matches!(error, EnvironmentError::Unsafe(_)) {
        return what;
    }
    // A dot names the current directory.
    let what = what.strip_prefix(". ").map_or(what.clone(), |rest| format!("the current directory {rest}"));
    format!("{what}; name another with --dir")
}

fn on_ram(on: &OnRam) -> Result<Workplace, Failure> {
    made_on_ram(on).map_err(|error| match (error, interrupt::requested()) {
        (EnvironmentError::Interrupted, Some(signal)) => Failure::Interrupted(signal),
        (error @ EnvironmentError::NeedsRoot(_), _) => Failure::input(format!("--on ram {error}")),
        (error, _) => Failure::input(format!("--on ram: {error}")),
    })
}

fn made_on_ram(on: &OnRam) -> Result<Workplace, EnvironmentError> {
    let disk = Box::new(RamDisk::make(on, &memory(), &|| interrupt::requested().is_some())?);
    let (limits, by) = disk.limit();
    let storage = Storage { directory: disk.directory().clone(), limit: limits, by };
    Ok(Workplace::Memory { storage, disk })
}

/// The memory that is available here.
pub fn memory() -> Memory {
    let memory = tollgate_inspect::allowance(&Machine::here()).memory;
    memory.map_or(Memory { available: 0, by: "no known limit".to_owned() }, |limit| Memory {
        available: limit.amount,
        by: limit.source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_directory_is_named() {
        let error = EnvironmentError::Unusable(". is on a read-only file system".to_owned());
        let why = unusable(&error);
        assert_eq!(why, "the current directory is on a read-only file system; name another with --dir");
        let error = EnvironmentError::Unusable(". is not writable: Permission denied".to_owned());
        assert!(unusable(&error).starts_with("the current directory is not writable: Permission"));
    }
}
