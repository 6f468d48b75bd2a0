//! Passes through a working set: where the next chunk is, and the check of what was moved.

use super::loops::Op;
use crate::prelude::*;

/// A page of 4 KiB, the operation that is measured.
pub const PAGE: u64 = 4 << 10;
/// Maximum length of a chunk. An iteration takes some microseconds, so its first and last instructions do not matter.
const LARGEST_CHUNK: u64 = 256 << 10;

#[derive(Debug, Clone, Copy)]
pub struct Set {
    pub op: Op,
    pub start: u64,
    pub to: u64,
    /// Size of the whole set. Half of a copy's bytes are its source, and half its destination.
    pub bytes: u64,
}

impl Set {
    /// Bytes of a pass: those that are read, written or copied until it begins again.
    pub fn of_a_pass(&self) -> u64 {
        if self.op == Op::Copy { self.bytes / 2 } else { self.bytes }
    }

    pub fn chunk(&self) -> u64 {
        let pass = self.of_a_pass();
        (1 << pass.trailing_zeros()).min(LARGEST_CHUNK)
    }

    pub fn words(&self, offset: u64, value: u64) -> [u64; 7] {
        let last = if self.op == Op::Copy { self.to.wrapping_sub(self.start) } else { value };
        [self.start, self.chunk(), offset, self.of_a_pass(), last, 0, 0]
    }

    /// Returns the sum of the words in `bytes` bytes from `offset` on, where each word is its own index.
    fn sum(&self, offset: u64, bytes: u64) -> u64 {
        // Sum of the words below an offset.
        let until = |offset: u64| {
            let words = u128::from(offset / 8);
            (words * words.saturating_sub(1) / 2) as u64
        };
        let (passes, rest) = (bytes / self.of_a_pass(), bytes % self.of_a_pass());
        let pass = until(self.of_a_pass());
        let end = offset + rest;
        let part = match end.checked_sub(self.of_a_pass()) {
            Some(wrapped) => pass.wrapping_sub(until(offset)).wrapping_add(until(wrapped)),
            None => until(end).wrapping_sub(until(offset)),
        };
        pass.wrapping_mul(passes).wrapping_add(part)
    }

    /// Returns the offsets of some evenly spaced pages in `bytes` bytes from `offset` on, each at most once.
    fn pages(&self, offset: u64, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        /// Words that are checked before a batch are cached in it. One line in a thousand does not matter.
        const MOST: u64 = 16;
        let pass = self.of_a_pass();
        let number = bytes.min(pass) / PAGE;
        let apart = number.div_ceil(MOST).max(1);
        (0..number).step_by(apart as usize).map(move |page| (offset + page * PAGE) % pass)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Moved {
    offset: u64,
    bytes: u64,
    value: u64,
}

/// Sets each word to its own index, so that sums and copies are known.
pub fn number(words: &mut [u64]) {
    (0..).zip(words).for_each(|(number, word)| *word = number);
}

impl Set {
    /// Prepares the check of iterations from `offset` on, which store `value`: overwrites the checked words in the
    /// destination `written`, where an earlier batch may have left the right values.
    pub fn expect(&self, written: &mut [u64], offset: u64, iterations: u64, value: u64) -> Moved {
        let moved = self.moved(offset, iterations.saturating_mul(self.chunk()), value);
        if matches!(self.op, Op::Copy | Op::Zero) {
            for at in self.pages(offset, moved.bytes).flat_map(looked_at) {
                if let Some(word) = written.get_mut((at / 8) as usize) {
                    *word = u64::MAX;
                }
            }
        }
        moved
    }

    pub fn moved(&self, offset: u64, bytes: u64, value: u64) -> Moved {
        Moved { offset, bytes, value }
    }

    /// Checks the sum of the words read, or the first and the last word of some written pages.
    pub fn check(&self, written: &[u64], moved: Moved, sum: u64) -> Result<()> {
        let Moved { offset, bytes, value } = moved;
        if self.op == Op::Read {
            let right = self.sum(offset, bytes);
            return if sum == right {
                Ok(())
            } else {
                Err(fail!("the sum of the words read is {sum:#x} instead of {right:#x}"))
            };
        }
        let byte = (value & 0xff) * 0x0101_0101_0101_0101;
        for at in self.pages(offset, bytes).flat_map(looked_at) {
            let right = match self.op {
                Op::Copy => at / 8,
                Op::Fill => byte,
                Op::Zero => 0,
                _ => value,
            };
            let found = written.get((at / 8) as usize).copied();
            if found != Some(right) {
                return Err(fail!("the word at byte {at} is {found:#x?} instead of {right:#x}"));
            }
        }
        Ok(())
    }
}

fn looked_at(page: u64) -> [u64; 2] {
    [page, page + PAGE - 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_divide_a_pass_and_sums_wrap_with_it() {
        for (op, kib) in [(Op::Read, 16), (Op::Read, 192), (Op::Copy, 16), (Op::Read, 3 << 10)] {
            let set = Set { op, start: 0, to: 0, bytes: kib << 10 };
            assert_eq!((set.of_a_pass() % set.chunk(), set.chunk() % PAGE), (0, 0), "{op:?} {kib}");
            for (from, iterations) in [(0, 1), (0, 7), (set.of_a_pass() - set.chunk(), 3)] {
                let words = set.of_a_pass() / 8;
                let first = from / 8;
                let number = iterations * set.chunk() / 8;
                let slow = (0..number).map(|at| (first + at) % words).fold(0_u64, u64::wrapping_add);
                assert_eq!(set.sum(from, iterations * set.chunk()), slow, "{op:?} {kib} {from} {iterations}");
            }
        }
    }

    #[test]
    fn a_wrong_word_is_found() {
        let set = Set { op: Op::Copy, start: 0, to: 0, bytes: 64 << 10 };
        let (mut source, mut written) = (vec![0; 4 << 10], vec![0; 4 << 10]);
        number(&mut source);
        let expected = set.expect(&mut written, 0, 1, 0);
        assert!(set.check(&written, expected, 0).is_err(), "nothing was copied");
        written.copy_from_slice(&source);
        assert_eq!(set.check(&written, expected, 0), Ok(()));
        written[512] ^= 1;
        assert!(set.check(&written, expected, 0).is_err());
    }
}
