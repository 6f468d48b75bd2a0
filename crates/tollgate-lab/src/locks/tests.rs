use tollgate_schedules::Harm;

use super::*;
use crate::EngineChoice;
use crate::engines::machine;
use crate::interpreter::{Explorer, StateId, Stop};

fn lock(name: &str) -> Subject {
    Subject::Lock(LOCKS.iter().find(|lock| lock.name == name).expect(name))
}

fn mutant(name: &str) -> Subject {
    Subject::Mutant(MUTANTS.iter().find(|mutant| mutant.name == name).expect(name))
}

#[test]
fn the_places_of_locks_are_the_first_ones() {
    let places: Vec<usize> = LOCKS.iter().map(|lock| lock.program).collect();
    assert_eq!(places, (1..=LOCKS.len()).collect::<Vec<_>>(), "measure() runs these and the loop");
}

#[test]
fn the_test_and_set_is_preempted_before_each_of_its_instructions() {
    for (name, instructions) in [("lock-restart", 6), ("lock-restart-test", 8)] {
        let proof = prove(lock(name), Bounds::TWO).expect("it ends");
        assert!(proof.is_complete && proof.violation.is_none(), "{proof:?}");
        assert_eq!(proof.in_primitive, instructions, "those of restart.s");
        assert!(proof.restarts > 0, "the handler has something to do");
        // The program never disables interrupts: it was preempted before every instruction.
        let others = proof.states - proof.preemptions;
        assert!(others < 10, "{others} states in which no program runs");
    }
}

#[test]
fn without_preemptions_nothing_is_restarted_and_no_mutant_goes_wrong() {
    let alone = Bounds { preemptions: Some(0), ..Bounds::TWO };
    let proof = prove(lock("lock-restart"), alone).expect("it ends");
    assert!(proof.is_complete && proof.violation.is_none());
    assert_eq!((proof.preemptions, proof.restarts), (0, 0));
    // A yield in the critical section does not count as a preemption.
    for mutant in MUTANTS {
        let proof = prove(Subject::Mutant(mutant), alone).expect("it ends");
        assert!(proof.is_complete && proof.violation.is_none(), "{} {proof:?}", mutant.name);
    }
}

#[test]
fn one_preemption_is_enough_for_a_mutant_and_its_way_is_told() {
    let once = Bounds { preemptions: Some(1), ..Bounds::TWO };
    let violation = prove(mutant("store-around"), once).expect("it ends").violation.expect("one");
    assert_eq!(violation.harm, Some(Harm::Exclusion));
    let timer: Vec<_> = violation.steps.iter().filter(|step| step.what == "timer").collect();
    assert_eq!(timer.len(), 1, "{timer:?}");
    assert!(timer[0].place.starts_with("page+") && timer[0].process == Some(0), "{timer:?}");
    let last = violation.steps.last().expect("steps");
    assert_eq!((last.process, last.changes.as_slice()), (Some(0), ["inside = 2".to_owned()].as_slice()));
    assert!(violation.so.contains("before `mov [rdi],1`"), "{}", violation.so);
    // The right lock meets the same preemption and is restarted.
    let proof = prove(lock("lock-restart"), once).expect("it ends");
    assert!(proof.violation.is_none() && proof.is_complete && proof.restarts > 0);
}

#[test]
fn a_state_goes_on_the_same_whatever_was_looked_at_before() {
    let kernel = Kernel::RIGHT;
    let work = Work { programs: vec![1; 3], kernel, rounds: 3, alone: false };
    let explorer = || Explorer::new(&work.image().expect("it fits"), machine(None), 3).expect("it begins");
    let ((mut straight, mut one), (mut astray, mut other)) = (explorer(), explorer());
    let step = |explorer: &mut Explorer, state, preempts| {
        let next = if preempts { explorer.preempt(state) } else { explorer.execute(state) };
        next.expect("it goes on")
    };
    let mut seen: Vec<StateId> = Vec::new();
    let mut random = 1_u32;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) as usize % below
    };
    while straight.place(one) == Stop::Program {
        let preempts = draw(8) == 0 && straight.can_be_interrupted(one);
        one = step(&mut straight, one, preempts);
        seen.push(other);
        let elsewhere = seen[draw(seen.len())];
        step(&mut astray, elsewhere, draw(2) == 0);
        other = step(&mut astray, other, preempts);
        let look = |explorer: &Explorer, state| {
            let registers: Vec<u64> = (0..16).map(|number| explorer.register(state, number)).collect();
            let shared: Vec<u32> = (0..9).map(|word| explorer.shared(state, word)).collect();
            (explorer.place(state), explorer.thread(state), explorer.rip(state), registers, shared)
        };
        assert_eq!(look(&straight, one), look(&astray, other), "after {} steps", seen.len());
    }
    assert!(straight.place(one) == Stop::Over && seen.len() > 200, "{}", seen.len());
    assert_eq!(straight.shared(one, 2), 9, "three programs, three times each");
}

#[test]
fn a_signal_ends_what_is_under_way() {
    let stopped = || Some(2);
    let tasks = [(lock("lock-xchg"), Bounds::TWO)];
    assert!(matches!(prove_all(&tasks, &stopped), Err(LabError::Interrupted { signal: 2 })));
    let results = measure(&[], EngineChoice::Interpreter, None, &stopped);
    assert!(matches!(results, Err(LabError::Interrupted { signal: 2 })));
}
