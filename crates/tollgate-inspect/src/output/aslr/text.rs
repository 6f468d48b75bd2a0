use tollgate_output::figures;

use crate::aslr::allowed::Allowed;
use crate::aslr::together::Link;
use crate::aslr::{ElfKind, Region, RegionResult, Study};

pub(crate) fn region(region: Region) -> &'static str {
    match region {
        Region::Code => "code",
        Region::Heap => "heap",
        Region::Stack => "stack",
        Region::Arguments => "arguments",
        Region::Mapping => "mapping",
        Region::LargeMapping => "8 MiB mapping",
        Region::Libraries => "libraries",
        Region::Loader => "loader",
        Region::Vdso => "vDSO",
        Region::ThreadStorage => "thread storage",
    }
}

/// A power of two of bytes: `16 B`, `4 KiB`, `2 MiB`.
pub(crate) fn alignment(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        power @ 0..10 => format!("{} B", 1u64 << power),
        power @ 10..20 => format!("{} KiB", 1u64 << (power - 10)),
        power @ 20..30 => format!("{} MiB", 1u64 << (power - 20)),
        power => format!("{} GiB", 1u64 << (power.min(63) - 30)),
    }
}

pub(crate) fn verdict(study: &Study) -> String {
    let path = study.subject.path.display();
    let starts = figures::count(study.starts as usize, "start", "starts");
    let moving: Vec<&RegionResult> = study.regions.iter().filter(|found| moves(found)).collect();
    let still: Vec<&RegionResult> =
        study.regions.iter().filter(|found| found.seen.is_ok() && !moves(found)).collect();
    if study.starts == 1 {
        return format!("inconclusive: one start of {path} does not show whether addresses change");
    }
    if moving.is_empty() {
        let same = format!("everything in {path} was at the same address in {starts}");
        return match (study.stands_still(), study.settings.switched_off()) {
            (true, Some(why)) => format!("not randomised: {same}; {why}"),
            (true, None) => format!("not randomised: {same}; no setting that was read says why"),
            (false, Some(why)) => format!("did not move: {same}; {why}"),
            (false, None) => format!("did not move: {same}, too few to call it fixed"),
        };
    }
    let bits = by_how_much(&moving);
    let few = if bits.is_empty() { format!(" ({starts} are too few to know by how much)") } else { bits };
    match list(still.iter().map(|found| region(found.region))) {
        None => format!("randomised: every region of {path} moves from start to start{few}"),
        Some(still) if study.is_fixed() && still == region(Region::Code) => {
            format!("partly randomised: the code of {path} stays at its fixed address; the rest moves{few}")
        }
        Some(still) => {
            format!("partly randomised: of {path} {still} did not move in {starts}; the rest moves{few}")
        }
    }
}

fn moves(found: &RegionResult) -> bool {
    found.seen.as_ref().is_ok_and(|spread| spread.low != spread.high)
}

/// Formats `, by 19.0 to 30.0 bits`.
fn by_how_much(moving: &[&RegionResult]) -> String {
    let figures: Vec<f64> =
        moving.iter().filter_map(|found| found.seen.as_ref().ok()?.bits.figure()).collect();
    let low = figures.iter().copied().reduce(f64::min);
    let high = figures.iter().copied().reduce(f64::max);
    match low.zip(high) {
        None => String::new(),
        Some((low, high)) if high - low < 0.05 => format!(", by {low:.1} bits"),
        Some((low, high)) => format!(", by {low:.1} to {high:.1} bits"),
    }
}

