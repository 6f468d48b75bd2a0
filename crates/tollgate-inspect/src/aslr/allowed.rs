//! The most random bits of each region under the kernel's settings, by the code that places it. Pure except [`Settings::read`].

use super::{Elf, ElfKind, Region, child};
use crate::uname::{release_numbers, release_text};
use crate::{machine::Machine, sandbox};

/// `ADDR_NO_RANDOMIZE` and `ADDR_COMPAT_LAYOUT` in linux/personality.h.
const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;
const ADDR_COMPAT_LAYOUT: u32 = 0x020_0000;
/// log2 of the bytes in a page, and in a huge page.
const PAGE: u32 = 12;
const HUGE: u32 = 21;

/// The settings that decide how much is random, as far as they are readable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `kernel.randomize_va_space`: 0 nothing, 1 all but the heap, 2 all.
    pub randomize_va_space: Option<i64>,
    /// `vm.mmap_rnd_bits`: random bits in the page number of mappings.
    pub mmap_rnd_bits: Option<i64>,
    /// `vm.mmap_rnd_compat_bits`: those of 32-bit programs.
    pub mmap_rnd_compat_bits: Option<i64>,
    /// `vm.legacy_va_layout`: mappings grow upwards from the bottom. They have as many random bits.
    pub legacy_va_layout: Option<i64>,
    /// personality(2) of this process, which its children inherit.
    pub personality: Option<u32>,
    /// Major and minor number of the kernel's release.
    pub release: Option<(u32, u32)>,
    /// Name of a sandbox kernel that emulates Linux.
    pub sandbox: Option<String>,
    /// Whether the kernel has transparent huge pages.
    pub huge_pages: bool,
}

/// The most bits that a region can have here.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed {
    /// `None` if unknown.
    pub bits: Option<f64>,
    /// Kernel source of the rule.
    pub source: &'static str,
    /// Reason for an unusual number, or why it is unknown.
    pub why: Option<String>,
}

impl Settings {
    /// Reads this machine's settings.
    pub fn read(machine: &Machine) -> Self {
        let number = |name: &str| machine.number(&format!("/proc/sys/{name}")).ok().map(|found| found.value);
        Self {
            randomize_va_space: number("kernel/randomize_va_space"),
            mmap_rnd_bits: number("vm/mmap_rnd_bits"),
            mmap_rnd_compat_bits: number("vm/mmap_rnd_compat_bits"),
            legacy_va_layout: number("vm/legacy_va_layout"),
            personality: child::personality(),
            release: release_text(machine).ok().and_then(|found| release_numbers(&found.value)),
            sandbox: sandbox::name(machine).ok().map(|found| found.value),
            huge_pages: machine.there("/sys/kernel/mm/transparent_hugepage").is_ok(),
        }
    }

    /// Why nothing is random, if a setting disables it.
    pub fn switched_off(&self) -> Option<&'static str> {
        if self.personality.is_some_and(|bits| bits & ADDR_NO_RANDOMIZE != 0) {
            Some("personality(2) has ADDR_NO_RANDOMIZE, as under setarch -R or a debugger")
        } else if self.randomize_va_space == Some(0) {
            Some("kernel.randomize_va_space is 0")
        } else {
            None
        }
    }

    /// Returns whether mappings grow upwards from the bottom.
    pub fn is_legacy(&self) -> bool {
        self.legacy_va_layout.is_some_and(|set| set != 0)
            || self.personality.is_some_and(|bits| bits & ADDR_COMPAT_LAYOUT != 0)
    }

    fn since(&self, major: u32, minor: u32) -> Option<bool> {
        self.release.map(|release| release >= (major, minor))
    }

    fn mapping(&self, elf: &Elf) -> Option<f64> {
        let bits = if elf.is_32_bit { self.mmap_rnd_compat_bits } else { self.mmap_rnd_bits };
        // The kernel accepts no more (CONFIG_ARCH_MMAP_RND_BITS_MAX is 32).
        bits.filter(|bits| (0..=40).contains(bits)).map(|bits| bits as f64)
    }
}

/// Returns the most bits that a region of a program can have under these settings.
pub fn allowed(settings: &Settings, elf: &Elf, region: Region) -> Allowed {
    if let Some(sandbox) = &settings.sandbox {
        let why = format!("the kernel is {sandbox}, but only Linux's rules are known here");
        return Allowed { bits: None, source: "", why: Some(why) };
    }
    if let Some(why) = settings.switched_off() {
        let source = "fs/binfmt_elf.c, PF_RANDOMIZE";
        return Allowed { bits: Some(0.0), source, why: Some(why.to_owned()) };
    }
    match region {
        Region::Code => code(settings, elf),
        Region::Heap => heap(settings, elf),
        Region::Stack => fixed(
            stack_bits(elf),
            "mm/util.c, randomize_stack_top; arch/x86/kernel/process.c, arch_align_stack",
        ),
        Region::Arguments => fixed(stack_pages(elf), "mm/util.c, randomize_stack_top"),
        Region::LargeMapping => large(settings, elf),
        Region::Vdso => vdso(settings, elf),
        Region::Mapping | Region::Libraries | Region::Loader | Region::ThreadStorage => {
            mapping(settings, elf)
        }
    }
}

