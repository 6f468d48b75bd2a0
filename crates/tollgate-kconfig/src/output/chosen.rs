use crate::Reading;

/// A configuration to show, and where it comes from.
pub struct Chosen {
    /// The path of the file, as the user gave it.
    pub path: String,
    /// The configuration that was read.
    pub reading: Reading,
    /// The kernel command line; `None` unless the configuration is that of a machine and its command line can be read.
    pub command_line: Option<String>,
    /// Whether it is the configuration of a machine's running kernel.
    pub running: bool,
}
