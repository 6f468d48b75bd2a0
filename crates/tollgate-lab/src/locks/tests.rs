use std::time::Instant;
use super::*;
use crate::EngineChoice;

#[test]
fn scratch() {
    for lock in LOCKS.iter().filter(|lock| lock.group == Group::Lock) {
        for bounds in [Bounds::TWO, Bounds::THREE] {
        let begin = Instant::now();
        let proof = prove(Subject::Lock(lock), bounds).unwrap();
        println!("{} {proof:?} {:?}", lock.name, begin.elapsed());
        }
    }
    for mutant in MUTANTS {
        let begin = Instant::now();
        let proof = prove(Subject::Mutant(mutant), Bounds::TWO).unwrap();
        println!("{} {} {:?} {:?}", mutant.name, proof.states, proof.violation.as_ref().map(|s|(s.harm,&s.so, s.steps.len(), s.back_to)), begin.elapsed());
        if mutant.name == "register-late" || mutant.name == "handler-repeats"{ for s in proof.violation.unwrap().steps { println!("{s:?}"); } }
    }
    let all: Vec<_> = LOCKS.iter().collect();
    for choice in [EngineChoice::Interpreter, EngineChoice::Qemu, EngineChoice::Kvm] {
        let begin = Instant::now();
    for price in price(&all, choice, None, &|| None).unwrap().prices { println!("{} {} {:?} {:?}", price.lock.name, price.instructions, price.references, price.ticks); }
        println!("{:?}", begin.elapsed());
    }
}