const MMAP: &str = "arch/x86/mm/mmap.c, arch_mmap_rnd";

fn fixed(bits: f64, source: &'static str) -> Allowed {
    Allowed { bits: Some(bits), source, why: None }
}

fn mapping(settings: &Settings, elf: &Elf) -> Allowed {
    let name = if elf.is_32_bit { "vm.mmap_rnd_compat_bits" } else { "vm.mmap_rnd_bits" };
    let bits = settings.mapping(elf);
    let why = bits.is_none().then(|| format!("{name} could not be read"));
    Allowed { bits, source: MMAP, why }
}

/// log2 of 2^a positions plus 2^b positions.
fn sum(a: f64, b: f64) -> f64 {
    (a.exp2() + b.exp2()).log2()
}

/// `__STACK_RND_MASK` in arch/x86/include/asm/elf.h: 22 bits of the page number, or 11.
fn stack_pages(elf: &Elf) -> f64 {
    if elf.is_32_bit { 11.0 } else { 22.0 }
}

/// The stack starts up to 8192 random bytes lower, in steps of 16.
fn stack_bits(elf: &Elf) -> f64 {
    const STEP: f64 = 4.0;
    sum(stack_pages(elf) + f64::from(PAGE) - STEP, 13.0 - STEP)
}

fn code(settings: &Settings, elf: &Elf) -> Allowed {
    const SOURCE: &str = "fs/binfmt_elf.c, load_elf_binary";
    if elf.kind == ElfKind::Fixed {
        let why = "it is linked to a fixed address (ET_EXEC)".to_owned();
        return Allowed { bits: Some(0.0), source: SOURCE, why: Some(why) };
    }
    let mut allowed = Allowed { source: SOURCE, ..mapping(settings, elf) };
    let lost = elf.alignment.max(1 << PAGE).ilog2() - PAGE;
    if lost > 0 && settings.since(5, 10) != Some(false) {
        allowed.bits = allowed.bits.map(|bits| (bits - f64::from(lost)).max(0.0));
        let why = format!("its segments are aligned to {} KiB, which takes {lost} bits", elf.alignment >> 10);
        allowed.why.get_or_insert(why);
    }
    allowed
}

fn heap(settings: &Settings, elf: &Elf) -> Allowed {
    const SOURCE: &str = "arch/x86/kernel/process.c, arch_randomize_brk";
    let apart = matches!(elf.kind, ElfKind::StaticPie | ElfKind::SharedObject) && elf.interpreter.is_none();
    let under_code = if apart { Some(0.0) } else { code(settings, elf).bits };
    let unknown = |why: &str| Allowed { bits: None, source: SOURCE, why: Some(why.to_owned()) };
    let own = match (settings.randomize_va_space, elf.is_32_bit, settings.since(6, 9)) {
        (None, ..) => return unknown("kernel.randomize_va_space could not be read"),
        (Some(1), ..) => {
            let why = "kernel.randomize_va_space is 1: the heap follows the code".to_owned();
            return Allowed { bits: under_code, source: SOURCE, why: Some(why) };
        }
        (_, true, _) => 13.0,
        (_, false, Some(true)) => 18.0,
        (_, false, Some(false)) => {
            return unknown(
                "before Linux 6.9 it has 13 bits of its own, or 18 if that change was backported",
            );
        }
        (_, false, None) => return unknown("it depends on the kernel's release, which could not be read"),
    };
    match under_code {
        Some(0.0) => fixed(own, SOURCE),
        Some(code) => fixed(sum(code, own), SOURCE),
        None => unknown("the range of the code could not be read"),
    }
}

fn large(settings: &Settings, elf: &Elf) -> Allowed {
    let plain = mapping(settings, elf);
    if !settings.huge_pages || settings.since(6, 7) != Some(true) || elf.is_32_bit {
        return plain;
    }
    Allowed {
        bits: plain.bits.map(|bits| (bits - f64::from(HUGE - PAGE)).max(0.0)),
        source: "mm/mmap.c, __get_unmapped_area; mm/huge_memory.c, thp_get_unmapped_area",
        why: plain.why.or(Some("it is aligned to 2 MiB for huge pages".to_owned())),
    }
}

