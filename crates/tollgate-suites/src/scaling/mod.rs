//! Scaling: one operation by several threads or processes at the same time, each on a processor of its own.
//!
//! What contends is in the kernel: a lock of the address space, the table of descriptors, a counter of references.
//! Threads share those of their process; processes share what the whole machine has. The row says what one user waits
//! for an operation, beside the same of one user alone: 1 × is perfect scaling.

use crate::prelude::*;

mod cases;
mod descriptors;
mod instance;
mod memory;
mod messages;
mod tasks;
mod work;

/// A benchmark with the number of its operation in the table.
macro_rules! scaled {
    ($number:literal, $benchmark:expr) => {
        Benchmark {
            kind: Kind::Instance(|_, params, context| instance::instance($number, params, context)),
            ..$benchmark
        }
    };
}

pub(crate) static SUITE: Suite = Suite {
    name: "scaling",
    about: "One operation by several threads or processes at the same time.",
    benchmarks: &[
        &scaled!(0, tasks::GETPPID),
        &scaled!(1, descriptors::OPEN),
        &scaled!(2, descriptors::STAT),
        &scaled!(3, descriptors::READ),
        &scaled!(4, descriptors::DUP),
        &scaled!(5, descriptors::PIPE),
        &scaled!(12, messages::EVENTFD),
        &scaled!(13, messages::UNIX),
        &scaled!(14, messages::POLL),
        &scaled!(16, messages::FILE_LOCK),
        &scaled!(17, descriptors::WRITE),
        &scaled!(18, descriptors::CREATE),
        &scaled!(6, memory::FAULT),
        &scaled!(7, memory::MMAP),
        &scaled!(8, memory::BRK),
        &scaled!(9, tasks::FUTEX),
        &scaled!(10, tasks::SIGNAL),
        &scaled!(15, tasks::YIELD),
        &scaled!(11, tasks::FORK),
    ],
    control: None,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Directory, pinned, ready};

    /// Also that each operation worked: one that fails is an error of its batch.
    #[test]
    fn every_operation_is_made_by_one_user_and_by_two_at_the_same_time() {
        let all = cpu::allowed();
        let directory = Directory::new();
        let found = tollgate_os::workdir::Workdir::find(&directory.0).expect("a directory");
        let storage = Storage { directory: found, limit: 1 << 20, by: String::new() };
        let mut context = Context::here().with_storage(storage);
        pinned();
        for benchmark in SUITE.benchmarks {
            for case in
                (benchmark.cases)(&Topology::here()).into_iter().filter(|case| number(case, "users") <= 2)
            {
                let Kind::Instance(make) = benchmark.kind else { panic!("{} has instances", benchmark.name) };
                let made = make((benchmark.timed)(&case), &case, &mut context);
                let Some(mut instance) = ready(benchmark.case(case.clone()), made) else { continue };
                let batch = instance.batch(Clock::Kernel, Order::of(1));
                assert!(batch.is_ok_and(|batch| batch.work > 0), "{} {case:?}", benchmark.name);
            }
        }
        drop(context);
        cpu::allow(&all);
    }
}
