//! Caches, and what two processors share. Source: /sys/devices/system/cpu/cpu*/{cache,topology}
//! (Documentation/ABI/testing/sysfs-devices-system-cpu); without cache entries there, CPUID.
//!
//! Sizes are powers of two from the machine's caches, so that two machines have most cases in common. Pairs
//! of processors are named by what they share, and by number only in the matrix.

use std::{collections::BTreeMap, fs};

use tollgate_os::cpuid::cpuid;

use crate::prelude::*;

const CPU: &str = "/sys/devices/system/cpu/cpu";

/// The caches that two processors share, the closest relation first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    /// Hardware threads of one core: every cache.
    Siblings,
    /// The cache of level 2.
    SameL2,
    /// The last-level cache.
    SameLastLevel,
    /// Nothing.
    Isolated,
    /// The kernel does not say.
    Unknown,
}

impl Relation {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Siblings => "smt",
            Self::SameL2 => "l2",
            Self::SameLastLevel => "llc",
            Self::Isolated => "apart",
            Self::Unknown => "unknown",
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Siblings => "hardware threads of one core",
            Self::SameL2 => "cores that share their L2 cache",
            Self::SameLastLevel => "cores that share the last-level cache",
            Self::Isolated => "cores that share no cache",
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

/// One pair for each relation that exists among the allowed processors, the closest first: the default processor, and
/// the nearest number with the relation.
pub(super) fn usual_pairs(allowed: &[usize]) -> Vec<Pair> {
    let home = cpu::usual(allowed);
    let mut nearest: BTreeMap<Relation, (usize, Pair)> = BTreeMap::new();
    let some = around(allowed, home);
    let knows = Kernel::read(&some);
    for pair in pairs_of(&some, &knows) {
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

/// Candidate processors for relations: those with the nearest numbers to `home`, its hardware threads, and some
/// evenly spaced ones. Reading hundreds would delay the start of a run.
fn around(allowed: &[usize], home: Option<usize>) -> Vec<usize> {
    const NEAREST: usize = 32;
    const EVENLY: usize = 32;
    let mut by_distance = allowed.to_vec();
    by_distance.sort_by_key(|&cpu| home.map_or(0, |home| cpu.abs_diff(home)));
    let threads = home.map(siblings).unwrap_or_default();
    let mut some: Vec<usize> = by_distance.into_iter().take(NEAREST).collect();
    some.extend(evenly(allowed, EVENLY));
    some.extend(threads.into_iter().filter(|cpu| allowed.contains(cpu)));
    some.sort_unstable();
    some.dedup();
    some
}

/// Greatest number of processors whose pairs are all measured: the pairs grow with its square.
const MOST_PROCESSORS: usize = 24;

/// Every pair of the allowed processors; of many processors, pairs of some evenly spaced ones.
pub(super) fn every_pair(allowed: &[usize]) -> Vec<Pair> {
    let some = evenly(allowed, MOST_PROCESSORS);
    let knows = Kernel::read(&some);
    pairs_of(&some, &knows)
}

/// A note on the processors of [`every_pair`], if they are not all.
pub(super) fn left_out(allowed: &[usize]) -> Option<String> {
    let all = allowed.len();
    (all > MOST_PROCESSORS).then(|| format!("pairs of {MOST_PROCESSORS} evenly spaced processors of {all}"))
}

/// At most so many of them, evenly spaced, including the first and the last.
fn evenly(all: &[usize], most: usize) -> Vec<usize> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).map(|at| all[at * (all.len() - 1) / (most - 1)]).collect()
}

fn pairs_of(processors: &[usize], kernel: &Kernel) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (at, &from) in processors.iter().enumerate() {
        for &to in &processors[at + 1..] {
            pairs.push(Pair { from, to, relation: kernel.relation(from, to) });
        }
    }
    pairs
}

/// The kernel's topology of some processors, each file read once.
struct Kernel {
    siblings: BTreeMap<usize, Vec<usize>>,
    caches: BTreeMap<usize, Vec<Cache>>,
}

impl Kernel {
    fn read(processors: &[usize]) -> Self {
        let siblings = |&cpu: &usize| (cpu, siblings(cpu));
        let caches = |&cpu: &usize| (cpu, caches_in_sysfs(cpu));
        Self {
            siblings: processors.iter().map(siblings).collect(),
            caches: processors.iter().map(caches).collect(),
        }
    }