fn vdso(settings: &Settings, elf: &Elf) -> Allowed {
    match settings.since(6, 9) {
        _ if elf.is_32_bit => mapping(settings, elf),
        Some(true) => Allowed { source: "arch/x86/entry/vdso/vma.c", ..mapping(settings, elf) },
        _ => Allowed {
            bits: None,
            source: "arch/x86/entry/vdso/vma.c, vdso_addr",
            why: Some(
                "before Linux 6.9 it was put above the stack, as far as its page table reached".to_owned(),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn program(kind: ElfKind, is_32_bit: bool, alignment: u64) -> Elf {
        Elf {
            kind,
            is_32_bit,
            interpreter: (kind == ElfKind::Pie).then(|| "/lib/ld.so".to_owned()),
            says_pie: kind != ElfKind::Fixed,
            binds_now: false,
            relro: false,
            executable_stack: None,
            alignment,
        }
    }

    fn usual() -> Settings {
        Settings {
            randomize_va_space: Some(2),
            mmap_rnd_bits: Some(28),
            mmap_rnd_compat_bits: Some(8),
            legacy_va_layout: Some(0),
            personality: Some(0),
            release: Some((6, 18)),
            sandbox: None,
            huge_pages: true,
        }
    }

    fn bits(settings: &Settings, elf: &Elf, region: Region) -> Option<f64> {
        allowed(settings, elf, region).bits.map(|bits| (bits * 10.0).round() / 10.0)
    }

    #[test]
    fn usual_bits() {
        let pie = program(ElfKind::Pie, false, 4096);
        let of = |region| bits(&usual(), &pie, region).unwrap();
        assert_eq!(Region::ALL.map(of), [28.0, 28.0, 30.0, 22.0, 28.0, 19.0, 28.0, 28.0, 28.0, 28.0]);
        let fixed = program(ElfKind::Fixed, false, 4096);
        assert_eq!(bits(&usual(), &fixed, Region::Code), Some(0.0));
        assert_eq!(bits(&usual(), &fixed, Region::Heap), Some(18.0));
        assert_eq!(bits(&usual(), &program(ElfKind::StaticPie, false, 4096), Region::Heap), Some(18.0));
        assert_eq!(bits(&usual(), &program(ElfKind::Pie, false, 1 << 21), Region::Code), Some(19.0));
        let small = program(ElfKind::Pie, true, 4096);
        let of = |region| bits(&usual(), &small, region).unwrap();
        assert_eq!((of(Region::Code), of(Region::Heap), of(Region::Stack)), (8.0, 13.0, 19.0));
    }

    #[test]
    fn settings_that_change_it() {
        let pie = program(ElfKind::Pie, false, 4096);
        let off = Settings { personality: Some(ADDR_NO_RANDOMIZE), ..usual() };
        assert!(Region::ALL.iter().all(|&region| bits(&off, &pie, region) == Some(0.0)));
        assert!(off.switched_off().unwrap().contains("ADDR_NO_RANDOMIZE"));
        let off = Settings { randomize_va_space: Some(0), ..usual() };
        assert!(off.switched_off().unwrap().contains("randomize_va_space"));
        let one = Settings { randomize_va_space: Some(1), ..usual() };
        assert_eq!(bits(&one, &program(ElfKind::Fixed, false, 4096), Region::Heap), Some(0.0));
        let old = Settings { release: Some((6, 1)), ..usual() };
        let heap = allowed(&old, &program(ElfKind::Fixed, false, 4096), Region::Heap);
        assert!(heap.bits.is_none() && heap.why.unwrap().contains("13 bits of its own, or 18"));
        assert_eq!(bits(&old, &pie, Region::LargeMapping), Some(28.0));
        assert_eq!(bits(&old, &pie, Region::Vdso), None);
        let more = Settings { mmap_rnd_bits: Some(32), ..usual() };
        assert_eq!(bits(&more, &pie, Region::Mapping), Some(32.0));
        let other = Settings { sandbox: Some("gVisor".into()), ..usual() };
        assert!(allowed(&other, &pie, Region::Code).why.unwrap().contains("gVisor"));
        assert!(
            Settings { personality: Some(ADDR_COMPAT_LAYOUT), ..usual() }.is_legacy() && !usual().is_legacy()
        );
    }

    #[test]
    fn nothing_read_is_nothing_said() {
        let pie = program(ElfKind::Pie, false, 4096);
        for region in Region::ALL {
            let allowed = allowed(&Settings::default(), &pie, region);
            let of_the_stack = matches!(region, Region::Stack | Region::Arguments);
            assert_eq!(allowed.bits.is_some(), of_the_stack, "{region:?}");
            assert_eq!(allowed.why.is_some(), !of_the_stack, "{region:?}");
        }
    }

    proptest! {
        #[test]
        fn any_setting_is_taken(bits in any::<i64>(), random in any::<i64>(), align in any::<u64>(), text in "\\PC{0,20}") {
            let settings = Settings { mmap_rnd_bits: Some(bits), randomize_va_space: Some(random), release: release_numbers(&text), ..usual() };
            for region in Region::ALL {
                let allowed = allowed(&settings, &program(ElfKind::Pie, false, align), region);
                prop_assert!(allowed.bits.is_none_or(|bits| (0.0..=64.0).contains(&bits)));
            }
        }
    }
}
