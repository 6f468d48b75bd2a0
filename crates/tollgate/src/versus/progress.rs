//! The progress of a comparison on standard error.

use std::time::Duration;

use tollgate_engine::versus::{Doing, Rounds};
use tollgate_engine::{Length, Ordinal, Progress};
use tollgate_output::figures;

pub struct Shown {
    shown: crate::run::progress::Shown,
    time: Duration,
    /// The number of rounds, if it is known: it shows how much is done.
    rounds: Option<u32>,
    /// The number of commands, if their instructions are counted one command after the other.
    counted: Option<usize>,
}

impl Shown {
    pub fn new(time: Duration, rounds: Rounds, visible: bool, counted: Option<usize>) -> Self {
        let rounds = (rounds.least == rounds.most).then_some(rounds.most);
        Self { shown: crate::run::progress::Shown::new(visible), time, rounds, counted }
    }

    pub fn update(&mut self, doing: &Doing<'_>) {
        let so_far = doing.so_far.map(|(_, found)| {
            let span =
                found.interval.map(|span| figures::ratio_span(span.low, span.high)).unwrap_or_default();
            format!(", ratio {} {span}", figures::ratio(found.ratio))
        });
        let round = match self.counted {
            Some(_) => String::new(),
            None => format!("round {}{}: ", doing.rounds + 1, so_far.unwrap_or_default()),
        };
        let what = format!("{round}{}", doing.what.replace('\n', " "));
        let at = |what, of: usize| {
            Length::Number(what, Ordinal { number: (doing.rounds as usize + 1).min(of), of })
        };
        self.shown.update(&Progress {
            what,
            elapsed: doing.elapsed,
            length: match (self.counted, self.rounds) {
                (Some(commands), _) => at("command", commands),
                (None, None) => Length::Time(self.time),
                (None, Some(rounds)) => at("round", rounds as usize),
            },
            suite: Ordinal::default(),
            decided: Vec::new(),
        });
    }

    pub fn end(&self) {
        self.shown.end();
    }
}