pub(crate) fn program(study: &Study) -> String {
    let elf = &study.subject.elf;
    let kind = match elf.kind {
        ElfKind::Pie => "position-independent program (PIE)",
        ElfKind::StaticPie => "static position-independent program (static PIE)",
        ElfKind::Fixed => "program linked to a fixed address (ET_EXEC)",
        ElfKind::SharedObject => "shared object",
    };
    let mut parts = vec![format!("{kind}, {}", if elf.is_32_bit { "32-bit" } else { "64-bit" })];
    match &elf.interpreter {
        Some(loader) => parts.push(format!("loader {loader}")),
        None => parts.push("no loader".to_owned()),
    }
    if elf.relro {
        parts.push(if elf.binds_now { "full RELRO" } else { "partial RELRO" }.to_owned());
    } else {
        parts.push("no RELRO".to_owned());
    }
    match elf.executable_stack {
        Some(false) => {}
        Some(true) => parts.push("asks for an executable stack".to_owned()),
        None => parts.push("does not say whether its stack may be executed".to_owned()),
    }
    if let Study { library: Some(library), .. } = study {
        parts.push(format!("libraries seen by {library}"));
    }
    if study.subject.changes_user {
        parts.push("set-user-ID or set-group-ID, examined without it".to_owned());
    }
    parts.push(figures::count(study.starts as usize, "start", "starts"));
    format!("{}.", parts.join("; "))
}

pub(crate) fn together(study: &Study) -> Vec<String> {
    let groups = study.together.groups.iter().filter(|group| group.len() > 1);
    let as_one = groups.filter_map(|group| list(group.iter().map(|&member| region(member))));
    let mut lines: Vec<String> = as_one.map(|names| format!("{names} move as one")).collect();
    lines.extend(study.together.links.iter().map(|link| link_text(study, link)));
    lines
}

/// A distance with fewer bits is nearly always the same.
const NEARLY_ONE: f64 = 1.0;

fn link_text(study: &Study, link: &Link) -> String {
    let others = |first: Region| {
        study.together.groups.iter().any(|group| group.first() == Some(&first) && group.len() > 1)
    };
    let more = if others(link.region) { " and the regions that move with it" } else { "" };
    if link.bits < NEARLY_ONE {
        let (one, other) = (region(link.region), region(link.follows));
        return format!(
            "{one}{more}: in most starts at the same distance from {other} ({:.1} bits)",
            link.bits
        );
    }
    let verb = if more.is_empty() && !region(link.region).ends_with('s') { "follows" } else { "follow" };
    format!(
        "{}{more} {verb} {}, with {:.1} bits of {} own",
        region(link.region),
        region(link.follows),
        link.bits,
        if verb == "follows" { "its" } else { "their" }
    )
}

pub(crate) fn settings(study: &Study) -> String {
    let settings = &study.settings;
    if let Some(sandbox) = &settings.sandbox {
        return format!("the rules of {sandbox} are unknown; only those of Linux are known here");
    }
    let number = |value: Option<i64>| {
        value.map_or_else(|| "(not readable here)".to_owned(), |value| value.to_string())
    };
    let (bits, value) = if study.subject.elf.is_32_bit {
        ("vm.mmap_rnd_compat_bits", settings.mmap_rnd_compat_bits)
    } else {
        ("vm.mmap_rnd_bits", settings.mmap_rnd_bits)
    };
    let mut text = format!(
        "allowed by kernel.randomize_va_space {}, {bits} {}, personality {}",
        number(settings.randomize_va_space),
        number(value),
        settings.personality.map_or_else(|| "unknown".to_owned(), |bits| format!("{bits:#x}")),
    );
    if settings.is_legacy() {
        text.push_str(", legacy layout (mappings from the bottom up)");
    }
    text
}

/// Whether the verdict or the line of settings has the reason.
pub(crate) fn is_said_elsewhere(found: &RegionResult) -> bool {
    let Allowed { source, .. } = found.allowed;
    let of_a_sandbox = source.is_empty();
    let unread = found.allowed.why.as_ref().is_some_and(|why| why.contains("could not be read"));
    source.ends_with("PF_RANDOMIZE") || of_a_sandbox || unread
}

/// `a, b and c`; `None` for an empty list.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    match names.split_last()? {
        (last, []) => Some((*last).to_owned()),
        (last, others) => Some(format!("{} and {last}", others.join(", "))),
    }
}
