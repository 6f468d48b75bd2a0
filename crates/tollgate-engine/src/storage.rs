//! The working directory for files, and how much may be written there.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tollgate_os::workdir::Workdir;

use super::runner::Refusal;

/// A working directory of this run. Its maker removes it with its contents, however the run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The directory, with the identity that uses it.
    pub directory: Workdir,
    /// Greatest number of bytes at a time.
    pub limit: u64,
    /// The source of that limit, such as `a tenth of the 4 GiB that are free there (statfs(2))`.
    pub by: String,
}

static STORAGE: OnceLock<Result<Storage, String>> = OnceLock::new();

impl Storage {
    /// Whether cases of this benchmark use the directory.
    pub fn is_used_by(benchmark: &str) -> bool {
        const SUITES: [&str; 2] = ["files/", "workloads/"];
        SUITES.iter().any(|suite| benchmark.starts_with(suite))
    }
}

/// Sets the directory, once for this process, and takes the identity that uses it, in this thread and those that it
/// starts. Must be called before other threads exist.
pub(super) fn set(storage: Result<Storage, String>) {
    let storage = storage.and_then(|storage| match storage.directory.enter() {
        Ok(access) => {
            // Dropping it would give the identity back.
            std::mem::forget(access);
            Ok(storage)
        }
        Err(why) => Err(why.to_string()),
    });
    let _ = STORAGE.set(storage);
}

/// Records that this process uses no directory. It keeps its own identity.
pub(super) fn set_unused() {
    let _ = STORAGE.set(Err("this process was started for cases that use no directory".to_owned()));
}

/// The directory for files.
///
/// # Errors
/// [`Refusal::Skip`] with the reason if there is none.
pub fn here() -> Result<&'static Storage, Refusal> {
    match STORAGE.get() {
        Some(Ok(storage)) => Ok(storage),
        Some(Err(why)) => Err(Refusal::Skip(why.clone())),
        None => Err(Refusal::Skip("no directory for files was named".to_owned())),
    }
}
