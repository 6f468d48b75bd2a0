//! The facts on one screen: what determines latencies most, a row for each subject, as in lscpu(1).

use tollgate_model::text::{beginning, clean};
use tollgate_model::{Fact, FactValue, Facts, Unknown};
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

use super::group::WHEN;
use super::listing::NOT_AFFECTED;
use crate::facts::{flag, is_arm64, number, sized, text};

const LABEL: usize = 14;
/// No processor has more.
const MOST_CACHES: usize = 6;
/// Further mitigations are counted, not named.
const MOST_MITIGATIONS: usize = 9;
const MITIGATED: &str = "Mitigation: ";

/// The screen.
pub fn screen(facts: &Facts, width: usize) -> String {
    let mut text = row("Processor", processor(facts), width);
    text.push_str(&row("Topology", topology(facts), width));
    text.push_str(&caches(facts, width));
    for (label, parts) in [
        ("Memory", memory(facts)),
        ("Kernel", kernel(facts)),
        ("Entry", entry(facts)),
        ("Hypervisor", hypervisor(facts)),
        ("Container", container(facts)),
        ("Clocks", clocks(facts)),
        ("Power", power(facts)),
        ("Limits", limits(facts)),
        ("Files", files(facts)),
        ("Now", now(facts)),
    ] {
        text.push_str(&row(label, parts, width));
        if label == "Entry" {
            text.push_str(&mitigations(facts, width));
        }
    }
    text.push_str(&row("Unknown", unknown(facts), width));
    let more = ["--all shows every fact, --affects BOUNDARY those of one boundary".to_owned()];
    text.push_str(&row("More", more, width));
    text
}

fn row(label: &str, parts: impl IntoIterator<Item = String>, width: usize) -> String {
    // A text from elsewhere may have any length.
    const LONGEST: usize = 160;
    let parts: Vec<String> = parts.into_iter().map(|part| beginning(&part, LONGEST).into_owned()).collect();
    if parts.is_empty() {
        String::new()
    } else {
        paragraph(&parts.join(", "), width, &format!("{label:LABEL$}"))
    }
}

fn processor(facts: &Facts) -> Vec<String> {
    let model = text(facts, "cpu.model").or_else(|| text(facts, "cpu.vendor")).map(str::to_owned);
    let numbers = [("family", "cpu.family"), ("model", "cpu.model_number"), ("stepping", "cpu.stepping")];
    let numbers = numbers.map(|(name, fact)| Some(format!("{name} {}", number(facts, fact)?)));
    let numbers: Vec<String> = numbers.into_iter().flatten().collect();
    let microcode = text(facts, "cpu.microcode").map(|revision| format!("microcode {revision}"));
    let numbers = (!numbers.is_empty()).then(|| numbers.join(" "));
    let atomics = flag(facts, "cpu.feature.atomics");
    let atomics = atomics.map(|has| if has { "atomics by LSE" } else { "no LSE: atomics are loops" });
    [model, numbers, microcode, atomics.map(str::to_owned)].into_iter().flatten().collect()
}

fn topology(facts: &Facts) -> Vec<String> {
    let counted = |fact: &str, one: &str, many: &str| {
        number(facts, fact).map(|number| figures::count(number as usize, one, many))
    };
    let online = number(facts, "cpu.online");
    let allowed = number(facts, "cpu.allowed").filter(|&allowed| Some(allowed) != online);
    let allowed = allowed.map(|allowed| match text(facts, "cpu.allowed_list") {
        Some(list) => format!("{allowed} of them allowed here ({list})"),
        None => format!("{allowed} of them allowed here"),
    });
    let isolated = text(facts, "cpu.isolated").filter(|list| *list != "none");
    let parts = [
        counted("cpu.online", "CPU", "CPUs"),
        allowed,
        counted("cpu.packages", "package", "packages"),
        counted("cpu.cores", "core", "cores"),
        counted("cpu.threads_per_core", "thread per core", "threads per core"),
        counted("cpu.nodes", "NUMA node", "NUMA nodes"),
        isolated.map(|list| format!("isolated {list}")),
    ];
    parts.into_iter().flatten().collect()
}

