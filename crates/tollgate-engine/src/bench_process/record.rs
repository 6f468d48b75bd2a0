//! Records: what a bench process left, as plain data. A run reads it from the shared results; an agent sends it.
//!
//! [`ProcessRecord::checked`] refuses an agent's record that does not fit its task. A checked one cannot overflow a computation.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tollgate_model::ProcessRounds;

use crate::bench_process::shared::{Events, InstanceState, MAX_ROUNDS, Report, SharedResults, Slot};
use crate::refusal::Refusal;

/// Longer than any instance takes.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// More operations than any iteration has.
const MOST_OPERATIONS: u64 = 1 << 40;
/// More iterations than any counted batch has.
const MOST_COUNTED: u64 = 1 << 20;
/// The most bytes of a text, and the most notes of an instance.
const MOST_TEXT: usize = 1 << 13;
const MOST_NOTES: usize = 256;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub rounds: usize,
    /// The instance that ran when the process ended.
    pub current: Option<usize>,
    pub report: Report,
    pub instances: Vec<InstanceRecord>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InstanceRecord {
    pub state: InstanceState,
    /// The rounds that it took part in, ascending; `None` for all.
    pub ran: Option<Vec<u32>>,
    pub discarded: Vec<u32>,
    /// Net ticks of the kept batches, in the order of rounds.
    pub ticks: Vec<i64>,
    pub events: Events,
}

impl ProcessRecord {
    /// Reads the shared results of a process that has ended, or that writes nothing now.
    pub fn read(shared: &SharedResults, instances: usize) -> Self {
        let rounds = shared.rounds_recorded();
        let instances =
            (0..instances).map(|instance| InstanceRecord::read(shared, instance, rounds)).collect();
        let mut record =
            Self { rounds, current: shared.current_instance(), report: shared.report(), instances };
        record.instances.iter_mut().for_each(InstanceRecord::settle);
        record
    }

    /// Returns this record if it has this many instances. The error is the end of a sentence.
    pub fn checked(mut self, instances: usize) -> Result<Self, String> {
        if self.instances.len() != instances {
            return Err(format!("a record of {} instances in place of {instances}", self.instances.len()));
        }
        if self.rounds > MAX_ROUNDS {
            return Err(format!("a record of {} rounds, more than {MAX_ROUNDS}", self.rounds));
        }
        if self.current.is_some_and(|current| current >= instances) {
            return Err("a record of an instance that was not requested".to_owned());
        }
        if !self.instances.iter().all(|instance| instance.fits(self.rounds)) {
            return Err("a record whose rounds and batches do not match".to_owned());
        }
        self.instances.iter_mut().for_each(InstanceRecord::settle);
        Ok(self)
    }

    /// Sets the number of the process's rounds. If this record has fewer, its instances missed the last ones.
    pub fn within(mut self, rounds: usize) -> Self {
        let had = self.rounds.min(rounds) as u32;
        for instance in &mut self.instances {
            if (had as usize) < rounds {
                instance.ran.get_or_insert_with(|| (0..had).collect());
            }
        }
        self.rounds = rounds;
        self
    }
}

impl InstanceRecord {
    /// Whether it took part in a round, or says why it does not.
    pub fn has_run(&self) -> bool {
        matches!(self.state, Some(Err(_))) || self.ran.as_ref().is_none_or(|ran| !ran.is_empty())
    }

    fn read(shared: &SharedResults, instance: usize, rounds: usize) -> Self {
        let (mut ran, mut discarded, mut ticks) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            match shared.slot(round, instance) {
                Slot::Empty => continue,
                Slot::Kept(net) => ticks.push(net),
                Slot::Discarded => discarded.push(round as u32),
            }
            ran.push(round as u32);
        }
        let ran = (ran.len() < rounds).then_some(ran);
        Self { state: shared.instance(instance), ran, discarded, ticks, events: shared.events(instance) }
    }

    /// Returns the rounds that it took part in, of the `rounds` rounds of its process.
    pub fn rounds(&self, rounds: usize) -> ProcessRounds {
        ProcessRounds { rounds: rounds as u32, ran: self.ran.clone(), discarded: self.discarded.clone() }
    }

    pub fn batches(&self, rounds: usize) -> impl Iterator<Item = (u32, i64)> {
        let kept: Vec<u32> = self.rounds(rounds).kept_rounds().collect();
        kept.into_iter().zip(self.ticks.iter().copied())
    }

    fn fits(&self, rounds: usize) -> bool {
        let ascends = |list: &[u32]| list.windows(2).all(|pair| pair[0] < pair[1]);
        let exist = |list: &[u32]| ascends(list) && list.last().is_none_or(|&last| (last as usize) < rounds);
        let ran = self.ran.as_ref().map_or(rounds, Vec::len);
        let took_part = |round| self.ran.as_ref().is_none_or(|ran| ran.binary_search(round).is_ok());
        exist(self.ran.as_deref().unwrap_or_default())
            && exist(&self.discarded)
            && self.discarded.iter().all(took_part)
            && self.ticks.len() + self.discarded.len() == ran
    }

    /// Limits values and texts that are larger than any instance's. A process with wild writes may have left them.
    fn settle(&mut self) {
        let cut = |text: &mut String| {
            text.truncate(boundary(text, MOST_TEXT));
            *text = text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
        };
        match &mut self.state {
            Some(Ok(ready)) => {
                for time in [&mut ready.cost, &mut ready.whole, &mut ready.fixed, &mut ready.setup] {
                    *time = (*time).min(LONGEST);
                }
                ready.ops = ready.ops.clamp(1, MOST_OPERATIONS);
                ready.most = ready.most.max(1);
                ready.counted = ready.counted.min(MOST_COUNTED);
                ready.notes.truncate(MOST_NOTES);
                ready.notes.iter_mut().chain(&mut ready.experiment).chain(&mut ready.fixture).for_each(cut);
            }
            Some(Err(refusal)) => cut(Refusal::why_mut(refusal)),
            None => {}
        }
    }
}

fn boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
