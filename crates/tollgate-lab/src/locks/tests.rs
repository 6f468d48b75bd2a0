use tollgate_schedules::Harm;

use super::*;
use crate::{EngineChoice, Provenance};

#[test]
fn scratch() {
    for lock in LOCKS.iter().filter(|lock| lock.is_checked) {
        let begin = std::time::Instant::now();
        let proof = prove(lock, 2, 1).unwrap();
        println!(
            "{} {} {} {} {} {:?} {:?}",
            lock.name,
            proof.states,
            proof.preemptions,
            proof.in_primitive,
            proof.is_complete,
            proof.violation,
            begin.elapsed()
        );
    }
    for mutant in MUTANTS {
        let begin = std::time::Instant::now();
        let proof = prove_mutant(mutant, 2, 1).unwrap();
        println!(
            "{} {} {:?} {:?}",
            mutant.name,
            proof.states,
            proof.violation.as_ref().map(|(h, s)| (h, s.len())),
            begin.elapsed()
        );
        if mutant.name == "register-late" {
            for s in proof.violation.unwrap().1 {
                println!("{s:?}");
            }
        }
    }
    for price in price(EngineChoice::Interpreter).unwrap().prices {
        println!("{} {} {:?} {:?}", price.lock.name, price.instructions, price.references, price.ticks);
    }
    for price in price(EngineChoice::Qemu).unwrap().prices {
        println!("{} {} {:?} {:?}", price.lock.name, price.instructions, price.references, price.ticks);
    }
}
