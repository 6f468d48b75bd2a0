//! What a check or a play found.

use crate::subject::Wish;
use crate::{Checked, Counterexample, Subject, Verdict};

/// A program that was checked.
pub struct Outcome<'a> {
    /// The program.
    pub subject: &'a dyn Subject,
    /// The result.
    pub checked: Checked,
    /// The time of the search. It says nothing of the lock.
    pub seconds: f64,
}

impl Outcome<'_> {
    /// The expected verdict of the program in this setting.
    pub(crate) fn expected(&self) -> Option<Verdict> {
        let usual = self.subject.setting(Wish::default()).ok();
        self.subject.expected().filter(|_| usual == Some(self.checked.setting))
    }

    /// The expected verdict, where another one was found. An undecided check contradicts none.
    pub(crate) fn surprise(&self) -> Option<Verdict> {
        let is_decided = !matches!(self.checked.verdict, Verdict::NotDecided(_));
        self.expected().filter(|&expected| is_decided && expected != self.checked.verdict)
    }
}

/// A preemption that was played: before which instruction, and its outcome.
pub struct Played {
    /// The number of the instruction, from 0.
    pub point: usize,
    /// The schedule.
    pub counterexample: Counterexample,
}