fn caches(facts: &Facts, width: usize) -> String {
    let mut table =
        Table::new(&["Caches", "size", "ways", "instances", "shared by"]).with_words(&["shared by"]);
    // `cache.line` is the size of a line.
    let is_level = |name: &&str| name.starts_with(|c: char| c.is_ascii_digit());
    let name =
        |fact: &str| Some(fact.strip_prefix("cache.l")?.split('.').next().filter(is_level)?.to_owned());
    let names: std::collections::BTreeSet<String> = facts.keys().filter_map(|fact| name(fact)).collect();
    let mut is_known = false;
    for name in names.iter().take(MOST_CACHES) {
        let fact = format!("cache.l{name}");
        let of = |part: &str| number(facts, &format!("{fact}.{part}")).map(|number| number.to_string());
        let by_kernel = number(facts, &fact);
        let size = by_kernel.or_else(|| number(facts, &format!("{fact}.cpuid")));
        let Some(size) = size else { continue };
        let list = text(facts, &format!("{fact}.shared"));
        let shared = list.map(|list| match processors_in(list) {
            1 => "1 CPU".to_owned(),
            several => format!("{several} CPUs ({list})"),
        });
        let sizes = list_of(facts, &format!("{fact}.sizes"));
        let sizes: Vec<String> =
            sizes.map(|sizes| format!("sizes {}", sizes.join(", "))).into_iter().collect();
        let of_cpuid = by_kernel.is_none().then(|| "by CPUID alone".to_owned());
        let shared = [shared, of_cpuid].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let cells =
            [format!("  L{name}"), sized(size as i64), or_none(of("ways")), or_none(of("instances")), shared];
        is_known = true;
        table.row(Look::Plain, &cells.map(|cell| beginning(&cell, 40).into_owned()), &sizes);
    }
    if is_known { table.render(width) } else { String::new() }
}

fn processors_in(list: &str) -> u64 {
    let parts = list.split(',').filter_map(|part| match part.split_once('-') {
        Some((first, last)) => last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1),
        None => part.parse::<u64>().ok().map(|_| 1),
    });
    parts.fold(0, u64::saturating_add)
}

fn memory(facts: &Facts) -> Vec<String> {
    let bytes = |fact: &str| number(facts, fact).map(|bytes| sized(bytes as i64));
    let swap = number(facts, "memory.swap").map(|swap| match swap as i64 {
        0 => "no swap".to_owned(),
        swap => format!("{} swap", sized(swap)),
    });
    let page = number(facts, "memory.page_size").filter(|bytes| *bytes != 4096.0);
    let reserved = number(facts, "memory.reserved_huge_pages").filter(|pages| *pages > 0.0);
    let parts = [
        bytes("memory.total"),
        swap,
        page.map(|bytes| format!("pages of {}", sized(bytes as i64))),
        text(facts, "memory.thp").map(|use_of| format!("transparent huge pages {use_of}")),
        number(facts, "cache.line").map(|bytes| format!("{bytes}-byte lines")),
        reserved.map(|pages| format!("{pages} huge pages reserved")),
    ];
    parts.into_iter().flatten().collect()
}

fn kernel(facts: &Facts) -> Vec<String> {
    let release = text(facts, "kernel.release");
    let name = match (text(facts, "sandbox.kernel"), release) {
        (Some(sandbox), Some(release)) => Some(format!("{sandbox}, which calls itself Linux {release}")),
        (Some(sandbox), None) => Some(sandbox.to_owned()),
        (None, release) => release.map(|release| format!("Linux {release}")),
    };
    let parts = [
        name,
        text(facts, "kernel.preemption").map(|model| format!("preemption {model}")),
        number(facts, "kernel.tick_rate").map(|rate| format!("tick {rate} Hz")),
        number(facts, "kernel.randomize_va_space")
            .filter(|&mode| mode < 2.0)
            .map(|mode| format!("ASLR {mode}")),
        list_of(facts, "kernel.lsm")
            .filter(|modules| !modules.is_empty())
            .map(|it| format!("LSM {}", it.join(" "))),
    ];
    parts.into_iter().flatten().collect()
}

