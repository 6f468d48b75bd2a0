//! The facts as text, by subject: facts that affect a boundary first, equal values together, and unknown ones at the end with the
//! reason.

use anstyle::Style;
use tollgate_model::text::clean;
use tollgate_model::{Effect, Fact, FactValue, Facts};
use tollgate_output::table::{heading, wrap};

use super::group::Group;
use super::hanging::{FAINT, INDENT, hanging};
use super::reasons::reasons;
use crate::facts;

const STRONG: Style = Style::new().bold();
const DEEPER: &str = "      ";
/// Longer names have their value on the next line.
const WIDEST_NAME: usize = 32;
/// On narrower pages every value is on the next line.
const NARROW: usize = 56;
pub(super) const NOT_AFFECTED: &str = "Not affected";

/// All groups, with a line between them.
pub fn listing(groups: &[Group], facts: &Facts, width: usize) -> String {
    let groups: Vec<String> = groups.iter().map(|group| block(group, facts, width)).collect();
    groups.join("\n")
}

fn block(group: &Group, facts: &Facts, width: usize) -> String {
    let mut text = heading(&group.subject, width);
    let output = |fact: &Fact| fact.value().is_some();
    let affects = |name: &str| tollgate_inspect::effect(name).is_some();
    let (known, unknown): (Vec<_>, Vec<_>) = group.facts.iter().partition(|(_, fact)| output(fact));
    let (alike, single): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|(name, fact)| kind(name, fact).is_some());
    let (causes, others): (Vec<_>, Vec<_>) = single.into_iter().partition(|(name, _)| affects(name));
    let names = causes.iter().chain(&others).map(|(name, _)| name.chars().count());
    let column = names.filter(|&name| name <= WIDEST_NAME && width >= NARROW).max().unwrap_or(0);
    let mut said = None;
    for (name, fact) in causes.into_iter().chain(others) {
        let differs = differs(name, fact, facts);
        let effect = tollgate_inspect::effect(name);
        // Members of a family have the same effect: once is enough.
        let new = effect.filter(|_| effect != said);
        said = effect;
        text.push_str(&row((name, fact), differs, new, column, width));
    }
    for label in ["yes", "no", NOT_AFFECTED] {
        let items = alike.iter().filter(|(name, fact)| kind(name, fact) == Some(label));
        let items: Vec<String> = items.map(|(name, fact)| short(name, fact)).collect();
        if !items.is_empty() {
            let source = if label == NOT_AFFECTED { common_source(&alike) } else { String::new() };
            let list = format!("{}{source}", items.join(", "));
            text.push_str(&hanging(&format!("{label}: "), &list, Style::new(), width));
        }
    }
    text.push_str(&reasons(&unknown, facts, width));
    text
}

/// The value that a fact shares with many others of its family, if it has no effect of its own.
fn kind(name: &str, fact: &Fact) -> Option<&'static str> {
    let affects = tollgate_inspect::effect(name).is_some();
    match fact.value()? {
        FactValue::Flag(flag) if name.starts_with("cpu.feature.") && !affects => {
            Some(if *flag { "yes" } else { "no" })
        }
        FactValue::Text(text) if name.starts_with("mitigation.") && text == NOT_AFFECTED => {
            Some(NOT_AFFECTED)
        }
        _ => None,
    }
}

fn short(name: &str, fact: &Fact) -> String {
    match (name.strip_prefix("cpu.feature."), fact) {
        (Some(feature), Fact::Known { source, .. }) => format!("{feature} ({source})"),
        _ => name.strip_prefix("mitigation.").unwrap_or(name).to_owned(),
    }
}

fn common_source(facts: &[&(String, Fact)]) -> String {
    let sources = facts.iter().map(|(_, fact)| match fact {
        Fact::Known { source, .. } => source.rsplit_once('/').map(|(directory, _)| directory),
        Fact::Unknown { .. } => None,
    });
    let sources: std::collections::BTreeSet<Option<&str>> = sources.collect();
    match sources.into_iter().collect::<Vec<_>>()[..] {
        [Some(directory)] => format!(" [{directory}]"),
        _ => String::new(),
    }
}

