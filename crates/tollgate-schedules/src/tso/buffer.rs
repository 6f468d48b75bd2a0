//! The stores of a processor that have not reached memory.

pub type Address = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    pub process: u8,
    pub address: Address,
    pub value: u8,
}

/// A queue of stores, two bytes each, the oldest one lowest. An empty slot is 0, which no store encodes to, so equal queues
/// are equal numbers.
///
/// Processors have a few dozen slots, this has eight; a store waits while it is full. That hides nothing. With a fence
/// after `x = i` and one after `y = i`, no path through Lamport's algorithm makes more than five stores between two fences:
/// `b[i] = 0`, `y = 0`, `b[i] = 0`, and in the next round `b[i] = 1`, `x = i`. On one processor every process reads all
/// stores in their order, whether they wait or not. And if two processes hold the lock with eight slots, they also do so
/// with more. For a user's program with more than eight stores between fences, some orders are not visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Buffer(u128);

const SLOT: u32 = u16::BITS;

impl Buffer {
    pub const SLOTS: u32 = u128::BITS / SLOT;

    pub const fn len(self) -> u32 {
        Self::SLOTS - self.0.leading_zeros() / SLOT
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Appends a store; `None` if the buffer is full.
    pub const fn with(self, store: Store) -> Option<Self> {
        match self.len() {
            Self::SLOTS => None,
            len => Some(Self(self.0 | (store.packed() as u128) << (SLOT * len))),
        }
    }

    pub const fn oldest(self) -> Option<(Store, Self)> {
        if self.is_empty() { None } else { Some((Store::unpacked(self.0 as u16), Self(self.0 >> SLOT))) }
    }

    pub fn newest_at(self, address: Address) -> Option<u8> {
        self.stores().filter(|store| store.address == address).last().map(|store| store.value)
    }

    pub fn stores(self) -> impl Iterator<Item = Store> {
        std::iter::successors(self.oldest(), |(_, others)| others.oldest()).map(|(store, _)| store)
    }
}

impl Store {
    /// Two bits for the process, five for the address, eight for the value; never 0.
    const fn packed(self) -> u16 {
        (self.process as u16) << 13 | (self.address as u16 + 1) << 8 | self.value as u16
    }

    const fn unpacked(word: u16) -> Self {
        Self { process: (word >> 13) as u8, address: (word >> 8 & 31) as u8 - 1, value: word as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_comes_out_as_it_went_in() {
        for process in 0..4 {
            for address in 0..16 {
                for value in [0, 1, 7, 127, 255] {
                    let store = Store { process, address, value };
                    let buffer = Buffer::default().with(store).unwrap();
                    assert_eq!(buffer.len(), 1);
                    assert_eq!(buffer.oldest(), Some((store, Buffer::default())));
                }
            }
        }
    }

    #[test]
    fn first_in_is_first_out_and_the_newest_is_read() {
        let store = |address, value| Store { process: 1, address, value };
        let mut buffer = Buffer::default();
        assert_eq!((buffer.is_empty(), buffer.oldest(), buffer.newest_at(0)), (true, None, None));
        for value in 0..4 {
            buffer = buffer.with(store(0, value)).unwrap().with(store(1, value)).unwrap();
        }
        assert_eq!((buffer.len(), buffer.with(store(2, 0))), (Buffer::SLOTS, None));
        assert_eq!((buffer.newest_at(0), buffer.newest_at(1), buffer.newest_at(2)), (Some(3), Some(3), None));
        let values: Vec<u8> = buffer.stores().map(|store| store.value).collect();
        assert_eq!(values, [0, 0, 1, 1, 2, 2, 3, 3]);
        let (oldest, others) = buffer.oldest().unwrap();
        assert_eq!((oldest, others.len(), others.newest_at(0)), (store(0, 0), 7, Some(3)));
    }
}