fn entry(facts: &Facts) -> Vec<String> {
    let on = |name: &str, fact: &str| {
        flag(facts, fact).map(|flag| format!("{name} {}", if flag { "on" } else { "off" }))
    };
    let used = list_of(facts, "kernel.entry_features").unwrap_or_default();
    let fred = flag(facts, "cpu.feature.fred").map(|fred| match (fred, used.iter().any(|it| it == "fred")) {
        (false, _) => "no FRED",
        (true, true) => "FRED",
        (true, false) => "FRED not used by the kernel",
    });
    let has = |fact: &str| flag(facts, fact) == Some(true);
    let is_arm64 = is_arm64(facts);
    let instruction = Some("SVC").filter(|_| is_arm64);
    let instruction = instruction.or(Some("SYSCALL").filter(|_| has("cpu.feature.syscall")));
    let keys = has("cpu.feature.paca").then(|| "keys of PAuth".to_owned());
    // entry_64_compat.S: Intel's processors have SYSENTER in compatibility mode, AMD's SYSCALL.
    let fast = match text(facts, "cpu.vendor") {
        Some("AuthenticAMD" | "HygonGenuine") => "SYSCALL",
        _ if has("cpu.feature.sep") => "SYSENTER",
        _ => "",
    };
    let compat = match text(facts, "abi.ia32") {
        Some("disabled") => "32-bit disabled".to_owned(),
        Some(_) if fast.is_empty() => "32-bit by int 0x80".to_owned(),
        Some(_) => format!("32-bit by {fast} and int 0x80"),
        None => "32-bit unknown".to_owned(),
    };
    let seccomp = text(facts, "seccomp.mode").map(|mode| match (mode, number(facts, "seccomp.filters")) {
        ("disabled", _) => "no seccomp filter".to_owned(),
        ("filter", Some(filters)) => figures::count(filters as usize, "seccomp filter", "seccomp filters"),
        (mode, _) => format!("seccomp {mode}"),
    });
    let traced = number(facts, "process.tracer").is_some_and(|tracer| tracer > 0.0);
    let parts = [
        on("PTI", "mitigation.pti"),
        fred.map(str::to_owned),
        instruction.map(|instruction| format!("64-bit by {instruction}")),
        keys,
        Some(compat).filter(|_| !is_arm64),
        seccomp,
        traced.then(|| "traced by another process".to_owned()),
    ];
    parts.into_iter().flatten().collect()
}

/// Those that are off are counted.
fn mitigations(facts: &Facts, width: usize) -> String {
    let all = facts.iter().filter_map(|(name, fact)| {
        let name = name.strip_prefix("mitigation.")?;
        Some((name, fact.value()?.as_text()?))
    });
    let all: Vec<(&str, &str)> = all.collect();
    let mitigated =
        |text: &'_ str| text.find(MITIGATED).map(|at| parts_that_are_on(&text[at + MITIGATED.len()..]));
    let on = all.iter().filter_map(|(name, text)| Some((*name, mitigated(text)?)));
    let on: Vec<(&str, String)> = on.collect();
    let column = on.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(28) + 2;
    let room = width.saturating_sub(LABEL).max(20);
    let mut lines: Vec<String> = Vec::new();
    for (name, text) in on.iter().take(MOST_MITIGATIONS) {
        lines.push(beginning(&clean(&format!("{name:column$}{text}")), room - 1).into_owned());
    }
    let vulnerable = all.iter().filter(|(_, text)| text.starts_with("Vulnerable")).count();
    let unaffected = all.iter().filter(|(_, text)| *text == NOT_AFFECTED).count();
    let others = all.len() - on.len() - vulnerable - unaffected;
    let counts = [
        (on.len().saturating_sub(MOST_MITIGATIONS), "more on"),
        (vulnerable, "off and vulnerable"),
        (unaffected, "not needed"),
        (others, "unclear"),
    ];
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let counts: Vec<String> = counts.map(|(number, what)| format!("{number} {what}")).collect();
    if !counts.is_empty() {
        lines.push(counts.join(", "));
    }
    let labels = std::iter::once("Mitigations").chain(std::iter::repeat(""));
    lines.iter().zip(labels).map(|(line, label)| format!("{label:LABEL$}{line}\n")).collect()
}

