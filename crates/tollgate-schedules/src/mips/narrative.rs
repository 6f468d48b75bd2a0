//! Shows a schedule like the paper's figures 3 and 10: each instruction at its address with its changes, and the kernel's
//! steps between them.

use crate::counterexample::{Counterexample, Step};
use crate::search;

use super::conclusion::Ending;
use super::effect::{Act, Deed, Executed, value};
use super::instruction::Place;
use super::kernel::Answer;
use super::machine::{Event, Machine, Move, MoveKind};
use super::memory::{ACCESS_MAGIC, Access, Fault, Word, word_at};
use super::processor::{Exception, execute};
use super::register::Register;
use super::state::{Phase, Process, State};

pub(super) struct Narrative<'a, const N: usize> {
    machine: &'a Machine<'a, N>,
    state: State<N>,
    steps: Vec<Step>,
    deeds: Vec<Deed>,
    /// For each step of the schedule and for its end: the number of steps and deeds described before it.
    marks: Vec<(usize, usize)>,
}

impl<'a, const N: usize> Narrative<'a, N> {
    pub(super) fn new(machine: &'a Machine<'a, N>, schedule: &[(Move, State<N>)]) -> Self {
        let state = search::Machine::start(machine);
        let mut narrative = Self { machine, state, steps: vec![], deeds: vec![], marks: vec![(0, 0)] };
        for (step, after) in schedule {
            narrative.describe(*step, after);
            narrative.state = *after;
            narrative.marks.push((narrative.steps.len(), narrative.deeds.len()));
        }
        narrative
    }

    pub(super) fn ending<'b>(&'b self, state: &'b State<N>, back_to: Option<usize>) -> Ending<'b, N> {
        let first = |step: usize| self.marks.get(step).map_or(self.deeds.len(), |mark| mark.1);
        let Machine { program, locks, .. } = *self.machine;
        let repeated = back_to.map(|step| &self.deeds[first(step)..]);
        Ending { program, locks, deeds: &self.deeds, repeated, state }
    }

    pub(super) fn counterexample(
        self,
        harm: Option<search::Harm>,
        back_to: Option<usize>,
        so: String,
    ) -> Counterexample {
        let back_to = back_to.and_then(|step| self.marks.get(step)).map(|mark| mark.0);
        Counterexample { harm, steps: self.steps, back_to, so }
    }

    fn describe(&mut self, step: Move, after: &State<N>) {
        let who = usize::from(step.process);
        match step.kind {
            MoveKind::Execute => self.execute(step),
            MoveKind::Interrupt(to) | MoveKind::Refill(to) => {
                let is_refill = matches!(step.kind, MoveKind::Refill(_));
                self.suspend(step, if is_refill { "TLB refill" } else { "timer interrupt" });
                self.goes_on(step.processor, usize::from(to), after);
            }
            MoveKind::Yield(to) => {
                self.execute(step);
                self.goes_on(step.processor, usize::from(to), after);
            }
            MoveKind::Dispatch => self.goes_on(step.processor, who, after),
        }
    }

    fn execute(&mut self, step: Move) {
        let who = usize::from(step.process);
        let mut after = self.state;
        let event = self.machine.step(&mut after, who);
        match event {
            Event::Called => {
                let argument = after.processes[who].get(Register::A0);
                self.caller(step, "calls tst", vec![format!("a0 = {}", value(argument))]);
            }
            Event::Ran => self.ran(step),
            Event::Returned(result) => {
                self.ran(step);
                self.returned(step, result, &after.processes[who]);
            }
            Event::Excepted(Exception::Syscall, _) => self.syscall(step, &after),
            Event::Excepted(Exception::Fault(fault), answer) => self.fault(step, fault, answer, &after),
            Event::WasCritical => self.caller(step, "critical section", vec![]),
            Event::Released(word) => {
                let name = Word::Lock(word);
                self.caller(step, &format!("sw zero,{name}"), vec![format!("{name} = 0")]);
                if after.processes[who].phase == Phase::Done {
                    self.caller(step, "is done", vec![]);
                }
            }
        }
    }

    fn ran(&mut self, step: Move) {
        let who = usize::from(step.process);
        let process = self.state.processes[who];
        // Executed again, since a state keeps no registers outside `tst()`.
        let mut after = self.state;
        let (Some(instruction), Ok(())) = (
            self.machine.program.instruction(usize::from(process.pc)),
            execute(self.machine.program, &mut after, who),
        ) else {
            return;
        };
        let executed = Executed { instruction, who, before: &self.state, after: &after };
        let (changes, act) = executed.effect();
        self.instruction(step, changes);
        act.into_iter().for_each(|act| self.deed(who, act));
    }

