//! The machine and the environment of a run in two lines.

use tollgate_inspect::{OUTER, is_named};
use tollgate_model::{Fact, FactValue};
use tollgate_output::figures;
use tollgate_output::table::cut;
use unicode_width::UnicodeWidthStr;

use super::COLUMNS;
use crate::summary::Summary;
use crate::{burdens, counts, facts};

/// `Intel Xeon, 2 vCPU | L1d 48K  L2 2M  L3 105M | TSC 2.00 GHz, measured on CPU 1`, and
/// `Linux 6.18.44 in KVM/Firecracker, nested | PTI off, retpolines`.
pub fn lines(summary: &Summary) -> [String; 2] {
    let facts = &summary.run.facts;
    let text = |name: &str| facts::text(facts, name);
    let number = |name: &str| facts::number(facts, name);
    let list = |name: &str| match facts.get(name).and_then(Fact::value) {
        Some(FactValue::List(items)) => items.as_slice(),
        _ => &[],
    };
    let is_guest = facts::flag(facts, "hypervisor.present") == Some(true);
    let processor = text("cpu.model").map_or("unknown processor".to_owned(), brand);
    let processors = number("cpu.online").map(|online| {
        let word = match (is_guest, online == 1.0) {
            (true, _) => "vCPU",
            (false, true) => "CPU",
            (false, false) => "CPUs",
        };
        format!(", {online} {word}")
    });
    let cache = |(name, fact): (&str, &str)| number(fact).map(|bytes| format!("{name} {}", size(bytes)));
    // A translator has no relevant caches, and no processor of its own.
    let is_counted = counts::is_counted(summary);
    let caches = [("L1d", "cache.l1d"), ("L2", "cache.l2"), ("L3", "cache.l3")]
        .into_iter()
        .filter(|_| !is_counted)
        .filter_map(cache)
        .collect::<Vec<_>>()
        .join("  ");
    let pace = number(facts::CLOCK_HZ).map(|hz| format!(" {}", figures::frequency(hz))).unwrap_or_default();
    let clock = if is_counted {
        "instructions counted".to_owned()
    } else if facts::clock_is_tsc(facts) {
        format!("TSC{pace}")
    } else if text(facts::CLOCK) == Some("cntvct") {
        format!("counter{pace}")
    } else {
        text(facts::CLOCK).unwrap_or_default().to_owned()
    };
    let on = number(facts::CPU).filter(|_| !is_counted);
    let machine = |brand: &str, words: &str| {
        let on = on.map(|cpu| format!("{words} {cpu}"));
        let clock: Vec<String> =
            Some(clock.clone()).filter(|clock| !clock.is_empty()).into_iter().chain(on).collect();
        joined([
            format!("{brand}{}", processors.as_deref().unwrap_or_default()),
            caches.clone(),
            clock.join(", "),
        ])
    };

    let kernel = text("kernel.release").map_or("unknown kernel".to_owned(), |name| format!("Linux {name}"));
    let sandbox = text("sandbox.kernel").map(|name| format!(" ({name})")).unwrap_or_default();
    let (layers, others): (Vec<&str>, Vec<&str>) =
        list("hypervisor.layers").iter().map(String::as_str).partition(|layer| is_named(layer));
    let is_nested = others.contains(&OUTER) || !list("hypervisor.nesting").is_empty();
    let nested = if is_nested { ", nested" } else { "" };
    let within = match (is_guest, layers.is_empty()) {
        (true, false) => format!(" in {}{nested}", layers.join("/")),
        (true, true) => format!(" in a virtual machine{nested}"),
        (false, _) => String::new(),
    };
    let containers = list("container.layers").join("/");
    let filters = number("seccomp.filters").filter(|filters| *filters > 0.0);
    let filters =
        filters.map(|filters| figures::count(filters as usize, "seccomp filter", "seccomp filters"));
    let mut mitigations = burdens::mitigations(facts);
    if facts::flag(facts, "mitigation.pti") == Some(false) {
        mitigations.insert(0, "PTI off".to_owned());
    }
    [
        fitting(&processor, machine),
        joined([
            format!("{kernel}{sandbox}{within}"),
            containers,
            filters.unwrap_or_default(),
            mitigations.join(", "),
        ]),
    ]
}

/// The machine's line within the screen: if it is too narrow, with fewer words, then with the beginning of the brand. The
/// measured processor is always named.
fn fitting(brand: &str, line: impl Fn(&str, &str) -> String) -> String {
    let lines = ["measured on CPU", "on CPU"].map(|words| line(brand, words));
    let beyond = lines[1].width().saturating_sub(COLUMNS);
    let shorter = || line(&cut(brand, brand.width().saturating_sub(beyond)), "on CPU");
    lines.into_iter().find(|line| line.width() <= COLUMNS).unwrap_or_else(shorter)
}

fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
}

/// A brand string without the words that every one of its kind has.
fn brand(model: &str) -> String {
    let model = model.split('@').next().unwrap_or(model);
    let words = model.split_whitespace().map(|word| word.replace("(R)", "").replace("(TM)", ""));
    let words: Vec<String> =
        words.filter(|word| !["Processor", "CPU", ""].contains(&word.as_str())).collect();
    words.join(" ")
}

/// `48K`, `2M`, `1.5M`.
fn size(bytes: f64) -> String {
    let (amount, unit) = match bytes {
        large if large >= 1_048_576.0 => (bytes / 1_048_576.0, "M"),
        _ => (bytes / 1024.0, "K"),
    };
    if amount.fract() == 0.0 { format!("{amount}{unit}") } else { format!("{amount:.1}{unit}") }
}
