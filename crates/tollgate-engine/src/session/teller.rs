//! Tells the progress of a session: the case and the environment.

use std::time::{Duration, Instant};

use super::super::run::{Decided, Place, Progress};

/// Receives what is to be told.
pub struct Teller<'a> {
    watch: &'a mut dyn FnMut(&Progress),
    pub began: Instant,
    budget: Duration,
    latest: Option<Instant>,
    /// First figures that are not reported yet.
    pub decided: Vec<Decided>,
    /// The place among the cases that are counted, meanwhile.
    pub counted: Option<Place>,
}

impl<'a> Teller<'a> {
    pub fn new(watch: &'a mut dyn FnMut(&Progress), budget: Duration) -> Self {
        Self { watch, began: Instant::now(), budget, latest: None, decided: Vec::new(), counted: None }
    }

    /// Tells what goes on now.
    pub fn say(&mut self, what: String, suite: Place) {
        self.latest = Some(Instant::now());
        let decided = std::mem::take(&mut self.decided);
        let (elapsed, budget) = (self.began.elapsed(), self.budget);
        let counted = self.counted;
        (self.watch)(&Progress { what, elapsed, budget, suite, decided, counted });
    }

    /// The same, unless something was told a moment ago.
    pub fn hint(&mut self, suite: Place, what: impl FnOnce() -> String) {
        /// A display that is drawn takes time.
        const OFTEN: Duration = Duration::from_millis(100);
        if self.latest.is_none_or(|latest| latest.elapsed() >= OFTEN) {
            self.say(what(), suite);
        }
    }
}
