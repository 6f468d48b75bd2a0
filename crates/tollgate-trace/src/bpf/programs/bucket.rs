//! The bucket that a time falls into, as [`tollgate_model::traced::bucket`] has it.

use super::super::asm::{Assembler, Condition, R1, R2, R3, Register};
use tollgate_model::traced::{BUCKETS, BUCKETS_PER_OCTAVE};

/// R1 = the bucket of the time in `ns`, which stays. R2 and R3 are lost.
///
/// There is no instruction that finds the highest bit. It is found by halves: R2 is the rest of the time above the bits that
/// are already counted in R1.
pub(super) fn bucket(a: &mut Assembler, ns: Register) {
    let done = a.label();
    a.mov(R1, ns);
    a.jump_if(Condition::Below, ns, BUCKETS_PER_OCTAVE as i32, done);
    a.mov(R2, ns);
    a.mov(R1, 0);
    for step in [32, 16, 8, 4, 2, 1] {
        let below = a.label();
        a.mov(R3, R2);
        a.shr(R3, step);
        a.jump_if(Condition::Equal, R3, 0, below);
        a.add(R1, step);
        a.mov(R2, R3);
        a.bind(below);
    }
    // The three bits below the highest: ns >> (octave - 3) & 7. The octave is 3 at least here.
    a.mov(R3, R1);
    a.sub(R3, 3);
    a.and(R3, 63);
    a.mov(R2, ns);
    a.shr(R2, R3);
    a.and(R2, BUCKETS_PER_OCTAVE as i32 - 1);
    a.sub(R1, 2);
    a.mul(R1, BUCKETS_PER_OCTAVE as i32);
    a.add(R1, R2);
    a.bind(done);
    // The last bucket has no upper bound; and the verifier wants to see one here.
    let within = a.label();
    a.jump_if(Condition::Below, R1, BUCKETS as i32, within);
    a.mov(R1, BUCKETS as i32 - 1);
    a.bind(within);
}

#[cfg(test)]
mod tests {
    use super::super::super::asm::{Instruction, Operand, Operation, R9};
    use super::*;
    use proptest::prelude::*;
    use tollgate_model::traced;

    /// Executes instructions that know nothing but registers.
    fn run(a: &Assembler, registers: &mut [u64; 11]) {
        let place = |label| a.instructions.iter().position(|i| *i == Instruction::Label(label)).unwrap();
        let mut at = 0;
        while let Some(instruction) = a.instructions.get(at) {
            at += 1;
            let value = |operand, registers: &[u64; 11]| match operand {
                Operand::Register(register) => registers[register.0 as usize],
                Operand::Immediate(immediate) => i64::from(immediate) as u64,
            };
            match *instruction {
                Instruction::Operate(operation, to, with) => {
                    let with = value(with, registers);
                    let to = &mut registers[to.0 as usize];
                    *to = match operation {
                        Operation::Add => to.wrapping_add(with),
                        Operation::Subtract => to.wrapping_sub(with),
                        Operation::Multiply => to.wrapping_mul(with),
                        Operation::And => *to & with,
                        Operation::ShiftLeft => *to << with,
                        Operation::ShiftRight => *to >> with,
                        Operation::Move => with,
                        other => panic!("{other:?}"),
                    };
                }
                Instruction::JumpIf(condition, a, b, label) => {
                    let (a, b) = (registers[a.0 as usize], value(b, registers));
                    let taken = match condition {
                        Condition::Equal => a == b,
                        Condition::Below => a < b,
                        other => panic!("{other:?}"),
                    };
                    if taken {
                        at = place(label);
                    }
                }
                Instruction::Label(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn of(ns: u64) -> u32 {
        let mut a = Assembler::default();
        bucket(&mut a, R9);
        let mut registers = [u64::MAX; 11];
        registers[9] = ns;
        run(&a, &mut registers);
        assert_eq!(registers[9], ns);
        registers[1] as u32
    }

    #[test]
    fn the_program_finds_the_bucket_of_the_model_at_every_bound() {
        for number in 0..traced::BUCKETS {
            let low = traced::bucket_low(number);
            for ns in [low.saturating_sub(1), low, low + 1] {
                assert_eq!(of(ns), traced::bucket(ns), "{ns}");
            }
        }
        assert_eq!(of(u64::MAX), traced::bucket(u64::MAX));
    }

    proptest! {
        #[test]
        fn the_program_finds_the_bucket_of_the_model(ns: u64, shift in 0u32..64) {
            prop_assert_eq!(of(ns >> shift), traced::bucket(ns >> shift));
        }
    }
}
