//! The machine's properties that determine a benchmark's cases: the architecture, the processors that may be used, the caches that they
//! share, and the memory nodes. It is read once and passed on, so that every list and selection can be made for another machine.
//!
//! Source: /sys/devices/system/cpu/cpu*/{cache,topology} (Documentation/ABI/testing/sysfs-devices-system-cpu) and
//! /sys/devices/system/node (Documentation/ABI/stable/sysfs-devices-node); without cache entries there, CPUID.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, thread};

use tollgate_arch::architecture::{Architecture, HERE};
use tollgate_arch::cpuid::{CPUID, CpuidResult};

use crate::machine::cpu;

/// The architecture, the processors, what they share, and the memory nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Topology {
    /// The architecture whose instructions are timed.
    pub architecture: Architecture,
    /// The processors that the program may use, ascending.
    pub processors: Vec<usize>,
    /// The default one to measure on.
    pub home: Option<usize>,
    /// How many of them the cgroup's quota of processor time fills (cpu.max), if that is less than all.
    pub quota: Option<usize>,
    /// Relations of those around the default one, and of some evenly spaced ones. Reading hundreds would delay a run's start.
    pub known: BTreeMap<usize, Processor>,
    /// The caches by CPUID, if the kernel lists none for the default processor.
    pub by_cpuid: Vec<Cache>,
    /// The nodes that have memory.
    pub nodes: Vec<Node>,
}

/// The kernel's description of a processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processor {
    /// The hardware threads of its core, including itself; empty if unknown.
    pub siblings: Vec<usize>,
    /// Its caches that hold data; empty if unknown.
    pub caches: Vec<Cache>,
}

/// A cache that holds data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Its level, from 1.
    pub level: u8,
    /// Its size in bytes.
    pub bytes: u64,
    /// The processors that share it; empty if unknown.
    pub shared: Vec<usize>,
}

/// A memory node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub number: usize,
    /// Its processors; empty for a node with memory only.
    pub processors: Vec<usize>,
    /// The distance to each online node, by number.
    pub distances: Vec<(usize, u64)>,
}

impl Node {
    /// Returns the distance to another node, or the largest number if the kernel gives none.
    pub fn distance(&self, other: usize) -> u64 {
        self.distances.iter().find(|(number, _)| *number == other).map_or(u64::MAX, |(_, distance)| *distance)
    }
}

impl Topology {
    /// Reads this machine, for a process that may use these processors.
    pub fn read(processors: Vec<usize>) -> Self {
        let read = Self::below(Path::new("/"), processors);
        let is_unknown = read.caches().is_empty();
        let by_cpuid = if is_unknown { caches_by_cpuid() } else { Vec::new() };
        // Under a user-mode emulator, that file names the architecture of the host.
        Self { architecture: HERE, by_cpuid, ..read }
    }

    /// Reads this machine, for this process.
    pub fn here() -> Self {
        let read = Self::read(cpu::allowed());
        let usable = thread::available_parallelism().map_or(1, usize::from);
        Self { quota: Some(usable).filter(|&usable| usable < read.processors.len()), ..read }
    }

    /// Reads the machine whose `/sys` and `/proc` are below this directory, without CPUID and quotas. If they do not name an architecture
    /// that this program knows, the result has this program's own.
    pub fn below(root: &Path, processors: Vec<usize>) -> Self {
        let sysfs = Sysfs::below(root);
        let home = usual_of(&processors, &sysfs.fast());
        let threads = home.map(|home| sysfs.siblings(home)).unwrap_or_default();
        let known = around(&processors, home, &threads).into_iter().map(|cpu| (cpu, sysfs.processor(cpu)));
        // Linux has the file since 6.1.
        let named = fs::read_to_string(root.join("proc/sys/kernel/arch")).ok();
        let architecture = named.and_then(|name| Architecture::named(name.trim())).unwrap_or_default();
        let nodes = sysfs.nodes();
        Self { architecture, known: known.collect(), nodes, processors, home, ..Self::default() }
    }

    /// Returns how many threads may run at the same time, each on a processor of its own.
    pub fn parallelism(&self) -> usize {
        self.quota.unwrap_or(self.processors.len()).max(1)
    }

    /// Returns the caches of the default processor; empty if unknown.
    pub fn caches(&self) -> &[Cache] {
        let of_kernel = self.home.and_then(|home| self.known.get(&home)).map(|home| home.caches.as_slice());
        of_kernel.filter(|caches| !caches.is_empty()).unwrap_or(&self.by_cpuid)
    }