    fn returned(&mut self, step: Move, result: u32, process: &Process) {
        let said = match (result, process.phase) {
            (0, Phase::Critical) => "tst returned 0: has the lock".to_owned(),
            (0, _) => format!("tst returned 0: has {}", Word::Lock(process.held.saturating_sub(1))),
            _ => format!("tst returned {}: must try again", value(result)),
        };
        self.caller(step, &said, vec![]);
        self.deed(usize::from(step.process), Act::Returned(result));
    }

    fn syscall(&mut self, step: Move, after: &State<N>) {
        let who = usize::from(step.process);
        let word = word_at(self.state.processes[who].get(Register::A0), Access::Write);
        self.instruction(step, vec![]);
        let mut changes = vec![format!("v0 = {}", value(after.processes[who].get(Register::V0)))];
        if let Ok(word) = word {
            changes.push(format!("{word} = 1"));
            self.deed(who, Act::Loaded { word, value: self.state.load(who, word) });
            self.deed(who, Act::Stored { word, value: 1 });
        }
        self.kernel(step.processor, format!("test-and-set for {}", Step::name(step.process)), changes);
        self.goes_on(step.processor, who, after);
    }

    fn fault(&mut self, step: Move, fault: Fault, answer: Answer, after: &State<N>) {
        let who = usize::from(step.process);
        let name = Step::name(step.process);
        self.instruction(step, vec!["fault".to_owned()]);
        let access = match fault.access {
            Access::Read => "read of",
            Access::Write => "write to",
            Access::Execute => "jump to",
        };
        let epc = epc(&self.state.processes[who]);
        self.kernel(step.processor, format!("SEGV: {access} 0x{:08x}, {epc}", fault.address), vec![]);
        let act = match answer {
            Answer::Killed(reason) => {
                self.kernel(step.processor, format!("{name} is killed"), vec![]);
                Act::Killed(fault, reason)
            }
            Answer::Restarted => Act::Restarted,
            Answer::Resumed | Answer::Served => Act::Resumed,
        };
        if after.processes[who].alive() {
            let said = format!("handler: {name} goes on at {}", place(&after.processes[who]));
            self.kernel(step.processor, said, self.given(&after.processes[who]));
        }
        self.deed(who, act);
    }

    fn suspend(&mut self, step: Move, why: &str) {
        let process = &self.state.processes[usize::from(step.process)];
        let at = if process.inside() { format!(", {}", epc(process)) } else { String::new() };
        let said = format!("{why} in {}{at}", Step::name(step.process));
        self.kernel(step.processor, said, vec![]);
        self.deed(usize::from(step.process), Act::Suspended);
    }

    fn goes_on(&mut self, processor: u8, who: usize, after: &State<N>) {
        let process = &after.processes[who];
        let name = Step::name(who as u8);
        let (said, changes) = if process.inside() {
            (format!("{name} goes on at {}", place(process)), self.given(process))
        } else {
            (format!("{name} goes on"), vec![])
        };
        self.kernel(processor, said, changes);
    }

    /// Names the registers that the return path sets in a process that continues in `tst()`.
    fn given(&self, process: &Process) -> Vec<String> {
        let k1 = process.get(Register::K1);
        let (flag, link) = (self.machine.program.has_flag(), self.machine.program.has_link());
        [
            (k1 == ACCESS_MAGIC).then(|| format!("k1 = {}", value(k1))),
            (k1 != ACCESS_MAGIC).then(|| format!("k1 still {}", value(k1))),
            flag.then(|| "preempted = 1".to_owned()),
            link.then(|| "no link".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn instruction(&mut self, step: Move, changes: Vec<String>) {
        let process = &self.state.processes[usize::from(step.process)];
        let what = self.machine.program.words_at(usize::from(process.pc));
        let place = place(process);
        let (process, processor) = (Some(step.process), step.processor);
        self.steps.push(Step { process, processor, place, what, changes });
    }

    fn caller(&mut self, step: Move, what: &str, changes: Vec<String>) {
        let (process, processor) = (Some(step.process), step.processor);
        let (place, what) = ("caller".to_owned(), what.to_owned());
        self.steps.push(Step { process, processor, place, what, changes });
    }

    fn kernel(&mut self, processor: u8, what: String, changes: Vec<String>) {
        self.steps.push(Step { process: None, processor, place: "kernel".to_owned(), what, changes });
    }

    fn deed(&mut self, process: usize, act: Act) {
        let pc = self.state.processes[process].pc;
        self.deeds.push(Deed { process: process as u8, pc, act });
    }
}

fn place(process: &Process) -> String {
    Place(i64::from(process.pc)).to_string()
}

fn epc(process: &Process) -> String {
    let place = Place(i64::from(process.epc()));
    if process.phase == Phase::Slot { format!("EPC = {place}, the branch") } else { format!("EPC = {place}") }
}
