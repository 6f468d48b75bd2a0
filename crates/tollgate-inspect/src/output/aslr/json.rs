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
    /// Whether any region moves; null after too few starts.
    randomised: Option<bool>,
    /// The setting that switches randomisation off, or null.
    switched_off_by: Option<&'static str>,
    /// The number of starts.
    starts: u32,
    /// The program's file.
    elf: ElfFields<'a>,
    /// Settings of the kernel and the process.
    settings: SettingsFields,
    /// One object per region.
    regions: Vec<RegionFields<'a>>,
    /// Groups of regions that move as one, by name.
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
    /// Its dynamic linker, or null.
    interpreter: Option<&'a str>,
    /// Whether its dynamic section says that it is a position-independent executable (`DF_1_PIE`).
    says_pie: bool,
    /// Whether all of its symbols are bound when it starts.
    binds_now: bool,
    /// Whether a part of it is made read-only after it is relocated (`PT_GNU_RELRO`).
    relro: bool,
    /// Whether it asks for an executable stack; null if it does not say.
    executable_stack: Option<bool>,
    /// The largest alignment of its loadable segments, in bytes.
    alignment: u64,
    /// Whether it gets another user's or group's rights. While traced, it does not get them.
    changes_user: bool,
    /// The library that stands for all libraries, or null.
    library: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AslrSettings"))]
struct SettingsFields {
    /// `/proc/sys/kernel/randomize_va_space`, or null.
    randomize_va_space: Option<i64>,
    /// `/proc/sys/vm/mmap_rnd_bits`, or null.
    mmap_rnd_bits: Option<i64>,
    /// `/proc/sys/vm/mmap_rnd_compat_bits`, or null.
    mmap_rnd_compat_bits: Option<i64>,
    /// Whether the legacy layout of mmap(2) is in use.
    legacy_layout: bool,
    /// The flags of personality(2), or null.
    personality: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Region"))]
struct RegionFields<'a> {
    /// Its name.
    name: &'static str,
    /// Why there are no figures, or null. If it is set, the fields of figures are absent.
    absent: Option<&'a str>,
    #[serde(flatten)]
    spread: Option<SpreadFields>,
    /// The bits of entropy that the kernel allows, or null.
    allowed: Option<f64>,
    /// The kernel source that says so, or null.
    allowed_by: Option<&'a str>,
    /// The reason for an unusual number of allowed bits, or why the number is not known; or null.
    why: Option<&'a str>,
    /// Why the bits differ from those allowed, if they do; else null.
    differs: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SpreadFields {
    /// Its entropy, in bits.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    bits: Option<f64>,
    /// Lower end of the 95 % CI, in bits.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    low: Option<f64>,
    /// Upper end of the 95 % CI, in bits.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    high: Option<f64>,
    /// `range`, `constant`, `coincidences` or `none`.
    estimator: &'static str,
    /// Whether its values are distributed evenly, or null.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    uniform: Option<bool>,
    /// The alignment of its addresses, in bytes.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    alignment: Option<u64>,
    /// The number of different addresses.
    distinct: usize,
    /// The lowest address, in hexadecimal.
    lowest: String,
    /// The highest address, in hexadecimal.
    highest: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Link"))]
struct LinkFields {
    /// Its name.
    region: &'static str,
    /// The region that it moves with.
    follows: &'static str,
    /// The bits of entropy that it has of its own.
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
