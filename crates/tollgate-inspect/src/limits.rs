//! Limits of this process, getrlimit(2), as far as they decide what can be measured.

use tollgate_model::{FactValue, Unknown};

use crate::machine::{Answer, Machine};
use crate::{calls, text::digits};

const LIMITS: &str = "/proc/self/limits";

/// The soft limit, from the line of the file that begins with `words`, or by its name and number.
pub(crate) fn soft(
    machine: &Machine,
    words: &str,
    name: &str,
    number: libc::__rlimit_resource_t,
) -> Answer<FactValue> {
    let ask = |why| asked(machine, name, number).map(|limit| limit.map(FactValue::Integer)).map_err(|_| why);
    let listed = machine.text(LIMITS).and_then(|text| text.part(words, |text| soft_limit(text, words)));
    listed.or_else(ask)
}

/// The soft limit from getrlimit(2); absent if there is no limit, or if this is another machine's tree.
pub(crate) fn asked(machine: &Machine, name: &str, number: libc::__rlimit_resource_t) -> Answer<i64> {
    let unlimited = Err(Unknown::Absent(format!("{name} is not limited")));
    machine.or_call(unlimited, &format!("getrlimit(2) {name}"), || calls::resource_limit(number))
}

/// Parses lines `Max locked memory         8388608              8388608              bytes`.
fn soft_limit(text: &str, words: &str) -> Option<FactValue> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words)?.strip_prefix(' '))?;
    let soft = rest.split_whitespace().next()?;
    if soft == "unlimited" { Some("unlimited".into()) } else { digits(soft).map(FactValue::Integer) }
}

#[cfg(test)]
mod tests {
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

    takes_any! {
        text in "\\PC{0,100}|(Max [a-z ]{0,9}[0-9]{0,25}\n){0,4}", words in "[A-Za-z ]{0,9}" =>
        soft_limit(&text, &words)
    }
}