    /// Returns its processors; if there are many, [`MOST_PAIRED`] evenly spaced ones.
    pub fn evenly_spaced(&self) -> Vec<usize> {
        evenly(&self.processors, MOST_PAIRED)
    }
}

/// The most processors whose pairs are all measured: the number of pairs grows with the square of theirs.
pub const MOST_PAIRED: usize = 24;

/// Returns the default processor to measure on: the last of those allowed, since processor 0 serves most interrupts. On a
/// processor with two kinds of cores it is the last of the fast ones.
pub fn usual(allowed: &[usize]) -> Option<usize> {
    usual_of(allowed, &Sysfs::below(Path::new("/")).fast())
}

fn usual_of(allowed: &[usize], fast: &[usize]) -> Option<usize> {
    let last_fast = allowed.iter().rfind(|cpu| fast.contains(cpu)).copied();
    last_fast.or(allowed.last().copied())
}

/// Processors whose relations are read: the nearest to `home`, its hardware threads, evenly spaced ones, and those of all pairs.
fn around(allowed: &[usize], home: Option<usize>, threads: &[usize]) -> BTreeSet<usize> {
    const NEAREST: usize = 32;
    const EVENLY: usize = 32;
    let mut by_distance = allowed.to_vec();
    by_distance.sort_by_key(|&cpu| home.map_or(0, |home| cpu.abs_diff(home)));
    let mut some: BTreeSet<usize> = by_distance.into_iter().take(NEAREST).collect();
    some.extend(evenly(allowed, EVENLY));
    some.extend(evenly(allowed, MOST_PAIRED));
    some.extend(threads.iter().filter(|cpu| allowed.contains(cpu)));
    some
}

/// At most `most` of them, evenly spaced, including the first and the last.
fn evenly(all: &[usize], most: usize) -> Vec<usize> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).map(|at| all[at * (all.len() - 1) / (most - 1)]).collect()
}

struct Sysfs {
    devices: PathBuf,
}

impl Sysfs {
    fn below(root: &Path) -> Self {
        Self { devices: root.join("sys/devices") }
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.devices.join(path)).ok()
    }

    fn list(&self, path: &str) -> Vec<usize> {
        self.text(path).map(|text| cpu::parse_list(&text)).unwrap_or_default()
    }

    /// Only Intel's hybrid processors have this PMU (arch/x86/events/intel/core.c).
    fn fast(&self) -> Vec<usize> {
        self.list("cpu_core/cpus")
    }

    fn processor(&self, cpu: usize) -> Processor {
        Processor { siblings: self.siblings(cpu), caches: self.caches(cpu) }
    }

    /// The second name is from before Linux 5.3.
    fn siblings(&self, cpu: usize) -> Vec<usize> {
        let read = |name: &str| self.list(&format!("system/cpu/cpu{cpu}/topology/{name}"));
        Some(read("core_cpus_list"))
            .filter(|list| !list.is_empty())
            .unwrap_or_else(|| read("thread_siblings_list"))
    }

    fn caches(&self, cpu: usize) -> Vec<Cache> {
        const MOST: usize = 16;
        let at = |index| self.cache(&format!("system/cpu/cpu{cpu}/cache/index{index}"));
        (0..MOST).map_while(at).flatten().collect()
    }

    /// `None` if there is no such cache; an inner `None` for an instruction cache.
    fn cache(&self, directory: &str) -> Option<Option<Cache>> {
        let read = |name: &str| self.text(&format!("{directory}/{name}"));
        let (level, kind) = (read("level")?, read("type")?);
        if kind.trim() == "Instruction" {
            return Some(None);
        }
        let cache = || {
            Some(Cache {
                level: level.trim().parse().ok()?,
                bytes: size(read("size")?.trim())?,
                shared: self.list(&format!("{directory}/shared_cpu_list")),
            })
        };
        Some(cache())
    }

    fn nodes(&self) -> Vec<Node> {
        // A node's file has a distance for each online node, in their order.
        let online = self.list("system/node/online");
        let distances = |number: usize| {
            let text = self.text(&format!("system/node/node{number}/distance")).unwrap_or_default();
            let distances = text.split_whitespace().map_while(|word| word.parse().ok());
            online.iter().copied().zip(distances).collect()
        };
        let node = |number| Node {
            number,
            processors: self.list(&format!("system/node/node{number}/cpulist")),
            distances: distances(number),
        };
        self.list("system/node/has_memory").into_iter().map(node).collect()
    }
}

fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix('K') {
        Some(digits) => (digits, 10),
        None => text.strip_suffix('M').map_or((text, 0), |digits| (digits, 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

/// The caches by CPUID: leaf 4 (Intel SDM volume 2A), or 8000_001DH (AMD APM volume 3, appendix E). arm64 has no such instruction.
fn caches_by_cpuid() -> Vec<Cache> {
    const MOST: u32 = 16;
    let Some(cpuid) = CPUID else { return Vec::new() };
    let offers = |leaf: u32| cpuid(leaf & 0x8000_0000, 0).eax >= leaf;
    let is_first = |leaf: &u32| offers(*leaf) && cpuid(*leaf, 0).eax & 0x1f != 0;
    let Some(leaf) = [4, 0x8000_001d].into_iter().find(is_first) else { return Vec::new() };
    let caches = (0..MOST).map(|index| cpuid(leaf, index)).take_while(|answer| answer.eax & 0x1f != 0);
    let holds_data = |answer: &CpuidResult| answer.eax & 0x1f != 2;
    let cache = |answer: CpuidResult| {
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

    #[test]
    fn few_processors_are_all_known_and_of_many_some() {
        let all: Vec<usize> = (0..576).collect();
        let some = evenly(&all, MOST_PAIRED);
        assert_eq!((some.len(), some[0], some[MOST_PAIRED - 1]), (MOST_PAIRED, 0, 575));
        assert!(some.windows(2).all(|two| two[0] < two[1]), "{some:?}");
        assert_eq!(evenly(&[3, 9], MOST_PAIRED), [3, 9]);
        let known = around(&all, Some(575), &[287, 575, 600]);
        assert!(known.len() < 100 && some.iter().all(|cpu| known.contains(cpu)), "{known:?}");
        assert!([0, 287, 574, 575].iter().all(|cpu| known.contains(cpu)) && !known.contains(&600));
        assert_eq!(around(&[3, 5], None, &[]), BTreeSet::from([3, 5]));
        assert!(around(&[], None, &[]).is_empty());
    }

    #[test]
    fn the_default_processor_is_the_last_fast_one() {
        assert_eq!(usual_of(&[0, 1, 2, 3], &[]), Some(3));
        assert_eq!(usual_of(&[0, 1, 2, 3], &[0, 1]), Some(1));
        assert_eq!(usual_of(&[2, 3], &[0, 1]), Some(3));
        assert_eq!(usual_of(&[], &[0]), None);
    }

    #[test]
    fn a_quota_bounds_the_users_and_one_may_always_run() {
        let of = |processors: usize, quota| {
            Topology { processors: (0..processors).collect(), quota, ..Topology::default() }.parallelism()
        };
        assert_eq!([of(8, None), of(8, Some(3)), of(0, None)], [8, 3, 1]);
    }

    #[test]
    fn this_machine_is_read_as_it_is() {
        let here = Topology::here();
        assert_eq!((&here.processors, here.home), (&cpu::allowed(), usual(&cpu::allowed())));
        assert_eq!(here.architecture, HERE);
        assert!(here.parallelism() <= here.processors.len().max(1));
        for cache in here.known.values().flat_map(|processor| &processor.caches).chain(&caches_by_cpuid()) {
            assert!(cache.bytes >= 1 << 10 && cache.level < 8, "{cache:?}");
        }
    }

    #[test]
    fn nothing_is_known_of_a_machine_without_files() {
        let empty = Topology::below(Path::new("/nowhere"), vec![0, 1]);
        assert_eq!((empty.home, empty.caches(), empty.nodes.as_slice()), (Some(1), &[][..], &[][..]));
        assert_eq!(empty.architecture, HERE);
        assert_eq!(empty.known, BTreeMap::from([0, 1].map(|cpu| (cpu, Processor::default()))));
    }

    #[test]
    fn sizes_are_as_the_kernel_writes_them() {
        assert_eq!((size("48K"), size("2M"), size("64")), (Some(49_152), Some(2 << 20), Some(64)));
        assert_eq!((size("0K"), size("-1K"), size("18446744073709551615K")), (None, None, None));
    }
}
