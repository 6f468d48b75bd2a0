use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::prelude::*;

pub(super) struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    #[error("an alignment of {0} bytes is not a power of two")]
    Alignment(usize),
    #[error("{length} bytes are not a multiple of {alignment}")]
    Length { length: usize, alignment: usize },
    #[error("no memory for {0} bytes")]
    Memory(usize),
}

impl From<Misfit> for Refusal {
    fn from(misfit: Misfit) -> Self {
        Self::Fail(misfit.to_string())
    }
}

impl Aligned {
    pub fn new(length: usize, alignment: usize) -> Result<Self, Misfit> {
        if !alignment.is_power_of_two() {
            return Err(Misfit::Alignment(alignment));
        }
        if length == 0 || !length.is_multiple_of(alignment) {
            return Err(Misfit::Length { length, alignment });
        }
        let layout = Layout::from_size_align(length, alignment).map_err(|_| Misfit::Memory(length))?;
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        Ok(Self { start: NonNull::new(start).ok_or(Misfit::Memory(length))?, layout })
    }

    pub fn filled(length: usize, alignment: usize, byte: u8) -> Result<Self, Misfit> {
        let mut buffer = Self::new(length, alignment)?;
        buffer.bytes_mut().fill(byte);
        Ok(buffer)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this size and zeroed; the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Returns a range in `buffer` that is aligned to `alignment` and to no larger power of two.
pub(super) fn exactly_aligned(
    buffer: &mut Aligned,
    alignment: usize,
    length: usize,
) -> Result<&mut [u8], Misfit> {
    if !alignment.is_power_of_two() || alignment >= buffer.layout.align() {
        return Err(Misfit::Alignment(alignment));
    }
    let available = buffer.layout.size();
    alignment
        .checked_add(length)
        .and_then(|end| buffer.bytes_mut().get_mut(alignment..end))
        .ok_or(Misfit::Length { length: available, alignment })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_buffer_is_aligned_and_filled(power in 0_u32..16, times in 1_usize..20, byte: u8) {
            let alignment = 1 << power;
            let mut buffer = Aligned::filled(times * alignment, alignment, byte).expect("a fit");
            prop_assert_eq!(buffer.bytes().as_ptr() as usize % alignment, 0);
            prop_assert_eq!(buffer.bytes().len(), times * alignment);
            prop_assert!(buffer.bytes().iter().all(|&found| found == byte));
            buffer.bytes_mut()[times * alignment - 1] = !byte;
            prop_assert_eq!(buffer.bytes()[times * alignment - 1], !byte);
        }

        #[test]
        fn a_misfit_is_refused(length in 0_usize..10_000, alignment in 0_usize..5_000) {
            let fits = alignment.is_power_of_two() && length > 0 && length % alignment == 0;
            prop_assert_eq!(Aligned::new(length, alignment).is_ok(), fits);
        }

        #[test]
        fn exact_alignment_is_not_exceeded(power in 0_u32..12, length in 1_usize..4096) {
            let alignment = 1 << power;
            let mut buffer = Aligned::new(8192, 4096).expect("a fit");
            let bytes = exactly_aligned(&mut buffer, alignment, length).expect("it fits");
            prop_assert_eq!((bytes.as_ptr() as usize).trailing_zeros(), power);
            prop_assert_eq!(bytes.len(), length);
        }
    }

    #[test]
    fn too_much_memory_is_refused() {
        let most = isize::MAX as usize / 4096 * 4096;
        assert_eq!(Aligned::new(most, 4096).err(), Some(Misfit::Memory(most)));
        let mut buffer = Aligned::new(8192, 4096).expect("a fit");
        assert!(exactly_aligned(&mut buffer, 4096, 1).is_err());
        assert!(exactly_aligned(&mut buffer, 1, usize::MAX).is_err());
    }
}
