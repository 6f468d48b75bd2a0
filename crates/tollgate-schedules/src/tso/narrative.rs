use super::buffer::Store;
use super::machine::{Move, Tso, is_locked};
use super::program::{Line, Op};
use super::state::State;
use super::symbols::Registers;
use super::x86::written;
use crate::counterexample::{Counterexample, Step};
use crate::search::{Harm, Machine, Schedule};

/// Describes a schedule step by step, and its outcome. Each program has its own registers.
pub fn describe(
    machine: &Tso,
    registers: &[Registers],
    harm: Harm,
    schedule: &Schedule<Tso>,
) -> Counterexample {
    let mut end = machine.start();
    let past: Vec<Past> = schedule
        .steps
        .iter()
        .map(|&(step, after)| Past { before: std::mem::replace(&mut end, after), step, after })
        .collect();
    let steps = past.iter().map(|Past { before, step, after }| match *step {
        Move::Step(process) => step_of(machine, registers, before, after, process),
        Move::Drain(processor) => drain_of(machine, before, processor),
    });
    let steps = steps.collect();
    let so = match harm {
        Harm::Exclusion => two_inside(machine, &past),
        Harm::Condition => final_state(machine, &past),
        _ => unfinished(machine, &end),
    };
    Counterexample { harm: Some(harm), steps, back_to: schedule.back_to, so }
}

struct Past {
    before: State,
    step: Move,
    after: State,
}

fn step_of(machine: &Tso, registers: &[Registers], before: &State, after: &State, process: u8) -> Step {
    let at = before.processes[usize::from(process)].at;
    let program = machine.program(process);
    let place = program.name(at);
    let mut changes = Vec::new();
    let what = match program.line(at) {
        Some(line) if !line.sentence => {
            let registers = &registers[usize::from(process) % registers.len()];
            changes = effects(machine, registers, before, after, process);
            line.words.clone()
        }
        Some(Line { op: Op::Store(place, value), .. }) => {
            let value = value.number(process, &before.processes[usize::from(process)].registers);
            format!("{} = {value} into the store buffer", machine.symbols.name_of(place.address(process)))
        }
        Some(Line { op: Op::Fence, .. }) => "mfence: store buffer is empty".to_owned(),
        Some(Line { op: Op::Critical, .. }) => "leaves the critical section".to_owned(),
        _ => read(machine, before, process).unwrap_or_default(),
    };
    let left = |state: &State| state.processes[usize::from(process)].left;
    if machine.is_inside(after, process) {
        changes.push("is in the critical section".to_owned());
    }
    if left(after) < left(before) && machine.goal.is_none() {
        changes.push(match left(after) {
            0 => "has finished".to_owned(),
            _ => format!("round {} is over", machine.setting.rounds - left(after)),
        });
    }
    Step { process: Some(process), processor: machine.processor(process), place, what, changes }
}

/// Returns what an instruction changed: registers, the store buffer, memory, or the next line.
fn effects(machine: &Tso, registers: &Registers, before: &State, after: &State, process: u8) -> Vec<String> {
    let who = usize::from(process);
    let (was, is) = (&before.processes[who], &after.processes[who]);
    let op = machine.op(before, process);
    let mut changes: Vec<String> = read(machine, before, process).into_iter().collect();
    // At the end of a round the registers are already those of the next.
    if is.left == was.left || machine.goal.is_some() {
        for register in op.map(written).unwrap_or_default() {
            changes.push(format!("{} = {}", registers.name(register), is.registers[usize::from(register)]));
        }
    }
    let stored = machine.buffer(after, process).stores().nth(machine.buffer(before, process).len() as usize);
    changes.extend(stored.map(|store| format!("{} into the store buffer", in_words(machine, store))));
    if op.is_some_and(is_locked) {
        let written = before.memory.iter().zip(&after.memory).position(|(was, is)| was != is);
        changes.extend(
            written.map(|at| format!("{} = {}", machine.symbols.name_of(at as u8), after.memory[at])),
        );
    }
    if let Some(Op::Branch { condition, wanted, .. }) = op
        && condition.holds(was.flags) == wanted
    {
        changes.push("taken".to_owned());
    }
    changes
}

