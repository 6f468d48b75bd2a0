use std::hint::black_box;

use tango_bench::{IntoBenchmarks, benchmark_fn, tango_benchmarks};

fn all() -> impl IntoBenchmarks {
    [
        benchmark_fn("three", |bencher| bencher.iter(goals::three)),
        benchmark_fn("one", |bencher| bencher.iter(goals::one)),
        benchmark_fn("sum", |bencher| {
            let numbers = goals::numbers();
            bencher.iter(move || goals::sum(black_box(&numbers)))
        }),
        benchmark_fn("sort", |bencher| {
            let numbers = goals::numbers();
            bencher.iter(move || goals::sort(black_box(&numbers)))
        }),
        benchmark_fn("find", |bencher| {
            let numbers = goals::numbers();
            let map = goals::map(&numbers);
            bencher.iter(move || goals::find(black_box(&map), &numbers))
        }),
    ]
}

tango_benchmarks!(all());