/// `Retpolines, RSB filling` of `Retpolines; STIBP: disabled; RSB filling; PBRSB-eIBRS: Not affected`.
fn parts_that_are_on(mitigation: &str) -> String {
    const OFF: [&str; 5] = ["disabled", "Not affected", "Vulnerable", "unknown", "vulnerable"];
    let parts = mitigation.split("; ").enumerate();
    // The first is the mitigation itself.
    let on = parts.filter(|(at, part)| *at == 0 || !OFF.iter().any(|off| part.ends_with(off)));
    on.map(|(_, part)| part).collect::<Vec<_>>().join(", ")
}

fn hypervisor(facts: &Facts) -> Vec<String> {
    let layers = list_of(facts, "hypervisor.layers").map(|layers| match layers {
        [] => "none found".to_owned(),
        layers => layers.join(", "),
    });
    let cpuid = text(facts, "hypervisor.cpuid").map(|class| match class {
        "exit" => "CPUID exits".to_owned(),
        "slow exit" => "CPUID exits slowly".to_owned(),
        class => format!("CPUID {class}"),
    });
    let machine = ["machine.vendor", "machine.product"].map(|fact| text(facts, fact));
    let machine: Vec<&str> = machine.into_iter().flatten().collect();
    let machine = (!machine.is_empty()).then(|| format!("on {}", machine.join(" ")));
    [layers, cpuid, machine].into_iter().flatten().collect()
}

fn container(facts: &Facts) -> Vec<String> {
    let layers = list_of(facts, "container.layers").map(|layers| match layers {
        [] => "none found".to_owned(),
        layers => layers.join(", "),
    });
    let version = text(facts, "cgroup.version").map(|version| format!("control groups version {version}"));
    let root = text(facts, "container.root").map(|kind| format!("root on {kind}"));
    [layers, root, version].into_iter().flatten().collect()
}

fn clocks(facts: &Facts) -> Vec<String> {
    let source =
        text(facts, "clocksource.current").map(|source| match flag(facts, "clocksource.in_user_mode") {
            Some(true) => format!("clock source {source}, read in user mode"),
            Some(false) => format!("clock source {source}, read by system call"),
            None => format!("clock source {source}"),
        });
    let invariant = flag(facts, "cpu.feature.invariant_tsc");
    let invariant = invariant.map(|flag| if flag { "invariant" } else { "not invariant" });
    let (counter, fact) = match is_arm64(facts) {
        true => ("counter", "clock.counter_frequency"),
        false => ("TSC", "clock.tsc_frequency"),
    };
    let counter = match number(facts, fact) {
        Some(hz) => format!("{counter} {}", figures::frequency(hz)),
        None => format!("{counter} of unstated frequency"),
    };
    [source, Some(counter), invariant.map(str::to_owned)].into_iter().flatten().collect()
}

