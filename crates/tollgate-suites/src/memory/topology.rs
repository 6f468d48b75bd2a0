//! Sizes of working sets and pairs of processors, from the machine's caches.
//!
//! Sizes are powers of two from the machine's caches, so that two machines have most cases in common. Pairs of
//! processors are named by what they share, and by number only in the matrix.

use std::collections::BTreeMap;

use tollgate_engine::topology::MOST_PAIRED;

use crate::prelude::*;

/// The caches that two processors share, the closest relation first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    /// Hardware threads of one core: every cache.
    Siblings,
    SameL2,
    SameLastLevel,
    NoSharedCache,
    /// The kernel does not report it.
    Unknown,
}

impl Relation {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Siblings => "smt",
            Self::SameL2 => "l2",
            Self::SameLastLevel => "llc",
            Self::NoSharedCache => "apart",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Siblings => "hardware threads of one core",
            Self::SameL2 => "cores that share their L2 cache",
            Self::SameLastLevel => "cores that share the last-level cache",
            Self::NoSharedCache => "cores that share no cache",
            Self::Unknown => "processors with unknown shared caches",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub from: usize,
    pub to: usize,
    pub relation: Relation,
}

/// Returns one pair for each relation that exists among the allowed processors, the closest first: the default
/// processor, and the one with the nearest number.
pub(super) fn usual_pairs(machine: &Topology) -> Vec<Pair> {
    let home = machine.home;
    let mut nearest: BTreeMap<Relation, (usize, Pair)> = BTreeMap::new();
    let some: Vec<usize> = machine.known.keys().copied().collect();
    for pair in pairs_of(&some, machine) {
        // Pairs with the default processor come first; other pairs serve relations that it does not have.
        let pair = if Some(pair.to) == home { Pair { from: pair.to, to: pair.from, ..pair } } else { pair };
        let away = if Some(pair.from) == home { 0 } else { usize::MAX / 2 };
        let distance = pair.from.abs_diff(pair.to) + away;
        let best = nearest.entry(pair.relation).or_insert((distance, pair));
        if distance < best.0 {
            *best = (distance, pair);
        }
    }
    nearest.into_values().map(|(_, pair)| pair).collect()
}

/// Returns every pair of the allowed processors; if there are many, pairs of some evenly spaced ones.
pub(super) fn every_pair(machine: &Topology) -> Vec<Pair> {
    pairs_of(&machine.evenly_spaced(), machine)
}

/// A note on the processors of [`every_pair`], if they are not all.
pub(super) fn left_out(allowed: &[usize]) -> Option<String> {
    let all = allowed.len();
    (all > MOST_PAIRED).then(|| format!("pairs of {MOST_PAIRED} evenly spaced processors of {all}"))
}

fn pairs_of(processors: &[usize], machine: &Topology) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (at, &from) in processors.iter().enumerate() {
        for &to in &processors[at + 1..] {
            pairs.push(Pair { from, to, relation: relation(machine, from, to) });
        }
    }
    pairs
}

fn relation(machine: &Topology, a: usize, b: usize) -> Relation {
    let Some(of_a) = machine.known.get(&a) else { return Relation::Unknown };
    let last = of_a.caches.iter().map(|cache| cache.level).max();
    let shares = |level: Option<u8>| {
        of_a.caches.iter().any(|cache| Some(cache.level) == level && cache.shared.contains(&b))
    };
    if of_a.siblings.contains(&b) {
        Relation::Siblings
    } else if last > Some(2) && shares(Some(2)) {
        Relation::SameL2
    } else if shares(last) {
        Relation::SameLastLevel
    } else if last.is_some() {
        Relation::NoSharedCache
    } else {
        Relation::Unknown
    }
}

/// Sizes of a processor's data caches, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub l1: u64,
    pub l2: u64,
    pub last: u64,
}

impl Sizes {
    /// Returns the default processor's sizes. Unknown ones become the smallest of processors since 2010.
    pub(super) fn of(machine: &Topology) -> Self {
        let caches = machine.caches();
        let of_level = |level: u8| caches.iter().find(|cache| cache.level == level).map(|cache| cache.bytes);
        let l1 = of_level(1).unwrap_or(32 << 10);
        let l2 = of_level(2).unwrap_or(256 << 10).max(l1);
        let last = caches.iter().max_by_key(|cache| cache.level).map_or(2 << 20, |cache| cache.bytes);
        Self { l1, l2, last: last.max(l2) }
    }

