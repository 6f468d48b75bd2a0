//! Files that are not text, recognized by their first bytes, and the command that extracts a configuration from each.

/// The kind of a file that is not a configuration, and how to get one from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText {
    /// A phrase such as "compressed by xz".
    pub what: &'static str,
    /// The command that extracts the configuration.
    pub command: &'static str,
}

/// The number of bytes from which the kind of a file is determined.
pub(crate) const HEAD: u64 = 0x260;

/// Magic numbers of compressions, as in the kernel's `scripts/extract-vmlinux`.
const COMPRESSIONS: [(&[u8], NotText); 7] = [
    (b"\xfd7zXZ\0", NotText { what: "compressed by xz", command: "xz -dc" }),
    (b"\x5d\0\0", NotText { what: "compressed by xz", command: "xz -dc" }),
    (b"\x02\x21\x4c\x18", NotText { what: "compressed by lz4", command: "lz4 -dc" }),
    (b"\x04\x22\x4d\x18", NotText { what: "compressed by lz4", command: "lz4 -dc" }),
    (b"\x28\xb5\x2f\xfd", NotText { what: "compressed by zstd", command: "zstd -dc" }),
    (b"BZh", NotText { what: "compressed by bzip2", command: "bzip2 -dc" }),
    (b"\x89LZO\0", NotText { what: "compressed by lzop", command: "lzop -dc" }),
];

/// The kernel's `scripts/extract-ikconfig` finds what `CONFIG_IKCONFIG` puts into a kernel or into its module `configs`.
const IMAGE: NotText =
    NotText { what: "a kernel image or another program", command: "scripts/extract-ikconfig" };
/// The offset of a boot sector's signature (Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header").
const BOOT_FLAG: usize = 0x1fe;

impl NotText {
    /// Classifies a file by its first [`HEAD`] bytes; `None` if it is text.
    pub(crate) fn from_head(head: &[u8]) -> Option<Self> {
        let is_image = head.starts_with(b"\x7fELF")
            || head.get(BOOT_FLAG..BOOT_FLAG + 2) == Some(b"\x55\xaa")
            || head.starts_with(b"MZ") && head.contains(&0);
        let known = COMPRESSIONS.iter().find(|(magic, _)| head.starts_with(magic));
        known.map(|(_, known)| *known).or_else(|| is_image.then_some(IMAGE))
    }
}
