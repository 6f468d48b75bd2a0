//! The command that measures the environments of two runs in alternation.

use std::collections::BTreeSet;

use tollgate_environments::nearest;
use tollgate_model::run::Switched;
use tollgate_model::text::quoted;
use tollgate_model::{Run, own};

use crate::comparison;

/// `--in host --in container`. `None` if the environments are not known to be two that one machine has.
pub(crate) fn options(base: &Run, other: &Run) -> Option<String> {
    if let (Some(one), Some(another)) = (&base.session, &other.session) {
        let knob = another.knob.as_ref().filter(|_| one.knob.is_none());
        let knob = knob.map(|knob| format!("--knob {}", quoted(&format!("{}={}", knob.path, knob.value))));
        let switches: Vec<String> = another
            .switches
            .iter()
            .filter(|_| one.switches.is_empty())
            .map(|switch| {
                let Switched { name, on, off } = switch;
                format!("--switch {} {} {}", quoted(on), quoted(off), quoted(name))
            })
            .collect();
        let states = knob.or_else(|| (!switches.is_empty()).then(|| switches.join(" ")));
        return Some(match states {
            Some(states) => match one.environment.as_str() {
                "host" => states,
                environment => format!("--in {} {states}", quoted(environment)),
            },
            None => format!("--in {} --in {}", quoted(&one.environment), quoted(&another.environment)),
        });
    }
    let [one, another] = [base, other].map(|run| nearest(run.environment));
    (one != another).then(|| format!("--in {one} --in {another}"))
}

pub(crate) fn command(base: &Run, other: &Run) -> String {
    if let [Some(one), Some(another)] = [base, other].map(comparison::command) {
        let lines = [one, another].map(|command| quoted(&command.line));
        let option = if one.is_whole() { "" } else { "--bench " };
        return format!("tollgate versus {option}{}", lines.join(" "));
    }
    let suites = |run: &Run| -> BTreeSet<String> {
        let cases = run.measured().map(|(case, _)| case);
        let cases = cases.filter(|case| !own::is_own(&case.benchmark));
        // A benchmark of another version cannot be asked for.
        let known = cases.filter(|case| tollgate_suites::find(&case.benchmark).is_some());
        known.map(|case| case.suite().to_owned()).collect()
    };
    let both: Vec<String> = suites(base).intersection(&suites(other)).cloned().collect();
    let suites = if both.is_empty() { String::new() } else { format!("{} ", both.join(" ")) };
    let options = options(base, other).unwrap_or("--in A --in B".to_owned());
    format!("tollgate run {suites}{options}")
}
