//! Scaling: one operation by several threads or processes at the same time, each on its own processor.
//!
//! Contention happens in the kernel: a lock of the address space, the descriptor table, a reference count. Threads
//! share those of their process; processes share only what is common to the whole machine. The row shows how long one
//! task waits for an operation, next to a single task's time: 1 × is perfect scaling.

use crate::prelude::*;

mod brk;
mod cases;
mod create;
mod dup;
mod eventfd;
mod file_lock;
mod files;
mod fork;
mod futex;
mod getppid;
mod instance;
mod mmap;
mod open;
mod page_fault;
mod pipe;
mod poll;
mod prelude;
mod read;
mod sched_yield;
mod signal;
mod stat;
mod unix;
mod work;
mod write;

pub(crate) static SUITE: Suite = Suite {
    name: "scaling",
    about: "One operation by several threads or processes at the same time.",
    benchmarks: &[
        &getppid::BENCHMARK,
        &open::BENCHMARK,
        &stat::BENCHMARK,
        &read::BENCHMARK,
        &dup::BENCHMARK,
        &pipe::BENCHMARK,
        &eventfd::BENCHMARK,
        &unix::BENCHMARK,
        &poll::BENCHMARK,
        &file_lock::BENCHMARK,
        &write::BENCHMARK,
        &create::BENCHMARK,
        &page_fault::BENCHMARK,
        &mmap::BENCHMARK,
        &brk::BENCHMARK,
        &futex::BENCHMARK,
        &signal::BENCHMARK,
        &sched_yield::BENCHMARK,
        &fork::BENCHMARK,
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Directory, pinned, ready};

    /// Also shows that each operation worked: one that fails is an error of its batch.
    #[test]
    fn every_operation_is_made_by_one_task_and_by_two_at_the_same_time() {
        let all = cpu::allowed();
        let directory = Directory::new();
        let found = tollgate_os::workdir::Workdir::find(&directory.0).expect("a directory");
        let storage = Storage { directory: found, limit: 1 << 20, by: String::new() };
        let mut context = Context::here().with_storage(storage);
        pinned();
        for benchmark in SUITE.benchmarks {
            for case in
                (benchmark.cases)(&Topology::here()).into_iter().filter(|case| number(case, "tasks") <= 2)
            {
                let Kind::Instance(make) = benchmark.kind else { panic!("{} has instances", benchmark.name) };
                let made = make((benchmark.timed)(&case), &case, &mut context);
                let Some(mut instance) = ready(benchmark.case(case.clone()), made) else { continue };
                let batch = instance.batch(Clock::Kernel, Order::new(1));
                assert!(batch.is_ok_and(|batch| batch.work > 0), "{} {case:?}", benchmark.name);
            }
        }
        drop(context);
        cpu::allow(&all);
    }
}