    fn relation(&self, a: usize, b: usize) -> Relation {
        let shares = |level: &dyn Fn(&Cache) -> bool| {
            self.caches
                .get(&a)
                .is_some_and(|caches| caches.iter().any(|cache| level(cache) && cache.shared.contains(&b)))
        };
        let last = self.caches.get(&a).and_then(|caches| caches.iter().map(|cache| cache.level).max());
        if self.siblings.get(&a).is_some_and(|siblings| siblings.contains(&b)) {
            Relation::Siblings
        } else if last > Some(2) && shares(&|cache| cache.level == 2) {
            Relation::SameL2
        } else if shares(&|cache| Some(cache.level) == last) {
            Relation::SameLastLevel
        } else if last.is_some() {
            Relation::Isolated
        } else {
            Relation::Unknown
        }
    }
}

/// A cache that holds data.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cache {
    level: u8,
    bytes: u64,
    /// The processors that share it; empty if unknown.
    shared: Vec<usize>,
}

/// Sizes of a processor's data caches, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub l1: u64,
    pub l2: u64,
    pub last: u64,
}

impl Sizes {
    /// Sizes of the default one of these processors; if unknown, the least sizes of processors since 2010.
    pub(super) fn here(allowed: &[usize]) -> Self {
        match caches_in_sysfs(cpu::usual(allowed).unwrap_or(0)) {
            none if none.is_empty() => Self::of(&caches_by_cpuid()),
            caches => Self::of(&caches),
        }
    }

    /// The same for the instances of a bench process, of which many ask.
    pub(super) fn shared(context: &mut Context) -> Self {
        context.shared("caches", |context| Self::here(&context.processors))
    }

    fn of(caches: &[Cache]) -> Self {
        let of_level = |level: u8| caches.iter().find(|cache| cache.level == level).map(|cache| cache.bytes);
        let l1 = of_level(1).unwrap_or(32 << 10);
        let l2 = of_level(2).unwrap_or(256 << 10).max(l1);
        let last = caches.iter().max_by_key(|cache| cache.level).map_or(2 << 20, |cache| cache.bytes);
        Self { l1, l2, last: last.max(l2) }
    }
}

/// The allowed processors that share the last-level cache of the default one, itself among them; 1 if unknown.
pub(super) fn sharers(allowed: &[usize]) -> u64 {
    let caches = caches_in_sysfs(cpu::usual(allowed).unwrap_or(0));
    let last = caches.into_iter().max_by_key(|cache| cache.level);
    let shared = last.map_or(0, |cache| cache.shared.iter().filter(|cpu| allowed.contains(cpu)).count());
    shared.max(1) as u64
}

/// The processor's hardware threads, itself among them.
fn siblings(cpu: usize) -> Vec<usize> {
    let read = |name: &str| fs::read_to_string(format!("{CPU}{cpu}/topology/{name}"));
    // The second name is from before Linux 5.3.
    let text = read("core_cpus_list").or_else(|_| read("thread_siblings_list"));
    text.map(|text| cpu::parse_list(&text)).unwrap_or_default()
}

fn caches_in_sysfs(cpu: usize) -> Vec<Cache> {
    /// An upper bound of the number of caches.
    const MOST: usize = 16;
    (0..MOST).map_while(|index| cache_at(&format!("{CPU}{cpu}/cache/index{index}"))).flatten().collect()
}

/// None if there is no such cache; an inner None for an instruction cache.
fn cache_at(directory: &str) -> Option<Option<Cache>> {
    let read = |name: &str| fs::read_to_string(format!("{directory}/{name}")).ok();
    let (level, kind) = (read("level")?, read("type")?);
    if kind.trim() == "Instruction" {
        return Some(None);
    }
    let cache = || {
        Some(Cache {
            level: level.trim().parse().ok()?,
            bytes: size(read("size")?.trim())?,
            shared: cpu::parse_list(&read("shared_cpu_list").unwrap_or_default()),
        })
    };
    Some(cache())
}

