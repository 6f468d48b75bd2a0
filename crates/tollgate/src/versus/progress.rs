//! The progress of a comparison on standard error.

use std::time::Duration;

use tollgate_engine::versus::{Doing, Rounds};
use tollgate_engine::{Length, Place, Progress};
use tollgate_output::figures;

/// What is seen while commands are executed.
pub struct Shown {
    shown: crate::run::progress::Shown,
    time: Duration,
    /// Where the number of rounds is known, it tells how much is done.
    rounds: Option<u32>,
}

impl Shown {
    pub fn new(time: Duration, rounds: Rounds, visible: bool) -> Self {
        let rounds = (rounds.least == rounds.most).then_some(rounds.most);
        Self { shown: crate::run::progress::Shown::new(visible), time, rounds }
    }

    pub fn update(&mut self, doing: &Doing<'_>) {
        let so_far = doing.so_far.map(|(_, found)| {
            let span =
                found.interval.map(|span| figures::ratio_span(span.low, span.high)).unwrap_or_default();
            format!(", ratio {} {span}", figures::ratio(found.ratio))
        });
        let what = format!(
            "round {}{}: {}",
            doing.rounds + 1,
            so_far.unwrap_or_default(),
            doing.what.replace('\n', " ")
        );
        let number = doing.rounds as usize;
        let of_rounds = |of: u32| Length::Number("round", Place { number, of: of as usize });
        self.shown.update(&Progress {
            what,
            elapsed: doing.elapsed,
            length: self.rounds.map_or(Length::Time(self.time), of_rounds),
            suite: Place::default(),
            decided: Vec::new(),
        });
    }

    pub fn end(&self) {
        self.shown.end();
    }
}
