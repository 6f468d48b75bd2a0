//! A disk: the loader of a BIOS, the kernel, and the volume for UEFI.

use super::sector::{self, Kernel};
use super::{SECTOR, VOLUME, efi, fat};
use crate::LabError;
use crate::guest::Image;

/// The bytes of the disk.
///
/// # Errors
/// [`LabError::TooLarge`]
pub(super) fn file(image: &Image) -> Result<Vec<u8>, LabError> {
    let kernel = image.bytes();
    let mut loader = sector::loader(Kernel { from: 1, bytes: kernel.len(), sector: SECTOR })?;
    sector::partitions(&mut loader);
    let mut disk = loader.to_vec();
    disk.extend(kernel);
    disk.resize(VOLUME, 0);
    disk.extend(fat::volume(&efi::file(image)).ok_or_else(|| sector::too_large(kernel.len()))?);
    Ok(disk)
}
