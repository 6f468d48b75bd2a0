//! The study as JSON.

use serde::Serialize;

use crate::aslr::spread::{Bits, Spread};
use crate::aslr::{Region, RegionResult, Study};

/// The output of `--format json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AddressSpaces"))]
pub struct AslrDocument<'a> {
    /// The file that was started.
    program: String,
    /// Whether any region moves; None with too few starts.
    randomised: Option<bool>,
    /// The setting that switches it off, or None.
    switched_off_by: Option<&'static str>,
    /// Number of starts.
    starts: u32,
    /// The program's file.
    elf: ElfFields<'a>,
    /// Of the kernel and the process.
    settings: SettingsFields,
    /// One object for each.
    regions: Vec<RegionFields<'a>>,
    /// The names of regions that move as one.
    groups: Vec<Vec<&'static str>>,
    /// Regions that move with others.
    links: Vec<LinkFields>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Elf"))]
struct ElfFields<'a> {
    /// `pie`, `static_pie`, `fixed` or `shared_object`.
    kind: &'static str,
    /// 32 or 64.
    bits: u8,
    /// Its dynamic linker, or None.
    interpreter: Option<&'a str>,
    /// Whether its dynamic section says that it is a position-independent executable (`DF_1_PIE`).
    says_pie: bool,
    /// Whether all symbols are bound when it starts.
    binds_now: bool,
    /// Whether a part of it is made read-only after it is relocated (`PT_GNU_RELRO`).
    relro: bool,
    /// Whether it asks for a stack that can be executed; None where it does not say.
    executable_stack: Option<bool>,
    /// The largest alignment of its loadable segments, in bytes.
    alignment: u64,
    /// Whether it gets another user's or group's rights; traced, it does without.
    changes_user: bool,
    /// The library that stands for all, or None.
    library: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AslrSettings"))]
struct SettingsFields {
    /// `/proc/sys/kernel/randomize_va_space`, or None.
    randomize_va_space: Option<i64>,
    /// `/proc/sys/vm/mmap_rnd_bits`, or None.
    mmap_rnd_bits: Option<i64>,
    /// `/proc/sys/vm/mmap_rnd_compat_bits`, or None.
    mmap_rnd_compat_bits: Option<i64>,
    /// Whether the legacy layout of mmap(2) is in use.
    legacy_layout: bool,
    /// personality(2), or None.
    personality: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Region"))]
struct RegionFields<'a> {
    /// Its name.
    name: &'static str,
    /// Why there are no figures, or None; the fields of figures are absent then.
    absent: Option<&'a str>,
    #[serde(flatten)]
    spread: Option<SpreadFields>,
    /// Bits that the kernel allows, or None.
    allowed: Option<f64>,
    /// The kernel's source that says so, or None.
    allowed_by: Option<&'a str>,
    /// The reason for an unusual number, or why it is not known; or None.
    why: Option<&'a str>,
    /// Where the bits differ from those allowed: why; or None.
    differs: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SpreadFields {
    /// Its entropy.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    bits: Option<f64>,
    /// Lower end of the 95 % CI, in bits.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    low: Option<f64>,
    /// Upper end.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    high: Option<f64>,
    /// `range`, `constant`, `coincidences` or `none`.
    estimator: &'static str,
    /// Whether its values are distributed evenly, or None.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    uniform: Option<bool>,
    /// In bytes.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    alignment: Option<u64>,
    /// Number of different values.
    distinct: usize,
    /// The lowest address, hexadecimal.
    lowest: String,
    /// The highest.
    highest: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Link"))]
struct LinkFields {
    /// Its name.
    region: &'static str,
    /// The region that it moves with.
    follows: &'static str,
    /// The bits of its own.
    bits: f64,
}

impl<'a> AslrDocument<'a> {
    /// Makes the document of a study.
    pub fn from_study(study: &'a Study) -> Self {
        let Study { library, .. } = study;
        let elf = &study.subject.elf;
        let settings = &study.settings;
        let moves = study.seen().any(|(_, spread)| spread.low != spread.high);
        let links = study.together.links.iter();
        Self {
            program: study.subject.path.display().to_string(),
            randomised: if moves { Some(true) } else { study.stands_still().then_some(false) },
            switched_off_by: settings.switched_off(),
            starts: study.starts,
            elf: ElfFields {
                kind: elf.kind.name(),
                bits: if elf.is_32_bit { 32 } else { 64 },
                interpreter: elf.interpreter.as_deref(),
                says_pie: elf.says_pie,
                binds_now: elf.binds_now,
                relro: elf.relro,
                executable_stack: elf.executable_stack,
                alignment: elf.alignment,
                changes_user: study.subject.changes_user,
                library: library.as_deref(),
            },
            settings: SettingsFields {
                randomize_va_space: settings.randomize_va_space,
                mmap_rnd_bits: settings.mmap_rnd_bits,
                mmap_rnd_compat_bits: settings.mmap_rnd_compat_bits,
                legacy_layout: settings.is_legacy(),
                personality: settings.personality,
            },
            regions: study.regions.iter().map(RegionFields::from_region).collect(),
            groups: study.together.groups.iter().map(|group| names(group)).collect(),
            links: links
                .map(|link| LinkFields {
                    region: link.region.name(),
                    follows: link.follows.name(),
                    bits: link.bits,
                })
                .collect(),
        }
    }
}

fn names(group: &[Region]) -> Vec<&'static str> {
    group.iter().map(|region| region.name()).collect()
}

impl<'a> RegionFields<'a> {
    fn from_region(found: &'a RegionResult) -> Self {
        Self {
            name: found.region.name(),
            absent: found.seen.as_ref().err().copied(),
            spread: found.seen.as_ref().ok().map(SpreadFields::from_spread),
            allowed: found.allowed.bits,
            allowed_by: Some(found.allowed.source).filter(|source| !source.is_empty()),
            why: found.allowed.why.as_deref(),
            differs: found.differs.as_deref(),
        }
    }
}

impl SpreadFields {
    fn from_spread(spread: &Spread) -> Self {
        let one_start = spread.samples == 1;
        let (bits, low, high, estimator, uniform) = match spread.bits {
            Bits::Constant { .. } if one_start => (None, None, None, "none", None),
            Bits::Constant { at_most } => (Some(0.0), Some(0.0), Some(at_most), "constant", None),
            Bits::TooFew => (None, None, None, "none", None),
            Bits::Uniform(of) => (Some(of.bits), Some(of.low), Some(of.high), "range", Some(true)),
            Bits::Between { at_least, at_most } => {
                (None, Some(at_least), Some(at_most), "coincidences", Some(false))
            }
        };
        Self {
            bits,
            low,
            high,
            estimator,
            uniform,
            alignment: spread.alignment,
            distinct: spread.distinct,
            lowest: format!("{:#x}", spread.low),
            highest: format!("{:#x}", spread.high),
        }
    }
}
