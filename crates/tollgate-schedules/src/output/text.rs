use tollgate_model::Unit;
use tollgate_output::figures;

use super::outcome::Outcome;
use crate::subject::{Cost, Group, Want, Wish};
use crate::{Harm, Setting, Verdict};

pub(crate) fn group(group: Group) -> &'static str {
    match group {
        Group::Published => "as published",
        Group::Mutant => "mutants",
        Group::Lamport => "Lamport",
        Group::Own => "your own",
    }
}

pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Violated(Harm::Exclusion) => "two hold the lock",
        Verdict::Violated(Harm::Crash) => "a process is killed",
        Verdict::Violated(Harm::LostLock) => "the lock is lost",
        Verdict::Violated(Harm::Stuck) => "a process is stuck",
        Verdict::Violated(Harm::Condition) => "condition is violated",
        Verdict::Allowed => "allowed",
        Verdict::Forbidden => "forbidden",
        Verdict::NotDecided(Want::States) => "not decided: states",
        Verdict::NotDecided(Want::Memory) => "not decided: memory",
    }
}

pub(crate) fn time(seconds: f64) -> String {
    figures::estimate(seconds * 1e9, Unit::Nanoseconds)
}

/// Says in a sentence why a program does not hold.
pub fn fault(outcome: &Outcome) -> String {
    let name = outcome.subject.name();
    match outcome.checked.verdict {
        Verdict::Holds => format!("{name} holds"),
        Verdict::Allowed => format!("{name}: allowed"),
        Verdict::Forbidden => format!("{name}: forbidden"),
        Verdict::Violated(harm) => format!("{name}: {harm}"),
        Verdict::NotDecided(Want::States) => format!("{name}: not decided, out of states"),
        Verdict::NotDecided(Want::Memory) => format!("{name}: not decided, out of memory"),
    }
}

/// `2 processes, 2 rounds each, on 1 processor`
pub(crate) fn setting(setting: Setting) -> String {
    let count = |number: u8, one, many| figures::count(number.into(), one, many);
    format!(
        "{}, {} each, on {}{}",
        count(setting.processes, "process", "processes"),
        count(setting.rounds, "round", "rounds"),
        count(setting.processors, "processor", "processors"),
        if setting.preempted { "" } else { ", without preemption in user mode" },
    )
}

/// The work of taking a lock: `Without a rival: 10 instructions, no kernel entry.`
pub(crate) fn work(cost: &Cost) -> String {
    let alone = format!("Without a rival: {}.", cost.alone);
    let Some(instructions) = range(cost.preempted.iter().map(|work| work.instructions)) else { return alone };
    format!("{alone} Preempted once, before any instruction: {instructions}, {}.", more_entries(cost))
}

pub(crate) fn range(numbers: impl Iterator<Item = usize>) -> Option<String> {
    let (least, most) = numbers.fold(None, |found: Option<(usize, usize)>, number| {
        let (least, most) = found.unwrap_or((number, number));
        Some((least.min(number), most.max(number)))
    })?;
    Some(if least == most { least.to_string() } else { format!("{least} to {most}") })
}

fn entries(number: usize) -> String {
    if number == 0 {
        "no kernel entry".to_owned()
    } else {
        figures::count(number, "kernel entry", "kernel entries")
    }
}

/// The kernel entries of the preemptions: `no kernel entry`, `1 kernel entry`, or `1 kernel entry in 1 of 10`.
fn more_entries(cost: &Cost) -> String {
    let (most, share) = most_entries(cost);
    format!("{}{share}", entries(most))
}

/// Like [`more_entries`], for a column: `0`, `1`, or `1 in 1 of 10`.
pub(crate) fn share_of_entries(cost: &Cost) -> String {
    let (most, share) = most_entries(cost);
    format!("{most}{share}")
}

/// Returns the most kernel entries of a preemption, and their share of the preemptions unless it is all of them.
fn most_entries(cost: &Cost) -> (usize, String) {
    let all = cost.preempted.len();
    let most = cost.preempted.iter().map(|work| work.entries).max().unwrap_or(0);
    match cost.preempted.iter().filter(|work| work.entries == most).count() {
        number if number == all || most == 0 => (most, String::new()),
        number => (most, format!(" in {number} of {all}")),
    }
}

