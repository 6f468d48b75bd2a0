use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};

fn all(criterion: &mut Criterion) {
    let numbers = goals::numbers();
    let map = goals::map(&numbers);
    criterion.bench_function("three", |bencher| bencher.iter(goals::three));
    criterion.bench_function("one", |bencher| bencher.iter(goals::one));
    criterion.bench_function("sum", |bencher| bencher.iter(|| goals::sum(black_box(&numbers))));
    criterion.bench_function("sort", |bencher| bencher.iter(|| goals::sort(black_box(&numbers))));
    criterion.bench_function("find", |bencher| bencher.iter(|| goals::find(black_box(&map), &numbers)));
}

criterion_group!(benches, all);
criterion_main!(benches);
