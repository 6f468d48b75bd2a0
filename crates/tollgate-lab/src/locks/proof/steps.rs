//! A counterexample in the form of `tollgate schedules`: for each step the program, its instruction, and what changed.

use tollgate_schedules::search::Schedule;
use tollgate_schedules::{Counterexample, Harm, Step};

use super::{At, INSIDE, LOCK, Move, PLACE, PRIMITIVE, System, is_in_primitive, restarts_at};
use crate::interpreter::{Explorer, StateId, Stop};
use crate::system::ADDRESSES;

const REGISTERS: [(usize, &str); 2] = [(0, "eax"), (R15, "r15")];
const R15: usize = 15;
const DIGITS: usize = 16;
/// An address without a page (`.LSPOILED`).
const SPOILED: u64 = 0x3fff_d000;

impl System {
    pub(super) fn told(&self, harm: Harm, schedule: &Schedule<Self>) -> Counterexample {
        let explorer = &mut self.inner.borrow_mut().explorer;
        let mut before = self.first.state;
        let mut steps = Vec::new();
        let mut trail = Trail::default();
        for (number, &(step, At { state: after, .. })) in (1..).zip(&schedule.steps) {
            trail.note(explorer, number, step, before, after);
            steps.push(told(explorer, step, before, after));
            before = after;
        }
        let so = trail.so(harm, explorer, before);
        Counterexample { harm: Some(harm), steps, back_to: schedule.back_to, so }
    }
}

fn told(explorer: &mut Explorer, step: Move, before: StateId, after: StateId) -> Step {
    let (process, next) = (explorer.thread(before), explorer.thread(after));
    let (rip, text) = (explorer.rip(before), shortened(&explorer.text(before)));
    let mut changes = Vec::new();
    if step == Move::Execute {
        changes = changed(explorer, before, after);
        if explorer.place(after) == Stop::Dead {
            changes.push("a fault ends the program".to_owned());
        } else if restarts_at(explorer, before, after) {
            changes.push("#PF: the handler sends it back".to_owned());
        } else if explorer.rip(after) == rip {
            changes.push("#PF: it is to be repeated".to_owned());
        }
    }
    if next != process && explorer.place(after) == Stop::Program {
        changes.push(switched(explorer, after));
    }
    let what = match step {
        Move::Execute => text,
        Move::Preempt => "timer".to_owned(),
    };
    Step { process: u8::try_from(process).ok(), processor: 0, place: place_of(rip), what, changes }
}

fn changed(explorer: &Explorer, before: StateId, after: StateId) -> Vec<String> {
    let mut changes = Vec::new();
    if explorer.thread(before) == explorer.thread(after) && is_in_primitive(explorer.rip(before)) {
        for (number, name) in REGISTERS {
            let value = explorer.register(after, number);
            if explorer.register(before, number) != value {
                changes.push(format!("{name} = {}", named(value)));
            }
        }
    }
    for (word, name) in [(LOCK, "lock"), (INSIDE, "inside")] {
        let value = explorer.shared(after, word);
        if explorer.shared(before, word) != value {
            changes.push(format!("{name} = {value}"));
        }
    }
    changes
}

fn switched(explorer: &Explorer, after: StateId) -> String {
    let name = name(explorer.thread(after));
    let is_spoiled = explorer.register(after, R15) == SPOILED;
    format!("{name} runs{}", if is_spoiled { ", r15 spoiled" } else { "" })
}

fn named(value: u64) -> String {
    match value {
        SPOILED => "spoiled".to_owned(),
        0..10 => value.to_string(),
        _ => format!("{value:x}h"),
    }
}

fn name(program: usize) -> char {
    Step::name(u8::try_from(program).unwrap_or(u8::MAX))
}

fn place_of(rip: u64) -> String {
    match rip {
        _ if is_in_primitive(rip) => format!("page+{:x}h", (rip - PRIMITIVE) % PLACE),
        _ if ADDRESSES.contains(&rip) => format!("program+{:x}h", rip - ADDRESSES.start),
        _ => format!("{rip:x}h"),
    }
}

fn shortened(text: &str) -> String {
    let target = text.rsplit_once(' ').and_then(|(front, target)| {
        let digits = target.strip_suffix('h').filter(|digits| digits.len() == DIGITS)?;
        Some((front, u64::from_str_radix(digits, 16).ok()?))
    });
    match target {
        Some((front, address)) => {
            let front = front.trim_end_matches(" short").trim_end_matches(" near");
            format!("{front} {}", place_of(address))
        }
        None => text.replace("dword ptr ", ""),
    }
}

/// The trail to a violation: where a program lost the processor in the page, and its next store.
#[derive(Default)]
struct Trail {
    /// For each program, the step in which it last lost the processor there, and the instruction that came next.
    lost: Vec<Option<(usize, String)>>,
    /// The last store after that: the step and the program.
    stored: Option<(usize, usize)>,
}

impl Trail {
    fn note(&mut self, explorer: &mut Explorer, number: usize, step: Move, before: StateId, after: StateId) {
        if !is_in_primitive(explorer.rip(before)) {
            return;
        }
        let program = explorer.thread(before);
        if self.lost.len() <= program {
            self.lost.resize(program + 1, None);
        }
        if step == Move::Preempt {
            self.lost[program] = Some((number, shortened(&explorer.text(before))));
        } else if self.lost[program].is_some() && explorer.rip(after) != explorer.rip(before) {
            let text = explorer.text(before);
            if text.starts_with("mov dword ptr [") {
                self.stored = Some((number, program));
            }
        }
    }

    fn so(&self, harm: Harm, explorer: &Explorer, last: StateId) -> String {
        let lost = |program: usize| self.lost.get(program).cloned().flatten();
        match (harm, self.stored.and_then(|(store, program)| Some((store, program, lost(program)?)))) {
            (Harm::Exclusion, Some((store, program, (step, text)))) => format!(
                "Two programs are in the critical section: {} lost the processor in step {step}, before `{text}`, and its store in \
                 step {store} rests on what it read before that",
                name(program)
            ),
            (Harm::Exclusion, None) => "Two programs are in the critical section".to_owned(),
            (Harm::Crash, _) => format!(
                "{} is ended by the fault of a store that was to be restarted",
                name(explorer.thread(last))
            ),
            (Harm::Stuck, _) => {
                format!("{} can never finish: its store faults again and again", name(explorer.thread(last)))
            }
            (other, _) => other.to_string(),
        }
    }
}
