//! A disk: the loader, and behind it the kernel.

use super::sector::{self, Kernel};
use super::{DISK, SECTOR};
use crate::LabError;
use crate::guest::Image;

/// The bytes of the disk.
///
/// # Errors
/// [`LabError::TooLarge`]
pub(super) fn file(image: &Image) -> Result<Vec<u8>, LabError> {
    let kernel = image.bytes();
    let mut loader = sector::loader(Kernel { from: 1, bytes: kernel.len(), sector: SECTOR })?;
    let length = (SECTOR + kernel.len()).next_multiple_of(DISK);
    sector::partition(&mut loader, (length / SECTOR) as u32);
    let mut disk = loader.to_vec();
    disk.extend(kernel);
    disk.resize(length, 0);
    Ok(disk)
}
