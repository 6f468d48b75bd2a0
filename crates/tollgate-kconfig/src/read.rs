//! From a file's bytes to a configuration: its first bytes say what it is, and so what is within it.

use std::fs::{File, OpenOptions};
use std::io::{Cursor, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::compression::Compression;
use crate::error::{ConfigError, io_error};
use crate::text::{Configuration, parse};
use crate::unpack::unpack;
use crate::{embedded, image};

/// The longest text that is taken for a configuration; that of a kernel with everything is below 400 KiB.
const MAX_TEXT: u64 = 8 << 20;
/// How often compressions may lie in each other: a boot image in a package's file is two.
const MAX_DEPTH: u8 = 3;

/// A configuration and what it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The configuration.
    pub configuration: Configuration,
    /// Where in the file it was.
    pub source: Source,
    /// The compressions that were undone, the outermost first.
    pub compressions: Vec<Compression>,
    /// The kernel's release, where the file is a boot image that says.
    pub release: Option<String>,
}

/// Where in a file a configuration was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It is the file, as text.
    Plain,
    /// It is the file, compressed.
    Compressed,
    /// It is in a kernel image or in the module `configs`.
    Embedded,
}

/// Reads the configuration in a file: text, compressed text, or a kernel image with its own.
///
/// # Errors
/// Why there is none.
pub fn open(path: &Path) -> Result<Reading, ConfigError> {
    let file = regular(path)?;
    read(file)
}

/// The file, if it is one, or a pipe with a writer. Opening does not wait: a named pipe may have no writer.
fn regular(path: &Path) -> Result<File, ConfigError> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => ConfigError::NoFile("socket or a device that is not there"),
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
/// Why there is none.
pub fn read<'a>(source: impl Read + 'a) -> Result<Reading, ConfigError> {
    let mut seen = Seen::default();
    let configuration = within(Box::new(source), &mut seen)?;
    let source = match (seen.embedded, seen.compressions.is_empty()) {
        (true, _) => Source::Embedded,
        (false, true) => Source::Plain,
        (false, false) => Source::Compressed,
    };
    Ok(Reading { configuration, source, compressions: seen.compressions, release: seen.release })
}

/// The layers that were opened.
#[derive(Default)]
struct Seen {
    compressions: Vec<Compression>,
    image: bool,
    embedded: bool,
    release: Option<String>,
}

fn within<'a>(mut source: Box<dyn Read + 'a>, seen: &mut Seen) -> Result<Configuration, ConfigError> {
    let mut head = Vec::new();
    source.by_ref().take(image::HEAD as u64).read_to_end(&mut head).map_err(io_error)?;
    if let Some(compression) = Compression::from_head(&head) {
        if seen.compressions.len() >= usize::from(MAX_DEPTH) {
            return Err(ConfigError::Nested(MAX_DEPTH));
        }
        seen.compressions.push(compression);
        let packed = Box::new(Cursor::new(head).chain(source));
        let unpacked = unpack(compression, packed).map_err(|error| match error {
            ConfigError::Compressed(compression) if seen.image => ConfigError::CompressedImage(compression),
            error => error,
        })?;
        return within(unpacked, seen);
    }
    if !seen.image && image::is_image(&head) {
        return of_image(&head, source, seen);
    }
    let mut whole = Cursor::new(&head).chain(source);
    if head.starts_with(b"\x7fELF") {
        return of_elf(&mut whole, seen);
    }
    if seen.image {
        return Err(ConfigError::Image("its kernel is compressed in a way that is not known".to_owned()));
    }
    if head.starts_with(b"MZ") && head.contains(&0) {
        return Err(ConfigError::PeFile);
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(ConfigError::Utf16);
    }
    text(&mut whole)
}

/// The kernel in a boot image, which is an ELF file and most often compressed.
fn of_image(
    head: &[u8],
    mut rest: Box<dyn Read + '_>,
    seen: &mut Seen,
) -> Result<Configuration, ConfigError> {
    let payload = image::payload(head)?;
    seen.image = true;
    let mut before = head.to_vec();
    let more = payload.offset.saturating_sub(head.len() as u64);
    rest.by_ref().take(more).read_to_end(&mut before).map_err(io_error)?;
    let start = usize::try_from(payload.offset).unwrap_or(usize::MAX);
    let cut = || ConfigError::Image(format!("it ends before its kernel, which is at byte {start}"));
    let began = before.get(start..).filter(|_| before.len() >= start).ok_or_else(cut)?;
    seen.release = payload.release.and_then(|at| image::release(before.get(at..)?));
    let kernel = Cursor::new(began.to_vec()).chain(rest).take(payload.length);
    within(Box::new(kernel), seen)
}

fn of_elf(source: &mut dyn Read, seen: &mut Seen) -> Result<Configuration, ConfigError> {
    let stream =
        embedded::find(source, embedded::MOST_SEARCHED)?.map_err(|searched| match searched.whole {
            true => ConfigError::NotEmbedded { searched: searched.bytes, release: seen.release.clone() },
            false => ConfigError::NotSearched(searched.bytes),
        })?;
    seen.embedded = true;
    let mut unpacked = unpack(Compression::Gzip, Box::new(Cursor::new(stream)))?;
    text(&mut unpacked)
}

fn text(source: &mut dyn Read) -> Result<Configuration, ConfigError> {
    let mut bytes = Vec::new();
    source.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(io_error)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(ConfigError::TooLong(MAX_TEXT));
    }
    parse(&bytes)
}
