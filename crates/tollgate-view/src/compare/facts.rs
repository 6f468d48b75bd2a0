//! The facts that differ between two runs, as text.

use tollgate_model::compare::FactDifference;
use tollgate_model::{Fact, Unknown};
use tollgate_output::table::paragraph;

/// `memory.thp: madvise → always`
pub(crate) fn change(fact: &FactDifference) -> String {
    let of = |fact: &Option<Fact>| match fact {
        Some(Fact::Unknown { why: Unknown::Absent(_) }) => "none".to_owned(),
        fact => in_words(fact.as_ref()),
    };
    let (base, other) = (of(&fact.base), of(&fact.other));
    let same = same_beginning(&base, &other);
    format!("{}: {} → {}", fact.name, short(&base, same), short(&other, same))
}

/// Characters that are shown: a list such as the processor's flags would hide the others.
const MOST: usize = 60;

/// The bytes that two values too long to be shown have in common at the beginning, in whole words. A kernel's command line
/// differs at its end.
fn same_beginning(base: &str, other: &str) -> usize {
    if base.chars().count().max(other.chars().count()) <= MOST {
        return 0;
    }
    let both = base.char_indices().zip(other.chars()).take_while(|((_, one), other)| one == other);
    let words = both.filter(|((_, one), _)| *one == ' ').map(|((at, _), _)| at + 1);
    words.last().unwrap_or(0)
}

fn short(value: &str, same: usize) -> String {
    let (before, rest) = if same > 0 { ("… ", &value[same..]) } else { ("", value) };
    match rest.char_indices().nth(MOST) {
        Some((at, _)) => format!("{before}{}…", &rest[..at]),
        None => format!("{before}{rest}"),
    }
}

fn is_known(fact: &Option<Fact>) -> bool {
    fact.as_ref().is_some_and(|fact| fact.value().is_some())
}

pub(crate) fn facts_text(facts: &[FactDifference], width: usize) -> String {
    let of_kind = |base: bool, other: bool| {
        facts.iter().filter(move |fact| is_known(&fact.base) == base && is_known(&fact.other) == other)
    };
    let mut text = String::new();
    if of_kind(true, true).next().is_some() {
        let heading = "Facts that differ, base → other; likely causes first:";
        text.push_str(&paragraph(heading, width, ""));
    }
    for fact in of_kind(true, true) {
        text.push_str(&paragraph(&change(fact), width, "  "));
        if let Some(effect) = tollgate_inspect::effect(&fact.name) {
            text.push_str(&paragraph(&format!("affects {effect}"), width, "      "));
        }
    }
    // Facts that one run lacks are only named; `show --format json` has the reasons.
    for (base, other, heading) in [
        (true, false, "Known in the base only"),
        (false, true, "Known in the other only"),
        (false, false, "Unknown in both, for different reasons"),
    ] {
        /// Up to this many are shown with their values.
        const FEW: usize = 8;
        let few = of_kind(base, other).count() <= FEW;
        let named = |fact: &FactDifference| {
            let value = fact.base.iter().chain(&fact.other).find_map(Fact::value).filter(|_| few);
            value.map_or_else(|| fact.name.clone(), |value| format!("{} ({value})", fact.name))
        };
        let names: Vec<String> = of_kind(base, other).map(named).collect();
        if !names.is_empty() {
            text.push_str(&paragraph(&format!("{heading}: {}.", names.join(", ")), width, ""));
        }
    }
    text
}

fn in_words(fact: Option<&Fact>) -> String {
    match fact {
        None => "not recorded".to_owned(),
        Some(Fact::Known { value, .. }) => value.to_string(),
        Some(Fact::Unknown { why }) => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shown_from_where_they_differ() {
        let line = "console=ttyS0 panic=-1 reboot=t rdinit=/init quiet loglevel=4 tsc=reliable";
        let longer = format!("{line} mitigations=off");
        let same = same_beginning(line, &longer);
        assert_eq!(
            (short(line, same).as_str(), short(&longer, same).as_str()),
            ("… tsc=reliable", "… tsc=reliable mitigations=off")
        );
        assert_eq!((same_beginning("a b", "a c"), same_beginning(&"ä".repeat(80), "ä")), (0, 0));
        assert_eq!(short(&"ä".repeat(80), 0), format!("{}…", "ä".repeat(60)));
    }
}
