//! The verdict strip: how far the figures can be trusted, and what is slow here.

use crate::page::{Expensive, Quality, Text};

use super::subject::Subject;
use crate::screen::machine;
use crate::{advice, facts, quality, rules};

pub fn expensive(subject: &Subject) -> Vec<Expensive> {
    let item = |item: rules::Expense| Expensive {
        what: item.what.into(),
        cause: item.cause.into(),
        action: item.action.into(),
        benchmark: item.benchmark.into(),
    };
    rules::expenses(&subject.summary).into_iter().map(item).collect()
}

const SAID: usize = 2;

/// The machine, and what is slow there: `AMD EPYC VM: system call 106 ns, 260 cycles; INT 80h 48 × a call`. The run's name if
/// that is unknown.
pub fn title(subject: &Subject) -> String {
    let said: Vec<String> =
        rules::expenses(&subject.summary).into_iter().take(SAID).map(|item| within(&item.what)).collect();
    if said.is_empty() {
        return subject.name.clone();
    }
    let [processor, _] = machine(&subject.summary);
    let processor = processor.split([',', '|']).next().unwrap_or_default().trim();
    let is_guest = facts::flag(&subject.summary.run.facts, "hypervisor.present") == Some(true);
    format!("{processor}{}: {}", if is_guest { " VM" } else { "" }, said.join("; "))
}

/// A sentence inside another: its first letter is small unless it is an abbreviation.
fn within(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        _ => sentence.to_owned(),
    }
}

pub fn quality(subject: &Subject) -> Quality {
    let quality = quality::of(&subject.summary);
    let advice = advice::of(&subject.summary).into_iter();
    Quality {
        grade: quality.grade.to_string().into(),
        words: quality.to_string().into(),
        warnings: advice.map(|advice| Text::new(&format!("{}. {}", advice.warning, advice.remedy))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_within_another_begins_small_but_for_an_abbreviation() {
        for (sentence, expected) in [
            ("System call 106 ns, 260 cycles", "system call 106 ns, 260 cycles"),
            ("INT 80h 48 × a call", "INT 80h 48 × a call"),
            ("fork 180 µs", "fork 180 µs"),
            ("", ""),
        ] {
            assert_eq!(within(sentence), expected);
        }
    }
}
