//! The compressions that configurations and kernel images come in, told by their first bytes as
//! `scripts/extract-vmlinux` does.

use std::fmt;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use lzma_rust2::{LzmaReader, XzReader};
use ruzstd::decoding::StreamingDecoder;

use super::error::ConfigError;
use super::lz4::Lz4;

/// The largest dictionary that is made room for, in KiB; `scripts/xz_wrap.sh` asks for 32 MiB at most.
const MAX_DICTIONARY: u32 = 160 << 10;
/// The largest window of zstd, which is what the kernel's own unpacker takes (`ZSTD_WINDOWSIZE_MAX` in
/// lib/decompress_unzstd.c).
const MAX_WINDOW: u64 = 128 << 20;

/// A compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip(1), RFC 1952.
    Gzip,
    /// xz(1) with its filters.
    Xz,
    /// The older format of lzma(1).
    Lzma,
    /// lz4(1), the legacy frame.
    Lz4,
    /// zstd(1), RFC 8878.
    Zstd,
    /// lz4(1), the frame that it writes unless told `-l`.
    Lz4Frame,
    /// bzip2(1).
    Bzip2,
    /// lzop(1).
    Lzo,
}

const MAGICS: [(&[u8], Compression); 8] = [
    (b"\x1f\x8b\x08", Compression::Gzip),
    (b"\xfd7zXZ\0", Compression::Xz),
    (b"\x5d\0\0", Compression::Lzma),
    (b"\x02\x21\x4c\x18", Compression::Lz4),
    (b"\x28\xb5\x2f\xfd", Compression::Zstd),
    (b"\x04\x22\x4d\x18", Compression::Lz4Frame),
    (b"BZh", Compression::Bzip2),
    (b"\x89LZO\0", Compression::Lzo),
];

impl Compression {
    /// By the first bytes.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let (_, compression) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic))?;
        Some(*compression)
    }

    /// Its name, as its command is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Lzma => "lzma",
            Self::Lz4 | Self::Lz4Frame => "lz4",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Lzo => "lzo",
        }
    }

    /// What unpacks it to standard output.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dc",
            Self::Xz | Self::Lzma => "xz -dc",
            Self::Lz4 | Self::Lz4Frame => "lz4 -dc",
            Self::Zstd => "zstd -dc",
            Self::Bzip2 => "bzip2 -dc",
            Self::Lzo => "lzop -dc",
        }
    }

    /// What reads it unpacked. Nothing is kept of what has been read but the compression's own window.
    pub(super) fn unpack<'a>(self, packed: Box<dyn Read + 'a>) -> Result<Box<dyn Read + 'a>, ConfigError> {
        let damaged = |why: String| ConfigError::Damaged(self, why);
        let packed = io::BufReader::with_capacity(1 << 16, packed);
        let unpacked: Box<dyn Read + 'a> = match self {
            Self::Gzip => Box::new(GzDecoder::new(packed)),
            Self::Xz => Box::new(XzReader::new_mem_limit(packed, false, MAX_DICTIONARY)),
            Self::Lzma => Box::new(
                LzmaReader::new_mem_limit(packed, MAX_DICTIONARY, None)
                    .map_err(|error| damaged(error.to_string()))?,
            ),
            Self::Lz4 => Box::new(Lz4::new(packed)),
            Self::Zstd => Box::new(
                StreamingDecoder::new_with_max_window_size(packed, MAX_WINDOW)
                    .map_err(|error| damaged(error.to_string()))?,
            ),
            Self::Lz4Frame | Self::Bzip2 | Self::Lzo => return Err(ConfigError::Compressed(self)),
        };
        Ok(Box::new(Unpacked { compression: self, inner: unpacked }))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A reader that says which compression could not be unpacked.
struct Unpacked<'a> {
    compression: Compression,
    inner: Box<dyn Read + 'a>,
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::Interrupted => return error,
                io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
                _ => error.to_string(),
            };
            io::Error::other(ConfigError::Damaged(self.compression, why))
        })
    }
}
