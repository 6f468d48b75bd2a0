//! Generated inputs for each reader of untrusted input: seeds with a few bytes changed.

/// A pseudorandom sequence (Marsaglia, "Xorshift RNGs", 2003).
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

/// Copies one of the seeds with a few bytes changed, cut off, removed or repeated.
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

/// Passes generated inputs to the reader, which refuses most of them, accepts some, and returns for each.
pub fn each(name: &str, share: u64, seeds: &[Vec<u8>], read: impl Fn(&[u8]) -> bool) {
    let known =
        std::env::var("TOLLGATE_FUZZ_INPUTS").ok().map(|count| count.parse::<u64>().expect("a number"));
    let count = known.unwrap_or(20_000) / share;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ count);
    let (mut input, mut taken) = (Vec::new(), 0);
    for _ in 0..count {
        spoiled(&mut numbers, seeds, &mut input);
        taken += u64::from(read(&input));
    }
    println!("{name}: {count} inputs, {taken} taken");
    assert!(taken > count / 50, "{name}: hardly any input is taken: they test little");
    assert!(taken < count, "{name}: nothing was refused");
}
