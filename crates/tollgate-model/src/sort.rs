//! Small sorts share one instantiation, which sorts indices in place of items.
//!
//! The standard library's sorts are instantiated for each type and each comparison, 5 KiB each; 75 of them were nearly
//! 400 KB of the program. Lists that are shown do not need their speed. Samples are sorted with the standard library.

use std::cmp::Ordering;

/// Sorts by a comparison; equal items keep their order.
pub fn by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted_indices(items.len(), &|a, b| compare(&items[a], &items[b]));
    // The permutation is applied cycle by cycle, each once.
    for start in 0..order.len() {
        let mut at = start;
        while order[at] != start {
            let from = std::mem::replace(&mut order[at], at);
            items.swap(at, from);
            at = from;
        }
        order[at] = at;
    }
}

/// Sorts by a key; items of the same key keep their order.
pub fn by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts in ascending order.
pub fn ascending<T: Ord>(items: &mut [T]) {
    by(items, T::cmp);
}

/// The indices of the items in sorted order.
fn sorted_indices(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..length).collect();
    indices.sort_by(|&a, &b| compare(a, b));
    indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(items in prop::collection::vec((0..20_u8, any::<u16>()), 0..200)) {
            let (mut ours, mut theirs) = (items.clone(), items.clone());
            by_key(&mut ours, |item| item.0);
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(&ours, &theirs);
            by(&mut ours, |a, b| b.cmp(a));
            theirs.sort_by(|a, b| b.cmp(a));
            prop_assert_eq!(&ours, &theirs);
            ascending(&mut ours);
            theirs.sort();
            prop_assert_eq!(ours, theirs);
        }
    }
}
