use super::machine::{Tso, drain};
use super::narrative;
use super::program::{Op, Program};
use super::state::{Initial, MOST, State};
use super::symbols::{Registers, Symbols};
use crate::counterexample::Counterexample;
use crate::search::{Limits, Machine as _, search};
use crate::subject::{
    Checked, Correction, Cost, Group, MOST_STEPS, Rival, Setting, Subject, Unfit, Verdict, Wish, Work,
};

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
    pub(super) corrections: Vec<Correction>,
}

/// The maximum of the machine.
const ALL: Setting = Setting::new(MOST as u8, MOST as u8, MOST as u8);

impl Study {
    pub(super) fn machine<'a>(&'a self, programs: &'a [Program], setting: Setting) -> Tso<'a> {
        Tso { programs, symbols: &self.symbols, initial: &self.initial, setting, goal: None }
    }

    /// Returns the work of one process alone until it is in the critical section; `None` if it does not get there.
    fn alone(&self) -> Option<Work> {
        let programs = [self.program.clone()];
        let machine = self.machine(&programs, Setting::new(1, 1, 1));
        let mut state = machine.start();
        let mut work = Work::default();
        for _ in 0..MOST_STEPS {
            if machine.is_inside(&state, 0) {
                return Some(work);
            }
            let op = machine.op(&state, 0)?;
            state = match machine.step(&state, 0) {
                Some(next) => {
                    work.instructions +=
                        usize::from(!(self.is_sentence(&state) && matches!(op, Op::Goto(_))));
                    next
                }
                None => drain(&state, 0)?,
            };
        }
        None
    }

    fn is_sentence(&self, state: &State) -> bool {
        self.program.line(state.processes[0].at).is_some_and(|line| line.sentence)
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

    fn corrections(&self) -> &[Correction] {
        &self.corrections
    }

    fn setting(&self, wish: Wish) -> Result<Setting, Unfit> {
        let processes = if self.symbols.of_two { 2 } else { ALL.processes };
        wish.fitted(&self.name, self.setting, Setting { processes, ..ALL })
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

    fn cost(&self) -> Option<Cost> {
        Some(Cost { alone: self.alone()?, preempted: vec![] })
    }

    fn play(&self, _point: usize, _rival: Rival) -> Result<Counterexample, Unfit> {
        Err(Unfit::NotPlayed {
            name: self.name.clone(),
            why: "has no single process to preempt: its steps are checked in every order, not played",
        })
    }
}

/// Brings a setting, which callers can construct freely, within the machine's limits.
pub(super) fn fit(setting: Setting) -> Setting {
    let fit = |number: u8| number.clamp(1, MOST as u8);
    let Setting { processes, rounds, processors, preempted } = setting;
    Setting { processes: fit(processes), rounds: fit(rounds), processors: fit(processors), preempted }
}
