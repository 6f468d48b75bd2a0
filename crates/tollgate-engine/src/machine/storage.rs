use serde::{Deserialize, Serialize};
use tollgate_os::workdir::Workdir;

/// A working directory of this run. Its maker removes it with its contents, however the run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The directory.
    pub directory: Workdir,
    /// The most bytes at a time.
    pub limit: u64,
    /// The source of that limit, such as `a tenth of the 4 GiB that are free there (statfs(2))`.
    pub by: String,
}
