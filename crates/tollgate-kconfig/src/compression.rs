//! The compressions that configurations and kernel images come in, recognised by their first bytes as
//! `scripts/extract-vmlinux` does.

use std::fmt;

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
    /// lz4(1), the frame that it writes unless `-l` is given.
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
    pub(crate) fn from_head(head: &[u8]) -> Option<Self> {
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

    /// The command that unpacks it to standard output.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dc",
            Self::Xz | Self::Lzma => "xz -dc",
            Self::Lz4 | Self::Lz4Frame => "lz4 -dc",
            Self::Zstd => "zstd -dc",
            Self::Bzip2 => "bzip2 -dc",
            Self::Lzo => "lzop -dc",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
