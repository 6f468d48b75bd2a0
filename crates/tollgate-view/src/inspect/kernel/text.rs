//! The evidence as text.

use tollgate_inspect::kernel_base::{
    Boot, Conclusion, DirectMap, Evidence, Known, Options, Physical, Symbols, Verdict,
};
use tollgate_model::Unknown;

use crate::figures;

/// The answer.
pub(crate) fn verdict(conclusion: &Conclusion) -> String {
    let answer = match (conclusion.verdict, conclusion.offset) {
        (Verdict::Moved, Some(offset)) => {
            let distance = offset.cast_signed();
            let sign = if distance < 0 { "-" } else { "+" };
            format!("moved, by {sign}{:#x} ({})", distance.unsigned_abs(), mebibytes(distance.unsigned_abs()))
        }
        (Verdict::Moved, None) => "moved, by an unknown distance".to_owned(),
        (Verdict::NotMoved, _) => "not moved".to_owned(),
        (Verdict::Unknown, _) => "inconclusive: whether the kernel was moved is unknown".to_owned(),
    };
    format!("{answer}: {}", conclusion.because)
}

/// `480 MiB`.
fn mebibytes(bytes: u64) -> String {
    figures::bytes(bytes as f64)
}

/// The number of possible addresses.
pub(crate) fn chances(conclusion: &Conclusion) -> String {
    format!(
        "A kernel that moves itself chooses one of at most {} virtual addresses: {:.1} bits.",
        conclusion.slots,
        (conclusion.slots as f64).log2()
    )
}

/// One line of evidence.
pub(crate) struct Line {
    /// The piece of evidence.
    pub name: &'static str,
    /// Its value, or the kind of its absence.
    pub says: String,
    /// Where it was read.
    pub source: String,
    /// Whether it is known.
    pub known: bool,
}

/// All of it, the best first.
pub(crate) fn evidence(evidence: &Evidence, conclusion: &Conclusion) -> Vec<Line> {
    let link = conclusion.link_address;
    vec![
        line("symbols", &evidence.symbols, |symbols| match symbols {
            Symbols::At(address) if *address == link => format!("{address:x}, as linked"),
            Symbols::At(address) => format!("{address:x}, not as linked"),
            Symbols::Hidden => "zeros: not visible here".to_owned(),
        }),
        line("offset", &evidence.core_offset, |offset| format!("{offset:#x}")),
        line("direct map", &evidence.direct_map, |DirectMap { base, is_usual }| match is_usual {
            true => format!("{base:x}, as usual"),
            false => format!("{base:x}, at random"),
        }),
        line("boot flag", &evidence.boot, |boot| match boot {
            Boot { moved: true, .. } => "set: chosen at random".to_owned(),
            Boot { has_header: true, .. } => "clear: not chosen at random".to_owned(),
            Boot { .. } => "clear, no boot header".to_owned(),
        }),
        line("physical", &evidence.physical, |physical| match physical {
            Physical::At { start, end } => format!("{start:#x} to {end:#x}"),
            Physical::Hidden => "zeros: not visible here".to_owned(),
        }),
        line("command line", &evidence.parameter, |text| {
            match text {
                Some(false) => "nokaslr",
                Some(true) => "kaslr",
                None => "neither kaslr nor nokaslr",
            }
            .to_owned()
        }),
        line("link map", &evidence.linked, |address| format!("{address:x}")),
        built(&evidence.options),
        line("release", &evidence.release, Clone::clone),
    ]
}

/// The most important option is in the table, the others are in its remark.
fn built(text: &Known<Options>) -> Line {
    let yes = |name: &str, set: bool| format!("{name}={}", if set { "y" } else { "n" });
    let mut line = line("built with", text, |options| yes("RANDOMIZE_BASE", options.randomize_base));
    if let Ok(text) = text {
        let options = &text.value;
        let number = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value:#x}"));
        let mut others = vec![
            yes("RANDOMIZE_MEMORY", options.randomize_memory),
            yes("RELOCATABLE", options.relocatable),
            yes("HIBERNATION", options.hibernation),
        ];
        others.extend(number("PHYSICAL_START", options.physical_start));
        others.extend(number("PHYSICAL_ALIGN", options.physical_align));
        line.source = format!("{}; {}", text.source, others.join(", "));
    }
    line
}

fn line<T>(name: &'static str, text: &Known<T>, words: impl FnOnce(&T) -> String) -> Line {
    match text {
        Ok(text) => Line { name, says: words(&text.value), source: text.source.clone(), known: true },
        Err(why) => {
            let (says, source) = match why {
                Unknown::Absent(why) => ("absent", why),
                Unknown::Refused(why) => ("refused", why),
                Unknown::Unreadable(why) => ("unreadable", why),
            };
            Line { name, says: says.to_owned(), source: source.clone(), known: false }
        }
    }
}
