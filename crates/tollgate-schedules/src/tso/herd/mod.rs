//! Litmus tests in the format of herd7: <https://diy.inria.fr/doc/herd.html>.
//!
//! A test has threads in columns, initial values, and a question about the final state. `exists` asks whether it can be
//! reached; `~exists` and `forall` state a property of all final states.

mod condition;
mod parts;
mod table;

use crate::counterexample::Counterexample;
use crate::search::{Harm, Limits, search};
use crate::subject::{Checked, FinalState, Group, Rival, Setting, Subject, Unfit, Verdict, Wish};

use super::formula::{Goal, Term};
use super::machine::Tso;
use super::narrative;
use super::program::Program;
use super::state::{Initial, MOST, State};
use super::study::fit;
use super::symbols::{Registers, Symbols};
use super::text_error::TextError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Can a state that satisfies the condition be reached?
    Exists,
    /// Does no state satisfy it?
    NotExists,
    /// Do all states satisfy it?
    ForAll,
}

struct Test {
    name: String,
    about: String,
    listing: String,
    condition: String,
    question: Question,
    goal: Goal,
    /// The terms to show of a final state, with their names.
    shown: Vec<(Term, String)>,
    programs: Vec<Program>,
    registers: Vec<Registers>,
    symbols: Symbols,
    initial: Initial,
}

/// Returns whether a text is a litmus test: its first line has an architecture that herd7 knows, and a name.
pub fn is_litmus(file: &str, text: &str) -> bool {
    file.ends_with(".litmus") || parts::header(text).is_some_and(|(_, arch, _)| parts::is_architecture(arch))
}

/// Reads a litmus test of herd7.
///
/// # Errors
/// The first wrong line, and a correct form.
pub fn from_text(file: &str, text: &str) -> Result<Box<dyn Subject>, TextError> {
    table::test(file, text).map(|test| Box::new(test) as Box<dyn Subject>)
}

impl Test {
    fn processes(&self) -> u8 {
        self.programs.len() as u8
    }

    fn outcome(&self, state: &State) -> FinalState {
        let values: Vec<String> =
            self.shown.iter().map(|(term, name)| format!("{name}={};", term.value(state))).collect();
        FinalState { values: values.join(" "), holds: self.goal.formula.holds(state) }
    }

    fn verdict(&self, checked: &Checked) -> Verdict {
        let reached = checked.counterexamples.iter().any(|schedule| schedule.harm == Some(Harm::Condition));
        match (self.question, checked.verdict) {
            (Question::Exists, _) if reached => Verdict::Allowed,
            (Question::Exists, Verdict::Holds | Verdict::Violated(_)) if checked.complete => {
                Verdict::Forbidden
            }
            (_, verdict) => verdict,
        }
    }
}

impl Subject for Test {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn group(&self) -> Group {
        Group::Own
    }

    fn expected(&self) -> Option<Verdict> {
        None
    }

    fn listing(&self) -> String {
        self.listing.clone()
    }

    fn condition(&self) -> Option<&str> {
        Some(&self.condition)
    }

    fn setting(&self, wish: Wish) -> Result<Setting, Unfit> {
        let processes = self.processes();
        for (what, asked, only) in [("processes", wish.processes, processes), ("rounds", wish.rounds, 1)] {
            if let Some(asked) = asked.filter(|&asked| asked != only) {
                let (name, asked) = (self.name.clone(), asked.into());
                return Err(Unfit::OutOfRange { name, what, least: only, most: only, asked });
            }
        }
        let own = Setting::new(processes, 1, processes);
        wish.fitted(&self.name, own, Setting { processors: MOST as u8, ..own })
    }

    fn check(&self, setting: Setting, limits: Limits) -> Checked {
        let setting = Setting { processes: self.processes(), rounds: 1, ..fit(setting) };
        let machine = Tso {
            programs: &self.programs,
            symbols: &self.symbols,
            initial: &self.initial,
            setting,
            goal: Some(&self.goal),
        };
        let mut found = search(&machine, limits);
        // The condition comes before a process that never finishes.
        found.harms.sort_by_key(|(harm, _)| *harm != Harm::Condition);
        let mut outcomes: Vec<FinalState> = found.outcomes.iter().map(|state| self.outcome(state)).collect();
        outcomes.sort_by(|one, other| one.values.cmp(&other.values));
        outcomes.dedup();
        let mut checked = Checked::new(&self.name, setting, found, |harm, schedule| {
            narrative::describe(&machine, &self.registers, harm, schedule)
        });
        checked.verdict = self.verdict(&checked);
        checked.outcomes = outcomes;
        checked
    }

    fn points(&self) -> usize {
        0
    }

    fn play(&self, _point: usize, _rival: Rival) -> Result<Counterexample, Unfit> {
        Err(Unfit::NotPlayed {
            name: self.name.clone(),
            why: "has no single process to preempt: its steps are checked in every order, not played",
        })
    }
}
