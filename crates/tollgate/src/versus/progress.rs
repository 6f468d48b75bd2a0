//! The progress of a comparison on standard error.

use std::time::Duration;

use tollgate_engine::versus::{Doing, Plan};
use tollgate_engine::{Length, Place, Progress};
use tollgate_output::figures;

/// What is seen while commands are executed.
pub struct Shown {
    shown: crate::run::progress::Shown,
    time: Duration,
    /// Where the number of rounds is known, it tells how much is done.
    rounds: Option<u32>,
    /// Whether instructions are counted, command by command.
    counts: bool,
    commands: usize,
}

impl Shown {
    /// `counts`: instructions, one command after the other.
    pub fn new(plan: &Plan, visible: bool, counts: bool) -> Self {
        let rounds = (plan.rounds.least == plan.rounds.most).then_some(plan.rounds.most);
        let commands = plan.commands.len() * plan.places.len().max(1);
        let shown = crate::run::progress::Shown::new(visible);
        Self { shown, time: plan.time, rounds, counts, commands }
    }

    pub fn update(&mut self, doing: &Doing<'_>) {
        let so_far = doing.so_far.map(|(_, found)| {
            let span =
                found.interval.map(|span| figures::ratio_span(span.low, span.high)).unwrap_or_default();
            format!(", ratio {} {span}", figures::ratio(found.ratio))
        });
        let round = match self.counts {
            true => String::new(),
            false => format!("round {}{}: ", doing.rounds + 1, so_far.unwrap_or_default()),
        };
        let what = format!("{round}{}", doing.what.replace('\n', " "));
        let number = doing.rounds as usize;
        let of_rounds = |of: u32| Length::Number("round", Place { number, of: of as usize });
        let of_commands = Length::Number("command", Place { number, of: self.commands });
        self.shown.update(&Progress {
            what,
            elapsed: doing.elapsed,
            length: match self.rounds {
                _ if self.counts => of_commands,
                None => Length::Time(self.time),
                Some(rounds) => of_rounds(rounds),
            },
            suite: Place::default(),
            decided: Vec::new(),
        });
    }

    pub fn end(&self) {
        self.shown.end();
    }
}
