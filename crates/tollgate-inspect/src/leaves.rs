//! The answers of the CPUID instruction, read once: in a virtual machine each execution is an exit, which takes tens of
//! microseconds with nested hypervisors. Sources: Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E; for leaves from
//! 4000_0000, Documentation/virt/kvm/x86/cpuid.rst and the Hyper-V TLFS.

use std::collections::BTreeMap;

use tollgate_arch::cpuid::{CPUID, CpuidResult};

/// EAX, EBX, ECX and EDX after one execution.
pub type Registers = [u32; 4];

/// Distance between the leaves of layered hypervisors, each with its own signature.
const HYPERVISOR_STEP: u32 = 0x100;
const HYPERVISOR_FIRST: u32 = 0x4000_0000;
/// More than systems nest; a hypervisor that gives all leaves the same answer must not be queried forever.
const HYPERVISORS: u32 = 4;

const EXTENDED: u32 = 0x8000_0000;
/// The leaves that describe caches, one per subleaf: Intel's, and AMD's in the same form.
const CACHE_LEAVES: [u32; 2] = [4, 0x8000_001d];
/// EAX\[4:0\] of such a subleaf: 1 data, 2 instructions, 3 both, 0 no more caches.
const CACHE_KIND: u32 = 0x1f;
/// More than any processor has; one that gives all subleaves the same answer must not be queried forever.
const MOST_CACHES: u32 = 8;

/// The leaves that count processors sharing a core or a package, one level per subleaf; the newer leaf first.
const TOPOLOGY_LEAVES: [u32; 2] = [0x1f, 0xb];
const MOST_LEVELS: u32 = 8;
/// ECX\[15:8\] of such a subleaf.
const LEVEL_OF_THREADS: u32 = 1;

/// The ratio of the time-stamp counter to the crystal, and the crystal's frequency.
const TSC_LEAF: u32 = 0x15;
/// Offset from a hypervisor's first leaf: the frequency of the time-stamp counter in kHz, introduced by VMware.
const TSC_OF_HYPERVISOR: u32 = 0x10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheLeaf {
    pub name: String,
    pub bytes: u64,
    pub ways: u32,
    pub source: String,
}

/// The leaves of CPUID that facts are read from, by leaf and subleaf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaves(BTreeMap<(u32, u32), Registers>);

impl FromIterator<((u32, u32), Registers)> for Leaves {
    fn from_iter<I: IntoIterator<Item = ((u32, u32), Registers)>>(leaves: I) -> Self {
        Self(leaves.into_iter().collect())
    }
}

impl Leaves {
    /// Executes CPUID on the processor that this thread happens to run on; `None` if its architecture has no CPUID.
    pub fn here() -> Option<Self> {
        let cpuid = CPUID?;
        Some(Self::ask(|leaf, subleaf| {
            let CpuidResult { eax, ebx, ecx, edx } = cpuid(leaf, subleaf);
            [eax, ebx, ecx, edx]
        }))
    }

