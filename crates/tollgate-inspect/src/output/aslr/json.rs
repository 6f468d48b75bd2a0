//! The study as JSON.

use serde::Serialize;

use crate::aslr::spread::{Bits, Spread};
use crate::aslr::{Found, How, Region, Study};

/// The output of `--format json`.
#[derive(Serialize)]
pub struct Document<'a> {
    program: String,
    randomised: Option<bool>,
    switched_off_by: Option<&'static str>,
    starts: u32,
    method: &'static str,
    not_traced: Option<&'a str>,
    elf: ElfFields<'a>,
    settings: SettingsFields,
    regions: Vec<RegionFields<'a>>,
    groups: Vec<Vec<&'static str>>,
    links: Vec<LinkFields>,
}

#[derive(Serialize)]
struct ElfFields<'a> {
    kind: &'static str,
    bits: u8,
    interpreter: Option<&'a str>,
    says_pie: bool,
    binds_now: bool,
    relro: bool,
    executable_stack: Option<bool>,
    alignment: u64,
    changes_user: bool,
    library: Option<&'a str>,
}

#[derive(Serialize)]
struct SettingsFields {
    randomize_va_space: Option<i64>,
    mmap_rnd_bits: Option<i64>,
    mmap_rnd_compat_bits: Option<i64>,
    legacy_layout: bool,
    personality: Option<u32>,
}

#[derive(Serialize)]
struct RegionFields<'a> {
    name: &'static str,
    /// Why it is unknown; it has no figures then.
    absent: Option<&'a str>,
    #[serde(flatten)]
    spread: Option<SpreadFields>,
    allowed: Option<f64>,
    allowed_by: Option<&'a str>,
    why: Option<&'a str>,
    differs: Option<&'a str>,
}

#[derive(Serialize)]
struct SpreadFields {
    bits: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    estimator: &'static str,
    uniform: Option<bool>,
    alignment: Option<u64>,
    distinct: usize,
    lowest: String,
    highest: String,
}

#[derive(Serialize)]
struct LinkFields {
    region: &'static str,
    follows: &'static str,
    bits: f64,
}

impl<'a> Document<'a> {
    /// Of a study.
    pub fn of(study: &'a Study) -> Self {
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
            method: if study.how == How::Traced { "traced" } else { "self-reported" },
            not_traced: match &study.how {
                How::Copies(why) => Some(why),
                How::Traced => None,
            },
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
            regions: study.regions.iter().map(RegionFields::of).collect(),
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
    fn of(found: &'a Found) -> Self {
        Self {
            name: found.region.name(),
            absent: found.seen.as_ref().err().copied(),
            spread: found.seen.as_ref().ok().map(SpreadFields::of),
            allowed: found.allowed.bits,
            allowed_by: Some(found.allowed.source).filter(|source| !source.is_empty()),
            why: found.allowed.why.as_deref(),
            differs: found.differs.as_deref(),
        }
    }
}

impl SpreadFields {
    fn of(spread: &Spread) -> Self {
        let one_start = spread.samples == 1;
        let (bits, low, high, estimator, uniform) = match spread.bits {
            Bits::Constant { .. } if one_start => (None, None, None, "none", None),
            Bits::Constant { at_most } => (Some(0.0), Some(0.0), Some(at_most), "constant", None),
            Bits::TooFew => (None, None, None, "none", None),
            Bits::Uniform(of) => (Some(of.bits), Some(of.low), Some(of.high), "range", Some(true)),
            Bits::Counted(bits) => (Some(bits), None, None, "counts", Some(false)),
            Bits::Smooth(bits) => (Some(bits), None, None, "spacings", Some(false)),
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