fn power(facts: &Facts) -> Vec<String> {
    let governor = text(facts, "power.governor").map(|governor| format!("governor {governor}"));
    let khz = number(facts, "power.frequency_max");
    let idle = text(facts, "power.idle_driver").filter(|driver| *driver != "none");
    let parts = [
        governor,
        khz.map(|khz| format!("up to {}", figures::frequency(khz * 1000.0))),
        flag(facts, "power.boost").map(|boost| format!("boost {}", if boost { "on" } else { "off" })),
        idle.map(|driver| format!("idle driver {driver}")),
    ];
    parts.into_iter().flatten().collect()
}

fn limits(facts: &Facts) -> Vec<String> {
    let limit = |fact: &str, is_bytes: bool| match facts.get(fact)?.value()? {
        FactValue::Integer(bytes) if is_bytes => Some(sized(*bytes)),
        FactValue::Text(text) if text == "no limit" || text == "unlimited" => None,
        value => Some(value.to_string()),
    };
    let named = [
        ("CPUs", "cgroup.cpu_max", false),
        ("memory", "cgroup.memory_max", true),
        ("tasks", "cgroup.pids_max", false),
        ("processes", "process.limit.processes", false),
        ("open files", "process.limit.files", false),
        ("locked memory", "process.limit.locked_memory", true),
        ("stack", "process.limit.stack", true),
        ("address space", "process.limit.address_space", true),
    ];
    let limits = named.into_iter().filter_map(|(name, fact, is_bytes)| {
        let cgroup = if fact.starts_with("cgroup.") { "cgroup " } else { "" };
        Some(format!("{cgroup}{name} {}", limit(fact, is_bytes)?))
    });
    let limits: Vec<String> = limits.collect();
    let is_known =
        named.iter().any(|(_, fact, _)| facts.get(*fact).is_some_and(|fact| fact.value().is_some()));
    if limits.is_empty() && is_known { vec!["none".to_owned()] } else { limits }
}

fn files(facts: &Facts) -> Vec<String> {
    let under = text(facts, "files.dir").map(|dir| format!(" under {dir}")).unwrap_or_default();
    let kind = text(facts, "files.fs").map(|kind| format!("{kind}{under}"));
    let parts = [
        kind,
        text(facts, "files.device").map(|device| format!("on {device}")),
        text(facts, "files.device.scheduler").map(|scheduler| format!("scheduler {scheduler}")),
        number(facts, "files.free").map(|free| format!("{} free", sized(free as i64))),
    ];
    parts.into_iter().flatten().collect()
}

fn now(facts: &Facts) -> Vec<String> {
    let load = number(facts, &format!("load.{WHEN}")).map(|load| format!("load {load:.2}"));
    let waiting = number(facts, &format!("pressure.cpu.{WHEN}"));
    let waiting = waiting.map(|percent| format!("tasks wait for a CPU {percent:.0} % of the time"));
    [load, waiting].into_iter().flatten().collect()
}

fn unknown(facts: &Facts) -> Vec<String> {
    let count = |of: fn(&Unknown) -> bool| {
        facts.values().filter(|fact| matches!(fact, Fact::Unknown { why } if of(why))).count()
    };
    let is_root = number(facts, "process.user") == Some(0.0);
    let counts = [
        (
            count(|why| matches!(why, Unknown::Refused(_))),
            if is_root { "refused even to root" } else { "unknown without root" },
        ),
        (count(|why| matches!(why, Unknown::Unreadable(_))), "unreadable"),
        (count(|why| matches!(why, Unknown::Absent(_))), "absent"),
    ];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    counts.map(|(number, why)| format!("{number} {why}")).collect()
}