    fn ask(cpuid: impl Fn(u32, u32) -> Registers) -> Self {
        // Beyond the highest leaf, Intel processors answer with another leaf's data, so only offered leaves are read.
        let [basic, ..] = cpuid(0, 0);
        let [extended, ..] = cpuid(0x8000_0000, 0);
        let offered = [1, TSC_LEAF, 0x21].into_iter().filter(|&leaf| leaf <= basic);
        let offered =
            offered.chain((0x8000_0001..=0x8000_0008).chain([0x8000_0021]).filter(|&leaf| leaf <= extended));
        let mut leaves: Self =
            [0, 0x8000_0000].into_iter().chain(offered).map(|leaf| ((leaf, 0), cpuid(leaf, 0))).collect();
        if basic >= 7 {
            let registers @ [subleaves, ..] = cpuid(7, 0);
            leaves.0.insert((7, 0), registers);
            if subleaves >= 1 {
                leaves.0.insert((7, 1), cpuid(7, 1));
            }
        }
        let highest_of = |leaf: u32| if leaf < EXTENDED { basic } else { extended };
        for leaf in CACHE_LEAVES.into_iter().filter(|&leaf| leaf <= highest_of(leaf)) {
            for subleaf in 0..MOST_CACHES {
                let registers = cpuid(leaf, subleaf);
                leaves.0.insert((leaf, subleaf), registers);
                if registers[0] & CACHE_KIND == 0 {
                    break;
                }
            }
        }
        for leaf in TOPOLOGY_LEAVES.into_iter().filter(|&leaf| leaf <= basic) {
            for subleaf in 0..MOST_LEVELS {
                let registers = cpuid(leaf, subleaf);
                leaves.0.insert((leaf, subleaf), registers);
                if registers[2] >> 8 & 0xff == 0 {
                    break;
                }
            }
        }
        for hypervisor in 0..HYPERVISORS {
            let first = HYPERVISOR_FIRST + hypervisor * HYPERVISOR_STEP;
            let registers = cpuid(first, 0);
            leaves.0.insert((first, 0), registers);
            if signature_of(registers).is_none() {
                break;
            }
            for leaf in [first + 1, first + 4, first + TSC_OF_HYPERVISOR]
                .into_iter()
                .filter(|&leaf| leaf <= registers[0])
            {
                leaves.0.insert((leaf, 0), cpuid(leaf, 0));
            }
        }
        leaves
    }

    pub(crate) fn leaf(&self, leaf: u32, subleaf: u32) -> Option<Registers> {
        self.0.get(&(leaf, subleaf)).copied()
    }

    /// Returns whether a bit is set. The bits of a leaf that is not offered are clear. `None` if the bit is unknown.
    pub(crate) fn bit(&self, bit: Bit) -> Option<bool> {
        match self.leaf(bit.leaf, bit.subleaf) {
            Some(registers) => Some(registers[bit.register as usize] >> bit.number & 1 == 1),
            None => {
                let [highest, ..] = self.leaf(bit.leaf & 0x8000_0000, 0)?;
                let whole_leaf_is_missing = bit.leaf > highest;
                let subleaf_is_missing = bit.subleaf > 0
                    && self.leaf(bit.leaf, 0).is_some_and(|[subleaves, ..]| bit.subleaf > subleaves);
                (whole_leaf_is_missing || subleaf_is_missing).then_some(false)
            }
        }
    }

    pub(crate) fn caches(&self) -> Vec<CacheLeaf> {
        let subleaves = CACHE_LEAVES.into_iter().flat_map(|leaf| (0..MOST_CACHES).map(move |n| (leaf, n)));
        let caches = subleaves.filter_map(|(leaf, subleaf)| {
            let [eax, ebx, ecx, _] = self.leaf(leaf, subleaf)?;
            let suffix = match eax & CACHE_KIND {
                1 => "d",
                2 => "i",
                3 => "",
                _ => return None,
            };
            let field = |shift: u32, bits: u32| u64::from(ebx >> shift & ((1 << bits) - 1)) + 1;
            let ways = field(22, 10);
            // Ways, partitions, bytes per line, sets.
            let factors = [ways, field(12, 10), field(0, 12), u64::from(ecx) + 1];
            let bytes = factors.into_iter().try_fold(1_u64, u64::checked_mul)?;
            let name = format!("l{}{suffix}", eax >> 5 & 7);
            Some(CacheLeaf { name, bytes, ways: ways as u32, source: format!("CPUID.{leaf:x}.{subleaf:x}") })
        });
        caches.collect()
    }

    /// The frequency of the time-stamp counter in Hz according to CPUID, and the leaf. `None` if no leaf has it: a register of
    /// the leaf may be 0, for a value that is not enumerated (SDM volume 2A, CPUID leaf 15H).
    pub(crate) fn tsc_frequency(&self) -> Option<(u64, &'static str)> {
        let of_crystal = || match self.leaf(TSC_LEAF, 0)? {
            [0, ..] | [_, 0, ..] | [_, _, 0, _] => None,
            [divisor, factor, crystal, _] => {
                Some((u64::from(crystal) * u64::from(factor) / u64::from(divisor), "CPUID.15h"))
            }
        };
        let of_hypervisor = || match self.leaf(HYPERVISOR_FIRST + TSC_OF_HYPERVISOR, 0)? {
            [0, ..] => None,
            [khz, ..] => Some((u64::from(khz) * 1000, "CPUID.40000010h")),
        };
        of_crystal().or_else(of_hypervisor)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = ((u32, u32), Registers)> + '_ {
        self.0.iter().map(|(&leaf, &registers)| (leaf, registers))
    }

