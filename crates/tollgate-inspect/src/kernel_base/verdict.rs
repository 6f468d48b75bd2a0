//! From the evidence to the answer. Pure.
//!
//! The verdict rests on addresses first, then on what the boot left and on the command line, never on the configuration alone.

use super::evidence::{Evidence, Physical, Symbols};
use super::symbol::{IMAGE, IMAGE_SIZE, Symbol};
use crate::uname::release_numbers;

/// `LOAD_PHYSICAL_ADDR` with the default of CONFIG_PHYSICAL_START.
const USUAL_LOAD: u64 = 0x100_0000;
/// The default of CONFIG_PHYSICAL_ALIGN.
const USUAL_ALIGN: u64 = 0x20_0000;

/// Whether the kernel was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is not where it was linked to.
    Moved,
    /// It is where it was linked to.
    NotMoved,
    /// The evidence does not show it.
    Unknown,
}

impl Verdict {
    /// Stable name for documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::NotMoved => "not_moved",
            Self::Unknown => "unknown",
        }
    }
}

/// The evidence that an answer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// The kernel is a sandbox that emulates Linux.
    Sandbox,
    /// One symbol's address, compared with the list made with the image.
    Symbol,
    /// Its own address, compared with the one it is linked to.
    Address,
    /// The start of its direct map of physical memory.
    DirectMap,
    /// The note of the boot stub.
    BootStub,
    /// Its physical address, compared with the one it is loaded to.
    Physical,
    /// The command line.
    CommandLine,
    /// The rule of its release.
    Release,
    /// Nothing shows it.
    Nothing,
}

/// The answer with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// Whether it was moved.
    pub verdict: Verdict,
    /// The evidence that decided.
    pub ground: Ground,
    /// The reason, in words. It contains no address that was chosen at random, since runs are shared.
    pub because: String,
    /// How far it was moved in virtual memory, in bytes, if that is visible.
    pub offset: Option<u64>,
    /// The virtual address to which the image is linked.
    pub link_address: u64,
    /// Whether that was read; otherwise it is the usual one.
    pub link_address_is_read: bool,
    /// The most addresses that a kernel can move itself to.
    pub slots: u64,
    /// Further remarks, a sentence each: why it was not moved, contradictions, sources that would show it.
    pub remarks: Vec<String>,
}

/// Evaluates addresses first, then what the boot stub noted, then the command line, and the build only together with these.
pub fn conclude(evidence: &Evidence) -> Conclusion {
    let (load, align, is_read) = linkage(evidence);
    let link_address = IMAGE + load;
    let offset = offset(evidence, link_address);
    let slots = slots(evidence, load, align);
    let (verdict, ground, because) = answer(evidence, offset, load);
    let offset = offset.map(|(offset, _)| offset);
    let mut remarks = remarks(evidence, verdict, slots);
    if !is_read && matches!(ground, Ground::Address | Ground::Physical) {
        remarks.push(format!("its link address could not be read; {link_address:#x} is the usual one"));
    }
    Conclusion {
        verdict,
        ground,
        because,
        offset,
        link_address,
        link_address_is_read: is_read,
        slots,
        remarks,
    }
}

/// The link address as an offset from [`IMAGE`], its alignment, and whether the former was read.
fn linkage(evidence: &Evidence) -> (u64, u64, bool) {
    let options = evidence.options.as_ref().ok().map(|known| &known.value);
    let align = options.and_then(|options| options.physical_align).unwrap_or(USUAL_ALIGN);
    let by_map = evidence.linked.as_ref().ok().map(|known| known.value.wrapping_sub(IMAGE));
    let load = by_map.or_else(|| options?.load_physical());
    (load.unwrap_or(USUAL_LOAD), align, load.is_some())
}

fn offset(evidence: &Evidence, link_address: u64) -> Option<(u64, &str)> {
    let by_symbols = evidence.symbols.as_ref().ok().and_then(|known| match known.value {
        Symbols::At(address) => Some((address.wrapping_sub(link_address), known.source.as_str())),
        Symbols::Hidden => None,
    });
    let by_one = evidence.symbol.as_ref().ok().map(|known| (known.value.distance(), known.source.as_str()));
    by_one
        .or(by_symbols)
        .or_else(|| evidence.core_offset.as_ref().ok().map(|known| (known.value, known.source.as_str())))
}

