use crate::subject::Wish;
use crate::{Checked, Counterexample, Subject, Verdict};

/// A checked program with its result.
pub struct Outcome<'a> {
    /// The program.
    pub subject: &'a dyn Subject,
    /// The result.
    pub checked: Checked,
    /// Duration of the search in seconds. It does not depend on the speed of the lock.
    pub seconds: f64,
}

impl Outcome<'_> {
    pub(crate) fn expected(&self) -> Option<Verdict> {
        let usual = self.subject.setting(Wish::default()).ok();
        self.subject.expected().filter(|_| usual == Some(self.checked.setting))
    }

    /// Returns the expected verdict if the check found another one. An undecided check contradicts none.
    pub(crate) fn surprise(&self) -> Option<Verdict> {
        let is_decided = !matches!(self.checked.verdict, Verdict::NotDecided(_));
        self.expected().filter(|&expected| is_decided && expected != self.checked.verdict)
    }
}

/// A played preemption: the instruction that it precedes, and its outcome.
pub struct Played {
    /// Number of the instruction, from 0.
    pub point: usize,
    /// The schedule.
    pub counterexample: Counterexample,
}