fn list_of<'a>(facts: &'a Facts, name: &str) -> Option<&'a [String]> {
    match facts.get(name)?.value()? {
        FactValue::List(items) => Some(items),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(known: &[(&str, FactValue)]) -> Facts {
        known.iter().map(|(name, value)| ((*name).to_owned(), Fact::known(value.clone(), "test"))).collect()
    }

    fn plain(facts: &Facts, width: usize) -> String {
        anstream::adapter::strip_str(&screen(facts, width)).to_string()
    }

    #[test]
    fn what_is_off_is_left_out_of_a_mitigation() {
        let of = "Retpolines; IBPB: conditional; STIBP: disabled; RSB filling; PBRSB-eIBRS: Not affected";
        assert_eq!(parts_that_are_on(of), "Retpolines, IBPB: conditional, RSB filling");
        assert_eq!(parts_that_are_on("TSX disabled"), "TSX disabled");
    }

    #[test]
    fn mitigations_that_are_on_are_named_and_others_counted() {
        let facts = facts(&[
            ("mitigation.meltdown", "Mitigation: PTI".into()),
            ("mitigation.itlb_multihit", "KVM: Mitigation: VMX unsupported".into()),
            ("mitigation.mds", "Not affected".into()),
            ("mitigation.retbleed", "Vulnerable".into()),
            ("mitigation.tsa", "Unknown: Dependent on hypervisor status".into()),
            ("mitigation.pti", true.into()),
        ]);
        let text = plain(&facts, 80);
        let expected = "\
Mitigations   itlb_multihit  VMX unsupported
              meltdown       PTI
              1 off and vulnerable, 1 not needed, 1 unclear
";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("PTI on"), "{text}");
    }

    #[test]
    fn caches_are_a_table_over_all_processors() {
        let facts = facts(&[
            ("cache.l1d", 49_152_i64.into()),
            ("cache.l1d.ways", 12_i64.into()),
            ("cache.l1d.instances", 14_i64.into()),
            ("cache.l1d.shared", "0-1".into()),
            ("cache.l1d.sizes", FactValue::List(vec!["6 of 48K".to_owned(), "8 of 32K".to_owned()])),
            ("cache.l2.cpuid", (1_i64 << 21).into()),
            ("cache.line", 64_i64.into()),
        ]);
        let text = plain(&facts, 80);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "Caches size ways instances shared by");
        assert_eq!(lines[1], "L1d 48 KiB 12 14 2 CPUs (0-1)");
        assert_eq!(lines[2], "sizes 6 of 48K, 8 of 32K");
        assert_eq!(lines[3], "L2 2 MiB – – by CPUID alone");
        assert_eq!([processors_in("0-5,12-17"), processors_in("3"), processors_in("5-1")], [12, 1, 0]);
    }

    #[test]
    fn unknown_facts_are_one_line() {
        let mut facts: Facts = (0..7).map(|n| (format!("a{n}"), Fact::refused("no"))).collect();
        facts.insert("b".to_owned(), Fact::absent("none"));
        assert!(plain(&facts, 80).contains("Unknown       7 unknown without root, 1 absent\n"));
        facts.insert("process.user".to_owned(), Fact::known(0_i64, "test"));
        assert!(plain(&facts, 80).contains("7 refused even to root"));
    }

    #[test]
    fn texts_from_elsewhere_stay_within_the_screen() {
        let evil = format!("\u{1b}]0;owned\u{7}\u{202e}{}", "x".repeat(4000));
        let names = [
            "cpu.model",
            "cpu.microcode",
            "cpu.allowed_list",
            "cpu.isolated",
            "memory.thp",
            "kernel.release",
            "kernel.preemption",
            "abi.ia32",
            "seccomp.mode",
            "hypervisor.cpuid",
            "machine.vendor",
            "machine.product",
            "container.root",
            "clocksource.current",
            "power.governor",
            "files.dir",
            "files.fs",
            "files.device",
            "cache.l1d.shared",
        ];
        let mut facts: Facts =
            names.iter().map(|name| ((*name).to_owned(), Fact::known(evil.as_str(), "test"))).collect();
        for n in 0..60 {
            facts.insert(format!("mitigation.m{n}"), Fact::known(format!("Mitigation: {evil}"), "test"));
            facts.insert(format!("cache.l{n}"), Fact::known(n * 1000, "test"));
        }
        for width in [40, 60, 80, 120] {
            let text = plain(&facts, width);
            assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
