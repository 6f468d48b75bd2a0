//! The page cache of a command's input: filled, or emptied file by file, and checked in both cases.

use std::path::{Path, PathBuf};
use std::{fs::File, io, os::fd::OwnedFd};

use super::command::on_files;
use super::{digest::files, fixture::write};
use crate::files::data_dir::DataDir;
use crate::files::residency::{Residency, Trial, emptied};
use crate::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    Cold,
    Warm,
}

pub(super) struct Pages {
    /// `None` if no call reports residency.
    trial: Option<Trial>,
    /// Why pages cannot be dropped, or a drop cannot be checked.
    stays: Option<String>,
}

impl Pages {
    /// Finds the call with a new file at this path.
    pub fn new(storage: &Storage, path: &Path) -> Step<Self> {
        let kind = DataDir::at(storage, Heartbeat::default())?.kind();
        write(path, &vec![1; page_size()])?;
        let file = on_files("open(2)", File::open(path))?;
        on_files("fsync(2)", file.sync_all())?;
        let (trial, stays) = match Trial::make(&file.into(), kind) {
            Ok(trial) => (Some(trial), trial.why_stays(kind)),
            Err(refusal) => (None, Some(refusal.why().to_owned())),
        };
        Ok(Self { trial, stays })
    }

    pub fn can_be(&self, cache: Cache) -> Result<()> {
        match (&self.stays, cache) {
            (Some(why), Cache::Cold) => Err(skip!("a cold cache is not possible here: {why}")),
            _ => Ok(()),
        }
    }

    pub fn certify(&self) -> bool {
        self.trial.is_some()
    }

    /// Brings the pages of files and trees into this state. Returns whether all of them are in it.
    pub fn bring(&self, cache: Cache, roots: &[PathBuf]) -> Step<bool> {
        let mut all = true;
        for root in roots {
            let beneath = if root.is_dir() {
                on_files("to list what is read", files(root, true))?
            } else {
                vec![PathBuf::new()]
            };
            for path in beneath {
                let path = if path.as_os_str().is_empty() { root.clone() } else { root.join(path) };
                all &= on_files("to read what is read", self.bring_one(cache, &path))?;
            }
        }
        Ok(all)
    }

    fn bring_one(&self, cache: Cache, path: &Path) -> io::Result<bool> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(true);
        }
        if cache == Cache::Warm {
            io::copy(&mut file, &mut io::sink())?;
        }
        let Some(trial) = self.trial else { return Ok(cache == Cache::Warm) };
        let file: OwnedFd = file.into();
        match cache {
            Cache::Warm => {
                let residency = Residency::by(trial.call, &file, length)?;
                Ok(residency.resident(0, length)? >= length.div_ceil(page_size() as u64))
            }
            Cache::Cold => emptied(trial.call, &file, length),
        }
    }

    pub fn note(&self, cache: Cache) -> String {
        match (self.trial, cache) {
            (Some(trial), Cache::Cold) => {
                format!("no input page cached before each run ({})", trial.call.name())
            }
            (Some(trial), Cache::Warm) => {
                format!("all input pages cached before each run ({})", trial.call.name())
            }
            (None, _) => "input was read before each run; residency unknown".to_owned(),
        }
    }
}
