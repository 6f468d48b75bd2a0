//! Compares what a scheduler does for 40 seeds with a recording, which has one readable example and a hash for each seed.
//! `UPDATE=1 cargo test` makes the recording anew.

use std::path::Path;
use std::{env, fs};

/// Fails if what `scheduler` does with a seed differs from `recordings/NAME`.
pub fn hold(name: &str, scheduler: impl Fn(u64) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name);
    let mut found = String::new();
    for line in scheduler(1).lines().take(12) {
        found.extend(line.chars().take(400).chain(['\n']));
    }
    for seed in 1..=40 {
        found += &format!("{seed} {:016x}\n", hash(&scheduler(seed)));
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &found).expect("the recording is written");
    }
    let kept = fs::read_to_string(&path).expect("the recording");
    let differs = found.lines().zip(kept.lines()).find(|(found, kept)| found != kept);
    assert_eq!((differs, found.len()), (None, kept.len()), "{name}");
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo; RFC 9923).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
