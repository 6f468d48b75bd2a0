//! Limits of this process, getrlimit(2), as far as they decide what can be measured.

use tollgate_model::{Fact, FactValue, Unknown};

use crate::calls;
use crate::machine::{Answer, Machine, fact, found};
use crate::text::digits;

const LIMITS: &str = "/proc/self/limits";

/// A limit that the process may not exceed now (the soft one), by its words in the file and its number.
pub(crate) fn soft(machine: &Machine, words: &str, name: &str, resource: libc::__rlimit_resource_t) -> Fact {
    let listed = listed(machine, words);
    if listed.is_ok() {
        return fact(listed);
    }
    let name = format!("getrlimit(2) {name}");
    let asked = machine
        .or_call(Err(Unknown::Absent("not limited".to_owned())), &name, || calls::resource_limit(resource));
    fact(asked.map(|found| found.map(FactValue::Integer)).or(listed))
}

fn listed(machine: &Machine, words: &str) -> Answer<FactValue> {
    let text = machine.text(LIMITS)?;
    match soft_limit(&text.value, words) {
        Some(limit) => found(limit, format!("{LIMITS} {words}")),
        None => Err(Unknown::Absent(format!("{LIMITS} has no {words:?}"))),
    }
}

/// From lines `Max locked memory         8388608              8388608              bytes`.
fn soft_limit(text: &str, words: &str) -> Option<FactValue> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words)?.strip_prefix(' '))?;
    let soft = rest.split_whitespace().next()?;
    if soft == "unlimited" { Some("unlimited".into()) } else { digits(soft).map(FactValue::Integer) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_limits() {
        let text = "Limit     Soft Limit     Hard Limit     Units\nMax processes             96343     96343   processes\n\
                    Max data size             unlimited            unlimited            bytes\n";
        assert_eq!(soft_limit(text, "Max processes"), Some(FactValue::Integer(96_343)));
        assert_eq!(soft_limit(text, "Max data size"), Some("unlimited".into()));
        assert_eq!(soft_limit(text, "Max data"), None, "not a whole name");
        assert_eq!(soft_limit(text, "Max open files"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "\\PC{0,100}|(Max [a-z ]{0,9}[0-9]{0,25}\n){0,4}", words in "[A-Za-z ]{0,9}") {
            let _ = soft_limit(&text, &words);
        }
    }
}