/// Says what preemption changes: the programs that hold only without it, and those that hold only with it.
pub(crate) fn without_preemption(outcomes: &[Outcome]) -> Option<String> {
    let without = |outcome: &&Outcome| !outcome.checked.setting.preempted;
    if !outcomes.iter().all(|outcome| without(&outcome)) {
        return None;
    }
    let usual = |outcome: &Outcome| {
        let setting = outcome.subject.setting(Wish::default()).ok()?;
        (Setting { preempted: false, ..setting } == outcome.checked.setting)
            .then(|| outcome.subject.expected())?
    };
    let names = |from: bool, to: bool| {
        let changed = |outcome: &&Outcome| {
            let with = usual(outcome).map(|verdict| verdict == Verdict::Holds);
            with == Some(from) && (outcome.checked.verdict == Verdict::Holds) == to
        };
        outcomes.iter().filter(changed).map(|outcome| outcome.subject.name()).collect::<Vec<_>>().join(", ")
    };
    let said = |what: &str, names: String| (!names.is_empty()).then(|| format!("{what}: {names}."));
    let parts = [
        said("Violated with preemption, hold without", names(false, true)),
        said("Hold with preemption, violated without", names(true, false)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(if parts.is_empty() { "Each verdict is as with preemption.".to_owned() } else { parts.join(" ") })
}

pub(crate) fn answer(outcome: &Outcome) -> String {
    let checked = &outcome.checked;
    let setting = setting(checked.setting);
    let states = figures::count(checked.states, "state", "states");
    let time = time(outcome.seconds);
    let after = || {
        let steps = checked.counterexamples.first().map_or(0, |counterexample| counterexample.steps.len());
        figures::count(steps, "step", "steps")
    };
    let part = if checked.complete { "" } else { ", and there are more" };
    match checked.verdict {
        Verdict::Allowed => {
            format!(
                "allowed: a state as asked for is reached after {} ({states} of {setting}{part}; {time})",
                after()
            )
        }
        Verdict::Forbidden => {
            format!("forbidden: in {states}, every interleaving of {setting}, none is as asked for ({time})")
        }
        Verdict::Holds => format!("holds: {states}, every interleaving of {setting} ({time})"),
        Verdict::Violated(harm) => {
            format!("violated: {harm}, after {} ({states} of {setting}{part}; {time})", after())
        }
        Verdict::NotDecided(want) => {
            let want = match want {
                Want::States => "the limit of states is reached (--max-states)",
                Want::Memory => "memory is used up",
            };
            format!("not decided: no violation in {states} of {setting}, and {want} ({time})")
        }
    }
}

pub(crate) fn counter(outcomes: &[Outcome]) -> String {
    let number =
        |is: fn(Verdict) -> bool| outcomes.iter().filter(|outcome| is(outcome.checked.verdict)).count();
    let mut parts = vec![
        figures::count(number(|verdict| verdict == Verdict::Holds), "holds", "hold"),
        figures::count(number(|verdict| matches!(verdict, Verdict::Violated(_))), "does not", "do not"),
    ];
    match number(|verdict| matches!(verdict, Verdict::NotDecided(_))) {
        0 => {}
        open => parts.push(figures::count(open, "is not decided", "are not decided")),
    }
    let as_expected = outcomes.iter().filter(|&outcome| outcome.expected() == Some(outcome.checked.verdict));
    let surprises = outcomes.iter().filter(|outcome| outcome.surprise().is_some()).count();
    let expectation = match surprises {
        0 if as_expected.count() == outcomes.len() => "; all as expected".to_owned(),
        0 => String::new(),
        surprises => format!("; {surprises} not as expected"),
    };
    format!("{}{expectation}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Limits, Subject};

    fn outcome(name: &str, verdict: Verdict, wish: Wish) -> Outcome<'static> {
        let subject: &dyn Subject =
            crate::subjects().find(|subject| subject.name() == name).expect("a program");
        let setting = subject.setting(wish).expect("a setting");
        let checked = subject.check(setting, Limits { states: 100, ..Limits::default() });
        Outcome { subject, checked: Checked { verdict, ..checked }, seconds: 0.5 }
    }

    #[test]
    fn a_surprise_is_counted_and_what_is_not_decided_is_none() {
        let usual = Wish::default();
        let holds = outcome("lamport", Verdict::Holds, usual);
        assert_eq!(
            (holds.surprise(), counter(&[holds])),
            (None, "1 holds, 0 do not; all as expected".to_owned())
        );
        let broken = outcome("lamport", Verdict::Violated(Harm::Stuck), usual);
        assert_eq!(broken.surprise(), Some(Verdict::Holds));
        let open = outcome("lamport", Verdict::NotDecided(Want::Memory), usual);
        assert_eq!(open.surprise(), None);
        let said = counter(&[broken, open]);
        assert_eq!(said, "0 hold, 1 does not, 1 is not decided; 1 not as expected");
        // Another setting has no expected verdict.
        let other = outcome("lamport", Verdict::Holds, Wish { rounds: Some(1), ..usual });
        assert_eq!((other.expected(), counter(&[other])), (None, "1 holds, 0 do not".to_owned()));
    }

    #[test]
    fn what_was_not_looked_through_says_so() {
        let broken = outcome("lamport-no-fence", Verdict::Violated(Harm::Exclusion), Wish::default());
        assert!(
            answer(&broken).contains("on 2 processors, and there are more; 500 ms)"),
            "{}",
            answer(&broken)
        );
        let open = outcome("lamport", Verdict::NotDecided(Want::Memory), Wish::default());
        assert!(answer(&open).contains("memory is used up"), "{}", answer(&open));
        assert!(!answer(&open).contains("holds"));
    }
}
