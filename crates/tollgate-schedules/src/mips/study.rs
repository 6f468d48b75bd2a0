use crate::counterexample::Counterexample;
use crate::search::{Harm, Limits, search};
use crate::subject::{Checked, Correction, Cost, Group, Rival, Setting, Subject, Unfit, Verdict, Wish};

use super::kernel::Kernel;
use super::machine::Machine;
use super::narrative::Narrative;
use super::play::{play, play_alone};
use super::program::Program;
use super::state::{PROCESSES, PROCESSORS};

pub(super) struct Study {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) group: Group,
    pub(super) expected: Option<Verdict>,
    pub(super) program: Program,
    pub(super) kernel: Kernel,
    pub(super) checks: Vec<Harm>,
    pub(super) locks: u8,
    pub(super) setting: Setting,
    pub(super) corrections: Vec<Correction>,
}

/// More rounds would make too many states.
pub(super) const ROUNDS: u8 = 4;

pub(super) const TWO: Setting = Setting::new(2, 1, 1);

const ALONE: Setting = Setting { processes: 1, ..TWO };

impl Study {
    fn machine<const N: usize>(&self, setting: Setting) -> Machine<'_, N> {
        Machine {
            program: &self.program,
            kernel: self.kernel,
            checks: &self.checks,
            locks: self.locks,
            rounds: setting.rounds,
            processors: setting.processors,
            preempted: setting.preempted,
        }
    }

    fn check_with<const N: usize>(&self, setting: Setting, limits: Limits) -> Checked {
        let machine = self.machine::<N>(setting);
        Checked::new(&self.name, setting, search(&machine, limits), |harm, schedule| {
            let narrative = Narrative::new(&machine, &schedule.steps);
            let start = crate::search::Machine::start(&machine);
            let state = schedule.steps.last().map_or(start, |(_, state)| *state);
            let so = narrative.ending(&state, schedule.back_to).so(harm);
            narrative.counterexample(Some(harm), schedule.back_to, so)
        })
    }
}

impl Subject for Study {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn group(&self) -> Group {
        self.group
    }

    fn expected(&self) -> Option<Verdict> {
        self.expected
    }

    fn listing(&self) -> String {
        self.program.listing()
    }

    fn corrections(&self) -> &[Correction] {
        &self.corrections
    }

    fn setting(&self, wish: Wish) -> Result<Setting, Unfit> {
        let most = Setting::new(PROCESSES as u8, ROUNDS, PROCESSORS);
        wish.fitted(&self.name, self.setting, most)
    }

    fn check(&self, setting: Setting, limits: Limits) -> Checked {
        match setting.processes {
            0 | 1 => self.check_with::<1>(setting, limits),
            2 => self.check_with::<2>(setting, limits),
            3 => self.check_with::<3>(setting, limits),
            _ => self.check_with::<PROCESSES>(setting, limits),
        }
    }

    fn points(&self) -> usize {
        if self.setting.processors == 1 { self.program.len() } else { 0 }
    }

    fn play(&self, point: usize, rival: Rival) -> Result<Counterexample, Unfit> {
        let (name, points) = (self.name.clone(), self.points());
        if points == 0 {
            return Err(Unfit::NotPlayed { name, why: "runs on several processors at once" });
        }
        if point >= points {
            return Err(Unfit::NoSuchPoint { name, points, asked: point });
        }
        Ok(match rival {
            Rival::Absent => play_alone(&self.machine(ALONE)).counterexample,
            _ => play(&self.machine(TWO), point, rival).counterexample,
        })
    }

    fn cost(&self) -> Option<Cost> {
        let machine = self.machine(TWO);
        let preempted = (0..self.points()).filter_map(|point| play(&machine, point, Rival::GivesBack).work);
        Some(Cost { alone: play_alone(&self.machine(ALONE)).work?, preempted: preempted.collect() })
    }
}
