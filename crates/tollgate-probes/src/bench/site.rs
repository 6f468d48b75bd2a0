//! The site: the directory in which files are measured, and how much may be written there.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::station::Refusal;

/// A directory of this run alone. Who made it takes it away with all that is in it, however the run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Where, from the root.
    pub directory: PathBuf,
    /// Bytes that may be there at a time.
    pub room: u64,
    /// What allows no more, such as `a tenth of the 4 GiB that are free there (statfs(2))`.
    pub by: String,
}

static SITE: OnceLock<Result<Site, String>> = OnceLock::new();

/// Says where it is, once for this process.
pub(super) fn set(site: Result<Site, String>) {
    let _ = SITE.set(site);
}

/// Where files are measured.
///
/// # Errors
/// [`Refusal::Skip`] with the reason where there is no such place.
pub fn here() -> Result<&'static Site, Refusal> {
    match SITE.get() {
        Some(Ok(site)) => Ok(site),
        Some(Err(why)) => Err(Refusal::Skip(why.clone())),
        None => Err(Refusal::Skip("no directory was named to measure files in".to_owned())),
    }
}