/// Number of addresses that `find_random_virt_addr` in arch/x86/boot/compressed/kaslr.c chooses from.
fn slots(evidence: &Evidence, load: u64, align: u64) -> u64 {
    let size = match evidence.physical.as_ref().map(|known| known.value) {
        Ok(Physical::At { start, end }) => (end - start).saturating_add(1),
        _ => 0,
    };
    let size = size.checked_next_multiple_of(align).unwrap_or(u64::MAX);
    IMAGE_SIZE.saturating_sub(load).saturating_sub(size) / align + 1
}

type Answer = (Verdict, Ground, String);

fn answer(evidence: &Evidence, offset: Option<(u64, &str)>, load: u64) -> Answer {
    let moved = |distance| if distance == 0 { Verdict::NotMoved } else { Verdict::Moved };
    let is = |distance| if distance == 0 { "is" } else { "is not" };
    if let Some(sandbox) = &evidence.sandbox {
        let because = format!(
            "the kernel here is {sandbox}, which is not a Linux kernel; the host's kernel is not visible"
        );
        return (Verdict::Unknown, Ground::Sandbox, because);
    }
    if let Ok(known) = &evidence.symbol {
        let Symbol { name, linked, .. } = &known.value;
        let (distance, source) = (known.value.distance(), &known.source);
        let because = format!("{name} {} where it was linked to, {linked:#x} ({source})", is(distance));
        return (moved(distance), Ground::Symbol, because);
    }
    if let Some((offset, source)) = offset {
        let because = format!("it {} at its link address, {:#x} ({source})", is(offset), IMAGE + load);
        return (moved(offset), Ground::Address, because);
    }
    if let Some(answer) = by_traces(evidence, load) {
        return answer;
    }
    if let Ok(known) = &evidence.parameter
        && known.value == Some(false)
    {
        let because = format!("the command line has `nokaslr` ({})", known.source);
        return (Verdict::NotMoved, Ground::CommandLine, because);
    }
    if let Some(because) = rule_of_hibernation(evidence) {
        return (Verdict::NotMoved, Ground::Release, because);
    }
    (Verdict::Unknown, Ground::Nothing, "nothing readable here shows where it is".to_owned())
}

fn by_traces(evidence: &Evidence, load: u64) -> Option<Answer> {
    if let Ok(map) = &evidence.direct_map
        && !map.value.is_usual
    {
        let because = format!("its map of all memory begins at a random address ({})", map.source);
        return Some((Verdict::Moved, Ground::DirectMap, because));
    }
    let boot = evidence.boot.as_ref().ok();
    if let Some(boot) = boot
        && boot.value.moved
    {
        let because = format!("the boot stub noted that it chose a random address ({})", boot.source);
        return Some((Verdict::Moved, Ground::BootStub, because));
    }
    if let Ok(known) = &evidence.physical
        && let Physical::At { start, .. } = known.value
        && start == load
    {
        let because =
            format!("it is at physical {start:#x}, where it is loaded without a move ({})", known.source);
        return Some((Verdict::NotMoved, Ground::Physical, because));
    }
    // Before Linux 4.1 the stub had no such flag, and a kernel that was entered directly left none either way.
    let has_flag = evidence
        .release
        .as_ref()
        .ok()
        .and_then(|known| release_numbers(&known.value))
        .is_some_and(|r| r >= (4, 1));
    let boot = boot.filter(|boot| boot.value.has_header && has_flag)?;
    let because = format!("the boot stub noted that it chose no random address ({})", boot.source);
    Some((Verdict::NotMoved, Ground::BootStub, because))
}

