//! The guest as a file that another machine boots: for a loader of multiboot, on a disk, on a CD.
//!
//! - `sector`: the loader that a BIOS finds in the first sector. `efi`, `fat`: the one that UEFI finds, and the volume that it is on.
//!   `disk`, `iso`, `elf`: the forms.

mod disk;
mod efi;
mod elf;
mod fat;
mod iso;
mod sector;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::LabError;
use crate::guest::Image;

/// Bytes of a disk's sector.
const SECTOR: usize = 512;
/// Where the volume for UEFI begins on a disk and on a CD, behind all that the loader of a BIOS can read.
const VOLUME: usize = 512 << 10;

/// What a file is, so that something boots it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The image as it is, with its header of multiboot 1.
    Multiboot,
    /// An ELF file of 32 bits, with the same header.
    Elf,
    /// A disk, whose first sector loads the kernel.
    Disk,
    /// A CD (ISO 9660, El Torito). As a disk it boots as well.
    Iso,
}

impl Form {
    /// By the end of a file's name: `.img`, `.iso` and `.elf`; any other is [`Form::Multiboot`].
    pub fn from_path(path: &Path) -> Self {
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("elf") => Self::Elf,
            Some("img") => Self::Disk,
            Some("iso") => Self::Iso,
            _ => Self::Multiboot,
        }
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// The image is larger than the loader can read, 448 KiB: only one with an archive of programs is.
    pub fn file(self, image: &Image) -> Result<Vec<u8>, LabError> {
        match self {
            Self::Multiboot => Ok(image.bytes().to_vec()),
            Self::Elf => Ok(elf::file(image)),
            Self::Disk => disk::file(image),
            Self::Iso => iso::file(image),
        }
    }
}
