//! Why there is no configuration in a file.

use std::io;

use crate::compression::Compression;

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
    /// Compressed in a way that is not unpacked here.
    #[error("is compressed with {name}, which is not unpacked here: `{command}` does it", name = .0, command = .0.command())]
    Compressed(Compression),
    /// A kernel image compressed in a way that is not unpacked here.
    #[error(
        "is a kernel image compressed with {0}, which is not unpacked here: scripts/extract-vmlinux of the kernel's source makes a vmlinux of it, which can be read"
    )]
    CompressedImage(Compression),
    /// One compression within another, too often.
    #[error("is compressed more than {0} times over")]
    Nested(u8),
    /// The compressed data end before they should, or say what cannot be.
    #[error("is damaged or cut short: its {0} data cannot be unpacked ({1})")]
    Damaged(Compression, String),
    /// A boot image whose header leads nowhere.
    #[error("is a kernel image that is damaged or cut short: {0}")]
    Image(String),
    /// A program for UEFI, such as a unified kernel image.
    #[error(
        "is a PE file but no boot image of Linux; of a unified kernel image the section .linux can be read (objcopy -O binary -j .linux FILE KERNEL)"
    )]
    PeFile,
    /// No embedded configuration.
    #[error("has no configuration in it ({} searched): {}", megabytes(*.searched), without(.release.as_deref()))]
    NotEmbedded {
        /// Bytes that were searched: all that there are.
        searched: u64,
        /// The kernel's release, where it is a boot image that says.
        release: Option<String>,
    },
    /// No embedded configuration in as much as is searched.
    #[error(
        "has no configuration in its first {}; what comes after them is not searched: the same kernel without its debugging information is shorter (strip -d -o SHORTER FILE)", megabytes(*.0)
    )]
    NotSearched(u64),
    /// The embedded configuration has a beginning and no end.
    #[error("has the beginning of a configuration in it (IKCFG_ST) but not its end within {} MiB: damaged or cut short", .0 >> 20)]
    Unended(u64),
}

fn megabytes(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        megabytes => format!("{megabytes} MiB"),
    }
}

fn without(release: Option<&str>) -> String {
    match release {
        Some(release) => format!(
            "this kernel was built without CONFIG_IKCONFIG=y; a distribution ships its configuration as \
             /boot/config-{release}"
        ),
        None => "no kernel, or one that was built without CONFIG_IKCONFIG=y".to_owned(),
    }
}

/// The error of a read: that of a compression that could not be unpacked, or the kernel's.
pub(crate) fn io_error(error: io::Error) -> ConfigError {
    if let Some(known) = error.get_ref().and_then(|inner| inner.downcast_ref::<ConfigError>()) {
        return known.clone();
    }
    let plain = tollgate_model::text::plainly(&error);
    match error.kind() {
        io::ErrorKind::NotFound => ConfigError::Absent,
        io::ErrorKind::PermissionDenied => ConfigError::Refused(plain),
        _ => ConfigError::Unreadable(plain),
    }
}