/// Before Linux 4.8 a kernel that can hibernate moved only with the parameter `kaslr`; before 3.14 none did.
fn rule_of_hibernation(evidence: &Evidence) -> Option<String> {
    let known = evidence.release.as_ref().ok()?;
    let release = release_numbers(&known.value)?;
    if release < (3, 14) {
        return Some(format!(
            "{}: {} is older than 3.14, the first that could move itself",
            known.source, known.value
        ));
    }
    let options = evidence.options.as_ref().ok()?;
    let line = evidence.parameter.as_ref().ok()?;
    let applies = release < (4, 8) && options.value.hibernation && line.value != Some(true);
    applies.then(|| {
        format!(
            "{} can hibernate (CONFIG_HIBERNATION=y), and before 4.8 such a kernel moves only if the command line has `kaslr`, which it lacks ({}, {})",
            known.value, options.source, line.source
        )
    })
}

fn remarks(evidence: &Evidence, verdict: Verdict, slots: u64) -> Vec<String> {
    use Verdict::{Moved, NotMoved, Unknown};
    if evidence.sandbox.is_some() {
        return Vec::new();
    }
    let built = evidence.options.as_ref().ok().map(|known| known.value.randomize_base);
    let (can_move, cannot_move) = (built == Some(true), built == Some(false));
    let boot = evidence.boot.as_ref().ok().map(|known| known.value);
    let chosen = boot.is_some_and(|boot| boot.moved);
    let direct = boot.is_some_and(|boot| !boot.has_header);
    let off = evidence.parameter.as_ref().is_ok_and(|known| known.value == Some(false));
    let chance = format!("the boot stub chose at random, and chooses this address once in {slots} times");
    let remark = |of: Verdict, holds: bool, text: &str| (of == verdict && holds).then(|| text.to_owned());
    let first = [
        remark(
            NotMoved,
            can_move,
            "it was built to move (CONFIG_RANDOMIZE_BASE=y), which does not show that it did",
        ),
        remark(NotMoved, chosen, &chance),
        remark(
            NotMoved,
            direct && !chosen,
            "its boot parameters have no header: it was entered directly, without the stub that moves kernels",
        ),
        remark(NotMoved, off, "the command line has `nokaslr`"),
        remark(NotMoved, cannot_move, "it was built without CONFIG_RANDOMIZE_BASE"),
        remark(Moved, off, "although the command line has `nokaslr`: its loader may have moved it"),
        remark(
            Moved,
            cannot_move,
            "although it was built without CONFIG_RANDOMIZE_BASE: its loader may have moved it",
        ),
        remark(
            Unknown,
            direct,
            "its boot parameters have no header: it was entered directly, without the stub that moves kernels; that it is \
             where it was linked to is likely, and not seen",
        ),
    ];
    let mut remarks: Vec<String> = first.into_iter().flatten().collect();
    if verdict == Unknown {
        remarks.extend(what_would_tell(evidence));
    }
    remarks.extend(remark(
        Unknown,
        can_move,
        "it was built to move (CONFIG_RANDOMIZE_BASE=y); that alone does not show that it did",
    ));
    let never = "it was built without CONFIG_RANDOMIZE_BASE: it does not move by itself";
    remarks.extend(remark(Unknown, cannot_move, never));
    remarks
}

fn what_would_tell(evidence: &Evidence) -> Vec<String> {
    let mut remarks = Vec::new();
    if matches!(evidence.symbols.as_ref().map(|known| known.value), Ok(Symbols::Hidden)) {
        remarks.push(
            "/proc/kallsyms shows zeros, which is \"not visible\" and not \"not moved\": it shows addresses to root if kernel.kptr_restrict is 0 or 1"
                .to_owned(),
        );
    }
    if let Ok(known) = &evidence.physical
        && let Physical::At { start, .. } = known.value
    {
        remarks.push(format!(
            "it is at physical {start:#x}, not where it is loaded without a move ({}); boot loaders also move it",
            known.source
        ));
    }
    if matches!(evidence.physical.as_ref().map(|known| known.value), Ok(Physical::Hidden)) {
        remarks.push("/proc/iomem shows zeros: it shows addresses to root".to_owned());
    }
    remarks
}
