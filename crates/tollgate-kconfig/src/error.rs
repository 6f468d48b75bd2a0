//! Why there is no configuration in a file.

use std::io;

use crate::not_text::NotText;

/// Why no configuration was read: a clause after the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nothing is there.
    #[error("does not exist")]
    Absent,
    /// The kernel does not let this user read it, with its words.
    #[error("cannot be read: {0}")]
    Refused(String),
    /// Reading failed, with the kernel's words.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It is no file.
    #[error("is a {0}; a configuration is a file, a directory with a captured machine, or a pipe")]
    NoFile(&'static str),
    /// It has no bytes.
    #[error("is empty; a configuration has lines such as CONFIG_SMP=y")]
    Empty,
    /// Only comments and empty lines.
    #[error("has no option; a configuration has lines such as CONFIG_SMP=y")]
    NoOptions,
    /// Most of its lines are none of a configuration.
    #[error(
        "is no kernel configuration: line {line} is {excerpt:?}; options in it: {options}, lines that are neither options nor comments: {others}"
    )]
    NoConfiguration {
        /// Lines that are options.
        options: usize,
        /// Lines that are neither options nor comments.
        others: usize,
        /// The first of those.
        line: usize,
        /// Its beginning.
        excerpt: String,
    },
    /// Text in UTF-16.
    #[error("is text in UTF-16; a configuration is in ASCII or UTF-8 (iconv -f UTF-16 -t UTF-8)")]
    Utf16,
    /// Longer than any configuration.
    #[error("is longer than {} MiB unpacked; no kernel configuration is", .0 >> 20)]
    TooLong(u64),
    /// No text, but something that has one in it.
    #[error("is {}, and no text: `{}` of it writes a configuration that can be read", .0.what, .0.command)]
    NotText(NotText),
    /// The compressed data end before they should, or say what cannot be.
    #[error("is damaged or cut short: its gzip data cannot be unpacked ({0})")]
    Damaged(String),
}

/// The error of a read that the kernel refused.
pub(crate) fn io_error(error: io::Error) -> ConfigError {
    let plain = tollgate_model::text::plainly(&error);
    match error.kind() {
        io::ErrorKind::NotFound => ConfigError::Absent,
        io::ErrorKind::PermissionDenied => ConfigError::Refused(plain),
        _ => ConfigError::Unreadable(plain),
    }
}
