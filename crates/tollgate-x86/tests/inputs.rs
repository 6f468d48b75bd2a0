//! Generated inputs: every walk ends, for any machine and crossing that bytes describe.
//!
//! `TOLLGATE_FUZZ_INPUTS` sets their number:
//! `TOLLGATE_FUZZ_INPUTS=10000000 cargo test --release -p tollgate-x86 --test all -- inputs:: --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use tollgate_x86::walk::walk_generated;

#[test]
fn every_machine_is_walked() {
    let given = std::env::var("TOLLGATE_FUZZ_INPUTS").ok().map(|count| count.parse::<u64>().unwrap());
    let count = given.unwrap_or(20_000);
    // Marsaglia, "Xorshift RNGs", 2003.
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ count;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut made, mut steps) = (0, 0);
    let mut bytes = [0_u8; 1600];
    for _ in 0..count {
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&next().to_le_bytes());
        }
        let (done, taken) = walk_generated(&bytes[..(next() % 1600) as usize]);
        made += u64::from(done);
        steps += taken as u64;
    }
    println!("{count} walks, {made} of them to the end, {steps} steps");
    assert!(made * 100 > count, "hardly any machine works: the inputs test little");
    assert!(made < count && steps > count);
}
