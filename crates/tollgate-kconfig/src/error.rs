use std::io;

use crate::not_text::NotText;

/// A reason why no configuration was read, as a clause that follows the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// ENOENT.
    #[error("does not exist")]
    Absent,
    /// This user may not read it; the kernel's message.
    #[error("cannot be read: {0}")]
    Refused(String),
    /// Reading failed; the kernel's message.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Not a file but, for example, a directory or a socket.
    #[error("is a {0}; a configuration is a file, a directory with a captured machine, or a pipe")]
    NoFile(&'static str),
    /// The file has no bytes.
    #[error("is empty; a configuration has lines such as CONFIG_SMP=y")]
    Empty,
    /// The file has only comments and empty lines.
    #[error("has no option; a configuration has lines such as CONFIG_SMP=y")]
    NoOptions,
    /// Most lines do not belong to a configuration.
    #[error(
        "is not a kernel configuration: line {line} is {excerpt:?}; options in it: {options}, lines that are neither options nor comments: {others}"
    )]
    NoConfiguration {
        /// Number of lines that are options.
        options: usize,
        /// Number of lines that are neither options nor comments.
        others: usize,
        /// The number of the first of those, from 1.
        line: usize,
        /// The beginning of that line.
        excerpt: String,
    },
    /// The text is UTF-16.
    #[error("is text in UTF-16; a configuration is in ASCII or UTF-8 (iconv -f UTF-16 -t UTF-8)")]
    Utf16,
    /// The text is longer than this limit, in bytes.
    #[error("is longer than {} MiB unpacked, the limit for a configuration", .0 >> 20)]
    TooLong(u64),
    /// Not text, but a configuration can be extracted from it.
    #[error("is {}, not text: `{}` of it writes a configuration that can be read", .0.what, .0.command)]
    NotText(NotText),
    /// The gzip data end early or are invalid.
    #[error("is damaged or cut short: its gzip data cannot be unpacked ({0})")]
    Damaged(String),
}

pub(crate) fn io_error(error: io::Error) -> ConfigError {
    let plain = tollgate_model::text::plainly(&error);
    match error.kind() {
        io::ErrorKind::NotFound => ConfigError::Absent,
        io::ErrorKind::PermissionDenied => ConfigError::Refused(plain),
        _ => ConfigError::Unreadable(plain),
    }
}
