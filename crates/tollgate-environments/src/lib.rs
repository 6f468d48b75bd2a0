//! Where files are measured: a private directory, and a file system on a block device in memory. Both are removed when
//! they are dropped; those of a killed program are removed by the next run.
//!
//! - `directory`: a directory of this run alone, and how much may be written to it.
//! - `ram`: a fresh file system on a block device in memory. `device`: that device, by either of two drivers.
//! - `commands`: the few programs that are run for it. `error`: why there is none.
//!
//! A directory, device, module or mount that was not made here is not touched. Those made here are known by a unique
//! name, by their owner, and by a lock that the maker holds for as long as it lives.

mod commands;
mod device;
mod directory;
mod error;
mod ram;

pub use directory::Private;
pub use error::EnvironmentError;
pub use ram::{Memory, RamDisk, clean};