/// `reads y = 0`, and where the value came from unless from memory.
fn read(machine: &Tso, before: &State, process: u8) -> Option<String> {
    let address = machine.reads(before, process)?;
    let (value, is_own) = machine.load(before, process, address);
    let place = if is_own { " in its store buffer" } else { "" };
    Some(format!("reads {} = {value}{place}", machine.symbols.name_of(address)))
}

fn drain_of(machine: &Tso, before: &State, processor: u8) -> Step {
    let oldest = before.buffers[usize::from(processor)].oldest();
    let store = oldest.map(|(store, _)| in_words(machine, store)).unwrap_or_default();
    Step {
        process: None,
        processor,
        place: "store buffer".to_owned(),
        what: format!("{store} reaches memory"),
        changes: vec![store],
    }
}

fn in_words(machine: &Tso, store: Store) -> String {
    format!("{} = {}", machine.symbols.name_of(store.address), store.value)
}

/// Names the processes in the critical section at the end, and the missing fence.
fn two_inside(machine: &Tso, past: &[Past]) -> String {
    let Some(Past { after: end, .. }) = past.last() else { return "no process has taken a step".to_owned() };
    let inside: Vec<u8> =
        (0..machine.setting.processes).filter(|&process| machine.is_inside(end, process)).collect();
    let names: Vec<String> = inside.iter().map(|&process| Step::name(process).to_string()).collect();
    let so = format!("{} are in the critical section at once", names.join(" and "));
    match overtaking(machine, past, &inside) {
        Some((overtaking, line)) => format!("{so}: {overtaking}; a fence after `{line}` is missing"),
        None => so,
    }
}