fn row(
    (name, fact): (&str, &Fact),
    differs: bool,
    effect: Option<&Effect>,
    column: usize,
    width: usize,
) -> String {
    let Fact::Known { value, source } = fact else { return String::new() };
    let (name, source) = (clean(name), clean(source));
    let mut value = clean(&shown(&name, value)).into_owned();
    if differs {
        value.push_str(" (the kernel says otherwise)");
    }
    let columns = width.saturating_sub(INDENT.len() + column + 2).max(10);
    let mut lines = wrap(&value, columns);
    if lines.is_empty() {
        lines.push("(empty)".to_owned());
    }
    let mut text = String::new();
    let pad = INDENT.len() + column + 2;
    let mut lines = lines.into_iter().peekable();
    if name.chars().count() > column {
        for piece in wrap(&name, width.saturating_sub(INDENT.len())) {
            text.push_str(&format!("{INDENT}{STRONG}{piece}{STRONG:#}\n"));
        }
    } else if let Some(first) = lines.next() {
        let gap = column + 2 - name.chars().count();
        text.push_str(&format!("{INDENT}{STRONG}{name}{STRONG:#}{:gap$}{first}", ""));
        let used = pad + first.chars().count();
        // The source of a short value is on the same line.
        if lines.peek().is_none() && used + 2 + source.chars().count() + 2 <= width {
            text.push_str(&format!("  {FAINT}[{source}]{FAINT:#}\n"));
            return text + &influence(effect, None, width);
        }
        text.push('\n');
    }
    lines.for_each(|line| text.push_str(&format!("{:pad$}{line}\n", "")));
    text + &influence(effect, Some(&source), width)
}

/// Large numbers of bytes have a unit; other numbers stay as they are.
fn shown(name: &str, value: &FactValue) -> String {
    match value {
        FactValue::Real(x) => format!("{x:.2}"),
        value => facts::in_words(name, value),
    }
}

fn influence(effect: Option<&Effect>, source: Option<&str>, width: usize) -> String {
    let mut text = String::new();
    if let Some(effect) = effect {
        text.push_str(&hanging(&format!("{DEEPER}affects "), &effect.to_string(), FAINT, width));
    }
    if let Some(source) = source {
        let source = format!("[{source}]");
        text.push_str(&hanging(DEEPER, &source, FAINT, width));
    }
    text
}

fn differs(name: &str, fact: &Fact, facts: &Facts) -> bool {
    let kernel = name.strip_suffix(".cpuid").and_then(|name| facts.get(name)?.value());
    kernel.is_some_and(|kernel| Some(kernel) != fact.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(facts: &[(&str, Fact)], width: usize) -> String {
        let listed: Vec<(String, Fact)> =
            facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
        let facts: Facts = listed.iter().cloned().collect();
        let group = Group { subject: "subject".to_owned(), facts: listed };
        anstream::adapter::strip_str(&listing(&[group], &facts, width)).to_string()
    }

    #[test]
    fn what_has_an_effect_comes_first_and_what_is_not_known_last() {
        let text = plain(
            &[
                ("kernel.lsm", Fact::refused("/sys/kernel/security/lsm: Permission denied (os error 13)")),
                ("cpu.family", Fact::known(6_i64, "CPUID.1:EAX")),
                ("mitigation.meltdown", Fact::known("Mitigation: PTI", "/sys/meltdown")),
                ("mitigation.mds", Fact::known("Not affected", "/sys/mds")),
                ("mitigation.l1tf", Fact::known("Not affected", "/sys/l1tf")),
                ("cpu.vendor", Fact::absent("not here")),
                ("cpu.model", Fact::absent("not here")),
                ("cpu.smt_active", Fact::absent("/sys/cpu/smt does not exist")),
                ("cpu.online", Fact::absent("/sys/cpu/online does not exist")),
            ],
            80,
        );
        let expected = "\
subject
  mitigation.meltdown  Mitigation: PTI  [/sys/meltdown]
      affects kernel entry: PTI switches page tables at every crossing
  cpu.family           6  [CPUID.1:EAX]
  Not affected: mds, l1tf [/sys]
  refused: kernel.lsm (/sys/kernel/security/lsm: Permission denied). Root may
           mostly read them
  absent: cpu.vendor, cpu.model (not here); cpu.smt_active, cpu.online (not in
          /sys/cpu: smt, online)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        let long = "word ".repeat(60);
        let facts = [
            ("kernel.command_line", Fact::known(long.as_str(), "/proc/cmdline")),
            ("cpu.a_name_that_is_longer_than_any_other_name", Fact::known("x".repeat(300), "y".repeat(200))),
            ("cpu.threads_per_core", Fact::known(1_i64, "a")),
            ("cpu.threads_per_core.cpuid", Fact::known(2_i64, "b")),
            ("memory.total", Fact::known(3_i64 << 30, "c")),
            ("kernel.lsm", Fact::unreadable(long.as_str())),
            ("memory.thp", Fact::known("\u{1b}[31m", "c")),
        ];
        for width in [30, 40, 60, 80, 120] {
            let text = plain(&facts, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(!text.contains('\u{1b}') && text.contains("3 GiB"), "{text}");
        }
        assert!(plain(&facts, 80).contains("2 (the kernel says otherwise)"));
    }
}
