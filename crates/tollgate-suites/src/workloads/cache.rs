//! The page cache of what a command reads: filled, or emptied file by file, and certified in both cases.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::files::certificate::{Certificate, PAGE, Trial, drop_pages};
use crate::files::place::Place;
use tollgate_engine::{Refusal, Storage};

use super::command::{Step, on_files, open};
use super::digest::files;
use super::fixture::write;

/// Where the pages of what a command reads are, when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// Not in memory.
    Cold,
    /// In memory.
    Warm,
}

/// What can be certified of a place's files.
pub(super) struct Pages {
    /// None where nobody can certify anything.
    trial: Option<Trial>,
    /// Why pages cannot be dropped, or nobody knows whether they are.
    stays: Option<String>,
}

impl Pages {
    /// Tries it with a new file of this name.
    ///
    /// # Errors
    /// What writing the file says.
    pub fn of(storage: &Storage, path: &Path) -> Step<Self> {
        let kind = Place::at(storage)?.kind();
        write(path, &[1; PAGE as usize])?;
        let file = on_files("open(2)", open(path))?;
        on_files("fsync(2)", file.sync_all())?;
        let (trial, stays) = match Trial::of(&file.into(), kind) {
            Ok(trial) => (Some(trial), trial.why_stays(kind)),
            Err(Refusal::Skip(why) | Refusal::Fail(why)) => (None, Some(why)),
        };
        Ok(Self { trial, stays })
    }

    /// That there is such a cache here.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where pages cannot be dropped.
    pub fn can_be(&self, cache: Cache) -> Result<(), Refusal> {
        match (&self.stays, cache) {
            (Some(why), Cache::Cold) => Err(Refusal::Skip(format!("nothing is cold here: {why}"))),
            _ => Ok(()),
        }
    }

    /// Whether anybody can say where pages are.
    pub fn certify(&self) -> bool {
        self.trial.is_some()
    }

    /// Brings the pages of files and trees of files there. Whether all of them are.
    ///
    /// # Errors
    /// What reading says.
    pub fn bring(&self, cache: Cache, roots: &[PathBuf]) -> Step<bool> {
        let mut all = true;
        for root in roots {
            let beneath = match root.is_dir() {
                true => on_files("to list what is read", files(root, true))?,
                false => vec![PathBuf::new()],
            };
            for path in beneath {
                let path = if path.as_os_str().is_empty() { root.clone() } else { root.join(path) };
                all &= on_files("to read what is read", self.bring_one(cache, &path))?;
            }
        }
        Ok(all)
    }

    fn bring_one(&self, cache: Cache, path: &Path) -> io::Result<bool> {
        /// A page that somebody holds for a moment cannot be dropped.
        const TRIES: usize = 3;
        let mut file = open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(true);
        }
        if cache == Cache::Warm {
            io::copy(&mut file, &mut io::sink())?;
        }
        let Some(trial) = self.trial else { return Ok(cache == Cache::Warm) };
        let file: OwnedFd = file.into();
        let written = file.try_clone().map(File::from)?;
        let certificate = Certificate::by(trial.witness, &file, length)?;
        let resident = || certificate.resident(0, length);
        if cache == Cache::Warm {
            return Ok(resident()? >= length.div_ceil(PAGE));
        }
        for _ in 0..TRIES {
            // A refusal of posix_fadvise(2) shows in what is resident.
            let _ = drop_pages(&file);
            if resident()? == 0 {
                return Ok(true);
            }
            // What is dirty stays until it is written out.
            written.sync_all()?;
        }
        Ok(false)
    }

    /// What was certified before each run, as a clause.
    pub fn note(&self, cache: Cache) -> String {
        match (self.trial, cache) {
            (Some(trial), Cache::Cold) => {
                format!(
                    "{} certified before each run that nothing it reads was in memory",
                    trial.witness.name()
                )
            }
            (Some(trial), Cache::Warm) => {
                format!("{} certified before each run that all it reads was in memory", trial.witness.name())
            }
            (None, _) => "what it reads was read before each run; nothing certifies that it stayed in memory"
                .to_owned(),
        }
    }
}
