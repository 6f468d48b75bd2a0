//! A stable sort that is compiled once.
//!
//! `slice::sort_by` is compiled anew for each closure, to 3 or 4 kB: by a hundred of them the program had 349 kB more. Here the
//! places are sorted, by one function for all types, and a type adds the exchange of its items. A comparison costs an indirect call
//! more: lists of a million take `slice::sort_by`.

use std::cmp::Ordering;

/// Sorts slices of any type by one sort.
pub trait Ordered<T> {
    /// Sorts by a comparison. Equal items stay in their order, as by `slice::sort_by`.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key. Equal items stay in their order, as by `slice::sort_by_key`.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

impl<T> Ordered<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let exchanges = exchanges(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        exchanges.into_iter().for_each(|(one, other)| self.swap(one, other));
    }
}

/// The pairs of places whose items, exchanged one pair after the other, are sorted.
fn exchanges(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut from: Vec<usize> = (0..len).collect();
    #[expect(clippy::disallowed_methods, reason = "it is the one sort of all")]
    from.sort_by(|&one, &other| compare(one, other));
    let mut exchanges = Vec::new();
    for first in 0..len {
        // A cycle of places: each gets the item of the next.
        let mut place = first;
        while from[place] != first {
            let next = from[place];
            exchanges.push((place, next));
            from[place] = place;
            place = next;
        }
        from[place] = place;
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(items: Vec<(u8, u16)>) {
            let (mut ours, mut theirs) = (items.clone(), items);
            ours.order_by_key(|item| item.0);
            #[expect(clippy::disallowed_methods, reason = "it is what the other is held against")]
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
