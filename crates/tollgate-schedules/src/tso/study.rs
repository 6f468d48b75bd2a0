//! A lock on processors with store buffers, as something that can be checked.

use super::machine::Tso;
use super::narrative;
use super::program::Program;
use super::state::{Initial, MOST};
use super::symbols::{Registers, Symbols};
use crate::counterexample::Counterexample;
use crate::search::{Limits, search};
use crate::subject::{Checked, Group, Rival, Setting, Subject, Unfit, Verdict, Wish};

/// A program, its memory, and its expected verdict.
#[derive(Clone, Debug)]
pub(super) struct Study {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) group: Group,
    pub(super) expected: Option<Verdict>,
    pub(super) program: Program,
    pub(super) registers: Registers,
    pub(super) symbols: Symbols,
    pub(super) initial: Initial,
    pub(super) setting: Setting,
}

/// As many of everything as the machine has.
const ALL: Setting = Setting { processes: MOST as u8, rounds: MOST as u8, processors: MOST as u8 };

impl Study {
    pub(super) fn machine<'a>(&'a self, programs: &'a [Program], setting: Setting) -> Tso<'a> {
        Tso { programs, symbols: &self.symbols, initial: &self.initial, setting, goal: None }
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
        self.program.to_string()
    }

    fn setting(&self, wish: Wish) -> Result<Setting, Unfit> {
        wish.fitted(&self.name, self.setting, ALL)
    }

    fn check(&self, setting: Setting, limits: Limits) -> Checked {
        let setting = fit(setting);
        let programs = [self.program.clone()];
        let machine = self.machine(&programs, setting);
        let registers = [self.registers.clone()];
        Checked::new(&self.name, setting, search(&machine, limits), |harm, schedule| {
            narrative::describe(&machine, &registers, harm, schedule)
        })
    }

    fn points(&self) -> usize {
        0
    }

    fn play(&self, _point: usize, _rival: Rival) -> Result<Counterexample, Unfit> {
        Err(Unfit::NotPlayed {
            name: self.name.clone(),
            why: "has no single process to preempt: its steps are checked in every order, and not played",
        })
    }
}

/// Callers can make any setting.
pub(super) fn fit(setting: Setting) -> Setting {
    let fit = |number: u8| number.clamp(1, MOST as u8);
    let Setting { processes, rounds, processors } = setting;
    Setting { processes: fit(processes), rounds: fit(rounds), processors: fit(processors) }
}
