//! Buffers for direct I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use tollgate_engine::Refusal;

/// Bytes at an address that is a multiple of a power of two, as many as a multiple of it. Every byte has been
/// written: there is no other way to have one.
pub(super) struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
}

/// Why there is no such buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    /// Addresses are aligned to powers of two alone.
    #[error("an alignment of {0} bytes is not a power of two")]
    Alignment(usize),
    /// A buffer of none, or of a part of its alignment.
    #[error("{length} bytes are not a multiple of {alignment}")]
    Length {
        /// As asked for.
        length: usize,
        /// As asked for.
        alignment: usize,
    },
    /// More than an address can be, or than there is memory.
    #[error("there is no memory for {0} bytes")]
    Memory(usize),
}

impl From<Misfit> for Refusal {
    fn from(misfit: Misfit) -> Self {
        Self::Fail(misfit.to_string())
    }
}

impl Aligned {
    /// `length` bytes of zero.
    ///
    /// # Errors
    /// See [`Misfit`].
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

    /// Full of `byte`.
    ///
    /// # Errors
    /// See [`Misfit`].
    pub fn filled(length: usize, alignment: usize, byte: u8) -> Result<Self, Misfit> {
        let mut buffer = Self::new(length, alignment)?;
        buffer.bytes_mut().fill(byte);
        Ok(buffer)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this size, zeroed, and borrowed as we are.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; nobody else borrows them meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// An address that is a multiple of `alignment` and of no larger power of two, in a buffer of twice as much and more:
/// where bytes begin to be misaligned for whoever wants more.
///
/// # Errors
/// [`Misfit`] where `alignment` is none, or `buffer` holds no such range.
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
        fn what_is_made_is_aligned_whole_and_filled(power in 0_u32..16, times in 1_usize..20, byte: u8) {
            let alignment = 1 << power;
            let mut buffer = Aligned::filled(times * alignment, alignment, byte).expect("a fit");
            prop_assert_eq!(buffer.bytes().as_ptr() as usize % alignment, 0);
            prop_assert_eq!(buffer.bytes().len(), times * alignment);
            prop_assert!(buffer.bytes().iter().all(|&found| found == byte));
            buffer.bytes_mut()[times * alignment - 1] = !byte;
            prop_assert_eq!(buffer.bytes()[times * alignment - 1], !byte);
        }

        #[test]
        fn what_does_not_fit_is_not_made(length in 0_usize..10_000, alignment in 0_usize..5_000) {
            let fits = alignment.is_power_of_two() && length > 0 && length % alignment == 0;
            prop_assert_eq!(Aligned::new(length, alignment).is_ok(), fits);
        }

        #[test]
        fn exactly_aligned_is_no_better(power in 0_u32..12, length in 1_usize..4096) {
            let alignment = 1 << power;
            let mut buffer = Aligned::new(8192, 4096).expect("a fit");
            let bytes = exactly_aligned(&mut buffer, alignment, length).expect("it fits");
            prop_assert_eq!((bytes.as_ptr() as usize).trailing_zeros(), power);
            prop_assert_eq!(bytes.len(), length);
        }
    }

    #[test]
    fn nobody_has_so_much_memory() {
        let most = isize::MAX as usize / 4096 * 4096;
        assert_eq!(Aligned::new(most, 4096).err(), Some(Misfit::Memory(most)));
        let mut buffer = Aligned::new(8192, 4096).expect("a fit");
        assert!(exactly_aligned(&mut buffer, 4096, 1).is_err());
        assert!(exactly_aligned(&mut buffer, 1, usize::MAX).is_err());
    }
}
