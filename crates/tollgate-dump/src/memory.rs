use std::collections::BTreeMap;

use crate::sourced::Sourced;

/// Partly known memory: bytes by linear address, each with its source line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Stretches by their first address. They do not overlap, and none goes past the last address.
    stretches: BTreeMap<u64, Stretch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    bytes: Vec<u8>,
    line: usize,
}

impl Memory {
    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Returns the number of known bytes.
    pub fn len(&self) -> usize {
        self.stretches.values().map(|stretch| stretch.bytes.len()).sum()
    }

    /// Returns the known stretches in order: address, bytes and line.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, &[u8], usize)> {
        self.stretches.iter().map(|(address, stretch)| (*address, stretch.bytes.as_slice(), stretch.line))
    }

    /// Returns the byte at an address.
    pub fn byte(&self, address: u64) -> Option<u8> {
        let (first, stretch) = self.stretches.range(..=address).next_back()?;
        stretch.bytes.get(usize::try_from(address - first).ok()?).copied()
    }

    /// Returns `length` bytes from `address`, if all are known.
    pub fn read(&self, address: u64, length: usize) -> Option<Sourced<Vec<u8>>> {
        let last = address.checked_add((length as u64).checked_sub(1)?)?;
        let mut found = Sourced { value: Vec::new(), lines: Vec::new() };
        for (first, stretch) in self.touching(address, last) {
            let next = address + found.value.len() as u64;
            let bytes = stretch.bytes.get(usize::try_from(next.checked_sub(first)?).ok()?..)?;
            found.value.extend(bytes.iter().take(length - found.value.len()));
            if found.lines.last() != Some(&stretch.line) {
                found.lines.push(stretch.line);
            }
        }
        (found.value.len() == length).then_some(found)
    }

    /// Returns whether bytes match those that are already known from `address` on.
    pub(crate) fn agrees(&self, address: u64, bytes: &[u8]) -> bool {
        let Some(last) = last(address, bytes) else { return true };
        self.touching(address, last).all(|(first, stretch)| {
            let begin = first.max(address);
            let (mine, theirs) =
                (&stretch.bytes[(begin - first) as usize..], &bytes[(begin - address) as usize..]);
            mine.iter().zip(theirs).all(|(a, b)| a == b)
        })
    }

    /// Adds bytes at `address`; those that are already known stay.
    pub(crate) fn insert(&mut self, address: u64, bytes: &[u8], line: usize) {
        let Some(last) = last(address, bytes) else { return };
        let taken: Vec<(u64, u64)> = self
            .touching(address, last)
            .filter_map(|(first, stretch)| Some((first, first.checked_add(stretch.bytes.len() as u64 - 1)?)))
            .collect();
        let mut next = address;
        for (first, end) in taken {
            if first > next {
                self.put(address, bytes, next, first - 1, line);
            }
            match end.checked_add(1) {
                Some(behind) => next = next.max(behind),
                None => return,
            }
        }
        if next <= last {
            self.put(address, bytes, next, last, line);
        }
    }

    fn put(&mut self, address: u64, bytes: &[u8], first: u64, last: u64, line: usize) {
        let part = &bytes[(first - address) as usize..=(last - address) as usize];
        self.stretches.insert(first, Stretch { bytes: part.to_vec(), line });
    }

    /// Returns the stretches that have a byte from `first` to `last`, by address.
    pub(crate) fn touching_lines(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64)> {
        self.touching(first, last).map(|(first, stretch)| (first, first + (stretch.bytes.len() as u64 - 1)))
    }

    fn touching(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, &Stretch)> {
        let before = self.stretches.range(..first).next_back();
        let before = before.filter(|(begin, stretch)| first - **begin < stretch.bytes.len() as u64);
        let range = (first <= last).then(|| self.stretches.range(first..=last));
        before.into_iter().chain(range.into_iter().flatten()).map(|(first, stretch)| (*first, stretch))
    }
}

fn last(address: u64, bytes: &[u8]) -> Option<u64> {
    address.checked_add((bytes.len() as u64).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_as_a_map_of_bytes(
            rows in prop::collection::vec((0u64..60, prop::collection::vec(0u8..3, 0..20)), 0..20),
            base in prop::sample::select(vec![0, 0x8003_f400, u64::MAX - 79]),
            at in 0u64..80, length in 0usize..20,
        ) {
            let (mut memory, mut model) = (Memory::default(), BTreeMap::new());
            for (line, (offset, bytes)) in rows.iter().enumerate() {
                let known = |index: usize| model.get(&(base + offset + index as u64)).copied();
                let agrees = bytes.iter().enumerate().all(|(i, byte)| known(i).is_none_or(|known| known == *byte));
                prop_assert_eq!(memory.agrees(base + offset, bytes), agrees);
                memory.insert(base + offset, bytes, line);
                for (index, byte) in bytes.iter().enumerate() {
                    model.entry(base + offset + index as u64).or_insert(*byte);
                }
            }
            prop_assert_eq!(memory.len(), model.len());
            prop_assert_eq!(memory.byte(base + at), model.get(&(base + at)).copied());
            let expected: Option<Vec<u8>> = (0..length as u64)
                .map(|i| base.checked_add(at)?.checked_add(i).and_then(|address| model.get(&address).copied()))
                .collect();
            let read = memory.read(base + at, length).map(|printed| printed.value);
            prop_assert_eq!(read, expected.filter(|bytes| !bytes.is_empty()));
        }
    }

    #[test]
    fn each_byte_has_its_line() {
        let mut memory = Memory::default();
        memory.insert(0x1000, &[1; 8], 3);
        memory.insert(0x1008, &[2; 8], 4);
        assert_eq!(memory.read(0x1006, 4), Some(Sourced { value: vec![1, 1, 2, 2], lines: vec![3, 4] }));
        assert_eq!(memory.read(0x1006, 11), None);
        assert_eq!(memory.read(u64::MAX, 2), None);
    }
}
