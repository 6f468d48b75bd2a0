//! The evidence in words.

use tollgate_inspect::kernel_base::{
    Boot, Conclusion, DirectMap, Evidence, Known, Options, Physical, Symbols, Verdict,
};
use tollgate_model::Unknown;

use crate::figures;

/// The answer.
pub fn verdict(conclusion: &Conclusion) -> String {
    let answer = match (conclusion.verdict, conclusion.offset) {
        (Verdict::Moved, Some(offset)) => {
            let distance = offset.cast_signed();
            let sign = if distance < 0 { "-" } else { "+" };
            format!("moved, by {sign}{:#x} ({})", distance.unsigned_abs(), mebibytes(distance.unsigned_abs()))
        }
        (Verdict::Moved, None) => "moved, how far is not visible".to_owned(),
        (Verdict::NotMoved, _) => "not moved".to_owned(),
        (Verdict::Unknown, _) => "cannot tell whether the kernel was moved".to_owned(),
    };
    format!("{answer}: {}", conclusion.because)
}

/// `480 MiB`.
fn mebibytes(bytes: u64) -> String {
    figures::bytes(bytes as f64)
}

/// How many places there were to choose from.
pub fn chances(conclusion: &Conclusion) -> String {
    format!(
        "A kernel that moves itself chooses one of at most {} places in virtual memory: {:.1} bits.",
        conclusion.slots,
        (conclusion.slots as f64).log2()
    )
}

/// One line of evidence.
pub struct Line {
    /// What was looked at.
    pub name: &'static str,
    /// What it says, or why it says nothing.
    pub says: String,
    /// Where it was read.
    pub source: String,
    /// Whether it says anything.
    pub known: bool,
}

/// All of it, the best first.
pub fn evidence(evidence: &Evidence, conclusion: &Conclusion) -> Vec<Line> {
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
        line("command line", &evidence.told, |told| {
            match told {
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

/// What matters most stands in the table, the rest beside it.
fn built(told: &Known<Options>) -> Line {
    let yes = |name: &str, set: bool| format!("{name}={}", if set { "y" } else { "n" });
    let mut line = line("built with", told, |options| yes("RANDOMIZE_BASE", options.randomize_base));
    if let Ok(told) = told {
        let options = &told.value;
        let number = |name: &str, value: Option<u64>| value.map(|value| format!("{name}={value:#x}"));
        let mut others = vec![
            yes("RANDOMIZE_MEMORY", options.randomize_memory),
            yes("RELOCATABLE", options.relocatable),
            yes("HIBERNATION", options.hibernation),
        ];
        others.extend(number("PHYSICAL_START", options.physical_start));
        others.extend(number("PHYSICAL_ALIGN", options.physical_align));
        line.source = format!("{}; {}", told.source, others.join(", "));
    }
    line
}

fn line<T>(name: &'static str, told: &Known<T>, words: impl FnOnce(&T) -> String) -> Line {
    match told {
        Ok(told) => Line { name, says: words(&told.value), source: told.source.clone(), known: true },
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
