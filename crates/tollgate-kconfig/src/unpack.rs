//! Unpacks what a configuration or a kernel image is compressed with, within bounds on memory.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use lzma_rust2::{LzmaReader, XzReader};
use ruzstd::decoding::StreamingDecoder;

use crate::compression::Compression;
use crate::error::ConfigError;
use crate::lz4::Lz4;

/// The largest dictionary that is allocated, in KiB; `scripts/xz_wrap.sh` asks for 32 MiB at most.
const MAX_DICTIONARY: u32 = 160 << 10;
/// The largest window of zstd, which is what the kernel's own unpacker takes (`ZSTD_WINDOWSIZE_MAX` in
/// lib/decompress_unzstd.c).
const MAX_WINDOW: u64 = 128 << 20;

/// A reader of the unpacked bytes. It keeps no more than the compression's own window.
pub(crate) fn unpack<'a>(
    compression: Compression,
    packed: Box<dyn Read + 'a>,
) -> Result<Box<dyn Read + 'a>, ConfigError> {
    let damaged = |why: String| ConfigError::Damaged(compression, why);
    let packed = io::BufReader::with_capacity(1 << 16, packed);
    let unpacked: Box<dyn Read + 'a> = match compression {
        Compression::Gzip => Box::new(GzDecoder::new(packed)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(packed, false, MAX_DICTIONARY)),
        Compression::Lzma => Box::new(
            LzmaReader::new_mem_limit(packed, MAX_DICTIONARY, None)
                .map_err(|error| damaged(error.to_string()))?,
        ),
        Compression::Lz4 => Box::new(Lz4::new(packed)),
        Compression::Zstd => Box::new(
            StreamingDecoder::new_with_max_window_size(packed, MAX_WINDOW)
                .map_err(|error| damaged(error.to_string()))?,
        ),
        Compression::Lz4Frame | Compression::Bzip2 | Compression::Lzo => {
            return Err(ConfigError::Compressed(compression));
        }
    };
    Ok(Box::new(Unpacked { compression, inner: unpacked }))
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
