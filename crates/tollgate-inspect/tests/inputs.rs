//! Generated inputs: whatever the bytes, each reader ends, soon, with an answer. (Those of dumps have a file of their own.)
//!
//! `TOLLGATE_FUZZ_INPUTS` is how many there are for each reader:
//! `TOLLGATE_FUZZ_INPUTS=10000000 cargo test --release -p tollgate-inspect --test inputs -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::time::{Duration, Instant};

use tollgate_inspect::fuzz;

/// A sequence of numbers that look random (Marsaglia, "Xorshift RNGs", 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// One of the seeds with a few of its bytes made wrong, cut off, left out or said twice.
fn spoiled(numbers: &mut Numbers, seeds: &[Vec<u8>], input: &mut Vec<u8>) {
    input.clone_from(&seeds[numbers.below(seeds.len())]);
    for _ in 0..numbers.below(8) {
        let at = numbers.below(input.len() + 1);
        match numbers.below(6) {
            0 => input.truncate(at),
            1 => input.insert(at, numbers.next() as u8),
            2 if at < input.len() => input[at] ^= 1 << numbers.below(8),
            3 if at < input.len() => input[at] = [0, 0xff, 0x7f, 0x80, b'=', b'\n'][numbers.below(6)],
            4 if at + 8 <= input.len() => {
                let word = if numbers.below(2) == 0 { u64::MAX } else { numbers.next() };
                input[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            _ => {
                let end = (at + numbers.below(16)).min(input.len());
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
        }
    }
}

fn each(name: &str, share: u64, seeds: &[Vec<u8>], read: impl Fn(&[u8]) -> bool) {
    let told = std::env::var("TOLLGATE_FUZZ_INPUTS").ok().map(|count| count.parse::<u64>().unwrap());
    let count = told.unwrap_or(20_000) / share;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ count);
    let (mut input, mut taken, mut longest) = (Vec::new(), 0, Duration::ZERO);
    let begin = Instant::now();
    for _ in 0..count {
        spoiled(&mut numbers, seeds, &mut input);
        let before = Instant::now();
        taken += u64::from(read(&input));
        longest = longest.max(before.elapsed());
    }
    println!("{name}: {count} inputs in {:?}, {taken} taken, the longest took {longest:?}", begin.elapsed());
    assert!(taken > count / 50, "{name}: hardly any input is taken: they test little");
    assert!(taken < count, "{name}: nothing was refused");
    assert!(longest < Duration::from_secs(5), "{name}: {longest:?}");
}

#[test]
fn programs() {
    // The beginning of this very program: its headers and its interpreter's name, if it has one.
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let seeds = [own[..4096].to_vec(), b"#!/bin/sh -e\n".to_vec(), own[..200].to_vec()];
    each("programs", 1, &seeds, fuzz::elf);
}

#[test]
fn configurations() {
    let seeds: [&[u8]; 2] = [include_bytes!("configs/small.config"), include_bytes!("configs/other.config")];
    each("configurations", 4, &seeds.map(<[u8]>::to_vec), fuzz::configuration);
    // Unpacking takes a thousand times as long.
    let seeds: [&[u8]; 5] = [
        include_bytes!("configs/kernel.gz"),
        include_bytes!("configs/kernel.xz"),
        include_bytes!("configs/kernel.lzma"),
        include_bytes!("configs/kernel.lz4"),
        include_bytes!("configs/kernel.zst"),
    ];
    each("packed kernels", 100, &seeds.map(<[u8]>::to_vec), fuzz::configuration);
}

#[test]
fn records() {
    let record = br#"{"format": 1, "directory": "/srv", "cpuid": [{"leaf": 1, "subleaf": 0, "registers": [1, 2, 3, 4]}],
        "calls": {"uname(2) release": {"value": "6.1"}, "getauxval(3)": {"errno": 2}}, "errors": {"/proc/x": {"read": 13}}}"#;
    each("records", 1, &[record.to_vec()], fuzz::record);
}

#[test]
fn captures() {
    let seeds = [
        b"ffffffff81000000 T _stext\nffffffff81000000 T _text\n".to_vec(),
        b"Name:\tx\nUid:\t0\nGroups:\t7\n".to_vec(),
        b"quiet -- --token x\n".to_vec(),
        b"\x7fELF\x02\x01\x01".iter().copied().chain([0; 200]).collect(),
    ];
    // Taken: something was left out.
    each("captures", 1, &seeds, |bytes| fuzz::capture(bytes) < 4 * bytes.len());
}
