//! The storage: the directory in which files are measured, and how much may be written there.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tollgate_os::workdir::Workdir;

use super::runner::Refusal;

/// A directory of this run alone. Who made it takes it away with all that is in it, however the run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Where, from the root, which one, and with whose identity it is used.
    pub directory: Workdir,
    /// Bytes that may be there at a time.
    pub limits: u64,
    /// What allows no more, such as `a tenth of the 4 GiB that are free there (statfs(2))`.
    pub by: String,
}

static SITE: OnceLock<Result<Storage, String>> = OnceLock::new();

impl Storage {
    /// Whether cases of this benchmark use one.
    pub fn is_used_by(benchmark: &str) -> bool {
        const SUITES: [&str; 2] = ["files/", "workloads/"];
        SUITES.iter().any(|suite| benchmark.starts_with(suite))
    }
}

/// Says where it is, once for this process, and takes the identity that it is used with: for as long as the process lives, in this
/// thread and those that it starts. To be called before there are others.
pub(super) fn set(storage: Result<Storage, String>) {
    let storage = storage.and_then(|storage| match storage.directory.enter() {
        Ok(access) => {
            // Dropped, it would end.
            std::mem::forget(access);
            Ok(storage)
        }
        Err(why) => Err(why.to_string()),
    });
    let _ = SITE.set(storage);
}

/// Says that nothing that this process does uses one. It keeps its own identity.
pub(super) fn set_unused() {
    let _ = SITE.set(Err("this process was started for cases that use no directory".to_owned()));
}

/// Where files are measured.
///
/// # Errors
/// [`Refusal::Skip`] with the reason where there is no such place.
pub fn here() -> Result<&'static Storage, Refusal> {
    match SITE.get() {
        Some(Ok(storage)) => Ok(storage),
        Some(Err(why)) => Err(Refusal::Skip(why.clone())),
        None => Err(Refusal::Skip("no directory was named to measure files in".to_owned())),
    }
}
