//! A configuration that was read.

use crate::Reading;

/// A configuration that was read.
pub struct Chosen {
    /// The file it was read from, as it was named.
    pub path: String,
    /// The reading.
    pub reading: Reading,
    /// The parameters that its kernel was started with, where it is that of a machine and they can be read.
    pub command_line: Option<String>,
    /// Whether it is that of a machine's running kernel.
    pub running: bool,
}
