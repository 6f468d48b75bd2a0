//! The histogram bucket of a time, as in [`tollgate_model::traced::bucket`].

use super::super::asm::{Assembler, Condition, R1, R2, R3, Register};
use tollgate_model::traced::{BUCKETS, BUCKETS_PER_OCTAVE};

/// Sets R1 to the bucket of the time in `ns`, which is preserved. Clobbers R2 and R3.
///
/// No instruction finds the highest bit, so a binary search does: R2 is the time shifted down by the bits that R1 has counted.
pub(super) fn bucket(a: &mut Assembler, ns: Register) {
    let done = a.label();
    a.mov(R1, ns);
    a.jump_if(Condition::Below, ns, BUCKETS_PER_OCTAVE as i32, done);
    a.mov(R2, ns);
    a.mov(R1, 0);
    for step in [32, 16, 8, 4, 2, 1] {
        a.mov(R3, R2);
        a.shr(R3, step);
        a.unless(Condition::Equal, R3, 0, |a| {
            a.add(R1, step);
            a.mov(R2, R3);
        });
    }
    // The three bits below the highest: ns >> (octave - 3) & 7. Here the octave is at least 3.
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
    // The last bucket has no upper bound, and the verifier needs to see a bound here.
    a.unless(Condition::Below, R1, BUCKETS as i32, |a| a.mov(R1, BUCKETS as i32 - 1));
}

#[cfg(test)]
mod tests {
    use super::super::super::asm::R9;
    use super::*;
    use proptest::prelude::*;
    use tollgate_model::traced;

    fn run(a: &Assembler, registers: &mut [u64; 11]) {
        let words = a.finish().unwrap();
        let mut at = 0;
        while let Some(&word) = words.get(at) {
            at += 1;
            let (to, from) = ((word >> 8 & 0xf) as usize, (word >> 12 & 0xf) as usize);
            let immediate = i64::from((word >> 32) as i32) as u64;
            let (a, b) = (registers[to], if word & 8 != 0 { registers[from] } else { immediate });
            let mut jumps = |taken: bool| {
                at = at.wrapping_add_signed(if taken { (word >> 16) as i16 } else { 0 }.into());
                a
            };
            registers[to] = match word as u8 & !8 {
                0x07 => a.wrapping_add(b),
                0x17 => a.wrapping_sub(b),
                0x27 => a.wrapping_mul(b),
                0x57 => a & b,
                0x67 => a << b,
                0x77 => a >> b,
                0xb7 => b,
                0x15 => jumps(a == b),
                0xa5 => jumps(a < b),
                other => panic!("{other:#x}"),
            };
        }
    }

    fn bucket_of(ns: u64) -> u32 {
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
                assert_eq!(bucket_of(ns), traced::bucket(ns), "{ns}");
            }
        }
        assert_eq!(bucket_of(u64::MAX), traced::bucket(u64::MAX));
    }

    proptest! {
        #[test]
        fn the_program_finds_the_bucket_of_the_model(ns: u64, shift in 0u32..64) {
            prop_assert_eq!(bucket_of(ns >> shift), traced::bucket(ns >> shift));
        }
    }
}