/// `48K`.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix('K') {
        Some(digits) => (digits, 10),
        None => text.strip_suffix('M').map_or((text, 0), |digits| (digits, 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

/// The caches by CPUID: leaf 4 (Intel SDM volume 2A), or 8000_001DH (AMD APM volume 3, appendix E).
fn caches_by_cpuid() -> Vec<Cache> {
    /// An upper bound of the number of caches.
    const MOST: u32 = 16;
    let offers = |leaf: u32| cpuid(leaf & 0x8000_0000, 0).eax >= leaf;
    let is_first = |leaf: &u32| offers(*leaf) && cpuid(*leaf, 0).eax & 0x1f != 0;
    let Some(leaf) = [4, 0x8000_001d].into_iter().find(is_first) else { return Vec::new() };
    let caches = (0..MOST).map(|index| cpuid(leaf, index)).take_while(|answer| answer.eax & 0x1f != 0);
    let holds_data = |answer: &std::arch::x86_64::CpuidResult| answer.eax & 0x1f != 2;
    let cache = |answer: std::arch::x86_64::CpuidResult| {
        let field = |shift: u32, bits: u32| u64::from(answer.ebx >> shift & ((1 << bits) - 1)) + 1;
        Cache {
            level: (answer.eax >> 5 & 7) as u8,
            bytes: field(22, 10) * field(12, 10) * field(0, 12) * (u64::from(answer.ecx) + 1),
            shared: Vec::new(),
        }
    };
    caches.filter(holds_data).map(cache).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u8, kib: u64, shared: &[usize]) -> Cache {
        Cache { level, bytes: kib << 10, shared: shared.to_vec() }
    }

    /// Two packages of two cores; the first has two threads a core, numbered as Linux numbers them.
    fn kernel() -> Kernel {
        let siblings =
            BTreeMap::from([(0, vec![0, 4]), (4, vec![0, 4]), (1, vec![1]), (2, vec![2]), (3, vec![3])]);
        let of = |l2: &[usize], l3: &[usize]| vec![cache(1, 32, &[]), cache(2, 512, l2), cache(3, 8192, l3)];
        let caches = BTreeMap::from([
            (0, of(&[0, 4], &[0, 1, 4])),
            (4, of(&[0, 4], &[0, 1, 4])),
            (1, of(&[1], &[0, 1, 4])),
            (2, of(&[2, 3], &[2, 3])),
            (3, of(&[2, 3], &[2, 3])),
        ]);
        Kernel { siblings, caches }
    }

    #[test]
    fn the_closest_relation_counts() {
        let kernel = kernel();
        let relations = [(0, 4), (0, 1), (2, 3), (1, 3)].map(|(a, b)| kernel.relation(a, b));
        assert_eq!(
            relations,
            [Relation::Siblings, Relation::SameLastLevel, Relation::SameL2, Relation::Isolated]
        );
        assert_eq!(kernel.relation(7, 8), Relation::Unknown);
    }

    #[test]
    fn where_the_second_level_is_the_last_one_it_is_shared_as_such() {
        let caches = BTreeMap::from([(0, vec![cache(1, 32, &[0]), cache(2, 4096, &[0, 1])])]);
        let kernel = Kernel { siblings: BTreeMap::new(), caches };
        assert_eq!(kernel.relation(0, 1), Relation::SameLastLevel);
    }

    #[test]
    fn few_processors_give_every_pair_and_many_some() {
        let all: Vec<usize> = (0..576).collect();
        let some = evenly(&all, MOST_PROCESSORS);
        assert_eq!((some.len(), some[0], some[MOST_PROCESSORS - 1]), (MOST_PROCESSORS, 0, 575));
        assert!(some.windows(2).all(|two| two[0] < two[1]), "{some:?}");
        assert_eq!(evenly(&[3, 9], MOST_PROCESSORS), [3, 9]);
        assert_eq!(pairs_of(&[0, 1, 2, 3], &kernel()).len(), 6);
    }

    #[test]
    fn relations_are_found_nearby_and_far_away() {
        let all: Vec<usize> = (0..576).collect();
        let some = around(&all, Some(575));
        assert!(
            some.len() < 80 && some.contains(&574) && some.contains(&0) && some.contains(&575),
            "{some:?}"
        );
        assert_eq!(around(&[3, 5], None), [3, 5]);
        assert!(around(&[], None).is_empty());
    }

    #[test]
    fn sizes_rise_and_pairs_are_of_allowed_processors() {
        let allowed = cpu::allowed();
        let sizes = Sizes::here(&allowed);
        assert!(sizes.l1 >= 8 << 10 && sizes.l1 <= sizes.l2 && sizes.l2 <= sizes.last, "{sizes:?}");
        let usual = usual_pairs(&allowed);
        assert_eq!(usual.is_empty(), allowed.len() < 2);
        for pair in usual.iter().chain(&every_pair(&allowed)) {
            assert!(
                pair.from != pair.to && allowed.contains(&pair.from) && allowed.contains(&pair.to),
                "{pair:?}"
            );
        }
        assert!(usual.windows(2).all(|two| two[0].relation < two[1].relation), "{usual:?}");
    }

    #[test]
    fn cpuid_agrees_with_sysfs() {
        let caches = caches_by_cpuid();
        assert!(caches.iter().all(|cache| cache.bytes >= 1 << 10 && cache.level < 8), "{caches:?}");
    }

    #[test]
    fn sizes_are_as_the_kernel_writes_them() {
        assert_eq!((size("48K"), size("2M"), size("64")), (Some(49_152), Some(2 << 20), Some(64)));
        assert_eq!((size("0K"), size("-1K"), size("18446744073709551615K")), (None, None, None));
        assert_eq!(Sizes::of(&[]), Sizes { l1: 32 << 10, l2: 256 << 10, last: 2 << 20 });
    }
}