/// Describes the final state that was looked for, and the load that was made before a store of the same process reached
/// memory.
fn final_state(machine: &Tso, past: &[Past]) -> String {
    let all: Vec<u8> = (0..machine.setting.processes).collect();
    match overtaking(machine, past, &all) {
        Some((overtaking, _)) => capitalised(&overtaking),
        None => "No load is made before an earlier store of its process reaches memory".to_owned(),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the first premature load of one of these processes, with the line of a store: the store still waited, and
/// another of these processes then read the value that the store was to overwrite.
fn overtaking(machine: &Tso, past: &[Past], inside: &[u8]) -> Option<(String, String)> {
    past.iter().enumerate().find_map(|(early, Past { before, step, .. })| {
        let process = step.process().filter(|process| inside.contains(process))?;
        let read = machine.reads(before, process)?;
        let waiting = machine.buffer(before, process).stores().enumerate();
        let mut overtaken = waiting.filter(|(_, store)| store.address != read);
        overtaken.find_map(|(queued, store)| {
            let late = missed_by(machine, past, early, queued, store)?;
            let other = past[late].step.process().filter(|other| inside.contains(other))?;
            let (old, _) = machine.load(&past[late].before, other, store.address);
            let text = format!(
                "in step {} {} reads {} = {} while its {} waits in the store buffer, and in step {} {} still reads {} = {old}",
                early + 1,
                Step::name(process),
                machine.symbols.name_of(read),
                machine.load(before, process, read).0,
                in_words(machine, store),
                late + 1,
                Step::name(other),
                machine.symbols.name_of(store.address),
            );
            Some((text, line_of(machine, &past[..early], store)?))
        })
    })
}

/// Returns the first step after a load in which another process reads from memory what a store will overwrite. The store
/// was `queued` places after the oldest in its buffer at the time of the load.
fn missed_by(machine: &Tso, past: &[Past], load: usize, queued: usize, store: Store) -> Option<usize> {
    let home = Move::Drain(machine.processor(store.process));
    let drains = past.iter().enumerate().skip(load).filter(|(_, past)| past.step == home);
    let arrival = drains.map(|(number, _)| number).nth(queued).unwrap_or(past.len());
    (load + 1..arrival).find(|&number| {
        let Past { before, step, .. } = &past[number];
        step.process().is_some_and(|other| {
            let is_its_own = machine.load(before, other, store.address).1;
            other != store.process && machine.reads(before, other) == Some(store.address) && !is_its_own
        })
    })
}

/// Returns the text of the line with which a process last made this store.
fn line_of(machine: &Tso, past: &[Past], store: Store) -> Option<String> {
    let mut own = past.iter().rev().filter(|past| past.step == Move::Step(store.process));
    own.find_map(|Past { before, after, .. }| {
        let (was, is) = (machine.buffer(before, store.process), machine.buffer(after, store.process));
        let made = is.stores().nth(was.len() as usize)?;
        let at = before.processes[usize::from(store.process)].at;
        (made.address == store.address)
            .then(|| machine.program(store.process).line(at))?
            .map(|line| line.words.clone())
    })
}

/// Names the unfinished processes at the end, and their next lines.
fn unfinished(machine: &Tso, end: &State) -> String {
    let stuck = (0..machine.setting.processes).filter(|&process| machine.op(end, process).is_some());
    let each = stuck.map(|process| {
        let at = end.processes[usize::from(process)].at;
        format!("{} is at {}", Step::name(process), machine.program(process).name(at))
    });
    format!("from here no order of steps lets every process finish: {}", each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::subjects;
    use super::*;
    use crate::search::Limits;
    use crate::subject::Wish;

    fn counterexample(name: &str) -> Counterexample {
        let subject = subjects().iter().find(|subject| subject.name() == name).unwrap();
        let setting = subject.setting(Wish::default()).unwrap();
        subject.check(setting, Limits::default()).counterexamples.remove(0)
    }

    fn text(step: &Step) -> String {
        let who = step.process.map_or('-', Step::name);
        format!("{who}{} {}: {}; {}", step.processor, step.place, step.what, step.changes.join(", "))
    }

    #[test]
    fn a_step_names_process_line_action_and_changes() {
        let counterexample = counterexample("lamport-no-fence");
        let text: Vec<String> = counterexample.steps.iter().map(text).collect();
        assert_eq!(text[1], "A0 lock:2: x = 1 into the store buffer; ");
        assert_eq!(text[2], "A0 lock:3: reads y = 0; ");
        assert_eq!(text[4], "A0 lock:5: reads x = 1 in its store buffer; is in the critical section");
        assert_eq!(text[9], "B1 lock:5: reads x = 2 in its store buffer; is in the critical section");
        assert_eq!(text.len(), 10);
    }

    #[test]
    fn a_drain_is_no_process_s_step() {
        let text: Vec<String> = counterexample("lamport-no-y-fence").steps.iter().map(text).collect();
        assert!(text.contains(&"-1 store buffer: x = 2 reaches memory; x = 2".to_owned()), "{text:#?}");
        assert!(text.contains(&"A0 lock:3: mfence: store buffer is empty; ".to_owned()), "{text:#?}");
    }

    #[test]
    fn the_missing_fence_is_named() {
        for (name, fence) in [("lamport-no-x-fence", "x = i"), ("lamport-no-y-fence", "y = i")] {
            let so = counterexample(name).so;
            assert!(so.starts_with("A and B are in the critical section at once: in step "), "{so}");
            assert!(so.ends_with(&format!("a fence after `{fence}` is missing")), "{so}");
        }
        assert_eq!(
            counterexample("lamport-no-y-fence").so,
            "A and B are in the critical section at once: in step 10 A reads x = 1 while its y = 1 waits in the store \
             buffer, and in step 14 B still reads y = 0; a fence after `y = i` is missing"
        );
    }

    #[test]
    fn a_process_that_loops_is_named() {
        // y is always 0.
        let text = ".processes 1\n.rounds 1\n.processors 1\nlock: x = i\nwait until y == i\ncritical section";
        let subject = super::super::from_text("own", text).unwrap();
        let checked = subject.check(subject.setting(Wish::default()).unwrap(), Limits::default());
        let counterexample = &checked.counterexamples[0];
        assert_eq!((counterexample.harm, counterexample.back_to), (Some(Harm::Stuck), Some(1)));
        assert_eq!(self::text(&counterexample.steps[1]), "A0 lock:2: reads y = 0; ");
        assert!(counterexample.so.ends_with("finish: A is at lock:2"), "{}", counterexample.so);
    }
}
