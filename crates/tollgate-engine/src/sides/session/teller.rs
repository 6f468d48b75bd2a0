use std::time::{Duration, Instant};

use crate::cases::plan::{Length, Ordinal, Plan};
use crate::cases::run::{Decided, Progress};

pub struct Teller<'a> {
    watch: &'a mut dyn FnMut(&Progress),
    pub began: Instant,
    plan: &'a Plan,
    latest: Option<Instant>,
    pub decided: Vec<Decided>,
    /// Processes that the current suite or environment has had.
    pub done: usize,
    /// The place among the counted cases, while they are counted: that takes none of the time.
    pub counted: Option<Ordinal>,
}

impl<'a> Teller<'a> {
    pub fn new(watch: &'a mut dyn FnMut(&Progress), plan: &'a Plan) -> Self {
        let (began, decided) = (Instant::now(), Vec::new());
        Self { watch, began, plan, latest: None, decided, done: 0, counted: None }
    }

    pub fn say(&mut self, what: String, suite: Ordinal) {
        self.latest = Some(Instant::now());
        let decided = std::mem::take(&mut self.decided);
        let length = match self.counted {
            Some(place) => Length::Number("case", place),
            None => self.plan.length(self.done),
        };
        (self.watch)(&Progress { what, elapsed: self.began.elapsed(), length, suite, decided });
    }

    /// Reports unless something was reported a moment ago.
    pub fn hint(&mut self, suite: Ordinal, what: impl FnOnce() -> String) {
        /// Drawing a display takes time.
        const OFTEN: Duration = Duration::from_millis(100);
        if self.latest.is_none_or(|latest| latest.elapsed() >= OFTEN) {
            self.say(what(), suite);
        }
    }
}
