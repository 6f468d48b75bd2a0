//! Reads a configuration from a file's bytes. The first bytes tell text, compressed text, and other files apart.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use flate2::read::GzDecoder;
use rustix::fs::OFlags;

use crate::error::{ConfigError, io_error};
use crate::not_text::{HEAD, NotText};
use crate::text::{Configuration, parse};

/// The longest text that is accepted, in bytes. The configuration of a kernel with everything is below 400 KiB.
const MAX_TEXT: u64 = 8 << 20;

/// A configuration, and how it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The configuration.
    pub configuration: Configuration,
    /// Whether it was compressed by gzip(1), as /proc/config.gz is.
    pub is_compressed: bool,
}

/// Reads the configuration in a file: text, or text compressed by gzip(1).
///
/// # Errors
/// The reason why there is none.
pub fn open(path: &Path) -> Result<Reading, ConfigError> {
    let file = regular(path)?;
    read(file)
}

/// Opens a regular file, or a pipe with a writer. The open does not block, since a named pipe may have no writer.
fn regular(path: &Path) -> Result<File, ConfigError> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => ConfigError::NoFile("socket or a device that does not exist"),
        _ => io_error(error),
    })?;
    let kind = file.metadata().map_err(io_error)?.file_type();
    if kind.is_dir() {
        return Err(ConfigError::NoFile("directory"));
    }
    if kind.is_char_device() || kind.is_block_device() {
        return Err(ConfigError::NoFile("device"));
    }
    if kind.is_fifo() {
        let blocking = OFlags::empty();
        rustix::fs::fcntl_setfl(&file, blocking).map_err(|error| io_error(error.into()))?;
    }
    Ok(file)
}

/// Reads the configuration in these bytes, as [`open`] does.
///
/// # Errors
/// The reason why there is none.
pub fn read(mut source: impl Read) -> Result<Reading, ConfigError> {
    let head = head(&mut source)?;
    let whole = Cursor::new(&head).chain(source);
    let is_compressed = head.starts_with(b"\x1f\x8b\x08");
    let configuration =
        if is_compressed { text(&mut GzDecoder::new(whole), &damaged) } else { text(whole, &io_error) };
    Ok(Reading { configuration: configuration?, is_compressed })
}

fn head(source: &mut impl Read) -> Result<Vec<u8>, ConfigError> {
    let mut head = Vec::new();
    source.take(HEAD).read_to_end(&mut head).map_err(io_error)?;
    Ok(head)
}

fn damaged(error: io::Error) -> ConfigError {
    ConfigError::Damaged(match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        _ => error.to_string(),
    })
}

fn text(source: impl Read, fault: &dyn Fn(io::Error) -> ConfigError) -> Result<Configuration, ConfigError> {
    let mut bytes = Vec::new();
    source.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(fault)?;
    if let Some(not_text) = NotText::from_head(&bytes[..bytes.len().min(HEAD as usize)]) {
        return Err(ConfigError::NotText(not_text));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(ConfigError::Utf16);
    }
    if bytes.len() as u64 > MAX_TEXT {
        return Err(ConfigError::TooLong(MAX_TEXT));
    }
    parse(&bytes)
}