    /// The leaf, and how many threads share a core and processors a package. `None` if no leaf says so.
    pub(crate) fn sharing(&self) -> Option<(u32, u32, u32)> {
        TOPOLOGY_LEAVES.into_iter().find_map(|leaf| {
            let levels = (0..MOST_LEVELS).map_while(|subleaf| self.leaf(leaf, subleaf));
            let levels: Vec<Registers> = levels.take_while(|[.., ecx, _]| ecx >> 8 & 0xff != 0).collect();
            let threads = levels.iter().find(|[.., ecx, _]| ecx >> 8 & 0xff == LEVEL_OF_THREADS)?;
            let [_, package, ..] = levels.last()?;
            let counts = (threads[1] & 0xffff, package & 0xffff);
            (counts.0 > 0 && counts.1 > 0).then_some((leaf, counts.0, counts.1))
        })
    }

    pub(crate) fn hypervisors(&self) -> impl Iterator<Item = (u32, String)> {
        let firsts = (0..HYPERVISORS).map(|number| HYPERVISOR_FIRST + number * HYPERVISOR_STEP);
        firsts.map_while(|first| Some((first, signature_of(self.leaf(first, 0)?)?)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bit {
    pub leaf: u32,
    pub subleaf: u32,
    pub register: Register,
    pub number: u32,
}

impl std::fmt::Display for Bit {
    /// Formats it like the manuals: `CPUID.1:ECX[31]`, `CPUID.7.1:EAX[17]`, `CPUID.80000007h:EDX[8]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let register = match self.register {
            Register::Eax => "EAX",
            Register::Ebx => "EBX",
            Register::Ecx => "ECX",
            Register::Edx => "EDX",
        };
        match (self.leaf, self.subleaf) {
            (leaf @ 0x8000_0000.., _) => write!(f, "CPUID.{leaf:x}h:{register}[{}]", self.number),
            (leaf, 0) => write!(f, "CPUID.{leaf:x}:{register}[{}]", self.number),
            (leaf, subleaf) => write!(f, "CPUID.{leaf:x}.{subleaf:x}:{register}[{}]", self.number),
        }
    }
}

/// The text that registers spell, without NULs and blanks at its ends. `None` if it is not printable.
pub(crate) fn spelled(registers: &[u32]) -> Option<String> {
    let bytes: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
    let text = str::from_utf8(&bytes).ok()?.trim_matches(['\0', ' ']);
    (!text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()))
        .then(|| text.to_owned())
}

/// The twelve characters of a hypervisor leaf. Most are letters. A processor without a hypervisor answers with another leaf's
/// registers, which hardly ever spell eight printable characters.
fn signature_of([_, ebx, ecx, edx]: Registers) -> Option<String> {
    spelled(&[ebx, ecx, edx]).filter(|signature| signature.len() >= 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRED: Bit = Bit { leaf: 7, subleaf: 1, register: Register::Eax, number: 17 };

    #[test]
    fn bits_are_named_as_in_the_manuals() {
        assert_eq!(FRED.to_string(), "CPUID.7.1:EAX[17]");
        let tsc = Bit { leaf: 0x8000_0007, subleaf: 0, register: Register::Edx, number: 8 };
        assert_eq!(tsc.to_string(), "CPUID.80000007h:EDX[8]");
        let hypervisor = Bit { leaf: 1, subleaf: 0, register: Register::Ecx, number: 31 };
        assert_eq!(hypervisor.to_string(), "CPUID.1:ECX[31]");
    }

    #[test]
    fn a_leaf_that_is_not_offered_has_no_bits() {
        let set: Leaves = [((0, 0), [7, 0, 0, 0]), ((7, 0), [1, 0, 0, 0]), ((7, 1), [1 << 17, 0, 0, 0])]
            .into_iter()
            .collect();
        assert_eq!(set.bit(FRED), Some(true));
        let without_subleaf: Leaves = [((0, 0), [7, 0, 0, 0]), ((7, 0), [0; 4])].into_iter().collect();
        assert_eq!(without_subleaf.bit(FRED), Some(false));
        let without_leaf: Leaves = [((0, 0), [6, 0, 0, 0])].into_iter().collect();
        assert_eq!(without_leaf.bit(FRED), Some(false));
        assert_eq!(Leaves::default().bit(FRED), None, "nothing was captured: nothing is known");
        let not_captured: Leaves = [((0, 0), [7, 0, 0, 0])].into_iter().collect();
        assert_eq!(not_captured.bit(FRED), None);
    }

    #[test]
    fn leaves_beyond_the_highest_are_not_asked_for() {
        // Like an Intel processor, this one answers unknown leaves with other data.
        let leaves = Leaves::ask(|leaf, _| match leaf {
            0 => [6, 0, 0, 0],
            0x8000_0000 => [0x8000_0001, 0, 0, 0],
            _ => [u32::MAX; 4],
        });
        assert_eq!(leaves.bit(FRED), Some(false));
        assert_eq!(leaves.leaf(0x8000_0007, 0), None);
        assert_eq!(leaves.hypervisors().count(), 0);
    }

    #[test]
    fn a_hypervisor_that_answers_everything_alike_ends() {
        let [ebx, ecx, edx] = [u32::from_le_bytes(*b"KVMK"), u32::from_le_bytes(*b"VMKV"), 0x4d];
        let leaves = Leaves::ask(|_, _| [u32::MAX, ebx, ecx, edx]);
        assert_eq!(leaves.hypervisors().count(), HYPERVISORS as usize);
    }

    #[test]
    fn caches_are_ways_partitions_line_and_sets() {
        // Ice Lake: 12 ways of 64 sets, 64 bytes a line; 20 ways of 1024 sets.
        let level1 = [0x21, (11 << 22) | 63, 63, 0];
        let level2 = [0x43, (19 << 22) | 63, 1023, 0];
        let leaves = Leaves::ask(|leaf, subleaf| match (leaf, subleaf) {
            (0, _) => [0x1f, 0, 0, 0],
            (4, 0) => level1,
            (4, 1) => level2,
            _ => [0; 4],
        });
        let caches = leaves.caches();
        let found: Vec<(&str, u64)> = caches.iter().map(|cache| (cache.name.as_str(), cache.bytes)).collect();
        assert_eq!(found, [("l1d", 48 << 10), ("l2", 1280 << 10)]);
        assert_eq!(caches[1].source, "CPUID.4.1");
        assert_eq!(caches.iter().map(|cache| cache.ways).collect::<Vec<_>>(), [12, 20]);
    }

    #[test]
    fn a_frequency_is_stated_by_the_processor_or_by_its_hypervisor() {
        let of = |leaves: &[(u32, Registers)]| {
            let leaves: Leaves = leaves.iter().map(|&(leaf, registers)| ((leaf, 0), registers)).collect();
            leaves.tsc_frequency()
        };
        let crystal = (0x15, [2, 208, 25_000_000, 0]);
        let hypervisor = (0x4000_0010, [2_600_000, 0, 0, 0]);
        assert_eq!(of(&[crystal, hypervisor]), Some((2_600_000_000, "CPUID.15h")));
        assert_eq!(of(&[(0x15, [2, 208, 0, 0]), hypervisor]), Some((2_600_000_000, "CPUID.40000010h")));
        assert_eq!(of(&[(0x15, [0; 4]), (0x4000_0010, [0; 4])]), None);
        assert_eq!(of(&[]), None);
    }

    proptest! {
        #[test]
        fn any_registers_are_taken(seed in any::<[u32; 4]>(), highest in any::<u32>()) {
            let first = [highest, seed[1], seed[2], seed[3]];
            let leaves = Leaves::ask(|leaf, _| if leaf & 0xffff == 0 { first } else { seed });
            let _ = (leaves.tsc_frequency(), leaves.bit(FRED), leaves.hypervisors().count(), leaves.caches(), spelled(&seed));
        }
    }
}
