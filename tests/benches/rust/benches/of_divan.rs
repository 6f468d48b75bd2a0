use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

#[divan::bench]
fn three() -> u64 {
    goals::three()
}

#[divan::bench]
fn one() -> u64 {
    goals::one()
}

#[divan::bench]
fn sum(bencher: Bencher) {
    let numbers = goals::numbers();
    bencher.bench_local(|| goals::sum(black_box(&numbers)));
}

#[divan::bench]
fn sort(bencher: Bencher) {
    let numbers = goals::numbers();
    bencher.bench_local(|| goals::sort(black_box(&numbers)));
}

#[divan::bench]
fn find(bencher: Bencher) {
    let numbers = goals::numbers();
    let map = goals::map(&numbers);
    bencher.bench_local(|| goals::find(black_box(&map), &numbers));
}
