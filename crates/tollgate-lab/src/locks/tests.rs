use tollgate_schedules::Harm;

use super::*;
use crate::EngineChoice;

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
        // The program never turns interrupts off: it was preempted wherever it was.
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
    // A yield in the critical section is no preemption.
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
    // The right one has the same preemption and is restarted.
    let proof = prove(lock("lock-restart"), once).expect("it ends");
    assert!(proof.violation.is_none() && proof.is_complete && proof.restarts > 0);
}

#[test]
fn a_signal_ends_what_is_under_way() {
    let stopped = || Some(2);
    let tasks = [(lock("lock-xchg"), Bounds::TWO)];
    assert!(matches!(prove_all(&tasks, &stopped), Err(LabError::Interrupted { signal: 2 })));
    let results = measure(&[], EngineChoice::Interpreter, None, &stopped);
    assert!(matches!(results, Err(LabError::Interrupted { signal: 2 })));
}