    pub(super) fn shared(context: &mut Context) -> Self {
        Self::of(&context.topology())
    }
}

/// Counts the allowed processors that share the default one's last-level cache, including itself; 1 if unknown.
pub(super) fn sharers(machine: &Topology) -> u64 {
    let last = machine.caches().iter().max_by_key(|cache| cache.level);
    let is_allowed = |cpu: &&usize| machine.processors.contains(cpu);
    last.map_or(1, |cache| cache.shared.iter().filter(is_allowed).count().max(1)) as u64
}

#[cfg(test)]
mod tests {
    use tollgate_engine::topology::{Cache, Processor};

    use super::*;

    fn cache(level: u8, kib: u64, shared: &[usize]) -> Cache {
        Cache { level, bytes: kib << 10, shared: shared.to_vec() }
    }

    /// Two packages of two cores. The first has two threads per core, numbered as Linux numbers them.
    fn machine() -> Topology {
        let of = |siblings: &[usize], l2: &[usize], l3: &[usize]| Processor {
            siblings: siblings.to_vec(),
            caches: vec![cache(1, 32, &[]), cache(2, 512, l2), cache(3, 8192, l3)],
        };
        let known = BTreeMap::from([
            (0, of(&[0, 4], &[0, 4], &[0, 1, 4])),
            (4, of(&[0, 4], &[0, 4], &[0, 1, 4])),
            (1, of(&[1], &[1], &[0, 1, 4])),
            (2, of(&[2], &[2, 3], &[2, 3])),
            (3, of(&[3], &[2, 3], &[2, 3])),
        ]);
        Topology { processors: (0..5).collect(), home: Some(4), known, ..Topology::default() }
    }

    #[test]
    fn the_closest_relation_counts() {
        let machine = machine();
        let relations = [(0, 4), (0, 1), (2, 3), (1, 3)].map(|(a, b)| relation(&machine, a, b));
        assert_eq!(
            relations,
            [Relation::Siblings, Relation::SameLastLevel, Relation::SameL2, Relation::NoSharedCache]
        );
        assert_eq!(relation(&machine, 7, 8), Relation::Unknown);
    }

    #[test]
    fn where_the_second_level_is_the_last_one_it_is_shared_as_such() {
        let caches = vec![cache(1, 32, &[0]), cache(2, 4096, &[0, 1])];
        let known = BTreeMap::from([(0, Processor { siblings: Vec::new(), caches })]);
        let machine = Topology { known, ..Topology::default() };
        assert_eq!(relation(&machine, 0, 1), Relation::SameLastLevel);
    }

    #[test]
    fn a_pair_stands_for_each_relation_the_default_processor_first() {
        let pair = |from, to, relation| Pair { from, to, relation };
        let usual = [
            pair(4, 0, Relation::Siblings),
            pair(2, 3, Relation::SameL2),
            pair(4, 1, Relation::SameLastLevel),
            pair(4, 3, Relation::NoSharedCache),
        ];
        assert_eq!(usual_pairs(&machine()), usual);
        assert_eq!(every_pair(&machine()).len(), 10);
        let alone = Topology { known: BTreeMap::from([(0, Processor::default())]), ..machine() };
        assert_eq!((usual_pairs(&alone), sharers(&machine()), sharers(&alone)), (Vec::new(), 3, 1));
    }

    #[test]
    fn sizes_are_those_of_the_default_processor_and_least_ones_where_unknown() {
        let sizes = Sizes { l1: 32 << 10, l2: 512 << 10, last: 8 << 20 };
        assert_eq!(Sizes::of(&machine()), sizes);
        let unknown = Topology { known: BTreeMap::new(), ..machine() };
        assert_eq!(Sizes::of(&unknown), Sizes { l1: 32 << 10, l2: 256 << 10, last: 2 << 20 });
        let by_cpuid = Topology { by_cpuid: vec![cache(1, 48, &[]), cache(2, 2048, &[])], ..unknown };
        assert_eq!(Sizes::of(&by_cpuid), Sizes { l1: 48 << 10, l2: 2 << 20, last: 2 << 20 });
    }
}
